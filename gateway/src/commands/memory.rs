//! MEMORY: what is known of the use of memory, summed over all processes.

use std::fmt::Write as _;

use proto::counters::WorkerCounter;
use proto::resp::ReplyWriter;
use runtime::Role;

use crate::core::Core;
use crate::info::Figures;

/// A name and a number of MEMORY STATS.
#[derive(Debug)]
pub(super) enum Stat {
    Bytes(&'static str, u64),
    Ratio(&'static str, f64),
}

/// The numbers of MEMORY STATS, under Redis' names.
pub(super) fn stats(core: &Core) -> Vec<Stat> {
    let figures = Figures::gather(core);
    let clients = figures.client_bytes();
    let overhead = clients;
    let dataset = figures.used.saturating_sub(overhead);
    let per_key = figures.used.checked_div(figures.keys).unwrap_or(0);
    vec![
        Stat::Bytes("peak.allocated", figures.used_peak),
        Stat::Bytes("total.allocated", figures.used),
        Stat::Bytes("startup.allocated", 0),
        Stat::Bytes("replication.backlog", 0),
        Stat::Bytes("replica.fullsync.buffer", 0),
        Stat::Bytes("clients.slaves", 0),
        Stat::Bytes("clients.normal", clients),
        Stat::Bytes("cluster.links", 0),
        Stat::Bytes("aof.buffer", 0),
        Stat::Bytes("lua.caches", 0),
        Stat::Bytes("functions.caches", 0),
        Stat::Bytes("script.VMs", 0),
        Stat::Bytes("overhead.db.hashtable.lut", 0),
        Stat::Bytes("overhead.db.hashtable.rehashing", 0),
        Stat::Bytes("overhead.total", overhead),
        Stat::Bytes("db.dict.rehashing.count", 0),
        Stat::Bytes("keys.count", figures.keys),
        Stat::Bytes("keys.bytes-per-key", per_key),
        Stat::Bytes("dataset.bytes", dataset),
        Stat::Ratio("dataset.percentage", percentage(dataset, figures.used)),
        Stat::Ratio(
            "peak.percentage",
            percentage(figures.used, figures.used_peak),
        ),
        Stat::Bytes("allocator.allocated", figures.used),
        Stat::Bytes("allocator.active", figures.resident_arenas),
        Stat::Bytes("allocator.resident", figures.resident_arenas),
        Stat::Bytes("allocator.muzzy", 0),
        Stat::Ratio("allocator-fragmentation.ratio", figures.arena_ratio()),
        Stat::Bytes(
            "allocator-fragmentation.bytes",
            figures.resident_arenas.saturating_sub(figures.used),
        ),
        Stat::Ratio("fragmentation", figures.resident_ratio()),
        Stat::Bytes(
            "fragmentation.bytes",
            figures.resident.saturating_sub(figures.used),
        ),
    ]
}

fn percentage(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

/// Writes them as a map.
pub(super) fn write_stats(stats: &[Stat], reply: &mut ReplyWriter<'_>) {
    reply.map(stats.len());
    for stat in stats {
        match stat {
            Stat::Bytes(name, bytes) => {
                reply.bulk(name.as_bytes());
                reply.int(i64::try_from(*bytes).unwrap_or(i64::MAX));
            }
            Stat::Ratio(name, ratio) => {
                reply.bulk(name.as_bytes());
                reply.double(*ratio);
            }
        }
    }
}

/// What MEMORY DOCTOR says.
pub(super) fn diagnosis(core: &Core) -> String {
    const SMALL: u64 = 5 << 20;
    let figures = Figures::gather(core);
    if figures.used < SMALL {
        return "There is too little data to judge: less than 5 MB are in use.\n".to_owned();
    }
    let mut text = String::new();
    if figures.used_peak > figures.used * 3 / 2 {
        text.push_str(
            " * Peak: the data once took over 150% of what it takes now. Memory that was given back \
             inside the arenas is used again first; MEMORY PURGE returns it to the system.\n",
        );
    }
    if figures.arena_ratio() > 1.4 {
        text.push_str(
            " * Fragmentation: the arenas keep over 140% of what the data takes. MEMORY PURGE \
             returns what is free as a whole.\n",
        );
    }
    let clients = figures.clients.max(1);
    if figures.client_bytes() / clients > 200 * 1024 {
        text.push_str(
            " * Clients: their buffers take over 200 kB each on average. CLIENT LIST shows which do \
             not read their replies.\n",
        );
    }
    if text.is_empty() {
        return "Nothing to complain about in the use of memory.\n".to_owned();
    }
    format!("The use of memory has these problems:\n\n{text}")
}

/// What MEMORY MALLOC-STATS says: the arenas one by one.
pub(super) fn arenas(core: &Core) -> String {
    core.shared.with_pages(|pages| {
        let mut text = String::from("arena  used bytes  resident bytes  peak bytes\n");
        for page in pages
            .iter()
            .filter(|page| page.id.role == Role::StorageWorker)
        {
            let level = |counter: WorkerCounter| page.level(counter.place());
            let _ = writeln!(
                text,
                "{:>5}  {:>10}  {:>14}  {:>10}",
                page.id.index,
                level(WorkerCounter::UsedBytes),
                level(WorkerCounter::ArenaResidentBytes),
                level(WorkerCounter::UsedBytesPeak),
            );
        }
        text
    })
}
