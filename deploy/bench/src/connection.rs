//! One measured connection: a non-blocking socket, what could not be sent yet, and the reply
//! counter.
//!
//! Level-triggered readiness and one `read` per event: a read that does not fill the buffer needs
//! no second call to learn that nothing is left. Bytes are written straight from the shared image;
//! only what the socket refuses is copied, and only then is the connection registered for
//! writability.
//!
//! Cost: per batch one `write`, one `read` and its share of an `epoll_wait`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::unistd::{read, write};

use crate::client::{Client, Target};
use crate::error::BenchError;
use crate::reply_skipper::{Reply, ReplySkipper};

/// Size of the read buffer of a thread: a batch of 30 values of 4 KB in one system call.
pub(crate) const READ_BUFFER_BYTES: usize = 128 * 1024;

/// Descriptors that a run needs beside its connections, with much to spare.
const OTHER_DESCRIPTORS: u64 = 64;

/// Raises the soft limit of open descriptors if `connections` would not fit under it.
pub(crate) fn make_room_for(connections: usize) -> Result<(), BenchError> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let needed = connections as u64 + OTHER_DESCRIPTORS;
    let error = |errno| BenchError::io("raise the limit of open descriptors", errno);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(error)?;
    if needed > hard {
        return Err(BenchError::Usage(format!(
            "{connections} connections need {needed} descriptors, the hard limit is {hard}"
        )));
    }
    if needed > soft {
        setrlimit(Resource::RLIMIT_NOFILE, needed, hard).map_err(error)?;
    }
    Ok(())
}

/// A socket that carries measured traffic.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    skipper: ReplySkipper,
    unsent: Vec<u8>,
    /// How much of `unsent` is already on its way.
    sent: usize,
    token: u64,
}

impl Connection {
    /// Connects, enters, and registers with `epoll` under `token`.
    pub(crate) fn open(target: &Target, epoll: &Epoll, token: u64) -> Result<Self, BenchError> {
        let socket = Client::connect(target)?.into_socket()?;
        epoll
            .add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, token))
            .map_err(|errno| BenchError::io("watch a socket", errno))?;
        Ok(Self {
            socket,
            skipper: ReplySkipper::default(),
            unsent: Vec::new(),
            sent: 0,
            token,
        })
    }

    /// Sends `bytes`, or as much as the socket takes; the rest follows on [`Self::flush`].
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8], epoll: &Epoll) -> Result<(), BenchError> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return Ok(());
        }
        let taken = write_some(self.socket.as_fd(), bytes)?;
        if taken < bytes.len() {
            self.unsent.extend_from_slice(&bytes[taken..]);
            self.watch(epoll, EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT)?;
        }
        Ok(())
    }

    /// Sends more of what was refused before.
    pub(crate) fn flush(&mut self, epoll: &Epoll) -> Result<(), BenchError> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        self.sent += write_some(self.socket.as_fd(), &self.unsent[self.sent..])?;
        if self.sent == self.unsent.len() {
            self.unsent.clear();
            self.sent = 0;
            self.watch(epoll, EpollFlags::EPOLLIN)?;
        }
        Ok(())
    }

    /// Reads once and reports each reply that is complete now.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        on_reply: impl FnMut(&Reply),
    ) -> Result<(), BenchError> {
        match read(&self.socket, buffer) {
            Ok(0) => Err(BenchError::Server(match self.skipper.first_error() {
                Some(text) => format!("closed a connection after the error '{text}'"),
                None => "closed a connection".into(),
            })),
            Ok(count) => self
                .skipper
                .feed(&buffer[..count], on_reply)
                .map_err(|error| BenchError::Server(error.to_string())),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
            Err(errno) => Err(BenchError::io("read from a connection", errno)),
        }
    }

    /// First error reply seen, if any.
    pub(crate) fn first_error(&self) -> Option<String> {
        self.skipper.first_error()
    }

    fn watch(&self, epoll: &Epoll, flags: EpollFlags) -> Result<(), BenchError> {
        epoll
            .modify(&self.socket, &mut EpollEvent::new(flags, self.token))
            .map_err(|errno| BenchError::io("watch a socket", errno))
    }
}

#[inline]
fn write_some(socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, BenchError> {
    match write(socket, bytes) {
        Ok(count) => Ok(count),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(0),
        Err(errno) => Err(BenchError::io("write to a connection", errno)),
    }
}
