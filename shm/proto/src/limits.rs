//! Every bound of the protocol and of the shapes shared between processes, each with its reason.
//!
//! Not here: bounds that an operator can set (`settings`).

/// Databases per system at most. A frame carries the number in 16 bits; Redis allows more, nobody
/// uses them.
pub const DATABASES_MAX: u16 = 16_384;

/// An inline command, or the line that announces a multibulk or bulk, may take this many bytes
/// before its line feed arrives. Redis' value; it bounds what a client can make us keep by sending
/// garbage.
pub const INLINE_BYTES_MAX: usize = 64 * 1024;

/// Arguments in one command at most: Redis' bound (the largest C `int`).
pub const ARGUMENTS_MAX: i64 = i32::MAX as i64;

/// Arguments in one command of a connection that still has to authenticate: enough for
/// `HELLO 3 AUTH user password SETNAME name` and too little to make us collect garbage.
pub const UNAUTHENTICATED_ARGUMENTS_MAX: i64 = 10;

/// Bytes in one argument of a connection that still has to authenticate.
pub const UNAUTHENTICATED_BULK_BYTES_MAX: i64 = 16_384;

/// `proto-max-bulk-len` as Redis ships it: no argument and no string value is longer.
pub const BULK_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Spans reserved for the arguments of one command before they have been seen. A client that
/// announces two billion arguments and sends none must not make us allocate for them.
pub const ARGUMENTS_RESERVED_MAX: usize = 1024;

/// Nested `*` in a glob pattern beyond which nothing matches: Redis' recursion bound.
pub const GLOB_STARS_MAX: u32 = 1000;

/// Bytes of an unknown command's name, and of the list of its arguments, that its error repeats.
pub const UNKNOWN_COMMAND_BYTES_MAX: usize = 128;

/// Longest text of a number that is parsed as a float (`getLongDoubleFromObject` has the same
/// bound: 5 KiB hold the longest value that an 80-bit float prints).
pub const FLOAT_TEXT_BYTES_MAX: usize = 5 * 1024;

/// Storage workers at most: one byte of news per link position, 256 positions per party.
pub const WORKERS_MAX: usize = 256;
