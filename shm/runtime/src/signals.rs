//! Which signals a child leaves to the supervisor.
//!
//! Why blocked and not ignored: blocking needs no unsafe code, threads started later inherit it,
//! and it can be taken back when there is no supervisor any more.
//!
//! SIGTERM, SIGINT, SIGHUP and SIGQUIT reach every process of a terminal or a service; only the
//! supervisor acts on them and tells the others what to do. SIGKILL needs no care: dying at any
//! instruction is part of every protocol here.

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};

fn set() -> SigSet {
    let mut set = SigSet::empty();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        set.add(signal);
    }
    set
}

/// Blocks them in this thread and in all threads it starts later.
///
/// # Errors
/// None that are known for valid signals.
pub fn block_in_this_thread() -> Result<(), Errno> {
    set().thread_block()
}

/// Lets them through again in this thread, which is enough for the process to receive them.
///
/// # Errors
/// None that are known for valid signals.
pub fn unblock_in_this_thread() -> Result<(), Errno> {
    set().thread_unblock()
}
