//! The control thread: hears the supervisor and puts it into the mailbox of the thread that serves.
//!
//! Why a thread: the control socket is read with blocking calls, and the other thread sleeps on a futex.
//!
//! Invariant: mail is sent before the flag is set, the flag before the doorbell is rung.

use runtime::{AttachLink, ChildEvent, ControlReceiver};
use shm::{Bell, Party};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// What the serving thread is told.
#[derive(Debug)]
pub(crate) enum Mail {
    /// Attach a link end, dropping an older one of the same number.
    Attach(Box<AttachLink>),
    /// Drop a link end.
    Detach(u32),
    /// The registry has this version now; nothing in it concerns the broker.
    Seen(u64),
    /// Finish and exit.
    Drain,
}

/// The receiving end of the mailbox.
#[derive(Debug)]
pub(crate) struct Control {
    mailbox: Receiver<Mail>,
    has_mail: Arc<AtomicBool>,
}

impl Control {
    /// Starts the thread. `party` is the broker's own page, opened once more.
    ///
    /// # Errors
    /// If the system has no thread to give.
    pub(crate) fn start(mut events: ControlReceiver, party: Party) -> std::io::Result<Self> {
        let (sender, mailbox) = channel();
        let has_mail = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&has_mail);
        std::thread::Builder::new()
            .name("control".into())
            .stack_size(256 << 10)
            .spawn(move || {
                loop {
                    let Some(mail) = mail_for(events.next_event()) else {
                        continue;
                    };
                    if sender.send(mail).is_err() {
                        return;
                    }
                    flag.store(true, Ordering::Release); // pairs with M1: mail visible
                    party.doorbell().ring(&Bell::Futex);
                }
            })?;
        Ok(Self { mailbox, has_mail })
    }

    /// Whether there is mail.
    pub(crate) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire) // pairs with M1: mail visible
    }

    /// All messages that are there.
    pub(crate) fn take_mail(&self) -> Vec<Mail> {
        // First the flag, then the box: what comes later raises the flag again.
        self.has_mail.store(false, Ordering::SeqCst);
        self.mailbox.try_iter().collect()
    }
}

fn mail_for(event: ChildEvent) -> Option<Mail> {
    match event {
        ChildEvent::AttachLink(attach) => Some(Mail::Attach(Box::new(attach))),
        ChildEvent::DetachLink { link } => Some(Mail::Detach(link)),
        ChildEvent::Registry { version, .. } => Some(Mail::Seen(version)),
        ChildEvent::Drain { .. } => Some(Mail::Drain),
        ChildEvent::Peer { .. }
        | ChildEvent::Neighbour { .. }
        | ChildEvent::PeerState { .. }
        | ChildEvent::Reply { .. }
        | ChildEvent::SupervisorLost => None,
    }
}
