//! INFO: facts and statistics, read from the pages of all processes without asking any of them.
//!
//! Fields have Redis' names where clients and exporters read them; what does not exist here (yet) has
//! the value that says so (0, -1, "no"). What only Sirocco has stands in a section of its own and in
//! fields beside Redis' that begin with `sirocco_`.
//!
//! Sums count from the start or the last CONFIG RESETSTAT. A process that was restarted begins again
//! from what its page holds.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::catalogue::{GatewayCommand, StorageCommand};
use proto::counters::{
    CallCounter, DatabaseCounter, GatewayCounter as G, WorkerCounter as W, gateway_page,
    worker_page,
};
use runtime::Role;

use crate::core::Core;
use crate::live::Live;
use crate::shared::{Listener, Page, Shared};

/// The version of Redis whose behaviour we have.
pub(crate) const REDIS_VERSION: &str = "8.0.6";

/// Writes the lines of one section.
type Write = fn(&Report, &mut String);

/// Sections in the order in which they are shown; those with `true` belong to the default.
const SECTIONS: [(&str, bool, Write); 16] = [
    ("server", true, Report::server),
    ("clients", true, Report::clients),
    ("memory", true, Report::memory),
    ("persistence", true, Report::persistence),
    ("threads", true, Report::threads),
    ("stats", true, Report::stats),
    ("replication", true, Report::replication),
    ("cpu", true, Report::cpu),
    ("modules", true, Report::modules),
    ("commandstats", false, Report::commandstats),
    ("errorstats", true, Report::errorstats),
    ("latencystats", false, Report::latencystats),
    ("cluster", true, Report::cluster),
    ("keyspace", true, Report::keyspace),
    ("keysizes", true, Report::keysizes),
    ("sirocco", true, Report::sirocco),
];

/// Sums over all processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) used: u64,
    pub(crate) used_peak: u64,
    pub(crate) resident_arenas: u64,
    /// Resident bytes of all processes.
    pub(crate) resident: u64,
    pub(crate) keys: u64,
    pub(crate) clients: u64,
    buffers: u64,
    /// Seconds in the kernel and outside, of all processes.
    cpu: (f64, f64),
}

impl Figures {
    pub(crate) fn gather(core: &Core) -> Self {
        let mut figures = Self::default();
        core.shared.with_pages(|pages| {
            let mut pids: Vec<u32> = vec![core.shared.registry().supervisor_pid];
            for page in pages {
                pids.push(page.party.pid());
                match page.id.role {
                    Role::StorageWorker => {
                        figures.used += page.level(W::UsedBytes.place());
                        figures.used_peak += page.level(W::UsedBytesPeak.place());
                        figures.resident_arenas += page.level(W::ArenaResidentBytes.place());
                        for database in 0..core.live.databases {
                            let keys = worker_page::database(database, DatabaseCounter::Keys);
                            figures.keys += page.level(keys);
                        }
                    }
                    Role::Gateway => {
                        figures.clients += page.level(G::Connections.place());
                        figures.buffers += page.level(G::InputBufferBytes.place())
                            + page.level(G::OutputBufferBytes.place());
                    }
                }
            }
            pids.sort_unstable();
            pids.dedup();
            for pid in pids.into_iter().filter(|&pid| pid != 0) {
                figures.resident += resident_bytes(pid);
                let (system, user) = cpu_seconds(pid);
                figures.cpu.0 += system;
                figures.cpu.1 += user;
            }
        });
        figures.used_peak = figures.used_peak.max(figures.used);
        figures
    }

    /// Bytes that connections take.
    pub(crate) fn client_bytes(&self) -> u64 {
        self.clients * size_of::<crate::connection::Connection>() as u64 + self.buffers
    }

    pub(crate) fn arena_ratio(&self) -> f64 {
        ratio(self.resident_arenas, self.used)
    }

    pub(crate) fn resident_ratio(&self) -> f64 {
        ratio(self.resident, self.used)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Resident bytes of a process.
fn resident_bytes(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    pages * 4096
}

/// Seconds that a process spent in the kernel and outside.
fn cpu_seconds(pid: u32) -> (f64, f64) {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let mut next = || {
        let ticks: f64 = fields
            .next()
            .and_then(|ticks| ticks.parse().ok())
            .unwrap_or(0.0);
        ticks / TICKS_PER_SECOND
    };
    let user = next();
    (next(), user)
}

/// Bytes as people read them, in Redis' form.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut value = bytes as f64;
    let mut unit = "";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.2}{unit}")
}

fn line(out: &mut String, name: &str, value: impl Display) {
    let _ = write!(out, "{name}:{value}\r\n");
}

fn zeros(out: &mut String, names: &[&str]) {
    for name in names {
        line(out, name, 0);
    }
}

impl Core {
    /// The text of INFO for these sections (lower case); none stands for the default ones.
    pub(crate) fn info(&self, wanted: &[String]) -> String {
        let asked = |word: &str| wanted.iter().any(|section| section == word);
        let everything = asked("all") || asked("everything");
        let default = wanted.is_empty() || asked("default");
        let report = Report {
            shared: Arc::clone(&self.shared),
            live: Arc::clone(&self.live),
            unix_micros: self.now.unix_micros,
            figures: Figures::gather(self),
        };
        let mut out = String::with_capacity(8192);
        for (name, by_default, write) in SECTIONS {
            if everything || (default && by_default) || asked(name) {
                if !out.is_empty() {
                    out.push_str("\r\n");
                }
                let title = if name == "cpu" {
                    "CPU".to_owned()
                } else {
                    capitalised(name)
                };
                let _ = write!(out, "# {title}\r\n");
                write(&report, &mut out);
            }
        }
        out
    }
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// What sections are written from.
struct Report {
    shared: Arc<Shared>,
    live: Arc<Live>,
    unix_micros: u64,
    figures: Figures,
}

impl Report {
    fn sum(&self, role: Role, take: impl Fn(&Page) -> u64) -> u64 {
        self.shared.with_pages(|pages| {
            pages
                .iter()
                .filter(|page| page.id.role == role)
                .map(&take)
                .sum()
        })
    }

    fn workers(&self, counter: W) -> u64 {
        self.sum(Role::StorageWorker, |page| {
            page.since_reset(counter.place())
        })
    }

    fn workers_now(&self, counter: W) -> u64 {
        self.sum(Role::StorageWorker, |page| page.level(counter.place()))
    }

    fn gateways(&self, counter: G) -> u64 {
        self.sum(Role::Gateway, |page| page.since_reset(counter.place()))
    }

    fn gateways_now(&self, counter: G) -> u64 {
        self.sum(Role::Gateway, |page| page.level(counter.place()))
    }

    fn gateway_max(&self, counter: G) -> u64 {
        self.shared.with_pages(|pages| {
            let pages = pages.iter().filter(|page| page.id.role == Role::Gateway);
            pages
                .map(|page| page.level(counter.place()))
                .max()
                .unwrap_or(0)
        })
    }

    fn server(&self, out: &mut String) {
        let registry = self.shared.registry();
        let settings = &self.live.settings;
        let micros = self.unix_micros;
        let uptime = (micros / 1000).saturating_sub(registry.started_unix_ms) / 1000;
        let (system, release, machine) = nix::sys::utsname::uname().map_or_else(
            |_| (String::from("Linux"), String::new(), String::new()),
            |name| {
                let text = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
                (
                    text(name.sysname()),
                    text(name.release()),
                    text(name.machine()),
                )
            },
        );
        line(out, "redis_version", REDIS_VERSION);
        line(out, "redis_git_sha1", "00000000");
        line(out, "redis_git_dirty", 0);
        line(
            out,
            "redis_build_id",
            format_args!("{:016x}", proto::catalogue::fingerprint()),
        );
        line(out, "redis_mode", "standalone");
        line(out, "os", format_args!("{system} {release} {machine}"));
        line(out, "arch_bits", usize::BITS);
        line(out, "monotonic_clock", "POSIX clock_gettime");
        line(out, "multiplexing_api", "epoll");
        line(out, "atomicvar_api", "rust-atomics");
        line(out, "gcc_version", "0.0.0");
        line(out, "process_id", registry.supervisor_pid);
        line(out, "process_supervised", "no");
        line(out, "run_id", &registry.run_id);
        line(out, "tcp_port", settings.port());
        line(out, "server_time_usec", micros);
        line(out, "uptime_in_seconds", uptime);
        line(out, "uptime_in_days", uptime / 86_400);
        line(out, "hz", settings.hz());
        line(out, "configured_hz", settings.hz());
        line(out, "lru_clock", micros / 1_000_000 % (1 << 24));
        line(out, "executable", &registry.executable);
        line(out, "config_file", &registry.config_file);
        line(
            out,
            "io_threads_active",
            u8::from(registry.gateway_threads > 1),
        );
        self.listeners(out);
        line(out, "sirocco_version", env!("CARGO_PKG_VERSION"));
    }

    fn listeners(&self, out: &mut String) {
        let mut tcp = String::new();
        let mut port = String::new();
        let mut unix = Vec::new();
        for listener in &self.shared.listeners {
            match listener {
                Listener::Tcp(address) => {
                    let (host, number) = address.rsplit_once(':').unwrap_or((address, "0"));
                    let host = host.trim_start_matches('[').trim_end_matches(']');
                    let host = match host {
                        "0.0.0.0" => "*",
                        "::" => "-::*",
                        host => host,
                    };
                    let _ = write!(tcp, ",bind={host}");
                    number.clone_into(&mut port);
                }
                Listener::Unix(path) => unix.push(path),
            }
        }
        let mut number = 0;
        if !tcp.is_empty() {
            let _ = write!(out, "listener0:name=tcp{tcp},port={port}\r\n");
            number = 1;
        }
        for path in unix {
            let _ = write!(out, "listener{number}:name=unix,bind={path}\r\n");
            number += 1;
        }
    }

    fn clients(&self, out: &mut String) {
        line(out, "connected_clients", self.figures.clients);
        line(out, "cluster_connections", 0);
        line(out, "maxclients", self.live.settings.maxclients());
        line(
            out,
            "client_recent_max_input_buffer",
            self.gateway_max(G::InputBufferBytesMax),
        );
        line(
            out,
            "client_recent_max_output_buffer",
            self.gateway_max(G::OutputBufferBytesMax),
        );
        line(out, "blocked_clients", self.gateways_now(G::BlockedClients));
        zeros(
            out,
            &[
                "tracking_clients",
                "pubsub_clients",
                "watching_clients",
                "clients_in_timeout_table",
                "total_watched_keys",
                "total_blocking_keys",
                "total_blocking_keys_on_nokey",
            ],
        );
    }

    fn memory(&self, out: &mut String) {
        let figures = &self.figures;
        let settings = &self.live.settings;
        let overhead = figures.client_bytes();
        let dataset = figures.used.saturating_sub(overhead);
        let total_system = total_system_memory();
        let with_human = |out: &mut String, name: &str, bytes: u64| {
            line(out, name, bytes);
            line(out, &format!("{name}_human"), human(bytes));
        };
        let percent = |part: u64, whole: u64| format!("{:.2}%", 100.0 * ratio(part, whole));
        with_human(out, "used_memory", figures.used);
        with_human(out, "used_memory_rss", figures.resident);
        with_human(out, "used_memory_peak", figures.used_peak);
        line(
            out,
            "used_memory_peak_perc",
            percent(figures.used, figures.used_peak),
        );
        line(out, "used_memory_overhead", overhead);
        line(out, "used_memory_startup", 0);
        line(out, "used_memory_dataset", dataset);
        line(
            out,
            "used_memory_dataset_perc",
            percent(dataset, figures.used),
        );
        line(out, "allocator_allocated", figures.used);
        line(out, "allocator_active", figures.resident_arenas);
        line(out, "allocator_resident", figures.resident_arenas);
        line(out, "allocator_muzzy", 0);
        with_human(out, "total_system_memory", total_system);
        line(out, "used_memory_lua", 0);
        line(out, "used_memory_vm_eval", 0);
        line(out, "used_memory_lua_human", human(0));
        line(out, "used_memory_scripts_eval", 0);
        line(out, "number_of_cached_scripts", 0);
        line(out, "number_of_functions", 0);
        line(out, "number_of_libraries", 0);
        line(out, "used_memory_vm_functions", 0);
        with_human(out, "used_memory_vm_total", 0);
        line(out, "used_memory_functions", 0);
        with_human(out, "used_memory_scripts", 0);
        with_human(out, "maxmemory", settings.maxmemory());
        line(out, "maxmemory_policy", settings.maxmemory_policy().word());
        self.allocator(out);
    }

    /// The second half of the memory section.
    fn allocator(&self, out: &mut String) {
        let figures = &self.figures;
        let spare = figures.resident_arenas.saturating_sub(figures.used);
        line(
            out,
            "allocator_frag_ratio",
            format_args!("{:.2}", figures.arena_ratio()),
        );
        line(out, "allocator_frag_bytes", spare);
        line(out, "allocator_rss_ratio", format_args!("{:.2}", 1.0));
        line(out, "allocator_rss_bytes", 0);
        let beside = figures.resident.saturating_sub(figures.resident_arenas);
        let rss = ratio(figures.resident, figures.resident_arenas);
        line(out, "rss_overhead_ratio", format_args!("{rss:.2}"));
        line(out, "rss_overhead_bytes", beside);
        line(
            out,
            "mem_fragmentation_ratio",
            format_args!("{:.2}", figures.resident_ratio()),
        );
        line(
            out,
            "mem_fragmentation_bytes",
            figures.resident.saturating_sub(figures.used),
        );
        zeros(
            out,
            &[
                "mem_not_counted_for_evict",
                "mem_replication_backlog",
                "mem_total_replication_buffers",
                "mem_replica_full_sync_buffer",
                "mem_clients_slaves",
            ],
        );
        line(out, "mem_clients_normal", figures.client_bytes());
        zeros(out, &["mem_cluster_links", "mem_aof_buffer"]);
        line(out, "mem_allocator", "sirocco-arena");
        zeros(
            out,
            &[
                "mem_overhead_db_hashtable_rehashing",
                "active_defrag_running",
            ],
        );
        line(
            out,
            "lazyfree_pending_objects",
            self.workers_now(W::LazyFreePending),
        );
        line(out, "lazyfreed_objects", self.workers(W::LazyFreed));
    }

    fn persistence(&self, out: &mut String) {
        let started = self.shared.registry().started_unix_ms / 1000;
        zeros(
            out,
            &[
                "loading",
                "async_loading",
                "current_cow_peak",
                "current_cow_size",
            ],
        );
        line(out, "current_cow_size_age", 0);
        line(out, "current_fork_perc", "0.00");
        zeros(
            out,
            &["current_save_keys_processed", "current_save_keys_total"],
        );
        line(
            out,
            "rdb_changes_since_last_save",
            self.workers_now(W::Dirty),
        );
        line(out, "rdb_bgsave_in_progress", 0);
        line(out, "rdb_last_save_time", started);
        line(out, "rdb_last_bgsave_status", "ok");
        line(out, "rdb_last_bgsave_time_sec", -1);
        line(out, "rdb_current_bgsave_time_sec", -1);
        zeros(
            out,
            &[
                "rdb_saves",
                "rdb_last_cow_size",
                "rdb_last_load_keys_expired",
                "rdb_last_load_keys_loaded",
            ],
        );
        line(
            out,
            "aof_enabled",
            u8::from(self.live.settings.appendonly()),
        );
        zeros(out, &["aof_rewrite_in_progress", "aof_rewrite_scheduled"]);
        line(out, "aof_last_rewrite_time_sec", -1);
        line(out, "aof_current_rewrite_time_sec", -1);
        line(out, "aof_last_bgrewrite_status", "ok");
        zeros(out, &["aof_rewrites", "aof_rewrites_consecutive_failures"]);
        line(out, "aof_last_write_status", "ok");
        zeros(
            out,
            &[
                "aof_last_cow_size",
                "module_fork_in_progress",
                "module_fork_last_cow_size",
            ],
        );
    }

    fn threads(&self, out: &mut String) {
        self.shared.with_pages(|pages| {
            let threads = pages.iter().filter(|page| page.id.role == Role::Gateway);
            for (number, page) in threads.enumerate() {
                let _ = write!(
                    out,
                    "io_thread_{number}:clients={},reads={},writes={}\r\n",
                    page.level(G::Connections.place()),
                    page.since_reset(G::ReadsProcessed.place()),
                    page.since_reset(G::WritesProcessed.place()),
                );
            }
        });
    }

    fn stats(&self, out: &mut String) {
        let rates = &self.shared.rates;
        let kilobytes = |rate: u64| format!("{:.2}", rate as f64 / 1024.0);
        let input = rates.input_bytes_per_second.load(Ordering::Relaxed);
        let output = rates.output_bytes_per_second.load(Ordering::Relaxed);
        line(
            out,
            "total_connections_received",
            self.gateways(G::ConnectionsReceived),
        );
        line(out, "total_commands_processed", self.gateways(G::Commands));
        let commands = rates.commands_per_second.load(Ordering::Relaxed);
        line(out, "instantaneous_ops_per_sec", commands);
        line(
            out,
            "total_net_input_bytes",
            self.gateways(G::NetInputBytes),
        );
        line(
            out,
            "total_net_output_bytes",
            self.gateways(G::NetOutputBytes),
        );
        zeros(
            out,
            &["total_net_repl_input_bytes", "total_net_repl_output_bytes"],
        );
        line(out, "instantaneous_input_kbps", kilobytes(input));
        line(out, "instantaneous_output_kbps", kilobytes(output));
        line(out, "instantaneous_input_repl_kbps", "0.00");
        line(out, "instantaneous_output_repl_kbps", "0.00");
        line(
            out,
            "rejected_connections",
            self.gateways(G::ConnectionsRejected),
        );
        zeros(
            out,
            &[
                "sync_full",
                "sync_partial_ok",
                "sync_partial_err",
                "expired_subkeys",
            ],
        );
        line(out, "expired_keys", self.workers(W::Expired));
        line(out, "expired_stale_perc", "0.00");
        zeros(
            out,
            &[
                "expired_time_cap_reached_count",
                "expire_cycle_cpu_milliseconds",
            ],
        );
        line(out, "evicted_keys", self.workers(W::Evicted));
        zeros(
            out,
            &[
                "evicted_clients",
                "evicted_scripts",
                "total_eviction_exceeded_time",
                "current_eviction_exceeded_time",
            ],
        );
        line(out, "keyspace_hits", self.workers(W::KeyspaceHits));
        line(out, "keyspace_misses", self.workers(W::KeyspaceMisses));
        self.stats_of_other_parts(out);
        self.stats_of_sockets(out);
    }

    /// Statistics of parts that do not exist here.
    #[expect(clippy::unused_self, reason = "one of several parts of a section")]
    fn stats_of_other_parts(&self, out: &mut String) {
        zeros(
            out,
            &[
                "pubsub_channels",
                "pubsub_patterns",
                "pubsubshard_channels",
                "latest_fork_usec",
                "total_forks",
                "migrate_cached_sockets",
                "slave_expires_tracked_keys",
                "active_defrag_hits",
                "active_defrag_misses",
                "active_defrag_key_hits",
                "active_defrag_key_misses",
                "total_active_defrag_time",
                "current_active_defrag_time",
                "tracking_total_keys",
                "tracking_total_items",
                "tracking_total_prefixes",
                "unexpected_error_replies",
            ],
        );
    }

    fn stats_of_sockets(&self, out: &mut String) {
        let errors: u64 = self.error_counts().values().sum();
        line(out, "total_error_replies", errors);
        line(out, "dump_payload_sanitizations", 0);
        line(
            out,
            "total_reads_processed",
            self.gateways(G::ReadsProcessed),
        );
        line(
            out,
            "total_writes_processed",
            self.gateways(G::WritesProcessed),
        );
        zeros(
            out,
            &[
                "io_threaded_reads_processed",
                "io_threaded_writes_processed",
            ],
        );
        line(
            out,
            "client_query_buffer_limit_disconnections",
            self.gateways(G::QueryLimitDisconnections),
        );
        line(
            out,
            "client_output_buffer_limit_disconnections",
            self.gateways(G::OutputLimitDisconnections),
        );
        zeros(out, &["reply_buffer_shrinks", "reply_buffer_expands"]);
        line(out, "eventloop_cycles", self.gateways(G::Sleeps));
        zeros(
            out,
            &[
                "eventloop_duration_sum",
                "eventloop_duration_cmd_sum",
                "instantaneous_eventloop_cycles_per_sec",
                "instantaneous_eventloop_duration_usec",
            ],
        );
        line(
            out,
            "acl_access_denied_auth",
            self.gateways(G::AuthFailures),
        );
        zeros(
            out,
            &[
                "acl_access_denied_cmd",
                "acl_access_denied_key",
                "acl_access_denied_channel",
            ],
        );
    }

    fn replication(&self, out: &mut String) {
        line(out, "role", "master");
        line(out, "connected_slaves", 0);
        line(out, "master_failover_state", "no-failover");
        line(out, "master_replid", &self.shared.registry().run_id);
        line(out, "master_replid2", "0".repeat(40));
        line(out, "master_repl_offset", 0);
        line(out, "second_repl_offset", -1);
        line(out, "repl_backlog_active", 0);
        line(
            out,
            "repl_backlog_size",
            self.live.settings.repl_backlog_size(),
        );
        zeros(
            out,
            &["repl_backlog_first_byte_offset", "repl_backlog_histlen"],
        );
    }

    fn cpu(&self, out: &mut String) {
        let (system, user) = self.figures.cpu;
        let seconds = |value: f64| format!("{value:.6}");
        line(out, "used_cpu_sys", seconds(system));
        line(out, "used_cpu_user", seconds(user));
        line(out, "used_cpu_sys_children", seconds(0.0));
        line(out, "used_cpu_user_children", seconds(0.0));
        let (system, user) = cpu_seconds(std::process::id());
        line(out, "used_cpu_sys_main_thread", seconds(system));
        line(out, "used_cpu_user_main_thread", seconds(user));
    }

    #[expect(
        clippy::unused_self,
        reason = "one signature for all sections; there are no modules"
    )]
    fn modules(&self, _: &mut String) {}

    fn commandstats(&self, out: &mut String) {
        let write = |out: &mut String, name: &str, calls: u64, usec: u64, rejected: u64, failed| {
            if calls + rejected > 0 {
                let per_call = ratio(usec, calls);
                let _ = write!(
                    out,
                    "cmdstat_{name}:calls={calls},usec={usec},usec_per_call={per_call:.2},\
                     rejected_calls={rejected},failed_calls={failed}\r\n"
                );
            }
        };
        for command in GatewayCommand::ALL {
            let of = |counter| {
                let place = gateway_page::call(command, counter);
                self.sum(Role::Gateway, |page| page.since_reset(place))
            };
            let rejected = gateway_page::call_rejected(command);
            let rejected = self.sum(Role::Gateway, |page| page.since_reset(rejected));
            let (calls, usec) = (of(CallCounter::Calls), of(CallCounter::Micros));
            write(
                out,
                command.name(),
                calls,
                usec,
                rejected,
                of(CallCounter::Failed),
            );
        }
        for command in StorageCommand::ALL {
            let of = |counter| {
                let place = worker_page::call(command, counter);
                self.sum(Role::StorageWorker, |page| page.since_reset(place))
            };
            let rejected = gateway_page::storage_rejected(command);
            let rejected = self.sum(Role::Gateway, |page| page.since_reset(rejected));
            let (calls, usec) = (of(CallCounter::Calls), of(CallCounter::Micros));
            write(
                out,
                command.name(),
                calls,
                usec,
                rejected,
                of(CallCounter::Failed),
            );
        }
    }

    /// Errors by first word: those of the gateway exactly; those of workers are counted per command.
    fn error_counts(&self) -> BTreeMap<String, u64> {
        let mut counts = self.shared.errors();
        let failed: u64 = StorageCommand::ALL
            .iter()
            .map(|&command| {
                let place = worker_page::call(command, CallCounter::Failed);
                self.sum(Role::StorageWorker, |page| page.since_reset(place))
            })
            .sum();
        if failed > 0 {
            *counts.entry("ERR".to_owned()).or_default() += failed;
        }
        counts
    }

    fn errorstats(&self, out: &mut String) {
        for (code, count) in self.error_counts() {
            let _ = write!(out, "errorstat_{code}:count={count}\r\n");
        }
    }

    #[expect(
        clippy::unused_self,
        reason = "one signature for all sections; not measured yet"
    )]
    fn latencystats(&self, _: &mut String) {}

    #[expect(clippy::unused_self, reason = "one signature for all sections")]
    fn cluster(&self, out: &mut String) {
        line(out, "cluster_enabled", 0);
    }

    fn keyspace(&self, out: &mut String) {
        for database in 0..self.live.databases {
            let level = |counter| {
                let place = worker_page::database(database, counter);
                self.sum(Role::StorageWorker, |page| page.level(place))
            };
            let keys = level(DatabaseCounter::Keys);
            if keys == 0 {
                continue;
            }
            let expires = level(DatabaseCounter::Expires);
            // The average over workers, each weighted by its keys with an expiry.
            let weighted = self.sum(Role::StorageWorker, |page| {
                let of = |counter| page.level(worker_page::database(database, counter));
                of(DatabaseCounter::Expires).saturating_mul(of(DatabaseCounter::AverageTtlMillis))
            });
            let ttl = weighted.checked_div(expires).unwrap_or(0);
            let sub = level(DatabaseCounter::KeysWithExpiringFields);
            let _ = write!(
                out,
                "db{database}:keys={keys},expires={expires},avg_ttl={ttl},subexpiry={sub}\r\n"
            );
        }
    }

    #[expect(
        clippy::unused_self,
        reason = "one signature for all sections; not measured yet"
    )]
    fn keysizes(&self, _: &mut String) {}

    fn sirocco(&self, out: &mut String) {
        let registry = self.shared.registry();
        line(out, "sirocco_version", env!("CARGO_PKG_VERSION"));
        line(out, "gateway_threads", registry.gateway_threads);
        line(out, "storage_workers", registry.storage_workers);
        line(out, "request_rings_full", self.gateways(G::RequestRingFull));
        line(out, "reply_rings_full", self.workers(W::ReplyRingFull));
        line(out, "worker_batches", self.workers(W::Batches));
        line(out, "worker_sleeps", self.workers(W::Sleeps));
        line(out, "worker_takeovers", self.workers(W::Takeovers));
        line(out, "worker_losses", self.workers(W::Losses));
        line(out, "protocol_errors", self.gateways(G::ProtocolErrors));
        line(
            out,
            "idle_disconnections",
            self.gateways(G::IdleDisconnections),
        );
        self.shared.with_pages(|pages| {
            for page in pages
                .iter()
                .filter(|page| page.id.role == Role::StorageWorker)
            {
                let keys = worker_page::database(0, DatabaseCounter::Keys);
                let _ = write!(
                    out,
                    "storage_worker_{}:pid={},state={},commands={},used_bytes={},db0_keys={}\r\n",
                    page.id.index,
                    page.party.pid(),
                    page.party.state(),
                    page.since_reset(W::Commands.place()),
                    page.level(W::UsedBytes.place()),
                    page.level(keys),
                );
            }
        });
    }
}

fn total_system_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB"));
    kilobytes
        .and_then(|number| number.trim().parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}
