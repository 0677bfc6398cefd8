//! A blocking RESP client: one socket, one buffer, replies exactly as they came.
//!
//! Every wait has a deadline, so a test that hangs says where. Nothing is retried and no state is kept for the
//! caller: what is sent is what the test says, also when it is no RESP at all.
//!
//! Not here: transcripts; a ledger of acknowledged writes (`ledger`).

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::reply::{ParseError, Reply};

/// How long a reply may take before the test fails: a debug build on a busy two-core machine is slow.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A TCP port of this machine.
    Tcp(u16),
    /// The path of a unix socket.
    Unix(PathBuf),
}

/// Why a reply did not come.
#[derive(Debug)]
pub enum ReadError {
    /// The server has closed the connection.
    Closed,
    /// Nothing, or only half a reply, within the time given.
    Timeout,
    /// The bytes are no RESP.
    Malformed(String),
    /// The socket failed in another way.
    Io(io::Error),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::Closed => write!(f, "connection closed by the server"),
            ReadError::Timeout => write!(f, "no reply in time"),
            ReadError::Malformed(what) => write!(f, "malformed reply: {what}"),
            ReadError::Io(error) => write!(f, "socket: {error}"),
        }
    }
}

impl std::error::Error for ReadError {}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    buffer: Vec<u8>,
    closed: bool,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// The error of connect(2).
    pub fn connect(address: &Address) -> io::Result<Self> {
        let socket = match address {
            Address::Tcp(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port))?;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
            Address::Unix(path) => Socket::Unix(UnixStream::connect(path as &Path)?),
        };
        Ok(Client {
            socket,
            buffer: Vec::new(),
            closed: false,
        })
    }

    /// Connects, trying again for [`PATIENCE`].
    ///
    /// # Panics
    /// When nobody listens there after that time.
    #[must_use]
    pub fn connect_patiently(address: &Address) -> Self {
        let start = Instant::now();
        loop {
            match Client::connect(address) {
                Ok(client) => return client,
                Err(error) => {
                    assert!(
                        start.elapsed() < PATIENCE,
                        "cannot connect to {address:?}: {error}"
                    );
                }
            }
            crate::pause(Duration::from_millis(5));
        }
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The error of the socket.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.socket {
            Socket::Tcp(stream) => stream.write_all(bytes),
            Socket::Unix(stream) => stream.write_all(bytes),
        }
    }

    /// Sends a command.
    ///
    /// # Errors
    /// The error of the socket.
    pub fn send<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<()> {
        let mut bytes = Vec::new();
        encode_command(args, &mut bytes);
        self.send_raw(&bytes)
    }

    /// Sends a command and waits for its reply.
    ///
    /// # Errors
    /// When no reply comes.
    pub fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Result<Reply, ReadError> {
        self.send(args).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => ReadError::Closed,
            _ => ReadError::Io(error),
        })?;
        self.read(PATIENCE)
    }

    /// Like [`Client::call`] with the words of a line.
    ///
    /// # Panics
    /// When no reply comes.
    #[track_caller]
    pub fn run(&mut self, line: &str) -> Reply {
        let words: Vec<&str> = line.split_whitespace().collect();
        match self.call(&words) {
            Ok(reply) => reply,
            Err(error) => panic!("{line}: {error}"),
        }
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// When none comes within `patience`.
    pub fn read(&mut self, patience: Duration) -> Result<Reply, ReadError> {
        let deadline = Instant::now() + patience;
        // Nothing is parsed again before what the last try missed can be there.
        let mut wanted = 1;
        loop {
            if self.buffer.len() >= wanted {
                match Reply::parse(&self.buffer) {
                    Ok((reply, used)) => {
                        self.buffer.drain(..used);
                        return Ok(reply);
                    }
                    Err(ParseError::Incomplete(size)) => wanted = size,
                    Err(ParseError::Malformed(what)) => return Err(ReadError::Malformed(what)),
                }
            }
            self.fill(deadline)?;
        }
    }

    /// Whether the server closes the connection within `patience`, without sending anything more.
    #[must_use]
    pub fn is_closed_within(&mut self, patience: Duration) -> bool {
        if !self.buffer.is_empty() {
            return false;
        }
        matches!(self.fill(Instant::now() + patience), Err(ReadError::Closed))
    }

    /// Whether nothing comes for a time; the connection stays open.
    #[must_use]
    pub fn is_quiet_for(&mut self, time: Duration) -> bool {
        self.buffer.is_empty()
            && matches!(self.fill(Instant::now() + time), Err(ReadError::Timeout))
    }

    /// Bytes that were received and belong to no reply that was taken.
    #[must_use]
    pub fn leftover(&mut self) -> Vec<u8> {
        let _ = self.fill(Instant::now() + Duration::from_millis(1));
        std::mem::take(&mut self.buffer)
    }

    /// Says that nothing more will be sent; replies can still be read.
    pub fn finish_sending(&mut self) {
        let _ = match &self.socket {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    /// Sends as much of `bytes` as the socket takes within `patience`; gives the count.
    pub fn send_until_stuck(&mut self, bytes: &[u8], patience: Duration) -> usize {
        self.write_timeout(Some(patience));
        let mut sent = 0;
        while sent < bytes.len() {
            let result = match &mut self.socket {
                Socket::Tcp(stream) => stream.write(&bytes[sent..]),
                Socket::Unix(stream) => stream.write(&bytes[sent..]),
            };
            match result {
                Ok(0) | Err(_) => break,
                Ok(count) => sent += count,
            }
        }
        self.write_timeout(None);
        sent
    }

    fn write_timeout(&self, timeout: Option<Duration>) {
        let _ = match &self.socket {
            Socket::Tcp(stream) => stream.set_write_timeout(timeout),
            Socket::Unix(stream) => stream.set_write_timeout(timeout),
        };
    }

    fn fill(&mut self, deadline: Instant) -> Result<(), ReadError> {
        if self.closed {
            return Err(ReadError::Closed);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ReadError::Timeout);
        }
        let mut chunk = vec![0; 64 * 1024];
        let result = match &mut self.socket {
            Socket::Tcp(stream) => stream
                .set_read_timeout(Some(left))
                .and_then(|()| stream.read(&mut chunk)),
            Socket::Unix(stream) => stream
                .set_read_timeout(Some(left))
                .and_then(|()| stream.read(&mut chunk)),
        };
        match result {
            Ok(0) => {
                self.closed = true;
                Err(ReadError::Closed)
            }
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                Ok(())
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Err(ReadError::Timeout),
                io::ErrorKind::Interrupted => Ok(()),
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                    self.closed = true;
                    Err(ReadError::Closed)
                }
                _ => Err(ReadError::Io(error)),
            },
        }
    }
}

/// Appends a command as an array of bulk strings.
pub fn encode_command<A: AsRef<[u8]>>(args: &[A], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
    for arg in args {
        let arg = arg.as_ref();
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}
