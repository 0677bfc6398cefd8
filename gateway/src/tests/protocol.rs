//! What clients see of the gateway's own commands and of bytes that are no commands.

use super::world::{World, command};

fn line(text: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
    command(&words)
}

/// Plays lines of `> command` and `< reply` on one connection; `|` stands for CRLF, `...` at the end for
/// the rest.
fn check(settings: &[(&str, &str)], transcript: &str) {
    let mut world = World::new(1, 1 << 16, settings);
    let client = world.open();
    let mut got = String::new();
    for row in transcript
        .lines()
        .map(str::trim)
        .filter(|row| !row.is_empty())
    {
        if let Some(text) = row.strip_prefix("> ") {
            assert_eq!(got, "", "a reply that the transcript does not know");
            got = world.say(client, &line(text)).replace("\r\n", "|");
        } else if let Some(text) = row.strip_prefix("< ") {
            match text.strip_suffix("...") {
                Some(start) => assert!(got.starts_with(start), "{got}"),
                None => assert_eq!(got, text),
            }
            got.clear();
        } else {
            panic!("{row:?} is neither a command nor a reply");
        }
    }
    assert_eq!(got, "");
}

#[test]
fn commands_about_the_connection() {
    check(
        &[],
        "> PING
         < +PONG|
         > PING hi
         < $2|hi|
         > PING a b
         < -ERR wrong number of arguments for 'ping' command|
         > ECHO a
         < $1|a|
         > SELECT 16
         < -ERR DB index is out of range|
         > SELECT abc
         < -ERR value is not an integer or out of range|
         > SELECT 99999999999999
         < -ERR value is out of range, value must between -2147483648 and 2147483647|
         > SELECT 3
         < +OK|
         > CLIENT ID
         < :1|
         > CLIENT GETNAME
         < $-1|
         > CLIENT SETNAME abc
         < +OK|
         > CLIENT GETNAME
         < $3|abc|
         > RESET
         < +RESET|
         > CLIENT GETNAME
         < $-1|
         > FOO a b
         < -ERR unknown command 'FOO', with args beginning with: 'a' 'b' |
         > CLIENT FOO
         < -ERR unknown subcommand 'FOO'. Try CLIENT HELP.|
         > GET
         < -ERR wrong number of arguments for 'get' command|
         > AUTH a
         < -ERR AUTH <password> called without any password configured for the default user. ...",
    );
}

#[test]
fn hello_answers_as_the_reference_does() {
    check(
        &[],
        "> HELLO 4
         < -NOPROTO unsupported protocol version|
         > HELLO a
         < -ERR Protocol version is not an integer or out of range|
         > HELLO 3 FOO
         < -ERR Syntax error in HELLO option 'FOO'|
         > HELLO 3 SETNAME
         < -ERR Syntax error in HELLO option 'SETNAME'|
         > HELLO 3 AUTH foo x
         < -WRONGPASS invalid username-password pair or user is disabled.|
         > HELLO 3 SETNAME me
         < %7|$6|server|$5|redis|$7|version|$5|8.0.6|$5|proto|:3|$2|id|:1|$4|mode|...
         > CLIENT GETNAME
         < $2|me|
         > GET nothing
         < _|
         > HELLO 2
         < *14|$6|server|$5|redis|$7|version|$5|8.0.6|$5|proto|:2|$2|id|:1|$4|mode|...",
    );
}

#[test]
fn a_password_keeps_everything_but_greetings_out() {
    check(
        &[("requirepass", "secret")],
        "> GET a
         < -NOAUTH Authentication required.|
         > FOO
         < -ERR unknown command 'FOO', with args beginning with: |
         > GET
         < -ERR wrong number of arguments for 'get' command|
         > HELLO 3
         < -NOAUTH HELLO must be called with the client already authenticated, ...
         > AUTH wrong
         < -WRONGPASS invalid username-password pair or user is disabled.|
         > AUTH default secret
         < +OK|
         > GET a
         < $-1|
         > RESET
         < +RESET|
         > PING
         < -NOAUTH Authentication required.|
         > AUTH secret
         < +OK|
         > PING
         < +PONG|",
    );
}

#[test]
fn replies_can_be_switched_off() {
    check(
        &[],
        "> CLIENT REPLY foo
         < -ERR syntax error|
         > CLIENT REPLY ON
         < +OK|
         > CLIENT REPLY OFF
         > SET a 1
         > PING
         > FOO
         > CLIENT REPLY ON
         < +OK|
         > GET a
         < $1|1|
         > CLIENT REPLY SKIP
         > GET a
         > GET a
         < $1|1|
         > CLIENT REPLY SKIP
         > GET
         > PING
         < +PONG|",
    );
}

#[test]
fn bytes_that_are_no_commands_end_the_connection() {
    for (bytes, reply) in [
        (
            &b"PING\r\n*x\r\nPING\r\n"[..],
            "+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n",
        ),
        (
            b"*1\r\nx\r\n",
            "-ERR Protocol error: expected '$', got 'x'\r\n",
        ),
        (
            b"ECHO \"a\r\n",
            "-ERR Protocol error: unbalanced quotes in request\r\n",
        ),
        (b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", ""),
        (b"QUIT\r\nPING\r\n", "+OK\r\n"),
    ] {
        let mut world = World::new(1, 1 << 16, &[]);
        let client = world.open();
        assert_eq!(
            world.say(client, bytes),
            reply,
            "{:?}",
            String::from_utf8_lossy(bytes)
        );
        assert_eq!(world.closed, [client]);
    }
}

#[test]
fn odd_but_harmless_bytes_are_skipped() {
    let mut world = World::new(1, 1 << 16, &[]);
    let client = world.open();
    let bytes = b"PING\r\n\r\nPING\n   \r\n*0\r\n*-1\r\nECHO \"a b\"\r\n";
    assert_eq!(world.say(client, bytes), "+PONG\r\n+PONG\r\n$3\r\na b\r\n");
}

#[test]
fn a_query_buffer_over_its_limit_ends_the_connection() {
    let mut world = World::new(1, 1 << 16, &[("client-query-buffer-limit", "1mb")]);
    let client = world.open();
    world.core.input(client, b"*2\r\n$3\r\nGET\r\n$9999999\r\n");
    for _ in 0..64 {
        world.core.input(client, &[b'x'; 32 << 10]);
    }
    world.settle();
    assert_eq!(world.closed, [client]);
}

#[test]
fn output_over_its_limit_ends_the_connection() {
    let changes = [("client-output-buffer-limit", "normal 100kb 0 0")];
    let mut world = World::new(1, 1 << 16, &changes);
    let client = world.open();
    world.say(client, &command(&[b"SET", b"k", &[b'x'; 50_000]]));
    world
        .core
        .input(client, &command(&[b"GET", b"k"]).repeat(4));
    for _ in 0..10 {
        world.workers[0].work(usize::MAX);
        world.core.collect_replies(&world.party, false);
        world.core.lanes.flush();
    }
    world.core.check_output_limit(client);
    world.turn(0);
    assert_eq!(world.closed, [client]);
}

#[test]
fn a_pause_holds_commands_back_until_it_ends() {
    let mut world = World::new(1, 1 << 16, &[]);
    let (admin, client) = (world.open(), world.open());
    assert_eq!(
        world.say(admin, &line("CLIENT PAUSE 1000 WRITE")),
        "+OK\r\n"
    );
    assert_eq!(world.say(client, &line("GET a")), "$-1\r\n");
    assert_eq!(world.say(client, &line("SET a 1")), "");
    assert_eq!(world.say(client, &line("PING")), "");
    assert_eq!(world.say(admin, &line("CLIENT UNPAUSE")), "+OK\r\n");
    assert_eq!(
        String::from_utf8_lossy(&world.received[&client]),
        "+OK\r\n+PONG\r\n"
    );
    // It ends by itself, too.
    world.say(admin, &line("CLIENT PAUSE 1000"));
    assert_eq!(world.say(client, &line("PING")), "");
    world.core.now.unix_micros += 1_100_000;
    world.core.now.millis += 1_100;
    world.core.tick();
    world.settle();
    assert_eq!(
        String::from_utf8_lossy(&world.received[&client]),
        "+PONG\r\n"
    );
}

#[test]
fn killed_clients_are_closed_and_counted() {
    let mut world = World::new(1, 1 << 16, &[]);
    let (admin, victim) = (world.open(), world.open());
    assert_eq!(world.say(admin, &line("CLIENT KILL ID 99")), ":0\r\n");
    assert_eq!(world.say(admin, &line("CLIENT KILL ID 2")), ":1\r\n");
    assert_eq!(world.closed, [victim]);
    assert_eq!(
        world.say(admin, &line("CLIENT KILL TYPE normal SKIPME no")),
        ":1\r\n"
    );
    assert_eq!(world.closed, [victim, admin]);
}

#[test]
fn a_client_that_stops_sending_gets_the_rest_of_its_replies() {
    let mut world = World::new(2, 1 << 16, &[]);
    let client = world.open();
    world.core.input(client, &line("SET a 1"));
    world.core.input(client, &line("GET a"));
    world.core.input_ended(client);
    world.settle();
    assert_eq!(
        String::from_utf8_lossy(&world.received[&client]),
        "+OK\r\n$1\r\n1\r\n"
    );
    assert_eq!(world.closed, [client]);
}

#[test]
fn an_idle_client_is_closed_after_the_timeout() {
    let mut world = World::new(1, 1 << 16, &[("timeout", "10")]);
    let client = world.open();
    world.say(client, &line("PING"));
    world.core.now.millis += 9_000;
    world.core.tick();
    world.settle();
    assert!(world.closed.is_empty());
    world.core.now.millis += 2_000;
    world.core.tick();
    world.settle();
    assert_eq!(world.closed, [client]);
}
