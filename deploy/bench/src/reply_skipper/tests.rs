//! The skipper against a plain recursive reader, over generated replies cut at random places.

use proptest::prelude::*;

use super::{Reply, ReplySkipper};

/// A reply as a tree; rendered to bytes and summed up independently of the skipper.
#[derive(Debug, Clone)]
enum Tree {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    NullBulk,
    NullArray,
    Null,
    Array(Vec<Tree>),
    Map(Vec<(Tree, Tree)>),
}

impl Tree {
    fn render(&self, out: &mut Vec<u8>) {
        match self {
            Self::Simple(text) => out.extend(format!("+{text}\r\n").bytes()),
            Self::Error(text) => out.extend(format!("-{text}\r\n").bytes()),
            Self::Integer(number) => out.extend(format!(":{number}\r\n").bytes()),
            Self::Bulk(body) => {
                out.extend(format!("${}\r\n", body.len()).bytes());
                out.extend(body);
                out.extend(b"\r\n");
            }
            Self::NullBulk => out.extend(b"$-1\r\n"),
            Self::NullArray => out.extend(b"*-1\r\n"),
            Self::Null => out.extend(b"_\r\n"),
            Self::Array(items) => {
                out.extend(format!("*{}\r\n", items.len()).bytes());
                items.iter().for_each(|item| item.render(out));
            }
            Self::Map(pairs) => {
                out.extend(format!("%{}\r\n", pairs.len()).bytes());
                for (key, value) in pairs {
                    key.render(out);
                    value.render(out);
                }
            }
        }
    }

    fn add_to(&self, reply: &mut Reply) {
        match self {
            Self::Bulk(body) => reply.bulk_bytes += body.len() as u64,
            Self::NullBulk | Self::NullArray | Self::Null => reply.nulls += 1,
            Self::Error(_) => reply.errors += 1,
            Self::Array(items) => items.iter().for_each(|item| item.add_to(reply)),
            Self::Map(pairs) => pairs.iter().for_each(|(key, value)| {
                key.add_to(reply);
                value.add_to(reply);
            }),
            Self::Simple(_) | Self::Integer(_) => {}
        }
    }

    fn expected(&self) -> Reply {
        let (kind, number) = match self {
            Self::Simple(_) => (b'+', 0),
            Self::Error(_) => (b'-', 0),
            Self::Integer(number) => (b':', *number),
            Self::Bulk(body) => (b'$', body.len() as i64),
            Self::NullBulk => (b'$', -1),
            Self::NullArray => (b'*', -1),
            Self::Null => (b'_', -1),
            Self::Array(items) => (b'*', items.len() as i64),
            Self::Map(pairs) => (b'%', pairs.len() as i64),
        };
        let mut reply = Reply {
            kind,
            number,
            ..Reply::default()
        };
        self.add_to(&mut reply);
        reply
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        "[a-zA-Z ]{0,40}".prop_map(Tree::Simple),
        "ERR [a-z ]{0,40}".prop_map(Tree::Error),
        any::<i64>().prop_map(Tree::Integer),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Tree::Bulk),
        Just(Tree::NullBulk),
        Just(Tree::NullArray),
        Just(Tree::Null),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Tree::Array),
            prop::collection::vec((inner.clone(), inner), 0..4).prop_map(Tree::Map),
        ]
    })
}

proptest! {
    #[test]
    fn counts_the_same_however_the_stream_is_cut(
        trees in prop::collection::vec(tree(), 1..12),
        cuts in prop::collection::vec(1_usize..40, 1..50),
    ) {
        let mut stream = Vec::new();
        trees.iter().for_each(|tree| tree.render(&mut stream));
        let expected: Vec<Reply> = trees.iter().map(Tree::expected).collect();

        let mut whole = Vec::new();
        ReplySkipper::default().feed(&stream, |reply| whole.push(*reply)).unwrap();
        prop_assert_eq!(&whole, &expected);

        let mut skipper = ReplySkipper::default();
        let mut pieces = Vec::new();
        let mut rest = stream.as_slice();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (head, tail) = rest.split_at((*cut).min(rest.len()));
            skipper.feed(head, |reply| pieces.push(*reply)).unwrap();
            rest = tail;
        }
        prop_assert_eq!(&pieces, &expected);
    }

    #[test]
    fn survives_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = ReplySkipper::default().feed(&bytes, |_| {});
    }

    #[test]
    fn survives_bytes_that_look_like_replies(text in "[+*$:%_0-9a\r\n-]{0,200}") {
        let _ = ReplySkipper::default().feed(text.as_bytes(), |_| {});
    }
}

#[test]
fn keeps_the_first_error_text() {
    let mut skipper = ReplySkipper::default();
    let mut errors = 0;
    skipper
        .feed(b"-ERR first\r\n+OK\r\n-ERR second\r\n", |reply| {
            errors += reply.errors;
        })
        .unwrap();
    assert_eq!(errors, 2);
    assert_eq!(skipper.first_error().as_deref(), Some("ERR first"));
}

#[test]
fn refuses_what_is_not_a_reply() {
    for garbage in [
        &b"HTTP/1.1"[..],
        b"$x\r\n",
        b"$3\r\nabcd\r\n",
        b":\r\n",
        b"*-1x\r\n",
        b"+OK\r+",
    ] {
        let outcome = ReplySkipper::default().feed(garbage, |_| {});
        assert!(outcome.is_err(), "{garbage:?}");
    }
}

#[test]
fn attributes_belong_to_the_reply_that_follows() {
    let mut replies = 0;
    ReplySkipper::default()
        .feed(b"|1\r\n+a\r\n:1\r\n$2\r\nhi\r\n:5\r\n", |_| replies += 1)
        .unwrap();
    assert_eq!(replies, 2);
}
