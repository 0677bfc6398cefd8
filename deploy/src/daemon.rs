//! Background operation and the log file: where standard streams go.
//!
//! ```text
//!   foreground: sirocco ─────────────────────────────► serves
//!   daemonize:  sirocco ──► sirocco (own session) ───► serves
//!                  ▲            │ "ok", or an exit code and a text, over a socket pair
//!                  └────────────┘ then the first one exits
//! ```
//! Why the parent waits: a script that starts the server in the background can connect right after,
//! and sees why it did not start, and the exit code.

use crate::config::reason;
use crate::exit::Failure;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

/// Set for the process that goes on in the background.
const MARK: &str = "SIROCCO_DAEMON";

/// Whether this process is the one that goes on in the background.
pub fn is_child() -> bool {
    std::env::var_os(MARK).is_some()
}

/// In the parent: starts the program again, in the background, and waits until it serves.
///
/// # Errors
/// If it cannot be started; its own failures are printed and become the exit code.
pub fn start(words: &[String]) -> Result<ExitCode, Failure> {
    let failed = |error: io::Error| {
        Failure::System(format!("cannot go to the background: {}", reason(&error)))
    };
    let (mut ours, theirs) = UnixStream::pair().map_err(failed)?;
    let mut child = Command::new("/proc/self/exe")
        .arg0("sirocco")
        .args(words)
        .env(MARK, "1")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let mut answer = String::new();
    ours.read_to_string(&mut answer).map_err(failed)?;
    if answer == "ok" {
        return Ok(ExitCode::SUCCESS);
    }
    if !answer.is_empty() {
        let _ = writeln!(io::stderr(), "{answer}");
    }
    let code = child
        .wait()
        .ok()
        .and_then(|status| status.code())
        .unwrap_or(6);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(6)))
}

/// In the child: begins a session of its own and returns the socket to the parent.
///
/// # Errors
/// If the streams cannot be replaced.
pub fn become_daemon() -> Result<UnixStream, Failure> {
    let failed = |error: io::Error| {
        Failure::System(format!("cannot go to the background: {}", reason(&error)))
    };
    // Fails only for the leader of a group, which a new process is not.
    let _ = nix::unistd::setsid();
    let parent = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let null = std::fs::File::open("/dev/null").map_err(failed)?;
    nix::unistd::dup2_stdin(&null).map_err(|errno| failed(errno.into()))?;
    Ok(UnixStream::from(parent))
}

/// Tells the parent why this process does not serve.
pub fn tell_failure(parent: Option<UnixStream>, failure: &Failure) {
    if let Some(mut parent) = parent {
        let _ = parent.write_all(format!("sirocco: {failure}").as_bytes());
    }
}

/// Sends standard output and error, and with them those of all processes, to the log file.
///
/// # Errors
/// If it cannot be opened for appending.
pub fn open_log(path: &str) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::Configuration(format!("cannot open logfile {path}: {}", reason(&error)))
    };
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .map_err(failed)?;
    nix::unistd::dup2_stdout(&file).map_err(|errno| failed(errno.into()))?;
    nix::unistd::dup2_stderr(&file).map_err(|errno| failed(errno.into()))
}
