//! `maxmemory` and its policies: memory stays bounded, and the right keys go.
//!
//! What goes is drawn by chance, so the tests look at what must hold for every draw: the bound, who is never
//! evicted, and that a favourite survives among many that nobody reads.

use harness::{Client, Kind, Server, Setup, eventually, server::reference, sirocco};

const LIMIT: u64 = 24 << 20;

fn worlds(policy: &str) -> Vec<Server> {
    let ours = [1, 2].map(|workers| Kind::sirocco(sirocco!(), workers));
    let start = |kind| {
        Setup::new(kind)
            .with("maxmemory", &LIMIT.to_string())
            .with("maxmemory-policy", policy)
            .with("maxmemory-samples", "10")
            .start()
    };
    ours.into_iter().chain(reference()).map(start).collect()
}

/// A number of INFO.
fn info(client: &mut Client, section: &str, field: &str) -> u64 {
    let text = client.run(&format!("INFO {section}")).text_lossy();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|value| value.trim().parse().ok())
        .unwrap_or_else(|| panic!("{field} in {text}"))
}

/// Writes keys of 1 KB in pipelines; gives how many were refused.
fn fill(client: &mut Client, prefix: &str, count: usize, options: &[&str]) -> usize {
    let value = "v".repeat(1000);
    let mut refused = 0;
    for first in (0..count).step_by(100) {
        let mut bytes = Vec::new();
        for number in first..first + 100 {
            let key = format!("{prefix}:{number}");
            let args: Vec<&str> = ["SET", &key, &value]
                .into_iter()
                .chain(options.iter().copied())
                .collect();
            harness::client::encode_command(&args, &mut bytes);
        }
        client.send_raw(&bytes).expect("the connection is open");
        for _ in 0..100 {
            let reply = client.read(harness::PATIENCE).expect("a reply to SET");
            if reply.is_error() {
                assert!(reply.text_lossy().starts_with("OOM "), "{}", reply.render());
                refused += 1;
            }
        }
    }
    refused
}

fn assert_bounded(client: &mut Client, server: &Server) {
    // A batch of commands may pass the limit before the next check, and empty tables take some space.
    let used = info(client, "memory", "used_memory");
    assert!(
        used < LIMIT + (4 << 20),
        "{used} bytes are used: {:?}",
        server.kind()
    );
}

#[test]
fn without_a_policy_writes_are_refused_and_reads_go_on() {
    for server in worlds("noeviction") {
        let mut client = server.connect();
        let refused = fill(&mut client, "k", 40_000, &[]);
        assert!(refused > 1000, "{refused} refused: {:?}", server.kind());
        assert_bounded(&mut client, &server);
        let reply = client.run("SET more x").render();
        assert_eq!(
            reply,
            "-OOM command not allowed when used memory > 'maxmemory'."
        );
        assert_eq!(client.run("GET k:0").text_lossy().len(), 1000);
        assert_eq!(client.run("DEL k:0").render(), ":1");
        assert_eq!(info(&mut client, "stats", "evicted_keys"), 0);
        assert_eq!(client.run("CONFIG SET maxmemory 0").render(), "+OK");
        assert_eq!(client.run("SET more x").render(), "+OK");
    }
}

#[test]
fn policies_for_all_keys_make_room() {
    for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random"] {
        for server in worlds(policy) {
            let mut client = server.connect();
            assert_eq!(
                fill(&mut client, "k", 40_000, &[]),
                0,
                "{policy} {:?}",
                server.kind()
            );
            assert_bounded(&mut client, &server);
            // A worker may still be evicting while the two figures are read.
            let mut left = 0;
            eventually("evicted and present keys are all that were written", || {
                let evicted = info(&mut client, "stats", "evicted_keys");
                left = u64::try_from(client.run("DBSIZE").int().expect("a count")).unwrap_or(0);
                evicted + left == 40_000
            });
            assert!(
                left > 10_000,
                "only {left} keys are left: {policy} {:?}",
                server.kind()
            );
        }
    }
}

#[test]
fn policies_for_volatile_keys_leave_the_others_alone() {
    for policy in [
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
    ] {
        for server in worlds(policy) {
            let mut client = server.connect();
            assert_eq!(fill(&mut client, "stays", 5000, &[]), 0);
            assert_eq!(
                fill(&mut client, "goes", 30_000, &["EX", "10000"]),
                0,
                "{policy}"
            );
            assert_bounded(&mut client, &server);
            let mut args = vec!["EXISTS".to_owned()];
            args.extend((0..5000).map(|number| format!("stays:{number}")));
            let reply = client.call(&args).expect("a reply to EXISTS");
            assert_eq!(reply.render(), ":5000", "{policy} {:?}", server.kind());
            // With nothing left to evict, writes are refused.
            let refused = fill(&mut client, "more", 30_000, &[]);
            assert!(refused > 0, "{policy} {:?}", server.kind());
        }
    }
}

#[test]
fn a_key_that_is_read_all_the_time_survives_lru_and_lfu() {
    std::thread::scope(|scope| {
        for policy in ["allkeys-lru", "allkeys-lfu"] {
            for server in worlds(policy) {
                scope.spawn(move || favourite_survives(policy, &server));
            }
        }
    });
}

fn favourite_survives(policy: &str, server: &Server) {
    let mut client = server.connect();
    client.run("SET favourite x");
    for round in 0..8 {
        for _ in 0..50 {
            assert_eq!(
                client.run("GET favourite").text(),
                Some(&b"x"[..]),
                "round {round} of {policy}"
            );
        }
        fill(&mut client, &format!("k{round}"), 5000, &[]);
        if policy == "allkeys-lru" {
            // The clock of LRU counts seconds: only then is the favourite younger than the others.
            harness::pause(std::time::Duration::from_millis(1100));
        }
    }
    assert!(info(&mut client, "stats", "evicted_keys") > 5000);
    assert_eq!(
        client.run("GET favourite").text(),
        Some(&b"x"[..]),
        "{policy} {:?}",
        server.kind()
    );
}
