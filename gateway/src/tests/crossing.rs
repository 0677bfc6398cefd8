//! Commands over keys of several workers: where they go, and what waits for what.
//!
//! Worker 0 owns the slot of "b", worker 1 that of "a".

use proto::frame::{ReplyKind, RequestHeader, flags};

use super::world::{World, command};

fn line(text: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
    command(&words)
}

/// One read with all of these lines.
fn lines(texts: &[&str]) -> Vec<u8> {
    texts.iter().flat_map(|text| line(text)).collect()
}

/// A world of two workers and a client in it that has sent these lines; no worker has done anything.
fn sent(texts: &[&str]) -> (World, u32) {
    let mut world = World::new(2, 1 << 16, &[]);
    let client = world.open();
    world.core.input(client, &lines(texts));
    world.turn(1000);
    (world, client)
}

/// What stands in the rings of both workers. The test answers it.
fn taken(world: &mut World) -> [Vec<RequestHeader>; 2] {
    [0, 1].map(|worker| world.workers[worker].take_requests())
}

/// How much stands there.
fn counted(world: &mut World) -> [usize; 2] {
    taken(world).map(|requests| requests.len())
}

fn answer(world: &mut World, worker: usize, request: &RequestHeader, reply: &str) {
    world.workers[worker].send(ReplyKind::Reply, request, reply.as_bytes());
    world.turn(1000);
    world.turn(1000);
}

fn got(world: &World, client: u32) -> &str {
    std::str::from_utf8(&world.received[&client]).unwrap()
}

fn is_crossing(request: &RequestHeader) -> bool {
    request.flags & flags::CROSSING != 0
}

#[test]
fn they_go_whole_to_the_owner_of_their_first_key() {
    for (text, worker) in [
        ("MSET a 1 b 2", 1),
        ("MSETNX b 1 a 2", 0),
        ("MGET a b a", 1),
        ("RENAME b a", 0),
        ("PFCOUNT a b", 1),
        ("PFMERGE {b}x {b}y a", 0),
        ("SINTERSTORE a a b", 1),
        ("BITOP AND b a a", 0),
        ("SORT a BY w_* GET v_*", 1),
        ("BLPOP a b 0", 1),
        ("XREAD BLOCK 0 STREAMS b a 0 0", 0),
        ("EVAL return(1) 2 a b", 1),
        // Any key may be meant, or all are.
        ("EVAL redis.call('get','x') 1 a", 1),
        ("EVAL redis.call('get','x') 0", 0),
        ("DBSIZE", 0),
        ("KEYS *", 0),
        ("FLUSHALL", 0),
    ] {
        let (mut world, client) = sent(&[text]);
        let requests = taken(&mut world);
        assert_eq!(requests[1 - worker], [], "{text}");
        let [request] = &requests[worker][..] else {
            panic!("{text}: {requests:?}");
        };
        assert!(is_crossing(request), "{text}");
        assert_eq!(request.argc as usize, text.split(' ').count(), "{text}");
        answer(&mut world, worker, request, "+whole\r\n");
        assert_eq!(got(&world, client), "+whole\r\n", "{text}");
    }
}

#[test]
fn what_one_worker_can_do_alone_says_nothing_of_others() {
    for (text, worker) in [
        ("MSET a 1 {a}b 2", 1),
        ("BLPOP b {b}2 0", 0),
        ("SORT a", 1),
        // They touch nothing but their keys.
        ("EVAL return(1) 1 a", 1),
        ("EVAL redis.call('get',KEYS[1]) 1 b", 0),
    ] {
        let (mut world, _) = sent(&[text]);
        let requests = taken(&mut world);
        let [request] = &requests[worker][..] else {
            panic!("{text}: {requests:?}");
        };
        assert!(!is_crossing(request), "{text}");
    }
    let mut world = World::new(1, 1 << 16, &[]);
    let client = world.open();
    world
        .core
        .input(client, &lines(&["MSET a 1 b 2", "DBSIZE"]));
    world.turn(0);
    let requests = world.workers[0].take_requests();
    assert_eq!(requests.len(), 2);
    assert!(!requests.iter().any(is_crossing));
}

#[test]
fn a_pipeline_of_them_stays_with_one_worker_and_waits_for_nothing() {
    let texts = [
        "MSET a 1 b 2",
        "MSET b 3 a 4",
        "MGET b a",
        "DBSIZE",
        "EVAL redis.call('get','x') 1 b",
        "EXISTS b a",
    ];
    let (mut world, client) = sent(&texts);
    let [others, requests] = taken(&mut world);
    assert_eq!(others, []);
    assert!(requests.iter().all(is_crossing));
    let sequences: Vec<u32> = requests.iter().map(|request| request.sequence).collect();
    assert_eq!(sequences, [0, 1, 2, 3, 4, 5].map(|at| sequences[0] + at));
    // With all of them answered the next one may go elsewhere.
    for request in &requests {
        answer(&mut world, 1, request, "+x\r\n");
    }
    assert_eq!(got(&world, client), "+x\r\n".repeat(6));
    world.core.input(client, &line("MSET b 3 a 4"));
    world.turn(0);
    assert_eq!(counted(&mut world), [1, 0]);
}

#[test]
fn what_goes_to_the_same_worker_follows_at_once() {
    let texts = [
        "MSET a 1 b 2",
        "GET a",
        "MGET a {a}2",
        "SET a 3",
        "EXISTS {a}2 b",
    ];
    let (mut world, client) = sent(&texts);
    let [others, requests] = taken(&mut world);
    assert_eq!(others, []);
    let crossing: Vec<bool> = requests.iter().map(is_crossing).collect();
    assert_eq!(crossing, [true, false, false, false, true]);
    for (request, reply) in requests
        .iter()
        .zip(["+1\r\n", "+2\r\n", "+3\r\n", "+4\r\n", "+5\r\n"])
    {
        answer(&mut world, 1, request, reply);
    }
    assert_eq!(got(&world, client), "+1\r\n+2\r\n+3\r\n+4\r\n+5\r\n");
}

#[test]
fn what_goes_to_another_worker_waits_for_them() {
    for text in [
        "GET b",
        "SET b 3",
        "MGET b {b}2",
        "BLPOP b 0",
        // Its first key decides, and it waits anyway.
        "BLPOP a b 0",
        "FUNCTION DUMP",
        "RANDOMKEY",
        "SCAN 0",
    ] {
        let (mut world, client) = sent(&["MSET a 1 b 2", text]);
        let [others, requests] = taken(&mut world);
        assert_eq!(others, [], "{text}");
        assert_eq!(requests.len(), 1, "{text}");
        answer(&mut world, 1, &requests[0], "+OK\r\n");
        assert_eq!(counted(&mut world).iter().sum::<usize>(), 1, "{text}");
        assert_eq!(got(&world, client), "+OK\r\n");
    }
}

#[test]
fn what_waits_keeps_its_place_in_the_order() {
    let texts = [
        "MSET a 1 b 2",
        "GET a",
        "GET b",
        "PING",
        "MSET b 3 a 4",
        "GET b",
        "GET a",
    ];
    let (mut world, client) = sent(&texts);
    assert_eq!(world.workers[0].take_requests(), []);
    world.settle();
    let expected = "+OK\r\n$1\r\n1\r\n$1\r\n2\r\n+PONG\r\n+OK\r\n$1\r\n3\r\n$1\r\n4\r\n";
    assert_eq!(got(&world, client), expected);
}

#[test]
fn they_wait_for_what_other_workers_have_to_do_before() {
    for text in [
        "MSET a 1 b 2",
        "DBSIZE",
        "EVAL redis.call('get','x') 1 a",
        "BLPOP a b 0",
    ] {
        let (mut world, client) = sent(&["GET b", text, "GET b"]);
        let [first, others] = taken(&mut world);
        assert_eq!(others, [], "{text}");
        assert_eq!(first.len(), 1, "{text}");
        answer(&mut world, 0, &first[0], "+first\r\n");
        let requests = taken(&mut world);
        let worker = usize::from(text != "DBSIZE");
        assert!(is_crossing(&requests[worker][0]), "{text}");
        assert_eq!(requests[1].len(), worker, "{text}");
        assert_eq!(requests[0].len(), 2 * (1 - worker), "{text}");
        assert_eq!(got(&world, client), "+first\r\n");
    }
}

#[test]
fn a_transaction_over_several_workers_is_one_of_them() {
    let (mut world, client) = sent(&["MULTI", "SET a 1", "SET b 2", "EXEC", "GET b"]);
    let queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n";
    assert_eq!(got(&world, client), queued);
    let [others, units] = taken(&mut world);
    assert_eq!(others, []);
    assert_eq!(units.len(), 1);
    assert!(is_crossing(&units[0]));
    answer(&mut world, 1, &units[0], "*0\r\n");
    assert_eq!(counted(&mut world), [1, 0]);
    assert_eq!(got(&world, client), format!("{queued}*0\r\n"));
}

#[test]
fn silence_does_not_let_others_overtake_them() {
    let (mut world, client) = sent(&["CLIENT REPLY OFF", "MSET a 1 b 2", "SET b 3"]);
    let [others, requests] = taken(&mut world);
    assert_eq!(others, []);
    assert_eq!(requests.len(), 1);
    assert_eq!(
        requests[0].flags & flags::DISCARD,
        0,
        "it says when it has run"
    );
    answer(&mut world, 1, &requests[0], "+OK\r\n");
    let [requests, others] = taken(&mut world);
    assert_eq!(others, []);
    assert_ne!(requests[0].flags & flags::DISCARD, 0);
    world
        .core
        .input(client, &lines(&["CLIENT REPLY ON", "PING"]));
    world.turn(1000);
    assert_eq!(got(&world, client), "+OK\r\n+PONG\r\n");
}

#[test]
fn one_reply_can_be_skipped() {
    let texts = [
        "CLIENT REPLY SKIP",
        "MSET a 1 b 2",
        "GET b",
        "CLIENT REPLY SKIP",
        "MGET a b",
        "GET a",
    ];
    let (mut world, client) = sent(&texts);
    world.settle();
    assert_eq!(got(&world, client), "$1\r\n2\r\n$1\r\n1\r\n");
    // It is skipped, too, if it has to wait first, or is refused.
    let texts = [
        "GET b",
        "CLIENT REPLY SKIP",
        "MSET a 5 b 6",
        "CLIENT REPLY SKIP",
        "MSET a 5 b",
        "MGET a b",
    ];
    let (mut world, client) = sent(&texts);
    world.settle();
    assert_eq!(got(&world, client), "$-1\r\n*2\r\n$1\r\n5\r\n$1\r\n6\r\n");
}

#[test]
fn they_wait_for_what_nobody_hears_of() {
    for last in [
        &["MSET a 3 b 4"][..],
        &["MULTI", "SET a 3", "SET b 4", "EXEC"],
    ] {
        for is_silent in [true, false] {
            let on: &[&str] = if is_silent { &[] } else { &["CLIENT REPLY ON"] };
            let texts = [&["CLIENT REPLY OFF", "SET b 1", "SET a 2"][..], on, last].concat();
            let (mut world, _) = sent(&texts);
            let [zero, one] = taken(&mut world);
            assert!(!zero.iter().chain(&one).any(is_crossing), "{texts:?}");
            // The worker of "b" is behind with its work.
            answer(&mut world, 1, &one[1], "+OK\r\n");
            assert_eq!(counted(&mut world), [0, 0], "{texts:?}");
            answer(&mut world, 0, &zero[1], "+OK\r\n");
            let [others, requests] = taken(&mut world);
            assert_eq!(others, [], "{texts:?}");
            assert!(is_crossing(&requests[0]), "{texts:?}");
            assert_eq!(requests.len(), 1, "{texts:?}");
        }
    }
}

#[test]
fn what_nobody_hears_of_at_their_own_worker_is_before_them_anyway() {
    let (mut world, _) = sent(&["CLIENT REPLY OFF", "SET a 1", "MSET a 3 b 4"]);
    let [others, requests] = taken(&mut world);
    assert_eq!(others, []);
    let crossing: Vec<bool> = requests.iter().map(is_crossing).collect();
    assert_eq!(crossing, [false, true]);
}

#[test]
fn they_are_refused_if_one_of_their_owners_is_gone() {
    let mut world = World::new(3, 1 << 16, &[]);
    let client = world.open();
    // Slots 3300, 15495 and 7365: one of each worker.
    assert_eq!(world.say(client, &line("MSET b 1 a 1 c 1")), "+OK\r\n");
    world.core.lanes.set_down(0, true);
    for text in ["MGET a b", "MGET b a", "DBSIZE", "EVAL return(1) 2 a b"] {
        let reply = world.say(client, &line(text));
        assert!(reply.starts_with('-'), "{text}: {reply}");
    }
    assert_eq!(
        world.say(client, &line("MGET a c")),
        "*2\r\n$1\r\n1\r\n$1\r\n1\r\n"
    );
}

#[test]
fn large_ones_keep_their_place() {
    for is_silent in [true, false] {
        let mut world = World::new(2, 1 << 16, &[]);
        let client = world.open();
        let value = vec![b'x'; 100_000];
        let mut input = lines(if is_silent {
            &["CLIENT REPLY OFF", "SET b 1"]
        } else {
            &["SET b 1"]
        });
        input.extend(command(&[b"MSET", b"a", &value, b"b", &value]));
        input.extend(lines(&["APPEND b y", "CLIENT REPLY ON", "MGET b"]));
        let reply = world.say(client, &input);
        let value = format!("*1\r\n$100001\r\n{}y\r\n", "x".repeat(100_000));
        let before = if is_silent {
            ""
        } else {
            "+OK\r\n+OK\r\n:100001\r\n"
        };
        assert!(reply == format!("{before}+OK\r\n{value}"), "{is_silent}");
    }
}
