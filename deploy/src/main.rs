//! The `sirocco` executable: every role of the system and its tools.
//!
//! Without a subcommand it is the supervisor, which starts this executable again per role. Roles are
//! libraries; this crate is the only one that knows them all.
//!
//! Reading order: `cli` (what was asked), `config` (with which settings), `supervisor` (the system),
//! `supervisor::core` (what it decides).
#![forbid(unsafe_code)]

mod banner;
mod cli;
mod config;
mod daemon;
mod exit;
mod status_command;
mod supervisor;

use cli::{Tool, Wish};
use exit::Failure;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match cli::parse(std::env::args().skip(1).collect()) {
        Wish::Serve(words) => serve(&words),
        Wish::PrintConfig(words) => print_config(&words),
        Wish::Tool(tool) => run_tool(*tool),
        Wish::Say(error) => {
            let code = error.exit_code();
            // A reader that is gone has seen enough.
            let _ = error.print();
            Ok(ExitCode::from(u8::try_from(code).unwrap_or(2)))
        }
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            // Standard error may be closed; the exit code still tells.
            let _ = writeln!(std::io::stderr(), "sirocco: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

fn serve(words: &[String]) -> Result<ExitCode, Failure> {
    let loaded = config::load(words)?;
    let is_daemon = daemon::is_child();
    if loaded.settings.daemonize() && !is_daemon {
        return daemon::start(words);
    }
    let parent = if is_daemon {
        Some(daemon::become_daemon()?)
    } else {
        None
    };
    let for_failure = parent.as_ref().and_then(|parent| parent.try_clone().ok());
    let outcome = open_log(&loaded).and_then(|()| {
        runtime::logging::start("supervisor");
        runtime::logging::set_level(loaded.settings.loglevel());
        supervisor::run(loaded, parent)
    });
    if let Err(failure) = &outcome {
        daemon::tell_failure(for_failure, failure);
    }
    outcome.map(ExitCode::from)
}

/// A log file with a relative path is relative to where the program was started, as in Redis.
fn open_log(loaded: &config::Loaded) -> Result<(), Failure> {
    match loaded.settings.logfile() {
        "" => Ok(()),
        path => daemon::open_log(path),
    }
}

fn print_config(words: &[String]) -> Result<ExitCode, Failure> {
    let loaded = config::load(words)?;
    let mut text = String::new();
    for row in proto::settings::TABLE {
        let lines = proto::settings::lines_of(row.setting, &loaded.settings);
        text.push_str(&format!("# {}\n{}\n", row.summary, lines.join("\n")));
    }
    Ok(print(text.as_bytes()))
}

/// Prints a text. A reader that is gone has seen enough.
fn print(text: &[u8]) -> ExitCode {
    let _ = std::io::stdout().write_all(text);
    ExitCode::SUCCESS
}

fn run_tool(tool: Tool) -> Result<ExitCode, Failure> {
    match tool {
        Tool::Status(args) => status_command::run(&args).map(|()| ExitCode::SUCCESS),
        Tool::Bench(args) => Ok(bench::run(*args)),
        Tool::Completions { shell } => {
            let mut command = cli::documented();
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command, "sirocco", &mut text);
            Ok(print(&text))
        }
        Tool::Man => {
            let mut text = Vec::new();
            cli::write_manual(&mut text)
                .map_err(|error| Failure::System(config::reason(&error)))?;
            Ok(print(&text))
        }
        Tool::Gateway { .. } => run_role("gateway", gateway::run),
        Tool::StorageWorker { .. } => run_role("storage worker", storage_worker::run),
        Tool::PubsubBroker { .. } => run_role("pub/sub broker", pubsub_broker::run),
    }
}

/// A thread that panics takes its process with it, also where a build unwinds: what is left would neither serve
/// nor be replaced.
fn end_on_any_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        std::process::abort();
    }));
}

/// A process of a role: takes over its plan, works, and says why it ends.
fn run_role(
    name: &str,
    run: impl FnOnce(runtime::Child) -> Result<(), String>,
) -> Result<ExitCode, Failure> {
    let child = runtime::Child::from_control_socket().map_err(|error| {
        Failure::System(format!(
            "{name}: {error} (it is started by the supervisor only)"
        ))
    })?;
    end_on_any_panic();
    match run(child) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            tracing::error!("{error}");
            Ok(ExitCode::FAILURE)
        }
    }
}
