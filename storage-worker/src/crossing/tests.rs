//! The same commands over one keyspace and over three: replies and data must be the same.

use super::needs;
use crate::engine::Engine;
use crate::keyspace::{self, Keyspace};
use crate::neighbours::{Neighbour, Neighbours};
use crate::settings::EngineSettings;
use proptest::prelude::*;
use proto::catalogue::{self, CommandRef, Lookup, StorageCommand};
use proto::frame::{Args, RequestHeader, RequestKind, flags};
use proto::resp::reply::ReplyWriter;
use proto::settings::Settings;
use proto::slot::slot_of;
use proto::time::UnixMillis;
use shm::arena::Mapping;
use std::rc::Rc;

const SEED: u64 = 11;
const NOW: UnixMillis = UnixMillis(1_700_000_000_000);
const ARENA_BYTES: u64 = 1 << 30;

/// One engine, alone or with two neighbours.
struct World {
    engine: Engine,
    home: Rc<Mapping>,
}

fn arena() -> Mapping {
    let arena = Mapping::private_anywhere(ARENA_BYTES, keyspace::fingerprint()).unwrap();
    arena.enter();
    arena
}

impl World {
    fn alone() -> Self {
        let home = Rc::new(arena());
        let settings = EngineSettings::new(&Settings::default());
        let engine = Engine::new(Keyspace::create(16, SEED), settings, SEED, 1);
        Self { engine, home }
    }

    fn of_three() -> Self {
        let mut world = Self::alone();
        let owners: Box<[u8]> = (0..1 << 14).map(|slot| (slot % 3) as u8).collect();
        let mut near = Neighbours::new(0, Rc::clone(&world.home), owners, 3);
        for worker in [1, 2] {
            let arena = arena();
            let keyspace = Keyspace::create(16, SEED);
            near.insert(worker, Neighbour { keyspace, arena });
        }
        world.home.enter();
        world.engine.scripts.surroundings.near = Some(Box::new(near));
        world
    }

    fn run(&mut self, words: &[&str], is_resp3: bool) -> String {
        self.home.enter();
        let sub = words.get(1).map(|word| word.as_bytes());
        let Lookup::Found(spec, _) = catalogue::find(words[0].as_bytes(), sub) else {
            panic!("{words:?}")
        };
        let CommandRef::Storage(command) = spec.command else {
            panic!("{words:?}")
        };
        assert!(spec.arity_fits(words.len()), "{words:?}");
        let mut body = Vec::new();
        for word in &words[1..] {
            body.extend_from_slice(&(word.len() as u32).to_le_bytes());
            body.extend_from_slice(word.as_bytes());
        }
        let request = RequestHeader {
            len: 0,
            kind: RequestKind::Request,
            flags: if is_resp3 { flags::RESP3 } else { 0 },
            command: command as u16,
            connection: 0,
            generation: 0,
            sequence: 0,
            slot: words.get(1).map_or(0, |word| slot_of(word.as_bytes())),
            database: 0,
            argc: words.len() as u32,
            part: 0,
        };
        self.engine.keyspace.set_now(NOW);
        let mut reply = Vec::new();
        if self.engine.scripts.surroundings.near.is_some() {
            self.cross(&request, command, &body, &mut reply);
        } else {
            let writer = ReplyWriter::to_vec(&mut reply, is_resp3);
            self.engine
                .execute(&request, command, &body, None, NOW, writer);
            if self.engine.effects.waking.block.take().is_some() {
                reply = b"waits".to_vec();
            }
        }
        String::from_utf8_lossy(&reply).into_owned()
    }

    fn cross(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        reply: &mut Vec<u8>,
    ) {
        let mut spans = Vec::new();
        let args = Args::new(body, request.argc, &mut spans).unwrap();
        let near = self.engine.scripts.surroundings.near.as_mut().unwrap();
        // Only what it says it needs: a look anywhere else would fail an assertion.
        for worker in needs(near, command, args, false)
            .iter()
            .filter(|&it| it != 0)
        {
            assert!(near.open(worker, NOW));
        }
        let (_, block) = self.engine.cross(request, command, body, NOW, reply);
        if block.is_some() {
            *reply = b"waits".to_vec();
        }
        self.engine
            .scripts
            .surroundings
            .near
            .as_mut()
            .unwrap()
            .close();
    }

    /// All keyspaces are whole, and none has a key of another one.
    fn check(&mut self) {
        self.home.enter();
        self.engine.keyspace.check_invariants().unwrap();
        let Some(near) = &mut self.engine.scripts.surroundings.near else {
            return;
        };
        for worker in 0..3 {
            if worker != 0 {
                assert!(near.open(worker, NOW));
            }
            let own = &mut self.engine.keyspace;
            let names = near.with(worker, own, |keyspace| {
                keyspace.check_invariants().unwrap();
                assert!(!keyspace.has_guests());
                let mut names = Vec::new();
                for db in 0..2 {
                    keyspace.for_each(db, NOW, |found| names.push(found.key().to_vec()));
                }
                names
            });
            for name in names {
                assert_eq!(near.owner_of(&name), worker, "a guest has stayed");
            }
        }
        near.close();
    }
}

/// Keys of all owners, and of one by a tag.
const KEYS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "{a}1", "{a}2"];
const MEMBERS: [&str; 6] = ["1", "2", "3", "10", "x", "y"];

fn words(text: &str, picks: &mut impl Iterator<Item = usize>) -> Vec<String> {
    text.split(' ')
        .map(|word| match word {
            "K" => KEYS[picks.next().unwrap() % KEYS.len()].to_owned(),
            "M" => MEMBERS[picks.next().unwrap() % MEMBERS.len()].to_owned(),
            "N" => (picks.next().unwrap() % 5).to_string(),
            word => word.to_owned(),
        })
        .collect()
}

const COMMANDS: &[&str] = &[
    "SET K M",
    "SET K M",
    "GET K",
    "INCR K",
    "DEL K",
    "DEL K K K",
    "UNLINK K K",
    "EXISTS K K K K",
    "TOUCH K K",
    "MSET K M K M K M",
    "MSET K M",
    "MSET K M K M K",
    "MSETNX K M K M",
    "MGET K K K K K",
    "RENAME K K",
    "RENAMENX K K",
    "COPY K K",
    "COPY K K REPLACE",
    "COPY K K DB 1",
    "COPY K K DB 99",
    "COPY K K NOPE",
    "COPY K K DB 1 REPLACE",
    "RPUSH K M M M",
    "LPUSH K M",
    "LMOVE K K LEFT RIGHT",
    "LMOVE K K RIGHT LEFT",
    "LMOVE K K UP LEFT",
    "RPOPLPUSH K K",
    "BLMOVE K K LEFT LEFT 1",
    "BLMOVE K K LEFT LEFT x",
    "BRPOPLPUSH K K 1",
    "BRPOPLPUSH K K -1",
    "LMPOP 3 K K K LEFT",
    "LMPOP 2 K K RIGHT COUNT 2",
    "LMPOP 2 K K NOPE",
    "BLPOP K K K 1",
    "BRPOP K K x",
    "BLMPOP 1 2 K K LEFT",
    "SADD K M M M",
    "SADD K M",
    "SMOVE K K M",
    "SUNION K K K",
    "SINTER K K",
    "SDIFF K K K",
    "SUNIONSTORE K K K",
    "SINTERSTORE K K K",
    "SDIFFSTORE K K K",
    "SINTERCARD 2 K K",
    "SINTERCARD 2 K K LIMIT 1",
    "SMEMBERS K",
    "TYPE K",
    "ZADD K N M N M",
    "ZADD K N M",
    "ZUNION 2 K K WITHSCORES",
    "ZINTER 2 K K",
    "ZDIFF 2 K K",
    "ZUNIONSTORE K 2 K K",
    "ZUNIONSTORE K 2 K K WEIGHTS 2 3 AGGREGATE MAX",
    "ZINTERSTORE K 2 K K",
    "ZDIFFSTORE K 2 K K",
    "ZINTERCARD 2 K K",
    "ZRANGESTORE K K 0 1",
    "ZRANGESTORE K K 5 9",
    "ZMPOP 3 K K K MIN",
    "BZPOPMIN K K 1",
    "BZMPOP 1 2 K K MAX",
    "ZRANGE K 0 -1 WITHSCORES",
    "PFADD K M M",
    "PFCOUNT K K K",
    "PFMERGE K K K",
    "BITOP AND K K K",
    "BITOP NOT K K",
    "BITOP NOT K K K",
    "BITOP XOR K K K K",
    "LCS K K",
    "LCS K K LEN",
    "SORT K ALPHA",
    "SORT K BY w_* GET # GET v_*",
    "SORT K ALPHA STORE K",
    "SORT K BY K GET {a}*",
    "SORT_RO K BY K ALPHA",
    "SET w_1 N",
    "SET w_2 N",
    "SET v_1 N",
    "SET v_x N",
    "GEOADD K 1 1 M 2 2 M",
    "GEOSEARCHSTORE K K FROMLONLAT 1 1 BYRADIUS 500 km",
    "GEORADIUS K 1 1 500 km STORE K",
    "XADD K 1-N f M",
    "XADD K 2-N f M",
    "XREAD STREAMS K K 0 0",
    "XREAD COUNT 1 STREAMS K K K 0 0 0",
    "XREAD BLOCK 0 STREAMS K K $ $",
    "XREAD STREAMS K K 0",
    "XGROUP CREATE K g 0",
    "XGROUP CREATE K g 0 MKSTREAM",
    "XREADGROUP GROUP g c STREAMS K K > >",
    "XREADGROUP GROUP g c COUNT 1 STREAMS K K > 0",
    "EXPIRE K 100",
    "TTL K",
    "PERSIST K",
    "OBJECT ENCODING K",
    "HSET K M M",
    "DBSIZE",
    "SWAPDB 0 1",
    "FLUSHDB",
    "FLUSHALL NOPE",
    "STRLEN K",
    "LRANGE K 0 -1",
    "XRANGE K - +",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn several_keyspaces_are_as_one(
        script in prop::collection::vec(
            (0..COMMANDS.len(), prop::collection::vec(0usize..1000, 12), any::<bool>()),
            1..150,
        ),
    ) {
        let (mut one, mut three) = (World::alone(), World::of_three());
        for (command, picks, is_resp3) in script {
            let words = words(COMMANDS[command], &mut picks.into_iter().cycle());
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let want = one.run(&words, is_resp3);
            let got = three.run(&words, is_resp3);
            prop_assert_eq!(sorted(words[0], want), sorted(words[0], got), "{:?}", words);
        }
        for key in KEYS {
            for command in ["TYPE", "TTL", "DUMP"] {
                let (want, got) = (one.run(&[command, key], false), three.run(&[command, key], false));
                let is_unordered = command == "DUMP" && one.run(&["TYPE", key], false) == "+set\r\n";
                prop_assert!(is_unordered || want == got, "{command} {key}: {want:?} {got:?}");
            }
        }
        one.check();
        three.check();
    }
}

/// Sets have no order.
fn sorted(command: &str, reply: String) -> String {
    if !matches!(command, "SUNION" | "SINTER" | "SDIFF" | "SMEMBERS" | "KEYS") {
        return reply;
    }
    let mut lines: Vec<&str> = reply.split("\r\n").collect();
    lines.sort_unstable();
    lines.join(" ")
}

#[test]
fn keys_and_counts_of_all_workers() {
    let mut world = World::of_three();
    let set: Vec<&str> = ["MSET"]
        .into_iter()
        .chain(KEYS.iter().flat_map(|key| [*key, "1"]))
        .collect();
    assert_eq!(world.run(&set, false), "+OK\r\n");
    assert_eq!(world.run(&["DBSIZE"], false), ":8\r\n");
    let keys = world.run(&["KEYS", "*"], false);
    assert!(keys.starts_with("*8\r\n"), "{keys}");
    assert!(KEYS.iter().all(|key| keys.contains(&format!("{key}\r\n"))));
    assert!(world.run(&["RANDOMKEY"], false).starts_with('$'));
    assert_eq!(world.run(&["FLUSHALL"], false), "+OK\r\n");
    assert_eq!(world.run(&["RANDOMKEY"], false), "$-1\r\n");
    world.check();
}

#[test]
fn guests_of_a_dead_visitor_are_taken_away() {
    let mut world = World::of_three();
    let mut names = (0..).map(|number| format!("key:{number}"));
    let foreign = names.find(|key| slot_of(key.as_bytes()) % 3 == 2).unwrap();
    let near = world.engine.scripts.surroundings.near.as_mut().unwrap();
    assert!(near.open(1, NOW));
    near.with(1, &mut world.engine.keyspace, |keyspace| {
        keyspace.expect_guests();
        let key = keyspace::Key::new(SEED, 0, slot_of(foreign.as_bytes()), foreign.as_bytes());
        keyspace.set_string(
            &key,
            keyspace::StringValue::Auto(b"x"),
            keyspace::Expiry::Clear,
        );
    });
    near.close();
    assert!(near.open(1, NOW));
    near.close();
    world.check();
}
