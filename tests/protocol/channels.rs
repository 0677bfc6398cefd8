//! Channels under load: order, completeness, many subscribers, and subscribers that do not read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::client::encode_command;
use harness::{Client, PATIENCE, Setup, eventually, sirocco};

/// Messages of one run; `SIROCCO_MESSAGES` asks for others.
fn messages() -> usize {
    let wish = std::env::var("SIROCCO_MESSAGES").ok();
    wish.and_then(|text| text.parse().ok()).unwrap_or(200_000)
}

const BATCH: usize = 200;

/// Publishes numbers in order, in pipelines, and checks that each has `at_least` receivers.
fn publish_numbers(client: &mut Client, count: usize, at_least: usize) {
    for first in (0..count).step_by(BATCH) {
        let mut bytes = Vec::new();
        for number in first..first + BATCH {
            encode_command(&["PUBLISH", "numbers", &number.to_string()], &mut bytes);
        }
        client.send_raw(&bytes).expect("the server reads");
        for _ in 0..BATCH {
            let reply = client
                .read(PATIENCE)
                .expect("a number of receivers")
                .render();
            let receivers: usize = reply[1..].parse().expect("an integer");
            assert!(receivers >= at_least, "{receivers} receivers");
        }
    }
}

fn expect_numbers(client: &mut Client, count: usize) {
    for number in 0..count {
        let message = client.read(PATIENCE).expect("a message").render();
        assert_eq!(message, format!(r#"*["message" "numbers" "{number}"]"#));
    }
}

#[test]
fn nothing_is_lost_or_reordered_while_subscribers_come_and_go() {
    let server = Setup::sirocco(sirocco!(), 1)
        .with("gateway-threads", "2")
        .start();
    let count = messages();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut healthy: Vec<Client> = (0..3).map(|_| server.connect()).collect();
        for client in &mut healthy {
            let reply = client.run("SUBSCRIBE numbers").render();
            assert_eq!(reply, r#"*["subscribe" "numbers" :1]"#);
        }
        let readers: Vec<_> = healthy
            .into_iter()
            .map(|mut client| scope.spawn(move || expect_numbers(&mut client, count)))
            .collect();
        let guests = scope.spawn(|| {
            let mut visits = 0;
            while !is_over.load(Ordering::Relaxed) {
                let mut guest = server.connect();
                guest.run("SUBSCRIBE numbers other");
                guest
                    .read(PATIENCE)
                    .expect("the second confirmation or a message");
                guest.run("PSUBSCRIBE num*");
                visits += 1;
            }
            visits
        });
        publish_numbers(&mut server.connect(), count, 3);
        for reader in readers {
            reader.join().expect("all numbers come, in order");
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(guests.join().expect("guests are welcome") > 0);
    });
    let mut client = server.connect();
    eventually("guests are forgotten", || {
        client.run("PUBSUB NUMSUB numbers").render() == r#"*["numbers" :0]"#
    });
    assert_eq!(client.run("PUBSUB NUMPAT").render(), ":0");
}

#[test]
fn a_message_reaches_a_thousand_subscribers() {
    let server = Setup::sirocco(sirocco!(), 1)
        .with("gateway-threads", "2")
        .start();
    let mut subscribers: Vec<Client> = (0..1000).map(|_| server.connect()).collect();
    for (number, subscriber) in subscribers.iter_mut().enumerate() {
        if number % 2 == 0 {
            subscriber.run("HELLO 3");
        }
        subscriber.run("SUBSCRIBE news");
    }
    let mut publisher = server.connect();
    assert_eq!(publisher.run("PUBLISH news hello").render(), ":1000");
    for (number, subscriber) in subscribers.iter_mut().enumerate() {
        let message = subscriber.read(PATIENCE).expect("the message").render();
        let form = if number % 2 == 0 { '>' } else { '*' };
        assert_eq!(message, format!(r#"{form}["message" "news" "hello"]"#));
    }
    subscribers.truncate(10);
    eventually("those that left are not counted", || {
        publisher.run("PUBLISH news again").render() == ":10"
    });
}

#[test]
fn messages_of_any_size_arrive_whole() {
    let server = Setup::sirocco(sirocco!(), 1).start();
    let mut subscriber = server.connect();
    subscriber.run("SUBSCRIBE news");
    let mut publisher = server.connect();
    for size in [
        0, 1, 60_000, 65_536, 100_000, 300_000, 5_000_000, 20_000_000,
    ] {
        let message = "m".repeat(size);
        let reply = publisher.call(&["PUBLISH", "news", &message]);
        assert_eq!(reply.expect("a reply").render(), ":1");
        let got = subscriber.read(PATIENCE).expect("the message");
        let harness::Reply::Many(_, items) = &got else {
            panic!("{}", got.render())
        };
        assert!(items[2].text_lossy() == message, "{size} bytes");
    }
}

#[test]
fn a_subscriber_that_does_not_read_is_closed_and_costs_nobody_else_anything() {
    let server = Setup::sirocco(sirocco!(), 1)
        .with("client-output-buffer-limit", "pubsub 4mb 1mb 60")
        .announcing("its output is over the limit")
        .start();
    let mut silent = server.connect();
    silent.run("SUBSCRIBE news");
    let mut subscriber = server.connect();
    subscriber.run("SUBSCRIBE news");
    let mut publisher = server.connect();
    let message = "m".repeat(100_000);
    for _ in 0..200 {
        let reply = publisher.call(&["PUBLISH", "news", &message]);
        reply.expect("a number of receivers");
        subscriber.read(PATIENCE).expect("the message");
    }
    eventually("the silent one is gone", || {
        publisher.run("PUBSUB NUMSUB news").render() == r#"*["news" :1]"#
    });
    let info = publisher.run("INFO stats").text_lossy();
    assert!(
        info.contains("client_output_buffer_limit_disconnections:1"),
        "{info}"
    );
}

#[test]
fn ten_thousand_patterns_and_a_hundred_thousand_channels() {
    let server = Setup::sirocco(sirocco!(), 1).start();
    let mut subscriber = server.connect();
    let subscribe = |client: &mut Client, command: &str, name: &dyn Fn(usize) -> String, count| {
        for first in (0..count).step_by(1000) {
            let mut words = vec![command.to_owned()];
            words.extend((first..first + 1000).map(name));
            client.send(&words).expect("the server reads");
            for _ in 0..1000 {
                client.read(PATIENCE).expect("a confirmation");
            }
        }
    };
    subscribe(
        &mut subscriber,
        "PSUBSCRIBE",
        &|n| format!("user:{n}:*"),
        10_000,
    );
    subscribe(
        &mut subscriber,
        "SUBSCRIBE",
        &|n| format!("channel:{n}"),
        100_000,
    );
    let mut publisher = server.connect();
    assert_eq!(publisher.run("PUBSUB NUMPAT").render(), ":10000");
    assert_eq!(publisher.run("PUBLISH user:77:mail x").render(), ":1");
    assert_eq!(publisher.run("PUBLISH channel:99999 y").render(), ":1");
    assert_eq!(
        subscriber.read(PATIENCE).expect("a message").render(),
        r#"*["pmessage" "user:77:*" "user:77:mail" "x"]"#
    );
    assert_eq!(
        subscriber.read(PATIENCE).expect("a message").render(),
        r#"*["message" "channel:99999" "y"]"#
    );
    drop(subscriber);
    eventually("all of them are forgotten", || {
        let counts = publisher.run("INFO stats").text_lossy();
        counts.contains("pubsub_channels:0") && counts.contains("pubsub_patterns:0")
    });
    assert!(subscriber_is_served(&mut publisher), "the server goes on");
}

fn subscriber_is_served(client: &mut Client) -> bool {
    client.run("SUBSCRIBE last").render() == r#"*["subscribe" "last" :1]"#
        && client.is_quiet_for(Duration::from_millis(20))
}
