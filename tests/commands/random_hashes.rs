//! Random commands on hashes: the same replies with 1, 2 and 4 workers, and as a real Redis where there is one.
//!
//! Method: as in `random`, over a few hashes with few fields, so that they meet. Times are points far away or long
//! passed, as those near depend on the clock. Once all hashes stay packed, and the order of their fields counts; once
//! most are tables, whose order is nobody's business.

use harness::Reply;

use crate::random::{Random, SEEDS, assert_same_everywhere};

const COMMANDS: usize = 6000;
const KEYS: [&str; 5] = ["{h}1", "{h}1", "{h}2", "{h}3", "{h}string"];
const FIELDS: [&str; 12] = [
    "a",
    "b",
    "c",
    "d",
    "field with blank",
    "",
    "1",
    "2",
    "007",
    "-5",
    "9223372036854775807",
    "\u{1}\u{7f}",
];
const VALUES: [&str; 14] = [
    "0",
    "1",
    "-1",
    "127",
    "4096",
    "9223372036854775807",
    "-9223372036854775808",
    "3.5",
    "1e3",
    "abc",
    "",
    " 1",
    "hello world",
    "inf",
];
const NUMBERS: [&str; 10] = [
    "0",
    "1",
    "-1",
    "100",
    "-9223372036854775808",
    "9223372036854775807",
    "abc",
    "1.5",
    "",
    "3",
];
/// Spans of time that need no clock: nothing is left of them, or they are refused.
const SPANS: [&str; 5] = ["0", "-1", "abc", "", "9223372036854775807"];
const FLOATS: [&str; 9] = ["0.1", "1.5", "-2.25", "3", "1e3", "abc", "inf", "nan", "0"];
/// Milliseconds since 1970: far away, passed, refused.
const TIMES: [&str; 9] = [
    "33177117421500",
    "33177117421501",
    "33177117421502",
    "40000000000000",
    "70368744177663",
    "1",
    "0",
    "70368744177664",
    "abc",
];
const CONDITIONS: [&str; 6] = ["NX", "XX", "GT", "LT", "FOO", "nx"];

/// The shapes of commands: `k` a key, `f` a field, `v` a value, `n` a number, `x` a fraction, `b` a span of time,
/// `t` a point in time, `c` a condition, `f*` one to four fields, `F*` the same behind FIELDS and their number, `p*`
/// one to four pairs, `P*` the same behind FIELDS and their number; anything else as it stands.
const SHAPES: [&str; 58] = [
    "HSET k p*",
    "HSET k p*",
    "HSET k p*",
    "HSET k p*",
    "HMSET k p*",
    "HSETNX k f v",
    "HSETNX k f v",
    "HGET k f",
    "HGET k f",
    "HMGET k f*",
    "HEXISTS k f",
    "HSTRLEN k f",
    "HLEN k",
    "HLEN k",
    "HDEL k f*",
    "HDEL k f*",
    "HDEL k f*",
    "HGETALL k",
    "HGETALL k",
    "HGETALL k",
    "HKEYS k",
    "HVALS k",
    "HINCRBY k f n",
    "HINCRBY k f n",
    "HINCRBYFLOAT k f x",
    "HINCRBYFLOAT k f x",
    "HRANDFIELD k 1000",
    "HRANDFIELD k 1000 WITHVALUES",
    "HRANDFIELD k 0",
    "HSCAN k 0 COUNT 1000",
    "HSCAN k 0 COUNT 1000 MATCH *a*",
    "HSCAN k 0 COUNT 1000 NOVALUES",
    "HPEXPIREAT k t F*",
    "HPEXPIREAT k t F*",
    "HPEXPIREAT k t F*",
    "HPEXPIREAT k t c F*",
    "HPEXPIREAT k t c F*",
    "HEXPIREAT k n F*",
    "HEXPIRE k b F*",
    "HPEXPIRETIME k F*",
    "HEXPIRETIME k F*",
    "HTTL k FIELDS 1 none",
    "HPERSIST k F*",
    "HPERSIST k F*",
    "HGETDEL k F*",
    "HGETEX k F*",
    "HGETEX k PXAT t F*",
    "HGETEX k PXAT t F*",
    "HGETEX k PERSIST F*",
    "HSETEX k P*",
    "HSETEX k PXAT t P*",
    "HSETEX k PXAT t FNX P*",
    "HSETEX k FXX PXAT t P*",
    "HSETEX k KEEPTTL P*",
    "OBJECT ENCODING k",
    "RENAME k k",
    "COPY k k REPLACE",
    "DEL k",
];

fn draw(random: &mut Random) -> Vec<String> {
    let shape = random.pick(&SHAPES);
    let mut args = Vec::new();
    let some = |random: &mut Random| 1 + random.below(4);
    for word in shape.split(' ') {
        match word {
            "k" => args.push(random.pick(&KEYS).to_owned()),
            "f" => args.push(random.pick(&FIELDS).to_owned()),
            "v" => args.push(random.pick(&VALUES).to_owned()),
            "n" => args.push(random.pick(&NUMBERS).to_owned()),
            "b" => args.push(random.pick(&SPANS).to_owned()),
            "x" => args.push(random.pick(&FLOATS).to_owned()),
            "t" => args.push(random.pick(&TIMES).to_owned()),
            "c" => args.push(random.pick(&CONDITIONS).to_owned()),
            "f*" | "F*" | "p*" | "P*" => {
                let count = some(random);
                if word.starts_with(char::is_uppercase) {
                    args.extend(["FIELDS".to_owned(), count.to_string()]);
                }
                for _ in 0..count {
                    args.push(random.pick(&FIELDS).to_owned());
                    if word.eq_ignore_ascii_case("p*") {
                        args.push(random.pick(&VALUES).to_owned());
                    }
                }
            }
            literal => args.push(literal.to_owned()),
        }
    }
    // Now and then an argument too many or too few, where that cannot make it a matter of chance or of time.
    match random.below(60) {
        0 if args[0] != "HRANDFIELD" && args[0] != "RENAME" => args.push("more".into()),
        1 if args[0] != "HRANDFIELD" => drop(args.pop()),
        _ => {}
    }
    args
}

fn commands(seed: u64, first: &str) -> Vec<Vec<String>> {
    let mut random = Random(seed);
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    [first, "SET {h}string x"]
        .into_iter()
        .map(words)
        .chain((0..COMMANDS).map(|_| draw(&mut random)))
        .collect()
}

#[test]
fn packed_hashes_have_the_same_replies_in_the_same_order_everywhere() {
    for seed in SEEDS {
        let commands = commands(seed, "PING");
        assert_same_everywhere(seed, &commands, &KEYS, |_, _| ());
    }
}

#[test]
fn hashes_that_become_tables_have_the_same_replies_everywhere() {
    for seed in SEEDS {
        let commands = commands(seed ^ 0x77, "CONFIG SET hash-max-listpack-entries 4");
        assert_same_everywhere(seed, &commands, &KEYS, |command, reply| {
            let lists = ["HGETALL", "HKEYS", "HVALS", "HRANDFIELD", "HSCAN"];
            if lists.contains(&command[0].as_str()) {
                sort(reply);
            }
        });
    }
}

fn sort(reply: &mut Reply) {
    if let Reply::Many(_, items) = reply {
        items.iter_mut().for_each(sort);
        items.sort_by_key(Reply::render);
    }
}
