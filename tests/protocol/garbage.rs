//! Random and malformed bytes: whatever comes in, the server answers its neighbours and stays what it was.
//!
//! Each run draws from the seed below, which is printed by a failing assertion; a seed that ever found something
//! is added to the list.

use std::time::Duration;

use harness::{Client, Server, Setup, sirocco};

const SEEDS: [u64; 4] = [1, 2, 20_251, 0x5eed];

/// xorshift64*: small, good enough, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or(0) % bound
    }
}

/// Pieces that are nearly right get further into a parser than noise does.
const PIECES: [&[u8]; 24] = [
    b"*1\r\n",
    b"*2\r\n",
    b"*3\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b"*1000000\r\n",
    b"$3\r\n",
    b"$-1\r\n",
    b"$0\r\n\r\n",
    b"$536870912\r\n",
    b"\r\n",
    b"\n",
    b"\r",
    b"GET",
    b"$3\r\nGET\r\n",
    b"$3\r\nSET\r\n",
    b"$1\r\na\r\n",
    b"PING\r\n",
    b"\"",
    b"'",
    b"\0",
    b"\xff\xfe",
    b"HELLO 3\r\n",
    b"$4\r\nINCR\r\n",
];

fn garbage(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..1 + random.below(30) {
        if random.below(4) == 0 {
            for _ in 0..random.below(64) {
                bytes.push(random.next().to_le_bytes()[7]);
            }
        } else {
            bytes.extend_from_slice(PIECES[random.below(PIECES.len())]);
        }
    }
    bytes
}

fn assert_serves(server: &mut Server, neighbour: &mut Client, what: &str) {
    assert_eq!(neighbour.run("PING").render(), "+PONG", "{what}");
    assert_eq!(neighbour.run("GET here").render(), "\"still\"", "{what}");
    assert!(
        server.exit_status().is_none(),
        "{what}: the server has ended\n{}",
        server.log()
    );
}

#[test]
fn random_bytes_hurt_nobody() {
    let mut server = Setup::sirocco(sirocco!(), 2).start();
    let parts = server.processes();
    let mut neighbour = server.connect();
    neighbour.run("SET here still");
    for seed in SEEDS {
        let mut random = Random(seed);
        for round in 0..150 {
            let mut client = server.connect();
            let _ = client.send_raw(&garbage(&mut random));
            if random.below(3) == 0 {
                client.finish_sending();
            }
            let _ = client.read(Duration::from_millis(1));
            if round % 25 == 0 {
                // Garbage may well hold a valid FLUSHALL one day; the pieces above hold none.
                assert_serves(
                    &mut server,
                    &mut neighbour,
                    &format!("seed {seed} round {round}"),
                );
            }
        }
    }
    assert_serves(&mut server, &mut neighbour, "at the end");
    assert_eq!(
        server.processes(),
        parts,
        "a process was replaced:\n{}",
        server.log()
    );
}

#[test]
fn a_valid_stream_cut_anywhere_gives_the_same_replies() {
    let server = Setup::sirocco(sirocco!(), 2).start();
    let mut stream = Vec::new();
    for args in [
        vec!["SET", "a", "1"],
        vec!["INCR", "a"],
        vec!["ECHO", "x y"],
        vec!["MGET", "a", "b"],
        vec!["DEL", "a"],
    ] {
        harness::client::encode_command(&args, &mut stream);
    }
    stream.extend_from_slice(b"PING\r\n");
    let wanted = ["+OK", ":2", "\"x y\"", "*[\"2\" $-1]", ":1", "+PONG"];
    for cut in 1..stream.len() {
        let mut client = server.connect();
        client
            .send_raw(&stream[..cut])
            .expect("the connection is open");
        if cut % 8 == 0 {
            // Give the server the chance to see the first part alone.
            harness::pause(Duration::from_millis(2));
        }
        client
            .send_raw(&stream[cut..])
            .expect("the connection is open");
        for text in wanted {
            let reply = client
                .read(harness::PATIENCE)
                .unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
            assert_eq!(reply.render(), text, "cut at {cut}");
        }
    }
}

#[test]
fn an_announced_giant_takes_no_memory_before_it_comes() {
    let server = Setup::sirocco(sirocco!(), 1).start();
    let resident = |server: &Server| {
        server
            .processes()
            .iter()
            .map(harness::process::Process::resident_bytes)
            .sum::<u64>()
    };
    let before = resident(&server);
    let mut clients = Vec::new();
    for _ in 0..100 {
        let mut client = server.connect();
        client
            .send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$536870912\r\nbegin")
            .expect("the connection is open");
        let mut other = server.connect();
        other
            .send_raw(b"*1048576\r\n$4\r\nMGET\r\n")
            .expect("the connection is open");
        clients.extend([client, other]);
    }
    let mut neighbour = server.connect();
    for _ in 0..100 {
        assert_eq!(neighbour.run("PING").render(), "+PONG");
    }
    let after = resident(&server);
    // 100 times 512 MB were announced; a few hundred kilobytes each would still be far too generous.
    assert!(
        after < before + (96 << 20),
        "from {before} to {after} bytes"
    );
}

#[test]
fn the_largest_value_travels_in_both_directions() {
    // Bigger than any ring, so it goes in fragments; 512 MB would work too but takes its time.
    let server = Setup::sirocco(sirocco!(), 2).start();
    let mut client = server.connect();
    let value: Vec<u8> = (0..40_000_000_u32)
        .map(|number| number.to_le_bytes()[1])
        .collect();
    assert_eq!(
        client
            .call(&[b"SET", b"big", value.as_slice()])
            .expect("a reply")
            .render(),
        "+OK"
    );
    let mut neighbour = server.connect();
    assert_eq!(neighbour.run("STRLEN big").render(), ":40000000");
    assert_eq!(client.run("GET big").text(), Some(value.as_slice()));
    assert_eq!(neighbour.run("PING").render(), "+PONG");
}

#[test]
fn large_requests_and_replies_of_several_workers_are_put_together() {
    let server = Setup::sirocco(sirocco!(), 4).start();
    let mut client = server.connect();
    let value =
        |number: usize| vec![b'a' + u8::try_from(number % 26).unwrap_or(0); 400_000 + number];
    let mut write: Vec<Vec<u8>> = vec![b"MSET".to_vec()];
    let mut read: Vec<Vec<u8>> = vec![b"MGET".to_vec()];
    for number in 0..60 {
        write.extend([format!("big:{number}").into_bytes(), value(number)]);
        read.push(format!("big:{number}").into_bytes());
    }
    assert_eq!(client.call(&write).expect("a reply").render(), "+OK");
    // Small ones before and behind, all in one pipeline: the order of replies must hold.
    let mut bytes = Vec::new();
    for command in [
        &[b"SET".to_vec(), b"n".to_vec(), b"1".to_vec()][..],
        &read,
        &[b"INCR".to_vec(), b"n".to_vec()],
    ] {
        harness::client::encode_command(command, &mut bytes);
    }
    client.send_raw(&bytes).expect("the connection is open");
    assert_eq!(
        client.read(harness::PATIENCE).expect("a reply").render(),
        "+OK"
    );
    let reply = client.read(harness::PATIENCE).expect("a reply");
    let harness::Reply::Many(_, items) = &reply else {
        panic!("{}", reply.render())
    };
    assert_eq!(items.len(), 60);
    for (number, item) in items.iter().enumerate() {
        assert!(
            item.text() == Some(value(number).as_slice()),
            "value {number}"
        );
    }
    assert_eq!(
        client.read(harness::PATIENCE).expect("a reply").render(),
        ":2"
    );
}
