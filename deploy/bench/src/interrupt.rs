//! Ctrl-C and SIGTERM while servers of ours are running, some of them stopped by SIGSTOP: they must
//! not be left behind.
//!
//! Both signals are blocked in every thread and received by one thread with `sigwait`, which ends
//! the registered processes and then this one. Nothing runs in a signal handler. Child processes
//! start with an empty signal mask (the standard library sees to that).

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use crate::process_tree;

/// Roots of the process trees to end on an interrupt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    roots: Arc<Mutex<Vec<i32>>>,
}

impl Interrupt {
    /// Starts to receive the signals. Must be called before other threads exist, which inherit the
    /// blocked mask.
    pub(crate) fn install() -> Self {
        let interrupt = Self::default();
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGTERM);
        if signals.thread_block().is_ok() {
            let roots = Arc::clone(&interrupt.roots);
            thread::spawn(move || {
                let Ok(signal) = signals.wait() else { return };
                let roots = roots.lock().unwrap_or_else(PoisonError::into_inner);
                roots.iter().for_each(|&root| kill_tree(root));
                std::process::exit(128 + signal as i32);
            });
        }
        interrupt
    }

    /// Ends `root` and its descendants if a signal comes from now on.
    pub(crate) fn add(&self, root: i32) {
        self.roots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(root);
    }

    /// Forgets `root`, which has ended.
    pub(crate) fn remove(&self, root: i32) {
        self.roots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|&other| other != root);
    }
}

/// Kills a whole tree at once; works on stopped processes too.
pub(crate) fn kill_tree(root: i32) {
    for pid in process_tree::members(root) {
        // A process that is gone already is what we want.
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}
