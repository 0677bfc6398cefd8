//! Bytes with a version, in two buffers, for one writer and any number of readers.
//!
//! Why two buffers: a reader is never blocked by a writer that died half-way, and the writer never
//! waits for readers. Why copied out: the buffer may be overwritten by the next but one version.
//! Why words and not bytes: a copy that races with the writer must consist of atomic loads; it is
//! thrown away afterwards, but it has to be defined.
//!
//! Protocol
//!   G1  content before version: the writer fills the idle buffer, then stores the version with
//!       Release; a reader loads it with Acquire before it reads.
//!   G2  version unchanged: a reader loads the version again after its copy (Acquire fence before).
//!       If it still is the same, nobody had begun to overwrite the buffer it read: the writer
//!       fences (Release) between showing a version and filling the other buffer.
//!
//! What a survivor sees: a writer that died before G1's store left the old version, whole; its
//! successor fills the same idle buffer again.
//! Cost: 8 bytes per load; a second attempt only when a version appeared during the copy.
//! Not here: where the words lie (`registry`).

use crate::ShmError;
use crate::fault::{FaultPoint, point};
use crate::sync::{AtomicU64, Ordering, fence};

/// Attempts of a reader before it gives up. Versions change when an operator changes something, so
/// a second attempt is rare, and a tenth means that something is broken.
const READ_ATTEMPTS: usize = if cfg!(loom) { 3 } else { 64 };

/// Bytes per word.
const WORD: usize = size_of::<u64>();

/// The shared words: version, length of each buffer in bytes, and the two buffers back to back.
#[derive(Debug, Clone, Copy)]
pub struct Versioned<'a> {
    version: &'a AtomicU64,
    lengths: &'a [AtomicU64; 2],
    buffers: [&'a [AtomicU64]; 2],
}

impl<'a> Versioned<'a> {
    /// `words` are both buffers, half each.
    #[must_use]
    pub fn new(
        version: &'a AtomicU64,
        lengths: &'a [AtomicU64; 2],
        words: &'a [AtomicU64],
    ) -> Self {
        let (even, odd) = words.split_at(words.len() / 2);
        Self {
            version,
            lengths,
            buffers: [even, odd],
        }
    }

    /// Version and content that count now.
    ///
    /// # Errors
    /// [`ShmError::Contended`] if it changed at every attempt, [`ShmError::CorruptPosition`] if the
    /// length makes no sense.
    pub fn read(&self) -> Result<(u64, Vec<u8>), ShmError> {
        for _ in 0..READ_ATTEMPTS {
            let version = self.version.load(Ordering::Acquire); // pairs with G1: content before version
            let copied = self.copy_out((version & 1) as usize);
            fence(Ordering::Acquire); // pairs with G2: version unchanged
            if self.version.load(Ordering::Relaxed) == version {
                return Ok((version, copied?));
            }
        }
        Err(ShmError::Contended)
    }

    /// Makes `content` the next version and returns its number. One writer only.
    ///
    /// # Errors
    /// [`ShmError::TooLarge`]; the old version then still counts.
    pub fn publish(&self, content: &[u8]) -> Result<u64, ShmError> {
        let version = self.version.load(Ordering::Relaxed).wrapping_add(1);
        let which = (version & 1) as usize;
        let limit = self.capacity(which);
        if content.len() > limit {
            let (what, bytes) = ("registry", content.len() as u64);
            return Err(ShmError::TooLarge {
                what,
                bytes,
                limit: limit as u64,
            });
        }
        fence(Ordering::Release); // pairs with G2: version unchanged
        for (bytes, word) in content.chunks(WORD).zip(self.buffers[which]) {
            let mut value = [0; WORD];
            value[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(value), Ordering::Relaxed);
        }
        self.lengths[which].store(content.len() as u64, Ordering::Relaxed);
        point(FaultPoint::RegistryFilled);
        self.version.store(version, Ordering::Release); // pairs with G1: content before version
        Ok(version)
    }

    fn copy_out(&self, which: usize) -> Result<Vec<u8>, ShmError> {
        let found = self.lengths[which].load(Ordering::Relaxed);
        let high = self.capacity(which) as u64;
        if found > high {
            let what = "length of the registry";
            return Err(ShmError::CorruptPosition {
                what,
                found,
                low: 0,
                high,
            });
        }
        // At most the capacity, which is a usize.
        let len = found as usize;
        let words = &self.buffers[which][..len.div_ceil(WORD)];
        let mut content = Vec::with_capacity(words.len() * WORD);
        for word in words {
            content.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        content.truncate(len);
        Ok(content)
    }

    fn capacity(&self, which: usize) -> usize {
        self.buffers[which].len() * WORD
    }
}
