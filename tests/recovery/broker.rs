//! The pub/sub broker dies: subscriptions stay, keys are served meanwhile, and nobody waits for ever.

use harness::client::encode_command;
use harness::{Client, PATIENCE, Setup, eventually, sirocco};
use nix::sys::signal::Signal;

use crate::kill_role;

/// Publishes until the subscribers have got one of the new messages.
fn publish_until_heard(publisher: &mut Client, command: &str, receivers: usize) {
    let wanted = format!(":{receivers}");
    eventually("the successor knows who listens", || {
        publisher.run(command).render() == wanted
    });
}

#[test]
fn subscriptions_outlive_the_broker() {
    let server = Setup::sirocco(sirocco!(), 1)
        .with("gateway-threads", "2")
        .with_deaths()
        .start();
    let mut channel = server.connect();
    channel.run("SUBSCRIBE news");
    let mut pattern = server.connect();
    pattern.run("PSUBSCRIBE n*");
    let mut shard = server.connect();
    shard.run("SSUBSCRIBE news");
    let mut publisher = server.connect();
    for round in 0..3 {
        kill_role(&server, "pubsub-broker");
        assert_eq!(publisher.run("SET k v").render(), "+OK");
        publish_until_heard(&mut publisher, &format!("PUBLISH news {round}"), 2);
        publish_until_heard(&mut publisher, &format!("SPUBLISH news {round}"), 1);
        for (client, kind) in [
            (&mut channel, "*[\"message\" \"news\""),
            (&mut pattern, "*[\"pmessage\" \"n*\" \"news\""),
            (&mut shard, "*[\"smessage\" \"news\""),
        ] {
            let message = client.read(PATIENCE).expect("a message").render();
            assert_eq!(message, format!("{kind} \"{round}\"]"));
        }
    }
    assert_eq!(
        publisher.run("PUBSUB NUMSUB news").render(),
        r#"*["news" :1]"#
    );
    assert_eq!(publisher.run("PUBSUB NUMPAT").render(), ":1");
    channel.run("UNSUBSCRIBE news");
    assert_eq!(publisher.run("PUBLISH news last").render(), ":1");
}

#[test]
fn a_broker_killed_under_load_publishes_nothing_twice_and_answers_everything() {
    let server = Setup::sirocco(sirocco!(), 1).with_deaths().start();
    let mut subscriber = server.connect();
    subscriber.run("SUBSCRIBE numbers");
    let mut publisher = server.connect();
    const COUNT: usize = 4000;
    let mut last = None;
    for round in 0..3 {
        let mut bytes = Vec::new();
        for number in round * COUNT..(round + 1) * COUNT {
            encode_command(&["PUBLISH", "numbers", &number.to_string()], &mut bytes);
        }
        publisher.send_raw(&bytes).expect("the server reads");
        publisher.read(PATIENCE).expect("the first answer");
        server.role("pubsub-broker")[0].signal(Signal::SIGKILL);
        let mut heard = 1;
        for _ in 1..COUNT {
            let reply = publisher
                .read(PATIENCE)
                .expect("an answer to each")
                .render();
            assert!(reply == ":1" || reply == ":0", "{reply}");
            heard += usize::from(reply == ":1");
        }
        assert!(heard > 0);
        // A mark that is certainly behind all of them.
        publish_until_heard(&mut publisher, &format!("PUBLISH numbers mark{round}"), 1);
        loop {
            let message = subscriber.read(PATIENCE).expect("a message").render();
            if message.contains("mark") {
                break;
            }
            let number = message.trim_end_matches("\"]").rsplit('"').next();
            let number: usize = number.and_then(|text| text.parse().ok()).expect("a number");
            assert!(last < Some(number), "{number} behind {last:?}");
            last = Some(number);
        }
    }
}

#[test]
fn who_subscribes_while_there_is_no_broker_is_confirmed_by_its_successor() {
    let server = Setup::sirocco(sirocco!(), 1).with_deaths().start();
    let broker = server.role("pubsub-broker");
    broker[0].signal(Signal::SIGSTOP);
    let mut subscriber = server.connect();
    subscriber
        .send(&["SUBSCRIBE", "news", "sport"])
        .expect("the server reads");
    let mut neighbour = server.connect();
    assert_eq!(neighbour.run("SET k v").render(), "+OK");
    broker[0].signal(Signal::SIGKILL);
    for name in ["news", "sport"] {
        let reply = subscriber.read(PATIENCE).expect("a confirmation").render();
        assert!(reply.contains(name), "{reply}");
    }
    assert_eq!(neighbour.run("PUBLISH sport x").render(), ":1");
    assert_eq!(
        subscriber.read(PATIENCE).expect("the message").render(),
        r#"*["message" "sport" "x"]"#
    );
}

#[test]
fn a_gateway_that_dies_takes_its_subscribers_along() {
    let server = Setup::sirocco(sirocco!(), 1).with_deaths().start();
    let mut subscriber = server.connect();
    subscriber.run("SUBSCRIBE news");
    kill_role(&server, "gateway");
    let mut client = server.connect();
    assert_eq!(client.run("PUBLISH news x").render(), ":0");
    let mut subscriber = server.connect();
    subscriber.run("SUBSCRIBE news");
    assert_eq!(client.run("PUBLISH news x").render(), ":1");
}
