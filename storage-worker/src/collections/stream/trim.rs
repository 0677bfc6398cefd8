//! Removing the oldest entries.
//!
//! Whole nodes go as long as what is left is enough; then, unless an approximate result will do, the
//! entries of the next node are marked as deleted, one by one. The result is exactly that of Redis,
//! whose nodes have the same entries: an approximate trim removes the same ones.

use crate::collections::listpack::Position;

use super::StreamId;
use super::log::Log;
use super::node::View;

/// Up to where a stream is trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trim {
    /// So many entries stay.
    MaxLen(u64),
    /// Entries with lesser ids go.
    MinId(StreamId),
}

impl Log {
    /// Removes entries from the front; returns how many. `is_exact`: not only whole nodes. No node is
    /// begun that has more entries than `limit` (0: none) leaves.
    pub fn trim(&mut self, by: Trim, is_exact: bool, limit: u64) -> u64 {
        let mut trimmed = 0;
        while let Some(node) = self.first_node() {
            let (id, view) = (node.id, node.view());
            let live = view.live as u64;
            if matches!(by, Trim::MaxLen(most) if self.length <= most) {
                break;
            }
            if limit != 0 && trimmed + live > limit {
                break;
            }
            let is_whole = match by {
                Trim::MaxLen(most) => self.length - live >= most,
                Trim::MinId(least) => view.last_id() < least,
            };
            if is_whole {
                self.remove_node(id);
                self.length -= live;
                trimmed += live;
                continue;
            }
            if is_exact {
                let entries = first_entries(&view, by, self.length);
                trimmed += entries.len() as u64;
                self.length -= entries.len() as u64;
                // A node stays even if all of its entries are marked: the last one did not have to go.
                if let Some(node) = self.node_mut(id)
                    && !entries.is_empty()
                {
                    node.delete(&entries);
                }
            }
            break;
        }
        if trimmed > 0 {
            self.find_first_id();
        }
        trimmed
    }
}

/// The entries at the beginning of a node that have to go.
fn first_entries(view: &View<'_>, by: Trim, length: u64) -> Vec<Position> {
    let live = view.entries().filter(|entry| !entry.is_deleted);
    match by {
        Trim::MaxLen(most) => {
            let count = usize::try_from(length.saturating_sub(most)).unwrap_or(usize::MAX);
            live.take(count).map(|entry| entry.at).collect()
        }
        Trim::MinId(least) => live
            .take_while(|entry| entry.id < least)
            .map(|entry| entry.at)
            .collect(),
    }
}
