//! Slow commands: what a worker says about them ends in the slow log, with the client that said them.

use proto::frame::ReplyKind;

use super::world::{World, command};

#[test]
fn a_worker_says_what_was_slow_and_the_log_knows_who_it_was() {
    let mut world = World::new(1, 1 << 16, &[("slowlog-max-len", "2")]);
    let client = world.open();
    world.say(client, &command(&[b"CLIENT", b"SETNAME", b"ada"]));
    for number in [b"1", b"2", b"3"] {
        world.received.entry(client).or_default().clear();
        world.core.input(client, &command(&[b"GET", number]));
        world.turn(100);
        let request = world.workers[0].take_request();
        let mut told = 12_345u64.to_le_bytes().to_vec();
        told.extend_from_slice(&command(&[b"get", number]));
        world.workers[0].send(ReplyKind::Reply, &request, b"$-1\r\n");
        world.workers[0].send(ReplyKind::Slow, &request, &told);
        world.turn(100);
        assert_eq!(world.received[&client], b"$-1\r\n");
    }
    assert_eq!(world.say(client, &command(&[b"SLOWLOG", b"LEN"])), ":2\r\n");
    let entry = |id: u32| {
        let number = id + 1;
        format!(
            "*6\r\n:{id}\r\n:1700000000\r\n:12345\r\n*2\r\n$3\r\nget\r\n$1\r\n{number}\r\n\
             $14\r\n127.0.0.1:1234\r\n$3\r\nada\r\n"
        )
    };
    let all = world.say(client, &command(&[b"SLOWLOG", b"GET"]));
    assert_eq!(all, format!("*2\r\n{}{}", entry(2), entry(1)));
    let one = world.say(client, &command(&[b"SLOWLOG", b"GET", b"1"]));
    assert_eq!(one, format!("*1\r\n{}", entry(2)));
    assert_eq!(
        world.say(client, &command(&[b"SLOWLOG", b"RESET"])),
        "+OK\r\n"
    );
    assert_eq!(world.say(client, &command(&[b"SLOWLOG", b"LEN"])), ":0\r\n");
}

#[test]
fn no_password_is_in_the_log() {
    let mut world = World::new(1, 1 << 16, &[("slowlog-log-slower-than", "0")]);
    let client = world.open();
    for words in [
        &[b"AUTH".as_slice(), b"pw1"][..],
        &[b"AUTH", b"ada", b"pw2"],
        &[b"HELLO", b"2", b"SETNAME", b"c", b"auth", b"ada", b"pw3"],
        &[
            b"CONFIG",
            b"SET",
            b"RequirePass",
            b"pw4",
            b"hz",
            b"none",
            b"masterauth",
            b"pw5",
        ],
    ] {
        world.say(client, &command(words));
    }
    let log = world.say(client, &command(&[b"SLOWLOG", b"GET"]));
    for text in ["ada", "pw1", "pw2", "pw3", "pw4", "pw5"] {
        assert!(!log.contains(text), "{text} is in {log}");
    }
    for text in ["SETNAME", "RequirePass", "none", "AUTH", "auth"] {
        assert!(log.contains(text), "{text} is not in {log}");
    }
    assert_eq!(log.matches("(redacted)").count(), 7);
}
