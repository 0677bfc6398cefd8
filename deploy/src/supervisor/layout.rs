//! Which processes a system consists of, and how large its rings are.
//!
//! Not here: making anything of it (`segments`, `spawn`), the rule for counts (`runtime::cpus`).

use proto::settings::Settings;
use runtime::cpus::{self, Assignment, Counts};
use runtime::plan::Role;

/// A place that one process at a time fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What its process does.
    pub role: Role,
    /// Which of its role.
    pub index: u32,
    /// Index of its first party.
    pub first_party: u32,
    /// Number of its parties: threads of a gateway, 1 for the others.
    pub parties: u32,
    /// Processor of each party.
    pub cpus: Vec<Option<usize>>,
}

impl Place {
    /// Whether it is the place of this storage worker.
    pub fn is_worker(&self, index: u32) -> bool {
        self.role == Role::StorageWorker && self.first_party == index
    }
}

/// The shape of the whole system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Gateway first, then workers, then the broker.
    pub places: Vec<Place>,
    /// Threads that serve sockets.
    pub gateway_threads: u32,
    /// Storage workers.
    pub storage_workers: u32,
    /// Whole cores that may be used.
    pub cores: usize,
    /// Whether parts are bound to processors.
    pub is_pinned: bool,
    /// Bytes of one ring.
    pub ring_bytes: usize,
    /// Bytes of one ring to or from the broker.
    pub broker_ring_bytes: usize,
}

/// All rings together, by rule at most.
const RINGS_BYTES_MAX: usize = 256 << 20;
/// One ring, by rule at most: larger ones made no difference (measured from 128 KiB to 8 MiB).
const RING_BYTES_MAX: usize = 1 << 20;
/// One ring of the broker: what does not fit is kept by the sender.
const BROKER_RING_BYTES_MAX: usize = 256 << 10;

impl Layout {
    /// The layout for settings on a machine with these processors and this quota.
    pub fn new(settings: &Settings, allowed: &[usize], quota: Option<f64>) -> Self {
        let cores = cpus::usable_cores(allowed.len(), quota);
        let wish = |value: i64| usize::try_from(value).unwrap_or(0);
        let counts = cpus::counts(
            cores,
            wish(settings.gateway_threads()),
            wish(settings.storage_workers()),
        );
        let assignment = cpus::assign(settings.pin(), allowed, cores, counts);
        let is_pinned = assignment.storage_workers.iter().any(Option::is_some);
        let ring_bytes = ring_bytes(settings.ring_size(), counts);
        Self {
            places: places(counts, assignment),
            gateway_threads: narrow(counts.gateway_threads),
            storage_workers: narrow(counts.storage_workers),
            cores,
            is_pinned,
            ring_bytes,
            broker_ring_bytes: ring_bytes.min(BROKER_RING_BYTES_MAX),
        }
    }

    /// Bytes of shared memory that are needed before the first key.
    pub fn shared_bytes(&self) -> u64 {
        let links = u64::from(self.gateway_threads) * u64::from(self.storage_workers);
        let journals = u64::from(self.storage_workers) * shm::LOG_BYTES_DEFAULT as u64;
        let of_broker = u64::from(self.broker_links()) * 2 * self.broker_ring_bytes as u64;
        links * 2 * self.ring_bytes as u64 + of_broker + journals
    }

    /// Links of the broker: one to each gateway thread, then one to each worker.
    pub fn broker_links(&self) -> u32 {
        self.gateway_threads + self.storage_workers
    }
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).expect("counts are bounded by their settings")
}

fn places(counts: Counts, assignment: Assignment) -> Vec<Place> {
    let gateway = Place {
        role: Role::Gateway,
        index: 0,
        first_party: 0,
        parties: narrow(counts.gateway_threads),
        cpus: assignment.gateway_threads,
    };
    let workers = assignment
        .storage_workers
        .into_iter()
        .enumerate()
        .map(|(index, cpu)| Place {
            role: Role::StorageWorker,
            index: narrow(index),
            first_party: narrow(index),
            parties: 1,
            cpus: vec![cpu],
        });
    let broker = Place {
        role: Role::Broker,
        index: 0,
        first_party: 0,
        parties: 1,
        cpus: vec![assignment.broker],
    };
    let others = workers.chain(std::iter::once(broker));
    std::iter::once(gateway).chain(others).collect()
}

/// min(1 MiB, 256 MiB / number of rings), at least the smallest possible ring; a setting wins,
/// rounded up to a power of two.
fn ring_bytes(setting: u64, counts: Counts) -> usize {
    let rings = 2 * counts.gateway_threads * counts.storage_workers;
    let wish = match usize::try_from(setting).unwrap_or(usize::MAX) {
        0 => {
            let fair = RINGS_BYTES_MAX / rings.max(1);
            // Round down, so that all rings together stay within the bound.
            RING_BYTES_MAX.min((fair + 1).next_power_of_two() / 2)
        }
        explicit => explicit.next_power_of_two(),
    };
    wish.max(shm::RING_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(pairs: &[(&str, &str)], cores: usize, quota: Option<f64>) -> Layout {
        let mut settings = Settings::default();
        for (name, text) in pairs {
            let row = proto::settings::find(name).unwrap();
            settings.set_text(row.setting, text).unwrap();
        }
        Layout::new(&settings, &(0..cores).collect::<Vec<_>>(), quota)
    }

    #[test]
    fn two_cores_make_one_gateway_thread_and_one_worker() {
        let two = layout(&[], 2, None);
        assert_eq!(
            (two.gateway_threads, two.storage_workers, two.is_pinned),
            (1, 1, false)
        );
        assert_eq!(two.ring_bytes, 1 << 20);
        assert_eq!(layout(&[], 64, Some(2.0)).places, two.places);
        let forced = layout(
            &[("storage-workers", "4"), ("gateway-threads", "3")],
            2,
            None,
        );
        assert_eq!((forced.gateway_threads, forced.storage_workers), (3, 4));
        assert_eq!(forced.places.len(), 6);
        assert_eq!((forced.places[0].parties, forced.places[4].index), (3, 3));
    }

    #[test]
    fn rings_share_a_bound() {
        let rings = |threads: &str, workers: &str| {
            layout(
                &[("gateway-threads", threads), ("storage-workers", workers)],
                2,
                None,
            )
        };
        assert_eq!(rings("8", "8").ring_bytes, 1 << 20);
        assert_eq!(rings("16", "16").ring_bytes, 1 << 19);
        assert_eq!(rings("64", "56").ring_bytes, shm::RING_BYTES_MIN);
        assert_eq!(
            layout(&[("ring-size", "100kb")], 2, None).ring_bytes,
            128 << 10
        );
    }
}
