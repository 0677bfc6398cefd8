//! Order, back-pressure and commands over several workers, with everything decided by lot.

use proptest::prelude::*;
use proto::catalogue::{CommandRef, Lookup, find};
use proto::frame::Args;
use proto::resp::ReplyWriter;

use super::world::{Lot, Values, World, command, run};

/// What one worker alone would have answered.
#[derive(Default)]
struct Oracle {
    values: Values,
    /// CLIENT REPLY OFF
    is_off: bool,
    /// CLIENT REPLY SKIP was the last command.
    skips: bool,
}

impl Oracle {
    /// What the client is to see of a command.
    fn answer(&mut self, words: &[&[u8]]) -> Vec<u8> {
        if words[0] == b"CLIENT" {
            self.is_off = words[2] == b"OFF" || (words[2] == b"SKIP" && self.is_off);
            self.skips = words[2] == b"SKIP" && !self.is_off;
            let is_answered = words[2] == b"ON";
            return if is_answered {
                b"+OK\r\n".to_vec()
            } else {
                Vec::new()
            };
        }
        let reply = self.execute(words);
        let is_muted = std::mem::take(&mut self.skips) || self.is_off;
        if is_muted { Vec::new() } else { reply }
    }

    fn execute(&mut self, words: &[&[u8]]) -> Vec<u8> {
        let mut reply = Vec::new();
        if words[0] == b"PING" {
            return b"+PONG\r\n".to_vec();
        }
        let Lookup::Found(_, CommandRef::Storage(command)) = find(words[0], None) else {
            panic!("not a storage command");
        };
        let mut body = Vec::new();
        for word in &words[1..] {
            body.extend_from_slice(&u32::try_from(word.len()).unwrap().to_le_bytes());
            body.extend_from_slice(word);
        }
        let mut spans = Vec::new();
        let argc = u32::try_from(words.len()).unwrap();
        let args = Args::new(&body, argc, &mut spans).unwrap();
        run(
            command,
            args,
            &mut self.values,
            &mut ReplyWriter::to_vec(&mut reply, false),
        );
        reply
    }
}

/// A request by lot, over few keys, with a value that is sometimes larger than a frame may be.
fn request(lot: &mut Lot, large: usize) -> Vec<Vec<u8>> {
    let key = |lot: &mut Lot| format!("key:{}", lot.below(12)).into_bytes();
    let value = |lot: &mut Lot| {
        let len = if lot.below(10) == 0 {
            lot.below(large)
        } else {
            lot.below(30)
        };
        vec![b'a' + u8::try_from(lot.below(26)).unwrap(); len]
    };
    match lot.below(16) {
        0..=2 => vec![b"GET".to_vec(), key(lot)],
        3 | 4 => vec![b"set".to_vec(), key(lot), value(lot)],
        5 => vec![b"APPEND".to_vec(), key(lot), value(lot)],
        6 => vec![b"MGET".to_vec(), key(lot), key(lot), key(lot), key(lot)],
        7 => vec![b"MSET".to_vec(), key(lot), value(lot), key(lot), value(lot)],
        8 => vec![b"DEL".to_vec(), key(lot), key(lot)],
        9 => vec![b"EXISTS".to_vec(), key(lot), key(lot), key(lot)],
        10 => vec![b"RENAME".to_vec(), key(lot), key(lot)],
        11 => vec![
            b"MSETNX".to_vec(),
            key(lot),
            value(lot),
            key(lot),
            value(lot),
        ],
        12 => vec![b"UNLINK".to_vec(), key(lot), key(lot), key(lot)],
        13 => {
            let word = [b"ON".as_slice(), b"ON", b"OFF", b"SKIP"][lot.below(4)];
            vec![b"CLIENT".to_vec(), b"REPLY".to_vec(), word.to_vec()]
        }
        14 => vec![b"DBSIZE".to_vec()],
        _ => vec![b"PING".to_vec()],
    }
}

fn play(seed: u64, workers: usize, requests: usize, large: usize) {
    let world = World::new(workers, 1 << 16, &[]);
    play_in(world, Lot(seed), requests, large, 100_000);
}

fn play_in(mut world: World, mut lot: Lot, requests: usize, large: usize, taken: usize) {
    let workers = world.workers.len();
    let client = world.open();
    let mut oracle = Oracle::default();
    let mut input = Vec::new();
    let mut expected = Vec::new();
    for _ in 0..requests {
        let words = request(&mut lot, large);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        input.extend_from_slice(&command(&words));
        expected.extend_from_slice(&oracle.answer(&words));
    }
    let mut at = 0;
    let mut turns = 0;
    while at < input.len() || world.received[&client].len() < expected.len() {
        turns += 1;
        assert!(
            turns < 2_000_000,
            "no progress: {} of {}",
            world.received[&client].len(),
            expected.len()
        );
        match lot.below(workers + 2) {
            0 => {
                let longest = if lot.below(4) == 0 { 40_000 } else { 60 };
                let len = 1 + lot.below(longest);
                if at < input.len() && world.core.wants_input(client) {
                    let end = (at + len).min(input.len());
                    world.core.input(client, &input[at..end]);
                    at = end;
                }
            }
            1 => {
                let taken = 1 + lot.below(taken);
                world.turn(taken);
            }
            other => {
                let most = 1 + lot.below(20);
                world.workers[other - 2].work(most);
            }
        }
    }
    world.settle();
    let got = &world.received[&client];
    let differs = got.iter().zip(&expected).position(|(a, b)| a != b);
    if let Some(at) = differs {
        let text = |bytes: &[u8]| {
            String::from_utf8_lossy(&bytes[at.saturating_sub(60)..(at + 60).min(bytes.len())])
                .into_owned()
        };
        panic!(
            "at byte {at}: got {:?}, expected {:?}",
            text(got),
            text(&expected)
        );
    }
    assert_eq!(got.len(), expected.len());
    let mut databases = world.keyspace.databases.borrow_mut();
    assert_eq!(databases.entry(0).or_default(), &oracle.values);
    let connection = world.core.get(client).unwrap();
    assert_eq!(connection.replies.in_flight(), 0);
    assert!(connection.gathers.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn small_commands_over_any_number_of_workers(seed: u64, workers in 1usize..5) {
        play(seed, workers, 400, 100);
    }

    #[test]
    fn values_larger_than_a_frame(seed: u64, workers in 1usize..4) {
        play(seed, workers, 80, 200_000);
    }

    #[test]
    fn commands_are_called_back(seed: u64, workers in 1usize..5, bound in 1usize..60_000) {
        let mut world = World::new(workers, 1 << 16, &[]);
        world.core.recall_bytes = bound;
        let mut lot = Lot(seed);
        let (large, taken) = (5000 + lot.below(20_000), 500 + lot.below(20_000));
        play_in(world, lot, 300, large, taken);
    }
}

#[test]
fn a_client_that_never_reads_is_not_read_any_more() {
    let mut world = World::new(1, 1 << 16, &[]);
    let client = world.open();
    world.say(client, &command(&[b"SET", b"k", &[b'x'; 10_000]]));
    let get = command(&[b"GET", b"k"]).repeat(100);
    let mut fed = 0;
    while world.core.wants_input(client) && fed < 10_000 {
        world.core.input(client, &get);
        fed += 100;
        for _ in 0..50 {
            world.workers[0].work(usize::MAX);
            world.core.collect_replies(&world.party, false);
            world.core.run_resumed();
            world.core.lanes.flush();
        }
    }
    assert!(fed < 10_000, "input is taken without end");
    let held = world.core.get(client).unwrap().replies.held_bytes();
    assert!(
        held < 16 << 20,
        "{held} bytes are held for a client that does not read"
    );
    // It reads at last, and gets everything it asked for.
    world.received.get_mut(&client).unwrap().clear();
    world.settle();
    assert_eq!(world.received[&client].len(), fed * (10_000 + 10));
}

/// `turns` turns in which sockets take nothing.
fn read_nothing(world: &mut World, turns: usize) {
    for _ in 0..turns {
        for worker in &mut world.workers {
            worker.work(usize::MAX);
        }
        world.core.collect_replies(&world.party, false);
        world.core.run_resumed();
        world.core.serve_lanes();
        world.core.lanes.flush();
    }
}

#[test]
fn a_client_that_never_reads_has_its_commands_called_back() {
    for workers in [1, 2, 4] {
        let mut world = World::new(workers, 1 << 16, &[]);
        let client = world.open();
        let key = |number: usize| format!("k{}", number % 8).into_bytes();
        for number in 0..8 {
            let value = vec![b'0' + u8::try_from(number).unwrap(); 200_000 + number];
            world.say(client, &command(&[b"SET", &key(number), &value]));
        }
        let client = world.open();
        let mut expected = Vec::new();
        for number in 0..500 {
            let text = number.to_string();
            let get = command(&[b"GET", &key(number)]);
            let set = command(&[b"SET", b"mine", text.as_bytes()]);
            world.core.input(client, &get);
            world.core.input(client, &set);
            world.core.input(client, &command(&[b"GET", b"mine"]));
            let digit = char::from(b'0' + u8::try_from(number % 8).unwrap());
            let len = 200_000 + number % 8;
            expected.extend_from_slice(format!("${len}\r\n").as_bytes());
            expected.extend(std::iter::repeat_n(digit as u8, len));
            let rest = format!("\r\n+OK\r\n${}\r\n{text}\r\n", text.len());
            expected.extend_from_slice(rest.as_bytes());
        }
        let in_flight = world.core.get(client).unwrap().replies.in_flight();
        assert!(in_flight > 800, "{in_flight} in flight");
        read_nothing(&mut world, 2000);
        let held = world.core.get(client).unwrap().replies.held_bytes();
        let bound = crate::limits::RECALL_BYTES + workers * 300_000;
        assert!(held < bound, "{held} bytes are held");
        let returned: usize = world.workers.iter().map(|worker| worker.returned).sum();
        assert!(returned > 800, "{returned} called back");
        world.settle();
        assert!(world.received[&client] == expected, "what is right comes");
        assert!(world.core.get(client).unwrap().recall.is_none());
    }
}

#[test]
fn what_was_called_back_ends_with_its_client_or_its_worker() {
    let mut world = World::new(2, 1 << 16, &[]);
    let client = world.open();
    world.say(client, &command(&[b"SET", b"k", &[b'x'; 200_000]]));
    let get = command(&[b"GET", b"k"]);
    for ends_with_client in [true, false] {
        let client = world.open();
        world.core.input(client, &get.repeat(500));
        read_nothing(&mut world, 500);
        assert!(world.core.get(client).unwrap().recall.is_some());
        if ends_with_client {
            world.core.close_now(client);
            world.settle();
            assert_eq!(world.closed, [client]);
            continue;
        }
        world.core.lanes.set_down(0, true);
        world.core.lanes.set_down(1, true);
        world.settle();
        let reply = &world.received[&client];
        let mut rest = &reply[..];
        while rest.starts_with(b"$200000\r\n") {
            rest = &rest[200_011..];
        }
        let errors = String::from_utf8_lossy(rest).into_owned();
        assert!(errors.lines().count() > 400, "{errors}");
        assert!(errors.lines().all(|line| line.starts_with('-')), "{errors}");
    }
}

#[test]
fn replies_for_a_connection_that_is_gone_reach_nobody() {
    let mut world = World::new(2, 1 << 16, &[]);
    let first = world.open();
    world.core.input(
        first,
        &[command(&[b"GET", b"a"]), command(&[b"GET", b"b"])]
            .concat()
            .repeat(5),
    );
    world.core.input(first, &command(&[b"SET", b"a", b"1"]));
    world.core.close_now(first);
    world.turn(0);
    let second = world.open();
    assert_eq!(first, second, "the place is used again");
    assert_eq!(world.say(second, &command(&[b"GET", b"a"])), "$1\r\n1\r\n");
}

#[test]
fn replies_in_pieces_count_as_large_ones() {
    let mut world = World::new(1, 1 << 16, &[]);
    let client = world.open();
    world.say(client, &command(&[b"SET", b"k", &[b'x'; 200_000]]));
    let get = command(&[b"GET", b"k"]);
    world.say(client, &get);
    world.core.input(client, &get.repeat(1000));
    let in_flight = world.core.get(client).unwrap().replies.in_flight();
    assert!((1..=21).contains(&in_flight), "{in_flight} at once");
    world.received.get_mut(&client).unwrap().clear();
    world.settle();
    assert_eq!(world.received[&client].len(), 1000 * (200_000 + 11));
}

#[test]
fn nobody_waits_for_a_worker_that_sends_garbage() {
    let mut world = World::new(2, 1 << 16, &[]);
    let (asked, idle) = (world.open(), world.open());
    world.say(idle, &command(&[b"SET", b"b", b"1"]));
    world.core.input(asked, &command(&[b"GET", b"a"]));
    world.turn(100);
    world.workers[1].send_raw(&[0xff; 32]);
    world.turn(100);
    assert_eq!(world.closed, [asked]);
    // The other one serves on; the keys of this one are gone for now, and that is said.
    assert_eq!(world.say(idle, &command(&[b"GET", b"b"])), "$1\r\n1\r\n");
    assert!(world.say(idle, &command(&[b"GET", b"a"])).starts_with('-'));
    // With a new link they are there again.
    world.attach_again(1);
    assert_eq!(world.say(idle, &command(&[b"GET", b"a"])), "$-1\r\n");
    // A new link in place of one that was not broken here: the worker has found that.
    let asked = world.open();
    world.core.input(asked, &command(&[b"GET", b"a"]));
    world.turn(100);
    world.attach_again(1);
    world.settle();
    assert_eq!(world.closed[1..], [asked]);
    assert_eq!(world.say(idle, &command(&[b"GET", b"a"])), "$-1\r\n");
}

#[test]
fn what_is_under_way_runs_without_its_client() {
    let mut world = World::new(4, 1 << 16, &[]);
    let client = world.open();
    world.say(client, &command(&[b"SET", b"from", b"v"]));
    world
        .core
        .input(client, &command(&[b"RENAME", b"from", b"to"]));
    world.core.close_now(client);
    world.settle();
    assert_eq!(world.closed, [client]);
    let other = world.open();
    let reply = world.say(other, &command(&[b"MGET", b"from", b"to"]));
    assert_eq!(reply, "*2\r\n$-1\r\n$1\r\nv\r\n");
    assert_eq!(world.core.connections.iter().flatten().count(), 1);
}
