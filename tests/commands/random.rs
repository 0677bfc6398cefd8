//! Random commands: the same replies with 1, 2 and 4 workers, and as a real Redis where there is one.
//!
//! Method: a seed draws some thousand commands, valid and invalid, over a dozen keys. They are sent in pipelines
//! of random length on one connection, in RESP2 and RESP3, and every reply is compared byte for byte. The
//! reference is a real Redis, or else our server with one worker. What depends on the clock or on chance by its
//! nature is left out (TTL, DBSIZE, RANDOMKEY ...), and where the order of a reply is nobody's business (KEYS,
//! members of a set) it does not count.
//!
//! Each type has keys of its own, under one hash tag, so that commands over several keys run on any number of
//! workers; commands over one key now and then meet a key of another type.

use harness::{Client, Kind, Reply, Setup, server::reference, sirocco};

/// A seed that ever found something is added here.
pub(crate) const SEEDS: [u64; 3] = [7, 1_000_003, 0xfeed_beef];
const COMMANDS: usize = 6000;

/// xorshift64*.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap_or(0) % bound
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const KEYS: [&str; 14] = [
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "g",
    "h",
    "i",
    "key with blank",
    "",
    "{t}a",
    "{t}b",
    "{t}c",
];
const VALUES: [&str; 18] = [
    "0",
    "1",
    "-1",
    "10",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "3.5",
    "1e3",
    "abc",
    "",
    " 1",
    "hello world",
    "\u{1}\u{7f}",
    "0123456789012345678901234567890123456789012345",
    "ohmytext",
    "mynewtext",
    "-0",
];
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "2",
    "-1",
    "-2",
    "7",
    "8",
    "100",
    "-100",
    "1000",
    "4000",
    "abc",
    "1.5",
    "",
    "9223372036854775807",
    "-9223372036854775808",
];
/// Where a value ends up that long: small ones, and those that are refused.
const OFFSETS: [&str; 10] = [
    "0",
    "1",
    "5",
    "7",
    "8",
    "63",
    "100",
    "3000",
    "-1",
    "4294967296",
];
const TIMES: [&str; 8] = [
    "33177117420",
    "33177117421500",
    "1",
    "0",
    "-1",
    "abc",
    "9223372036854775807",
    "4000000000",
];
/// Spans of time, all refused: a valid one would end at another moment in each world.
const NO_TIMES: [&str; 5] = ["0", "-1", "abc", "", "9223372036854775807"];
const FLOATS: [&str; 10] = [
    "0.1", "1.5", "-2.25", "3", "1e3", "abc", "0", "100.125", "-0.1", "inf",
];

const LIST_KEYS: [&str; 4] = ["{l}1", "{l}2", "{l}3", "{l}4"];
const SET_KEYS: [&str; 5] = ["{s}1", "{s}2", "{s}3", "{s}4", "{s}5"];
const MEMBERS: [&str; 16] = [
    "a",
    "b",
    "c",
    "word",
    "",
    "1",
    "2",
    "3",
    "-7",
    "70000",
    "007",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "0123456789012345678901234567890123456789012345678901234567890123",
    "01234567890123456789012345678901234567890123456789012345678901234",
];

/// The shapes of commands: `k` a key, `v` a value, `n` a number, `o` an offset, `t` a point in time, `f` a
/// fraction, `x` a bad span of time, `k*` one to four keys, `kv*` one to four pairs; `s` a set, now and then a
/// key of another type, `S` a set, `S*` one to four of them, `m` a member, `m*` one to six, `i*` many integers;
/// `l` a list, now and then a key of another type, `L` a list, `v*` one to four values, `e` LEFT or
/// RIGHT; anything else as it stands.
const SHAPES: [&[&str]; 3] = [&STRING_SHAPES, &SET_SHAPES, &LIST_SHAPES];

const SET_SHAPES: [&str; 40] = [
    "SADD s m*",
    "SADD s m*",
    "SADD s m*",
    "SADD S i*",
    "SADD S i*",
    "SREM s m*",
    "SREM s m*",
    "SREM S i*",
    "SREM S i*",
    "SCARD s",
    "SISMEMBER s m",
    "SMISMEMBER s m*",
    "SMEMBERS s",
    "SMEMBERS s",
    "SMOVE S S m",
    "SMOVE S S m",
    "SINTER S*",
    "SINTER S*",
    "SUNION S*",
    "SUNION S*",
    "SDIFF S*",
    "SDIFF S*",
    "SINTERSTORE S S*",
    "SUNIONSTORE S S*",
    "SDIFFSTORE S S*",
    "SINTERCARD 2 S S",
    "SINTERCARD n S S LIMIT n",
    "SPOP s 1000",
    "SPOP s x",
    "SRANDMEMBER s 1000",
    "SRANDMEMBER s 0",
    "SRANDMEMBER {s}none n",
    "SSCAN s 0 COUNT 1000",
    "SSCAN s 0 COUNT 1000 MATCH *0*",
    "OBJECT ENCODING s",
    "OBJECT ENCODING s",
    "TYPE s",
    "DEL s",
    "RENAME S S",
    "COPY S S REPLACE",
];

const LIST_SHAPES: [&str; 31] = [
    "DUMP l",
    "LPUSH l v*",
    "RPUSH l v*",
    "RPUSH L v*",
    "RPUSH L v*",
    "LPUSHX l v",
    "RPUSHX l v*",
    "LPOP l",
    "RPOP l",
    "LPOP l n",
    "RPOP l n",
    "LLEN l",
    "LINDEX l n",
    "LRANGE l n n",
    "LRANGE l 0 -1",
    "LSET l n v",
    "LINSERT l BEFORE v v",
    "LINSERT l AFTER v v",
    "LREM l n v",
    "LTRIM l n n",
    "LPOS l v",
    "LPOS l v RANK n",
    "LPOS l v COUNT n MAXLEN n",
    "LMOVE L L e e",
    "RPOPLPUSH L L",
    "LMPOP 1 l e",
    "LMPOP 2 L L e COUNT n",
    "OBJECT ENCODING l",
    "DEL l",
    "RENAME L L",
    "COPY L L REPLACE",
];

const STRING_SHAPES: [&str; 81] = [
    "DUMP k",
    "DUMP k",
    "RESTORE k n v",
    "RESTORE k t v REPLACE ABSTTL",
    "SET k v",
    "SET k v",
    "SET k v NX",
    "SET k v XX",
    "SET k v GET",
    "SET k v NX GET",
    "SET k v PXAT t",
    "SET k v EXAT t",
    "SET k v KEEPTTL",
    "SET k v EX x",
    "GET k",
    "GET k",
    "GETDEL k",
    "GETEX k",
    "GETEX k EXAT t",
    "GETEX k PERSIST",
    "GETSET k v",
    "SETNX k v",
    "APPEND k v",
    "STRLEN k",
    "GETRANGE k n n",
    "SUBSTR k n n",
    "SETRANGE k o v",
    "INCR k",
    "DECR k",
    "INCRBY k n",
    "DECRBY k n",
    "INCRBYFLOAT k f",
    "MGET k*",
    "MSET kv*",
    "MSETNX kv*",
    "LCS k k",
    "LCS k k LEN",
    "LCS k k IDX WITHMATCHLEN",
    "LCS k k IDX MINMATCHLEN n",
    "SETBIT k o 1",
    "SETBIT k o 0",
    "SETBIT k o n",
    "GETBIT k o",
    "BITCOUNT k",
    "BITCOUNT k n n",
    "BITCOUNT k n n BIT",
    "BITPOS k 0",
    "BITPOS k 1 n",
    "BITPOS k 0 n n",
    "BITPOS k 1 n n BIT",
    "BITOP AND k k*",
    "BITOP OR k k*",
    "BITOP XOR k k*",
    "BITOP NOT k k",
    "BITFIELD k GET u8 o",
    "BITFIELD k SET i16 o n GET u4 o",
    "BITFIELD k OVERFLOW SAT INCRBY u7 o n INCRBY i5 o n",
    "BITFIELD k OVERFLOW FAIL INCRBY i64 o n",
    "BITFIELD_RO k GET u63 o",
    "DEL k*",
    "UNLINK k*",
    "PFADD k v v",
    "PFCOUNT k",
    "MOVE k n",
    "EXISTS k*",
    "TOUCH k*",
    "TYPE k",
    "EXPIREAT k t",
    "PEXPIREAT k t",
    "EXPIREAT k t NX",
    "PEXPIREAT k t GT",
    "EXPIRETIME k",
    "PEXPIRETIME k",
    "PERSIST k",
    "RENAME k k",
    "RENAMENX k k",
    "COPY k k",
    "COPY k k REPLACE",
    "OBJECT ENCODING k",
    "KEYS *",
    "SETEX k x v",
];

fn draw(random: &mut Random) -> Vec<String> {
    let shapes = SHAPES[random.below(SHAPES.len())];
    let shape = random.pick(shapes);
    let mut args = Vec::new();
    for word in shape.split(' ') {
        match word {
            "l" | "L" => args.push(random.pick(&LIST_KEYS).to_owned()),
            "e" => args.push(random.pick(&["LEFT", "RIGHT"]).to_owned()),
            "v*" => (0..=random.below(4)).for_each(|_| args.push(random.pick(&VALUES).to_owned())),
            "k" if random.below(40) == 0 => {
                let others = [&SET_KEYS[..], &LIST_KEYS].concat();
                args.push(random.pick(&others).to_owned());
            }
            "k" => args.push(random.pick(&KEYS).to_owned()),
            "v" => args.push(random.pick(&VALUES).to_owned()),
            "n" => args.push(random.pick(&NUMBERS).to_owned()),
            "o" => args.push(random.pick(&OFFSETS).to_owned()),
            "t" => args.push(random.pick(&TIMES).to_owned()),
            "x" => args.push(random.pick(&NO_TIMES).to_owned()),
            "f" => args.push(random.pick(&FLOATS).to_owned()),
            "s" | "S" => args.push(random.pick(&SET_KEYS).to_owned()),
            "S*" => {
                (0..=random.below(4)).for_each(|_| args.push(random.pick(&SET_KEYS).to_owned()));
            }
            "m" => args.push(random.pick(&MEMBERS).to_owned()),
            "m*" => {
                (0..=random.below(6)).for_each(|_| args.push(random.pick(&MEMBERS).to_owned()));
            }
            "i*" => (0..=random.below(200)).for_each(|_| args.push(random.below(700).to_string())),
            "k*" => (0..=random.below(4)).for_each(|_| args.push(random.pick(&KEYS).to_owned())),
            "kv*" => (0..=random.below(4)).for_each(|_| {
                args.push(random.pick(&KEYS).to_owned());
                args.push(random.pick(&VALUES).to_owned());
            }),
            literal => args.push(literal.to_owned()),
        }
    }
    // Now and then an argument too many or too few.
    match random.below(60) {
        // It may be a key, which then has to live where the others do.
        0 => args.push(if shape.contains("S*") {
            "{s}more".to_owned()
        } else if shape.starts_with("PFCOUNT") {
            args[1].clone()
        } else {
            "more".to_owned()
        }),
        // Without its count a draw is a matter of chance.
        1 if args.len() > 1 && !["SPOP", "SRANDMEMBER"].contains(&args[0].as_str()) => {
            args.pop();
        }
        _ => {}
    }
    args
}

/// Commands whose replies, or arrays in them, come in any order.
const UNORDERED: [&str; 8] = [
    "KEYS",
    "SMEMBERS",
    "SINTER",
    "SUNION",
    "SDIFF",
    "SPOP",
    "SRANDMEMBER",
    "SSCAN",
];

fn sort(reply: &mut Reply) {
    if let Reply::Many(_, items) = reply {
        items.iter_mut().for_each(sort);
        items.sort_by_key(Reply::render);
    }
}

fn play(kind: Kind, commands: &[Vec<String>], resp3: bool, seed: u64, blur: Blur) -> Vec<Reply> {
    let server = Setup::new(kind).start();
    let mut client: Client = server.connect();
    if resp3 {
        client.run("HELLO 3");
    }
    let mut random = Random(seed ^ 0xabcd);
    let mut replies = Vec::with_capacity(commands.len());
    let mut rest = commands;
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(rest.len().min(1 + random.below(40)));
        rest = later;
        let mut bytes = Vec::new();
        for command in batch {
            harness::client::encode_command(command, &mut bytes);
        }
        client.send_raw(&bytes).expect("the connection is open");
        for command in batch {
            let reply = client.read(harness::PATIENCE);
            let mut reply =
                reply.unwrap_or_else(|error| panic!("{command:?}: {error}\n{}", server.log()));
            blur(command, &mut reply);
            replies.push(reply);
        }
    }
    replies
}

/// Takes out of a reply what may differ.
pub(crate) type Blur = fn(&[String], &mut Reply);

/// The order of members does not count.
fn sort_members(command: &[String], reply: &mut Reply) {
    if UNORDERED.contains(&command[0].as_str()) {
        sort(reply);
    }
}

#[test]
fn random_commands_have_the_same_replies_everywhere() {
    for seed in SEEDS {
        let mut random = Random(seed);
        let commands: Vec<Vec<String>> = (0..COMMANDS).map(|_| draw(&mut random)).collect();
        let keys = [&KEYS[..], &SET_KEYS, &LIST_KEYS].concat();
        assert_same_everywhere(seed, &commands, &keys, sort_members);
    }
}

/// Plays commands, which are about some of `keys`, to all worlds in both protocols, and compares the replies, and
/// now and then the digest of all data.
pub(crate) fn assert_same_everywhere(
    seed: u64,
    commands: &[Vec<String>],
    keys: &[&str],
    blur: Blur,
) {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    // The reference's digest has keys whose time has passed until somebody looks at them.
    let last: [Vec<String>; 2] = [
        words(&[&["EXISTS"][..], keys].concat()),
        words(&["DEBUG", "DIGEST"]),
    ];
    let with_digest = |some: &[Vec<String>]| [some, &last].concat();
    let commands: Vec<Vec<String>> = commands.chunks(500).flat_map(with_digest).collect();
    let commands = commands.as_slice();
    for resp3 in [false, true] {
        let ours = |workers| Kind::sirocco(sirocco!(), workers);
        let wanted = play(
            reference().unwrap_or_else(|| ours(1)),
            commands,
            resp3,
            seed,
            blur,
        );
        for workers in [1, 2, 4] {
            let got = play(ours(workers), commands, resp3, seed, blur);
            for (place, (wanted, got)) in wanted.iter().zip(&got).enumerate() {
                assert!(
                    wanted == got,
                    "seed {seed}, RESP3 {resp3}, {workers} workers, command {place} {:?}:\n\
                     wanted {}\ngot    {}\nbefore it, about the same keys:\n{}",
                    commands[place],
                    wanted.render(),
                    got.render(),
                    history(commands, place, keys)
                );
            }
        }
    }
}

/// The last commands before a place that name one of its keys.
fn history(commands: &[Vec<String>], place: usize, keys: &[&str]) -> String {
    let touches = |command: &&Vec<String>| {
        commands[place]
            .iter()
            .skip(1)
            .any(|arg| keys.contains(&arg.as_str()) && command[1..].contains(arg))
    };
    let last: Vec<String> = commands[..place]
        .iter()
        .rev()
        .filter(touches)
        .take(8)
        .map(|command| format!("  {command:?}"))
        .collect();
    last.into_iter().rev().collect::<Vec<_>>().join("\n")
}
