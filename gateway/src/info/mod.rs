//! INFO: facts and statistics, read from the pages of all processes without asking any of them.
//!
//! Fields have Redis' names where clients and exporters read them; what does not exist here (yet) has
//! the value that says so (0, -1, "no"). What only Sirocco has stands in a section of its own and in
//! fields beside Redis' that begin with `sirocco_`.
//!
//! Sums count from the start or the last CONFIG RESETSTAT. A process that was restarted begins again
//! from what its page holds.

mod figures;
mod memory;
mod server;
mod statistics;

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use proto::counters::{BrokerCounter as B, GatewayCounter as G, WorkerCounter as W};
use runtime::Role;

pub(crate) use figures::Figures;

use crate::core::Core;
use crate::live::Live;
use crate::shared::{Page, Shared};

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

    fn broker_now(&self, counter: B) -> u64 {
        self.sum(Role::Broker, |page| page.level(counter.place()))
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
}
