//! Replies that wait for their turn in the ring of their worker.
//!
//! Worker 0 owns the slot of "b", worker 1 that of "a". A client asks for "b" first, so whatever worker 1
//! says waits until worker 0 answers.

use super::world::{World, command};

/// A client that has asked for "b" once and for "a" `count` times, a value of `len` bytes.
fn asked(count: usize, len: usize) -> (World, u32) {
    let mut world = World::new(2, 1 << 16, &[]);
    let client = world.open();
    world.say(client, &command(&[b"SET", b"a", &vec![b'x'; len]]));
    world.say(client, &command(&[b"SET", b"b", b"first"]));
    world.received.get_mut(&client).unwrap().clear();
    world.core.input(client, &command(&[b"GET", b"b"]));
    world
        .core
        .input(client, &command(&[b"GET", b"a"]).repeat(count));
    world.turn(usize::MAX);
    (world, client)
}

fn expected(count: usize, len: usize) -> String {
    let value = format!("${len}\r\n{}\r\n", "x".repeat(len));
    format!("$5\r\nfirst\r\n{}", value.repeat(count))
}

#[test]
fn they_are_not_copied_before_their_turn() {
    let (mut world, client) = asked(3, 10);
    world.workers[1].work(usize::MAX);
    world.turn(usize::MAX);
    assert!(world.core.pool.lent() > 0);
    assert!(world.core.lanes.is_unreleased());
    assert!(world.received[&client].is_empty());
    world.settle();
    assert_eq!(world.core.pool.lent(), 0);
    assert!(!world.core.lanes.is_unreleased(), "the worker has its room");
    let got = String::from_utf8_lossy(&world.received[&client]);
    assert_eq!(got, expected(3, 10));
}

#[test]
fn they_do_not_keep_their_worker_from_going_on() {
    let (count, len) = (100, 3000);
    let (mut world, client) = asked(count, len);
    for _ in 0..1000 {
        world.workers[1].work(usize::MAX);
        world.turn(usize::MAX);
    }
    let held = world.core.get(client).unwrap().replies.held_bytes();
    assert_eq!(held, expected(count, len).len() - "$5\r\nfirst\r\n".len());
    world.settle();
    let got = String::from_utf8_lossy(&world.received[&client]);
    assert_eq!(got, expected(count, len));
}

#[test]
fn they_outlive_their_lane() {
    let (mut world, client) = asked(3, 10);
    world.workers[1].work(usize::MAX);
    world.turn(usize::MAX);
    world.core.detach(1);
    assert_eq!(world.core.pool.lent(), 0);
    world.settle();
    let got = String::from_utf8_lossy(&world.received[&client]);
    assert_eq!(got, expected(3, 10));
}

#[test]
fn they_go_with_their_connection() {
    let (mut world, client) = asked(3, 10);
    world.workers[1].work(usize::MAX);
    world.turn(usize::MAX);
    world.core.close_now(client);
    world.turn(usize::MAX);
    assert_eq!(world.closed, [client]);
    world.turn(usize::MAX);
    assert_eq!(world.core.pool.lent(), 0);
    assert!(!world.core.lanes.is_unreleased());
}
