//! One worker, two gateway threads and clients that wait: who is served when, and what becomes of them
//! when the worker, a client or a gateway goes.

mod hall;

use self::hall::{Hall, UNKNOWN, Worker, pieces};
use proto::counters::WorkerCounter;
use proto::frame::{RequestKind, reply_flags};
use std::time::Duration;

fn level(worker: &Worker, counter: WorkerCounter) -> u64 {
    worker.core.party.counters().get(counter.place())
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

#[test]
fn those_who_wait_are_served_in_order_and_before_the_next_command() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "GETDEL k 0");
    hall.run(&mut worker, true);
    hall.send(1, 1, "GETDEL k 0");
    hall.run(&mut worker, true);
    assert_eq!(level(&worker, WorkerCounter::Waiters), 2);
    assert_eq!(level(&worker, WorkerCounter::WaitedKeys), 1);
    // One batch: each value is gone before the next command looks.
    hall.send(1, 2, "SET k a");
    hall.send(1, 2, "EXISTS k");
    hall.send(1, 2, "SET k b");
    hall.send(1, 2, "GETDEL k 0");
    hall.run(&mut worker, true);
    assert_eq!(hall.got(0, 1), [bulk("a")]);
    assert_eq!(hall.got(1, 1), [bulk("b")]);
    assert_eq!(hall.got(1, 2).concat(), "+OK\r\n:0\r\n+OK\r\n");
    assert_eq!(level(&worker, WorkerCounter::Waiters), 1);
}

#[test]
fn of_several_keys_the_first_that_is_there_wins() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "GETDEL a b c 0");
    hall.run(&mut worker, true);
    assert_eq!(level(&worker, WorkerCounter::WaitedKeys), 3);
    hall.ask(&mut worker, "SET c 3");
    assert_eq!(hall.got(0, 1), [bulk("3")]);
    assert_eq!(level(&worker, WorkerCounter::WaitedKeys), 0);
    assert_eq!(hall.ask(&mut worker, "SET b 2"), "+OK\r\n");
    hall.send(0, 1, "GETDEL a b c 0");
    hall.run(&mut worker, true);
    assert_eq!(hall.got(0, 1), [bulk("2")]);
}

#[test]
fn a_value_that_is_passed_on_wakes_the_next_before_the_pusher_goes_on() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "RENAMENX a b 0");
    hall.send(0, 2, "RENAMENX b c 0");
    hall.send(0, 3, "GETDEL c 0");
    hall.run(&mut worker, true);
    hall.send(1, 1, "SET a v");
    hall.send(1, 1, "EXISTS a b c");
    hall.run(&mut worker, true);
    for connection in 1..=3 {
        assert_eq!(hall.got(0, connection), [bulk("v")], "{connection}");
    }
    assert_eq!(hall.got(1, 1).concat(), "+OK\r\n:0\r\n");
}

#[test]
fn time_outs_come_in_time_and_as_nulls() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "GETDEL k 30");
    hall.send(0, 100, "GETDEL k 10");
    hall.send(1, 1, "GETDEL k 10000");
    hall.run(&mut worker, true);
    assert_eq!(level(&worker, WorkerCounter::WaitersTimed), 3);
    std::thread::sleep(Duration::from_millis(15));
    hall.run(&mut worker, true);
    assert_eq!(hall.got(0, 100), ["_\r\n"]);
    assert_eq!(hall.got(0, 1), [""; 0]);
    std::thread::sleep(Duration::from_millis(20));
    hall.run(&mut worker, true);
    assert_eq!(hall.got(0, 1), ["*-1\r\n"]);
    assert_eq!(level(&worker, WorkerCounter::Waiters), 1);
}

#[test]
fn who_is_gone_gets_nothing() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "GETDEL k 0");
    hall.send(0, 2, "GETDEL k 0");
    hall.run(&mut worker, true);
    hall.tell(0, 1, RequestKind::Cancel, 0);
    hall.ask(&mut worker, "SET k v");
    assert_eq!(hall.got(0, 2), [bulk("v")]);
    hall.send(1, 1, "GETDEL k 0");
    hall.run(&mut worker, true);
    worker.links.remove(&mut worker.core, 1);
    assert_eq!(hall.ask(&mut worker, "SET k v"), "+OK\r\n");
    assert_eq!(hall.ask(&mut worker, "EXISTS k"), ":1\r\n");
}

#[test]
fn an_unblocked_client_is_told_and_its_gateway_knows_why() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    for (connection, part) in [(1, 0), (2, 1)] {
        hall.send(0, connection, "GETDEL k 0");
        hall.run(&mut worker, true);
        hall.tell(0, connection, RequestKind::Unblock, part);
        hall.run(&mut worker, true);
    }
    let error = "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n";
    let want = [
        (1, reply_flags::UNBLOCKED, "*-1\r\n".to_owned()),
        (2, reply_flags::UNBLOCKED, error.to_owned()),
    ];
    assert_eq!(hall.gateways[0].received, want);
    // Somebody who was faster.
    hall.send(0, 3, "GETDEL k 0");
    hall.run(&mut worker, true);
    hall.send(1, 1, "SET k v");
    hall.run(&mut worker, true);
    hall.tell(0, 3, RequestKind::Unblock, 0);
    hall.run(&mut worker, true);
    assert_eq!(hall.gateways[0].received[2..], [(3, 0, bulk("v"))]);
}

/// A link without room for replies is served when there is some, and nobody behind it before it.
#[test]
fn a_full_ring_only_delays() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.ask(&mut worker, &format!("SET big {}", "x".repeat(900)));
    hall.send(1, 1, "GETDEL k 0");
    hall.run(&mut worker, true);
    hall.send(0, 1, "GETDEL k 0");
    hall.run(&mut worker, true);
    for _ in 0..80 {
        hall.send(1, 2, "GET big");
    }
    hall.run(&mut worker, false);
    // Gateway 1 does not read, gateway 0 does.
    hall.send(0, 2, "SET k a");
    hall.run(&mut worker, false);
    hall.gateways[0].read();
    assert_eq!(hall.got(0, 2), ["+OK\r\n"]);
    assert_eq!(hall.got(0, 1), [""; 0], "it is not its turn");
    assert_eq!(level(&worker, WorkerCounter::Waiters), 2);
    hall.run(&mut worker, true);
    assert_eq!(hall.got(1, 1), [bulk("a")]);
    assert_eq!(hall.got(1, 2).concat().matches("xxx\r\n").count(), 80);
    hall.ask(&mut worker, "SET k b");
    assert_eq!(hall.got(0, 1), [bulk("b")]);
}

#[test]
fn a_hundred_who_wait_do_not_notice_a_new_worker() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    let long = "l".repeat(5000);
    for client in 1..=50 {
        hall.send(0, client, &format!("GETDEL k {long} 0"));
        hall.run(&mut worker, true);
        hall.send(1, client, &format!("GETDEL k {long} 0"));
        hall.run(&mut worker, true);
    }
    for epoch in 2..4 {
        drop(worker);
        worker = hall.start(epoch);
        // What stands in the ring already must not overtake.
        hall.send(0, 99, "GETDEL k 0");
        hall.resume(&mut worker);
        assert_eq!(level(&worker, WorkerCounter::Waiters), 100);
        hall.run(&mut worker, true);
        hall.tell(0, 99, RequestKind::Cancel, 0);
        hall.run(&mut worker, true);
        hall.gateways[0].waiting.remove(&99);
    }
    for client in 1..=50 {
        for gateway in 0..2 {
            hall.ask(&mut worker, &format!("SET k {client}"));
            assert_eq!(hall.got(gateway, client), [bulk(&client.to_string())]);
        }
    }
    assert_eq!(level(&worker, WorkerCounter::Waiters), 0);
}

#[test]
fn deadlines_survive_a_death() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "GETDEL k 40");
    hall.run(&mut worker, true);
    std::thread::sleep(Duration::from_millis(30));
    drop(worker);
    let mut worker = hall.start(2);
    hall.resume(&mut worker);
    std::thread::sleep(Duration::from_millis(15));
    hall.run(&mut worker, true);
    assert_eq!(hall.got(0, 1), ["*-1\r\n"]);
}

/// Dead after the pusher's reply was published and before anybody was served.
#[test]
fn what_was_pushed_before_a_death_is_served_after_it() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(0, 1, "GETDEL k 0");
    hall.send(1, 1, "RENAMENX k other 0");
    hall.run(&mut worker, true);
    hall.send(1, 2, "SET k v");
    worker.core.engine.effects.waking.has_waiters = false; // it is not told
    hall.run(&mut worker, true);
    assert_eq!(hall.got(1, 2), ["+OK\r\n"]);
    drop(worker);
    let mut worker = hall.start(2);
    hall.resume(&mut worker);
    hall.run(&mut worker, true);
    assert_eq!(hall.got(0, 1), [bulk("v")]);
    assert_eq!(hall.gateways[1].waiting.len(), 1);
}

/// Dead between the end of the bracket and the commit line, then dead again at once.
#[test]
fn a_pop_whose_reply_was_lost_is_said_to_be_uncertain() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.send(1, 1, "GETDEL k 0");
    hall.send(1, 2, "GETDEL k 0");
    hall.run(&mut worker, true);
    let ticket = worker.core.waiters.of_client(1, 1).unwrap().ticket;
    // As `serve_parked` begins it.
    let place = crate::event_loop::core::Place {
        link: 1,
        generation: 1,
        request_position: 0,
    };
    let reply = worker.links.reply_position(1);
    worker.core.begin_serving(ticket, place, reply);
    worker.core.bracket.begin(0, 0);
    worker.core.bracket.end();
    drop(worker);
    for epoch in 2..4 {
        let mut worker = hall.start(epoch);
        if epoch == 2 {
            worker.links.resume(&mut worker.core);
            continue;
        }
        hall.resume(&mut worker);
        hall.run(&mut worker, true);
        assert_eq!(hall.got(1, 1), [UNKNOWN]);
        assert_eq!(hall.gateways[1].waiting.keys().collect::<Vec<_>>(), [&2]);
        drop(worker);
        // It is told once.
        let mut worker = hall.start(epoch + 1);
        hall.resume(&mut worker);
        hall.ask(&mut worker, "SET k v");
        assert_eq!(hall.got(1, 2), [bulk("v")]);
        assert_eq!(hall.got(1, 1), [""; 0]);
    }
}

#[test]
fn a_large_pop_that_was_half_sent_is_said_to_be_uncertain_and_a_whole_one_is_whole() {
    for dies in [true, false] {
        let mut hall = Hall::new();
        let mut worker = hall.start(1);
        hall.send(1, 1, "GETDEL k 0");
        hall.run(&mut worker, true);
        let value = "v".repeat(200_000);
        let words = ["SET", "k", &value];
        let frame = hall.frame(99, &words);
        let largest = hall.gateways[0].requests.largest() - 64;
        for piece in pieces(&frame, RequestKind::RequestPart, largest) {
            hall.gateways[0].put(&piece);
            hall.run(&mut worker, false);
        }
        assert_eq!(level(&worker, WorkerCounter::Waiters), 0);
        if dies {
            drop(worker);
            let mut worker = hall.start(2);
            hall.resume(&mut worker);
            hall.run(&mut worker, true);
            assert_eq!(hall.got(1, 1).pop().unwrap(), UNKNOWN);
        } else {
            hall.run(&mut worker, true);
            assert_eq!(hall.got(1, 1).concat(), bulk(&value));
            assert!(hall.gateways[1].waiting.is_empty());
            // The note is forgotten.
            hall.send(1, 1, "GETDEL k 0");
            hall.run(&mut worker, true);
            drop(worker);
            let mut worker = hall.start(2);
            hall.resume(&mut worker);
            hall.ask(&mut worker, "SET k w");
            assert_eq!(hall.got(1, 1), [bulk("w")]);
        }
    }
}

#[test]
fn news_of_a_link_that_is_gone_keep_nobody_awake() {
    let mut hall = Hall::new();
    let mut worker = hall.start(1);
    hall.run(&mut worker, true);
    worker.links.remove(&mut worker.core, 1);
    // Gateway 1 does not know yet; gateway 0 asks something.
    worker.core.party.news().announce(1);
    hall.send(0, 1, "SET k a");
    worker.core.party.news().announce(0);
    worker.links.note_news(&worker.core);
    assert!(!worker.core.party.news().any());
    worker.links.serve(&mut worker.core);
    hall.run(&mut worker, true);
    assert_eq!(hall.got(0, 1), ["+OK\r\n"]);
}
