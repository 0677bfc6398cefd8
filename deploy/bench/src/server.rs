//! Life of a server under test: started from a start line, awaited, described, stopped by SIGSTOP
//! while others are measured, ended.
//!
//! ```text
//!   start --PING answered--> running <--SIGCONT / SIGSTOP--> paused       either --SIGTERM--> ended
//! ```
//!
//! Why SIGSTOP: some servers use CPU while idle (busy polling of I/O threads takes a whole core)
//! and would disturb the one being measured. Restarting instead would lose the filled key space.
//! A tree is paused from the root down and resumed from the leaves up, so that a supervisor never
//! sees a stopped child and takes it for a hung one.
//!
//! Each server gets a directory of its own under the system's temporary one, removed at the end.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Serialize;

use crate::client::{Client, Target, Value};
use crate::command_line::{public_line, without_path, words};
use crate::error::BenchError;
use crate::interrupt::{Interrupt, kill_tree};
use crate::process_tree;

/// Longest time from start to the first answered PING.
const START_MAX: Duration = Duration::from_secs(30);

/// Longest time from SIGTERM to the end, before SIGKILL.
const STOP_MAX: Duration = Duration::from_secs(10);

/// Time after SIGCONT in which a server catches up on what it missed (timers, clocks).
const SETTLE: Duration = Duration::from_millis(150);

/// Place of the port in a start line.
const PORT_PLACE: &str = "{port}";

/// What makes any of the servers known here listen on a Unix socket too and ask for a password.
pub(crate) const SOCKET_AND_PASSWORD: &str =
    " --unixsocket {socket} --unixsocketperm 700 --requirepass {password}";

/// Place of the Unix socket's path in a start line, and its name in the server's own directory.
const SOCKET_PLACE: &str = "{socket}";
const SOCKET_NAME: &str = "socket";

/// Place of the password in a start line, and the password.
const PASSWORD_PLACE: &str = "{password}";
pub(crate) const PASSWORD: &str = "sirocco-bench";

/// Which software answers, as its INFO says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// This project.
    Sirocco,
    /// Redis.
    Redis,
    /// Valkey.
    Valkey,
    /// Dragonfly.
    Dragonfly,
    /// Anything else that speaks RESP.
    Other,
}

/// What is kept about a server beside its figures.
#[derive(Debug, Clone, Serialize)]
pub struct Description {
    /// Which software it is.
    pub family: Family,
    /// Version of that software.
    pub version: String,
    /// Start line without paths.
    pub start_line: String,
    /// Number of its processes and of their threads.
    pub processes: usize,
    /// Selected fields of INFO server.
    pub info: BTreeMap<String, String>,
    /// CONFIG GET *, values without paths; empty if the server refuses it.
    pub config: BTreeMap<String, String>,
}

/// A server process that this program started.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    words: Vec<String>,
    port: u16,
    directory: PathBuf,
    is_paused: bool,
    interrupt: Interrupt,
}

impl Server {
    /// Starts `line` on a free port (or `port`) and waits until it answers PING.
    pub(crate) fn start(
        name: &str,
        line: &str,
        port: Option<u16>,
        interrupt: &Interrupt,
    ) -> Result<Self, BenchError> {
        let words = words(line)
            .filter(|words| !words.is_empty())
            .ok_or_else(|| BenchError::Usage(format!("{name}: not a start line: {line}")))?;
        if !line.contains(PORT_PLACE) {
            return Err(BenchError::Usage(format!(
                "{name}: the start line needs {PORT_PLACE}"
            )));
        }
        let port = match port {
            Some(port) => port,
            None => free_port()?,
        };
        let directory = make_directory(name)?;
        let log = directory.join("output.log");
        let output =
            File::create(&log).map_err(|error| BenchError::io("make a log file", error))?;
        let errors = output
            .try_clone()
            .map_err(|error| BenchError::io("share a log file", error))?;
        let filled: Vec<String> = words
            .iter()
            .map(|word| {
                let socket = directory.join(SOCKET_NAME);
                word.replace(PORT_PLACE, &port.to_string())
                    .replace(SOCKET_PLACE, &socket.to_string_lossy())
                    .replace(PASSWORD_PLACE, PASSWORD)
            })
            .collect();
        let program = program_path(&filled[0]);
        let child = Command::new(program)
            .args(&filled[1..])
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let _ = fs::remove_dir_all(&directory);
                BenchError::io(format!("start {name} ({})", public_line(&words)), error)
            })?;
        let mut server = Self {
            child,
            words,
            port,
            directory,
            is_paused: false,
            interrupt: interrupt.clone(),
        };
        interrupt.add(server.root());
        server.await_ping(name, &log)?;
        Ok(server)
    }

    fn await_ping(&mut self, name: &str, log: &Path) -> Result<(), BenchError> {
        let begin = Instant::now();
        let said = || {
            fs::read_to_string(log)
                .map(|text| last_lines(&text))
                .unwrap_or_default()
        };
        loop {
            if is_ready(&self.target()) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(BenchError::Server(format!(
                    "{name} ended ({status}): {}",
                    said()
                )));
            }
            if begin.elapsed() > START_MAX {
                return Err(BenchError::Server(format!(
                    "{name} does not answer PING: {}",
                    said()
                )));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Where it listens.
    pub(crate) fn target(&self) -> Target {
        let asks = self.words.iter().any(|word| word == PASSWORD_PLACE);
        Target {
            password: asks.then(|| PASSWORD.to_owned()),
            ..Target::local(self.port)
        }
    }

    /// Its Unix socket, if its start line has a place for one.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        let has_one = self.words.iter().any(|word| word == SOCKET_PLACE);
        has_one.then(|| self.directory.join(SOCKET_NAME))
    }

    /// Process that was started; the others descend from it.
    pub(crate) fn root(&self) -> i32 {
        i32::try_from(self.child.id()).expect("process numbers are positive and fit 31 bits")
    }

    /// Stops all its processes until [`Self::resume`].
    pub(crate) fn pause(&mut self) {
        if !self.is_paused {
            signal(process_tree::members(self.root()), Signal::SIGSTOP);
            self.is_paused = true;
        }
    }

    /// Lets it go on and waits until it answers again.
    pub(crate) fn resume(&mut self) -> Result<(), BenchError> {
        if self.is_paused {
            signal(
                process_tree::members(self.root()).into_iter().rev(),
                Signal::SIGCONT,
            );
            self.is_paused = false;
            Client::connect(&self.target())?.must(&["PING"])?;
            thread::sleep(SETTLE);
        }
        Ok(())
    }

    /// What it says about itself.
    pub(crate) fn describe(&self) -> Result<Description, BenchError> {
        let mut client = Client::connect(&self.target())?;
        let all = fields(&client.call(&["INFO", "server"])?.text());
        let (family, version) = family(&all);
        const KEPT: [&str; 12] = [
            "redis_version",
            "server_name",
            "valkey_version",
            "dragonfly_version",
            "sirocco_version",
            "redis_mode",
            "server_mode",
            "arch_bits",
            "multiplexing_api",
            "monotonic_clock",
            "gcc_version",
            "hz",
        ];
        let info = all
            .into_iter()
            .filter(|(name, _)| KEPT.contains(&name.as_str()))
            .collect();
        let config = match client.call(&["CONFIG", "GET", "*"])? {
            Value::Array(items) => items
                .chunks_exact(2)
                .map(|pair| {
                    (
                        pair[0].text(),
                        public_value(&pair[0].text(), &pair[1].text()),
                    )
                })
                .collect(),
            _ => BTreeMap::new(),
        };
        Ok(Description {
            family,
            version,
            start_line: public_line(&self.words),
            processes: process_tree::members(self.root()).len(),
            info,
            config,
        })
    }

    /// One number of INFO memory, such as `used_memory`.
    pub(crate) fn memory_field(&self, name: &str) -> Result<u64, BenchError> {
        info_number(&mut Client::connect(&self.target())?, "memory", name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let root = self.root();
        if self.is_paused {
            signal(
                process_tree::members(root).into_iter().rev(),
                Signal::SIGCONT,
            );
        }
        let members = process_tree::members(root);
        signal([root], Signal::SIGTERM);
        let begin = Instant::now();
        while !matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
            if begin.elapsed() > STOP_MAX {
                kill_tree(root);
                let _ = self.child.wait();
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        // Children that outlived their parent in spite of SIGTERM: none may stay behind, and their
        // port must be free again.
        for pid in members.into_iter().skip(1) {
            if is_orphan_of_ours(pid, &self.directory) {
                signal([pid], Signal::SIGKILL);
                while process_tree::is_alive(pid) && begin.elapsed() < 2 * STOP_MAX {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
        self.interrupt.remove(root);
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Whether PING is answered and a key can be asked for: a server that still loads its data, or whose
/// parts are not together yet, answers the first but not the second.
fn is_ready(target: &Target) -> bool {
    let Ok(mut client) = Client::connect(target) else {
        return false;
    };
    let mut says = |words: &[&str]| client.call(words).ok();
    says(&["PING"]).is_some_and(|reply| reply.text() == "PONG")
        && matches!(says(&["EXISTS", "sirocco:bench"]), Some(Value::Integer(_)))
}

/// Whether `pid` still works in `directory`, so that a number given anew to a stranger is left
/// alone.
fn is_orphan_of_ours(pid: i32, directory: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == directory)
}

fn signal(processes: impl IntoIterator<Item = i32>, signal: Signal) {
    for pid in processes {
        // A process that has just ended needs no signal.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// A program given by a relative path must still be found from the server's own directory.
fn program_path(program: &str) -> PathBuf {
    if program.contains('/') {
        fs::canonicalize(program).unwrap_or_else(|_| program.into())
    } else {
        program.into()
    }
}

fn make_directory(name: &str) -> Result<PathBuf, BenchError> {
    // Two comparisons in one process may each have a server of the same name.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let safe: String = name
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric())
        .collect();
    let directory = std::env::temp_dir().join(format!(
        "sirocco-bench-{}-{number}-{safe}",
        std::process::id()
    ));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory)
        .and_then(|()| fs::canonicalize(&directory))
        .map_err(|error| BenchError::io("make a directory for a server", error))
}

fn free_port() -> Result<u16, BenchError> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| BenchError::io("find a free port", error))
}

/// A setting as it may be published: no paths and no secrets.
fn public_value(name: &str, value: &str) -> String {
    let is_secret = ["pass", "auth", "secret"]
        .iter()
        .any(|word| name.contains(word));
    if is_secret && !value.is_empty() {
        "(hidden)".into()
    } else {
        without_path(value)
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join(" | ")
}

/// One number of a section of INFO.
pub(crate) fn info_number(
    client: &mut Client,
    section: &str,
    name: &str,
) -> Result<u64, BenchError> {
    let text = client.must(&["INFO", section])?.text();
    fields(&text)
        .get(name)
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| BenchError::Server(format!("INFO {section} has no number {name}")))
}

/// `name:value` lines of INFO.
fn fields(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.trim_end().split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn family(info: &BTreeMap<String, String>) -> (Family, String) {
    let known = [
        (Family::Sirocco, "sirocco_version"),
        (Family::Dragonfly, "dragonfly_version"),
        (Family::Valkey, "valkey_version"),
        (Family::Redis, "redis_version"),
    ];
    known
        .into_iter()
        .find_map(|(family, field)| Some((family, info.get(field)?.clone())))
        .unwrap_or((Family::Other, "unknown".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_servers_apart_by_their_info() {
        let told = |text: &str| family(&fields(text));
        assert_eq!(
            told("# Server\r\nredis_version:8.0.6\r\n"),
            (Family::Redis, "8.0.6".into())
        );
        assert_eq!(
            told("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n"),
            (Family::Valkey, "9.1.2".into())
        );
        assert_eq!(
            told("redis_version:8.0.6\nsirocco_version:0.1.0"),
            (Family::Sirocco, "0.1.0".into())
        );
        assert_eq!(told("").0, Family::Other);
    }

    #[test]
    fn settings_are_shown_without_secrets_and_paths() {
        assert_eq!(public_value("requirepass", "hunter2"), "(hidden)");
        assert_eq!(public_value("masterauth", ""), "");
        assert_eq!(public_value("dir", "/srv/data"), "data");
        assert_eq!(public_value("save", "3600 1 300 100"), "3600 1 300 100");
    }

    #[test]
    fn a_start_line_without_a_port_place_is_refused() {
        let interrupt = Interrupt::default();
        for line in ["redis-server", "", "'open"] {
            let error = Server::start("x", line, None, &interrupt).unwrap_err();
            assert!(matches!(error, BenchError::Usage(_)), "{error}");
        }
    }

    #[test]
    fn a_server_that_ends_at_once_is_reported_with_its_words() {
        let line = "sh -c 'echo bad luck; exit 3 # {port}'";
        let error = Server::start("x", line, None, &Interrupt::default()).unwrap_err();
        assert!(error.to_string().contains("bad luck"), "{error}");
    }
}
