//! How far a group has come: the counts that XINFO GROUPS shows.
//!
//! A group counts the entries that it was given. That count is good as long as no entry in front of it
//! is deleted; when it is not, it can still be told at the ends of the stream: nothing is in front of
//! the first entry but what was removed, and everything is in front of the last one.

use super::StreamId;
use super::group::{Group, UNKNOWN};
use super::log::Log;

impl Log {
    /// Whether an entry from this id on was deleted, as far as that is known.
    fn may_have_gaps_from(&self, id: StreamId) -> bool {
        !self.is_empty() && self.max_deleted_id != StreamId::MIN && id <= self.max_deleted_id
    }

    /// How many entries were ever added up to and including this id, or [`UNKNOWN`].
    #[must_use]
    pub fn added_up_to(&self, id: StreamId) -> i64 {
        let added = self.entries_added.cast_signed();
        if added == 0 {
            return 0;
        }
        if self.is_empty() && id <= self.last_id {
            return added;
        }
        if id != StreamId::MIN && id < self.max_deleted_id {
            return UNKNOWN;
        }
        if id == self.last_id {
            return added;
        }
        let first = self.first_id();
        let has_no_gaps = self.max_deleted_id == StreamId::MIN || self.max_deleted_id < first;
        if id > self.last_id || id > first || !has_no_gaps {
            return UNKNOWN;
        }
        let before_first = added.wrapping_sub(self.len().cast_signed());
        before_first.wrapping_add(i64::from(id == first))
    }
}

impl Group {
    /// The group is given an entry behind all that it was given before.
    pub fn advance(&mut self, log: &Log, id: StreamId) {
        let last = self.last_id;
        if self.entries_read != UNKNOWN && last >= log.first_id() && !log.may_have_gaps_from(last) {
            self.entries_read = self.entries_read.wrapping_add(1);
        } else if log.entries_added != 0 {
            self.entries_read = log.added_up_to(id);
        }
        self.last_id = id;
    }

    /// How many entries the group was not given yet, if that can be told.
    #[must_use]
    pub fn lag(&self, log: &Log) -> Option<i64> {
        if log.entries_added == 0 || log.is_empty() {
            return Some(0);
        }
        let first = log.first_id();
        if self.last_id < first && log.max_deleted_id < first {
            return Some(log.len().cast_signed());
        }
        let added = log.entries_added.cast_signed();
        if self.entries_read != UNKNOWN && !log.may_have_gaps_from(self.last_id) {
            return Some(added.wrapping_sub(self.entries_read));
        }
        match log.added_up_to(self.last_id) {
            UNKNOWN => None,
            read => Some(added.wrapping_sub(read)),
        }
    }
}
