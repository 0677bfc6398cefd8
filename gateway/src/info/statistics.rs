//! Sections that count: statistics, commands, errors, keys.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use proto::catalogue::{GatewayCommand, StorageCommand, flag};
use proto::counters::worker_page::OWN_WORDS;
use proto::counters::{
    BrokerCounter as B, CallCounter, DatabaseCounter, ErrorCounter, GatewayCounter as G,
    WorkerCounter as W, gateway_page, worker_page,
};
use proto::latency;
use proto::settings::Setting;
use runtime::Role;

use super::figures::ratio;
use super::{Report, line, zeros};
use crate::shared::Page;

impl Report {
    pub(super) fn stats(&self, out: &mut String) {
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
        zeros(out, &["sync_full", "sync_partial_ok", "sync_partial_err"]);
        line(out, "expired_subkeys", self.workers(W::ExpiredFields));
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
        line(out, "pubsub_channels", self.broker_now(B::Channels));
        line(out, "pubsub_patterns", self.broker_now(B::Patterns));
        line(
            out,
            "pubsubshard_channels",
            self.broker_now(B::ShardChannels),
        );
        self.stats_of_other_parts(out);
        self.stats_of_sockets(out);
        let delivered = self.gateways(G::MessagesDelivered);
        line(out, "sirocco_pubsub_messages_delivered", delivered);
        let uncertain = self.gateways(G::MessagesUncertain);
        line(out, "sirocco_pubsub_messages_uncertain", uncertain);
    }

    /// Statistics of parts that do not exist here.
    #[expect(clippy::unused_self, reason = "one of several parts of a section")]
    pub(super) fn stats_of_other_parts(&self, out: &mut String) {
        zeros(
            out,
            &[
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

    pub(super) fn stats_of_sockets(&self, out: &mut String) {
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

    pub(super) fn commandstats(&self, out: &mut String) {
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
                let inner = worker_page::inner(command, counter);
                self.sum(Role::Gateway, |page| page.since_reset(place))
                    + self.sum(Role::StorageWorker, |page| page.since_reset(inner))
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
        // What processes say to each other is nobody's command.
        let of_clients = |command: &StorageCommand| !command.spec().flags.has(flag::INTERNAL);
        for command in StorageCommand::ALL.into_iter().filter(of_clients) {
            let of = |counter| {
                let place = worker_page::call(command, counter);
                self.sum(Role::StorageWorker, |page| page.since_reset(place))
            };
            let place = gateway_page::storage_rejected(command);
            let refused = worker_page::call_rejected(command);
            let rejected = self.sum(Role::Gateway, |page| page.since_reset(place))
                + self.sum(Role::StorageWorker, |page| page.since_reset(refused));
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

    /// Errors by first word, of the gateway and of the workers.
    pub(super) fn error_counts(&self) -> BTreeMap<String, u64> {
        let mut counts = self.shared.errors();
        for &error in ErrorCounter::ALL {
            let place = worker_page::error(error);
            let count = self.sum(Role::StorageWorker, |page| page.since_reset(place));
            if count > 0 {
                *counts.entry(error.code().to_owned()).or_default() += count;
            }
        }
        self.shared.with_pages(|pages| {
            let workers = pages
                .iter()
                .filter(|page| page.id.role == Role::StorageWorker);
            for (page, number) in workers.flat_map(|page| (0..OWN_WORDS).map(move |at| (page, at)))
            {
                let count = page.since_reset(worker_page::word_count(number));
                if count > 0 {
                    let parts = worker_page::word_text(number).map(|place| page.level(place));
                    let word: Vec<u8> = parts.flat_map(u64::to_le_bytes).collect();
                    let word = String::from_utf8_lossy(&word);
                    *counts
                        .entry(word.trim_end_matches('\0').to_owned())
                        .or_default() += count;
                }
            }
        });
        counts
    }

    pub(super) fn errorstats(&self, out: &mut String) {
        for (code, count) in self.error_counts() {
            let _ = write!(out, "errorstat_{code}:count={count}\r\n");
        }
    }

    pub(super) fn latencystats(&self, out: &mut String) {
        let settings = &self.live.settings;
        if !settings.latency_tracking() {
            return;
        }
        let percentiles = settings.print(Setting::LatencyTrackingInfoPercentiles);
        let percentiles: Vec<&str> = percentiles.split_whitespace().collect();
        let mut write = |name: &str, role: Role, calls: usize, first: usize| {
            let counts = self.histogram(role, calls, first);
            if counts.iter().all(|&count| count == 0) {
                return;
            }
            let shares = percentiles.iter().map(|word| {
                let ns = latency::percentile(&counts, word.parse().unwrap_or_default());
                format!("p{word}={}.{:03}", ns / 1000, ns % 1000)
            });
            let shares: Vec<String> = shares.collect();
            let name = format!("latency_percentiles_usec_{name}");
            line(out, &name, shares.join(","));
        };
        for command in GatewayCommand::ALL {
            let first = gateway_page::latency(command, 0);
            let calls = gateway_page::call(command, CallCounter::Calls);
            write(command.name(), Role::Gateway, calls, first);
        }
        for command in StorageCommand::ALL {
            let first = worker_page::latency(command, 0);
            let calls = worker_page::call(command, CallCounter::Calls);
            write(command.name(), Role::StorageWorker, calls, first);
        }
    }

    /// The sum of a command's histograms, which begin at this place of each page. Those without any
    /// `calls` are not looked at: that alone would give them memory.
    fn histogram(&self, role: Role, calls: usize, first: usize) -> [u64; latency::BUCKETS] {
        let mut counts = [0; latency::BUCKETS];
        self.shared.with_pages(|pages| {
            let pages = pages.iter().filter(|page| page.id.role == role);
            for page in pages.filter(|page| page.level(calls) > 0) {
                for (bucket, count) in counts.iter_mut().enumerate() {
                    *count += page.since_reset(first + bucket);
                }
            }
        });
        counts
    }

    pub(super) fn keyspace(&self, out: &mut String) {
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
            let share = |page: &Page| {
                let of = |counter| page.level(worker_page::database(database, counter));
                let weight = of(DatabaseCounter::Expires);
                u128::from(weight) * u128::from(of(DatabaseCounter::AverageTtlMillis))
            };
            let weighted: u128 = self.shared.with_pages(|pages| {
                let workers = pages
                    .iter()
                    .filter(|page| page.id.role == Role::StorageWorker);
                workers.map(share).sum()
            });
            let ttl = weighted.checked_div(u128::from(expires)).unwrap_or(0);
            let sub = level(DatabaseCounter::KeysWithExpiringFields);
            let _ = write!(
                out,
                "db{database}:keys={keys},expires={expires},avg_ttl={ttl},subexpiry={sub}\r\n"
            );
        }
    }

    pub(super) fn keysizes(&self, _: &mut String) {}
}
