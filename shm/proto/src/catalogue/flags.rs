//! What a command is allowed to do and when: flags, ACL categories, access to keys.
//!
//! Plain numbers that rows join with `|`. The names and the order in which `COMMAND INFO` lists them
//! are Redis'; flags that only we have are not listed there.

/// Bits of [`Flags`].
pub mod flag {
    /// May change keys.
    pub const WRITE: u32 = 1 << 0;
    /// Only reads keys.
    pub const READONLY: u32 = 1 << 1;
    /// Refused when memory is above `maxmemory`: it may need more.
    pub const DENYOOM: u32 = 1 << 2;
    /// For administrators.
    pub const ADMIN: u32 = 1 << 3;
    /// Works on channels.
    pub const PUBSUB: u32 = 1 << 4;
    /// Not callable from a script.
    pub const NOSCRIPT: u32 = 1 << 5;
    /// May wait; must not inside MULTI and scripts.
    pub const BLOCKING: u32 = 1 << 6;
    /// Served while data is being loaded.
    pub const LOADING: u32 = 1 << 7;
    /// Served by a replica that has lost its master.
    pub const STALE: u32 = 1 << 8;
    /// Not shown by MONITOR.
    pub const SKIP_MONITOR: u32 = 1 << 9;
    /// Not recorded by SLOWLOG.
    pub const SKIP_SLOWLOG: u32 = 1 << 10;
    /// Belongs to slot migration.
    pub const ASKING: u32 = 1 << 11;
    /// Constant or logarithmic time.
    pub const FAST: u32 = 1 << 12;
    /// Served before authentication.
    pub const NO_AUTH: u32 = 1 << 13;
    /// May be called without keys although it has a key specification.
    pub const NO_MANDATORY_KEYS: u32 = 1 << 14;
    /// Not served while loading in the background.
    pub const NO_ASYNC_LOADING: u32 = 1 << 15;
    /// Not allowed inside MULTI.
    pub const NO_MULTI: u32 = 1 << 16;
    /// Key positions depend on the arguments.
    pub const MOVABLEKEYS: u32 = 1 << 17;
    /// Served while a script runs too long.
    pub const ALLOW_BUSY: u32 = 1 << 18;
    /// Changes nothing that a client sees, but replicas would be told of it. COMMAND does not list it.
    pub const MAY_REPLICATE: u32 = 1 << 19;

    /// Ours: allowed to a client with RESP2 that has subscribed to something.
    pub const SUBSCRIBED: u32 = 1 << 23;

    /// Ours: sent by processes, not callable by name.
    pub const INTERNAL: u32 = 1 << 24;
    /// Ours: which of its keys are written depends on the arguments (`SET ... GET`, `BITFIELD`).
    pub const VARIABLE_ACCESS: u32 = 1 << 25;
    /// Ours: the container of subcommands, not runnable itself.
    pub const CONTAINER: u32 = 1 << 26;
    /// Ours: the log records something else than the command as received.
    pub const REWRITES: u32 = 1 << 27;
    /// Ours: inside MULTI it is neither queued nor allowed, as in Valkey.
    pub const REFUSED_IN_MULTI: u32 = 1 << 28;
    /// Ours: inside MULTI it runs at once (`EXEC`, `RESET`).
    pub const AT_ONCE_IN_MULTI: u32 = 1 << 29;
    /// Ours: run by the loop of the storage worker itself, which knows clients and brackets (`_unit`).
    pub const BY_LOOP: u32 = 1 << 30;
    /// Ours: runs a script, which does what the commands in it do.
    pub const SCRIPT: u32 = 1 << 31;

    /// Names of the flags that clients see, in the order in which they are listed.
    pub const NAMES: &[(u32, &str)] = &[
        (WRITE, "write"),
        (READONLY, "readonly"),
        (DENYOOM, "denyoom"),
        (ADMIN, "admin"),
        (PUBSUB, "pubsub"),
        (NOSCRIPT, "noscript"),
        (BLOCKING, "blocking"),
        (LOADING, "loading"),
        (STALE, "stale"),
        (SKIP_MONITOR, "skip_monitor"),
        (SKIP_SLOWLOG, "skip_slowlog"),
        (ASKING, "asking"),
        (FAST, "fast"),
        (NO_AUTH, "no_auth"),
        (NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (NO_ASYNC_LOADING, "no_async_loading"),
        (NO_MULTI, "no_multi"),
        (MOVABLEKEYS, "movablekeys"),
        (ALLOW_BUSY, "allow_busy"),
    ];
}

/// A set of flags of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Flags(pub u32);

impl Flags {
    /// Whether one of `bits` is set.
    #[inline]
    #[must_use]
    pub const fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }

    /// Names that clients see.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        flag::NAMES
            .iter()
            .filter(move |&&(bit, _)| self.has(bit))
            .map(|&(_, name)| name)
    }
}

/// Bits of [`Categories`], the groups that ACL rules name (`+@read`).
pub mod category {
    /// Keys of any type, databases.
    pub const KEYSPACE: u32 = 1 << 0;
    /// Reads keys.
    pub const READ: u32 = 1 << 1;
    /// Writes keys.
    pub const WRITE: u32 = 1 << 2;
    /// Sets.
    pub const SET: u32 = 1 << 3;
    /// Sorted sets.
    pub const SORTEDSET: u32 = 1 << 4;
    /// Lists.
    pub const LIST: u32 = 1 << 5;
    /// Hashes.
    pub const HASH: u32 = 1 << 6;
    /// Strings.
    pub const STRING: u32 = 1 << 7;
    /// Bitmaps.
    pub const BITMAP: u32 = 1 << 8;
    /// HyperLogLogs.
    pub const HYPERLOGLOG: u32 = 1 << 9;
    /// Geo sets.
    pub const GEO: u32 = 1 << 10;
    /// Streams.
    pub const STREAM: u32 = 1 << 11;
    /// Channels.
    pub const PUBSUB: u32 = 1 << 12;
    /// Administration.
    pub const ADMIN: u32 = 1 << 13;
    /// Fast commands.
    pub const FAST: u32 = 1 << 14;
    /// All that are not fast.
    pub const SLOW: u32 = 1 << 15;
    /// May wait.
    pub const BLOCKING: u32 = 1 << 16;
    /// Better not given to everybody.
    pub const DANGEROUS: u32 = 1 << 17;
    /// Connections.
    pub const CONNECTION: u32 = 1 << 18;
    /// MULTI and friends.
    pub const TRANSACTION: u32 = 1 << 19;
    /// Scripts.
    pub const SCRIPTING: u32 = 1 << 20;

    /// Their names, without `@`, in the order in which they are listed.
    pub const NAMES: &[(u32, &str)] = &[
        (KEYSPACE, "keyspace"),
        (READ, "read"),
        (WRITE, "write"),
        (SET, "set"),
        (SORTEDSET, "sortedset"),
        (LIST, "list"),
        (HASH, "hash"),
        (STRING, "string"),
        (BITMAP, "bitmap"),
        (HYPERLOGLOG, "hyperloglog"),
        (GEO, "geo"),
        (STREAM, "stream"),
        (PUBSUB, "pubsub"),
        (ADMIN, "admin"),
        (FAST, "fast"),
        (SLOW, "slow"),
        (BLOCKING, "blocking"),
        (DANGEROUS, "dangerous"),
        (CONNECTION, "connection"),
        (TRANSACTION, "transaction"),
        (SCRIPTING, "scripting"),
    ];
}

/// A set of ACL categories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Categories(pub u32);

impl Categories {
    /// Whether one of `bits` is set.
    #[inline]
    #[must_use]
    pub const fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }

    /// Names without `@`.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        category::NAMES
            .iter()
            .filter(move |&&(bit, _)| self.has(bit))
            .map(|&(_, name)| name)
    }

    /// The category with this name (without `@`, any case).
    #[must_use]
    pub fn by_name(name: &[u8]) -> Option<Self> {
        let found = category::NAMES
            .iter()
            .find(|(_, known)| name.eq_ignore_ascii_case(known.as_bytes()));
        found.map(|&(bit, _)| Self(bit))
    }

    /// What follows from group and flags: the row's own categories, then access and speed.
    pub(super) const fn implied(own: u32, flags: Flags) -> Self {
        let mut bits = own;
        if flags.has(flag::WRITE) {
            bits |= category::WRITE;
        }
        if flags.has(flag::READONLY) && bits & category::SCRIPTING == 0 {
            bits |= category::READ;
        }
        if flags.has(flag::ADMIN) {
            bits |= category::ADMIN | category::DANGEROUS;
        }
        if flags.has(flag::PUBSUB) {
            bits |= category::PUBSUB;
        }
        if flags.has(flag::BLOCKING) {
            bits |= category::BLOCKING;
        }
        bits |= if flags.has(flag::FAST) {
            category::FAST
        } else {
            category::SLOW
        };
        Self(bits)
    }
}

/// Bits of [`Access`]: what a command does with a key.
pub mod access {
    /// Reads the value.
    pub const RO: u16 = 1 << 0;
    /// Reads and changes the value.
    pub const RW: u16 = 1 << 1;
    /// Overwrites the value.
    pub const OW: u16 = 1 << 2;
    /// Removes the key.
    pub const RM: u16 = 1 << 3;
    /// Returns, copies or depends on the value's content.
    pub const ACCESS: u16 = 1 << 4;
    /// Changes content.
    pub const UPDATE: u16 = 1 << 5;
    /// Adds content and never changes what is there.
    pub const INSERT: u16 = 1 << 6;
    /// Removes content.
    pub const DELETE: u16 = 1 << 7;
    /// Stands where a key stands but is none (a channel).
    pub const NOT_KEY: u16 = 1 << 8;
    /// Not all keys can be found by the specification.
    pub const INCOMPLETE: u16 = 1 << 9;
    /// The flags depend on the arguments.
    pub const VARIABLE_FLAGS: u16 = 1 << 10;

    /// Their names in the order in which they are listed.
    pub const NAMES: &[(u16, &str)] = &[
        (RO, "RO"),
        (RW, "RW"),
        (OW, "OW"),
        (RM, "RM"),
        (ACCESS, "access"),
        (UPDATE, "update"),
        (INSERT, "insert"),
        (DELETE, "delete"),
        (NOT_KEY, "not_key"),
        (INCOMPLETE, "incomplete"),
        (VARIABLE_FLAGS, "variable_flags"),
    ];
}

/// What a command does with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Access(pub u16);

impl Access {
    /// Whether one of `bits` is set.
    #[inline]
    #[must_use]
    pub const fn has(self, bits: u16) -> bool {
        self.0 & bits != 0
    }

    /// Names that clients see.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        access::NAMES
            .iter()
            .filter(move |&&(bit, _)| self.has(bit))
            .map(|&(_, name)| name)
    }
}
