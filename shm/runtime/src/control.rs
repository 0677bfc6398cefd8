//! Sends and receives control messages with descriptors, on either end.
//!
//! Protocol: a packet of a SOCK_SEQPACKET socket is one JSON message; descriptors are attached to
//! it. The supervisor's end is non-blocking, a child's end is blocking.
//!
//! Not here: what the messages mean (`message`).

use crate::message::FromChild;
use serde::{Serialize, de::DeserializeOwned};
use shm::ShmError;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Descriptors in one message, at most. The kernel's bound is 253.
pub const DESCRIPTORS_MAX: usize = 200;

/// Why a message could not be sent or received.
#[derive(Debug)]
pub enum ControlError {
    /// The socket failed, or descriptors were lost.
    Socket(ShmError),
    /// The message is none of ours: another version is at the other end.
    Malformed(serde_json::Error),
    /// The other end is closed.
    Closed,
    /// The number of descriptors does not fit the message.
    DescriptorCount {
        /// How many came.
        found: usize,
        /// How many the message needs.
        want: usize,
    },
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(error) => write!(f, "control socket: {error}"),
            Self::Malformed(error) => write!(f, "control message not understood: {error}"),
            Self::Closed => write!(f, "control socket closed"),
            Self::DescriptorCount { found, want } => {
                write!(
                    f,
                    "control message with {found} descriptors instead of {want}"
                )
            }
        }
    }
}

impl std::error::Error for ControlError {}

impl ControlError {
    /// Whether a non-blocking socket would have had to wait.
    pub fn is_would_block(&self) -> bool {
        matches!(self, Self::Socket(error) if error.is_would_block())
    }
}

/// Sends one message.
///
/// # Errors
/// See [`ControlError`]; on a non-blocking socket also [`ControlError::is_would_block`].
pub fn send<T: Serialize>(
    socket: BorrowedFd<'_>,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), ControlError> {
    let bytes = serde_json::to_vec(message).map_err(ControlError::Malformed)?;
    shm::send_with_fds(socket, &bytes, descriptors).map_err(ControlError::Socket)
}

/// Receives one message with its descriptors; `buffer` is scratch space that keeps its capacity.
///
/// # Errors
/// See [`ControlError`]; on a non-blocking socket also [`ControlError::is_would_block`].
pub fn receive<T: DeserializeOwned>(
    socket: BorrowedFd<'_>,
    buffer: &mut Vec<u8>,
) -> Result<(T, Vec<OwnedFd>), ControlError> {
    let received = shm::recv_with_fds(socket, buffer).map_err(ControlError::Socket)?;
    let descriptors = received.ok_or(ControlError::Closed)?;
    let message = serde_json::from_slice(buffer).map_err(ControlError::Malformed)?;
    Ok((message, descriptors))
}

/// A child's sending end; every thread may have one.
#[derive(Clone, Debug)]
pub struct ControlSender {
    socket: Arc<OwnedFd>,
}

impl ControlSender {
    pub(crate) fn new(socket: Arc<OwnedFd>) -> Self {
        Self { socket }
    }

    /// Sends one message. A supervisor that is gone is an error that serving need not care about.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn send(&self, message: &FromChild) -> Result<(), ControlError> {
        send(self.socket.as_fd(), message, &[])
    }
}
