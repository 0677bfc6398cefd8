//! Makes the listening sockets that the gateway's threads accept from.
//!
//! Why here and not in the gateway: a listening socket that outlives a dead gateway keeps the
//! connections that arrive meanwhile. Why one per thread: with SO_REUSEPORT the kernel spreads
//! connections over them without a lock; a socket that nobody polls would swallow its share, so
//! there are exactly as many as threads.
//!
//! A port that another server uses must be an error although SO_REUSEPORT would let us join: each
//! address is first bound without it, as a question.
//!
//! Not here: accepting (`gateway`), protected mode (`gateway`).

use crate::config::reason;
use crate::exit::Failure;
use proto::settings::Settings;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;

/// A listening TCP socket of one thread.
#[derive(Debug)]
pub struct TcpListener {
    /// The thread that accepts from it.
    pub thread: u32,
    /// Its address.
    pub address: SocketAddr,
    /// The socket.
    pub socket: Rc<OwnedFd>,
}

/// All listening sockets.
#[derive(Debug)]
pub struct Listeners {
    /// TCP, address by address, thread by thread.
    pub tcp: Vec<TcpListener>,
    /// The unix socket and its path.
    pub unix: Option<(String, Rc<OwnedFd>)>,
}

impl Listeners {
    /// Opens everything that the settings ask for.
    ///
    /// # Errors
    /// An address that cannot be used, or no address at all.
    pub fn open(settings: &Settings, threads: u32) -> Result<Self, Failure> {
        let backlog = i32::try_from(settings.tcp_backlog()).unwrap_or(i32::MAX);
        let mut tcp = Vec::new();
        let port = u16::try_from(settings.port()).unwrap_or(0);
        if port != 0 {
            for wish in settings.bind() {
                open_wish(wish, port, threads, backlog, &mut tcp)?;
            }
        }
        let unix = match settings.unixsocket() {
            "" => None,
            path => Some((
                path.to_string(),
                Rc::new(open_unix(path, settings, backlog)?),
            )),
        };
        if tcp.is_empty() && unix.is_none() {
            return Err(Failure::Address(
                "there is nothing to listen on: no address of 'bind' can be used, and there is no \
                 unixsocket"
                    .to_string(),
            ));
        }
        Ok(Self { tcp, unix })
    }

    /// Addresses for people.
    pub fn describe(&self) -> Vec<String> {
        let first = self.tcp.iter().map(|listener| listener.thread).min();
        let of_one = self
            .tcp
            .iter()
            .filter(|listener| Some(listener.thread) == first);
        let mut names: Vec<String> = of_one
            .map(|listener| listener.address.to_string())
            .collect();
        names.extend(self.unix.iter().map(|(path, _)| path.clone()));
        names
    }
}

/// Opens one word of `bind` for every thread. A word with `-` in front may fail.
fn open_wish(
    wish: &str,
    port: u16,
    threads: u32,
    backlog: i32,
    tcp: &mut Vec<TcpListener>,
) -> Result<(), Failure> {
    let (name, optional) = match wish.strip_prefix('-') {
        Some(name) => (name, true),
        None => (wish, false),
    };
    let failed = |address: &str, error: &io::Error| {
        let hint = if error.kind() == io::ErrorKind::AddrInUse {
            "; another server is running there, or parts of an earlier one that have not ended yet \
             (choose another --port, or stop it)"
        } else {
            ""
        };
        Failure::Address(format!(
            "cannot listen on {address}: {}{hint}",
            reason(error)
        ))
    };
    let addresses = match resolve(name, port) {
        Ok(addresses) => addresses,
        Err(_) if optional => return Ok(()),
        Err(error) => return Err(failed(&format!("{name}:{port}"), &error)),
    };
    for address in addresses {
        let opened = open_tcp(address, threads, backlog);
        match opened {
            Ok(sockets) => {
                tcp.extend(
                    sockets
                        .into_iter()
                        .zip(0..)
                        .map(|(socket, thread)| TcpListener {
                            thread,
                            address,
                            socket: Rc::new(socket.into()),
                        }),
                );
            }
            Err(error) if optional && is_unavailable(&error) => {}
            Err(error) => return Err(failed(&address.to_string(), &error)),
        }
    }
    Ok(())
}

fn resolve(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    match name {
        "*" => Ok(vec![SocketAddr::new(
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            port,
        )]),
        "::*" => Ok(vec![SocketAddr::new(
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            port,
        )]),
        _ => Ok((name, port).to_socket_addrs()?.take(1).collect()),
    }
}

/// Errors that say "this machine has no such address or protocol".
fn is_unavailable(error: &io::Error) -> bool {
    use nix::errno::Errno;
    let known = [
        Errno::ENOPROTOOPT,
        Errno::EPROTONOSUPPORT,
        Errno::ESOCKTNOSUPPORT,
        Errno::EPFNOSUPPORT,
        Errno::EAFNOSUPPORT,
        Errno::EADDRNOTAVAIL,
    ];
    error
        .raw_os_error()
        .is_some_and(|number| known.iter().any(|known| *known as i32 == number))
}

fn tcp_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

fn open_tcp(address: SocketAddr, threads: u32, backlog: i32) -> io::Result<Vec<Socket>> {
    let question = tcp_socket(address)?;
    question.bind(&address.into())?;
    question.listen(1)?;
    drop(question);
    let open_one = |_| {
        let socket = tcp_socket(address)?;
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        socket.listen(backlog)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    (0..threads).map(open_one).collect()
}

fn open_unix(path: &str, settings: &Settings, backlog: i32) -> Result<OwnedFd, Failure> {
    let failed =
        |error: io::Error| Failure::Address(format!("cannot listen on {path}: {}", reason(&error)));
    remove_stale_socket(Path::new(path)).map_err(failed)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(failed)?;
    socket
        .bind(&SockAddr::unix(path).map_err(failed)?)
        .map_err(failed)?;
    let mode = u32::try_from(settings.unixsocketperm()).unwrap_or(0);
    if mode != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed)?;
    }
    socket.listen(backlog).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    Ok(socket.into())
}

/// Removes the socket of a server that is gone. One that answers is in use; a file that is no
/// socket stays, and the bind fails.
pub fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    if !is_socket {
        return Ok(());
    }
    if UnixStream::connect(path).is_ok() {
        return Err(io::Error::from_raw_os_error(
            nix::errno::Errno::EADDRINUSE as i32,
        ));
    }
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::default();
        for (name, text) in pairs {
            settings
                .set_text(proto::settings::find(name).unwrap().setting, text)
                .unwrap();
        }
        settings
    }

    fn free_port() -> u16 {
        std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port()
    }

    #[test]
    fn every_thread_gets_a_socket_of_its_own_and_a_used_port_is_refused() {
        let port = free_port().to_string();
        let wish = settings(&[("port", &port), ("bind", "127.0.0.1 -::1")]);
        let listeners = Listeners::open(&wish, 3).unwrap();
        let v4 = listeners
            .tcp
            .iter()
            .filter(|listener| listener.address.is_ipv4());
        assert_eq!(
            v4.map(|listener| listener.thread).collect::<Vec<_>>(),
            [0, 1, 2]
        );
        let again = Listeners::open(&wish, 3).unwrap_err();
        assert!(
            again.to_string().contains("Address already in use"),
            "{again}"
        );
        assert_eq!(again.code(), 3);
    }

    #[test]
    fn optional_addresses_may_be_missing_others_not() {
        let port = free_port().to_string();
        let wish = settings(&[("port", &port), ("bind", "127.0.0.1 -203.0.113.7")]);
        assert_eq!(Listeners::open(&wish, 1).unwrap().tcp.len(), 1);
        let wish = settings(&[("port", &port), ("bind", "203.0.113.7")]);
        assert!(Listeners::open(&wish, 1).is_err());
        assert!(Listeners::open(&settings(&[("port", "0")]), 1).is_err());
    }

    #[test]
    fn unix_sockets_replace_stale_ones_and_respect_live_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s").to_string_lossy().into_owned();
        let wish = settings(&[
            ("port", "0"),
            ("unixsocket", &path),
            ("unixsocketperm", "700"),
        ]);
        let first = Listeners::open(&wish, 1).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert!(Listeners::open(&wish, 1).is_err());
        drop(first);
        assert_eq!(Listeners::open(&wish, 1).unwrap().describe(), [path]);
    }
}
