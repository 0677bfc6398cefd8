//! A small blocking RESP client for everything outside the measured interval: handshake, PING,
//! INFO, CONFIG GET, FLUSHALL, samples of the pre-fill.
//!
//! Why not a client package: the generator must connect in exactly this way anyway (the measured
//! connections begin as one of these), and the few replies needed fit one page of code.
//!
//! Not here: the measured traffic (`connection`), which reads no values.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::BenchError;

/// Longest wait for one reply outside the measurement; FLUSHALL of millions of keys takes seconds.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Deepest nesting of a reply that is read.
const DEPTH_MAX: usize = 16;

/// Where a server listens and how to enter.
#[derive(Debug, Clone, clap::Args)]
pub struct Target {
    /// Host name or address of the server
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// Port of the server
    #[arg(long, short = 'p', default_value_t = 6379)]
    pub port: u16,
    /// Unix socket of the server, instead of host and port
    #[arg(long, short = 's', value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// User for AUTH
    #[arg(long, requires = "password")]
    pub user: Option<String>,
    /// Password for AUTH
    #[arg(long, short = 'a', env = "REDISCLI_AUTH", hide_env_values = true)]
    pub password: Option<String>,
    /// Database to work in
    #[arg(long, short = 'n', default_value_t = 0)]
    pub database: u32,
}

impl Target {
    /// A server on this machine, without a password.
    pub(crate) fn local(port: u16) -> Self {
        Self {
            host: "127.0.0.1".into(),
            port,
            socket: None,
            user: None,
            password: None,
            database: 0,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Some(_) => out.write_str("unix socket"),
            None => write!(out, "{}:{}", self.host, self.port),
        }
    }
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One RESP2 value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Value>),
}

impl Value {
    /// Text of a status or bulk; empty for anything else.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Simple(text) => text.clone(),
            Self::Bulk(body) => String::from_utf8_lossy(body).into_owned(),
            _ => String::new(),
        }
    }
}

/// Appends one command as a request.
pub(crate) fn render(arguments: &[impl AsRef<str>], out: &mut Vec<u8>) {
    let header = |mark: char, number: usize, out: &mut Vec<u8>| {
        out.extend_from_slice(format!("{mark}{number}\r\n").as_bytes());
    };
    header('*', arguments.len(), out);
    for argument in arguments {
        let text = argument.as_ref();
        header('$', text.len(), out);
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// A blocking connection, already authenticated and in the right database.
#[derive(Debug)]
pub(crate) struct Client {
    stream: Stream,
    /// Bytes received beyond the replies read so far.
    received: Vec<u8>,
    read_to: usize,
}

impl Client {
    /// Connects and enters.
    pub(crate) fn connect(target: &Target) -> Result<Self, BenchError> {
        let doing = || format!("connect to {target}");
        let stream = if let Some(path) = &target.socket {
            let stream =
                UnixStream::connect(path).map_err(|error| BenchError::io(doing(), error))?;
            stream
                .set_read_timeout(Some(REPLY_TIMEOUT))
                .map_err(|error| BenchError::io("set a timeout", error))?;
            Stream::Unix(stream)
        } else {
            let address = (target.host.as_str(), target.port)
                .to_socket_addrs()
                .map_err(|error| BenchError::io(doing(), error))?
                .next()
                .ok_or_else(|| BenchError::Usage(format!("no address for {}", target.host)))?;
            let stream =
                TcpStream::connect(address).map_err(|error| BenchError::io(doing(), error))?;
            stream
                .set_nodelay(true)
                .and_then(|()| stream.set_read_timeout(Some(REPLY_TIMEOUT)))
                .map_err(|error| BenchError::io("set up a socket", error))?;
            Stream::Tcp(stream)
        };
        let mut client = Self {
            stream,
            received: Vec::new(),
            read_to: 0,
        };
        client.enter(target)?;
        Ok(client)
    }

    fn enter(&mut self, target: &Target) -> Result<(), BenchError> {
        if let Some(password) = &target.password {
            match &target.user {
                Some(user) => self.must(&["AUTH", user, password])?,
                None => self.must(&["AUTH", password])?,
            };
        }
        if target.database != 0 {
            self.must(&["SELECT", &target.database.to_string()])?;
        }
        Ok(())
    }

    /// Gives the socket away, non-blocking, for the measured traffic.
    pub(crate) fn into_socket(self) -> Result<OwnedFd, BenchError> {
        let error = |error| BenchError::io("make a socket non-blocking", error);
        match self.stream {
            Stream::Tcp(stream) => {
                stream.set_nonblocking(true).map_err(error)?;
                Ok(stream.into())
            }
            Stream::Unix(stream) => {
                stream.set_nonblocking(true).map_err(error)?;
                Ok(stream.into())
            }
        }
    }

    /// Sends one command and reads its reply, which may be an error reply.
    pub(crate) fn call(&mut self, arguments: &[&str]) -> Result<Value, BenchError> {
        let mut request = Vec::new();
        render(arguments, &mut request);
        self.stream
            .write_all(&request)
            .map_err(|error| BenchError::io(format!("send {}", arguments[0]), error))?;
        let value = self.value(0)?;
        self.received.drain(..self.read_to);
        self.read_to = 0;
        Ok(value)
    }

    /// Like [`Self::call`], but an error reply is an error.
    pub(crate) fn must(&mut self, arguments: &[&str]) -> Result<Value, BenchError> {
        match self.call(arguments)? {
            Value::Error(text) => Err(BenchError::Server(format!("{}: {text}", arguments[0]))),
            value => Ok(value),
        }
    }

    /// Sends rendered requests at once and reads a reply to each; an error reply is an error. The
    /// requests must be small enough, or few enough, for the server to take them all unread.
    pub(crate) fn batch(&mut self, requests: &[u8], replies: usize) -> Result<(), BenchError> {
        self.stream
            .write_all(requests)
            .map_err(|error| BenchError::io("send a batch", error))?;
        for _ in 0..replies {
            if let Value::Error(text) = self.value(0)? {
                return Err(BenchError::Server(text));
            }
        }
        self.received.drain(..self.read_to);
        self.read_to = 0;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Value, BenchError> {
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).unwrap_or_default();
        let number = || {
            rest.parse::<i64>()
                .map_err(|_| BenchError::Server(format!("bad header '{line}'")))
        };
        match kind {
            "+" => Ok(Value::Simple(rest.into())),
            "-" => Ok(Value::Error(rest.into())),
            ":" => Ok(Value::Integer(number()?)),
            "$" => match usize::try_from(number()?) {
                Ok(length) => {
                    self.fill(length.saturating_add(2))?;
                    let body = self.received[self.read_to..self.read_to + length].to_vec();
                    self.read_to += length + 2;
                    Ok(Value::Bulk(body))
                }
                Err(_) => Ok(Value::Null),
            },
            "*" if depth < DEPTH_MAX => match usize::try_from(number()?) {
                Ok(count) => (0..count)
                    .map(|_| self.value(depth + 1))
                    .collect::<Result<_, _>>()
                    .map(Value::Array),
                Err(_) => Ok(Value::Null),
            },
            _ => Err(BenchError::Server(format!("not a RESP2 reply: '{line}'"))),
        }
    }

    fn line(&mut self) -> Result<String, BenchError> {
        let mut searched = self.read_to;
        loop {
            if let Some(length) = self.received[searched..]
                .iter()
                .position(|&byte| byte == b'\n')
            {
                let end = searched + length;
                let line = self.received[self.read_to..end].trim_ascii_end();
                let line = String::from_utf8_lossy(line).into_owned();
                self.read_to = end + 1;
                return Ok(line);
            }
            searched = self.received.len();
            self.receive()?;
        }
    }

    fn fill(&mut self, count: usize) -> Result<(), BenchError> {
        while self.received.len() - self.read_to < count {
            self.receive()?;
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), BenchError> {
        let mut buffer = [0; 16 * 1024];
        let count = self
            .stream
            .read(&mut buffer)
            .map_err(|error| BenchError::io("read a reply", error))?;
        if count == 0 {
            return Err(BenchError::Server("closed the connection".into()));
        }
        self.received.extend_from_slice(&buffer[..count]);
        Ok(())
    }
}
