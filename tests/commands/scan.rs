//! SCAN: every key that is there all the time is met, whatever else happens.
//!
//! Method: keys that stay are written first; while a scan walks, others are written and removed, so that tables
//! split and shrink under it. The scan ends when the cursor is 0 again.

use std::collections::HashSet;

use harness::{Client, Kind, Reply, Server, Setup, server::reference, sirocco};

fn worlds() -> Vec<Server> {
    let ours = [1, 2, 4].map(|workers| Kind::sirocco(sirocco!(), workers));
    ours.into_iter()
        .chain(reference())
        .map(|kind| Setup::new(kind).start())
        .collect()
}

/// One step: the next cursor and the names.
fn step(client: &mut Client, cursor: &str, options: &[&str]) -> (String, Vec<String>) {
    let args: Vec<&str> = ["SCAN", cursor].iter().chain(options).copied().collect();
    let reply = client.call(&args).expect("a reply to SCAN");
    let Reply::Many(_, parts) = &reply else {
        panic!("{}", reply.render())
    };
    let [cursor, Reply::Many(_, names)] = parts.as_slice() else {
        panic!("{}", reply.render())
    };
    (
        cursor.text_lossy(),
        names.iter().map(Reply::text_lossy).collect(),
    )
}

fn fill(client: &mut Client, prefix: &str, count: usize) {
    for first in (0..count).step_by(500) {
        let mut args = vec!["MSET".to_owned()];
        for number in first..count.min(first + 500) {
            args.extend([format!("{prefix}:{number}"), "x".into()]);
        }
        assert_eq!(client.call(&args).expect("a reply to MSET").render(), "+OK");
    }
}

#[test]
fn a_scan_meets_every_key_once_when_nothing_else_happens() {
    for server in worlds() {
        let mut client = server.connect();
        fill(&mut client, "stays", 5000);
        for count in ["1", "10", "997"] {
            let (mut cursor, mut names) = ("0".to_owned(), Vec::new());
            let mut steps = 0;
            loop {
                let (next, found) = step(&mut client, &cursor, &["COUNT", count]);
                names.extend(found);
                cursor = next;
                steps += 1;
                if cursor == "0" {
                    break;
                }
                assert!(cursor.parse::<u64>().is_ok(), "cursor {cursor}");
                assert!(steps < 200_000, "the scan does not end");
            }
            let different: HashSet<&String> = names.iter().collect();
            assert_eq!(different.len(), 5000, "{:?} COUNT {count}", server.kind());
            assert_eq!(
                names.len(),
                5000,
                "{:?} COUNT {count}: some came twice",
                server.kind()
            );
        }
    }
}

#[test]
fn a_scan_meets_every_key_that_stays_while_others_come_and_go() {
    for server in worlds() {
        let (mut client, mut other) = (server.connect(), server.connect());
        fill(&mut client, "stays", 2000);
        let (mut cursor, mut met, mut round) = ("0".to_owned(), HashSet::new(), 0);
        loop {
            let (next, found) = step(&mut client, &cursor, &["COUNT", "20"]);
            met.extend(found.into_iter().filter(|name| name.starts_with("stays")));
            cursor = next;
            if cursor == "0" {
                break;
            }
            // Growth in the first half, removal in the second.
            if round < 30 {
                fill(&mut other, &format!("comes{round}"), 500);
            } else if round < 60 {
                let names: Vec<String> = (0..500)
                    .map(|number| format!("comes{}:{number}", round - 30))
                    .collect();
                let args: Vec<&str> = std::iter::once("UNLINK")
                    .chain(names.iter().map(String::as_str))
                    .collect();
                other.call(&args).expect("a reply to UNLINK");
            }
            round += 1;
            assert!(round < 100_000, "the scan does not end");
        }
        assert_eq!(met.len(), 2000, "{:?}", server.kind());
    }
}

#[test]
fn a_pattern_and_a_hash_tag_do_not_lose_keys() {
    for server in worlds() {
        let mut client = server.connect();
        fill(&mut client, "{tag}", 3000);
        fill(&mut client, "plain", 300);
        let (mut cursor, mut names) = ("0".to_owned(), HashSet::new());
        loop {
            let (next, found) = step(
                &mut client,
                &cursor,
                &["MATCH", "{tag}:*", "TYPE", "string"],
            );
            names.extend(found);
            cursor = next;
            if cursor == "0" {
                break;
            }
        }
        assert_eq!(names.len(), 3000, "{:?}", server.kind());
        assert!(names.iter().all(|name| name.starts_with("{tag}:")));
    }
}
