//! The supervisor as an operator meets it: starting in odd surroundings, looking inside, background operation,
//! changes of settings, life without it.
//!
//! What happens to clients when parts die is in `tests/recovery`; what a file may contain in `tests/protocol`.

mod background;
mod command_line;
mod status;
mod surroundings;

use std::path::Path;
use std::process::{Command, Output};

/// Runs the executable with words and waits for its end.
fn run(words: &[&str], folder: &Path) -> Output {
    Command::new(harness::sirocco!())
        .args(words)
        .current_dir(folder)
        .output()
        .expect("the executable runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
