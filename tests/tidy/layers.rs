//! Who may know whom: the borders between crates, and where dangerous things live.
//!
//! ```text
//!   sirocco ──> gateway, storage-worker, pubsub-broker, bench ──> runtime ──> proto, shm
//! ```

use std::path::Path;

use crate::{read, rust_files};

/// The crates of the workspace, their folder, and the crates that they may use.
const EDGES: [(&str, &str, &[&str]); 10] = [
    ("shm", "shm", &[]),
    ("proto", "shm/proto", &[]),
    ("runtime", "shm/runtime", &["proto", "shm"]),
    ("gateway", "gateway", &["proto", "runtime", "shm"]),
    (
        "storage-worker",
        "storage-worker",
        &["proto", "runtime", "script", "shm"],
    ),
    ("script", "storage-worker/script", &["proto"]),
    (
        "pubsub-broker",
        "pubsub-broker",
        &["proto", "runtime", "shm"],
    ),
    ("bench", "deploy/bench", &["proto"]),
    (
        "sirocco",
        "deploy",
        &[
            "bench",
            "gateway",
            "proto",
            "pubsub-broker",
            "runtime",
            "shm",
            "storage-worker",
        ],
    ),
    ("harness", "tests/harness", &[]),
];

/// Packages that only some crates may use; crates without an entry here are free.
const OWNERS: [(&str, &[&str]); 7] = [
    ("tokio", &["gateway", "bench", "sirocco", "runtime"]),
    (
        "nix",
        &[
            "shm",
            "runtime",
            "gateway",
            "storage-worker",
            "bench",
            "sirocco",
            "harness",
        ],
    ),
    ("clap", &["sirocco", "bench", "runtime"]),
    (
        "hashbrown",
        &["shm", "proto", "storage-worker", "gateway", "pubsub-broker"],
    ),
    (
        "tracing",
        &[
            "runtime",
            "gateway",
            "storage-worker",
            "pubsub-broker",
            "sirocco",
        ],
    ),
    ("mlua-sys", &["script"]),
    ("redis", &["sirocco"]),
];

/// The names in the section of a manifest.
fn dependencies(folder: &str, section: &str) -> Vec<String> {
    let text = read(Path::new(&format!("{folder}/Cargo.toml")));
    let mut inside = false;
    let mut names = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            inside = line.trim() == format!("[{section}]");
        } else if inside && let Some((name, _)) = line.split_once(['.', ' ', '=']) {
            names.push(name.trim().to_owned());
        }
    }
    names
}

#[test]
fn crates_use_only_what_is_below_them() {
    for (name, folder, allowed) in EDGES {
        for used in dependencies(folder, "dependencies") {
            let is_ours = EDGES.iter().any(|(known, _, _)| *known == used);
            assert!(
                !is_ours || allowed.contains(&used.as_str()),
                "{name} must not use {used}"
            );
        }
    }
}

#[test]
fn packages_have_owners() {
    for (package, owners) in OWNERS {
        for (name, folder, _) in EDGES {
            if dependencies(folder, "dependencies")
                .iter()
                .any(|used| used == package)
            {
                assert!(owners.contains(&name), "{name} must not use {package}");
            }
        }
    }
}

#[test]
fn the_words_have_no_unsafe_code_and_no_io() {
    let root = read(Path::new("shm/proto/src/lib.rs"));
    assert!(
        root.contains("#![forbid(unsafe_code)]"),
        "proto forbids unsafe code"
    );
    let mut offenders = Vec::new();
    for file in rust_files()
        .iter()
        .filter(|file| file.starts_with("shm/proto/src"))
    {
        let text = read(file);
        for word in [
            "std::net",
            "std::fs",
            "std::thread",
            "SystemTime::now",
            "Instant::now",
        ] {
            if text.contains(word) {
                offenders.push(format!("{}: {word}", file.display()));
            }
        }
    }
    assert!(offenders.is_empty(), "{offenders:#?}");
}

#[test]
fn unsafe_code_stays_where_it_belongs() {
    let homes = [
        "shm/src",
        "storage-worker/benches",
        "storage-worker/src/collections",
        "storage-worker/src/keyspace",
        "storage-worker/src/prefetch.rs",
        "storage-worker/script/src",
    ];
    let mut offenders = Vec::new();
    for file in rust_files() {
        if homes.iter().any(|home| file.starts_with(home))
            || file.starts_with("shm/tests")
            || file.starts_with("shm/benches")
        {
            continue;
        }
        for (number, line) in read(&file).lines().enumerate() {
            let line = line.trim_start();
            if line.starts_with("//") {
                continue;
            }
            let block = line.contains("unsafe {")
                || line.starts_with("unsafe impl")
                || line.contains("unsafe fn ");
            if block && !file.starts_with("tests/tidy") {
                offenders.push(format!("{}:{}", file.display(), number + 1));
            }
        }
    }
    assert!(
        offenders.is_empty(),
        "unsafe code outside of its homes:\n  {}",
        offenders.join("\n  ")
    );
}

#[test]
fn atomics_of_the_shared_memory_go_through_one_file() {
    let mut offenders = Vec::new();
    for file in rust_files()
        .iter()
        .filter(|file| file.starts_with("shm/src"))
    {
        if file.ends_with("sync.rs") {
            continue;
        }
        if read(file).contains("std::sync::atomic") || read(file).contains("core::sync::atomic") {
            offenders.push(file.display().to_string());
        }
    }
    assert!(
        offenders.is_empty(),
        "only sync.rs names the standard atomics: {offenders:#?}"
    );
}

#[test]
fn the_gateway_decides_by_columns_and_not_by_the_name_of_a_command() {
    let mut offenders = Vec::new();
    for file in rust_files()
        .iter()
        .filter(|file| file.starts_with("gateway/src"))
    {
        if file.ends_with("internal.rs") {
            continue;
        }
        for (number, line) in read(file).lines().enumerate() {
            let rest = line.split("StorageCommand::").nth(1).unwrap_or_default();
            // Associated functions and constants are fine: `StorageCommand::COUNT`, `StorageCommand::from_id`.
            let is_variant = rest.starts_with(|first: char| first.is_ascii_uppercase())
                && rest
                    .chars()
                    .nth(1)
                    .is_some_and(|second| second.is_ascii_lowercase());
            if is_variant {
                offenders.push(format!("{}:{}", file.display(), number + 1));
            }
        }
    }
    assert!(
        offenders.is_empty(),
        "internal.rs alone names storage commands: {offenders:#?}"
    );
}
