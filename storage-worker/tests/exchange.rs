//! Payloads go both ways: what we dump, a real Redis restores and dumps the same, and the other way round.
//!
//! Method: random commands make a value of random type and form, in our engine and in Redis. Ours is
//! dumped, restored there and dumped again, and theirs here. What is packed or in order must come back
//! byte for byte; tables, whose order is everybody's own, must come back with the same elements.
//!
//! Where no `redis-server` is found (`REDIS_SERVER` names one, otherwise the search path), the test says
//! so and passes. `EXCHANGE_VALUES` sets how many values are exchanged, `EXCHANGE_SEED` the seed.

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

const VALUES: u64 = 300;

type Words = Vec<Vec<u8>>;

fn words(text: &str) -> Words {
    text.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

/// Makes values by commands.
struct Maker(Random);

impl Maker {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// Text, integers, and what can be compressed.
    fn element(&mut self) -> Vec<u8> {
        match self.below(8) {
            0 => self.below(100).to_string().into(),
            1 => (self.0.next_u64() as i64 >> self.below(60))
                .to_string()
                .into(),
            2 => vec![b'a' + self.below(3) as u8; self.below(90) as usize],
            3 => b"some words ".repeat(1 + self.below(9) as usize),
            4 => (0..self.below(70))
                .map(|_| self.0.next_u64() as u8)
                .collect(),
            _ => format!("element:{}", self.below(10_000)).into(),
        }
    }

    /// Few or many.
    fn count(&mut self) -> u64 {
        let most = [3, 20, 120, 700][self.below(4) as usize];
        1 + self.below(most)
    }

    fn command(&mut self, name: &str, count: u64, each: impl Fn(&mut Self) -> Words) -> Words {
        let mut command = words(name);
        for _ in 0..count {
            command.extend(each(self));
        }
        command
    }

    /// Commands that make a value at the key `k`.
    fn value(&mut self) -> Vec<Words> {
        let count = self.count();
        match self.below(7) {
            0 => {
                let mut set = words("SET k");
                let times = 1 + self.below(30) as usize;
                set.push(self.element().repeat(times));
                vec![set]
            }
            1 => vec![self.command("RPUSH k", count, |maker| vec![maker.element()])],
            2 => vec![self.command("SADD k", count, |maker| vec![maker.element()])],
            3 => {
                let number = |maker: &mut Self| {
                    let shift = maker.below(60);
                    vec![(maker.0.next_u64() as i64 >> shift).to_string().into()]
                };
                vec![self.command("SADD k", count, number)]
            }
            4 => vec![self.command("ZADD k", count, |maker| {
                let score = maker.below(1000) as f64 / 8.0 - 20.0;
                vec![score.to_string().into(), maker.element()]
            })],
            5 => self.hash(count),
            _ => self.stream(count),
        }
    }

    fn hash(&mut self, count: u64) -> Vec<Words> {
        let name = |maker: &mut Self| format!("field:{}", maker.below(2000)).into_bytes();
        let mut commands =
            vec![self.command("HSET k", count, |maker| vec![name(maker), maker.element()])];
        if self.below(2) == 0 {
            let fields: Words = commands[0][2..].iter().step_by(2).cloned().collect();
            for field in fields.iter().take(self.below(9) as usize) {
                let at = 4_000_000_000_000 + self.below(1000) * self.below(1_000_000);
                let mut expire = words(&format!("HPEXPIREAT k {at} FIELDS 1"));
                expire.push(field.clone());
                commands.push(expire);
            }
        }
        commands
    }

    /// Without consumers, whose times are everybody's own.
    fn stream(&mut self, count: u64) -> Vec<Words> {
        let mut commands = Vec::new();
        for id in 1..=count {
            let mut add = words(&format!("XADD k {id}-{} first", self.below(5) + 1));
            add.push(self.element());
            if self.below(4) == 0 {
                add.extend([b"second".to_vec(), self.element()]);
            }
            commands.push(add);
            if self.below(5) == 0 {
                commands.push(words(&format!("XDEL k {id}-1")));
            }
        }
        for group in 0..self.below(3) {
            let last = self.below(count + 1);
            commands.push(words(&format!("XGROUP CREATE k group{group} {last}-0")));
        }
        commands
    }
}

/// The bytes of a bulk.
fn bulk(reply: &[u8]) -> Vec<u8> {
    let header = reply.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    assert_eq!(reply[0], b'$', "{}", String::from_utf8_lossy(reply));
    reply[header..reply.len() - 2].to_vec()
}

/// Replies of a server to a few questions about the value at `k`; sorted, where order does not count.
fn facts(run: &mut impl FnMut(&[Vec<u8>]) -> Vec<u8>) -> Words {
    let kind = run(&words("TYPE k"));
    let questions: &[&str] = match &kind[..] {
        b"+string\r\n" => &["GET k"],
        b"+list\r\n" => &["LRANGE k 0 -1"],
        b"+set\r\n" => &["SMEMBERS k"],
        b"+zset\r\n" => &["ZRANGE k 0 -1 WITHSCORES"],
        b"+hash\r\n" => &["HGETALL k"],
        _ => &["XRANGE k - +", "XINFO GROUPS k"],
    };
    let is_ordered = !matches!(&kind[..], b"+set\r\n" | b"+hash\r\n");
    let mut facts = vec![kind];
    for question in questions {
        let reply = run(&words(question));
        if is_ordered {
            facts.push(reply);
        } else {
            let lines = reply.split(|&byte| byte == b'\n');
            let mut lines: Words = lines.map(<[u8]>::to_vec).collect();
            lines.sort();
            facts.extend(lines);
        }
    }
    facts
}

/// Types that are written in the order of a table.
fn is_table(payload: &[u8]) -> bool {
    matches!(payload[0], 2 | 4 | 24)
}

fn restore(payload: &[u8]) -> Words {
    let mut command = words("RESTORE k 0");
    command.extend([payload.to_vec(), b"REPLACE".to_vec()]);
    command
}

#[test]
fn payloads_go_both_ways() {
    let Some(mut redis) = Redis::start() else {
        eprintln!("no redis-server here: nothing to exchange payloads with");
        return;
    };
    let number = |name: &str, usual| {
        let set = std::env::var(name).ok();
        set.map_or(usual, |text| text.parse().unwrap())
    };
    let (values, seed) = (
        number("EXCHANGE_VALUES", VALUES),
        number("EXCHANGE_SEED", 1),
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut bench = Bench::new(UnixMillis(now.as_millis() as u64));
    let mut maker = Maker(Random::new(seed));
    let limits = "CONFIG SET stream-node-max-entries 100 hash-max-listpack-entries 512";
    assert_eq!(redis.run(&words(limits)), b"+OK\r\n");
    for round in 0..values {
        let delete = words("DEL k");
        bench.run(&delete);
        redis.run(&delete);
        let commands = maker.value();
        let name = format!(
            "seed {seed}, round {round}: {}",
            String::from_utf8_lossy(&commands[0][0])
        );
        for command in &commands {
            assert_eq!(bench.run(command), redis.run(command), "{name}");
        }
        let (dump, encoding) = (words("DUMP k"), words("OBJECT ENCODING k"));
        let (ours, theirs) = (bulk(&bench.run(&dump)), bulk(&redis.run(&dump)));
        assert_eq!(ours[0], theirs[0], "{name}");
        assert!(is_table(&ours) || ours == theirs, "{name}: DUMP");
        assert_eq!(bench.run(&encoding), redis.run(&encoding), "{name}");
        let expected = facts(&mut |words| bench.run(words));
        let is_same = facts(&mut |words| redis.run(words)) == expected;
        assert!(is_same, "{name}: made by commands");
        // Each takes the other's.
        assert_eq!(redis.run(&restore(&ours)), b"+OK\r\n", "{name}");
        assert_eq!(bench.run(&restore(&theirs)), b"+OK\r\n", "{name}");
        bench.check();
        assert_eq!(bench.run(&encoding), redis.run(&encoding), "{name}");
        let is_same = facts(&mut |words| redis.run(words)) == expected;
        assert!(is_same, "{name}: ours, restored by Redis");
        let is_same = facts(&mut |words| bench.run(words)) == expected;
        assert!(is_same, "{name}: restored by us");
        let (ours, theirs) = (bulk(&bench.run(&dump)), bulk(&redis.run(&dump)));
        assert!(is_table(&ours) || ours == theirs, "{name}: DUMP again");
    }
}
