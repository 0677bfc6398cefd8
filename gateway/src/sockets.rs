//! The sockets of one gateway thread, on tokio's epoll.
//!
//! One driver future serves all of them, instead of a task per connection: every socket has a waker of
//! its own that writes the socket's place into a list and wakes the driver once. That saves a task
//! switch per event and lets the driver batch: read all, publish once, write all.
//!
//! ```text
//!   epoll ─> waker of socket 7 ─> ready list [3, 7] ─> driver: read 3, read 7
//! ```
//!
//! This is the narrow interface of the I/O engine: `accept`, `read`, `write`, `close`, the ready list.
//! Another engine (io_uring) would stand beside this file.
//!
//! Cost per event: one uncontended lock, one push. A read that does not fill the buffer proves the
//! socket empty, so no second read is needed to find out.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A client's stream of bytes.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// What a read gave.
#[derive(Debug)]
pub(crate) enum ReadOutcome {
    /// So many bytes; `more` if there may be further ones now.
    Bytes { count: usize, more: bool },
    /// Nothing now; the waker is set.
    Pending,
    /// The client sends no more.
    End,
    /// The connection is broken.
    Broken,
}

/// What a write did.
#[derive(Debug)]
pub(crate) enum WriteOutcome {
    /// The socket took so many bytes.
    Taken(usize),
    /// It is full; the waker is set.
    Pending,
    /// The connection is broken.
    Broken,
}

/// Places whose wakers have fired.
#[derive(Debug, Default)]
pub(crate) struct ReadyList {
    places: Mutex<Vec<u32>>,
    driver: Mutex<Option<Waker>>,
    /// The driver has been woken and has not taken the list yet.
    woken: AtomicBool,
}

impl ReadyList {
    fn push(&self, place: u32) {
        self.places
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(place);
        self.wake();
    }

    fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel)
            && let Some(driver) = &*self.driver.lock().unwrap_or_else(PoisonError::into_inner)
        {
            driver.wake_by_ref();
        }
    }

    /// Moves the ready places behind those in `into`. Called by the driver at the start of a turn.
    pub(crate) fn take(&self, into: &mut Vec<u32>, driver: &Waker) {
        self.woken.store(false, Ordering::Release);
        let mut known = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.as_ref().is_some_and(|known| known.will_wake(driver)) {
            *known = Some(driver.clone());
        }
        drop(known);
        into.append(&mut self.places.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Places of listening sockets in the ready list.
pub(crate) const FIRST_LISTENER: u32 = u32::MAX - 255;

/// Place of the doorbell in the ready list.
pub(crate) const BELL: u32 = FIRST_LISTENER - 1;

/// Place of the timer in the ready list.
pub(crate) const TIMER: u32 = FIRST_LISTENER - 2;

/// The first place that is not a client's; those stay far below.
pub(crate) const FIRST_SPECIAL: u32 = TIMER;

/// The waker of one socket.
struct SocketWaker {
    place: u32,
    ready: Arc<ReadyList>,
}

impl Wake for SocketWaker {
    fn wake(self: Arc<Self>) {
        self.ready.push(self.place);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.push(self.place);
    }
}

/// A socket and its waker.
#[derive(Debug)]
struct Socket {
    stream: Stream,
    waker: Waker,
    /// A write found it full; the next event may mean that there is room.
    pub(crate) wants_write: bool,
}

/// All sockets of a thread; a socket has the place of its connection.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    sockets: Vec<Option<Box<Socket>>>,
    pub(crate) ready: Arc<ReadyList>,
}

impl Sockets {
    /// A waker that lists `place` as ready.
    pub(crate) fn waker(&self, place: u32) -> Waker {
        Waker::from(Arc::new(SocketWaker {
            place,
            ready: Arc::clone(&self.ready),
        }))
    }

    /// Takes a socket for `place` and lists it as ready, so that it is read and its waker set.
    pub(crate) fn insert(&mut self, place: u32, stream: Stream) {
        let index = place as usize;
        if self.sockets.len() <= index {
            self.sockets.resize_with(index + 1, || None);
        }
        let waker = self.waker(place);
        if let Some(slot) = self.sockets.get_mut(index) {
            *slot = Some(Box::new(Socket {
                stream,
                waker,
                wants_write: false,
            }));
        }
    }

    /// Closes a socket.
    pub(crate) fn remove(&mut self, place: u32) {
        if let Some(slot) = self.sockets.get_mut(place as usize) {
            *slot = None;
        }
    }

    #[inline]
    fn get(&mut self, place: u32) -> Option<&mut Socket> {
        self.sockets.get_mut(place as usize)?.as_deref_mut()
    }

    /// Whether an event may mean that the socket can be written again; takes the mark down.
    #[inline]
    pub(crate) fn take_wants_write(&mut self, place: u32) -> bool {
        self.get(place)
            .is_some_and(|socket| std::mem::take(&mut socket.wants_write))
    }

    /// Reads what is there into `buffer`.
    #[inline]
    pub(crate) fn read(&mut self, place: u32, buffer: &mut [u8]) -> ReadOutcome {
        let Some(socket) = self.get(place) else {
            return ReadOutcome::Broken;
        };
        let mut buffer = ReadBuf::new(buffer);
        let room = buffer.remaining();
        let mut context = Context::from_waker(&socket.waker);
        let polled = match &mut socket.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(&mut context, &mut buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(&mut context, &mut buffer),
        };
        outcome(polled.map_ok(|()| buffer.filled().len()), room)
    }

    /// Reads behind what is in `buffer`, as far as it has room.
    pub(crate) fn read_behind(&mut self, place: u32, buffer: &mut Vec<u8>) -> ReadOutcome {
        let Some(socket) = self.get(place) else {
            return ReadOutcome::Broken;
        };
        let room = buffer.capacity() - buffer.len();
        let mut context = Context::from_waker(&socket.waker);
        let polled = match &mut socket.stream {
            Stream::Tcp(stream) => {
                tokio_util::io::poll_read_buf(Pin::new(stream), &mut context, buffer)
            }
            Stream::Unix(stream) => {
                tokio_util::io::poll_read_buf(Pin::new(stream), &mut context, buffer)
            }
        };
        outcome(polled, room)
    }

    /// Sets the waker for the next bytes. `false` if there are some already, or an end.
    #[inline]
    pub(crate) fn watch(&mut self, place: u32) -> bool {
        let Some(socket) = self.get(place) else {
            return true;
        };
        let mut context = Context::from_waker(&socket.waker);
        match &socket.stream {
            Stream::Tcp(stream) => stream.poll_read_ready(&mut context).is_pending(),
            Stream::Unix(stream) => stream.poll_read_ready(&mut context).is_pending(),
        }
    }

    /// Writes what the socket takes at once.
    #[inline]
    pub(crate) fn write(&mut self, place: u32, bytes: &[u8]) -> WriteOutcome {
        let Some(socket) = self.get(place) else {
            return WriteOutcome::Broken;
        };
        let mut context = Context::from_waker(&socket.waker);
        let polled = match &mut socket.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(&mut context, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(&mut context, bytes),
        };
        match polled {
            Poll::Ready(Ok(count)) => WriteOutcome::Taken(count),
            Poll::Ready(Err(error)) if is_temporary(&error) => {
                socket.wants_write = true;
                self.ready.push(place);
                WriteOutcome::Pending
            }
            Poll::Ready(Err(_)) => WriteOutcome::Broken,
            Poll::Pending => {
                socket.wants_write = true;
                WriteOutcome::Pending
            }
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
    )
}

fn outcome(polled: Poll<io::Result<usize>>, room: usize) -> ReadOutcome {
    match polled {
        Poll::Ready(Ok(0)) => ReadOutcome::End,
        Poll::Ready(Ok(count)) => ReadOutcome::Bytes {
            count,
            more: count == room,
        },
        Poll::Ready(Err(error)) if is_temporary(&error) => ReadOutcome::Bytes {
            count: 0,
            more: true,
        },
        Poll::Ready(Err(_)) => ReadOutcome::Broken,
        Poll::Pending => ReadOutcome::Pending,
    }
}
