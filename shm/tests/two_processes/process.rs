//! Starts this binary again in a role, hands it segments, waits for its death or its success.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use shm::fault::{self, FaultPoint};

/// The environment variable that makes `entry` a child's main function.
const ROLE: &str = "SHM_TEST_ROLE";

/// Longest wait for anything: a watchdog, never a measure.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// What a child is given.
pub struct Plan {
    pub number: u64,
    pub fds: Vec<OwnedFd>,
}

impl Plan {
    pub fn take(&mut self) -> OwnedFd {
        self.fds.remove(0)
    }
}

/// A fault point and the pass at which it kills.
pub type Fault = (FaultPoint, u32);

pub struct Child {
    process: std::process::Child,
    _control: OwnedFd,
}

/// Starts a child in `role` with a number and descriptors.
pub fn start(role: &str, fault: Option<Fault>, number: u64, fds: &[BorrowedFd<'_>]) -> Child {
    let family = AddressFamily::Unix;
    let (ours, theirs) =
        socketpair(family, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap();
    shm::send_with_fds(ours.as_fd(), &number.to_le_bytes(), fds).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "process::entry",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(ROLE, role)
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null());
    if let Some((point, nth)) = fault {
        command.env(fault::ENVIRONMENT, format!("{}:{nth}", point.name()));
    }
    Child {
        process: command.spawn().unwrap(),
        _control: ours,
    }
}

impl Child {
    /// Waits until the child has died at its fault point.
    pub fn died(self) {
        let status = self.ended();
        assert_eq!(
            status.signal(),
            Some(9),
            "the child passed its fault point: {status}"
        );
    }

    /// Waits until the child has done its work.
    pub fn succeeded(self) {
        let status = self.ended();
        assert!(status.success(), "the child failed: {status}");
    }

    /// Waits for either; true if it has done its work.
    pub fn succeeded_or_died(self) -> bool {
        let status = self.ended();
        assert!(
            status.success() || status.signal() == Some(9),
            "the child failed: {status}"
        );
        status.success()
    }

    fn ended(mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            if start.elapsed() > DEADLINE {
                self.process.kill().unwrap();
                panic!("the child hangs");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Waits until a condition holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < DEADLINE, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn entry() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    fault::arm_from_environment().unwrap();
    let mut message = Vec::new();
    let stdin = std::io::stdin();
    let fds = shm::recv_with_fds(stdin.as_fd(), &mut message)
        .unwrap()
        .unwrap();
    let plan = Plan {
        number: u64::from_le_bytes(message.try_into().unwrap()),
        fds,
    };
    match role.as_str() {
        "producer" => super::ring::producer(plan),
        "consumer" => super::ring::consumer(plan),
        "worker" => super::worker::worker(plan),
        "visitor" => super::lease::visitor(plan),
        "registrar" => super::registry::registrar(plan),
        _ => panic!("unknown role {role}"),
    }
}
