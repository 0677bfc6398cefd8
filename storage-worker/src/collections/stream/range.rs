//! Walking over entries, from any id to any other, in both directions.

use super::StreamId;
use super::log::Log;
use super::node::{Entries, EntriesBack, Entry};

impl Log {
    /// The entries from `start` to `end`, both included, in order.
    #[must_use]
    pub fn range(&self, start: StreamId, end: StreamId) -> Range<'_> {
        let node = self.node_at_or_before(start).or(self.first_node());
        Range {
            log: self,
            entries: node.map(|node| node.view().entries_from(start)),
            end,
        }
    }

    /// The entries from `end` back to `start`, both included, in reverse order.
    #[must_use]
    pub fn range_back(&self, start: StreamId, end: StreamId) -> RangeBack<'_> {
        let node = self.node_at_or_before(end);
        RangeBack {
            log: self,
            entries: node.map(|node| node.view().entries_back()),
            start,
            end,
        }
    }

    /// The entry with an id.
    #[must_use]
    pub fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        self.range(id, id).next()
    }

    /// Id of the last entry that is not deleted.
    #[must_use]
    pub fn last_live_id(&self) -> Option<StreamId> {
        let last = self.range_back(StreamId::MIN, StreamId::MAX).next();
        last.map(|entry| entry.id)
    }
}

/// See [`Log::range`].
#[derive(Debug)]
pub struct Range<'a> {
    log: &'a Log,
    /// What is left of a node.
    entries: Option<Entries<'a>>,
    end: StreamId,
}

impl<'a> Iterator for Range<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let entries = self.entries.as_mut()?;
            match entries.next() {
                None => {
                    let next = self.log.node_after(entries.view.id);
                    self.entries = next.map(|node| node.view().entries());
                }
                Some(entry) if entry.id > self.end => self.entries = None,
                Some(entry) if entry.is_deleted => {}
                Some(entry) => return Some(entry),
            }
        }
    }
}

/// See [`Log::range_back`].
#[derive(Debug)]
pub struct RangeBack<'a> {
    log: &'a Log,
    entries: Option<EntriesBack<'a>>,
    start: StreamId,
    end: StreamId,
}

impl<'a> Iterator for RangeBack<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let entries = self.entries.as_mut()?;
            match entries.next() {
                None => {
                    let previous = self.log.node_before(entries.view.id);
                    self.entries = previous.map(|node| node.view().entries_back());
                }
                Some(entry) if entry.id < self.start => self.entries = None,
                Some(entry) if entry.is_deleted || entry.id > self.end => {}
                Some(entry) => return Some(entry),
            }
        }
    }
}
