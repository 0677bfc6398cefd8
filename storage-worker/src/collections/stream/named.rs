//! An object in the arena with its name behind it, in one allocation.
//!
//! ```text
//!   | value | length of the name u32 | name ... |
//! ```
//!
//! A [`NamedAt`] is its address, copied freely; whoever holds one knows that the object is live. It is a
//! record of an ordered tree, in the order of the names.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};

use crate::collections::ordered::{Record, Tree};

#[repr(C)]
struct Named<T> {
    value: T,
    name_len: u32,
}

/// See the module.
#[repr(C)]
pub struct NamedAt<T> {
    address: u64,
    object: PhantomData<T>,
}

impl<T> Clone for NamedAt<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for NamedAt<T> {}

impl<T> fmt::Debug for NamedAt<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamedAt")
            .field(&String::from_utf8_lossy(self.name()))
            .finish()
    }
}

impl<T> PartialEq for NamedAt<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<T> Eq for NamedAt<T> {}

impl<T> Ord for NamedAt<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl<T> PartialOrd for NamedAt<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Record for NamedAt<T> {
    type Key = Self;

    fn key(&self) -> Self {
        *self
    }
}

impl<T> NamedAt<T> {
    /// Where the name begins in the object.
    const NAME: usize = std::mem::offset_of!(Named<T>, name_len) + 4;

    /// Puts a value and its name into the arena. Names are as long as arguments, far below 4 GiB.
    pub(super) fn create(value: T, name: &[u8]) -> Self {
        let bytes = Self::bytes_for(name.len());
        let object = Arena.take(bytes).cast::<Named<T>>();
        // SAFETY: the object has room for both.
        unsafe {
            object.write(Named {
                value,
                name_len: name.len() as u32,
            });
            let to = object.cast::<u8>().add(Self::NAME);
            to.copy_from_nonoverlapping(NonNull::from(name).cast(), name.len());
        }
        Self::from_address(object.as_ptr().expose_provenance() as u64)
    }

    /// Gives the object back and returns its value.
    pub(super) fn free(self) -> T {
        let bytes = Self::bytes_for(self.name().len());
        // SAFETY: it was taken by `create` with this size; nobody uses it any more.
        unsafe {
            let value = (&raw const (*self.object().as_ptr()).value).read();
            Arena.give(self.object().cast(), bytes);
            value
        }
    }

    fn bytes_for(name_len: usize) -> usize {
        (Self::NAME + name_len).max(size_of::<Named<T>>())
    }

    /// Bytes that the object takes in the arena.
    pub(super) fn bytes(self) -> usize {
        usable_size(Self::bytes_for(self.name().len()))
    }

    pub(super) fn address(self) -> u64 {
        self.address
    }

    pub(super) fn from_address(address: u64) -> Self {
        Self {
            address,
            object: PhantomData,
        }
    }

    fn object(self) -> NonNull<Named<T>> {
        let object = std::ptr::with_exposed_provenance_mut(self.address as usize);
        NonNull::new(object).expect("a named object has an address")
    }

    /// The name. The lifetime is that of the borrow of the stream which the caller has.
    #[inline]
    pub(super) fn name<'a>(self) -> &'a [u8] {
        let object = self.object();
        // SAFETY: the object is live and has its name behind it.
        unsafe {
            let len = (*object.as_ptr()).name_len as usize;
            let name = object.cast::<u8>().add(Self::NAME);
            std::slice::from_raw_parts(name.as_ptr(), len)
        }
    }

    /// The value; the lifetime is as for the name.
    #[inline]
    pub(super) fn value<'a>(self) -> &'a T {
        // SAFETY: the object is live, and the stream is borrowed.
        unsafe { &(*self.object().as_ptr()).value }
    }

    /// The value, to be changed; the stream is borrowed exclusively, and no other borrow of this value
    /// is in use.
    #[inline]
    pub(super) fn value_mut<'a>(self) -> &'a mut T {
        // SAFETY: the object is live, and the caller has the stream for itself.
        unsafe { &mut (*self.object().as_ptr()).value }
    }

    /// Whether the object lies in the arena.
    pub(super) fn check(self) -> Result<(), String> {
        let is_inside = Arena.contains(self.address, size_of::<Named<T>>())
            && Arena.contains(self.address, self.bytes());
        if is_inside {
            Ok(())
        } else {
            Err("a name lies outside the arena".to_owned())
        }
    }
}

/// The object with a name.
pub(super) fn find<T>(tree: &Tree<NamedAt<T>>, name: &[u8]) -> Option<NamedAt<T>> {
    let found = tree.first_from(|other| other.name() < name).copied();
    found.filter(|found| found.name() == name)
}
