//! Every setting, one row each: name, other names, what it accepts, default, when it may change,
//! whether this version acts on it.
//!
//! Why all of Redis' settings are here, also those we have no use for: an existing `redis.conf`
//! must start, and tools set and read back settings such as `lua-time-limit`. The column `effect`
//! says honestly what a row does; the supervisor warns about rows without effect that a file sets.
//!
//! ```text
//!   Port       port         "port"   []   int(0, 65535)   "6379"   Start   Works   "doc"
//!   id         accessor     name  aliases     kind       default   change  effect  summary
//! ```
//!
//! Invariants
//!   T1  names and aliases are unique and lower case.
//!   T2  every default parses (`Settings::default` relies on it; a test walks all rows).
//!
//! Not here: parsing (`kind`), sets of words (`choices`), limits that depend on the machine
//! (supervisor).

use super::choices::*;
use super::kind::{Kind, SettingError};
use super::special::{OutputLimit, SavePoint};
use super::{Settings, Value};

/// When a setting may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// At any time, by CONFIG SET.
    Live,
    /// Only in the file or on the command line.
    Start,
    /// By CONFIG SET only if `enable-protected-configs` allows it.
    Protected,
}

/// What a setting does in this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It acts.
    Works,
    /// It is stored and shown; nothing here depends on it.
    None,
    /// What it asks for does not exist yet: only the default is accepted.
    Missing,
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its number, the position in [`TABLE`].
    pub setting: Setting,
    /// Name in files and in CONFIG.
    pub name: &'static str,
    /// Other names with the same meaning.
    pub aliases: &'static [&'static str],
    /// What it accepts.
    pub kind: Kind,
    /// Default, as a line of a file would give it.
    pub default: &'static str,
    /// When it may change.
    pub change: Change,
    /// What it does.
    pub effect: Effect,
    /// One sentence.
    pub summary: &'static str,
}

const I32: i64 = i32::MAX as i64;
const I64: i64 = i64::MAX;
const BIG: u64 = i64::MAX as u64;

fn any_text(_: &str) -> Result<(), SettingError> {
    Ok(())
}

fn dump_file_name(text: &str) -> Result<(), SettingError> {
    if text.contains('/') {
        Err(SettingError::FileNameOnly("dbfilename"))
    } else {
        Ok(())
    }
}

fn log_file_name(text: &str) -> Result<(), SettingError> {
    if text.contains('/') {
        Err(SettingError::FileNameOnly("appendfilename"))
    } else {
        Ok(())
    }
}

fn log_folder_name(text: &str) -> Result<(), SettingError> {
    if text.contains('/') {
        Err(SettingError::FileNameOnly("appenddirname"))
    } else {
        Ok(())
    }
}

/// Variables in braces must be known, braces must be closed, and something must remain to show.
fn title_template(text: &str) -> Result<(), SettingError> {
    const NEVER_EMPTY: [&str; 4] = ["listen-addr", "server-mode", "port", "tls-port"];
    const MAYBE_EMPTY: [&str; 3] = ["title", "unixsocket", "config-file"];
    let mut shows_something = false;
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        shows_something |= open > 0;
        let Some(close) = rest[open..].find('}') else {
            return Err(SettingError::TitleTemplate);
        };
        let name = &rest[open + 1..open + close];
        if NEVER_EMPTY.contains(&name) {
            shows_something = true;
        } else if !MAYBE_EMPTY.contains(&name) {
            return Err(SettingError::TitleTemplate);
        }
        rest = &rest[open + close + 1..];
    }
    if shows_something || !rest.is_empty() {
        Ok(())
    } else {
        Err(SettingError::TitleTemplate)
    }
}

fn host_name(text: &str) -> Result<(), SettingError> {
    if text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
    {
        return Ok(());
    }
    let reason = "Hostnames may only contain alphanumeric characters, hyphens or dots";
    Err(SettingError::Other(reason.to_string()))
}

fn node_name(text: &str) -> Result<(), SettingError> {
    if !text.contains(|c| "!#$%&()*+:;<>?@[]^{|}~".contains(c)) {
        return Ok(());
    }
    let reason = "Announced human node name contained invalid character";
    Err(SettingError::Other(reason.to_string()))
}

fn locale_name(text: &str) -> Result<(), SettingError> {
    // Only the locales that need no files of the system: comparisons here are by bytes.
    match text {
        "" | "C" | "POSIX" | "C.UTF-8" => Ok(()),
        _ => Err(SettingError::Other("Invalid locale name".to_string())),
    }
}

macro_rules! kind {
    (bool) => {
        Kind::Bool
    };
    (int($min:expr, $max:expr)) => {
        Kind::Int {
            min: $min,
            max: $max,
        }
    };
    (clamped($a:expr, $b:expr, $c:expr, $d:expr)) => {
        Kind::Clamped {
            accepted: ($a, $b),
            used: ($c, $d),
        }
    };
    (memory($min:expr, $max:expr)) => {
        Kind::Memory {
            min: $min,
            max: $max,
            at_least: 0,
        }
    };
    (memory($min:expr, $max:expr, $least:expr)) => {
        Kind::Memory {
            min: $min,
            max: $max,
            at_least: $least,
        }
    };
    (memory_or_percent) => {
        Kind::MemoryOrPercent
    };
    (octal($max:expr)) => {
        Kind::Octal { max: $max }
    };
    (text) => {
        Kind::Text(any_text)
    };
    (text($check:expr)) => {
        Kind::Text($check)
    };
    (choice($set:ident)) => {
        Kind::Choice($set::WORDS)
    };
    (shutdown) => {
        Kind::Flags(SHUTDOWN_WORDS)
    };
    (words($max:expr)) => {
        Kind::Words($max)
    };
    (save) => {
        Kind::Save
    };
    (output_limits) => {
        Kind::OutputLimits
    };
    (events) => {
        Kind::Events
    };
    (oom_scores) => {
        Kind::OomScores
    };
    (percentiles) => {
        Kind::Percentiles
    };
}

/// A typed accessor for a row: the return type follows from the kind.
macro_rules! accessor {
    ($id:ident $fn:ident $doc:literal bool) => { accessor!(@ $id $fn $doc, bool, Value::Bool(v) => *v); };
    ($id:ident $fn:ident $doc:literal int($($a:tt)*)) => { accessor!(@ $id $fn $doc, i64, Value::Int(v) => *v); };
    ($id:ident $fn:ident $doc:literal clamped($($a:tt)*)) => { accessor!(@ $id $fn $doc, i64, Value::Int(v) => *v); };
    ($id:ident $fn:ident $doc:literal octal($($a:tt)*)) => { accessor!(@ $id $fn $doc, i64, Value::Int(v) => *v); };
    ($id:ident $fn:ident $doc:literal memory($($a:tt)*)) => { accessor!(@ $id $fn $doc, u64, Value::Memory(v) => *v); };
    ($id:ident $fn:ident $doc:literal memory_or_percent) => { accessor!(@ $id $fn $doc, &Value, v => v); };
    ($id:ident $fn:ident $doc:literal text $(($a:tt))?) => { accessor!(@ $id $fn $doc, &str, Value::Text(v) => v); };
    ($id:ident $fn:ident $doc:literal choice($set:ident)) => { accessor!(@ $id $fn $doc, $set, Value::Choice(v) => $set::at(*v)); };
    ($id:ident $fn:ident $doc:literal shutdown) => { accessor!(@ $id $fn $doc, u64, Value::Bits(v) => *v); };
    ($id:ident $fn:ident $doc:literal events) => { accessor!(@ $id $fn $doc, u64, Value::Bits(v) => *v); };
    ($id:ident $fn:ident $doc:literal words($($a:tt)*)) => { accessor!(@ $id $fn $doc, &[String], Value::Words(v) => v); };
    ($id:ident $fn:ident $doc:literal save) => { accessor!(@ $id $fn $doc, &[SavePoint], Value::Save(v) => v); };
    ($id:ident $fn:ident $doc:literal output_limits) => { accessor!(@ $id $fn $doc, &[OutputLimit; 3], Value::OutputLimits(v) => v); };
    ($id:ident $fn:ident $doc:literal oom_scores) => { accessor!(@ $id $fn $doc, &[i64], Value::Integers(v) => v); };
    ($id:ident $fn:ident $doc:literal percentiles) => { accessor!(@ $id $fn $doc, &[f64], Value::Percentiles(v) => v); };
    (@ $id:ident $fn:ident $doc:literal, $type:ty, $pattern:pat => $result:expr) => {
        #[doc = $doc]
        pub fn $fn(&self) -> $type {
            #[expect(clippy::allow_attributes, reason = "only some kinds have an irrefutable pattern")]
            #[allow(unreachable_patterns, reason = "a kind that returns the value itself")]
            match self.value(Setting::$id) {
                $pattern => $result,
                other => unreachable!("a value of {} never has another kind: {other:?}", stringify!($id)),
            }
        }
    };
}

macro_rules! settings_table {
    ($($id:ident $fn:ident $name:literal [$($alias:literal)*] { $($kind:tt)+ } $default:literal
        $change:ident $effect:ident $doc:literal;)+) => {
        /// The settings, by number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Setting { $(#[doc = $doc] $id),+ }

        /// All rows, in the order of [`Setting`].
        pub static TABLE: &[Row] = &[$(Row {
            setting: Setting::$id,
            name: $name,
            aliases: &[$($alias),*],
            kind: kind!($($kind)+),
            default: $default,
            change: Change::$change,
            effect: Effect::$effect,
            summary: $doc,
        }),+];

        /// Typed access, one method per row; each is an array access.
        impl Settings { $(accessor!($id $fn $doc $($kind)+);)+ }
    };
}

settings_table! {
    // Ours.
    StorageWorkers storage_workers "storage-workers" [] {int(0, 56)} "0" Start Works "Storage worker processes; 0 is one for now.";
    GatewayThreads gateway_threads "gateway-threads" [] {int(0, 256)} "0" Start Works "Threads that serve sockets; 0 chooses by the cores that may be used.";
    Pin pin "pin" [] {choice(Pin)} "auto" Start Works "Whether threads and workers are bound to cores: auto where there are enough, else they share one while it is enough.";
    SpinUs spin_us "spin-us" [] {int(0, 10000)} "0" Live Works "Microseconds to look for work before sleeping; 0 never spins.";
    RingSize ring_size "ring-size" [] {memory(0, 1 << 30)} "0" Start Works "Bytes of one ring, a power of two from 64 KiB; 0 chooses by the number of rings.";
    SupervisorTimeout supervisor_timeout "supervisor-timeout" [] {int(1, I32)} "60" Live Works "Seconds that parts go on without a supervisor before they exit.";
    StoppedTimeout stopped_timeout "stopped-timeout" [] {int(1, I32)} "5" Live Works "Seconds a process may be stopped before it is killed and replaced.";

    // Network and clients.
    Port port "port" [] {int(0, 65535)} "6379" Start Works "TCP port; 0 does not listen on TCP.";
    Bind bind "bind" [] {words(16)} "* -::*" Start Works "Addresses to listen on; a leading - makes one optional.";
    BindSourceAddr bind_source_addr "bind-source-addr" [] {text} "" Live None "Address for outgoing connections.";
    Unixsocket unixsocket "unixsocket" [] {text} "" Start Works "Path of a unix socket to listen on.";
    Unixsocketperm unixsocketperm "unixsocketperm" [] {octal(0o777)} "0" Start Works "Permissions of the unix socket; 0 leaves them.";
    TcpBacklog tcp_backlog "tcp-backlog" [] {int(0, I32)} "511" Start Works "Connections the kernel holds before they are accepted.";
    SocketMarkId socket_mark_id "socket-mark-id" [] {int(0, 4294967295)} "0" Start None "Mark of packets of listening sockets.";
    Timeout timeout "timeout" [] {int(0, I32)} "0" Live Works "Seconds after which an idle client is closed; 0 never.";
    TcpKeepalive tcp_keepalive "tcp-keepalive" [] {int(0, I32)} "300" Live Works "Seconds between keep-alive probes; 0 sends none.";
    ProtectedMode protected_mode "protected-mode" [] {bool} "yes" Live Works "Refuse other hosts while there is no password.";
    Maxclients maxclients "maxclients" [] {int(1, 4294967295)} "10000" Live Works "Connections at a time.";
    Requirepass requirepass "requirepass" [] {text} "" Live Works "Password of the default user.";
    ClientQueryBufferLimit client_query_buffer_limit "client-query-buffer-limit" [] {memory(1 << 20, BIG)} "1gb" Live Works "Bytes a client may have sent without a complete command.";
    ClientOutputBufferLimit client_output_buffer_limit "client-output-buffer-limit" [] {output_limits} "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60" Live Works "Bytes a client may leave unread, by class.";
    MaxmemoryClients maxmemory_clients "maxmemory-clients" [] {memory_or_percent} "0" Live None "Memory for the buffers of all clients.";
    ProtoMaxBulkLen proto_max_bulk_len "proto-max-bulk-len" [] {memory(1 << 20, BIG)} "512mb" Live Works "Largest single argument.";
    MaxNewConnectionsPerCycle max_new_connections_per_cycle "max-new-connections-per-cycle" [] {int(1, 1000)} "10" Live Works "Connections accepted in one turn of a gateway thread.";
    MaxNewTlsConnectionsPerCycle max_new_tls_connections_per_cycle "max-new-tls-connections-per-cycle" [] {int(1, 1000)} "1" Live None "TLS connections accepted in one turn.";
    IoThreads io_threads "io-threads" [] {int(1, 128)} "1" Start None "Accepted for existing files; use gateway-threads.";

    // General.
    Daemonize daemonize "daemonize" [] {bool} "no" Start Works "Go to the background.";
    Supervised supervised "supervised" [] {choice(Supervised)} "no" Start Works "Tell a service manager when the server is ready.";
    Pidfile pidfile "pidfile" [] {text} "" Start Works "File for the number of the supervisor process.";
    Loglevel loglevel "loglevel" [] {choice(LogLevel)} "notice" Live Works "How much is logged.";
    Logfile logfile "logfile" [] {text} "" Start Works "File for the log; empty is standard output.";
    SyslogEnabled syslog_enabled "syslog-enabled" [] {bool} "no" Start None "Log to syslog.";
    SyslogIdent syslog_ident "syslog-ident" [] {text} "redis" Start None "Name in syslog.";
    SyslogFacility syslog_facility "syslog-facility" [] {choice(SyslogFacility)} "local0" Start None "Facility in syslog.";
    CrashLogEnabled crash_log_enabled "crash-log-enabled" [] {bool} "yes" Live None "Log the state of a crash.";
    CrashMemcheckEnabled crash_memcheck_enabled "crash-memcheck-enabled" [] {bool} "yes" Live None "Check memory after a crash.";
    HideUserDataFromLog hide_user_data_from_log "hide-user-data-from-log" [] {bool} "no" Live Works "Keep keys and values out of the log.";
    AlwaysShowLogo always_show_logo "always-show-logo" [] {bool} "no" Start None "Accepted for existing files.";
    SetProcTitle set_proc_title "set-proc-title" [] {bool} "yes" Start None "Describe the process in its title.";
    ProcTitleTemplate proc_title_template "proc-title-template" [] {text(title_template)} "{title} {listen-addr} {server-mode}" Live None "What the title says.";
    LocaleCollate locale_collate "locale-collate" [] {text(locale_name)} "" Live None "Order of strings.";
    Databases databases "databases" [] {int(1, 65535)} "16" Start Works "Databases that SELECT reaches.";
    IgnoreWarnings ignore_warnings "ignore-warnings" [] {text} "" Live None "Start-up warnings to leave out.";
    EnableProtectedConfigs enable_protected_configs "enable-protected-configs" [] {choice(Protected)} "no" Start Works "Who may set protected settings.";
    EnableDebugCommand enable_debug_command "enable-debug-command" [] {choice(Protected)} "no" Start Works "Who may use DEBUG.";
    EnableModuleCommand enable_module_command "enable-module-command" [] {choice(Protected)} "no" Start None "Who may load modules; there are none here.";
    Hz hz "hz" [] {clamped(0, I32, 1, 500)} "10" Live Works "Background turns per second.";
    DynamicHz dynamic_hz "dynamic-hz" [] {bool} "yes" Live None "More background turns with more clients.";
    ShutdownTimeout shutdown_timeout "shutdown-timeout" [] {int(0, I32)} "10" Live Works "Seconds to finish what is in flight at shutdown.";
    ShutdownOnSigterm shutdown_on_sigterm "shutdown-on-sigterm" [] {shutdown} "default" Live Works "How SIGTERM shuts down.";
    ShutdownOnSigint shutdown_on_sigint "shutdown-on-sigint" [] {shutdown} "default" Live Works "How SIGINT shuts down.";
    OomScoreAdj oom_score_adj "oom-score-adj" [] {choice(OomScoreAdj)} "no" Live None "Adjust the kernel's out-of-memory score.";
    OomScoreAdjValues oom_score_adj_values "oom-score-adj-values" [] {oom_scores} "0 200 800" Live None "Scores of primary, replica and background child.";
    DisableThp disable_thp "disable-thp" [] {bool} "yes" Start None "Turn transparent huge pages off.";
    ServerCpulist server_cpulist "server-cpulist" ["server_cpulist"] {text} "" Start None "Accepted for existing files; see pin.";
    BioCpulist bio_cpulist "bio-cpulist" ["bio_cpulist"] {text} "" Start None "Accepted for existing files; see pin.";
    AofRewriteCpulist aof_rewrite_cpulist "aof-rewrite-cpulist" ["aof_rewrite_cpulist"] {text} "" Start None "Accepted for existing files; see pin.";
    BgsaveCpulist bgsave_cpulist "bgsave-cpulist" ["bgsave_cpulist"] {text} "" Start None "Accepted for existing files; see pin.";

    // Memory.
    Maxmemory maxmemory "maxmemory" [] {memory(0, u64::MAX)} "0" Live Works "Bytes of data before keys are evicted or writes refused; 0 is no limit.";
    MaxmemoryPolicy maxmemory_policy "maxmemory-policy" [] {choice(MaxmemoryPolicy)} "noeviction" Live Works "Which keys are evicted.";
    MaxmemorySamples maxmemory_samples "maxmemory-samples" [] {int(1, 64)} "5" Live Works "Keys looked at to choose one to evict.";
    MaxmemoryEvictionTenacity maxmemory_eviction_tenacity "maxmemory-eviction-tenacity" [] {int(0, 100)} "10" Live Works "How long eviction may hold up commands.";
    LfuLogFactor lfu_log_factor "lfu-log-factor" [] {int(0, I32)} "10" Live Works "How slowly the use counter grows.";
    LfuDecayTime lfu_decay_time "lfu-decay-time" [] {int(0, I32)} "1" Live Works "Minutes until the use counter is lowered.";
    ActiveExpireEffort active_expire_effort "active-expire-effort" [] {int(1, 10)} "1" Live Works "How much time goes into expired keys.";
    LazyfreeLazyEviction lazyfree_lazy_eviction "lazyfree-lazy-eviction" [] {bool} "no" Live Works "Free evicted values in slices.";
    LazyfreeLazyExpire lazyfree_lazy_expire "lazyfree-lazy-expire" [] {bool} "no" Live Works "Free expired values in slices.";
    LazyfreeLazyServerDel lazyfree_lazy_server_del "lazyfree-lazy-server-del" [] {bool} "no" Live Works "Free overwritten values in slices.";
    LazyfreeLazyUserDel lazyfree_lazy_user_del "lazyfree-lazy-user-del" [] {bool} "no" Live Works "DEL behaves as UNLINK.";
    LazyfreeLazyUserFlush lazyfree_lazy_user_flush "lazyfree-lazy-user-flush" [] {bool} "no" Live Works "FLUSHDB and FLUSHALL are ASYNC unless told otherwise.";
    Activerehashing activerehashing "activerehashing" [] {bool} "yes" Live None "Accepted for existing files; tables here grow in small steps.";
    Activedefrag activedefrag "activedefrag" [] {bool} "no" Live Missing "Move values to compact memory.";
    ActiveDefragCycleMin active_defrag_cycle_min "active-defrag-cycle-min" [] {int(1, 99)} "1" Live None "Least effort of defragmentation, in percent.";
    ActiveDefragCycleMax active_defrag_cycle_max "active-defrag-cycle-max" [] {int(1, 99)} "25" Live None "Most effort of defragmentation, in percent.";
    ActiveDefragThresholdLower active_defrag_threshold_lower "active-defrag-threshold-lower" [] {int(0, 1000)} "10" Live None "Fragmentation at which defragmentation starts.";
    ActiveDefragThresholdUpper active_defrag_threshold_upper "active-defrag-threshold-upper" [] {int(0, 1000)} "100" Live None "Fragmentation with the most effort.";
    ActiveDefragMaxScanFields active_defrag_max_scan_fields "active-defrag-max-scan-fields" [] {int(1, I64)} "1000" Live None "Fields handled at once by defragmentation.";
    ActiveDefragIgnoreBytes active_defrag_ignore_bytes "active-defrag-ignore-bytes" [] {memory(1, BIG)} "100mb" Live None "Waste that is left alone.";
    JemallocBgThread jemalloc_bg_thread "jemalloc-bg-thread" [] {bool} "yes" Live None "Accepted for existing files.";

    // Encodings.
    HashMaxListpackEntries hash_max_listpack_entries "hash-max-listpack-entries" ["hash-max-ziplist-entries"] {int(0, I64)} "512" Live Works "Fields of a compact hash.";
    HashMaxListpackValue hash_max_listpack_value "hash-max-listpack-value" ["hash-max-ziplist-value"] {memory(0, BIG)} "64" Live Works "Bytes of a value in a compact hash.";
    ListMaxListpackSize list_max_listpack_size "list-max-listpack-size" ["list-max-ziplist-size"] {int(-2147483648, I32)} "-2" Live Works "Size of one piece of a list.";
    ListCompressDepth list_compress_depth "list-compress-depth" [] {int(0, I32)} "0" Live Works "Pieces at both ends of a list that stay uncompressed.";
    SetMaxIntsetEntries set_max_intset_entries "set-max-intset-entries" [] {int(0, I64)} "512" Live Works "Members of a compact set of integers.";
    SetMaxListpackEntries set_max_listpack_entries "set-max-listpack-entries" [] {int(0, I64)} "128" Live Works "Members of a compact set.";
    SetMaxListpackValue set_max_listpack_value "set-max-listpack-value" [] {int(0, I64)} "64" Live Works "Bytes of a member of a compact set.";
    ZsetMaxListpackEntries zset_max_listpack_entries "zset-max-listpack-entries" ["zset-max-ziplist-entries"] {int(0, I64)} "128" Live Works "Members of a compact sorted set.";
    ZsetMaxListpackValue zset_max_listpack_value "zset-max-listpack-value" ["zset-max-ziplist-value"] {memory(0, BIG)} "64" Live Works "Bytes of a member of a compact sorted set.";
    HllSparseMaxBytes hll_sparse_max_bytes "hll-sparse-max-bytes" [] {memory(0, BIG)} "3000" Live Works "Bytes of a sparse HyperLogLog.";
    StreamNodeMaxBytes stream_node_max_bytes "stream-node-max-bytes" [] {memory(0, BIG)} "4096" Live Works "Bytes of one node of a stream.";
    StreamNodeMaxEntries stream_node_max_entries "stream-node-max-entries" [] {int(0, I64)} "100" Live Works "Entries of one node of a stream.";

    // Observation.
    SlowlogLogSlowerThan slowlog_log_slower_than "slowlog-log-slower-than" [] {int(-1, I64)} "10000" Live Works "Microseconds from which a command is slow; -1 logs none.";
    SlowlogMaxLen slowlog_max_len "slowlog-max-len" [] {int(0, I64)} "128" Live Works "Entries of the slow log.";
    LatencyMonitorThreshold latency_monitor_threshold "latency-monitor-threshold" [] {int(0, I64)} "0" Live None "Milliseconds from which an event is recorded.";
    LatencyTracking latency_tracking "latency-tracking" [] {bool} "yes" Live Works "Measure the latency of every command.";
    LatencyTrackingInfoPercentiles latency_tracking_info_percentiles "latency-tracking-info-percentiles" [] {percentiles} "50 99 99.9" Live Works "Percentiles in INFO latencystats.";
    NotifyKeyspaceEvents notify_keyspace_events "notify-keyspace-events" [] {events} "" Live Works "Which changes of keys are published.";
    TrackingTableMaxKeys tracking_table_max_keys "tracking-table-max-keys" [] {int(0, I64)} "1000000" Live None "Keys remembered for client-side caches.";
    BusyReplyThreshold busy_reply_threshold "busy-reply-threshold" ["lua-time-limit"] {int(0, I64)} "5000" Live Works "Milliseconds after which a script makes others see BUSY.";

    // Persistence.
    Dir dir "dir" [] {text} "." Protected Works "Directory for data and for the control socket.";
    Save save "save" [] {save} "" Live None "When snapshots are made.";
    Dbfilename dbfilename "dbfilename" [] {text(dump_file_name)} "dump.rdb" Protected Works "File of snapshots.";
    Rdbcompression rdbcompression "rdbcompression" [] {bool} "yes" Live Works "Compress snapshots.";
    Rdbchecksum rdbchecksum "rdbchecksum" [] {bool} "yes" Start Works "End snapshots with a checksum.";
    RdbDelSyncFiles rdb_del_sync_files "rdb-del-sync-files" [] {bool} "no" Live None "Remove snapshots used for replication.";
    RdbSaveIncrementalFsync rdb_save_incremental_fsync "rdb-save-incremental-fsync" [] {bool} "yes" Live None "Sync snapshots in pieces.";
    StopWritesOnBgsaveError stop_writes_on_bgsave_error "stop-writes-on-bgsave-error" [] {bool} "yes" Live None "Refuse writes after a failed snapshot.";
    SanitizeDumpPayload sanitize_dump_payload "sanitize-dump-payload" [] {choice(SanitizeDumpPayload)} "no" Live Works "Check restored payloads in depth: accepted, they always are.";
    Appendonly appendonly "appendonly" [] {bool} "no" Live Missing "Log every write.";
    Appendfilename appendfilename "appendfilename" [] {text(log_file_name)} "appendonly.aof" Start Works "Name of the log's files.";
    Appenddirname appenddirname "appenddirname" [] {text(log_folder_name)} "appendonlydir" Start Works "Folder of the log's files.";
    Appendfsync appendfsync "appendfsync" [] {choice(AppendFsync)} "everysec" Live Works "When the log is synced.";
    NoAppendfsyncOnRewrite no_appendfsync_on_rewrite "no-appendfsync-on-rewrite" [] {bool} "no" Live None "Do not sync the log during a rewrite.";
    AutoAofRewritePercentage auto_aof_rewrite_percentage "auto-aof-rewrite-percentage" [] {int(0, I32)} "100" Live Works "Growth at which the log is rewritten.";
    AutoAofRewriteMinSize auto_aof_rewrite_min_size "auto-aof-rewrite-min-size" [] {memory(0, BIG)} "64mb" Live Works "Smallest log that is rewritten.";
    AofLoadTruncated aof_load_truncated "aof-load-truncated" [] {bool} "yes" Live Works "Load a log with a cut-off end.";
    AofUseRdbPreamble aof_use_rdb_preamble "aof-use-rdb-preamble" [] {bool} "yes" Live Works "Base files of the log are snapshots.";
    AofTimestampEnabled aof_timestamp_enabled "aof-timestamp-enabled" [] {bool} "no" Live Works "Write times into the log.";
    AofRewriteIncrementalFsync aof_rewrite_incremental_fsync "aof-rewrite-incremental-fsync" [] {bool} "yes" Live None "Sync rewrites in pieces.";
    PropagationErrorBehavior propagation_error_behavior "propagation-error-behavior" [] {choice(PropagationErrorBehavior)} "ignore" Live None "What happens when a replicated command fails.";

    // Access.
    Aclfile aclfile "aclfile" [] {text} "" Start Missing "File of users.";
    AcllogMaxLen acllog_max_len "acllog-max-len" [] {int(0, I64)} "128" Live None "Entries of the log of refusals.";
    AclPubsubDefault acl_pubsub_default "acl-pubsub-default" [] {choice(AclPubsubDefault)} "resetchannels" Live None "Channels of new users.";

    // Replication and cluster: one host for now.
    Replicaof replicaof "replicaof" ["slaveof"] {words(2)} "" Start Missing "Primary to copy.";
    Masteruser masteruser "masteruser" [] {text} "" Live None "User at the primary.";
    Masterauth masterauth "masterauth" [] {text} "" Live None "Password at the primary.";
    ReplicaServeStaleData replica_serve_stale_data "replica-serve-stale-data" ["slave-serve-stale-data"] {bool} "yes" Live None "Serve without a link to the primary.";
    ReplicaReadOnly replica_read_only "replica-read-only" ["slave-read-only"] {bool} "yes" Live None "Refuse writes on a replica.";
    ReplicaLazyFlush replica_lazy_flush "replica-lazy-flush" ["slave-lazy-flush"] {bool} "no" Live None "Empty a replica in slices.";
    ReplicaIgnoreMaxmemory replica_ignore_maxmemory "replica-ignore-maxmemory" ["slave-ignore-maxmemory"] {bool} "yes" Live None "Do not evict on a replica.";
    ReplicaIgnoreDiskWriteErrors replica_ignore_disk_write_errors "replica-ignore-disk-write-errors" [] {bool} "no" Live None "Go on when a replica cannot write its files.";
    ReplicaPriority replica_priority "replica-priority" ["slave-priority"] {int(0, I32)} "100" Live None "Preference at a failover.";
    ReplicaAnnounced replica_announced "replica-announced" [] {bool} "yes" Live None "Show this replica to others.";
    ReplicaAnnounceIp replica_announce_ip "replica-announce-ip" ["slave-announce-ip"] {text} "" Live None "Address a replica reports.";
    ReplicaAnnouncePort replica_announce_port "replica-announce-port" ["slave-announce-port"] {int(0, 65535)} "0" Live None "Port a replica reports.";
    ReplicaFullSyncBufferLimit replica_full_sync_buffer_limit "replica-full-sync-buffer-limit" [] {memory(0, BIG)} "0" Live None "Bytes kept during a full copy.";
    ReplBacklogSize repl_backlog_size "repl-backlog-size" [] {memory(1, BIG, 16384)} "1mb" Live None "Bytes of writes kept for replicas.";
    ReplBacklogTtl repl_backlog_ttl "repl-backlog-ttl" [] {int(0, I64)} "3600" Live None "Seconds they are kept without replicas.";
    ReplTimeout repl_timeout "repl-timeout" [] {int(1, I32)} "60" Live None "Seconds until a replica counts as lost.";
    ReplPingReplicaPeriod repl_ping_replica_period "repl-ping-replica-period" ["repl-ping-slave-period"] {int(1, I32)} "10" Live None "Seconds between pings to replicas.";
    ReplDisableTcpNodelay repl_disable_tcp_nodelay "repl-disable-tcp-nodelay" [] {bool} "no" Live None "Fewer, larger packets to replicas.";
    ReplDisklessSync repl_diskless_sync "repl-diskless-sync" [] {bool} "yes" Live None "Copy over the network without a file.";
    ReplDisklessSyncDelay repl_diskless_sync_delay "repl-diskless-sync-delay" [] {int(0, I32)} "5" Live None "Seconds to wait for more replicas.";
    ReplDisklessSyncMaxReplicas repl_diskless_sync_max_replicas "repl-diskless-sync-max-replicas" [] {int(0, I32)} "0" Live None "Replicas that end that wait.";
    ReplDisklessLoad repl_diskless_load "repl-diskless-load" [] {choice(ReplDisklessLoad)} "disabled" Live None "How a replica loads a copy.";
    MinReplicasToWrite min_replicas_to_write "min-replicas-to-write" ["min-slaves-to-write"] {int(0, I32)} "0" Live Works "Replicas needed for writes.";
    MinReplicasMaxLag min_replicas_max_lag "min-replicas-max-lag" ["min-slaves-max-lag"] {int(0, I32)} "10" Live Works "Seconds such a replica may be behind.";
    ClusterEnabled cluster_enabled "cluster-enabled" [] {bool} "no" Start Missing "Be a node of a cluster.";
    ClusterConfigFile cluster_config_file "cluster-config-file" [] {text} "nodes.conf" Start None "File of the cluster's nodes.";
    ClusterPort cluster_port "cluster-port" [] {int(0, 65535)} "0" Start None "Port between nodes.";
    ClusterAnnounceIp cluster_announce_ip "cluster-announce-ip" [] {text} "" Live None "Address a node reports.";
    ClusterAnnounceHostname cluster_announce_hostname "cluster-announce-hostname" [] {text(host_name)} "" Live None "Host name a node reports.";
    ClusterAnnounceHumanNodename cluster_announce_human_nodename "cluster-announce-human-nodename" [] {text(node_name)} "" Live None "Name of a node in logs.";
    ClusterAnnouncePort cluster_announce_port "cluster-announce-port" [] {int(0, 65535)} "0" Live None "Port a node reports.";
    ClusterAnnounceTlsPort cluster_announce_tls_port "cluster-announce-tls-port" [] {int(0, 65535)} "0" Live None "TLS port a node reports.";
    ClusterAnnounceBusPort cluster_announce_bus_port "cluster-announce-bus-port" [] {int(0, 65535)} "0" Live None "Port between nodes it reports.";
    ClusterNodeTimeout cluster_node_timeout "cluster-node-timeout" [] {int(0, I64)} "15000" Live None "Milliseconds until a node counts as lost.";
    ClusterMigrationBarrier cluster_migration_barrier "cluster-migration-barrier" [] {int(0, I32)} "1" Live None "Replicas a primary keeps.";
    ClusterAllowReplicaMigration cluster_allow_replica_migration "cluster-allow-replica-migration" [] {bool} "yes" Live None "Replicas move to primaries without one.";
    ClusterReplicaValidityFactor cluster_replica_validity_factor "cluster-replica-validity-factor" ["cluster-slave-validity-factor"] {int(0, I32)} "10" Live None "How old a replica may be to take over.";
    ClusterReplicaNoFailover cluster_replica_no_failover "cluster-replica-no-failover" ["cluster-slave-no-failover"] {bool} "no" Live None "Never take over.";
    ClusterRequireFullCoverage cluster_require_full_coverage "cluster-require-full-coverage" [] {bool} "yes" Live None "Serve only when all slots are.";
    ClusterAllowReadsWhenDown cluster_allow_reads_when_down "cluster-allow-reads-when-down" [] {bool} "no" Live None "Read while the cluster is down.";
    ClusterAllowPubsubshardWhenDown cluster_allow_pubsubshard_when_down "cluster-allow-pubsubshard-when-down" [] {bool} "yes" Live None "Shard channels while the cluster is down.";
    ClusterLinkSendbufLimit cluster_link_sendbuf_limit "cluster-link-sendbuf-limit" [] {memory(0, u64::MAX)} "0" Live None "Bytes waiting between nodes.";
    ClusterPreferredEndpointType cluster_preferred_endpoint_type "cluster-preferred-endpoint-type" [] {choice(ClusterEndpoint)} "ip" Live None "Which address clients are told.";
    ClusterCompatibilitySampleRatio cluster_compatibility_sample_ratio "cluster-compatibility-sample-ratio" [] {int(0, 100)} "0" Live None "Commands checked for use in a cluster, in percent.";

    // TLS.
    TlsPort tls_port "tls-port" [] {int(0, 65535)} "0" Start Missing "TLS port; 0 does not listen for TLS.";
    TlsCertFile tls_cert_file "tls-cert-file" [] {text} "" Live None "Certificate.";
    TlsKeyFile tls_key_file "tls-key-file" [] {text} "" Live None "Key of the certificate.";
    TlsKeyFilePass tls_key_file_pass "tls-key-file-pass" [] {text} "" Live None "Password of the key.";
    TlsClientCertFile tls_client_cert_file "tls-client-cert-file" [] {text} "" Live None "Certificate for outgoing connections.";
    TlsClientKeyFile tls_client_key_file "tls-client-key-file" [] {text} "" Live None "Key for outgoing connections.";
    TlsClientKeyFilePass tls_client_key_file_pass "tls-client-key-file-pass" [] {text} "" Live None "Password of that key.";
    TlsDhParamsFile tls_dh_params_file "tls-dh-params-file" [] {text} "" Live None "Parameters for old key exchanges.";
    TlsCaCertFile tls_ca_cert_file "tls-ca-cert-file" [] {text} "" Live None "Certificates trusted for clients.";
    TlsCaCertDir tls_ca_cert_dir "tls-ca-cert-dir" [] {text} "" Live None "Folder of them.";
    TlsAuthClients tls_auth_clients "tls-auth-clients" [] {choice(TlsAuthClients)} "yes" Live None "Whether clients show a certificate.";
    TlsReplication tls_replication "tls-replication" [] {bool} "no" Live None "TLS towards the primary.";
    TlsCluster tls_cluster "tls-cluster" [] {bool} "no" Live None "TLS between nodes.";
    TlsProtocols tls_protocols "tls-protocols" [] {text} "" Live None "Accepted protocol versions.";
    TlsCiphers tls_ciphers "tls-ciphers" [] {text} "" Live None "Accepted ciphers before TLS 1.3.";
    TlsCiphersuites tls_ciphersuites "tls-ciphersuites" [] {text} "" Live None "Accepted ciphers of TLS 1.3.";
    TlsPreferServerCiphers tls_prefer_server_ciphers "tls-prefer-server-ciphers" [] {bool} "no" Live None "The server's order of ciphers counts.";
    TlsSessionCaching tls_session_caching "tls-session-caching" [] {bool} "yes" Live None "Resume sessions.";
    TlsSessionCacheSize tls_session_cache_size "tls-session-cache-size" [] {int(0, I32)} "20480" Live None "Sessions that can be resumed.";
    TlsSessionCacheTimeout tls_session_cache_timeout "tls-session-cache-timeout" [] {int(0, I32)} "300" Live None "Seconds they can be resumed.";
}
