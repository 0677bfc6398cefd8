//! Random commands on sorted sets and places: the same replies with 1, 2 and 4 workers, and as a real Redis where
//! there is one.
//!
//! Method: as in `random`, over a few sets with few members, so that they meet. Once all sets stay packed, once most
//! are trees (a long member makes one of a small set, too). The order of members counts, but for ZSCAN.

use harness::Reply;

use crate::random::{Random, SEEDS, assert_same_everywhere};

const COMMANDS: usize = 6000;
const KEYS: [&str; 6] = ["{z}1", "{z}1", "{z}2", "{z}3", "{z}string", "{z}set"];
const EVEN: [&str; 2] = ["{z}even1", "{z}even2"];
const PLACES: [&str; 4] = ["{z}p1", "{z}p1", "{z}p2", "{z}3"];
const MEMBERS: [&str; 14] = [
    "a",
    "b",
    "c",
    "d",
    "bb",
    "member with blank",
    "",
    "1",
    "2",
    "007",
    "-5",
    "9223372036854775807",
    "\u{1}\u{7f}",
    "0123456789012345678901234567890123456789012345678901234567890123456789",
];
const SCORES: [&str; 16] = [
    "nan", "abc", "0", "1", "1", "2", "-1", "3.5", "0.1", "-2.25", "1e20", "inf", "-inf", "-0",
    "1e-7", "100",
];
const BOUNDS: [&str; 12] = [
    "-inf", "+inf", "0", "(0", "1", "(1", "3.5", "(-1", "inf", "abc", "(", "2",
];
const TEXT_BOUNDS: [&str; 10] = ["-", "+", "[a", "(a", "[bb", "(c", "[", "(", "a", "[zz"];
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "2",
    "-1",
    "-2",
    "7",
    "100",
    "-9223372036854775808",
    "9223372036854775807",
    "abc",
    "1.5",
    "",
];
const LONGITUDES: [&str; 7] = [
    "13.361389",
    "15.087269",
    "2.349014",
    "-0.1",
    "181",
    "abc",
    "14",
];
const LATITUDES: [&str; 7] = [
    "38.115556",
    "37.502669",
    "48.864716",
    "51.5",
    "86",
    "abc",
    "38",
];
const LENGTHS: [&str; 7] = ["0", "1", "100", "250.5", "2000", "-1", "abc"];
const UNITS: [&str; 6] = ["m", "km", "km", "ft", "mi", "yards"];

/// The shapes of commands: `k` a key, `K` one of places, `e` one of sets whose members all have the same score (only
/// these have an order by text), `m` a member, `s` a score, `n` a number, `b` a bound, `t` a bound of texts, `o` a
/// longitude, `a` a latitude, `l` a length, `u` a unit, `m*` one to four members, `p*` one to six pairs of score and
/// member, `z*` one to four of score 0 and member, `k#` the number of keys and the keys, `k2` two keys behind their
/// number; anything else as it stands.
const SHAPES: [&str; 96] = [
    "ZADD e z*",
    "ZADD e z*",
    "ZADD k p*",
    "ZADD k p*",
    "ZADD k p*",
    "ZADD k p*",
    "ZADD k p*",
    "ZADD k NX p*",
    "ZADD k XX CH p*",
    "ZADD k GT CH p*",
    "ZADD k LT p*",
    "ZADD k XX GT p*",
    "ZADD k NX GT p*",
    "ZADD k INCR s m",
    "ZADD k NX INCR s m",
    "ZINCRBY k s m",
    "ZINCRBY k s m",
    "ZCARD k",
    "ZSCORE k m",
    "ZMSCORE k m*",
    "ZREM k m*",
    "ZREM k m*",
    "ZRANK k m",
    "ZRANK k m WITHSCORE",
    "ZREVRANK k m",
    "ZREVRANK k m WITHSCORE",
    "ZRANGE k 0 -1 WITHSCORES",
    "ZRANGE k 0 -1 WITHSCORES",
    "ZRANGE k n n",
    "ZRANGE k n n REV WITHSCORES",
    "ZRANGE k b b BYSCORE",
    "ZRANGE k b b BYSCORE REV LIMIT n n",
    "ZRANGE e t t BYLEX",
    "ZRANGE e t t BYLEX REV LIMIT n n",
    "ZREVRANGE k n n WITHSCORES",
    "ZRANGEBYSCORE k b b",
    "ZRANGEBYSCORE k b b WITHSCORES LIMIT n n",
    "ZREVRANGEBYSCORE k b b WITHSCORES",
    "ZRANGEBYLEX e t t",
    "ZREVRANGEBYLEX e t t LIMIT n n",
    "ZRANGESTORE k k n n",
    "ZRANGESTORE k k b b BYSCORE",
    "ZRANGESTORE e e t t BYLEX LIMIT n n",
    "ZCOUNT k b b",
    "ZLEXCOUNT e t t",
    "ZREMRANGEBYRANK k n n",
    "ZREMRANGEBYSCORE k b b",
    "ZREMRANGEBYLEX e t t",
    "ZPOPMIN k",
    "ZPOPMAX k",
    "ZPOPMIN k n",
    "ZPOPMAX k n",
    "ZMPOP k# MIN",
    "ZMPOP k2 MAX COUNT n",
    "BZPOPMIN k k 0.001",
    "ZUNION k# WITHSCORES",
    "ZUNION k2 WEIGHTS s s WITHSCORES",
    "ZUNION k2 AGGREGATE MIN",
    "ZINTER k# WITHSCORES",
    "ZINTER k2 AGGREGATE MAX WITHSCORES",
    "ZINTER k2 WEIGHTS s s AGGREGATE SUM WITHSCORES",
    "ZDIFF k# WITHSCORES",
    "ZINTERCARD k#",
    "ZINTERCARD k2 LIMIT n",
    "ZUNIONSTORE k k2 WEIGHTS s s",
    "ZUNIONSTORE k k#",
    "ZINTERSTORE k k2 AGGREGATE MAX",
    "ZDIFFSTORE k k#",
    "ZRANDMEMBER k 1000",
    "ZRANDMEMBER k 1000 WITHSCORES",
    "ZRANDMEMBER k 0",
    "ZSCAN k 0 COUNT 1000",
    "ZSCAN k 0 COUNT 1000 MATCH *b*",
    "OBJECT ENCODING k",
    "TYPE k",
    "DEL k",
    "RENAME k k",
    "COPY k k REPLACE",
    "GEOADD K o a m",
    "GEOADD K o a m",
    "GEOADD K o a m",
    "GEOADD K NX CH o a m",
    "GEODIST K m m u",
    "GEOHASH K m*",
    "GEOPOS K m*",
    "GEOSEARCH K FROMLONLAT o a BYRADIUS l u",
    "GEOSEARCH K FROMMEMBER m BYBOX l l u ASC WITHDIST",
    "GEOSEARCH K FROMLONLAT o a BYRADIUS l u DESC COUNT n WITHCOORD WITHHASH",
    "GEOSEARCH K FROMMEMBER m BYRADIUS l u COUNT n ANY",
    "GEOSEARCHSTORE K K FROMLONLAT o a BYBOX l l u ASC COUNT n",
    "GEOSEARCHSTORE K K FROMMEMBER m BYRADIUS l u STOREDIST",
    "GEORADIUS K o a l u WITHDIST",
    "GEORADIUS K o a l u ASC COUNT n STORE K",
    "GEORADIUS_RO K o a l u DESC",
    "GEORADIUSBYMEMBER K m l u WITHCOORD",
    "GEORADIUSBYMEMBER_RO K m l u",
];

fn draw(random: &mut Random) -> Vec<String> {
    let shape = random.pick(&SHAPES);
    let mut args: Vec<String> = Vec::new();
    for word in shape.split(' ') {
        let from: &[&str] = match word {
            "k" => &KEYS,
            "e" => &EVEN,
            "K" => &PLACES,
            "m" => &MEMBERS,
            "s" => &SCORES,
            "n" => &NUMBERS,
            "b" => &BOUNDS,
            "t" => &TEXT_BOUNDS,
            "o" => &LONGITUDES,
            "a" => &LATITUDES,
            "l" => &LENGTHS,
            "u" => &UNITS,
            "m*" => {
                (0..=random.below(4)).for_each(|_| args.push(random.pick(&MEMBERS).to_owned()));
                continue;
            }
            "z*" => {
                for _ in 0..=random.below(4) {
                    args.extend(["0".to_owned(), random.pick(&MEMBERS).to_owned()]);
                }
                continue;
            }
            "p*" => {
                for _ in 0..=random.below(6) {
                    // What is no score at all spoils all pairs.
                    let bad = 2 * usize::from(random.below(9) > 0);
                    args.push(random.pick(&SCORES[bad..]).to_owned());
                    args.push(random.pick(&MEMBERS).to_owned());
                }
                continue;
            }
            "k#" | "k2" => {
                let count = if word == "k2" { 2 } else { 1 + random.below(3) };
                args.push(count.to_string());
                (0..count).for_each(|_| args.push(random.pick(&KEYS).to_owned()));
                continue;
            }
            literal => {
                args.push(literal.to_owned());
                continue;
            }
        };
        args.push(random.pick(from).to_owned());
    }
    // Now and then an argument too many or too few, where that cannot make it a matter of chance, or a key of it.
    let is_safe = !["ZRANDMEMBER", "RENAME", "BZPOPMIN"].contains(&args[0].as_str());
    match random.below(60) {
        0 if is_safe => args.push("more".into()),
        1 if is_safe => drop(args.pop()),
        _ => {}
    }
    args
}

fn commands(seed: u64, first: &str) -> Vec<Vec<String>> {
    let mut random = Random(seed);
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    [first, "SET {z}string x", "SADD {z}set a b 1 2 bb"]
        .into_iter()
        .map(words)
        .chain((0..COMMANDS).map(|_| draw(&mut random)))
        .collect()
}

fn all_keys() -> Vec<&'static str> {
    [&KEYS[..], &EVEN, &PLACES].concat()
}

#[test]
fn packed_sorted_sets_have_the_same_replies_everywhere() {
    for seed in SEEDS {
        let commands = commands(seed ^ 0x5e7, "PING");
        assert_same_everywhere(seed, &commands, &all_keys(), sort_scanned);
    }
}

#[test]
fn sorted_sets_that_become_trees_have_the_same_replies_everywhere() {
    for seed in SEEDS {
        let commands = commands(seed ^ 0x77, "CONFIG SET zset-max-listpack-entries 3");
        assert_same_everywhere(seed, &commands, &all_keys(), sort_scanned);
    }
}

/// A tree is scanned in the order of its table.
fn sort_scanned(command: &[String], reply: &mut Reply) {
    if command[0] == "ZSCAN" {
        sort(reply);
    }
}

fn sort(reply: &mut Reply) {
    if let Reply::Many(_, items) = reply {
        items.iter_mut().for_each(sort);
        items.sort_by_key(Reply::render);
    }
}
