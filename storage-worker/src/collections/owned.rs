//! A structure in the arena that belongs to nobody's key yet.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use super::Structure;

/// The only handle of a structure; freed with it unless [`Owned::release`]d to a key.
///
/// Invariant N1: the structure is live, and nobody else knows it.
pub struct Owned<T: Structure>(NonNull<T>);

impl<T: Structure> Owned<T> {
    /// Takes a fresh structure over (N1).
    pub(super) fn new(structure: NonNull<T>) -> Self {
        Owned(structure)
    }

    /// Gives the structure to whoever keeps the address.
    #[must_use = "the structure is lost otherwise"]
    pub fn release(self) -> NonNull<T> {
        ManuallyDrop::new(self).0
    }
}

impl<T: Structure> Deref for Owned<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: N1.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Structure> DerefMut for Owned<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: N1.
        unsafe { self.0.as_mut() }
    }
}

impl<T: Structure> Drop for Owned<T> {
    fn drop(&mut self) {
        T::free(self.0);
    }
}

impl<T: Structure + fmt::Debug> fmt::Debug for Owned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
