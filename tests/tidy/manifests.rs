//! The manifests: one executable, one licence, lints everywhere.

use crate::{read, tracked};

fn manifests() -> Vec<(String, String)> {
    tracked()
        .iter()
        .filter(|file| file.file_name().is_some_and(|name| name == "Cargo.toml"))
        .map(|file| (file.display().to_string(), read(file)))
        .collect()
}

#[test]
fn there_is_one_executable() {
    let mut count = 0;
    for (file, text) in manifests() {
        // A workspace of its own is out of reach of `cargo run` at the root.
        if file != "Cargo.toml" && text.contains("[workspace]") {
            continue;
        }
        count += text.lines().filter(|line| line.trim() == "[[bin]]").count();
        let folder = std::path::Path::new(&file)
            .parent()
            .map(|folder| folder.join("src/main.rs"));
        let main = folder.is_some_and(|main| harness::workspace().join(main).exists());
        assert!(
            !main || file == "deploy/Cargo.toml",
            "{file} has a main.rs: `cargo run` would have to choose"
        );
    }
    assert_eq!(
        count, 1,
        "`cargo run --release` at the root starts the one executable"
    );
}

#[test]
fn every_crate_takes_lints_and_licence_from_the_workspace() {
    for (file, text) in manifests() {
        if text.contains("[workspace]") {
            continue;
        }
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{file} has no lints of the workspace"
        );
        assert!(
            text.contains("license.workspace = true"),
            "{file} has no licence"
        );
        assert!(
            text.contains("publish.workspace = true"),
            "{file} could be published by mistake"
        );
    }
}

#[test]
fn versions_of_packages_stand_in_one_place() {
    for (file, text) in manifests() {
        if text.contains("[workspace]") {
            continue;
        }
        let mut inside = false;
        for line in text.lines() {
            if line.starts_with('[') {
                inside = line.contains("dependencies");
            } else if inside && line.contains('=') {
                assert!(line.contains("workspace = true"), "{file}: {line}");
            }
        }
    }
}
