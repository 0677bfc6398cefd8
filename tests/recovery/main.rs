//! Death and its consequences: which process may be killed, what clients see, and what is lost.
//!
//! The table of ARCHITECTURE.md section 10 is the specification. Every test remembers what was acknowledged
//! (`harness::ledger`) and reads all of it back. A storage worker that was killed inside a write starts empty for
//! now and says so; where that may happen by chance, the test looks for the announcement and takes another turn.

mod broker;
mod crossing;
mod drain;
mod gateway;
mod large_replies;
mod leases;
mod links;
mod load;
mod scripts;
mod storage_worker;
mod supervisor;
mod together;
mod transactions;
mod waiting;

use harness::{Client, Server, eventually};

/// Writes `count` keys and returns a function that checks them.
fn write_keys(client: &mut Client, count: usize) {
    for first in (0..count).step_by(500) {
        let mut args = vec!["MSET".to_owned()];
        for number in first..first + 500 {
            args.extend([format!("key:{number}"), format!("value {number}")]);
        }
        assert_eq!(client.call(&args).expect("a reply to MSET").render(), "+OK");
    }
}

/// Reads them all back.
#[track_caller]
fn check_keys(client: &mut Client, count: usize) {
    assert_eq!(client.run("DBSIZE").render(), format!(":{count}"));
    for first in (0..count).step_by(500) {
        let mut args = vec!["MGET".to_owned()];
        args.extend((first..first + 500).map(|number| format!("key:{number}")));
        let reply = client.call(&args).expect("a reply to MGET");
        let harness::Reply::Many(_, items) = &reply else {
            panic!("{}", reply.render())
        };
        for (place, item) in items.iter().enumerate() {
            assert_eq!(item.text_lossy(), format!("value {}", first + place));
        }
    }
}

/// Kills every process of a role with SIGKILL, and waits until as many others have taken their place.
#[track_caller]
fn kill_role(server: &Server, role: &str) {
    let old = server.role(role);
    assert!(!old.is_empty(), "no {role} runs");
    for process in &old {
        process.signal(nix::sys::signal::Signal::SIGKILL);
    }
    eventually("the dead are replaced", || {
        let now = server.role(role);
        now.len() == old.len() && now.iter().all(|process| !old.contains(process))
    });
}

/// How often a storage worker has announced that it starts empty.
fn announced_losses(server: &Server) -> usize {
    server
        .log()
        .lines()
        .filter(|line| line.contains("starts empty"))
        .count()
}
