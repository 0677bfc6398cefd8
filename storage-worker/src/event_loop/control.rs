//! The control thread: hears the supervisor and puts it into the shard thread's mailbox.
//!
//! Why a thread: the control socket is read with blocking calls, and the shard thread sleeps on a
//! futex that a socket cannot ring. The mailbox is a channel; a flag beside it lets the loop see
//! with one load that it is empty.
//!
//! Invariant: mail is sent before the flag is set, the flag before the doorbell is rung.

use proto::registry::Registry;
use proto::settings::Settings;
use runtime::{AttachLink, ChildEvent, ControlReceiver, PartyId, Role};
use shm::{Bell, Party};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// What the shard thread is told.
#[derive(Debug)]
pub(crate) enum Mail {
    /// Attach a link end, dropping an older one of the same number.
    Attach(Box<AttachLink>),
    /// Drop a link end.
    Detach(u32),
    /// The page of a storage worker, perhaps our own.
    Worker(u32, Party),
    /// What another worker works in.
    Neighbour {
        /// The other worker.
        index: u32,
        /// Which memory the arena is.
        generation: u64,
        /// Memory of its arena.
        arena: OwnedFd,
        /// Its journal.
        journal: OwnedFd,
    },
    /// New settings, the version of the registry that brought them, and the registry.
    Settings(u64, Arc<Settings>, Arc<Registry>),
    /// Finish and exit.
    Drain(Duration),
}

/// The receiving end of the mailbox.
#[derive(Debug)]
pub(crate) struct ControlThread {
    mailbox: Receiver<Mail>,
    has_mail: Arc<AtomicBool>,
}

/// The sending end.
struct Postman {
    mailbox: Sender<Mail>,
    has_mail: Arc<AtomicBool>,
    /// The worker's own page, for its doorbell.
    party: Party,
    fingerprint: u64,
}

impl ControlThread {
    /// Starts the thread. `party` is the worker's own page, opened once more.
    ///
    /// # Errors
    /// If the system has no thread to give.
    pub(crate) fn start(
        mut events: ControlReceiver,
        party: Party,
        fingerprint: u64,
    ) -> Result<Self, std::io::Error> {
        let (sender, mailbox) = channel();
        let has_mail = Arc::new(AtomicBool::new(false));
        let postman = Postman {
            mailbox: sender,
            has_mail: Arc::clone(&has_mail),
            party,
            fingerprint,
        };
        std::thread::Builder::new()
            .name("control".into())
            .spawn(move || {
                loop {
                    let event = events.next_event();
                    if !postman.deliver(event) {
                        return;
                    }
                }
            })?;
        Ok(Self { mailbox, has_mail })
    }

    /// Whether there is mail.
    #[inline]
    pub(crate) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire) // pairs with M1: mail visible
    }

    /// All messages that are there.
    pub(crate) fn take_mail(&self) -> Vec<Mail> {
        // First the flag, then the box: what comes in between is in the box, what comes later
        // raises the flag again.
        self.has_mail.store(false, Ordering::SeqCst);
        self.mailbox.try_iter().collect()
    }
}

impl Postman {
    /// False once nobody reads the mailbox any more.
    fn deliver(&self, event: ChildEvent) -> bool {
        let Some(mail) = self.mail_for(event) else {
            return true;
        };
        if self.mailbox.send(mail).is_err() {
            return false;
        }
        self.has_mail.store(true, Ordering::Release); // pairs with M1: mail visible
        self.party.doorbell().ring(&Bell::Futex);
        true
    }

    fn mail_for(&self, event: ChildEvent) -> Option<Mail> {
        match event {
            ChildEvent::AttachLink(attach) => Some(Mail::Attach(Box::new(attach))),
            ChildEvent::DetachLink { link } => Some(Mail::Detach(link)),
            ChildEvent::Peer {
                party:
                    PartyId {
                        role: Role::StorageWorker,
                        index,
                    },
                page,
            } => match Party::open(page, self.fingerprint) {
                Ok(party) => Some(Mail::Worker(index, party)),
                Err(error) => {
                    tracing::error!(index, %error, "page of another worker not usable");
                    None
                }
            },
            ChildEvent::Neighbour {
                worker,
                arena_generation,
                arena,
                journal,
            } => Some(Mail::Neighbour {
                index: worker,
                generation: arena_generation,
                arena,
                journal,
            }),
            ChildEvent::Registry {
                version,
                registry,
                settings,
            } => Some(Mail::Settings(version, settings, registry)),
            ChildEvent::Drain { within } => Some(Mail::Drain(within)),
            ChildEvent::Peer { .. }
            | ChildEvent::PeerState { .. }
            | ChildEvent::Reply { .. }
            | ChildEvent::SupervisorLost => None,
        }
    }
}
