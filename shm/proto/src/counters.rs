//! Places in a statistics page. One page per process part, one writer per page.
//!
//! Why numbers and not fields: a page is shared memory of 64-bit words that any process may read;
//! its layout is this list. INFO, `sirocco status` and the metrics port add pages up.
//!
//! ```text
//!   storage worker   fixed | errors | per storage row: calls, µs, ... | per storage row: latencies | per database
//!   gateway thread   fixed | per gateway row: calls, µs, ... | per storage row: rejected | per gateway row: latencies
//! ```
//!
//! Invariants
//!   - A place never moves while processes of one build run; builds are told apart by the
//!     catalogue's fingerprint, which covers the lists below through their lengths.
//!
//! Not here: the memory of a page (`shm::Party`), what INFO prints (gateway).

use crate::catalogue::{GatewayCommand, StorageCommand};
use crate::{CommandError, latency};

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $( $(#[$row:meta])* $counter:ident, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $name { $( $(#[$row])* $counter, )* }

        impl $name {
            /// All of them, in the order of their places.
            pub const ALL: &'static [Self] = &[ $( Self::$counter, )* ];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// Its place in the page.
            #[inline]
            #[must_use]
            pub const fn place(self) -> usize {
                self as usize
            }
        }
    };
}

counters! {
    /// Fixed counters of a storage worker.
    WorkerCounter {
        /// Commands executed.
        Commands,
        /// Keys found by commands that read.
        KeyspaceHits,
        /// Keys not found by commands that read.
        KeyspaceMisses,
        /// Keys removed because their time had passed.
        Expired,
        /// Fields of hashes removed because their time had passed.
        ExpiredFields,
        /// Keys removed to stay within `maxmemory`.
        Evicted,
        /// Bytes of the arena that hold data. A level, not a sum.
        UsedBytes,
        /// Highest `UsedBytes` so far.
        UsedBytesPeak,
        /// Bytes of the arena that are backed by memory. A level.
        ArenaResidentBytes,
        /// Values freed in slices.
        LazyFreed,
        /// Values waiting to be freed. A level.
        LazyFreePending,
        /// Changes of keys since start.
        Dirty,
        /// Batches taken from request rings.
        Batches,
        /// Times the worker went to sleep.
        Sleeps,
        /// Times it had to ring somebody's doorbell.
        Rings,
        /// Microseconds spent in commands.
        CommandMicros,
        /// Replies held back because a reply ring was full.
        ReplyRingFull,
        /// Rounds of active expiry.
        ExpireCycles,
        /// Evictions that found nothing to evict although memory was short.
        EvictionFailures,
        /// Times a successor took over this worker's memory.
        Takeovers,
        /// Times it started with an empty keyspace because the old one could not be trusted.
        Losses,
        /// `SCAN`-like and background steps over small tables.
        TableSteps,
        /// Milliseconds since 1970 at which the event loop was last seen running. A level.
        LastSeenMillis,
        /// Commands that wait for keys. A level.
        Waiters,
        /// Visits to keyspaces of other workers.
        Visits,
        /// Scripts that have held all workers because nobody knew what they would touch.
        ScriptsOverAll,
        /// Keys that clients of other workers wait for. A level.
        Interests,
        /// Commands that wait for keys until a certain time. A level.
        WaitersTimed,
        /// Keys that somebody waits for. A level.
        WaitedKeys,
        /// Keys whose end somebody waits for. A level.
        WaitedKeysWithoutKey,
        /// Keys that clients watch.
        WatchedKeys,
    }
}

counters! {
    /// Levels of one database in a storage worker.
    DatabaseCounter {
        /// Keys.
        Keys,
        /// Keys that have an expiry.
        Expires,
        /// Estimated average time to live in milliseconds.
        AverageTtlMillis,
        /// Hashes that have, or had, fields which expire.
        KeysWithExpiringFields,
    }
}

counters! {
    /// Errors that a storage worker answers with, by their first words.
    ErrorCounter {
        /// The one that says nothing more, and any that is not below.
        Err,
        /// WRONGTYPE.
        WrongType,
        /// OOM.
        OutOfMemory,
        /// BUSYGROUP.
        BusyGroup,
        /// NOGROUP.
        NoGroup,
        /// BUSYKEY.
        BusyKey,
        /// INVALIDOBJ.
        InvalidObject,
        /// UNBLOCKED.
        Unblocked,
        /// EXECABORT.
        ExecAborted,
        /// NOSCRIPT.
        NoScript,
        /// NOREPLICAS.
        NoReplicas,
    }
}

impl ErrorCounter {
    /// The first word.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Err => "ERR",
            Self::WrongType => "WRONGTYPE",
            Self::OutOfMemory => "OOM",
            Self::BusyGroup => "BUSYGROUP",
            Self::NoGroup => "NOGROUP",
            Self::BusyKey => "BUSYKEY",
            Self::InvalidObject => "INVALIDOBJ",
            Self::Unblocked => "UNBLOCKED",
            Self::ExecAborted => "EXECABORT",
            Self::NoScript => "NOSCRIPT",
            Self::NoReplicas => "NOREPLICAS",
        }
    }

    /// Where an error is counted.
    #[cold]
    #[must_use]
    pub fn of(error: &CommandError) -> Self {
        let made;
        let line = match error.fixed_text() {
            Some(text) => text.as_bytes(),
            None => {
                made = error.to_line();
                &made
            }
        };
        let code = line.split(|&byte| byte == b' ').next();
        let mut counters = Self::ALL.iter().copied();
        let found = counters.find(|counter| Some(counter.code().as_bytes()) == code);
        found.unwrap_or(Self::Err)
    }
}

counters! {
    /// Per command: what the process that executes it counts.
    CallCounter {
        /// Executions.
        Calls,
        /// Microseconds in them.
        Micros,
        /// Executions that answered with an error.
        Failed,
    }
}

counters! {
    /// Fixed counters of a gateway thread.
    GatewayCounter {
        /// Connections accepted.
        ConnectionsReceived,
        /// Connections open. A level.
        Connections,
        /// Connections refused (`maxclients`, protected mode).
        ConnectionsRejected,
        /// Bytes read from sockets.
        NetInputBytes,
        /// Bytes written to sockets.
        NetOutputBytes,
        /// Commands taken from sockets and run, wherever.
        Commands,
        /// Bytes of query buffers. A level.
        InputBufferBytes,
        /// Bytes of output buffers. A level.
        OutputBufferBytes,
        /// Streams of bytes that were not RESP.
        ProtocolErrors,
        /// Replies that were errors.
        ErrorReplies,
        /// Largest query buffer of any client now. A level.
        InputBufferBytesMax,
        /// Longest list of pending output of any client now. A level.
        OutputBufferBytesMax,
        /// Connections closed because their output buffer grew too large.
        OutputLimitDisconnections,
        /// Connections closed because their query buffer grew too large.
        QueryLimitDisconnections,
        /// Commands for names or arguments that were refused before anything ran.
        Rejected,
        /// Reads that got something.
        ReadsProcessed,
        /// Writes that wrote something.
        WritesProcessed,
        /// Failed AUTH and HELLO.
        AuthFailures,
        /// Connections waiting for a blocking command. A level.
        BlockedClients,
        /// Clients that watch keys now.
        WatchingClients,
        /// Times the thread had to ring somebody's doorbell.
        Rings,
        /// Times the thread went to sleep.
        Sleeps,
        /// Requests held back because a request ring was full.
        RequestRingFull,
        /// Milliseconds since 1970 at which the event loop was last seen running. A level.
        LastSeenMillis,
        /// Highest number of connections so far.
        ConnectionsPeak,
        /// Connections closed for being idle longer than `timeout`.
        IdleDisconnections,
        /// Connections that have subscribed to something. A level.
        SubscribedClients,
        /// Messages of channels put into outputs.
        MessagesDelivered,
        /// Messages whose fate is unknown, as the broker died with them.
        MessagesUncertain,
    }
}

counters! {
    /// Counters of the pub/sub broker.
    BrokerCounter {
        /// Messages published.
        Published,
        /// Messages handed to gateway threads.
        Delivered,
        /// Channels that somebody has subscribed to. A level.
        Channels,
        /// Patterns that somebody has subscribed to. A level.
        Patterns,
        /// Shard channels that somebody has subscribed to. A level.
        ShardChannels,
        /// Times a successor was told all subscriptions.
        Takeovers,
        /// Times the broker went to sleep.
        Sleeps,
        /// Milliseconds since 1970 at which the event loop was last seen running. A level.
        LastSeenMillis,
    }
}

counters! {
    /// Per command: what a process counts that does not let it run.
    RejectCounter {
        /// Refused by a gateway before it was sent (arity, permission, memory), or inside of a script.
        Rejected,
    }
}

/// Layout of a storage worker's page.
pub mod worker_page {
    use super::{
        CallCounter, DatabaseCounter, ErrorCounter, GatewayCommand, RejectCounter, StorageCommand,
        WorkerCounter, latency,
    };

    /// Kinds of errors that scripts make up and that are counted under their own first word.
    pub const OWN_WORDS: usize = 32;
    /// Such a word is shorter than that.
    pub const WORD_BYTES: usize = 32;
    /// Places of a word's text, eight bytes in each.
    const WORD_PLACES: usize = WORD_BYTES / 8;

    const WORDS: usize = WorkerCounter::COUNT + ErrorCounter::COUNT;
    const CALLS: usize = WORDS + OWN_WORDS * (WORD_PLACES + 1);
    const PER_COMMAND: usize = CallCounter::COUNT + RejectCounter::COUNT;
    const INNER: usize = CALLS + StorageCommand::COUNT * PER_COMMAND;
    const LATENCIES: usize = INNER + GatewayCommand::COUNT * CallCounter::COUNT;
    const DATABASES: usize = LATENCIES + StorageCommand::COUNT * latency::BUCKETS;

    /// Place of the count of one kind of errors.
    #[inline]
    #[must_use]
    pub const fn error(error: ErrorCounter) -> usize {
        WorkerCounter::COUNT + error as usize
    }

    /// Place of the count of errors under the word with this number.
    #[must_use]
    pub const fn word_count(number: usize) -> usize {
        WORDS + number * (WORD_PLACES + 1)
    }

    /// Places of the text of that word, which is filled up with zeros. It is written before the first count.
    pub fn word_text(number: usize) -> impl Iterator<Item = usize> {
        (1..=WORD_PLACES).map(move |part| word_count(number) + part)
    }

    /// Place of a command's counter.
    #[inline]
    #[must_use]
    pub const fn call(command: StorageCommand, counter: CallCounter) -> usize {
        CALLS + command as usize * PER_COMMAND + counter as usize
    }

    /// Place of a counter of a gateway's command that scripts call.
    #[must_use]
    pub const fn inner(command: GatewayCommand, counter: CallCounter) -> usize {
        INNER + command as usize * CallCounter::COUNT + counter as usize
    }

    /// Place of the count of calls of a command that scripts were refused.
    #[must_use]
    pub const fn call_rejected(command: StorageCommand) -> usize {
        call(command, CallCounter::Calls) + CallCounter::COUNT
    }

    /// Place of a bucket of a command's latencies.
    #[inline]
    #[must_use]
    pub const fn latency(command: StorageCommand, bucket: usize) -> usize {
        LATENCIES + command as usize * latency::BUCKETS + bucket
    }

    /// Place of a database's counter.
    #[inline]
    #[must_use]
    pub const fn database(database: u16, counter: DatabaseCounter) -> usize {
        DATABASES + database as usize * DatabaseCounter::COUNT + counter as usize
    }

    /// Counters in a page for so many databases.
    #[must_use]
    pub const fn len(databases: u16) -> usize {
        database(databases, DatabaseCounter::Keys)
    }
}

/// Layout of a gateway thread's page.
pub mod gateway_page {
    use super::{
        CallCounter, GatewayCommand, GatewayCounter, RejectCounter, StorageCommand, latency,
    };

    const REJECTS: usize =
        GatewayCounter::COUNT + GatewayCommand::COUNT * (CallCounter::COUNT + RejectCounter::COUNT);
    const LATENCIES: usize = REJECTS + StorageCommand::COUNT * RejectCounter::COUNT;

    /// Place of a gateway command's counter.
    #[inline]
    #[must_use]
    pub const fn call(command: GatewayCommand, counter: CallCounter) -> usize {
        GatewayCounter::COUNT
            + command as usize * (CallCounter::COUNT + RejectCounter::COUNT)
            + counter as usize
    }

    /// Place of the count of refused calls of a gateway command.
    #[inline]
    #[must_use]
    pub const fn call_rejected(command: GatewayCommand) -> usize {
        call(command, CallCounter::Calls) + CallCounter::COUNT
    }

    /// Place of the count of refused calls of a storage command.
    #[inline]
    #[must_use]
    pub const fn storage_rejected(command: StorageCommand) -> usize {
        REJECTS + command as usize * RejectCounter::COUNT
    }

    /// Place of a bucket of a gateway command's latencies.
    #[inline]
    #[must_use]
    pub const fn latency(command: GatewayCommand, bucket: usize) -> usize {
        LATENCIES + command as usize * latency::BUCKETS + bucket
    }

    /// Counters in a page.
    pub const LEN: usize = LATENCIES + GatewayCommand::COUNT * latency::BUCKETS;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn errors_are_counted_by_their_first_word() {
        let line = |text: &str| CommandError::Line(text.as_bytes().into());
        for (error, code) in [
            (CommandError::WrongType, "WRONGTYPE"),
            (CommandError::Syntax, "ERR"),
            (line("NOGROUP No such key 'x'"), "NOGROUP"),
            (line("NEVERHEARD of it"), "ERR"),
            (CommandError::Unblocked, "UNBLOCKED"),
        ] {
            assert_eq!(ErrorCounter::of(&error).code(), code);
        }
    }

    #[test]
    fn every_place_of_a_page_is_used_once() {
        let mut places = HashSet::new();
        for counter in WorkerCounter::ALL {
            assert!(places.insert(counter.place()));
        }
        for error in ErrorCounter::ALL {
            assert!(places.insert(worker_page::error(*error)));
        }
        for command in GatewayCommand::ALL {
            for counter in CallCounter::ALL {
                assert!(places.insert(worker_page::inner(command, *counter)));
            }
        }
        for word in 0..worker_page::OWN_WORDS {
            assert!(places.insert(worker_page::word_count(word)));
            assert!(worker_page::word_text(word).all(|place| places.insert(place)));
        }
        for command in StorageCommand::ALL {
            for counter in CallCounter::ALL {
                assert!(places.insert(worker_page::call(command, *counter)));
            }
            assert!(places.insert(worker_page::call_rejected(command)));
            for bucket in 0..latency::BUCKETS {
                assert!(places.insert(worker_page::latency(command, bucket)));
            }
        }
        for database in 0..16 {
            for counter in DatabaseCounter::ALL {
                assert!(places.insert(worker_page::database(database, *counter)));
            }
        }
        assert_eq!(places.len(), worker_page::len(16));
        assert_eq!(places.iter().max(), Some(&(worker_page::len(16) - 1)));

        let mut places = HashSet::new();
        for counter in GatewayCounter::ALL {
            assert!(places.insert(counter.place()));
        }
        for command in GatewayCommand::ALL {
            for counter in CallCounter::ALL {
                assert!(places.insert(gateway_page::call(command, *counter)));
            }
            assert!(places.insert(gateway_page::call_rejected(command)));
            for bucket in 0..latency::BUCKETS {
                assert!(places.insert(gateway_page::latency(command, bucket)));
            }
        }
        for command in StorageCommand::ALL {
            assert!(places.insert(gateway_page::storage_rejected(command)));
        }
        assert_eq!(places.len(), gateway_page::LEN);
        assert_eq!(places.iter().max(), Some(&(gateway_page::LEN - 1)));
    }
}
