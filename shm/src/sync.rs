//! The only file that names an atomic: the standard library's, or loom's under `--cfg loom`.
//!
//! Why: the ring and the doorbell must be model-checked as they are, not as a copy. A loom atomic
//! is a handle to loom's bookkeeping and must be constructed inside the model, so it can never lie
//! over mapped memory: the model uses `ring::heap` instead of a segment.
//!
//! [`Futex`] is the word that a process sleeps on. Its model version takes a lock around "compare,
//! then sleep", as the kernel does, so a lost wake-up is found by loom as a deadlock.

#![cfg_attr(
    not(loom),
    expect(unsafe_code, reason = "the futex system call has no safe wrapper")
)]

use std::time::Duration;

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Atomics for counters of this process that no model looks at, const-constructible in both worlds.
pub mod process_local {
    pub use std::sync::atomic::{AtomicU32, Ordering};
}

/// A 32-bit word in shared memory that one process sleeps on and others wake.
#[derive(Debug)]
#[repr(C)]
pub struct Futex {
    word: AtomicU32,
    #[cfg(loom)]
    lock: loom::sync::Mutex<()>,
    #[cfg(loom)]
    queue: loom::sync::Condvar,
}

impl Futex {
    /// The word itself.
    #[inline]
    #[must_use]
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// Stores a value, without any order.
    ///
    /// The model swaps instead: loom does not know that nothing can come between the two halves of
    /// somebody else's swap, so it would let a plain store be overwritten by a swap that had read
    /// the value before it.
    #[inline]
    pub fn set(&self, value: u32) {
        #[cfg(not(loom))]
        self.word.store(value, Ordering::Relaxed);
        #[cfg(loom)]
        self.word.swap(value, Ordering::Relaxed);
    }
}

#[cfg(not(loom))]
impl Futex {
    /// Sleeps while the word equals `expected`, until woken or until `timeout` (for ever if
    /// `None`). Returns false if the time ran out. May return early for no reason, as futexes do.
    pub fn wait(&self, expected: u32, timeout: Option<Duration>) -> bool {
        let limit = timeout.map(|time| libc::timespec {
            tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(time.subsec_nanos()),
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the word is a live, aligned u32 and `limit` is null or a live timespec; the
        // kernel reads both during the call only. Not private: the waker is another process.
        let outcome = unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAIT,
                expected,
                limit,
                std::ptr::null::<u32>(),
                0u32,
            )
        };
        outcome == 0 || nix::errno::Errno::last() != nix::errno::Errno::ETIMEDOUT
    }

    /// Wakes everybody who sleeps on the word. One system call.
    pub fn wake(&self) {
        // SAFETY: the word is a live, aligned u32; waking does not touch memory.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAKE,
                i32::MAX,
                std::ptr::null::<libc::timespec>(),
                std::ptr::null::<u32>(),
                0u32,
            );
        }
    }
}

#[cfg(loom)]
impl Futex {
    /// A word with nobody asleep, inside a model.
    #[must_use]
    pub fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            lock: loom::sync::Mutex::new(()),
            queue: loom::sync::Condvar::new(),
        }
    }

    /// As the real one, without time: a model has none.
    pub fn wait(&self, expected: u32, _timeout: Option<Duration>) -> bool {
        let guard = self.lock.lock().expect("no panics inside a model");
        if self.word.load(Ordering::SeqCst) == expected {
            drop(self.queue.wait(guard).expect("no panics inside a model"));
        }
        true
    }

    /// As the real one.
    pub fn wake(&self) {
        let _guard = self.lock.lock().expect("no panics inside a model");
        self.queue.notify_all();
    }
}

#[cfg(loom)]
impl Default for Futex {
    fn default() -> Self {
        Self::new()
    }
}
