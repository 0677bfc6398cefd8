//! The tasks that belong to one running process: wait for its end, send to it, listen to it.
//!
//! Invariants: messages arrive in the order in which they were put into the mailbox; a socket that
//! takes nothing (the process is stopped) holds back its own mailbox only.

use super::core::Event;
use super::segments::Handle;
use super::spawn;
use runtime::control::{self, ControlError};
use runtime::message::{FromChild, ToChild};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use tokio::io::unix::AsyncFd;
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio::task::spawn_local;

/// A message with its descriptors.
#[derive(Debug)]
pub struct Parcel {
    /// The message.
    pub message: ToChild,
    /// Its descriptors, in order.
    pub handles: Vec<Handle>,
}

/// Which process, in which generation.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    /// Position of its place.
    pub process: usize,
    /// Its generation.
    pub generation: u64,
}

/// Starts the tasks of a process and returns its mailbox.
///
/// # Errors
/// If the control socket cannot be watched.
pub fn tend(
    who: Who,
    child: Child,
    socket: OwnedFd,
    events: mpsc::UnboundedSender<Event>,
) -> io::Result<mpsc::UnboundedSender<Parcel>> {
    spawn_local(wait(who, child, events.clone()));
    #[expect(
        deprecated,
        reason = "an OwnedFd upholds what the unsafe successor of this call asks for"
    )]
    let socket = Rc::new(AsyncFd::new(socket)?);
    let (mailbox, parcels) = mpsc::unbounded_channel();
    spawn_local(deliver(Rc::clone(&socket), parcels));
    spawn_local(listen(who, socket, events));
    Ok(mailbox)
}

async fn wait(who: Who, mut child: Child, events: mpsc::UnboundedSender<Event>) {
    let death = spawn::death(child.wait().await);
    // The loop may have ended: then nobody needs to know.
    let _ = events.send(Event::Died {
        process: who.process,
        generation: who.generation,
        death,
    });
}

async fn deliver(socket: Rc<AsyncFd<OwnedFd>>, mut parcels: mpsc::UnboundedReceiver<Parcel>) {
    while let Some(parcel) = parcels.recv().await {
        loop {
            let Ok(mut ready) = socket.writable().await else {
                return;
            };
            let fds: Vec<BorrowedFd<'_>> = parcel.handles.iter().map(Handle::fd).collect();
            match control::send(socket.get_ref().as_fd(), &parcel.message, &fds) {
                Ok(()) => break,
                Err(error) if error.is_would_block() => ready.clear_ready(),
                // The process is gone; its end arrives as an event.
                Err(_) => return,
            }
        }
    }
}

async fn listen(who: Who, socket: Rc<AsyncFd<OwnedFd>>, events: mpsc::UnboundedSender<Event>) {
    let mut buffer = Vec::new();
    loop {
        let Ok(mut ready) = socket.readable().await else {
            return;
        };
        match control::receive::<FromChild>(socket.get_ref().as_fd(), &mut buffer) {
            Ok((message, _)) => {
                let Who {
                    process,
                    generation,
                } = who;
                let _ = events.send(Event::Message {
                    process,
                    generation,
                    message,
                });
            }
            Err(error) if error.is_would_block() => ready.clear_ready(),
            Err(ControlError::Malformed(error)) => {
                tracing::error!(process = who.process, "message not understood: {error}");
            }
            Err(_) => return,
        }
    }
}
