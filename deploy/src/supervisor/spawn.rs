//! Starts one process of a role: this executable again, with a control socket as standard input.
//!
//! All processes of a system are of one build: where the program's file was replaced by an upgrade
//! meanwhile, `/proc/self/exe` still names the running one. Otherwise its path is used, so that
//! process lists show its name and tools that run the program (callgrind) can follow.
//!
//! Cost: about a millisecond. Not here: what the process is told (`shell`).

use super::layout::Place;
use super::segments::control_pair;
use runtime::plan::Role;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use tokio::process::{Child, Command};

use super::core::Death;

/// Which role the environment's fault point (`shm::fault`) is for; a worker if not set.
const FAULT_ROLE: &str = "SIROCCO_FAULT_ROLE";

/// Starts the process of a place. Returns it with the supervisor's end of its control socket.
///
/// # Errors
/// Too few descriptors, processes or memory.
pub fn spawn(place: &Place, generation: u64) -> io::Result<(Child, OwnedFd)> {
    let (ours, theirs) = control_pair()?;
    let mut command = Command::new(executable());
    command
        .arg0("sirocco")
        .arg(place.role.name())
        .arg(place.index.to_string())
        .stdin(Stdio::from(theirs))
        .kill_on_drop(false);
    let faulty = match std::env::var(FAULT_ROLE) {
        Ok(role) => role == place.role.name(),
        Err(_) => place.role == Role::StorageWorker,
    };
    // A fault point is for the first process; its successor must live to tell.
    if generation > 1 || !faulty {
        command.env_remove(shm::fault::ENVIRONMENT);
    }
    Ok((command.spawn()?, ours))
}

/// The running program: its path, unless another file stands there now.
fn executable() -> PathBuf {
    const LINK: &str = "/proc/self/exe";
    match std::fs::read_link(LINK) {
        // The kernel adds " (deleted)" once the file has lost its name.
        Ok(path) if !path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)") => path,
        _ => PathBuf::from(LINK),
    }
}

/// How a process ended, without what its journal says.
pub fn death(status: io::Result<ExitStatus>) -> Death {
    let status = match status {
        Ok(status) => status,
        Err(error) => {
            return Death {
                text: format!("lost: {error}"),
                ..Death::default()
            };
        }
    };
    if let Some(number) = status.signal() {
        let name = nix::sys::signal::Signal::try_from(number).map_or("unknown", |s| s.as_str());
        let text = format!("signal {number}, {name}");
        return Death {
            text,
            by_kill: number == 9,
            ..Death::default()
        };
    }
    let code = status.code().unwrap_or(-1);
    Death {
        text: format!("exit code {code}"),
        clean: code == 0,
        ..Death::default()
    }
}

/// Whether the system shows a process as stopped (by SIGSTOP or a debugger).
pub fn is_stopped(pid: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The state follows the name, which stands in parentheses and may contain anything.
    let state = text
        .rfind(')')
        .and_then(|end| text[end + 1..].trim_start().chars().next());
    matches!(state, Some('T' | 't'))
}

/// Resident bytes of a process, and the processor time it has used in milliseconds.
pub fn usage(pid: u32) -> Option<(u64, u64)> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    // Fields 14 and 15 of the whole line: user and system time in ticks of 10 ms.
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some((pages * shm::page_size() as u64, ticks * 10))
}
