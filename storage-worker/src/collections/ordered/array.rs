//! One node of the tree: a small array of items behind a head, in one object of the arena.
//!
//! An [`Array`] is an address, copied freely; whoever holds one knows that the node is live.

use std::marker::PhantomData;
use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};

/// Bytes of a node that cannot grow any more.
const NODE_BYTES: usize = 1024;
const HEAD_BYTES: usize = size_of::<Head>();

/// What stands in front of a node's items.
#[repr(C)]
#[derive(Debug)]
struct Head {
    len: u16,
    capacity: u16,
    /// Levels below this one; 0 for a leaf.
    level: u8,
    reserved: [u8; 3],
}

const _: () = assert!(HEAD_BYTES == 8);

/// A node whose items are `T`.
pub(super) struct Array<T> {
    head: NonNull<Head>,
    items: PhantomData<T>,
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<T> {}

/// Level of the node at an address.
pub(super) fn level_at(address: u64) -> u8 {
    // SAFETY: addresses that the tree keeps are those of live nodes (O4).
    unsafe { Array::<u8>::at(address).head.as_ref() }.level
}

impl<T> Array<T> {
    /// Items of a node that cannot grow any more.
    pub(super) const MAX: usize = (NODE_BYTES - HEAD_BYTES) / size_of::<T>();
    /// A node with fewer items tries to merge with its neighbour.
    pub(super) const FEW: usize = Self::MAX / 4;
    /// Two nodes merge if they have no more items than this together, so that one more does not
    /// split them at once.
    pub(super) const MERGED: usize = Self::MAX / 4 * 3;

    const FITS: () = assert!(Self::MAX >= 8 && align_of::<T>() <= 8);

    #[inline]
    pub(super) fn at(address: u64) -> Self {
        let head = std::ptr::with_exposed_provenance_mut(address as usize);
        Self {
            head: NonNull::new(head).expect("nodes have an address (O4)"),
            items: PhantomData,
        }
    }

    #[inline]
    pub(super) fn address(self) -> u64 {
        self.head.as_ptr().expose_provenance() as u64
    }

    /// An empty node with room for at least `wanted` items.
    pub(super) fn create(level: u8, wanted: usize) -> Self {
        let () = Self::FITS;
        let bytes = usable_size(HEAD_BYTES + wanted * size_of::<T>());
        let capacity = ((bytes - HEAD_BYTES) / size_of::<T>()).min(Self::MAX);
        let head = Arena.take(bytes_of::<T>(capacity)).cast::<Head>();
        // SAFETY: the object has room for a head.
        unsafe {
            head.write(Head {
                len: 0,
                capacity: capacity as u16,
                level,
                reserved: [0; 3],
            });
        }
        Self {
            head,
            items: PhantomData,
        }
    }

    /// Gives the node back. Its items have been moved out, or are forgotten.
    pub(super) fn free(self) {
        // SAFETY: it was taken by `create` with this size, and nobody uses it any more.
        unsafe { Arena.give(self.head.cast(), bytes_of::<T>(self.capacity())) }
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        // SAFETY: the node is live.
        usize::from(unsafe { self.head.as_ref() }.len)
    }

    #[inline]
    pub(super) fn capacity(self) -> usize {
        // SAFETY: the node is live.
        usize::from(unsafe { self.head.as_ref() }.capacity)
    }

    pub(super) fn level(self) -> u8 {
        // SAFETY: the node is live.
        unsafe { self.head.as_ref() }.level
    }

    /// Bytes that the node takes in the arena.
    pub(super) fn bytes(self) -> usize {
        usable_size(bytes_of::<T>(self.capacity()))
    }

    fn set_len(self, len: usize) {
        debug_assert!(len <= self.capacity());
        // SAFETY: the node is live, and the tree is borrowed exclusively.
        unsafe { (*self.head.as_ptr()).len = len as u16 }
    }

    #[inline]
    fn first(self) -> NonNull<T> {
        // SAFETY: the items follow the head in the same object.
        unsafe { self.head.add(1).cast() }
    }

    /// The items. The lifetime is that of the borrow of the tree which the caller has.
    #[inline]
    pub(super) fn items<'a>(self) -> &'a [T] {
        // SAFETY: the first `len` items are initialised, and the tree is borrowed.
        unsafe { std::slice::from_raw_parts(self.first().as_ptr(), self.len()) }
    }

    /// The items, to be changed.
    #[inline]
    pub(super) fn items_mut<'a>(self) -> &'a mut [T] {
        // SAFETY: as in `items`; the tree is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.first().as_ptr(), self.len()) }
    }

    /// Puts an item in front of the one at `at`. There is room.
    pub(super) fn insert(self, at: usize, item: T) {
        let len = self.len();
        assert!(at <= len && len < self.capacity(), "a node has room");
        // SAFETY: there is room for one more item behind the `len` there are.
        unsafe {
            let place = self.first().add(at);
            place.copy_to(place.add(1), len - at);
            place.write(item);
        }
        self.set_len(len + 1);
    }

    /// Takes an item out.
    pub(super) fn remove(self, at: usize) -> T {
        let len = self.len();
        assert!(at < len, "an item is in its node");
        self.set_len(len - 1);
        // SAFETY: the item is initialised; those behind it close the gap.
        unsafe {
            let place = self.first().add(at);
            let item = place.read();
            place.add(1).copy_to(place, len - at - 1);
            item
        }
    }

    /// Moves the items from `at` on to the end of another node, which has room.
    pub(super) fn move_to(self, at: usize, other: Self) {
        let (len, behind) = (self.len(), other.len());
        assert!(at <= len && behind + len - at <= other.capacity());
        // SAFETY: the items are initialised, there is room for them, and the nodes are two.
        unsafe {
            other
                .first()
                .add(behind)
                .copy_from_nonoverlapping(self.first().add(at), len - at);
        }
        other.set_len(behind + len - at);
        self.set_len(at);
    }

    /// The node with another capacity: its items move to a new object.
    pub(super) fn resized(self, wanted: usize) -> Self {
        let other = Self::create(self.level(), wanted);
        self.move_to(0, other);
        self.free();
        other
    }

    /// Puts an item in, in a larger node or in two if need be. Returns where the node is now and the
    /// one that came into being behind it. A node at the end that is appended to stays full.
    pub(super) fn insert_or_split(
        self,
        at: usize,
        item: T,
        is_at_end: bool,
    ) -> (Self, Option<Self>) {
        let len = self.len();
        if len < self.capacity() {
            self.insert(at, item);
            return (self, None);
        }
        if len < Self::MAX {
            let larger = self.resized((len * 2).min(Self::MAX));
            larger.insert(at, item);
            return (larger, None);
        }
        let right = Self::create(self.level(), Self::MAX);
        if is_at_end && at == len {
            right.insert(0, item);
            return (self, Some(right));
        }
        let middle = len / 2;
        self.move_to(middle, right);
        if at <= middle {
            self.insert(at, item);
        } else {
            right.insert(at - middle, item);
        }
        (self, Some(right))
    }
}

fn bytes_of<T>(capacity: usize) -> usize {
    HEAD_BYTES + capacity * size_of::<T>()
}
