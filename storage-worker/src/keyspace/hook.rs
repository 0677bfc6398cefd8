//! What the engine hears of changes that the keyspace makes on its own.
//!
//! A read command may find a key whose time has come. Removing it changes the arena, so it must be
//! bracketed in the journal like any write, and others want to know (keyspace events, the log).

use std::fmt;

/// Told of removals that no command asked for. Brackets may come inside the engine's own: counting
/// them is the implementation's business.
pub trait Hook {
    /// The arena is about to change.
    fn begin_write(&mut self, db: u16, slot: u16);
    /// The arena is consistent again.
    fn end_write(&mut self);
    /// A command inside a bracket only reads for a while: a bracket that is open ends. Returns what
    /// begins it again, if one was open.
    fn pause_write(&mut self, _db: u16, _slot: u16) -> Option<Box<dyn FnOnce()>> {
        None
    }
    /// A key's time had come; it is being removed, inside a bracket.
    fn expired(&mut self, db: u16, slot: u16, key: &[u8]);
    /// A stream is being removed or overwritten, inside a bracket, for whatever reason but a flush:
    /// consumers of its groups may wait for it.
    fn stream_removed(&mut self, db: u16, key: &[u8]);
    /// The time of a field of a hash had come; it is being removed, inside a bracket.
    fn field_expired(&mut self, db: u16, slot: u16, key: &[u8], field: &[u8]);
}

/// While it lives a writing command only reads: a death now leaves the arena whole.
#[must_use = "the pause ends when this is dropped"]
pub struct Pause(Option<Box<dyn FnOnce()>>);

impl Pause {
    pub(super) fn new(resume: Option<Box<dyn FnOnce()>>) -> Self {
        Self(resume)
    }
}

impl fmt::Debug for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pause").field(&self.0.is_some()).finish()
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        if let Some(resume) = self.0.take() {
            resume();
        }
    }
}

/// Listens to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHook;

impl Hook for NoHook {
    fn begin_write(&mut self, _: u16, _: u16) {}
    fn end_write(&mut self) {}
    fn expired(&mut self, _: u16, _: u16, _: &[u8]) {}
    fn stream_removed(&mut self, _: u16, _: &[u8]) {}
    fn field_expired(&mut self, _: u16, _: u16, _: &[u8], _: &[u8]) {}
}
