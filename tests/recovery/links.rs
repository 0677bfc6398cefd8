//! What stands in a link makes no sense: it is made anew, and all that depends on it is there again.

use std::os::unix::fs::FileExt;

use harness::{Server, Setup, eventually, sirocco};

use crate::{announced_losses, check_keys, write_keys};

const KEYS: usize = 5_000;

/// Where the tail of the requests, and that of the replies, stands in the segment of a link.
const TAILS: [u64; 2] = [128, 640];

/// Writes a tail that cannot be into the newest link of thread 0 and worker 0, whose segments the supervisor
/// keeps open.
fn damage(server: &Server, tail: u64) {
    let folder = format!("/proc/{}/fd", server.main_process().pid);
    let is_link = |path: &std::path::Path| {
        std::fs::read_link(path)
            .is_ok_and(|target| target.to_string_lossy().contains("sirocco-link-0-0"))
    };
    let entries = std::fs::read_dir(folder).expect("the supervisor runs");
    let mut links: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_link(path))
        .collect();
    let link = links.pop().expect("the supervisor keeps the link");
    assert!(links.is_empty(), "there is one such link");
    let file = std::fs::File::options().write(true).open(link);
    let file = file.expect("the segment can be written");
    file.write_all_at(&u64::MAX.to_le_bytes(), tail)
        .expect("the segment is large enough");
}

fn renewals(server: &Server) -> usize {
    server.log().matches("is damaged: made anew").count()
}

#[test]
fn a_damaged_link_is_made_anew() {
    for tail in TAILS {
        let server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
        let mut client = server.connect();
        write_keys(&mut client, KEYS);
        let workers = server.role("storage-worker");
        damage(&server, tail);
        eventually("the link is made anew", || renewals(&server) == 1);
        eventually("everything is there again", || {
            let mut client = server.connect();
            let reply = client.call(&["DBSIZE"]);
            reply.is_ok_and(|reply| reply.int() == i64::try_from(KEYS).ok())
        });
        check_keys(&mut server.connect(), KEYS);
        assert_eq!(server.role("storage-worker"), workers, "nobody was killed");
        // Once more, soon: the worker is not trusted any more. It keeps what it has.
        damage(&server, tail);
        eventually("the link is made anew", || renewals(&server) == 2);
        eventually("the worker is replaced", || {
            let now = server.role("storage-worker");
            now.len() == 2 && now != workers
        });
        eventually("everything is there again", || {
            let mut client = server.connect();
            let reply = client.call(&["DBSIZE"]);
            reply.is_ok_and(|reply| reply.int() == i64::try_from(KEYS).ok())
        });
        check_keys(&mut server.connect(), KEYS);
        assert_eq!(announced_losses(&server), 0, "{}", server.log());
    }
}
