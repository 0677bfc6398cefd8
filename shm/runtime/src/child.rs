//! A child's side of its life: take over the plan, then one event after another.
//!
//! ```text
//!   let mut child = Child::from_control_socket()?;     // blocks until Start
//!   let party = child.take_party(0)?; let journal = child.take(&Descriptor::Journal)?; ...
//!   let mut events = child.events();                    // to the thread that handles control
//!   child.sender().send(&FromChild::Ready)?;
//!   loop { match events.next_event() { ... } }
//! ```
//!
//! Invariants
//!   - Losing the supervisor is an event, not an error; `supervisor-timeout` seconds later comes
//!     [`ChildEvent::Drain`], and from the loss on SIGTERM ends the process.
//!   - A registry event carries parsed settings; the log level has been applied already.
//!
//! Not here: what gateway and worker do with an event.

use crate::control::{self, ControlError, ControlSender};
use crate::message::{LinkPlan, PeerState, ToChild};
use crate::plan::{Descriptor, PartyId, Plan};
use crate::{logging, signals};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use proto::registry::{Registry, RegistryError};
use proto::settings::Settings;
use shm::{Party, RegistrySegment, ShmError};
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why a child cannot start.
#[derive(Debug)]
pub enum ChildError {
    /// The control socket failed.
    Control(ControlError),
    /// A segment is not what this build expects.
    Segment(ShmError),
    /// The registry is not what this build expects.
    Registry(RegistryError),
    /// The plan promised a descriptor that did not come.
    NoDescriptor(Descriptor),
    /// An operation of the system failed.
    System(std::io::Error),
}

impl fmt::Display for ChildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control(error) => error.fmt(f),
            Self::Segment(error) => error.fmt(f),
            Self::Registry(error) => error.fmt(f),
            Self::NoDescriptor(which) => write!(f, "no descriptor for {which:?}"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChildError {}

impl From<ControlError> for ChildError {
    fn from(error: ControlError) -> Self {
        Self::Control(error)
    }
}

impl From<ShmError> for ChildError {
    fn from(error: ShmError) -> Self {
        Self::Segment(error)
    }
}

impl From<RegistryError> for ChildError {
    fn from(error: RegistryError) -> Self {
        Self::Registry(error)
    }
}

/// One end of a link with its descriptors.
#[derive(Debug)]
pub struct AttachLink {
    /// Which link, which end, which peer.
    pub plan: LinkPlan,
    /// The link segment.
    pub segment: OwnedFd,
    /// The party page of the peer: its doorbell, news and state.
    pub peer_party: OwnedFd,
    /// The eventfd that wakes the peer; without one its futex does.
    pub peer_bell: Option<OwnedFd>,
}

/// What a child hears.
#[derive(Debug)]
pub enum ChildEvent {
    /// Attach a link end, dropping an older one of the same number.
    AttachLink(AttachLink),
    /// Drop a link end.
    DetachLink {
        /// The link.
        link: u32,
    },
    /// The statistics page of another process.
    Peer {
        /// Whose.
        party: PartyId,
        /// The page.
        page: OwnedFd,
    },
    /// What another storage worker works in.
    Neighbour {
        /// The other worker.
        worker: u32,
        /// Which memory the arena is.
        arena_generation: u64,
        /// Memory of its arena.
        arena: OwnedFd,
        /// Its journal, where the lease of the arena is.
        journal: OwnedFd,
    },
    /// A peer changed its state.
    PeerState {
        /// The peer.
        party: PartyId,
        /// Generation of the process that the state is about.
        generation: u64,
        /// Its state.
        state: PeerState,
    },
    /// A new version of the registry, to be confirmed with `RegistrySeen` once it is in force.
    Registry {
        /// The version.
        version: u64,
        /// All of it.
        registry: Arc<Registry>,
        /// Its settings, typed.
        settings: Arc<Settings>,
    },
    /// Answer to a request of this child.
    Reply {
        /// Number of the request.
        request: u64,
        /// Text of the reply or of the error.
        result: Result<String, String>,
    },
    /// Finish and exit.
    Drain {
        /// The time that is left.
        within: Duration,
    },
    /// The supervisor is gone. Go on serving; [`Self::Drain`] follows after `supervisor-timeout`.
    SupervisorLost,
}

/// A started child before it serves.
#[derive(Debug)]
pub struct Child {
    plan: Plan,
    descriptors: Vec<(Descriptor, OwnedFd)>,
    socket: Arc<OwnedFd>,
    registry: Arc<RegistrySegment>,
    version: u64,
    current: (Arc<Registry>, Arc<Settings>),
}

impl Child {
    /// Takes the control socket from standard input, waits for the plan, starts logging and blocks
    /// the signals that only the supervisor handles. Call it first, in the main thread.
    ///
    /// # Errors
    /// If this process was not started by a supervisor of the same build.
    pub fn from_control_socket() -> Result<Self, ChildError> {
        signals::block_in_this_thread().map_err(|errno| ChildError::System(errno.into()))?;
        let socket = std::io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .map_err(ChildError::System)?;
        let null = std::fs::File::open("/dev/null").map_err(ChildError::System)?;
        nix::unistd::dup2_stdin(&null).map_err(|errno| ChildError::System(errno.into()))?;
        Self::from_socket(socket)
    }

    /// As [`Self::from_control_socket`], over any connected socket (tests).
    ///
    /// # Errors
    /// See there.
    pub fn from_socket(socket: OwnedFd) -> Result<Self, ChildError> {
        let mut buffer = Vec::new();
        let mut descriptors: Vec<(Descriptor, OwnedFd)> = Vec::new();
        let plan = loop {
            let (message, fds) = control::receive::<ToChild>(socket.as_fd(), &mut buffer)?;
            match message {
                ToChild::Descriptors(names) => {
                    expect_count(&fds, names.len())?;
                    descriptors.extend(names.into_iter().zip(fds));
                }
                ToChild::Start(plan) => break *plan,
                _ => {}
            }
        };
        logging::start(&plan.log_name());
        shm::fault::arm_from_environment()?;
        let fd = take(&mut descriptors, &Descriptor::Registry)?;
        let registry = Arc::new(RegistrySegment::open(fd, plan.fingerprints.system)?);
        let (version, current) = read_registry(&registry)?;
        Ok(Self {
            plan,
            descriptors,
            socket: Arc::new(socket),
            registry,
            version,
            current,
        })
    }

    /// What this process is told to be.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Takes a descriptor of the plan; each can be taken once.
    ///
    /// # Errors
    /// [`ChildError::NoDescriptor`].
    pub fn take(&mut self, which: &Descriptor) -> Result<OwnedFd, ChildError> {
        take(&mut self.descriptors, which)
    }

    /// Takes and opens the page of this process' own party with this index.
    ///
    /// # Errors
    /// If it is missing or of another build.
    pub fn take_party(&mut self, index: u32) -> Result<Party, ChildError> {
        let fd = self.take(&Descriptor::Party { index })?;
        Ok(Party::open(fd, self.plan.fingerprints.system)?)
    }

    /// Takes every TCP listener of a thread, with its address.
    pub fn take_tcp_listeners(&mut self, of: u32) -> Vec<(String, OwnedFd)> {
        let is_it = |(which, _): &mut (Descriptor, OwnedFd)| match which {
            Descriptor::TcpListener { thread, .. } => *thread == of,
            _ => false,
        };
        let taken = self.descriptors.extract_if(.., is_it);
        taken
            .filter_map(|(which, fd)| match which {
                Descriptor::TcpListener { address, .. } => Some((address, fd)),
                _ => None,
            })
            .collect()
    }

    /// Takes the unix listener, with its path, if there is one.
    pub fn take_unix_listener(&mut self) -> Option<(String, OwnedFd)> {
        let is_it =
            |(which, _): &(Descriptor, OwnedFd)| matches!(which, Descriptor::UnixListener { .. });
        let position = self.descriptors.iter().position(is_it)?;
        match self.descriptors.remove(position) {
            (Descriptor::UnixListener { path }, fd) => Some((path, fd)),
            _ => None,
        }
    }

    /// The version of the registry at the start.
    pub fn registry_version(&self) -> u64 {
        self.version
    }

    /// The registry at the start.
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.current.0)
    }

    /// The settings at the start.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.current.1)
    }

    /// A sending end of the control socket.
    pub fn sender(&self) -> ControlSender {
        ControlSender::new(Arc::clone(&self.socket))
    }

    /// The receiving end of the control socket. Only one thread should have it.
    pub fn events(&self) -> ControlReceiver {
        ControlReceiver {
            socket: Some(Arc::clone(&self.socket)),
            registry: Arc::clone(&self.registry),
            buffer: Vec::new(),
            settings: self.settings(),
            lost_at: None,
        }
    }
}

/// A child's receiving end.
#[derive(Debug)]
pub struct ControlReceiver {
    socket: Option<Arc<OwnedFd>>,
    registry: Arc<RegistrySegment>,
    buffer: Vec<u8>,
    settings: Arc<Settings>,
    lost_at: Option<Instant>,
}

impl ControlReceiver {
    /// Waits for the next event.
    pub fn next_event(&mut self) -> ChildEvent {
        loop {
            if let Some(event) = self.next_event_within(Duration::from_secs(3600)) {
                return event;
            }
        }
    }

    /// Waits for the next event, at most this long.
    pub fn next_event_within(&mut self, timeout: Duration) -> Option<ChildEvent> {
        let until = Instant::now() + timeout;
        loop {
            let Some(socket) = self.socket.clone() else {
                return self.orphaned(until);
            };
            let left = until.saturating_duration_since(Instant::now());
            match wait_readable(&socket, left) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(_) => return Some(self.lost("cannot wait for it")),
            }
            match control::receive::<ToChild>(socket.as_fd(), &mut self.buffer) {
                Ok((message, fds)) => match self.event(message, fds) {
                    Ok(Some(event)) => return Some(event),
                    Ok(None) => {}
                    Err(error) => tracing::error!(%error, "control message dropped"),
                },
                Err(ControlError::Closed) => return Some(self.lost("closed")),
                Err(error) if error.is_would_block() => {}
                Err(error @ ControlError::Malformed(_)) => {
                    tracing::error!(%error, "control message dropped");
                }
                Err(error) => return Some(self.lost(&error.to_string())),
            }
        }
    }

    fn lost(&mut self, reason: &str) -> ChildEvent {
        let timeout = self.settings.supervisor_timeout();
        tracing::warn!(
            reason,
            "the supervisor is gone; serving goes on for {timeout} s"
        );
        self.socket = None;
        self.lost_at = Some(Instant::now());
        // From here on nobody else translates these signals into a drain.
        if let Err(errno) = signals::unblock_in_this_thread() {
            tracing::warn!(%errno, "signals stay blocked");
        }
        ChildEvent::SupervisorLost
    }

    /// Without a supervisor: sleep until the caller's time is up or this process must end.
    fn orphaned(&mut self, until: Instant) -> Option<ChildEvent> {
        let timeout = u64::try_from(self.settings.supervisor_timeout()).unwrap_or(60);
        let end = self.lost_at.unwrap_or(until) + Duration::from_secs(timeout);
        std::thread::sleep(end.min(until).saturating_duration_since(Instant::now()));
        if Instant::now() < end {
            return None;
        }
        self.lost_at = Some(Instant::now());
        tracing::warn!("no supervisor for {timeout} s: finishing");
        Some(ChildEvent::Drain {
            within: Duration::from_secs(10),
        })
    }

    fn event(
        &mut self,
        message: ToChild,
        fds: Vec<OwnedFd>,
    ) -> Result<Option<ChildEvent>, ChildError> {
        let mut fds = fds;
        Ok(Some(match message {
            ToChild::Descriptors(_) | ToChild::Start(_) => return Ok(None),
            ToChild::AttachLink(plan) => {
                expect_count(&fds, if plan.has_bell { 3 } else { 2 })?;
                let mut fds = fds.into_iter();
                let (Some(segment), Some(peer_party)) = (fds.next(), fds.next()) else {
                    return Ok(None);
                };
                ChildEvent::AttachLink(AttachLink {
                    plan,
                    segment,
                    peer_party,
                    peer_bell: fds.next(),
                })
            }
            ToChild::DetachLink { link } => ChildEvent::DetachLink { link },
            ToChild::Peer { party } => {
                expect_count(&fds, 1)?;
                ChildEvent::Peer {
                    party,
                    page: fds.remove(0),
                }
            }
            ToChild::Neighbour {
                worker,
                arena_generation,
            } => {
                expect_count(&fds, 2)?;
                ChildEvent::Neighbour {
                    worker,
                    arena_generation,
                    arena: fds.remove(0),
                    journal: fds.remove(0),
                }
            }
            ToChild::PeerState {
                party,
                generation,
                state,
            } => ChildEvent::PeerState {
                party,
                generation,
                state,
            },
            ToChild::Registry { .. } => {
                let (version, (registry, settings)) = read_registry(&self.registry)?;
                self.settings = Arc::clone(&settings);
                ChildEvent::Registry {
                    version,
                    registry,
                    settings,
                }
            }
            ToChild::Reply { request, result } => ChildEvent::Reply { request, result },
            ToChild::Drain { within_ms } => ChildEvent::Drain {
                within: Duration::from_millis(within_ms),
            },
        }))
    }
}

type Current = (Arc<Registry>, Arc<Settings>);

fn read_registry(segment: &RegistrySegment) -> Result<(u64, Current), ChildError> {
    // A reader that is always overtaken is possible only while somebody changes settings in a loop.
    let mut read = segment.read();
    while matches!(read, Err(ShmError::Contended)) {
        std::thread::sleep(Duration::from_millis(1));
        read = segment.read();
    }
    let (version, bytes) = read?;
    let registry = Registry::from_bytes(&bytes)?;
    let settings = registry.typed_settings()?;
    logging::set_level(settings.loglevel());
    Ok((version, (Arc::new(registry), Arc::new(settings))))
}

fn take(
    descriptors: &mut Vec<(Descriptor, OwnedFd)>,
    which: &Descriptor,
) -> Result<OwnedFd, ChildError> {
    let position = descriptors.iter().position(|(name, _)| name == which);
    let position = position.ok_or_else(|| ChildError::NoDescriptor(which.clone()))?;
    Ok(descriptors.remove(position).1)
}

fn expect_count(fds: &[OwnedFd], want: usize) -> Result<(), ChildError> {
    if fds.len() == want {
        return Ok(());
    }
    Err(ControlError::DescriptorCount {
        found: fds.len(),
        want,
    }
    .into())
}

/// Whether the socket has something to read (or is closed) within the time.
fn wait_readable(socket: &OwnedFd, timeout: Duration) -> Result<bool, nix::errno::Errno> {
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    match nix::poll::poll(&mut fds, timeout) {
        Ok(count) => Ok(count > 0),
        Err(nix::errno::Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}
