//! Hands descriptors to another process over a Unix socket, and makes eventfds.
//!
//! Why SOCK_SEQPACKET: a message and its descriptors arrive together and whole, or not at all, so
//! the control protocol needs no framing of its own.
//!
//! Invariants: a message has at least one byte, because an empty one looks like the end of the
//! connection. Descriptors arrive with close-on-exec set. Nothing leaks: descriptors of a message
//! that turns out truncated are closed.
//! Cost: one system call to send, two to receive (the first asks for the length).

#![expect(unsafe_code, reason = "ownership of received descriptors")]

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recv, recvmsg, sendmsg,
};

use crate::ShmError;

/// Descriptors that fit into one message; the kernel's own bound is 253.
const FDS_MAX: usize = 253;

/// Sends one message with descriptors. `socket` is a connected SOCK_SEQPACKET socket; the
/// descriptors stay open here.
///
/// # Errors
/// [`ShmError::TooLarge`] for an empty message, too many descriptors or too many bytes for the
/// socket; [`ShmError::Io`] when the peer is gone (EPIPE) or a non-blocking socket is full (see
/// [`ShmError::is_would_block`]).
pub fn send_with_fds(
    socket: BorrowedFd<'_>,
    message: &[u8],
    fds: &[BorrowedFd<'_>],
) -> Result<(), ShmError> {
    if message.is_empty() || fds.len() > FDS_MAX {
        let (what, bytes) = ("descriptors in a control message", fds.len() as u64);
        return Err(ShmError::TooLarge {
            what,
            bytes,
            limit: FDS_MAX as u64,
        });
    }
    let raw: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let ancillary = if raw.is_empty() { &[][..] } else { &rights[..] };
    let parts = [IoSlice::new(message)];
    loop {
        let sent = sendmsg::<UnixAddr>(
            socket.as_raw_fd(),
            &parts,
            ancillary,
            MsgFlags::MSG_NOSIGNAL,
            None,
        );
        match sent {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(Errno::EMSGSIZE) => {
                let (what, bytes) = ("control message", message.len() as u64);
                return Err(ShmError::TooLarge {
                    what,
                    bytes,
                    limit: bytes - 1,
                });
            }
            Err(errno) => return Err(ShmError::from_errno(errno, "sending a control message", 0)),
        }
    }
}

/// Receives one message into `message` (whatever it held before is gone) and its descriptors.
/// `None` when the peer has closed the connection.
///
/// # Errors
/// [`ShmError::OutOfDescriptors`] or [`ShmError::Truncated`] if descriptors were lost on the way;
/// [`ShmError::Io`], see [`ShmError::is_would_block`] for non-blocking sockets.
pub fn recv_with_fds(
    socket: BorrowedFd<'_>,
    message: &mut Vec<u8>,
) -> Result<Option<Vec<OwnedFd>>, ShmError> {
    let failed = |errno| ShmError::from_errno(errno, "receiving a control message", 0);
    message.clear();
    let length = again(|| {
        let peek = MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC;
        recv(socket.as_raw_fd(), &mut [0; 1], peek)
    });
    let length = match length {
        Ok(0) | Err(Errno::ECONNRESET) => return Ok(None),
        Ok(length) => length,
        Err(errno) => return Err(failed(errno)),
    };
    message.resize(length, 0);
    let mut ancillary = nix::cmsg_space!([RawFd; FDS_MAX]);
    let mut fds = Vec::new();
    let (bytes, flags) = loop {
        let mut parts = [IoSliceMut::new(message)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let received =
            recvmsg::<UnixAddr>(socket.as_raw_fd(), &mut parts, Some(&mut ancillary), flags);
        let received = match received {
            Err(Errno::EINTR) => continue,
            Err(Errno::ECONNRESET) => return Ok(None),
            other => other.map_err(failed)?,
        };
        // An error here is a lack of room in `ancillary`: the flags below say so too.
        for control in received.cmsgs().into_iter().flatten() {
            if let ControlMessageOwned::ScmRights(raw) = control {
                // SAFETY: the kernel has just opened these descriptors for this process, and nobody
                // else knows them.
                fds.extend(
                    raw.into_iter()
                        .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }),
                );
            }
        }
        break (received.bytes, received.flags);
    };
    if flags.contains(MsgFlags::MSG_CTRUNC) {
        // The kernel drops what it finds no descriptor for.
        return Err(ShmError::OutOfDescriptors {
            what: "receiving descriptors",
        });
    }
    if bytes != length || flags.contains(MsgFlags::MSG_TRUNC) {
        return Err(ShmError::Truncated);
    }
    Ok(Some(fds))
}

/// A new eventfd, non-blocking and close-on-exec: the bell of a party that sleeps in epoll.
///
/// # Errors
/// [`ShmError::OutOfDescriptors`] or [`ShmError::Io`].
pub fn eventfd() -> Result<OwnedFd, ShmError> {
    EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
        .map(OwnedFd::from)
        .map_err(|errno| ShmError::from_errno(errno, "eventfd", 0))
}

fn again<T>(mut call: impl FnMut() -> nix::Result<T>) -> nix::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
}
