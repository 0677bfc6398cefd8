//! Write brackets that may nest, over the journal's that may not.
//!
//! The loop brackets every command that writes; inside, and also inside commands that only read, the
//! keyspace brackets the removal of a key whose time has come. Only the outermost bracket is
//! marked in the journal.

use crate::blocking::WaitKey;
use crate::keyspace::Hook;
use crate::notify::{Notes, class};
use shm::Journal;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The journal of this worker and how deep inside brackets it is.
#[derive(Debug)]
pub(crate) struct Bracket {
    journal: Journal,
    depth: Cell<u32>,
    /// Somebody waits for the end of a stream.
    is_watching: Cell<bool>,
    /// Streams that ended, as far as somebody might wait for it, and whether there are any.
    ended: RefCell<Vec<WaitKey>>,
    is_any_ended: Cell<bool>,
    /// Keyspace events.
    pub(crate) notes: Notes,
}

impl Bracket {
    pub(crate) fn new(journal: Journal) -> Self {
        Self {
            journal,
            depth: Cell::new(0),
            is_watching: Cell::new(false),
            ended: RefCell::default(),
            is_any_ended: Cell::new(false),
            notes: Notes::default(),
        }
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Whether ends of streams are noted from here on.
    pub(crate) fn watch_streams(&self, is_watching: bool) {
        self.is_watching.set(is_watching);
    }

    /// Whether a stream that somebody might wait for has ended.
    #[inline]
    pub(crate) fn is_any_ended(&self) -> bool {
        self.is_any_ended.get()
    }

    /// Those streams.
    pub(crate) fn take_ended(&self) -> Vec<WaitKey> {
        self.is_any_ended.set(false);
        self.ended.take()
    }

    /// How many brackets are open.
    pub(crate) fn depth(&self) -> u32 {
        self.depth.get()
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

    fn pause_write(&mut self, db: u16, slot: u16) -> Option<Box<dyn FnOnce()>> {
        if self.0.depth.get() != 1 {
            return None;
        }
        self.0.end();
        let bracket = Rc::clone(&self.0);
        Some(Box::new(move || bracket.begin(db, slot)))
    }

    fn expired(&mut self, db: u16, _slot: u16, key: &[u8]) {
        self.0.notes.say(class::EXPIRED, "expired", db, key);
    }

    fn stream_removed(&mut self, db: u16, key: &[u8]) {
        let bracket = &self.0;
        if bracket.is_watching.get() {
            bracket.ended.borrow_mut().push((db, key.into()));
            bracket.is_any_ended.set(true);
        }
    }

    fn field_expired(&mut self, db: u16, _slot: u16, key: &[u8], _field: &[u8]) {
        self.0.notes.field_expired(db, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::LOG_BYTES_DEFAULT;

    #[test]
    fn a_pause_ends_the_outermost_bracket_for_a_while() {
        let journal = Journal::create("bracket", LOG_BYTES_DEFAULT, 1).expect("a journal");
        let bracket = Rc::new(Bracket::new(journal));
        let mut hook = BracketHook(Rc::clone(&bracket));
        let is_open = || !bracket.journal().writing().is_multiple_of(2);
        assert!(hook.pause_write(0, 1).is_none(), "there is none");
        bracket.begin(0, 1);
        let resume = hook.pause_write(0, 1).expect("one is open");
        assert!(!is_open());
        // A dead key that is found meanwhile has a bracket of its own.
        hook.begin_write(0, 1);
        assert!(is_open());
        hook.end_write();
        assert!(!is_open());
        resume();
        assert!(is_open());
        hook.begin_write(0, 1);
        assert!(hook.pause_write(0, 1).is_none(), "an inner one stays");
        hook.end_write();
        bracket.end();
        assert!(!is_open());
    }
}
