//! An end in order: SIGTERM, SIGINT and SHUTDOWN answer what was received, then everything goes.

use harness::{Client, PATIENCE, ReadError, Server, Setup, sirocco};
use nix::sys::signal::Signal;

#[track_caller]
fn assert_gone(server: &mut Server) {
    let status = server.wait_for_exit();
    assert!(status.success(), "{status}\n{}", server.log());
    assert!(
        server.processes().is_empty(),
        "left behind: {:?}",
        server.processes()
    );
    assert!(Client::connect(&server.tcp()).is_err(), "it still listens");
    assert!(
        !server.folder().join("server.sock").exists(),
        "the unix socket is left behind"
    );
}

#[test]
fn signals_end_all_processes() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
        let mut idle = server.connect();
        idle.run("PING");
        server.main_process().signal(signal);
        assert_gone(&mut server);
        assert!(idle.is_closed_within(PATIENCE));
        assert!(!server.log().contains("panicked"), "{}", server.log());
    }
}

#[test]
fn what_was_received_is_answered_in_order_and_whole() {
    let mut server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
    let mut client = server.connect();
    let mut bytes = Vec::new();
    for _ in 0..20_000 {
        harness::client::encode_command(&["INCR", "n"], &mut bytes);
    }
    client.send_raw(&bytes).expect("the connection is open");
    assert_eq!(client.read(PATIENCE).expect("a reply").render(), ":1");
    server.main_process().signal(Signal::SIGTERM);
    let mut last = 1;
    loop {
        match client.read(PATIENCE) {
            Ok(reply) => {
                last += 1;
                assert_eq!(reply.render(), format!(":{last}"));
            }
            Err(ReadError::Closed) => break,
            Err(error) => panic!("after reply {last}: {error}"),
        }
    }
    assert_gone(&mut server);
}

#[test]
fn shutdown_ends_all_processes() {
    for command in ["SHUTDOWN NOSAVE", "SHUTDOWN", "SHUTDOWN NOSAVE NOW FORCE"] {
        let mut server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
        let mut client = server.connect();
        let words: Vec<&str> = command.split(' ').collect();
        let result = client.call(&words);
        assert!(
            matches!(result, Err(ReadError::Closed)),
            "{command}: {result:?}"
        );
        assert_gone(&mut server);
    }
}

#[test]
fn a_second_signal_does_not_wait() {
    let mut server = Setup::sirocco(sirocco!(), 1).with_deaths().start();
    let mut stuck = server.connect();
    // A client that never reads its replies must not hold up the end for ever.
    let mut bytes = Vec::new();
    let value = "v".repeat(100_000);
    server
        .connect()
        .call(&["SET", "k", &value])
        .expect("a reply");
    for _ in 0..2000 {
        harness::client::encode_command(&["GET", "k"], &mut bytes);
    }
    let _ = stuck.send_until_stuck(&bytes, std::time::Duration::from_millis(200));
    server.main_process().signal(Signal::SIGTERM);
    harness::pause(std::time::Duration::from_millis(100));
    server.main_process().signal(Signal::SIGTERM);
    let _ = server.wait_for_exit();
    harness::eventually("all processes are gone", || server.processes().is_empty());
}
