//! A worker dies within a large reply: what its client sees of the successor's.
//!
//! Method: the frames of both workers are made by hand, so that the death is where it should be and the
//! second reply is the same or another one.

use proto::frame::{ReplyKind, RequestHeader};

use super::world::{World, command};
use ReplyKind::{Reply, ReplyEnd, ReplyPart};

/// A client that has asked for a large value and, behind it, for something small.
fn asked(workers: usize) -> (World, u32, RequestHeader, RequestHeader) {
    let mut world = World::new(workers, 1 << 16, &[]);
    let client = world.open();
    world.core.input(client, &command(&[b"GET", b"large"]));
    world.core.input(client, &command(&[b"GET", b"small"]));
    world.turn(0);
    let large = world.workers[0].take_request();
    let small = world.workers[0].take_request();
    (world, client, large, small)
}

fn got(world: &World, client: u32) -> &str {
    std::str::from_utf8(&world.received[&client]).unwrap()
}

#[test]
fn what_is_sent_already_is_left_out_of_the_repetition() {
    let (mut world, client, large, small) = asked(1);
    world.workers[0].send(ReplyPart, &large, b"$9\r\nabc");
    world.turn(5);
    world.workers[0].send(ReplyPart, &large, b"def");
    world.turn(1);
    assert_eq!(got(&world, client), "$9\r\nab");
    for epoch in [2, 3] {
        world.workers[0].succeed(epoch);
        world.turn(1);
        // The second one dies before it has repeated everything.
        world.workers[0].send(ReplyPart, &large, b"$9\r\nabc");
        world.turn(0);
    }
    world.workers[0].send(ReplyPart, &large, b"def");
    world.turn(100);
    assert_eq!(got(&world, client), "$9\r\nabcdef");
    world.workers[0].send(ReplyEnd, &large, b"ghi\r\n");
    world.workers[0].send(Reply, &small, b"+x\r\n");
    world.turn(100);
    assert_eq!(got(&world, client), "$9\r\nabcdefghi\r\n+x\r\n");
    assert!(world.closed.is_empty());
}

#[test]
fn what_no_socket_has_taken_may_become_another_reply() {
    for reply in ["$3\r\nnew\r\n", "-ERR outcome unknown\r\n"] {
        let (mut world, client, large, small) = asked(1);
        world.workers[0].send(ReplyPart, &large, b"$9\r\nabc");
        world.turn(0);
        world.workers[0].send(ReplyPart, &large, b"def");
        world.workers[0].succeed(2);
        world.turn(0);
        world.workers[0].send(Reply, &large, reply.as_bytes());
        world.workers[0].send(Reply, &small, b"+x\r\n");
        world.turn(100);
        assert_eq!(got(&world, client), format!("{reply}+x\r\n"));
        assert!(world.closed.is_empty());
    }
}

#[test]
fn a_reply_that_cannot_be_continued_ends_the_connection_and_nothing_else_is_sent() {
    let others: [&[(ReplyKind, &[u8])]; 5] = [
        &[(Reply, b"-ERR outcome unknown\r\n")],
        &[
            (ReplyPart, b"$9\r\nabC"),
            (ReplyPart, b"def"),
            (ReplyEnd, b"ghi\r\n"),
        ],
        &[
            (ReplyPart, b"$9\r\nabc"),
            (ReplyPart, b"deF"),
            (ReplyEnd, b"ghi\r\n"),
        ],
        &[(ReplyPart, b"$9\r\nabc"), (ReplyEnd, b"def\r\n")],
        &[
            (ReplyPart, b"$9\r\nabcd"),
            (ReplyPart, b"efgh"),
            (ReplyEnd, b"i\r\n"),
        ],
    ];
    for other in others {
        let (mut world, client, large, small) = asked(1);
        world.workers[0].send(ReplyPart, &large, b"$9\r\nabc");
        world.workers[0].send(ReplyPart, &large, b"def");
        world.turn(5);
        world.workers[0].succeed(2);
        world.turn(0);
        for (kind, bytes) in other {
            world.workers[0].send(*kind, &large, bytes);
        }
        world.workers[0].send(Reply, &small, b"+x\r\n");
        world.turn(100);
        assert_eq!(world.closed, [client], "{other:?}");
        assert!("$9\r\nabcdef".starts_with(got(&world, client)), "{other:?}");
        // The lane serves others, also who gets the same place.
        let next = world.open();
        assert_eq!(next, client);
        world.core.input(next, &command(&[b"GET", b"k"]));
        world.turn(0);
        let request = world.workers[0].take_request();
        world.workers[0].send(ReplyPart, &request, b"$3\r\nab");
        world.workers[0].send(ReplyEnd, &request, b"c\r\n");
        world.turn(100);
        assert_eq!(got(&world, next), "$3\r\nabc\r\n");
    }
}

#[test]
fn a_half_reply_before_its_turn_is_forgotten() {
    let mut world = World::new(2, 1 << 16, &[]);
    let client = world.open();
    // Worker 0 owns the slot of "b", worker 1 that of "a".
    world.core.input(client, &command(&[b"GET", b"b"]));
    world.core.input(client, &command(&[b"GET", b"a"]));
    world.turn(0);
    let first = world.workers[0].take_request();
    let second = world.workers[1].take_request();
    world.workers[1].send(ReplyPart, &second, b"$6\r\nold");
    world.turn(100);
    world.workers[1].succeed(2);
    world.turn(100);
    world.workers[1].send(ReplyPart, &second, b"$6\r\nnew");
    world.turn(100);
    world.workers[0].send(Reply, &first, b"+first\r\n");
    world.turn(100);
    world.workers[1].send(ReplyEnd, &second, b"er!\r\n");
    world.turn(100);
    assert_eq!(got(&world, client), "+first\r\n$6\r\nnewer!\r\n");
}

#[test]
fn a_half_reply_of_a_transaction_is_forgotten() {
    let mut world = World::new(2, 1 << 16, &[]);
    let client = world.open();
    // The gateway answers PING in its place, so it holds the worker's reply until it is complete.
    for words in [&[b"MULTI".as_slice()][..], &[b"GET", b"a"], &[b"PING"]] {
        world.say(client, &command(words));
    }
    world.received.get_mut(&client).unwrap().clear();
    world.core.input(client, &command(&[b"EXEC"]));
    world.turn(0);
    let unit = world.workers[1].take_request();
    world.workers[1].send(ReplyPart, &unit, b"*1\r\n$6\r\nold");
    world.turn(100);
    world.workers[1].succeed(2);
    world.turn(100);
    world.workers[1].send(ReplyPart, &unit, b"*1\r\n$6\r\nnew");
    world.workers[1].send(ReplyEnd, &unit, b"er!\r\n");
    world.turn(100);
    world.turn(100);
    assert_eq!(got(&world, client), "*2\r\n$6\r\nnewer!\r\n+PONG\r\n");
}
