//! Bytes that can be edited in the middle, wherever they live.
//!
//! What edits packed data (`listpack`) is written once over this trait and works on a vector, on a
//! buffer in the arena and on the value inside an entry of the keyspace.

/// A piece of bytes that owns its memory.
pub trait Splice {
    /// The bytes.
    fn bytes(&self) -> &[u8];

    /// The bytes, to be overwritten.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Replaces `removed` bytes at `at` by `inserted` fresh ones, whatever those hold, and returns
    /// them. All other bytes keep their values and their order.
    ///
    /// # Panics
    /// If `at + removed` is behind the end.
    fn splice(&mut self, at: usize, removed: usize, inserted: usize) -> &mut [u8];
}

impl Splice for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }

    fn splice(&mut self, at: usize, removed: usize, inserted: usize) -> &mut [u8] {
        let len = self.len();
        let tail = at + removed;
        assert!(tail <= len, "a splice stays within the bytes");
        if inserted > removed {
            self.resize(len + (inserted - removed), 0);
        }
        if inserted != removed {
            self.copy_within(tail..len, at + inserted);
            self.truncate(len - removed + inserted);
        }
        &mut self[at..at + inserted]
    }
}
