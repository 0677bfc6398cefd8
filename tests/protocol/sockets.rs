//! Sockets: TCP and unix, several gateway threads, protected mode.

use harness::{Client, Kind, Setup, sirocco};

#[test]
fn tcp_and_unix_sockets_serve_the_same_keys() {
    let server = Setup::sirocco(sirocco!(), 2).start();
    let (mut tcp, mut unix) = (server.connect(), Client::connect_patiently(&server.unix()));
    assert_eq!(tcp.run("SET a 1").render(), "+OK");
    assert_eq!(unix.run("GET a").render(), "\"1\"");
    let line = unix.run("CLIENT INFO").text_lossy();
    assert!(
        line.contains("addr=") && line.contains("server.sock:0"),
        "{line}"
    );
}

#[test]
fn port_0_means_no_tcp() {
    let setup = Setup::sirocco(sirocco!(), 1).with("port", "0");
    let server = setup.start_unchecked();
    let mut client = Client::connect_patiently(&server.unix());
    assert_eq!(client.run("PING").render(), "+PONG");
    assert!(Client::connect(&server.tcp()).is_err());
}

#[test]
fn several_gateway_threads_serve_one_keyspace() {
    let kind = Kind::Sirocco {
        program: sirocco!().to_path_buf(),
        workers: 2,
        gateway_threads: 2,
    };
    let server = Setup::new(kind).start();
    let mut clients: Vec<Client> = (0..40).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.run("INCR n");
    }
    let text = clients[0].run("GET n").render();
    assert_eq!(text, "\"40\"");
    let list = clients[39].run("CLIENT LIST").text_lossy();
    assert_eq!(list.lines().count(), 40, "{list}");
    let ids: std::collections::HashSet<&str> = list
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(ids.len(), 40, "an id was given twice: {list}");
    // A connection of one thread can end one of another.
    let victim = clients[7].run("CLIENT ID").int().expect("an id");
    assert_eq!(
        clients[8].run(&format!("CLIENT KILL ID {victim}")).render(),
        ":1"
    );
    assert!(clients[7].is_closed_within(harness::PATIENCE));
}

#[test]
fn the_unix_socket_has_the_permissions_that_were_asked_for() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = Setup::sirocco(sirocco!(), 1)
        .with("unixsocketperm", "700")
        .start();
    let meta = std::fs::metadata(server.folder().join("server.sock")).expect("the socket is there");
    assert_eq!(meta.permissions().mode() & 0o777, 0o700);
}

#[test]
fn protected_mode_refuses_strangers_until_there_is_a_password() {
    let Some(address) = own_address() else {
        harness::skip::report(
            "protected mode",
            "this machine has no address but the loopback",
        );
        return;
    };
    let server = Setup::sirocco(sirocco!(), 1).with("bind", "* -::*").start();
    let connect =
        || std::net::TcpStream::connect((address, server.port())).expect("it listens there");
    let read = |stream: &mut std::net::TcpStream| {
        use std::io::{Read as _, Write as _};
        stream
            .set_read_timeout(Some(harness::PATIENCE))
            .expect("a time");
        let _ = stream.write_all(b"PING\r\n");
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).unwrap_or(0);
        String::from_utf8_lossy(&buffer[..count]).into_owned()
    };
    let text = read(&mut connect());
    assert!(text.starts_with("-DENIED "), "{text:?}");
    assert_eq!(
        server
            .connect()
            .run("CONFIG SET protected-mode no")
            .render(),
        "+OK"
    );
    assert_eq!(read(&mut connect()), "+PONG\r\n");
}

/// An address of this machine that is not the loopback: the one it would use to talk to others.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}
