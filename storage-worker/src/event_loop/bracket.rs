//! Write brackets that may nest, over the journal's that may not.
//!
//! The loop brackets every command that writes; inside, and also inside commands that only read, the
//! keyspace brackets the removal of a key whose time has come. Only the outermost bracket is
//! marked in the journal.

use crate::keyspace::Hook;
use shm::Journal;
use std::cell::Cell;
use std::rc::Rc;

/// The journal of this worker and how deep inside brackets it is.
#[derive(Debug)]
pub(crate) struct Bracket {
    journal: Journal,
    depth: Cell<u32>,
}

impl Bracket {
    pub(crate) fn new(journal: Journal) -> Self {
        Self {
            journal,
            depth: Cell::new(0),
        }
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The arena is about to change.
    #[inline]
    pub(crate) fn begin(&self, db: u16, slot: u16) {
        let depth = self.depth.get();
        if depth == 0 {
            self.journal.begin_write(u32::from(db), u32::from(slot));
        }
        self.depth.set(depth + 1);
    }

    /// The change is complete.
    #[inline]
    pub(crate) fn end(&self) {
        let depth = self.depth.get() - 1;
        self.depth.set(depth);
        if depth == 0 {
            self.journal.end_write();
        }
    }
}

/// Hands the keyspace's own brackets to the journal.
#[derive(Debug)]
pub(crate) struct BracketHook(pub(crate) Rc<Bracket>);

impl Hook for BracketHook {
    fn begin_write(&mut self, db: u16, slot: u16) {
        self.0.begin(db, slot);
    }

    fn end_write(&mut self) {
        self.0.end();
    }

    fn expired(&mut self, _db: u16, _slot: u16, _key: &[u8]) {
        // Nobody listens yet: keyspace events and the log come with their own parts.
    }

    fn field_expired(&mut self, _db: u16, _slot: u16, _key: &[u8], _field: &[u8]) {
        // As above.
    }
}
