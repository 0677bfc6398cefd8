//! Every bound of a gateway thread, each with its reason.
//!
//! Not here: bounds that an operator sets (`maxclients`, `client-query-buffer-limit`, ... are
//! settings) and bounds of the protocol (`proto::limits`).

/// Commands of one connection that may be unanswered. More would only queue up in the rings; with
/// fewer a deep pipeline would stop and go.
pub(crate) const MAX_IN_FLIGHT: u32 = 1024;

/// Commands in flight that are always allowed, however large a connection's replies were.
pub(crate) const MIN_IN_FLIGHT: u32 = 4;

/// Reply bytes that the commands in flight of one connection should not exceed together, judged by
/// the size of its latest replies. What it misjudges is called back (`RECALL_BYTES`).
pub(crate) const EXPECTED_REPLY_BYTES: u32 = 4 << 20;

/// With more unsent reply bytes than this a connection is not read: a client that does not take its
/// replies cannot send more commands.
pub(crate) const OUTPUT_PAUSE_BYTES: usize = 512 << 10;

/// Replies of this size never come to `EXPECTED_REPLY_BYTES`, however many are in flight.
pub(crate) const LARGE_REPLY_BYTES: usize = (EXPECTED_REPLY_BYTES / MAX_IN_FLIGHT) as usize;

/// With more reply bytes than this held for a connection, its commands that no worker has begun are
/// called back (`recall`). It is more than `EXPECTED_REPLY_BYTES` and `OUTPUT_PAUSE_BYTES` together, so
/// that it does not happen to a client whose replies are as large as its latest ones were.
pub(crate) const RECALL_BYTES: usize = 5 << 20;

/// Commands that were called back and are under way again at the same time.
pub(crate) const RECALLED_IN_FLIGHT: usize = 8;

/// Bytes read from one socket at a time, into a buffer that all connections of a thread share.
pub(crate) const READ_BUFFER_BYTES: usize = 64 << 10;

/// While a connection waits for an answer its socket is still read up to this many bytes, so that a
/// client that goes away is noticed.
pub(crate) const READ_AHEAD_BYTES: usize = 32 << 10;

/// Requests after which rings are published and doorbells rung although more sockets are ready, so
/// that workers start while the gateway still reads.
pub(crate) const FLUSH_EVERY: u32 = 64;

/// With several workers each gets a share of them: up to so many workers the shares do not shrink.
pub(crate) const FLUSH_LANES: u32 = 4;

/// Sockets read in one turn before replies are looked at: bounds the time in which nothing is sent.
pub(crate) const READS_PER_TURN: usize = 256;

/// A turn with at most so many ready sockets is followed by sleep if nothing is left to do.
pub(crate) const SHORT_TURN: usize = 2;

/// Connections accepted per listener and turn: a storm must not keep others from being served.
pub(crate) const ACCEPTS_PER_TURN: usize = 64;

/// Buffers kept for reuse per thread.
pub(crate) const POOLED_BUFFERS: usize = 512;

/// Larger buffers go back to the allocator instead of the pool.
pub(crate) const POOLED_BUFFER_BYTES: usize = 64 << 10;

/// A reply of at least this size that comes early keeps bytes of its own instead of joining the stash.
pub(crate) const STASH_INLINE_BYTES: usize = 16 << 10;

/// Consumed bytes at the front of a buffer that are worth moving the rest for.
pub(crate) const COMPACT_BYTES: usize = 64 << 10;

/// Milliseconds between two rounds of timers: idle clients, pauses, sleeping commands.
pub(crate) const TICK_MILLIS: u64 = 100;

/// Time for writing messages to those who listen, per turn: meanwhile nobody else is served.
pub(crate) const MESSAGES_PER_TURN: std::time::Duration = std::time::Duration::from_micros(200);

/// Bytes written to one socket per turn, so that one reader of huge values does not hold the others up.
pub(crate) const WRITE_BYTES_PER_TURN: usize = 256 << 10;
