//! A gateway dies: its connections drop, the listening socket never closes, and no key is lost.

use harness::{Client, PATIENCE, Setup, sirocco};
use nix::sys::signal::Signal;

use crate::{check_keys, kill_role, write_keys};

#[test]
fn clients_reconnect_at_once_and_find_everything() {
    let server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
    let mut client = server.connect();
    write_keys(&mut client, 5000);
    for round in 0..3 {
        let old = server.role("gateway");
        old[0].signal(Signal::SIGKILL);
        assert!(client.is_closed_within(PATIENCE), "round {round}");
        // The supervisor holds the listening socket, so this is queued rather than refused.
        client = Client::connect(&server.tcp()).expect("the listening socket is open");
        check_keys(&mut client, 5000);
        let mut unix = Client::connect(&server.unix()).expect("the unix socket is open");
        assert_eq!(unix.run("PING").render(), "+PONG");
        assert_ne!(server.role("gateway"), old);
    }
}

#[test]
fn a_gateway_killed_under_load_leaves_the_workers_in_order() {
    let server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
    for round in 0..5 {
        let mut client = server.connect();
        let mut bytes = Vec::new();
        for number in 0..2000 {
            harness::client::encode_command(
                &["SET", &format!("k{number}"), &format!("{round}")],
                &mut bytes,
            );
        }
        client.send_raw(&bytes).expect("the connection is open");
        let first = client.read(PATIENCE).expect("a reply");
        assert_eq!(first.render(), "+OK");
        server.role("gateway")[0].signal(Signal::SIGKILL);
        let mut acknowledged = 1;
        while client.read(PATIENCE).is_ok() {
            acknowledged += 1;
        }
        let mut after = server.connect();
        for number in 0..acknowledged {
            let reply = after.run(&format!("GET k{number}"));
            assert_eq!(
                reply.text_lossy(),
                format!("{round}"),
                "key {number} of {acknowledged}"
            );
        }
        assert_eq!(after.run("PING").render(), "+PONG");
    }
}

#[test]
fn settings_and_a_password_survive_the_gateway() {
    let server = Setup::sirocco(sirocco!(), 1).with_deaths().start();
    let mut client = server.connect();
    assert_eq!(
        client
            .run("CONFIG SET timeout 77 requirepass secret")
            .render(),
        "+OK"
    );
    kill_role(&server, "gateway");
    let mut client = server.connect();
    assert!(client.run("GET a").render().starts_with("-NOAUTH"));
    assert_eq!(client.run("AUTH secret").render(), "+OK");
    assert_eq!(
        client.run("CONFIG GET timeout").render(),
        r#"*["timeout" "77"]"#
    );
}
