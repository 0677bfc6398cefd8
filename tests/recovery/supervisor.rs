//! The supervisor dies: the parts serve on.

use harness::{Setup, eventually, sirocco};
use nix::sys::signal::Signal;

use crate::{check_keys, write_keys};

#[test]
fn the_parts_serve_on_without_a_supervisor() {
    let mut server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
    let mut client = server.connect();
    write_keys(&mut client, 2000);
    let parts: Vec<_> = ["gateway", "storage-worker"]
        .iter()
        .flat_map(|role| server.role(role))
        .collect();
    server.main_process().signal(Signal::SIGKILL);
    eventually("the supervisor is gone", || server.exit_status().is_some());
    harness::pause(std::time::Duration::from_millis(500));
    // Old and new connections are served.
    check_keys(&mut client, 2000);
    let mut other = server.connect();
    assert_eq!(other.run("SET new 1").render(), "+OK");
    assert_eq!(client.run("GET new").render(), "\"1\"");
    // What needs the supervisor is refused with a clear error, and does not hang.
    let reply = client.run("CONFIG SET timeout 50");
    assert!(
        reply.is_error() && reply.text_lossy().contains("supervisor"),
        "{}",
        reply.render()
    );
    for part in parts {
        assert!(part.is_alive(), "{part:?} has ended");
    }
}
