//! `sirocco status`: asks running systems and prints what they say.

use crate::cli::StatusArgs;
use crate::exit::Failure;
use crate::supervisor::instance::{self, Entry};
use crate::supervisor::status::{self, Status};
use std::io::{Read, Write};
use std::time::Duration;

/// A supervisor never blocks, so one that is silent this long is stopped or broken.
const PATIENCE: Duration = Duration::from_secs(5);

/// Prints the status of every running system that matches.
///
/// # Errors
/// If there is none, or one does not answer.
pub fn run(args: &StatusArgs) -> Result<(), Failure> {
    let found = instance::find(args.port, args.dir.as_deref());
    if found.is_empty() {
        return Err(Failure::Instance(nothing_found(args)));
    }
    let mut reports = Vec::new();
    for entry in &found {
        reports.push(ask(entry)?);
    }
    let text = if args.json {
        let all = match reports.as_slice() {
            [one] => serde_json::to_string_pretty(one),
            many => serde_json::to_string_pretty(many),
        };
        all.map_err(|error| Failure::System(error.to_string()))? + "\n"
    } else {
        reports
            .iter()
            .map(status::table)
            .collect::<Vec<_>>()
            .join("\n")
    };
    // A reader that has seen enough (`| head`) is no failure.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

fn nothing_found(args: &StatusArgs) -> String {
    let mut text = "no running sirocco".to_string();
    if let Some(port) = args.port {
        text.push_str(&format!(" with port {port}"));
    }
    if let Some(dir) = &args.dir {
        text.push_str(&format!(" in {}", dir.display()));
    } else {
        text.push_str(" of this user");
    }
    text
}

fn ask(entry: &Entry) -> Result<Status, Failure> {
    let failed = |reason: String| {
        Failure::Instance(format!(
            "supervisor {} does not answer: {reason}",
            entry.pid
        ))
    };
    let mut stream = instance::connect(entry)?;
    let mut text = String::new();
    // There is one question only, so connecting asks it.
    stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.read_to_string(&mut text))
        .map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
}
