//! Listening sockets: accepting, and who is turned away at the door.
//!
//! Every gateway thread polls TCP sockets of its own (SO_REUSEPORT, made by the supervisor) and shares
//! the unix socket with the others. A storm of connections is taken in portions, so that clients that
//! are connected already go on being served.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use proto::CommandError;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, UnixListener};

use crate::connection::Origin;
use crate::live::Live;
use crate::shared::Shared;
use crate::sockets::Stream;

/// What every client that comes from outside is told while nobody has set a password.
const PROTECTED: &str = "DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. In this mode connections are only accepted from the loopback interface. If you want to connect from external computers to Redis you may adopt one of the following solutions: 1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the same host the server is running, however MAKE SURE Redis is not publicly accessible from internet if you do so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable the protected mode by editing the Redis configuration file, and setting the protected mode option to 'no', and then restarting the server. 3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. 4) Set up an authentication password for the default user. NOTE: You only need to do one of the above things in order for the server to start accepting connections from the outside.";

/// One listening socket.
#[derive(Debug)]
pub(crate) enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener, Box<str>),
}

/// What became of an attempt to accept.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// A client, admitted and counted.
    Client(Stream, Origin, i32),
    /// One was turned away, or went away by itself.
    Refused,
    /// Nobody is waiting; the waker is set.
    Nobody,
    /// No descriptors or memory: try again later.
    Exhausted(io::Error),
}

impl Listening {
    /// Takes over a TCP listener. Needs the runtime of the thread that will poll it.
    pub(crate) fn tcp(fd: OwnedFd) -> io::Result<Self> {
        let listener = std::net::TcpListener::from(fd);
        listener.set_nonblocking(true)?;
        Ok(Self::Tcp(TcpListener::from_std(listener)?))
    }

    /// Takes over a unix listener at `path`.
    pub(crate) fn unix(fd: OwnedFd, path: &str) -> io::Result<Self> {
        let listener = std::os::unix::net::UnixListener::from(fd);
        listener.set_nonblocking(true)?;
        Ok(Self::Unix(UnixListener::from_std(listener)?, path.into()))
    }

    /// Accepts one client.
    pub(crate) fn accept(
        &self,
        context: &mut Context<'_>,
        live: &Live,
        shared: &Arc<Shared>,
    ) -> Accepted {
        let polled = match self {
            Self::Tcp(listener) => listener
                .poll_accept(context)
                .map_ok(|(stream, remote)| tcp_client(stream, remote, live)),
            Self::Unix(listener, path) => listener.poll_accept(context).map_ok(|(stream, _)| {
                let descriptor = stream.as_raw_fd();
                Ok((Stream::Unix(stream), Origin::Unix(path.clone()), descriptor))
            }),
        };
        match polled {
            Poll::Pending => Accepted::Nobody,
            Poll::Ready(Err(error)) => match error.kind() {
                io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => Accepted::Refused,
                _ => Accepted::Exhausted(error),
            },
            Poll::Ready(Ok(Err(_))) => Accepted::Refused,
            Poll::Ready(Ok(Ok((stream, origin, descriptor)))) => {
                if live.protected_mode && live.password.is_none() && is_from_outside(&origin) {
                    turn_away(&stream, PROTECTED);
                    return Accepted::Refused;
                }
                if !shared.admit_client(live.maxclients) {
                    turn_away(&stream, &CommandError::MaxClients.to_string());
                    return Accepted::Refused;
                }
                Accepted::Client(stream, origin, descriptor)
            }
        }
    }
}

fn tcp_client(
    stream: tokio::net::TcpStream,
    remote: SocketAddr,
    live: &Live,
) -> io::Result<(Stream, Origin, i32)> {
    stream.set_nodelay(true)?;
    if live.keepalive_seconds > 0 {
        // As Redis: probe after the given time, three times within it.
        let time = Duration::from_secs(u64::from(live.keepalive_seconds));
        let interval = Duration::from_secs(u64::from((live.keepalive_seconds / 3).max(1)));
        let keepalive = TcpKeepalive::new()
            .with_time(time)
            .with_interval(interval)
            .with_retries(3);
        SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    }
    let local = stream.local_addr()?;
    let descriptor = stream.as_raw_fd();
    Ok((Stream::Tcp(stream), Origin::Tcp(remote, local), descriptor))
}

fn is_from_outside(origin: &Origin) -> bool {
    match origin {
        Origin::Tcp(remote, _) => !remote.ip().to_canonical().is_loopback(),
        Origin::Unix(_) => false,
    }
}

/// Says why, as far as the socket takes it at once, and lets the stream be closed.
fn turn_away(stream: &Stream, reason: &str) {
    let line = format!("-{reason}\r\n");
    let written = match stream {
        Stream::Tcp(stream) => SockRef::from(stream).send(line.as_bytes()),
        Stream::Unix(stream) => SockRef::from(stream).send(line.as_bytes()),
    };
    if let Err(error) = written {
        tracing::debug!(%error, "a client that was turned away did not hear why");
    }
}
