//! Sections about the system: server, clients, threads, replication, CPU, cluster, and our own.

use std::fmt::Write as _;

use proto::counters::{DatabaseCounter, GatewayCounter as G, WorkerCounter as W, worker_page};
use runtime::Role;

use super::figures::cpu_seconds;
use super::{REDIS_VERSION, Report, line, zeros};
use crate::shared::Listener;

impl Report {
    pub(super) fn server(&self, out: &mut String) {
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

    pub(super) fn listeners(&self, out: &mut String) {
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

    pub(super) fn clients(&self, out: &mut String) {
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
        line(out, "tracking_clients", 0);
        line(
            out,
            "pubsub_clients",
            self.gateways_now(G::SubscribedClients),
        );
        line(
            out,
            "watching_clients",
            self.gateways_now(G::WatchingClients),
        );
        line(
            out,
            "clients_in_timeout_table",
            self.workers_now(W::WaitersTimed),
        );
        line(out, "total_watched_keys", self.workers_now(W::WatchedKeys));
        line(out, "total_blocking_keys", self.workers_now(W::WaitedKeys));
        line(
            out,
            "total_blocking_keys_on_nokey",
            self.workers_now(W::WaitedKeysWithoutKey),
        );
    }

    pub(super) fn threads(&self, out: &mut String) {
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

    pub(super) fn replication(&self, out: &mut String) {
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

    pub(super) fn cpu(&self, out: &mut String) {
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

    pub(super) fn modules(&self, _: &mut String) {}

    #[expect(clippy::unused_self, reason = "one signature for all sections")]
    pub(super) fn cluster(&self, out: &mut String) {
        line(out, "cluster_enabled", 0);
    }

    pub(super) fn sirocco(&self, out: &mut String) {
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
        line(out, "worker_visits", self.workers(W::Visits));
        line(
            out,
            "scripts_over_all_workers",
            self.workers(W::ScriptsOverAll),
        );
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
