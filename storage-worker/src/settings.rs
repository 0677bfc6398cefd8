//! The settings that a storage worker looks at while it works, as plain fields.
//!
//! They are read from the registry at start and whenever its version changes, so no command ever
//! looks a setting up by name.

use crate::collections::list::Fill;
use crate::keyspace::{ClockMode, EvictionPolicy, Freeing, LazyFree};
use proto::settings::{MaxmemoryPolicy, Settings};

/// What commands look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineSettings {
    /// `proto-max-bulk-len`: longest string in bytes.
    pub bulk_bytes_max: u64,
    /// `databases`: numbers below this may be selected.
    pub databases: u16,
    /// Whether the eviction policy counts accesses (LFU) instead of dating them (LRU).
    pub policy_is_lfu: bool,
    /// Whether the eviction policy dates accesses.
    pub policy_is_lru: bool,
    /// `rdbcompression`: strings in snapshots and payloads are compressed.
    pub compresses_payloads: bool,
    /// Whether small integers count as shared by all keys: unless eviction looks at each value's clock.
    pub shares_integers: bool,
    /// `lazyfree-lazy-user-flush`: FLUSHDB and FLUSHALL without ASYNC or SYNC free in slices.
    pub flush_is_lazy: bool,
    /// `lazyfree-lazy-user-del`: DEL works as UNLINK.
    pub del_is_lazy: bool,
    /// `list-max-listpack-size`.
    pub list_fill: Fill,
    /// `list-compress-depth`.
    pub list_compress_depth: u32,
    /// `DEBUG QUICKLIST-PACKED-THRESHOLD`: elements of so many bytes get a node of their own; 0: as
    /// `list_fill` says.
    pub list_plain_from: u32,
    /// How large hashes, sets, sorted sets, nodes of streams and HyperLogLogs may be in their packed form.
    pub limits: Limits,
    /// `min-replicas-to-write` asks for some, and there is no replication.
    pub lacks_replicas: bool,
    /// `DEBUG SET-ACTIVE-EXPIRE`: whether expired keys are removed in the background.
    pub active_expire: bool,
}

/// From which size on hashes, sets, sorted sets, streams and HyperLogLogs are kept in other forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// `hash-max-listpack-entries`: fields of a packed hash.
    pub hash_entries: usize,
    /// `hash-max-listpack-value`: bytes of a name or value in it.
    pub hash_value_bytes: usize,
    /// `set-max-intset-entries`: members of a set of integers.
    pub set_integers: usize,
    /// `set-max-listpack-entries`: members of a packed set.
    pub set_entries: usize,
    /// `set-max-listpack-value`: bytes of a member in it.
    pub set_value_bytes: usize,
    /// `zset-max-listpack-entries`: members of a packed sorted set.
    pub sorted_set_entries: usize,
    /// `zset-max-listpack-value`: bytes of a member in it.
    pub sorted_set_value_bytes: usize,
    /// `hll-sparse-max-bytes`: bytes of a sparse HyperLogLog.
    pub hyperloglog_sparse_bytes: usize,
    /// `stream-node-max-bytes`: bytes of a node of a stream; 0: no limit.
    pub stream_node_bytes: usize,
    /// `stream-node-max-entries`: entries of it; 0: no limit.
    pub stream_node_entries: usize,
}

impl Limits {
    /// The limits that an operator has set.
    pub fn new(settings: &Settings) -> Self {
        fn bytes<T: TryInto<usize>>(number: T) -> usize {
            number.try_into().unwrap_or(usize::MAX)
        }
        Self {
            hash_entries: bytes(settings.hash_max_listpack_entries()),
            hash_value_bytes: bytes(settings.hash_max_listpack_value()),
            set_integers: bytes(settings.set_max_intset_entries()),
            set_entries: bytes(settings.set_max_listpack_entries()),
            set_value_bytes: bytes(settings.set_max_listpack_value()),
            sorted_set_entries: bytes(settings.zset_max_listpack_entries()),
            sorted_set_value_bytes: bytes(settings.zset_max_listpack_value()),
            hyperloglog_sparse_bytes: bytes(settings.hll_sparse_max_bytes()),
            stream_node_bytes: bytes(settings.stream_node_max_bytes()),
            stream_node_entries: bytes(settings.stream_node_max_entries()),
        }
    }
}

/// What eviction goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// `maxmemory` of the whole system; 0 for none.
    pub bytes: u64,
    /// `maxmemory-policy`.
    pub policy: EvictionPolicy,
    /// `maxmemory-samples`.
    pub samples: usize,
}

impl EngineSettings {
    /// Takes over what an operator has set; what DEBUG alone can set stays.
    pub fn update(&mut self, settings: &Settings) {
        self.bulk_bytes_max = settings.proto_max_bulk_len();
        self.policy_is_lfu = matches!(
            policy(settings),
            EvictionPolicy::AllKeysLfu | EvictionPolicy::VolatileLfu
        );
        self.policy_is_lru = matches!(
            policy(settings),
            EvictionPolicy::AllKeysLru | EvictionPolicy::VolatileLru
        );
        self.compresses_payloads = settings.rdbcompression();
        let has_clocks = self.policy_is_lru || self.policy_is_lfu;
        self.shares_integers = settings.maxmemory() == 0 || !has_clocks;
        self.flush_is_lazy = settings.lazyfree_lazy_user_flush();
        self.del_is_lazy = settings.lazyfree_lazy_user_del();
        self.list_fill = Fill::new(settings.list_max_listpack_size());
        // More nodes than that no list can have.
        self.list_compress_depth = u32::try_from(settings.list_compress_depth()).unwrap_or(0);
        self.limits = Limits::new(settings);
        self.lacks_replicas = settings.asks_for_replicas();
    }

    /// The settings of a system that starts.
    pub fn new(settings: &Settings) -> Self {
        let databases = u16::try_from(settings.databases()).unwrap_or(u16::MAX);
        let mut engine = Self {
            bulk_bytes_max: 0,
            databases,
            policy_is_lfu: false,
            policy_is_lru: false,
            compresses_payloads: true,
            shares_integers: true,
            flush_is_lazy: false,
            del_is_lazy: false,
            list_fill: Fill::default(),
            list_compress_depth: 0,
            list_plain_from: 0,
            limits: Limits::default(),
            lacks_replicas: false,
            active_expire: true,
        };
        engine.update(settings);
        engine
    }
}

impl MemoryLimit {
    /// The limit that an operator has set.
    pub fn new(settings: &Settings) -> Self {
        Self {
            bytes: settings.maxmemory(),
            policy: policy(settings),
            samples: usize::try_from(settings.maxmemory_samples()).unwrap_or(1),
        }
    }
}

/// How access clocks are kept under these settings.
pub fn clock_mode(settings: &Settings) -> ClockMode {
    let number = |value: i64| u32::try_from(value).unwrap_or(u32::MAX);
    let log_factor = number(settings.lfu_log_factor());
    policy(settings).clock_mode(log_factor, number(settings.lfu_decay_time()))
}

/// How values are freed that no client asked to be deleted under these settings.
pub fn lazy_free(settings: &Settings) -> LazyFree {
    let freeing = |is_lazy| {
        if is_lazy {
            Freeing::Lazy
        } else {
            Freeing::Plain
        }
    };
    LazyFree {
        overwritten: freeing(settings.lazyfree_lazy_server_del()),
        expired: freeing(settings.lazyfree_lazy_expire()),
        evicted: freeing(settings.lazyfree_lazy_eviction()),
    }
}

fn policy(settings: &Settings) -> EvictionPolicy {
    match settings.maxmemory_policy() {
        MaxmemoryPolicy::Noeviction => EvictionPolicy::NoEviction,
        MaxmemoryPolicy::AllkeysLru => EvictionPolicy::AllKeysLru,
        MaxmemoryPolicy::AllkeysLfu => EvictionPolicy::AllKeysLfu,
        MaxmemoryPolicy::AllkeysRandom => EvictionPolicy::AllKeysRandom,
        MaxmemoryPolicy::VolatileLru => EvictionPolicy::VolatileLru,
        MaxmemoryPolicy::VolatileLfu => EvictionPolicy::VolatileLfu,
        MaxmemoryPolicy::VolatileRandom => EvictionPolicy::VolatileRandom,
        MaxmemoryPolicy::VolatileTtl => EvictionPolicy::VolatileTtl,
    }
}
