//! A storage worker dies while clients wait for something to be pushed.
//!
//! Who waits goes on waiting at the successor, in the same order. What is pushed reaches exactly one of them; only
//! the command that the worker was inside of when it died may be uncertain, and says so.
//!
//! Method of the matrix: a worker kills itself at a named step of its protocols, somewhere within rounds of waiting,
//! pushing and being served. Every value has a number, so afterwards each can be accounted for: received by one
//! waiter, still there, or under the one uncertain command.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use harness::{Client, PATIENCE, ReadError, Reply, Server, Setup, eventually, sirocco};
use shm::fault::FaultPoint;

use crate::{announced_losses, kill_role};

/// Commands of one type that wait, and what goes with them.
struct Family {
    name: &'static str,
    /// Before the first round; may be said twice.
    prepare: Option<&'static str>,
    /// What the waiter with this number says.
    wait: fn(usize) -> &'static str,
    /// What makes a value available to one of them; the value is appended.
    push: &'static str,
    /// Lists what nobody has taken, and what was moved on.
    left: &'static [&'static str],
    /// Bytes of a value.
    size: usize,
    rounds: usize,
    /// Commands that may be uncertain: the one under way, and for large replies one more per gateway thread, whose
    /// reply is on its way into the ring.
    uncertain: usize,
}

const LISTS: Family = Family {
    name: "lists",
    prepare: None,
    wait: |number| match number % 5 {
        0 => "BLPOP other q 0",
        1 => "BLMOVE q moved LEFT RIGHT 0",
        2 => "BLMPOP 0 2 q other LEFT COUNT 1",
        3 => "BRPOPLPUSH q moved 0",
        _ => "BRPOP q 0",
    },
    push: "RPUSH q",
    left: &["LRANGE q 0 -1", "LRANGE moved 0 -1"],
    size: 10,
    rounds: 4,
    uncertain: 1,
};

const LARGE_LISTS: Family = Family {
    name: "large lists",
    size: 1_500_000,
    rounds: 2,
    uncertain: 3,
    ..LISTS
};

const SORTED_SETS: Family = Family {
    name: "sorted sets",
    prepare: None,
    wait: |number| match number % 3 {
        0 => "BZPOPMIN z other 0",
        1 => "BZMPOP 0 1 z MAX",
        _ => "BZPOPMAX z 0",
    },
    push: "ZADD z 1",
    left: &["ZRANGE z 0 -1"],
    size: 10,
    rounds: 4,
    uncertain: 1,
};

const STREAMS: Family = Family {
    name: "streams",
    prepare: Some("XGROUP CREATE s g $ MKSTREAM"),
    wait: |number| match number % 2 {
        0 => "XREADGROUP GROUP g one BLOCK 0 STREAMS s >",
        _ => "XREADGROUP GROUP g two BLOCK 0 COUNT 1 STREAMS s >",
    },
    push: "XADD s * field",
    left: &[],
    size: 10,
    rounds: 4,
    uncertain: 1,
};

/// The numbers of the values in a reply.
fn numbers(reply: &Reply) -> Vec<usize> {
    let mut found = Vec::new();
    match reply {
        Reply::Many(_, items) => found.extend(items.iter().flat_map(numbers)),
        other => {
            let text = other.text().unwrap_or_default();
            let head = String::from_utf8_lossy(&text[..text.len().min(20)]).into_owned();
            let number = head
                .strip_prefix('v')
                .and_then(|rest| rest.split('.').next());
            found.extend(number.and_then(|number| number.parse::<usize>().ok()));
        }
    }
    found
}

fn blocked(watcher: &mut Client) -> usize {
    let info = watcher.run("INFO clients").text_lossy();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("blocked_clients:"));
    line.and_then(|count| count.trim().parse().ok())
        .expect("a count")
}

/// A client that has said something that may wait, and what came of it.
struct Waiter {
    client: Client,
    outcome: Option<Result<usize, String>>,
}

impl Waiter {
    fn look(&mut self, patience: Duration, label: &str) {
        if self.outcome.is_some() {
            return;
        }
        self.outcome = match self.client.read(patience) {
            Ok(reply) if reply.is_error() => Some(Err(reply.text_lossy())),
            Ok(reply) => match numbers(&reply)[..] {
                [number] => Some(Ok(number)),
                _ => panic!("{label}: not one value in {}", reply.render()),
            },
            Err(ReadError::Timeout) => None,
            // Part of the reply was out, and the rest is lost.
            Err(ReadError::Closed) => Some(Err("closed".to_owned())),
            Err(error) => panic!("{label}: {error}"),
        };
    }
}

/// One server, and everything that was said to it.
struct Play<'a> {
    family: &'a Family,
    label: String,
    server: Server,
    pusher: Client,
    watcher: Client,
    pushed: usize,
    acknowledged: BTreeSet<usize>,
    received: BTreeSet<usize>,
    /// Errors of pushers and of waiters.
    uncertain_pushes: usize,
    uncertain_waits: usize,
}

impl<'a> Play<'a> {
    fn new(family: &'a Family, point: FaultPoint, nth: u32) -> Self {
        let step = format!("{}:{nth}", point.name());
        let mut setup = Setup::sirocco(sirocco!(), 1).dying_at(&step);
        if let harness::Kind::Sirocco {
            gateway_threads, ..
        } = &mut setup.kind
        {
            *gateway_threads = 2;
        }
        let server = setup.start();
        let (mut pusher, watcher) = (server.connect(), server.connect());
        if let Some(prepare) = family.prepare {
            let reply = pusher.run(prepare);
            if reply.is_error() {
                pusher.run(prepare);
            }
        }
        Self {
            family,
            label: format!("{}, {step}", family.name),
            server,
            pusher,
            watcher,
            pushed: 0,
            acknowledged: BTreeSet::new(),
            received: BTreeSet::new(),
            uncertain_pushes: 0,
            uncertain_waits: 0,
        }
    }

    /// `count` clients that wait, one behind the other.
    fn wait(&mut self, count: usize) -> Vec<Waiter> {
        // A gateway thread counts at the end of its turn: those of the last round may still be counted.
        eventually("nobody waits", || blocked(&mut self.watcher) == 0);
        let mut waiters: Vec<Waiter> = Vec::new();
        for number in 0..count {
            let mut client = self.server.connect();
            let words: Vec<&str> = (self.family.wait)(number).split(' ').collect();
            client.send(&words).expect("the connection is open");
            waiters.push(Waiter {
                client,
                outcome: None,
            });
            let start = Instant::now();
            loop {
                let answered = waiters.iter().filter(|it| it.outcome.is_some()).count();
                if blocked(&mut self.watcher) + answered == number + 1 {
                    break;
                }
                assert!(
                    start.elapsed() < PATIENCE,
                    "{}: it does not wait",
                    self.label
                );
                for waiter in &mut waiters {
                    waiter.look(Duration::from_millis(1), &self.label);
                }
            }
        }
        waiters
    }

    /// Pushes so many values; all at once, or each when the one before is acknowledged.
    fn push(&mut self, count: usize, at_once: bool) {
        let first = self.pushed;
        let mut open = 0;
        for number in first..first + count {
            let mut value = format!("v{number}.").into_bytes();
            value.resize(self.family.size.max(value.len()), b'x');
            let mut words: Vec<&[u8]> = self.family.push.split(' ').map(str::as_bytes).collect();
            words.push(&value);
            self.pusher.send(&words).expect("the connection is open");
            open += 1;
            if !at_once || open == count {
                for number in number + 1 - open..=number {
                    let reply = self.pusher.read(PATIENCE);
                    let reply = reply.unwrap_or_else(|error| panic!("{}: {error}", self.label));
                    if reply.is_error() {
                        assert!(reply.text_lossy().contains("unknown"), "{}", reply.render());
                        self.uncertain_pushes += 1;
                    } else {
                        self.acknowledged.insert(number);
                    }
                }
                open = 0;
            }
        }
        self.pushed += count;
    }

    fn losses(&self) -> usize {
        announced_losses(&self.server)
    }

    /// One round. False if there is no point in another: the group of the stream is lost.
    fn round(&mut self, round: usize) -> bool {
        let mut waiters = self.wait(5);
        self.push(5, round % 2 == 1);
        let start = Instant::now();
        loop {
            for waiter in &mut waiters {
                waiter.look(Duration::from_millis(30), &self.label);
            }
            if waiters.iter().all(|waiter| waiter.outcome.is_some()) {
                break;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "{}: somebody is forgotten",
                self.label
            );
            // What was pushed for them may be lost with an uncertain command.
            if self.uncertain_pushes + self.uncertain_waits + self.losses() > 0 {
                self.push(1, false);
            }
        }
        let mut latest = None;
        for waiter in waiters {
            match waiter.outcome.expect("everybody was answered") {
                Ok(number) => {
                    assert!(
                        self.received.insert(number),
                        "{}: {number} twice",
                        self.label
                    );
                    assert!(latest < Some(number), "{}: out of order", self.label);
                    latest = Some(number);
                }
                Err(text) if text.contains("NOGROUP") && self.losses() > 0 => return false,
                Err(text) => {
                    assert!(
                        text.contains("unknown") || text == "closed",
                        "{}: {text}",
                        self.label
                    );
                    self.uncertain_waits += 1;
                }
            }
        }
        true
    }

    /// Everything is accounted for.
    fn check(&mut self) {
        let label = &self.label;
        let uncertain = self.uncertain_pushes + self.uncertain_waits;
        let most = self.family.uncertain;
        assert!(uncertain <= most, "{label}: {uncertain} uncertain commands");
        eventually("nobody waits", || blocked(&mut self.watcher) == 0);
        if announced_losses(&self.server) > 0 {
            return;
        }
        let mut left = Vec::new();
        for line in self.family.left {
            left.push(numbers(&self.pusher.run(line)));
        }
        if let Some(number) = left
            .first()
            .and_then(|left| left.iter().find(|number| self.received.contains(number)))
        {
            panic!("{label}: {number} was received, and is still there");
        }
        let there: BTreeSet<usize> = left.into_iter().flatten().collect();
        let is_missing =
            |number: &&usize| !self.received.contains(number) && !there.contains(number);
        let missing: Vec<&usize> = self.acknowledged.iter().filter(is_missing).collect();
        assert!(
            missing.len() <= self.uncertain_waits,
            "{label}: {missing:?} are lost"
        );
    }
}

fn matrix(family: &Family, points: &[FaultPoint], passes: &[u32]) {
    if !shm::fault::ENABLED {
        println!("skipped: this build has no fault points");
        return;
    }
    for &point in points {
        let mut deaths = 0;
        for &nth in passes {
            let mut play = Play::new(family, point, nth);
            let first = play.server.role("storage-worker");
            for round in 0..family.rounds {
                if !play.round(round) {
                    break;
                }
            }
            play.check();
            deaths += usize::from(play.server.role("storage-worker") != first);
        }
        println!(
            "{}, {}: died {deaths} of {} times",
            family.name,
            point.name(),
            passes.len()
        );
    }
}

/// The steps that a worker passes; a registry is written by the supervisor, and nothing is logged yet.
const POINTS: [FaultPoint; 12] = [
    FaultPoint::RingBeforePublish,
    FaultPoint::RingAfterPublish,
    FaultPoint::RingBeforeRelease,
    FaultPoint::RingAfterRelease,
    FaultPoint::BellBeforeSleep,
    FaultPoint::BellTaken,
    FaultPoint::NewsAnnounced,
    FaultPoint::CommitFilled,
    FaultPoint::CommitSwitched,
    FaultPoint::WriteBegun,
    FaultPoint::WriteEnded,
    FaultPoint::TicketSet,
];

#[test]
fn lists_wherever_the_worker_dies() {
    matrix(&LISTS, &POINTS, &[2, 5, 9, 14, 20, 27]);
}

#[test]
fn sorted_sets_wherever_the_worker_dies() {
    matrix(&SORTED_SETS, &POINTS, &[3, 7, 12, 18]);
}

#[test]
fn streams_wherever_the_worker_dies() {
    matrix(&STREAMS, &POINTS, &[4, 8, 13, 19]);
}

#[test]
fn large_elements_wherever_the_worker_dies() {
    let points = [
        FaultPoint::RingWantsSpace,
        FaultPoint::RingTookWant,
        FaultPoint::NoteSet,
        FaultPoint::TicketSet,
        FaultPoint::CommitSwitched,
        FaultPoint::RingAfterPublish,
    ];
    matrix(&LARGE_LISTS, &points, &[1, 2, 3, 5, 8, 12]);
}

#[test]
fn a_hundred_who_wait_are_served_by_the_successor_in_order() {
    for gateway_threads in [1, 2] {
        let mut setup = Setup::sirocco(sirocco!(), 2).with_deaths();
        if let harness::Kind::Sirocco {
            gateway_threads: threads,
            ..
        } = &mut setup.kind
        {
            *threads = gateway_threads;
        }
        let server = setup.start();
        let mut watcher = server.connect();
        // Slots of both workers.
        let keys = ["a", "b", "c", "d"];
        let mut clients = Vec::new();
        for number in 0..100 {
            let mut client = server.connect();
            let key = keys[number % 4];
            let line = match number / 4 % 3 {
                0 => format!("BLPOP {key} 0"),
                1 => format!("BLMOVE {key} {{{key}}}moved LEFT RIGHT 0"),
                _ => format!("BLMPOP 0 1 {key} LEFT COUNT 7"),
            };
            let words: Vec<&str> = line.split(' ').collect();
            client.send(&words).expect("the connection is open");
            eventually("it waits", || blocked(&mut watcher) == number + 1);
            clients.push(client);
        }
        let mut patient: Vec<Client> = (0..2).map(|_| server.connect()).collect();
        for client in &mut patient {
            client
                .send(&["BLPOP", "a", "1.5"])
                .expect("the connection is open");
        }
        eventually("they wait", || blocked(&mut watcher) == 102);
        kill_role(&server, "storage-worker");
        kill_role(&server, "storage-worker");
        // Their time goes on meanwhile.
        for client in &mut patient {
            assert_eq!(client.read(PATIENCE).expect("a reply").render(), "*-1");
        }
        let mut pusher = server.connect();
        for (number, client) in clients.iter_mut().enumerate() {
            if number % 30 == 29 {
                kill_role(&server, "storage-worker");
            }
            let line = format!("RPUSH {} v{number}.", keys[number % 4]);
            assert_eq!(pusher.run(&line).render(), ":1");
            let reply = client.read(PATIENCE).expect("a reply");
            assert_eq!(numbers(&reply), [number], "{}", reply.render());
        }
        eventually("nobody waits", || blocked(&mut watcher) == 0);
        let moved: Vec<Vec<usize>> = keys
            .iter()
            .map(|key| numbers(&pusher.run(&format!("LRANGE {{{key}}}moved 0 -1"))))
            .collect();
        let expected = |place: usize| (place..100).step_by(4).filter(|number| number / 4 % 3 == 1);
        for (place, moved) in moved.into_iter().enumerate() {
            assert_eq!(moved, expected(place).collect::<Vec<_>>());
        }
        assert_eq!(pusher.run("DBSIZE").render(), ":4");
        assert_eq!(announced_losses(&server), 0);
    }
}

/// Nothing is popped for clients whose gateway is dead.
#[test]
fn who_waited_at_a_dead_gateway_gets_nothing() {
    let server = Setup::sirocco(sirocco!(), 2).with_deaths().start();
    for round in 0..4 {
        let mut watcher = server.connect();
        let mut clients = Vec::new();
        for number in 0..20 {
            let mut client = server.connect();
            let key = ["a", "b"][number % 2];
            client
                .send(&["BLPOP", key, "0"])
                .expect("the connection is open");
            clients.push(client);
        }
        eventually("they wait", || blocked(&mut watcher) == 20);
        server.role("gateway")[0].signal(nix::sys::signal::Signal::SIGKILL);
        let mut pusher = server.connect();
        for key in ["a", "b"] {
            assert_eq!(pusher.run(&format!("RPUSH {key} v")).render(), ":1");
            assert_eq!(
                pusher.run(&format!("LLEN {key}")).render(),
                ":1",
                "round {round}"
            );
        }
        pusher.run("DEL a b");
        // Somebody who waits at the new one is served.
        let mut client = server.connect();
        client
            .send(&["BLPOP", "a", "0"])
            .expect("the connection is open");
        eventually("it waits", || blocked(&mut pusher) == 1);
        pusher.run("RPUSH a w");
        assert_eq!(
            client.read(PATIENCE).expect("a reply").render(),
            r#"*["a" "w"]"#
        );
    }
}
