//! Lua for scripts and functions: PUC Lua 5.1 behind walls, and the library `redis` that scripts see.
//!
//! Knows nothing of keyspaces. A script runs with a [`Host`], which executes commands and hands back
//! RESP bytes; what the script returns is written as RESP.
//!
//! ```text
//!   body ──> Vm::compile ──> Program ──> Vm::run(keys, arguments, host, reply)
//!                                          │ redis.call(...)        │
//!                                          └──> Host::call ──> RESP ──> Lua values
//! ```
//!
//! Files: `vm` owns the Lua state, `memory` its memory; `sandbox` builds what scripts see and what they cannot
//! change; `redis` is the library `redis`, `call` its way to commands; `to_lua` and `to_resp` convert; `library`
//! loads functions; `json`, `msgpack`, `structs`, `bit` and `random` are the libraries beside Lua's own.
//!
//! Invariants, cited in comments
//!   L1  A `*mut lua_State` is alive and belongs to the [`Vm`] that made it; it is used by one thread.
//!   L2  Errors of Lua leave a function without running destructors. So a function that may raise one
//!       holds nothing that has one: buffers live in `State`, and are only borrowed between raises.
//!   L3  A C function has 20 free places on the stack; who needs more asks with `lua_checkstack`.
//!   L4  Memory of a Lua string stays where it is while the string is on the stack.
//!
//! Cost: running a script of one command is about a microsecond; a nested command costs one copy of its
//! arguments and one of its reply.

#![expect(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    reason = "functions that Lua calls and the Lua API itself (L1 to L4)"
)]

mod bit;
mod call;
mod json;
mod library;
mod lua;
mod memory;
mod msgpack;
mod random;
mod redis;
mod sandbox;
pub mod shebang;
mod structs;
mod to_lua;
mod to_resp;
mod vm;

pub use library::{BAD_NAME, Function, LoadError, is_name};
pub use vm::{Arguments, Kind, Outcome, Program, Vm};

/// The version of Redis that scripts see.
pub const REDIS_VERSION: &str = "8.0.6";
/// The same as a number, one byte for each part.
pub const REDIS_VERSION_NUMBER: u32 = 8 << 16 | 6;

/// Bits of what a script promises, as its first line or its registration says.
pub mod flags {
    /// It does not write.
    pub const NO_WRITES: u8 = 1 << 0;
    /// It may run when memory is short.
    pub const ALLOW_OOM: u8 = 1 << 1;
    /// It may run on a replica that has lost its master.
    pub const ALLOW_STALE: u8 = 1 << 2;
    /// It must not run in a cluster.
    pub const NO_CLUSTER: u8 = 1 << 3;
    /// Its keys may be in different slots.
    pub const ALLOW_CROSS_SLOT_KEYS: u8 = 1 << 4;
    /// It says nothing about itself: an older script.
    pub const COMPATIBLE: u8 = 1 << 7;

    /// The names, by bit.
    pub const NAMES: [(u8, &str); 5] = [
        (NO_WRITES, "no-writes"),
        (ALLOW_OOM, "allow-oom"),
        (ALLOW_STALE, "allow-stale"),
        (NO_CLUSTER, "no-cluster"),
        (ALLOW_CROSS_SLOT_KEYS, "allow-cross-slot-keys"),
    ];

    /// The bit of a name.
    #[must_use]
    pub fn by_name(name: &[u8]) -> Option<u8> {
        let found = NAMES.iter().find(|(_, known)| known.as_bytes() == name);
        found.map(|(bit, _)| *bit)
    }
}

/// Whether a script goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// It does.
    GoOn,
    /// Somebody wants it to end.
    Kill,
    /// It loads a library and takes too long for that.
    TimedOut,
}

/// The arguments of a nested command, the name included.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// All of them, one behind the other.
    pub bytes: &'a [u8],
    /// Start and end of each.
    pub spans: &'a [(u32, u32)],
}

impl<'a> Words<'a> {
    /// Argument `at`, the name being 0; empty if there is none.
    #[inline]
    #[must_use]
    pub fn get(&self, at: usize) -> &'a [u8] {
        self.spans.get(at).map_or(&[], |&(start, end)| {
            self.bytes.get(start as usize..end as usize).unwrap_or(&[])
        })
    }
}

/// What a script runs in.
pub trait Host {
    /// Executes a command. Its reply, or an error, is appended to `reply` as RESP.
    fn call(&mut self, words: Words<'_>, resp3: bool, reply: &mut Vec<u8>);
    /// Whether the user of the script may call a command; `None` if there is no such command.
    fn may_call(&mut self, words: Words<'_>) -> Option<bool>;
    /// A line for the log: 0 is for debugging, 3 a warning.
    fn log(&mut self, level: u8, text: &[u8]);
    /// Asked now and then while a script runs.
    fn tick(&mut self) -> Tick;
}
