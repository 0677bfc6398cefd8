//! What the supervisor publishes for every process: settings, slot map, identity of this run.
//!
//! Why: a process that starts, or starts again, must find everything that holds system-wide in one
//! place, without asking anybody. The supervisor is the only writer; a change is answered only
//! after every process has reported that it has seen the new version.
//!
//! Layout: JSON bytes inside the registry segment (`shm::RegistrySegment` keeps the version and
//! the double buffer). Unknown fields are ignored, so that fields can be added.
//!
//! Cost: some kilobytes, parsed once per change and process. Not here: how the segment switches
//! versions (`shm`), who waits for whom (supervisor).

use crate::settings::{ConfigSetError, Settings};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A run of slots and the storage worker that owns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRange {
    /// First slot of the run.
    pub first: u16,
    /// Last slot of the run, included.
    pub last: u16,
    /// Number of the worker.
    pub worker: u16,
}

/// Everything that holds system-wide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registry {
    /// Settings that differ from their defaults, as name and text.
    pub settings: Vec<(String, String)>,
    /// Seed of every hash of keys; the same for all processes and across restarts of them.
    pub hash_seed: u64,
    /// Owners of all slots, ascending and without gaps.
    pub slot_map: Vec<SlotRange>,
    /// Identity of this run: 40 hexadecimal digits, as in INFO `run_id`.
    pub run_id: String,
    /// When the supervisor started, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Threads that serve sockets.
    pub gateway_threads: u32,
    /// Storage workers.
    pub storage_workers: u32,
    /// The executable, for INFO.
    pub executable: String,
    /// The configuration file, absolute, or empty.
    pub config_file: String,
    /// Process id of the supervisor.
    pub supervisor_pid: u32,
    /// Scripts that EVALSHA finds.
    #[serde(default)]
    pub scripts: Vec<Script>,
    /// How often all of them were forgotten.
    #[serde(default)]
    pub script_flushes: u64,
    /// Libraries of functions.
    #[serde(default)]
    pub libraries: Vec<Library>,
}

/// A library of functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Library {
    /// Its name.
    pub name: String,
    /// Its code, the first line included, as text (`settings::bytes`).
    pub code: String,
    /// What it has registered.
    pub functions: Vec<Function>,
    /// Tells it from one with the same code that was there before.
    #[serde(default)]
    pub revision: u64,
}

impl Library {
    /// The library as a text that another process reads.
    #[must_use]
    pub fn to_text(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// Reads such a text.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }
}

/// A function of a library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What it does, as text, if that was said.
    pub description: Option<String>,
    /// Names of its flags.
    pub flags: Vec<String>,
}

/// A script that is known to all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// Its SHA1, 40 hexadecimal digits.
    pub sha1: String,
    /// Its body as text (`settings::bytes`).
    pub body: String,
}

/// Why registry bytes could not be used. It means that another version wrote them.
#[derive(Debug)]
pub enum RegistryError {
    /// The bytes are not what this version writes.
    Malformed(serde_json::Error),
    /// A setting does not fit.
    Setting(ConfigSetError),
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => write!(f, "malformed registry: {error}"),
            Self::Setting(error) => write!(f, "registry: {error}"),
        }
    }
}

impl std::error::Error for RegistryError {}

impl Registry {
    /// The bytes for the segment.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain fields always become JSON")
    }

    /// Reads bytes of a segment.
    ///
    /// # Errors
    /// If another version wrote them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RegistryError> {
        serde_json::from_slice(bytes).map_err(RegistryError::Malformed)
    }

    /// The typed settings.
    ///
    /// # Errors
    /// If another version wrote a setting that this one does not know.
    pub fn typed_settings(&self) -> Result<Settings, RegistryError> {
        Settings::from_changed(&self.settings).map_err(RegistryError::Setting)
    }
}

/// Divides the slots evenly over workers, in order: the layout of a new system.
pub fn even_slot_map(workers: u32) -> Vec<SlotRange> {
    const SLOTS: u32 = 16384;
    let workers = workers.clamp(1, SLOTS);
    let border = |n: u32| n * SLOTS / workers;
    let narrow = |n: u32| u16::try_from(n).expect("slots and workers are below 2^16");
    (0..workers)
        .map(|worker| SlotRange {
            first: narrow(border(worker)),
            last: narrow(border(worker + 1) - 1),
            worker: narrow(worker),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_survives_its_bytes() {
        let mut settings = Settings::default();
        settings
            .set_many(&[("maxmemory".to_string(), "1mb".to_string())], false)
            .unwrap();
        let registry = Registry {
            settings: settings.changed(),
            hash_seed: u64::MAX,
            slot_map: even_slot_map(3),
            run_id: "ab".repeat(20),
            started_unix_ms: 1,
            gateway_threads: 1,
            storage_workers: 3,
            executable: String::new(),
            config_file: String::new(),
            supervisor_pid: 7,
            scripts: Vec::new(),
            script_flushes: 0,
            libraries: Vec::new(),
        };
        let read = Registry::from_bytes(&registry.to_bytes()).unwrap();
        assert_eq!(read, registry);
        assert_eq!(read.typed_settings().unwrap(), settings);
        assert!(Registry::from_bytes(b"{}").is_err());
    }

    #[test]
    fn slots_are_divided_without_gaps() {
        for workers in [1, 2, 3, 7, 256] {
            let map = even_slot_map(workers);
            assert_eq!(map.len(), workers as usize);
            assert_eq!((map[0].first, map.last().unwrap().last), (0, 16383));
            for pair in map.windows(2) {
                assert_eq!(pair[0].last + 1, pair[1].first);
            }
        }
    }
}
