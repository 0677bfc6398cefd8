//! A running server in a folder of its own: our processes or a real Redis, started and ended the same way.
//!
//! It listens on a free port of the loopback and on a unix socket. Its output goes to `server.log` in its
//! folder; when a test fails, the end of it is printed. Dropping it ends every process that it started, and
//! fails the test if one of ours has logged a warning or an error that the test did not announce.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::client::{Address, Client, PATIENCE};
use crate::ports::Port;
use crate::process::{self, Process};
use crate::skip;

/// What is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Our executable, with a number of storage workers.
    Sirocco {
        /// The executable.
        program: PathBuf,
        /// Storage workers.
        workers: usize,
        /// Gateway threads.
        gateway_threads: usize,
    },
    /// A real Redis.
    Redis {
        /// The executable.
        program: PathBuf,
    },
}

impl Kind {
    /// Our executable with one gateway thread.
    #[must_use]
    pub fn sirocco(program: &Path, workers: usize) -> Self {
        Kind::Sirocco {
            program: program.to_path_buf(),
            workers,
            gateway_threads: 1,
        }
    }

    /// Whether it is ours.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        matches!(self, Kind::Sirocco { .. })
    }
}

/// How it is started.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What is started.
    pub kind: Kind,
    /// Settings, in the order in which they are given.
    pub settings: Vec<(String, String)>,
    /// Lines of the configuration file.
    pub file: Vec<String>,
    /// Protocol step at which the first process of each storage worker kills itself (`shm::fault`).
    pub fault_point: Option<String>,
    /// Texts of which one is in every warning and error that may be logged; `None`: any may.
    pub announced: Option<Vec<String>>,
}

impl Setup {
    /// Without any settings.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Setup {
            kind,
            settings: Vec::new(),
            file: Vec::new(),
            fault_point: None,
            announced: Some(Vec::new()),
        }
    }

    /// Warnings and errors with this text are part of the test.
    #[must_use]
    pub fn announcing(mut self, text: &str) -> Self {
        if let Some(announced) = &mut self.announced {
            announced.push(text.to_owned());
        }
        self
    }

    /// Processes will be killed, and much may be said about it.
    #[must_use]
    pub fn with_deaths(mut self) -> Self {
        self.announced = None;
        self
    }

    /// Our executable with one gateway thread.
    #[must_use]
    pub fn sirocco(program: &Path, workers: usize) -> Self {
        Setup::new(Kind::sirocco(program, workers))
    }

    /// Adds a setting.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Lets storage workers die at a named step of their protocols, debug builds only.
    #[must_use]
    pub fn dying_at(mut self, fault_point: &str) -> Self {
        self.fault_point = Some(fault_point.into());
        self.with_deaths()
    }

    /// Starts it and waits until it serves.
    ///
    /// # Panics
    /// When it does not start; the end of its output is printed.
    #[must_use]
    pub fn start(self) -> Server {
        let mut server = self.start_unchecked();
        server.wait_until_ready();
        server
    }

    /// Starts it and waits for nothing.
    ///
    /// # Panics
    /// When the program cannot be run.
    #[must_use]
    pub fn start_unchecked(self) -> Server {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!(
            "{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let folder = tempfile::Builder::new()
            .prefix("sirocco-test-")
            .tempdir()
            .expect("a temporary folder");
        let port = Port::take();
        let socket = folder.path().join("server.sock");
        let mut args: Vec<String> = Vec::new();
        if !self.file.is_empty() {
            let file = folder.path().join("server.conf");
            std::fs::write(&file, self.file.join("\n") + "\n").expect("the folder can be written");
            args.push(file.display().to_string());
        }
        let mut setting = |name: &str, value: &str| {
            args.push(format!("--{name}"));
            args.push(value.to_owned());
        };
        setting("port", &port.number().to_string());
        setting("unixsocket", &socket.display().to_string());
        setting("dir", &folder.path().display().to_string());
        let program = match &self.kind {
            Kind::Sirocco {
                program,
                workers,
                gateway_threads,
            } => {
                setting("storage-workers", &workers.to_string());
                setting("gateway-threads", &gateway_threads.to_string());
                program
            }
            Kind::Redis { program } => {
                setting("save", "");
                setting("appendonly", "no");
                program
            }
        };
        setting("enable-debug-command", "yes");
        for (name, value) in &self.settings {
            setting(name, value);
        }
        let log =
            File::create(folder.path().join("server.log")).expect("the folder can be written");
        let child = Command::new(program)
            .args(&args)
            .env(process::MARK, &mark)
            .envs(
                self.fault_point
                    .iter()
                    .map(|point| ("SIROCCO_FAULT_POINT", point)),
            )
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a descriptor"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {}: {error}", program.display()));
        Server {
            kind: self.kind,
            child,
            folder,
            port,
            socket,
            mark,
            ended: None,
            announced: self.announced,
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    child: Child,
    folder: tempfile::TempDir,
    port: Port,
    socket: PathBuf,
    mark: String,
    ended: Option<ExitStatus>,
    announced: Option<Vec<String>>,
}

impl Server {
    /// What it is.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Its TCP port on the loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Its TCP address.
    #[must_use]
    pub fn tcp(&self) -> Address {
        Address::Tcp(self.port())
    }

    /// Its unix socket.
    #[must_use]
    pub fn unix(&self) -> Address {
        Address::Unix(self.socket.clone())
    }

    /// Its folder: data, configuration, output.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A new connection over TCP.
    #[must_use]
    pub fn connect(&self) -> Client {
        Client::connect_patiently(&self.tcp())
    }

    /// The process that was started: Redis, or our supervisor.
    #[must_use]
    pub fn main_process(&self) -> Process {
        Process {
            pid: i32::try_from(self.child.id()).unwrap_or(i32::MAX),
            args: Vec::new(),
        }
    }

    /// All its processes.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        process::find(&self.mark)
    }

    /// Its processes of one role, in the order of their start.
    #[must_use]
    pub fn role(&self, role: &str) -> Vec<Process> {
        self.processes()
            .into_iter()
            .filter(|process| process.role() == role)
            .collect()
    }

    /// What it has printed.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.folder.path().join("server.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Warnings and errors in its log that the test did not announce.
    fn complaints(&self) -> Vec<String> {
        let (Some(announced), Kind::Sirocco { .. }) = (&self.announced, &self.kind) else {
            return Vec::new();
        };
        let log = self.log();
        let is_complaint = |line: &&str| {
            matches!(line.split_whitespace().nth(3), Some("WARN" | "ERROR"))
                && !announced.iter().any(|text| line.contains(text.as_str()))
        };
        log.lines()
            .filter(is_complaint)
            .map(str::to_owned)
            .collect()
    }

    /// Waits until it answers DBSIZE (or asks for a password).
    ///
    /// # Panics
    /// When it ends or does not answer.
    pub fn wait_until_ready(&mut self) {
        let start = Instant::now();
        loop {
            if let Ok(mut client) = Client::connect(&self.tcp())
                && let Ok(reply) = client.call(&["DBSIZE"])
                && (reply.int().is_some() || reply.text_lossy().starts_with("NOAUTH"))
            {
                return;
            }
            if let Some(status) = self.exit_status() {
                panic!("the server ended with {status}:\n{}", self.log());
            }
            assert!(
                start.elapsed() < PATIENCE,
                "the server does not answer:\n{}",
                self.log()
            );
            crate::pause(Duration::from_millis(5));
        }
    }

    /// The exit status, once the main process has ended.
    #[must_use]
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Waits for the end of the main process.
    ///
    /// # Panics
    /// When it goes on for longer than [`PATIENCE`].
    #[track_caller]
    pub fn wait_for_exit(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.exit_status() {
                return status;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "the server does not end:\n{}",
                self.log()
            );
            crate::pause(Duration::from_millis(5));
        }
    }

    /// Asks the main process to end, and waits for it.
    ///
    /// # Panics
    /// When it does not end.
    pub fn terminate(&mut self) -> ExitStatus {
        self.main_process().signal(Signal::SIGTERM);
        self.wait_for_exit()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let tail = &lines[lines.len().saturating_sub(40)..];
            eprintln!(
                "--- end of the server's output ---\n{}\n---",
                tail.join("\n")
            );
        }
        let complaints = self.complaints();
        // The supervisor first, so that it replaces nobody; then who is left of its children.
        if self.exit_status().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        for _ in 0..3 {
            for process in self.processes() {
                process.signal(Signal::SIGKILL);
            }
        }
        if !complaints.is_empty() && !std::thread::panicking() {
            panic!("logged without being announced:\n{}", complaints.join("\n"));
        }
    }
}

/// A real Redis of the reference version: `SIROCCO_REDIS`, or `redis-server` on the search path.
///
/// Reports loudly, once per program, when there is none.
#[must_use]
pub fn reference() -> Option<Kind> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let named = std::env::var_os("SIROCCO_REDIS").map(PathBuf::from);
        let Some(program) = named.or_else(|| skip::find_program("redis-server")) else {
            skip::report(
                "the comparison with a real Redis",
                "no redis-server, and SIROCCO_REDIS is not set",
            );
            return None;
        };
        let output = Command::new(&program).arg("--version").output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout).into_owned();
        if version.contains("v=8.0.") {
            return Some(program);
        }
        let why = format!("it wants Redis 8.0, found {}", version.trim());
        skip::report("the comparison with a real Redis", &why);
        None
    });
    found.clone().map(|program| Kind::Redis { program })
}
