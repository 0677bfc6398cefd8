//! The pub/sub broker: it knows which gateway thread listens to which channel, and hands out messages.
//!
//! ```text
//!   gateway thread 0 ──Subscribe, Publish──> +--------+ ──Answer──────────> gateway thread 0
//!   gateway thread 1 ──Publish─────────────> | broker | ──Message, once───> every thread that listens
//!                                            +--------+
//! ```
//!
//! A thread is told a message once, however many of its connections listen; it knows them, the broker only
//! how many they are. So what a message costs here does not depend on the number of subscribers.
//!
//! Nothing of it outlives the process: a successor is told by the gateways who listens (`Restored` ends
//! that), and publishes nothing before every thread has told it. What was in flight may be lost, and is
//! never published twice: a frame that was begun carries a mark, and its sender does not send it again.
//!
//! Reading order: `core` (decides: frames in, frames out), `names`, `patterns`, then `shell` (rings, doorbell,
//! sleep) and `control`.
#![forbid(unsafe_code)]

mod control;
mod core;
mod holders;
mod link;
mod names;
mod patterns;
mod shell;

/// Works until the supervisor ends it.
///
/// # Errors
/// A descriptor or segment is missing or of another build, or the system has no thread.
pub fn run(child: runtime::Child) -> Result<(), String> {
    shell::Shell::new(child)?.run();
    Ok(())
}
