//! Random commands on streams: the same replies with 1, 2 and 4 workers, and as a real Redis where there is one.
//!
//! Method: as in `random`, over a few streams whose ids ascend, so that they become long, with groups that read,
//! acknowledge and claim, and nodes of very few entries. Times that depend on the clock are blurred before replies are
//! compared.

use harness::{Reply, reply::Aggregate};

use crate::random::{Random, SEEDS, assert_same_everywhere};

const COMMANDS: usize = 6000;
const KEYS: [&str; 5] = ["s", "s", "{s}2", "{s}3", "nobody"];
const GROUPS: [&str; 4] = ["g", "g", "h", "none"];
const CONSUMERS: [&str; 4] = ["ada", "bob", "eve", ""];
const NO_IDS: [&str; 9] = [
    "0",
    "-",
    "+",
    "$",
    "abc",
    "",
    "1-",
    "5-*",
    "18446744073709551615",
];
const COUNTS: [&str; 8] = ["1", "2", "3", "10", "0", "-1", "abc", "9223372036854775807"];

/// The shapes of commands: `k` a key, `i` an id that may exist, `n` the next id, `b` the bound of a range, `c` a
/// count, `g` a group, `o` a consumer, `f` fields with values, `i*` one to four ids; anything else as it stands.
const SHAPES: [&str; 60] = [
    "XADD k n f",
    "XADD k n f",
    "XADD k n f",
    "XADD k n f",
    "XADD k n f",
    "XADD k n f",
    "XADD k n f",
    "XADD k n f",
    "XADD k n f",
    "XADD k n f",
    "XADD k i f",
    "XADD k NOMKSTREAM n f",
    "XADD k MAXLEN ~ 40 n f",
    "XADD k MAXLEN 60 n f",
    "XADD k MINID ~ i n f",
    "XTRIM k MAXLEN ~ 30",
    "XTRIM k MAXLEN = 50",
    "XTRIM k MINID i",
    "XTRIM k MINID ~ i LIMIT c",
    "XDEL k i*",
    "XDEL k i*",
    "XLEN k",
    "XRANGE k b b",
    "XRANGE k b b COUNT c",
    "XREVRANGE k b b",
    "XREVRANGE k b b COUNT c",
    "XREAD COUNT c STREAMS k i",
    "XREAD STREAMS s {s}2 i +",
    "XREAD COUNT 2 STREAMS {s}3 {s}2 i $",
    "XGROUP CREATE k g 0 MKSTREAM",
    "XGROUP CREATE k g i",
    "XGROUP CREATE k g $ MKSTREAM ENTRIESREAD c",
    "XGROUP SETID k g i",
    "XGROUP SETID k g i ENTRIESREAD c",
    "XGROUP DESTROY k h",
    "XGROUP CREATECONSUMER k g o",
    "XGROUP DELCONSUMER k g o",
    "XREADGROUP GROUP g o COUNT c STREAMS k >",
    "XREADGROUP GROUP g o COUNT 3 STREAMS k >",
    "XREADGROUP GROUP g o COUNT 3 STREAMS k >",
    "XREADGROUP GROUP g o COUNT 2 NOACK STREAMS k >",
    "XREADGROUP GROUP g o COUNT c STREAMS s {s}2 > i",
    "XREADGROUP GROUP g o STREAMS k i",
    "XACK k g i*",
    "XACK k g i*",
    "XPENDING k g",
    "XPENDING k g b b c",
    "XPENDING k g b b 10 o",
    "XPENDING k g IDLE 100000 b b c",
    "XCLAIM k g o 0 i*",
    "XCLAIM k g o 0 i* FORCE JUSTID",
    "XCLAIM k g o 100000 i* FORCE RETRYCOUNT c",
    "XCLAIM k g o 0 i* IDLE 200000 LASTID i",
    "XAUTOCLAIM k g o 0 b COUNT c",
    "XAUTOCLAIM k g o 100000 b COUNT 3 JUSTID",
    "XINFO STREAM k",
    "XINFO STREAM k FULL COUNT c",
    "XINFO GROUPS k",
    "XINFO CONSUMERS k g",
    "XSETID k n",
];

/// Ids of one stream only ever ascend, in steps that leave gaps.
#[derive(Default)]
struct Clock {
    ms: u64,
    seq: u64,
}

fn next_id(random: &mut Random, clock: &mut Clock) -> String {
    match random.below(20) {
        0 => random.pick(&NO_IDS).to_owned(),
        1 => format!("{}-*", clock.ms),
        2..11 => {
            clock.seq += 1 + random.below(2) as u64;
            format!("{}-{}", clock.ms, clock.seq)
        }
        jump => {
            let step = if jump == 19 { 1 << random.below(30) } else { 1 };
            clock.ms += step;
            clock.seq = random.below(3) as u64;
            format!("{}-{}", clock.ms, clock.seq)
        }
    }
}

fn some_id(random: &mut Random, clock: &Clock) -> String {
    if random.below(25) == 0 {
        return random.pick(&NO_IDS).to_owned();
    }
    let ms = clock.ms.saturating_sub(random.below(25) as u64);
    format!("{ms}-{}", random.below(5))
}

fn bound(random: &mut Random, clock: &Clock) -> String {
    match random.below(5) {
        0 => "-".to_owned(),
        1 => "+".to_owned(),
        2 => format!("({}", some_id(random, clock)),
        _ => some_id(random, clock),
    }
}

fn fields(random: &mut Random, args: &mut Vec<String>) {
    let number = random.below(100_000).to_string();
    match random.below(4) {
        0 => args.extend([
            "a".to_owned(),
            number,
            "b".to_owned(),
            "x".repeat(random.below(40)),
        ]),
        1 => (0..=random.below(3)).for_each(|at| args.extend([at.to_string(), number.clone()])),
        _ => args.extend(["field".to_owned(), number]),
    }
}

fn draw(random: &mut Random, clock: &mut Clock) -> Vec<String> {
    let shape = SHAPES[random.below(SHAPES.len())];
    let mut args = Vec::new();
    for word in shape.split(' ') {
        match word {
            "k" => args.push(random.pick(&KEYS).to_owned()),
            "i" => args.push(some_id(random, clock)),
            "i*" => (0..=random.below(4)).for_each(|_| args.push(some_id(random, clock))),
            "n" => args.push(next_id(random, clock)),
            "b" => args.push(bound(random, clock)),
            "c" => args.push(random.pick(&COUNTS).to_owned()),
            "g" => args.push(random.pick(&GROUPS).to_owned()),
            "o" => args.push(random.pick(&CONSUMERS).to_owned()),
            "f" => fields(random, &mut args),
            literal => args.push(literal.to_owned()),
        }
    }
    // Now and then an argument too many or too few.
    match random.below(80) {
        0 => args.push("more".into()),
        1 if args.len() > 1 => drop(args.pop()),
        _ => {}
    }
    args
}

/// Replaces what depends on the clock: times since then, and points in time.
fn blur(command: &[String], reply: &mut Reply) {
    let Reply::Many(_, items) = reply else { return };
    if command[0] == "XPENDING" && command.len() > 3 {
        for item in items {
            if let Reply::Many(Aggregate::Array, parts) = item
                && let Some(Reply::Int(idle)) = parts.get_mut(2)
            {
                // Seconds do not pass in between, but milliseconds do.
                idle.truncate(idle.len().saturating_sub(5));
            }
        }
        return;
    }
    blur_all(items);
}

fn blur_all(items: &mut [Reply]) {
    let mut is_time = false;
    for item in items {
        match item {
            Reply::Bulk(name) => {
                let times: [&[u8]; 4] = [b"idle", b"inactive", b"seen-time", b"active-time"];
                is_time = times.contains(&name.as_slice());
                continue;
            }
            Reply::Int(time) if (is_time && time != "-1") || (13..17).contains(&time.len()) => {
                "time".clone_into(time);
            }
            Reply::Many(_, items) => blur_all(items),
            _ => {}
        }
        is_time = false;
    }
}

#[test]
fn random_commands_on_streams_have_the_same_replies_everywhere() {
    for seed in SEEDS {
        let mut random = Random(seed);
        let mut clock = Clock::default();
        let entries = ["2", "5", "10", "100"][random.below(4)];
        let setting = ["CONFIG", "SET", "stream-node-max-entries", entries];
        let mut commands = vec![setting.map(str::to_owned).to_vec()];
        commands.extend((0..COMMANDS).map(|_| draw(&mut random, &mut clock)));
        assert_same_everywhere(seed, &commands, &KEYS, blur);
    }
}
