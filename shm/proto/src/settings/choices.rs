//! The closed sets of words that some settings choose from, as enums with the words that users type.
//!
//! Why: the table of settings needs the list of words (for error texts and parsing), the processes
//! need a type that the compiler checks. One macro makes both from one list, in the order in which
//! error texts name them.
//!
//! Not here: which setting uses which set (`table`), how a word is parsed (`kind`).

/// Declares an enum whose variants are words of a setting.
macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* #[doc = concat!("`", $word, "`")] $variant),+ }

        impl $name {
            /// The words, in the order of the variants.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
            const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The variant at a position in [`Self::WORDS`]; positions come from a checked parse.
            pub(super) fn at(position: usize) -> Self {
                Self::ALL[position.min(Self::ALL.len() - 1)]
            }

            /// The word that users type for it.
            pub fn word(self) -> &'static str {
                Self::WORDS[self as usize]
            }
        }
    )+};
}

choices! {
    /// What happens when `maxmemory` is reached.
    MaxmemoryPolicy {
        VolatileLru = "volatile-lru", VolatileLfu = "volatile-lfu",
        VolatileRandom = "volatile-random", VolatileTtl = "volatile-ttl",
        AllkeysLru = "allkeys-lru", AllkeysLfu = "allkeys-lfu",
        AllkeysRandom = "allkeys-random", Noeviction = "noeviction",
    }
    /// How much is logged. `nothing` still lets errors through to the supervisor's exit message.
    LogLevel {
        Debug = "debug", Verbose = "verbose", Notice = "notice", Warning = "warning",
        Nothing = "nothing",
    }
    /// When the log of writes is synced to disk.
    AppendFsync { Everysec = "everysec", Always = "always", No = "no" }
    /// Whether processes are bound to processors.
    Pin {
        /// Only when every gateway thread and worker gets a core of its own and one is left over.
        Auto = "auto",
        /// Always, as far as cores go.
        Yes = "yes",
        /// Never.
        No = "no",
    }
    /// How a service manager watches the server.
    Supervised { Upstart = "upstart", Systemd = "systemd", Auto = "auto", No = "no" }
    /// Facility for messages to syslog.
    SyslogFacility {
        User = "user", Local0 = "local0", Local1 = "local1", Local2 = "local2", Local3 = "local3",
        Local4 = "local4", Local5 = "local5", Local6 = "local6", Local7 = "local7",
    }
    /// How a replica loads a snapshot that arrives over the network.
    ReplDisklessLoad { Disabled = "disabled", OnEmptyDb = "on-empty-db", Swapdb = "swapdb" }
    /// Whether and how the kernel's out-of-memory score is adjusted.
    OomScoreAdj { No = "no", Yes = "yes", Relative = "relative", Absolute = "absolute" }
    /// Channel permissions of new users.
    AclPubsubDefault { Allchannels = "allchannels", Resetchannels = "resetchannels" }
    /// When restored payloads are checked in depth.
    SanitizeDumpPayload { No = "no", Yes = "yes", Clients = "clients" }
    /// Who may use a protected feature: nobody, everybody, or connections from this host.
    Protected { No = "no", Yes = "yes", Local = "local" }
    /// Which address a cluster tells its clients.
    ClusterEndpoint { Ip = "ip", Hostname = "hostname", UnknownEndpoint = "unknown-endpoint" }
    /// What happens when a replicated command fails.
    PropagationErrorBehavior {
        Ignore = "ignore", Panic = "panic", PanicOnReplicas = "panic-on-replicas",
    }
    /// Whether TLS clients must show a certificate.
    TlsAuthClients { No = "no", Yes = "yes", Optional = "optional" }
}

/// The words of `shutdown-on-sigterm` and `shutdown-on-sigint`; bit 0 is the first word after
/// `default`, so that no bit set means `default`.
pub const SHUTDOWN_WORDS: &[&str] = &["default", "save", "nosave", "now", "force"];

/// Bit of `now` in the value of `shutdown-on-sigterm` and `shutdown-on-sigint`.
pub const SHUTDOWN_NOW: u64 = 1 << 2;
