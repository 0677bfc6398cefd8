//! Several clients at once, and one order that explains all that they have seen (`harness::history`).
//!
//! Lists: every client appends numbers of its own and reads, with single commands, with MULTI and EXEC, with WATCH, and
//! with scripts. Accounts: clients move money about with WATCH, others count it all and must always find the same sum.
//! Queues: what is pushed anywhere, in whatever way, is popped once by those who wait for several queues.
//! The keys of a transaction live on any workers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use harness::history::{History, Operation, Outcome, Transaction};
use harness::{Client, Reply, Server, Setup, sirocco};

use crate::random::Random;

const TAGS: usize = 4;
const KEYS_PER_TAG: usize = 3;
const CLIENTS: u64 = 6;
const TIME: Duration = Duration::from_millis(1500);

static NEXT: AtomicU64 = AtomicU64::new(1);

fn list_of(reply: &Reply) -> Vec<u64> {
    let Reply::Many(_, items) = reply else {
        panic!("not a list: {}", reply.render())
    };
    let numbers = items.iter().map(|item| item.text_lossy().parse());
    numbers.map(|number| number.expect("a number")).collect()
}

/// An operation that is to come.
fn draw(random: &mut Random) -> (String, Option<u64>) {
    let tag = random.below(TAGS);
    let key = format!("{{{tag}}}:{}", random.below(KEYS_PER_TAG));
    let value = (random.below(2) == 0).then(|| NEXT.fetch_add(1, Ordering::Relaxed));
    (key, value)
}

fn words((key, value): &(String, Option<u64>)) -> Vec<String> {
    match value {
        Some(value) => vec!["RPUSH".to_owned(), key.clone(), value.to_string()],
        None => ["LRANGE", key, "0", "-1"].map(str::to_owned).to_vec(),
    }
}

fn operation((key, value): &(String, Option<u64>), reply: &Reply) -> Operation {
    match value {
        Some(value) => Operation::Append(key.clone(), *value),
        None => Operation::Read(key.clone(), list_of(reply)),
    }
}

/// The same operations in a script, which declares only the first of its keys.
fn script(drawn: &[(String, Option<u64>)]) -> Vec<String> {
    const BODY: &str = "local all = {} for at = 1, #ARGV, 2 do local key, value = ARGV[at], ARGV[at + 1] \
         if value == '' then all[#all + 1] = redis.call('lrange', key, 0, -1) \
         else all[#all + 1] = redis.call('rpush', key, value) end end return all";
    let mut words = ["EVAL", BODY, "1", &drawn[0].0].map(str::to_owned).to_vec();
    for (key, value) in drawn {
        words.push(key.clone());
        words.push(value.map_or(String::new(), |value| value.to_string()));
    }
    words
}

/// One client's transaction, or the single commands that it came to.
fn transact(client: &mut Client, random: &mut Random, history: &mut Vec<Transaction>) {
    let drawn: Vec<_> = (0..=random.below(4)).map(|_| draw(random)).collect();
    let begun = Instant::now();
    let done = |begun, operations| Transaction {
        begun,
        ended: Instant::now(),
        outcome: Outcome::Done,
        operations,
    };
    if random.below(3) == 0 {
        let reply = client.call(&words(&drawn[0])).expect("a reply");
        return history.push(done(begun, vec![operation(&drawn[0], &reply)]));
    }
    if random.below(3) == 0 {
        let reply = client.call(&script(&drawn)).expect("a reply");
        let Reply::Many(_, replies) = &reply else {
            panic!("{}", reply.render())
        };
        let operations = drawn.iter().zip(replies);
        let operations = operations.map(|(one, reply)| operation(one, reply));
        return history.push(done(begun, operations.collect()));
    }
    let mut operations = Vec::new();
    if random.below(2) == 0 {
        let (watched, _) = draw(random);
        client.call(&["WATCH", &watched]).expect("a reply");
        let reply = client
            .call(&["LRANGE", &watched, "0", "-1"])
            .expect("a reply");
        operations.push(Operation::Read(watched, list_of(&reply)));
    }
    // All at once, or one after the other.
    let mut bytes = Vec::new();
    harness::client::encode_command(&["MULTI"], &mut bytes);
    drawn
        .iter()
        .for_each(|one| harness::client::encode_command(&words(one), &mut bytes));
    harness::client::encode_command(&["EXEC"], &mut bytes);
    if random.below(2) == 0 {
        client.send_raw(&bytes).expect("the connection is open");
        for _ in 0..=drawn.len() {
            client.read(harness::PATIENCE).expect("a reply");
        }
    } else {
        client.call(&["MULTI"]).expect("a reply");
        drawn.iter().for_each(|one| {
            assert_eq!(
                client.call(&words(one)).expect("a reply").render(),
                "+QUEUED"
            );
        });
        client.send(&["EXEC"]).expect("the connection is open");
    }
    match client.read(harness::PATIENCE).expect("a reply") {
        Reply::Many(_, replies) => {
            assert_eq!(replies.len(), drawn.len());
            operations.extend(
                drawn
                    .iter()
                    .zip(&replies)
                    .map(|(one, reply)| operation(one, reply)),
            );
            history.push(done(begun, operations));
        }
        nothing => {
            assert_eq!(nothing.render(), "*-1");
            history.push(done(begun, operations));
            let appends = drawn
                .into_iter()
                .filter_map(|(key, value)| Some(Operation::Append(key, value?)));
            history.push(Transaction {
                outcome: Outcome::Refused,
                ..done(begun, appends.collect())
            });
        }
    }
}

fn play(server: &Server) -> History {
    let end = Instant::now() + TIME;
    let mut history = History::default();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|seed| {
                scope.spawn(move || {
                    let mut client = server.connect();
                    let mut random = Random(seed * 7919 + 17);
                    let mut history = Vec::new();
                    while Instant::now() < end {
                        transact(&mut client, &mut random, &mut history);
                    }
                    history
                })
            })
            .collect();
        for client in clients {
            history
                .transactions
                .extend(client.join().expect("the client went through"));
        }
    });
    let mut client = server.connect();
    for (tag, number) in
        (0..TAGS).flat_map(|tag| (0..KEYS_PER_TAG).map(move |number| (tag, number)))
    {
        let key = format!("{{{tag}}}:{number}");
        let reply = client.call(&["LRANGE", &key, "0", "-1"]).expect("a reply");
        history.last.insert(key, list_of(&reply));
    }
    history
}

#[test]
fn one_order_explains_what_all_clients_have_seen() {
    for workers in [1, 2, 4, 7] {
        let server = Setup::sirocco(sirocco!(), workers)
            .with("gateway-threads", "2")
            .start();
        let history = play(&server);
        assert!(history.transactions.len() > 100, "hardly anything happened");
        // The numbers of all that are in it would say little.
        let anomalies = history.anomalies().len();
        assert_eq!(anomalies, 0, "with {workers} workers");
        let refused = |it: &&Transaction| it.outcome == Outcome::Refused;
        assert!(
            workers > 1 || history.transactions.iter().filter(refused).count() > 0,
            "nobody was in anybody's way"
        );
    }
}

/// The checker sees it when a transaction is taken apart: one client's EXEC is replaced by single commands.
#[test]
fn a_transaction_that_is_none_is_found() {
    let server = Setup::sirocco(sirocco!(), 1)
        .with("gateway-threads", "2")
        .start();
    let is_over = AtomicBool::new(false);
    let mut history = History::default();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = server.connect();
                    let mut history = Vec::new();
                    while !is_over.load(Ordering::Relaxed) {
                        let drawn = ["{t}:a", "{t}:b"].map(|key| (key.to_owned(), None));
                        read_both(&mut client, &drawn, &mut history);
                    }
                    history
                })
            })
            .collect();
        let mut client = server.connect();
        for value in (1..2000).step_by(2) {
            let begun = Instant::now();
            client.run(&format!("RPUSH {{t}}:a {value}"));
            client.run(&format!("RPUSH {{t}}:b {}", value + 1));
            history.transactions.push(Transaction {
                begun,
                ended: Instant::now(),
                outcome: Outcome::Done,
                operations: vec![
                    Operation::Append("{t}:a".to_owned(), value),
                    Operation::Append("{t}:b".to_owned(), value + 1),
                ],
            });
        }
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            history
                .transactions
                .extend(reader.join().expect("the reader went through"));
        }
    });
    let mut client = server.connect();
    for key in ["{t}:a", "{t}:b"] {
        let reply = client.call(&["LRANGE", key, "0", "-1"]).expect("a reply");
        history.last.insert(key.to_owned(), list_of(&reply));
    }
    assert_eq!(history.anomalies().len(), 1);
}

fn read_both(client: &mut Client, drawn: &[(String, Option<u64>)], history: &mut Vec<Transaction>) {
    let begun = Instant::now();
    client.run("MULTI");
    drawn.iter().for_each(|one| {
        assert_eq!(
            client.call(&words(one)).expect("a reply").render(),
            "+QUEUED"
        );
    });
    let Reply::Many(_, replies) = client.run("EXEC") else {
        panic!("no replies")
    };
    history.push(Transaction {
        begun,
        ended: Instant::now(),
        outcome: Outcome::Done,
        operations: drawn
            .iter()
            .zip(&replies)
            .map(|(one, reply)| operation(one, reply))
            .collect(),
    });
}

/// Writers set many keys at once to one value, or delete them all; readers find one value everywhere, or nothing.
/// The keys live on all workers, and writers share some of them.
#[test]
fn several_keys_at_once_are_all_old_or_all_new() {
    for workers in [2, 4] {
        let server = Setup::sirocco(sirocco!(), workers)
            .with("gateway-threads", "2")
            .start();
        let end = Instant::now() + TIME;
        let keys = |group: usize| (0..8).map(move |number| format!("key:{group}:{number}"));
        std::thread::scope(|scope| {
            let server = &server;
            for seed in 0..6_usize {
                scope.spawn(move || {
                    let mut client = server.connect();
                    let mut random = Random(seed as u64 * 77 + 3);
                    let mut value = seed;
                    while Instant::now() < end {
                        let group = random.below(2);
                        let mut words = vec!["MSET".to_owned()];
                        value += 10;
                        keys(group).for_each(|key| words.extend([key, value.to_string()]));
                        if random.below(8) == 0 {
                            words = std::iter::once("DEL".to_owned())
                                .chain(keys(group))
                                .collect();
                        }
                        assert!(!client.call(&words).expect("a reply").is_error());
                    }
                });
            }
            let readers: Vec<_> = (0..3_usize)
                .map(|seed| {
                    scope.spawn(move || {
                        let mut client = server.connect();
                        let mut rounds = 0;
                        while Instant::now() < end {
                            let group = (rounds + seed) % 2;
                            let words: Vec<String> = std::iter::once("MGET".to_owned())
                                .chain(keys(group))
                                .collect();
                            let Reply::Many(_, values) = client.call(&words).expect("a reply")
                            else {
                                panic!("no values")
                            };
                            let is_same = values.windows(2).all(|pair| pair[0] == pair[1]);
                            assert!(is_same, "{values:?}");
                            let words: Vec<String> = std::iter::once("EXISTS".to_owned())
                                .chain(keys(group))
                                .collect();
                            let count = client.call(&words).expect("a reply").int();
                            assert!(count == Some(0) || count == Some(8), "{count:?}");
                            rounds += 1;
                        }
                        rounds
                    })
                })
                .collect();
            for reader in readers {
                assert!(reader.join().expect("the reader went through") > 50);
            }
        });
    }
}

const ACCOUNTS: usize = 5;
const EACH: i64 = 100;

/// Moves money from one account to another if there is enough and nobody comes in between.
fn transfer(client: &mut Client, random: &mut Random) -> bool {
    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
    let amount = 1 + random.below(20) as i64;
    client.run(&format!("WATCH bank:{from} bank:{to}"));
    let balance = |client: &mut Client, account| {
        let reply = client.run(&format!("GET bank:{account}"));
        reply.text_lossy().parse::<i64>().expect("a balance")
    };
    let (had, other) = (balance(client, from), balance(client, to));
    if had < amount || from == to {
        client.run("UNWATCH");
        return false;
    }
    client.run("MULTI");
    client.run(&format!("SET bank:{from} {}", had - amount));
    client.run(&format!("SET bank:{to} {}", other + amount));
    client.run("EXEC").render() != "*-1"
}

#[test]
fn money_is_neither_made_nor_lost() {
    let server = Setup::sirocco(sirocco!(), 4)
        .with("gateway-threads", "2")
        .start();
    let mut auditor = server.connect();
    for account in 0..ACCOUNTS {
        auditor.run(&format!("SET bank:{account} {EACH}"));
    }
    let all: Vec<String> = (0..ACCOUNTS)
        .map(|account| format!("bank:{account}"))
        .collect();
    let count = format!("MGET {}", all.join(" "));
    let end = Instant::now() + TIME;
    let moved: usize = std::thread::scope(|scope| {
        let server = &server;
        let movers: Vec<_> = (0..4_u64)
            .map(|seed| {
                scope.spawn(move || {
                    let mut client = server.connect();
                    let mut random = Random(seed * 31 + 5);
                    let mut moved = 0;
                    while Instant::now() < end {
                        moved += usize::from(transfer(&mut client, &mut random));
                    }
                    moved
                })
            })
            .collect();
        while Instant::now() < end {
            let Reply::Many(_, balances) = auditor.run(&count) else {
                panic!("no balances")
            };
            let balances = balances
                .iter()
                .map(|one| one.text_lossy().parse::<i64>().expect("a balance"));
            assert_eq!(balances.sum::<i64>(), EACH * ACCOUNTS as i64);
        }
        movers
            .into_iter()
            .map(|mover| mover.join().expect("the mover went through"))
            .sum()
    });
    assert!(moved > 20, "hardly anything was moved");
}

const QUEUES: usize = 8;
const PUSHED: usize = 1200;

/// One element, in one of the ways in which it can come into a queue.
fn push(client: &mut Client, random: &mut Random, number: usize) {
    let queue = format!("queue:{}", random.below(QUEUES));
    match random.below(4) {
        0 => client.run(&format!("RPUSH {queue} {number}")),
        1 => {
            client.run("MULTI");
            client.run(&format!("RPUSH {queue} {number}"));
            client.run("SET elsewhere 1");
            client.run("EXEC")
        }
        2 => {
            let body = "return redis.call('rpush', ARGV[1], ARGV[2])";
            let number = number.to_string();
            let words = ["EVAL", body, "0", &queue, &number];
            client.call(&words).expect("a reply")
        }
        _ => {
            client.run(&format!("RPUSH aside {number}"));
            client.run(&format!("LMOVE aside {queue} LEFT RIGHT"))
        }
    };
}

#[test]
fn what_is_pushed_anywhere_is_popped_once() {
    for workers in [1, 4] {
        let server = Setup::sirocco(sirocco!(), workers)
            .with("gateway-threads", "2")
            .start();
        let is_over = AtomicBool::new(false);
        let popped: Vec<usize> = std::thread::scope(|scope| {
            let (server, is_over) = (&server, &is_over);
            let takers: Vec<_> = (0..6_u64)
                .map(|seed| {
                    scope.spawn(move || {
                        let mut client = server.connect();
                        let mut random = Random(seed * 71 + 11);
                        let mut taken = Vec::new();
                        loop {
                            let is_last = is_over.load(Ordering::Relaxed);
                            let queues = (0..QUEUES).map(|at| (at + random.below(QUEUES)) % QUEUES);
                            let mut words = vec!["BLPOP".to_owned()];
                            words.extend(queues.map(|queue| format!("queue:{queue}")));
                            // All queues; nothing in them after the last push is the end.
                            words.extend((0..QUEUES).map(|queue| format!("queue:{queue}")));
                            words.push("0.3".to_owned());
                            let reply = client.call(&words).expect("a reply");
                            let element = match &reply {
                                Reply::Many(_, pair) => pair.get(1),
                                _ => None,
                            };
                            let Some(element) = element else {
                                assert!(!reply.is_error(), "{}", reply.render());
                                if is_last {
                                    return taken;
                                }
                                continue;
                            };
                            taken.push(element.text_lossy().parse().expect("a number"));
                        }
                    })
                })
                .collect();
            let givers: Vec<_> = (0..3_usize)
                .map(|giver| {
                    scope.spawn(move || {
                        let mut client = server.connect();
                        let mut random = Random(giver as u64 * 13 + 7);
                        for number in (giver..PUSHED).step_by(3) {
                            push(&mut client, &mut random, number);
                        }
                    })
                })
                .collect();
            for giver in givers {
                giver.join().expect("the giver went through");
            }
            is_over.store(true, Ordering::Relaxed);
            let taken = takers.into_iter();
            taken
                .flat_map(|taker| taker.join().expect("the taker went through"))
                .collect()
        });
        let mut sorted = popped;
        sorted.sort_unstable();
        let all: Vec<usize> = (0..PUSHED).collect();
        assert_eq!(sorted, all, "with {workers} workers");
    }
}
