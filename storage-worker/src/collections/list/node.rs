//! One node of a list: a listpack of several elements, or one large element as it is.
//!
//! A node in the middle of a long list may be kept compressed (LZF). Its bytes are then the length
//! of the real ones (4 bytes, little endian) and what LZF made of them.

use std::borrow::Cow;

use crate::collections::listpack::{self, Listpack};
use crate::collections::{Buffer, Splice, StringRef, lzf};

use super::{End, text_len};

/// Nodes with fewer bytes are not worth compressing.
const COMPRESSIBLE_MIN: usize = 48;
/// Bytes that compressing has to save.
const SAVED_MIN: usize = 8;
/// Bytes of a node as `list-max-listpack-size` has them by default.
const NODE_BYTES: usize = 8192;
/// The length in front of compressed bytes.
const LENGTH_BYTES: usize = 4;

/// How the bytes of a node are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A listpack.
    Packed,
    /// One element.
    Plain,
}

/// See the module.
#[derive(Debug)]
pub struct Node {
    buffer: Buffer,
    count: u32,
    form: Form,
    is_compressed: bool,
}

impl Node {
    /// A node that holds this listpack, which has `count` elements.
    pub(super) fn packed(buffer: Buffer, count: usize) -> Self {
        Self {
            buffer,
            // A listpack of 4 GiB has fewer elements than that.
            count: count as u32,
            form: Form::Packed,
            is_compressed: false,
        }
    }

    /// A node with one element, in a listpack or, if it is `large`, by itself.
    pub(super) fn of(element: StringRef<'_>, large: bool) -> Self {
        if large {
            return Self {
                buffer: Buffer::from(&element.to_vec()[..]),
                count: 1,
                form: Form::Plain,
                is_compressed: false,
            };
        }
        let mut buffer = Buffer::from(&listpack::EMPTY[..]);
        listpack::push_back(&mut buffer, element);
        Self::packed(buffer, 1)
    }

    /// Number of elements.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether it has no elements: it is about to be removed.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether it is one large element and no listpack.
    #[inline]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.form == Form::Plain
    }

    /// Whether it is kept compressed.
    #[inline]
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// Length of its bytes when they are not compressed.
    #[inline]
    #[must_use]
    pub fn bytes_len(&self) -> usize {
        if !self.is_compressed {
            return self.buffer.len();
        }
        match self.buffer.bytes() {
            &[a, b, c, d, ..] => u32::from_le_bytes([a, b, c, d]) as usize,
            _ => 0,
        }
    }

    /// Length of its bytes as they are kept.
    #[must_use]
    pub fn stored_len(&self) -> usize {
        self.buffer.len()
    }

    /// Bytes that it takes in the arena besides itself.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// The bytes: a listpack, or the element if it is plain.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        if self.is_compressed {
            Cow::Owned(self.decompressed())
        } else {
            Cow::Borrowed(self.buffer.bytes())
        }
    }

    /// What LZF has made of the bytes, if they are kept compressed.
    #[must_use]
    pub fn compressed(&self) -> Option<&[u8]> {
        let stored = self.buffer.bytes().get(LENGTH_BYTES..);
        stored.filter(|_| self.is_compressed)
    }

    /// Calls `each` with the elements number `from` on, or backwards from there to the first one,
    /// until it says false. Says whether it never did.
    #[inline]
    pub(super) fn visit(
        &self,
        from: usize,
        backward: bool,
        mut each: impl FnMut(StringRef<'_>) -> bool,
    ) -> bool {
        let bytes = self.bytes();
        if self.is_plain() {
            return each(StringRef::Bytes(&bytes));
        }
        let pack = Listpack::new(&bytes);
        let Some(start) = pack.seek(from as i64) else {
            return true;
        };
        if backward {
            pack.iter_to(start).rev().all(each)
        } else {
            pack.iter_from(start).all(&mut each)
        }
    }

    fn decompressed(&self) -> Vec<u8> {
        let compressed = self.buffer.bytes().get(LENGTH_BYTES..).unwrap_or_default();
        lzf::decompress(compressed, self.bytes_len()).expect("what a node has compressed is whole")
    }

    /// The bytes as they are, to be edited; the count is the caller's to keep with
    /// [`Node::add_count`].
    pub(super) fn buffer_mut(&mut self) -> &mut Buffer {
        self.decompress();
        &mut self.buffer
    }

    /// Adds an element to a listpack at an end of the list. Where one comes more will, so the room
    /// for them is made by doubling.
    #[inline]
    pub(super) fn push(&mut self, end: End, element: StringRef<'_>) {
        let bytes = listpack::encoded_len_max(text_len(element));
        let in_front = end == End::Head;
        self.decompress();
        self.buffer.reserve(in_front, bytes, NODE_BYTES);
        if in_front {
            listpack::push_front(&mut self.buffer, element);
        } else {
            listpack::push_back(&mut self.buffer, element);
        }
        self.count += 1;
    }

    pub(super) fn add_count(&mut self, more: usize, fewer: usize) {
        self.count = self.count + more as u32 - fewer as u32;
    }

    /// Gives memory back that an edit has left unused.
    pub(super) fn shrink(&mut self) {
        self.buffer.shrink();
    }

    /// Keeps the bytes compressed from now on, if that is worth it.
    pub(super) fn compress(&mut self) {
        let len = self.buffer.len();
        if self.is_compressed || len < COMPRESSIBLE_MIN {
            return;
        }
        let Some(compressed) = lzf::compress(self.buffer.bytes(), len - SAVED_MIN) else {
            self.buffer.shrink();
            return;
        };
        let mut buffer = Buffer::with_capacity(LENGTH_BYTES + compressed.len());
        // The length of a buffer fits.
        buffer
            .splice(0, 0, LENGTH_BYTES)
            .copy_from_slice(&(len as u32).to_le_bytes());
        buffer
            .splice(LENGTH_BYTES, 0, compressed.len())
            .copy_from_slice(&compressed);
        self.buffer = buffer;
        self.is_compressed = true;
    }

    /// Keeps the bytes as they are from now on.
    #[inline]
    pub(super) fn decompress(&mut self) {
        if self.is_compressed {
            self.buffer = Buffer::from(&self.decompressed()[..]);
            self.is_compressed = false;
        }
    }

    /// A second node with the same bytes.
    pub(super) fn copy(&self) -> Self {
        Self {
            buffer: Buffer::from(self.buffer.bytes()),
            ..*self
        }
    }

    /// Takes the bytes out of a node that is not needed any more.
    pub(super) fn into_buffer(mut self) -> Buffer {
        self.decompress();
        self.buffer
    }

    /// Compares what must agree.
    pub(super) fn check(&self) -> Result<(), String> {
        self.buffer.check()?;
        let bytes = self.bytes();
        if bytes.len() != self.bytes_len() {
            return Err(format!(
                "a node says that it has {} bytes",
                self.bytes_len()
            ));
        }
        if self.is_plain() {
            return if self.count == 1 {
                Ok(())
            } else {
                Err(format!("a plain node has {} elements", self.count))
            };
        }
        let pack = Listpack::check(&bytes).ok_or("a node is no listpack")?;
        if pack.is_empty() || pack.len() != self.len() {
            return Err(format!(
                "a node says {} elements and has {}",
                self.count,
                pack.len()
            ));
        }
        Ok(())
    }
}
