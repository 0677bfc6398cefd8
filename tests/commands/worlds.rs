//! What tests that count share: a server of ours, beside a real Redis where one is installed.

use harness::{Client, Kind, Reply, Server, Setup, server::reference, sirocco};

pub(crate) fn ours() -> Server {
    Setup::new(Kind::sirocco(sirocco!(), 1)).start()
}

pub(crate) fn worlds() -> Vec<Server> {
    std::iter::once(ours())
        .chain(reference().map(|kind| Setup::new(kind).start()))
        .collect()
}

pub(crate) fn call(client: &mut Client, line: &str) -> Reply {
    let words: Vec<&str> = line.split(' ').collect();
    client.call(&words).expect("a reply")
}

pub(crate) fn texts(reply: &Reply) -> Vec<String> {
    let Reply::Many(_, items) = reply else {
        panic!("{}", reply.render())
    };
    items.iter().map(Reply::text_lossy).collect()
}
