//! Closed-loop runs against the small responder of the tests.

use std::time::Duration;

use super::*;
use crate::responder::Responder;
use crate::workload::Command;

fn plan(mix: &str) -> ClosedLoop {
    ClosedLoop {
        mix: mix.parse().unwrap(),
        shape: Shape {
            keys: 100,
            key_size: 12,
            value_size: 40,
            keys_per_command: 3,
        },
        pipeline: 7,
        connections: 3,
        threads: 1,
        warm_up: Duration::from_millis(20),
        extent: Extent::Requests(1_000),
        seed: 1,
        ascending: false,
    }
}

#[test]
fn a_run_by_count_sends_exactly_that_many() {
    let responder = Responder::start();
    let fill = ClosedLoop {
        ascending: true,
        connections: 1,
        ..plan("SET")
    };
    let outcome = fill.run(&responder.target(), &mut Unobserved).unwrap();
    assert_eq!(outcome.tally.replies, 1_000);
    assert_eq!(responder.requests(), 1_000);
    assert_eq!(responder.keys(), 100);
    assert_eq!(outcome.tally.complaint(), None);
}

#[test]
fn a_run_by_time_measures_its_interval_only() {
    #[derive(Default)]
    struct Order(Vec<&'static str>);
    impl Observer for Order {
        fn begins(&mut self) {
            self.0.push("begins");
        }
        fn ends(&mut self) {
            self.0.push("ends");
        }
    }
    let responder = Responder::start();
    let mut order = Order::default();
    let timed = ClosedLoop {
        threads: 2,
        extent: Extent::Time(Duration::from_millis(200)),
        ..plan("SET:1,GET:2,MGET:1")
    };
    let outcome = timed.run(&responder.target(), &mut order).unwrap();
    assert_eq!(order.0, ["begins", "ends"]);
    assert!(outcome.elapsed >= Duration::from_millis(200));
    assert!(outcome.tally.replies > 0 && outcome.tally.replies < responder.requests());
    assert!(outcome.tally.latencies.count() > 0);
    assert_eq!(outcome.tally.errors + outcome.tally.wrong, 0);
}

#[test]
fn misses_errors_and_wrong_sizes_are_told_apart() {
    let responder = Responder::start();
    let target = responder.target();
    let gets = plan("GET");
    assert_eq!(
        gets.run(&target, &mut Unobserved).unwrap().tally.misses,
        1_000
    );
    let fill = ClosedLoop {
        ascending: true,
        connections: 1,
        ..plan("SET")
    };
    fill.run(&target, &mut Unobserved).unwrap();
    assert_eq!(
        gets.run(&target, &mut Unobserved)
            .unwrap()
            .tally
            .complaint(),
        None
    );
    let mut other_size = plan("GET");
    other_size.shape.value_size = 41;
    assert_eq!(
        other_size
            .run(&target, &mut Unobserved)
            .unwrap()
            .tally
            .wrong,
        1_000
    );
    let tally = plan("HSET").run(&target, &mut Unobserved).unwrap().tally;
    assert_eq!(tally.errors, 1_000);
    assert!(
        tally.complaint().unwrap().contains("unknown command"),
        "{tally:?}"
    );
}

#[test]
fn more_connections_than_descriptors_are_refused_before_any_is_made() {
    let responder = Responder::start();
    let many = ClosedLoop {
        connections: usize::MAX / 2,
        ..plan("PING")
    };
    let error = many.run(&responder.target(), &mut Unobserved).unwrap_err();
    assert!(error.to_string().contains("hard limit"), "{error}");
    assert_eq!(responder.requests(), 0);
}

#[test]
fn a_server_that_goes_away_is_an_error() {
    let responder = Responder::start();
    responder.close_after(500);
    let endless = ClosedLoop {
        extent: Extent::Time(Duration::from_secs(60)),
        ..plan("PING")
    };
    let error = endless
        .run(&responder.target(), &mut Unobserved)
        .unwrap_err();
    assert!(
        matches!(error, BenchError::Server(_) | BenchError::Io { .. }),
        "{error}"
    );
}

#[test]
fn every_command_is_rendered_so_that_a_server_can_read_it() {
    let responder = Responder::start();
    for command in Command::ALL {
        let before = responder.requests();
        let one = ClosedLoop {
            mix: Mix::only(command),
            ..plan("PING")
        };
        one.run(&responder.target(), &mut Unobserved).unwrap();
        assert_eq!(responder.requests() - before, 1_000, "{}", command.name());
    }
}
