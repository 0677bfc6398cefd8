//! House rules as tests: what nobody checks is a wish.
//!
//! The rules are those of the README, section "Rules that tests enforce". Each failure lists every offender.

mod catalogue;
mod files;
mod layers;
mod manifests;

use std::path::{Path, PathBuf};

/// All files of the workspace that git knows or would add, as paths from its root.
fn tracked() -> Vec<PathBuf> {
    let root = harness::workspace();
    let mut files = Vec::new();
    collect(&root, &root, &mut files);
    files.sort();
    files
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder)
        .expect("the workspace can be read")
        .flatten()
    {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            let skipped = name == "target" || name == ".git" || name == "peers";
            if !skipped {
                collect(root, &path, files);
            }
        } else if name != ".git"
            && let Ok(relative) = path.strip_prefix(root)
        {
            files.push(relative.to_path_buf());
        }
    }
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(harness::workspace().join(file)).unwrap_or_default()
}

fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|known| known == extension)
}

fn rust_files() -> Vec<PathBuf> {
    tracked()
        .into_iter()
        .filter(|file| has_extension(file, "rs"))
        .collect()
}
