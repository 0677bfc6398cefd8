//! Random commands, run by the engine and by a real Redis, replies compared byte by byte.
//!
//! Where no `redis-server` is found (`REDIS_SERVER` names one, otherwise the search path), the test
//! says so and passes. `DIFFERENTIAL_COMMANDS` sets how many commands run, `DIFFERENTIAL_SEED` the
//! seed, which is printed.
//!
//! What may differ: order of keys in KEYS and SCAN (sorted before comparing), times to live (both
//! clocks run, so they may differ by the time between the two runs).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/bench.rs"]
mod bench;
#[path = "support/redis.rs"]
mod redis;

use bench::Bench;
use proto::time::UnixMillis;
use redis::Redis;
use std::time::{SystemTime, UNIX_EPOCH};
use storage_worker::random::Random;

/// The elements of an array of bulks, sorted.
fn sorted(reply: &[u8]) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = reply
        .split(|byte| *byte == b'$')
        .map(<[u8]>::to_vec)
        .collect();
    parts.sort();
    parts
}

fn integer_of(reply: &[u8]) -> Option<i64> {
    std::str::from_utf8(reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?)
        .ok()?
        .parse()
        .ok()
}

fn is_same(words: &[Vec<u8>], ours: &[u8], theirs: &[u8]) -> bool {
    if ours == theirs {
        return true;
    }
    let name = String::from_utf8_lossy(&words[0]).to_lowercase();
    match name.as_str() {
        "keys" | "scan" => sorted(ours) == sorted(theirs),
        "ttl" | "pttl" | "expiretime" | "pexpiretime" => {
            let slack = if name.starts_with('p') { 400 } else { 1 };
            match (integer_of(ours), integer_of(theirs)) {
                (Some(a), Some(b)) => a > 0 && b > 0 && (a - b).abs() <= slack,
                _ => false,
            }
        }
        "randomkey" => true,
        "object" | "memory" | "debug" => {
            // Idle times and sizes are each server's own; their kind of reply is not.
            let second = String::from_utf8_lossy(&words[1]).to_lowercase();
            second != "encoding" && integer_of(ours).is_some() && integer_of(theirs).is_some()
        }
        _ => false,
    }
}

/// Makes random commands out of words that meet each other often.
struct Generator {
    random: Random,
    now_ms: u64,
}

impl Generator {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.random.below(from.len() as u64) as usize]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn key(&mut self) -> String {
        self.pick(&[
            "a",
            "b",
            "c",
            "d",
            "{a}1",
            "{a}2",
            "",
            "key:with:a:longer:name",
        ])
        .into()
    }

    fn case(&mut self, word: &str) -> String {
        if self.chance(30) {
            word.to_uppercase()
        } else {
            word.to_lowercase()
        }
    }

    fn integer(&mut self) -> String {
        match self.random.below(12) {
            0..=4 => (self.random.below(20) as i64 - 6).to_string(),
            5 => self.random.below(1000).to_string(),
            6 => (self.random.next_u64() as i64).to_string(),
            7 => i64::MAX.to_string(),
            8 => i64::MIN.to_string(),
            9 => self
                .pick(&[
                    "",
                    "x",
                    " 1",
                    "1 ",
                    "01",
                    "+1",
                    "-0",
                    "1.0",
                    "9223372036854775808",
                ])
                .into(),
            10 => (i64::MAX / 1000 + self.random.below(3) as i64 - 1).to_string(),
            _ => (self.random.below(40) as i64).to_string(),
        }
    }

    fn small(&mut self) -> String {
        if self.chance(90) {
            (self.random.below(40) as i64 - 12).to_string()
        } else {
            self.integer()
        }
    }

    /// A time to live that does not run out during the test, or one that is refused.
    fn expiry(&mut self, word: &str) -> String {
        if self.chance(15) {
            return self.integer_without_short_times();
        }
        let ahead = 1000 + self.random.below(100_000);
        match word.to_lowercase().as_str() {
            "exat" | "expireat" => (self.now_ms / 1000 + ahead).to_string(),
            "pxat" | "pexpireat" => (self.now_ms + ahead * 1000).to_string(),
            "px" | "pexpire" => (ahead * 1000).to_string(),
            _ => ahead.to_string(),
        }
    }

    fn integer_without_short_times(&mut self) -> String {
        loop {
            let text = self.integer();
            match text.parse::<i64>() {
                Ok(1..=100_000) => {}
                _ => return text,
            }
        }
    }

    fn value(&mut self) -> String {
        match self.random.below(10) {
            0..=2 => self.integer(),
            3 => self.float(),
            4 => "x".repeat(self.random.below(70) as usize),
            5 => self
                .pick(&["hello", "foobar", "ohmytext", "mynewtext", ""])
                .into(),
            6 => "y".repeat(1000 + self.random.below(80) as usize),
            7 => format!(
                "{}{}",
                self.pick(&["ab", "ba", "\u{1}\u{7f}"]),
                self.random.below(50)
            ),
            8 => "\u{0}\u{ff}\u{80}".repeat(self.random.below(9) as usize),
            _ => self.random.below(100_000).to_string(),
        }
    }

    fn float(&mut self) -> String {
        match self.random.below(8) {
            0 => format!("{}.{}", self.random.below(50), self.random.below(1000)),
            1 => format!(
                "-{}.{:05}",
                self.random.below(5000),
                self.random.below(100_000)
            ),
            2 => format!("{}e{}", self.random.below(100), self.random.below(20)),
            3 => self
                .pick(&[
                    "inf", "-inf", "nan", "1e400", "0x10", "1e-3", " 1", "1 ", "", ".5", "5.",
                ])
                .into(),
            4 => "3.0e3".into(),
            5 => self.random.next_u64().to_string(),
            _ => self.integer(),
        }
    }

    fn field(&mut self) -> String {
        match self.random.below(10) {
            0 => self
                .pick(&["i65", "u64", "u0", "i0", "x8", "i", "", "u8x", "I8", "i-1"])
                .into(),
            _ => format!("{}{}", self.pick(&["i", "u"]), 1 + self.random.below(64)),
        }
    }

    fn bit_offset(&mut self) -> String {
        match self.random.below(12) {
            0 => self.integer_below_a_megabyte(),
            1 => self
                .pick(&["-1", "4294967296", "4294967295000", "x", "#", "#x", "#-1"])
                .into(),
            2..=4 => format!("#{}", self.random.below(12)),
            _ => self.random.below(200).to_string(),
        }
    }

    fn integer_below_a_megabyte(&mut self) -> String {
        self.random.below(8_000_000).to_string()
    }

    fn set_options(&mut self, out: &mut Vec<String>) {
        for _ in 0..self.random.below(4) {
            let word = self.pick(&[
                "nx", "xx", "get", "keepttl", "ex", "px", "exat", "pxat", "foo",
            ]);
            let cased = self.case(word);
            out.push(cased);
            if matches!(word, "ex" | "px" | "exat" | "pxat") && self.chance(95) {
                let time = self.expiry(word);
                out.push(time);
            }
        }
    }

    fn command(&mut self) -> Vec<Vec<u8>> {
        let kinds: &[&str] = &[
            "set",
            "set",
            "set",
            "get",
            "get",
            "getset",
            "getdel",
            "getex",
            "setnx",
            "setex",
            "psetex",
            "mset",
            "msetnx",
            "mget",
            "append",
            "strlen",
            "incr",
            "decr",
            "incrby",
            "decrby",
            "incrbyfloat",
            "getrange",
            "substr",
            "setrange",
            "lcs",
            "setbit",
            "getbit",
            "bitcount",
            "bitpos",
            "bitop",
            "bitfield",
            "bitfield",
            "bitfield_ro",
            "del",
            "unlink",
            "exists",
            "type",
            "touch",
            "rename",
            "renamenx",
            "copy",
            "expire",
            "pexpire",
            "expireat",
            "pexpireat",
            "ttl",
            "pttl",
            "expiretime",
            "pexpiretime",
            "persist",
            "keys",
            "scan",
            "object",
            "memory",
            "dbsize",
            "randomkey",
            "flush",
        ];
        let name = self.pick(kinds);
        let mut words = vec![self.case(name)];
        self.arguments(name, &mut words);
        if self.chance(1) {
            words.push("extra".into());
        }
        if self.chance(1) {
            words.truncate(2.min(words.len()));
        }
        let latin = |word: String| word.chars().map(|letter| letter as u32 as u8).collect();
        words.into_iter().map(latin).collect()
    }

    fn arguments(&mut self, name: &str, words: &mut Vec<String>) {
        match name {
            "keys" => words.push(
                self.pick(&["*", "a", "?", "[a-c]", "{a}*", "k*n*", "[^a]", "\\a"])
                    .into(),
            ),
            "scan" => self.scan(words),
            "dbsize" | "randomkey" => {}
            "flush" => self.flush(words),
            "object" => {
                let sub = self.pick(&["encoding", "refcount", "idletime", "freq"]);
                words.push(self.case(sub));
                words.push(self.key());
            }
            "memory" => {
                words.push("usage".into());
                words.push(self.key());
                if self.chance(30) {
                    words.push(self.pick(&["samples", "SAMPLES", "foo"]).into());
                    words.push(self.small());
                }
            }
            "mset" | "msetnx" => {
                for _ in 0..1 + self.random.below(3) {
                    words.push(self.key());
                    words.push(self.value());
                }
                if self.chance(3) {
                    words.push(self.key());
                }
            }
            "mget" | "del" | "unlink" | "exists" | "touch" => {
                for _ in 0..1 + self.random.below(4) {
                    words.push(self.key());
                }
            }
            "bitop" => self.bitop(words),
            _ => {
                words.push(self.key());
                self.arguments_behind_key(name, words);
            }
        }
    }

    fn arguments_behind_key(&mut self, name: &str, words: &mut Vec<String>) {
        match name {
            "set" => {
                words.push(self.value());
                self.set_options(words);
            }
            "getset" | "setnx" | "append" => words.push(self.value()),
            "setex" | "psetex" => {
                let unit = if name == "setex" { "ex" } else { "px" };
                words.push(self.expiry(unit));
                words.push(self.value());
            }
            "getex" if self.chance(60) => {
                let word = self.pick(&["ex", "px", "exat", "pxat", "persist", "keepttl", "get"]);
                words.push(self.case(word));
                if word.len() <= 4 && word != "get" {
                    words.push(self.expiry(word));
                }
            }
            "incrby" | "decrby" => words.push(self.integer()),
            "incrbyfloat" => words.push(self.float()),
            "getrange" | "substr" => words.extend([self.small(), self.small()]),
            "setrange" => {
                let offset = if self.chance(90) {
                    self.random.below(60).to_string()
                } else {
                    self.integer()
                };
                words.extend([offset, self.value()]);
            }
            "lcs" => self.lcs(words),
            "setbit" => {
                words.push(self.bit_offset());
                words.push(self.pick(&["0", "1", "1", "2", "x", "-1"]).into());
            }
            "getbit" => words.push(self.bit_offset()),
            "bitcount" | "bitpos" => {
                if name == "bitpos" {
                    words.push(self.pick(&["0", "1", "0", "1", "2", "x"]).into());
                }
                let count = self.random.below(4);
                for _ in 0..count.min(2) {
                    words.push(self.small());
                }
                if count == 3 {
                    words.push(self.pick(&["bit", "BYTE", "byte", "Bit", "foo"]).into());
                }
            }
            "bitfield" | "bitfield_ro" => self.bitfield(words, name == "bitfield"),
            "rename" | "renamenx" => words.push(self.key()),
            "copy" => self.copy(words),
            "expire" | "pexpire" | "expireat" | "pexpireat" => {
                words.push(self.expiry(name));
                for _ in 0..self.random.below(3) {
                    words.push(self.pick(&["nx", "XX", "gt", "LT", "foo"]).into());
                }
            }
            _ => {}
        }
    }

    fn scan(&mut self, words: &mut Vec<String>) {
        words.push(
            self.pick(&["0", "0", "0", "x", "-1", "18446744073709551616"])
                .into(),
        );
        words.extend(["count".into(), "1000".into()]);
        for _ in 0..self.random.below(3) {
            let option = self.pick(&["match", "MATCH", "type", "count", "foo"]);
            words.push(option.into());
            if self.chance(95) {
                words.push(match option {
                    "count" => self.pick(&["1000", "0", "x", "-1"]).into(),
                    "type" => self.pick(&["string", "STRING", "list", "foo"]).into(),
                    _ => self.pick(&["*", "a*", "?", "[ab]"]).into(),
                });
            }
        }
    }

    fn flush(&mut self, words: &mut Vec<String>) {
        if self.chance(10) {
            words[0] = self.pick(&["flushall", "flushdb"]).into();
            if self.chance(50) {
                words.push(self.pick(&["async", "SYNC", "foo"]).into());
            }
        } else {
            words[0] = "dbsize".into();
        }
    }

    fn bitop(&mut self, words: &mut Vec<String>) {
        let op = self.pick(&["and", "OR", "xor", "Not", "not", "diff", "foo"]);
        words.push(op.into());
        words.push(self.key());
        for _ in 0..1 + self.random.below(3) {
            words.push(self.key());
        }
    }

    fn bitfield(&mut self, words: &mut Vec<String>, may_write: bool) {
        for _ in 0..self.random.below(4) {
            let op = if may_write || self.chance(5) {
                self.pick(&["get", "set", "incrby", "overflow", "SET", "foo"])
            } else {
                "get"
            };
            words.push(op.into());
            match op {
                "overflow" => {
                    words.push(self.pick(&["wrap", "SAT", "fail", "foo"]).into());
                }
                _ => {
                    words.push(self.field());
                    words.push(self.bit_offset());
                    if op != "get" {
                        words.push(self.integer());
                    }
                }
            }
        }
    }

    fn lcs(&mut self, words: &mut Vec<String>) {
        words.push(self.key());
        for _ in 0..self.random.below(4) {
            let option = self.pick(&["idx", "LEN", "withmatchlen", "minmatchlen", "foo", "idx"]);
            words.push(option.into());
            if option == "minmatchlen" {
                words.push(self.small());
            }
        }
    }

    fn copy(&mut self, words: &mut Vec<String>) {
        words.push(self.key());
        for _ in 0..self.random.below(3) {
            let option = self.pick(&["replace", "REPLACE", "db", "foo"]);
            words.push(option.into());
            if option == "db" {
                words.push(
                    self.pick(&["0", "1", "15", "16", "-1", "x", "4294967296"])
                        .into(),
                );
            }
        }
    }
}

fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis() as u64
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn random_commands_get_the_replies_of_the_reference() {
    let Some(mut redis) = Redis::start() else {
        println!("skipped: no redis-server found");
        return;
    };
    let seed = setting("DIFFERENTIAL_SEED", unix_ms());
    let count = setting("DIFFERENTIAL_COMMANDS", 20_000);
    println!("seed {seed}");
    let mut generator = Generator {
        random: Random::new(seed),
        now_ms: unix_ms(),
    };
    let mut bench = Bench::new(UnixMillis(unix_ms()));
    let mut history: Vec<String> = Vec::new();
    for round in 0..count {
        if round == count / 2 {
            redis.run(&[b"HELLO".to_vec(), b"3".to_vec()]);
            bench.is_resp3 = true;
        }
        let words = generator.command();
        let text: Vec<String> = words
            .iter()
            .map(|word| word.escape_ascii().to_string())
            .collect();
        history.push(text.join(" "));
        let theirs = redis.run(&words);
        bench.now = UnixMillis(unix_ms());
        let ours = bench.run(&words);
        if !is_same(&words, &ours, &theirs) {
            let recent = &history[history.len().saturating_sub(15)..];
            panic!(
                "seed {seed}, command {round}\n{}\nours   {}\ntheirs {}",
                recent.join("\n"),
                ours.escape_ascii(),
                theirs.escape_ascii()
            );
        }
    }
    bench.check();
}
