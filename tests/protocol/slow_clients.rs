//! Clients that never read, never finish, come by the hundred or say nothing: none of them costs the others
//! anything, and what they may cost the server is bounded.

use std::time::{Duration, Instant};

use harness::{Client, Server, Setup, eventually, process::Process, sirocco};

fn resident(server: &Server) -> u64 {
    server.processes().iter().map(Process::resident_bytes).sum()
}

#[test]
fn a_client_that_never_reads_is_not_read_from_either() {
    let server = Setup::sirocco(sirocco!(), 2).start();
    let mut neighbour = server.connect();
    let value = "v".repeat(10_000);
    neighbour.call(&["SET", "k", &value]).expect("a reply");
    let before = resident(&server);
    let mut pipeline = Vec::new();
    for _ in 0..200_000 {
        harness::client::encode_command(&["GET", "k"], &mut pipeline);
    }
    // 2 GB of replies are asked for and none is read: sooner or later the server stops reading.
    let mut greedy = server.connect();
    let sent = greedy.send_until_stuck(&pipeline, Duration::from_millis(500));
    let after = resident(&server);
    assert!(
        after < before + (512 << 20),
        "from {before} to {after} bytes after {sent} of {}",
        pipeline.len()
    );
    let start = Instant::now();
    for _ in 0..200 {
        assert_eq!(neighbour.run("GET k").text_lossy().len(), 10_000);
    }
    let each = start.elapsed() / 200;
    assert!(
        each < Duration::from_millis(100),
        "a neighbour waits {each:?} for each reply"
    );
    // And the greedy one gets all that it asked for, in order, once it reads.
    if sent == pipeline.len() {
        for _ in 0..1000 {
            assert_eq!(
                greedy
                    .read(harness::PATIENCE)
                    .expect("a reply")
                    .text_lossy()
                    .len(),
                10_000
            );
        }
    }
}

/// What clients that do not read may cost altogether, each: the bound, what stands in the reply rings, and a
/// reply of each worker.
const BYTES_PER_SILENT_CLIENT: u64 = (5 + 4 * 3) << 20;

#[test]
fn new_clients_that_never_read_large_values_cost_no_more_than_the_bound() {
    for workers in [1, 2, 4] {
        let server = Setup::sirocco(sirocco!(), workers).start();
        let mut neighbour = server.connect();
        let value = |number: usize| {
            char::from(b'a' + number as u8 % 8)
                .to_string()
                .repeat(1_000_000)
        };
        for number in 0..8 {
            let key = format!("big:{number}");
            let reply = neighbour.call(&["SET", &key, &value(number)]);
            assert_eq!(reply.expect("a reply").render(), "+OK");
        }
        let before = resident(&server);
        let mut silent: Vec<Client> = (0..5).map(|_| server.connect()).collect();
        for (number, client) in silent.iter_mut().enumerate() {
            let mut pipeline = Vec::new();
            let mine = format!("mine:{number}");
            for round in 0..400 {
                let (big, text) = (format!("big:{}", round % 8), round.to_string());
                harness::client::encode_command(&["GET", &big], &mut pipeline);
                harness::client::encode_command(&["SET", &mine, &text], &mut pipeline);
                harness::client::encode_command(&["GET", &mine], &mut pipeline);
            }
            client.send_raw(&pipeline).expect("the pipeline is short");
        }
        // 2 GB are asked for. Neighbours are served, large values as well.
        let (mut longest, mut most) = (Duration::ZERO, 0);
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(2) {
            let asked = Instant::now();
            assert_eq!(neighbour.run("GET big:3").text_lossy().len(), 1_000_000);
            assert!(neighbour.run("INCR n").int().is_some());
            longest = longest.max(asked.elapsed());
            most = most.max(resident(&server));
            harness::pause(Duration::from_millis(5));
        }
        let bound = before + 5 * BYTES_PER_SILENT_CLIENT;
        assert!(
            most < bound,
            "{workers} workers: from {before} to {most} bytes, more than {bound}"
        );
        assert!(
            longest < Duration::from_secs(2),
            "{workers} workers: a neighbour waits for {longest:?}"
        );
        // At last they read, and all is right and in order: one of them to the end.
        for (number, client) in silent.iter_mut().enumerate() {
            let rounds = if number == 0 { 400 } else { 40 };
            for round in 0..rounds {
                let mut next = || client.read(harness::PATIENCE).expect("a reply");
                assert!(next().text_lossy() == value(round), "round {round}");
                assert_eq!(next().render(), "+OK");
                assert_eq!(next().text_lossy(), round.to_string());
            }
        }
    }
}

#[test]
fn the_output_buffer_limit_closes_a_client_that_does_not_read() {
    let server = Setup::sirocco(sirocco!(), 1)
        .with("client-output-buffer-limit", "normal 4mb 0 0")
        .announcing("output is over the limit")
        .start();
    let mut neighbour = server.connect();
    let value = "v".repeat(1_000_000);
    neighbour.call(&["SET", "k", &value]).expect("a reply");
    let mut greedy = server.connect();
    let mut pipeline = Vec::new();
    for _ in 0..100 {
        harness::client::encode_command(&["GET", "k"], &mut pipeline);
    }
    greedy.send_raw(&pipeline).expect("the pipeline is short");
    eventually("the client that does not read is closed", || {
        neighbour.run("CLIENT LIST").text_lossy().lines().count() == 1
    });
    assert_eq!(neighbour.run("STRLEN k").render(), ":1000000");
}

#[test]
fn the_query_buffer_limit_closes_a_client_that_sends_too_much() {
    let server = Setup::sirocco(sirocco!(), 1)
        .with("client-query-buffer-limit", "1mb")
        .announcing("query buffer is over the limit")
        .start();
    let mut client = server.connect();
    let mut bytes = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$8000000\r\n".to_vec();
    bytes.resize(bytes.len() + 8_000_000, b'x');
    let _ = client.send_until_stuck(&bytes, Duration::from_secs(2));
    let mut neighbour = server.connect();
    eventually("the client that sends too much is closed", || {
        neighbour.run("CLIENT LIST").text_lossy().lines().count() == 1
    });
}

#[test]
fn half_sent_commands_of_many_clients_do_not_hold_up_others() {
    let server = Setup::sirocco(sirocco!(), 2).start();
    let mut halves: Vec<Client> = (0..300).map(|_| server.connect()).collect();
    for (number, client) in halves.iter_mut().enumerate() {
        let text = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$10\r\n0123456789";
        client
            .send_raw(&text.as_bytes()[..1 + number % (text.len() - 1)])
            .expect("the connection is open");
    }
    let mut neighbour = server.connect();
    for _ in 0..100 {
        assert!(neighbour.run("INCR n").int().is_some());
    }
    assert_eq!(neighbour.run("EXISTS a").render(), ":0");
}

#[test]
fn a_storm_of_connections_beyond_maxclients_is_refused_politely() {
    let server = Setup::sirocco(sirocco!(), 1)
        .with("maxclients", "50")
        .start();
    let mut first = server.connect();
    assert_eq!(first.run("PING").render(), "+PONG");
    let mut clients: Vec<Client> = (0..300).map(|_| server.connect()).collect();
    let (mut served, mut refused) = (0, 0);
    for client in &mut clients {
        match client.call(&["PING"]) {
            Ok(reply) if reply.render() == "+PONG" => served += 1,
            Ok(reply) => {
                assert_eq!(reply.render(), "-ERR max number of clients reached");
                refused += 1;
            }
            // A refusal that was closed before our PING arrived may be lost with the reset.
            Err(_) => refused += 1,
        }
    }
    assert_eq!((served, refused), (49, 251));
    assert_eq!(first.run("PING").render(), "+PONG");
    let info = first.run("INFO stats").text_lossy();
    assert!(info.contains("rejected_connections:251"), "{info}");
    drop(clients);
    eventually("others are served when these have gone", || {
        Client::connect(&server.tcp()).is_ok_and(|mut client| {
            client
                .call(&["PING"])
                .is_ok_and(|reply| reply.render() == "+PONG")
        })
    });
}

#[test]
fn connections_come_and_go_by_the_thousand() {
    let server = Setup::sirocco(sirocco!(), 1).start();
    let mut watcher = server.connect();
    for round in 0..20 {
        let mut clients: Vec<Client> = (0..100).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.send(&["PING"]).expect("the connection is open");
        }
        for client in &mut clients {
            assert_eq!(
                client.read(harness::PATIENCE).expect("a reply").render(),
                "+PONG",
                "round {round}"
            );
        }
    }
    eventually("all are forgotten", || {
        watcher.run("CLIENT LIST").text_lossy().lines().count() == 1
    });
    let info = watcher.run("INFO clients").text_lossy();
    assert!(info.contains("connected_clients:1\r\n"), "{info}");
}

#[test]
fn an_idle_client_is_closed_after_the_timeout() {
    let server = Setup::sirocco(sirocco!(), 1).with("timeout", "1").start();
    let mut idle = server.connect();
    assert_eq!(idle.run("PING").render(), "+PONG");
    let mut busy = server.connect();
    let start = Instant::now();
    eventually("the idle one is closed", || {
        assert_eq!(busy.run("PING").render(), "+PONG");
        idle.is_closed_within(Duration::from_millis(1))
    });
    assert!(
        start.elapsed() > Duration::from_millis(900),
        "closed after {:?}",
        start.elapsed()
    );
}

#[test]
fn an_idle_server_sleeps() {
    let server = Setup::sirocco(sirocco!(), 4).start();
    let _clients: Vec<Client> = (0..50).map(|_| server.connect()).collect();
    harness::pause(Duration::from_millis(500));
    let cpu = |server: &Server| {
        server
            .processes()
            .iter()
            .map(Process::cpu_time)
            .sum::<Duration>()
    };
    let before = cpu(&server);
    harness::pause(Duration::from_secs(4));
    let used = cpu(&server) - before;
    // Under 1 % of a core is the promise; the kernel counts in ticks of 10 ms, so allow two of them on top.
    assert!(
        used <= Duration::from_millis(60),
        "{used:?} of CPU time in 4 s of idleness"
    );
}
