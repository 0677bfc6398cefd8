//! What is asked of the server: commands, their mix, the shape of keys and values, and what a right
//! reply looks like.
//!
//! Requests are rendered once into *images* of a whole batch (`pipeline` commands in one block of
//! bytes); before a batch is sent, only the random digits inside it are overwritten. A mix with a
//! cycle of C commands and batches of P needs C / gcd(C, P) different images; each connection walks
//! through them in turn, starting at a place of its own.
//!
//! Keys are a prefix of four bytes, zeros, and a random number, together `key_size` bytes. Each
//! family of commands has its own prefix, so that types never collide and a GET always meets a
//! value of the size that the pre-fill gave it:
//!
//! ```text
//!   key:  GET SET MGET MSET        ctr:  INCR       snx:  SETNX      apd:  APPEND
//!   lst:  LPUSH RPUSH              set:  SADD       hsh:  HSET
//! ```
//!
//! Cost: 2 to 5 ns per patched key; no allocation after start.
//! Not here: sending (`closed_loop`, `open_loop`), counting replies (`reply_skipper`).

use std::fmt;
use std::str::FromStr;

use crate::error::BenchError;
use crate::random::Random;
use crate::reply_skipper::Reply;

/// Members of a set and fields of a hash that SADD and HSET choose from, per key: few enough that
/// collections stay in their compact encodings (the servers switch beyond 128).
const ELEMENTS_PER_KEY: u64 = 64;

/// Bytes that one APPEND adds unless the value size is smaller: with 256 the values of a long run
/// would outgrow memory.
const APPEND_SIZE_MAX: usize = 16;

/// Longest cycle of a mix, so that its images stay in the processor's cache.
const MIX_CYCLE_MAX: u32 = 1_000;

/// A command that the generator can send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// SET key value
    Set,
    /// GET key
    Get,
    /// MGET key ... (`keys_per_command` of them)
    MGet,
    /// SETNX key value
    SetNx,
    /// APPEND key value
    Append,
    /// INCR key
    Incr,
    /// LPUSH key value
    LPush,
    /// RPUSH key value
    RPush,
    /// SADD key member
    SAdd,
    /// HSET key field value
    HSet,
    /// MSET key value ... (`keys_per_command` pairs)
    MSet,
    /// PING
    Ping,
}

impl Command {
    /// Every command, in the order of the reports.
    pub const ALL: [Self; 12] = [
        Self::Set,
        Self::Get,
        Self::MGet,
        Self::SetNx,
        Self::Append,
        Self::Incr,
        Self::LPush,
        Self::RPush,
        Self::SAdd,
        Self::HSet,
        Self::MSet,
        Self::Ping,
    ];

    /// The name as clients send it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Set => "SET",
            Self::Get => "GET",
            Self::MGet => "MGET",
            Self::SetNx => "SETNX",
            Self::Append => "APPEND",
            Self::Incr => "INCR",
            Self::LPush => "LPUSH",
            Self::RPush => "RPUSH",
            Self::SAdd => "SADD",
            Self::HSet => "HSET",
            Self::MSet => "MSET",
            Self::Ping => "PING",
        }
    }

    /// Whether it needs the key space to be filled to do real work.
    pub fn reads_values(self) -> bool {
        matches!(self, Self::Get | Self::MGet | Self::Set | Self::MSet)
    }

    /// Whether a long run of it grows the data without bound.
    pub fn grows(self) -> bool {
        matches!(self, Self::Append | Self::LPush | Self::RPush)
    }
}

/// Commands and how many of each make up one cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mix(Vec<(Command, u32)>);

impl Mix {
    /// A mix of one command only.
    pub fn only(command: Command) -> Self {
        Self(vec![(command, 1)])
    }

    /// `sets` SETs, then `gets` GETs.
    pub fn set_get(sets: u32, gets: u32) -> Self {
        Self(vec![(Command::Set, sets), (Command::Get, gets)])
    }

    /// The different commands in it.
    pub fn commands(&self) -> impl Iterator<Item = Command> + '_ {
        self.0.iter().map(|&(command, _)| command)
    }

    /// One cycle, written out.
    fn cycle(&self) -> Vec<Command> {
        self.0
            .iter()
            .flat_map(|&(command, count)| std::iter::repeat_n(command, count as usize))
            .collect()
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(command, _)] = self.0.as_slice() {
            return out.write_str(command.name());
        }
        for (position, (command, count)) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(out, "{comma}{}:{count}", command.name())?;
        }
        Ok(())
    }
}

impl FromStr for Mix {
    type Err = String;

    /// `GET`, `SET:1,GET:10`, or `1:10` for that many SETs and GETs.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        if let [sets, gets] = parts.as_slice()
            && let (Ok(sets), Ok(gets)) = (sets.parse(), gets.parse())
        {
            return Self::checked(vec![(Command::Set, sets), (Command::Get, gets)]);
        }
        let mut mix = Vec::new();
        for part in text.split(',') {
            let (name, count) = part.split_once(':').unwrap_or((part, "1"));
            let command = Command::ALL
                .into_iter()
                .find(|command| command.name().eq_ignore_ascii_case(name.trim()))
                .ok_or_else(|| {
                    let names: Vec<&str> =
                        Command::ALL.iter().map(|command| command.name()).collect();
                    format!(
                        "unknown command '{name}'; known are {} and mixes such as 1:10",
                        names.join(" ")
                    )
                })?;
            let count = count
                .trim()
                .parse()
                .map_err(|_| format!("'{count}' is not a count"))?;
            mix.push((command, count));
        }
        Self::checked(mix)
    }
}

impl Mix {
    fn checked(mut mix: Vec<(Command, u32)>) -> Result<Self, String> {
        mix.retain(|&(_, count)| count > 0);
        let cycle = mix
            .iter()
            .fold(0_u32, |sum, &(_, count)| sum.saturating_add(count));
        match cycle {
            0 => Err("the mix is empty".into()),
            1..=MIX_CYCLE_MAX => Ok(Self(mix)),
            _ => Err(format!(
                "the counts of a mix may add up to at most {MIX_CYCLE_MAX}"
            )),
        }
    }
}

/// Sizes and ranges of what is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Size of the key space: keys are drawn from `0..keys`.
    pub keys: u64,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// Keys of one MGET or MSET.
    pub keys_per_command: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            keys: 1_000_000,
            key_size: 16,
            value_size: 256,
            keys_per_command: 10,
        }
    }
}

impl Shape {
    /// Refuses shapes that cannot be rendered.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        let least = PREFIX_SIZE + digits_of(self.keys.saturating_sub(1));
        if self.keys == 0 || self.keys_per_command == 0 {
            return Err(BenchError::Usage(
                "--keys and --keys-per-command must be at least 1".into(),
            ));
        }
        if self.key_size < least {
            return Err(BenchError::Usage(format!(
                "--key-size must be at least {least} for {} keys",
                self.keys
            )));
        }
        Ok(())
    }
}

const PREFIX_SIZE: usize = 4;

/// Decimal digits of `number`; 1 for 0.
fn digits_of(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// What a right reply to one command looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// A status such as OK or PONG.
    Status,
    /// Any integer.
    Integer,
    /// A value of exactly so many bytes, or null.
    Value { size: u64 },
    /// So many values of exactly so many bytes, each possibly null.
    Values { count: i64, size: u64 },
}

/// How a reply compares with what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    /// Right in shape, but so many of its values were null.
    Missed(u32),
    /// An error reply.
    Error,
    /// Another type or size than it must have.
    Wrong,
}

impl Expectation {
    /// Judges one reply.
    #[inline]
    pub(crate) fn judge(self, reply: &Reply) -> Verdict {
        if reply.errors > 0 {
            return Verdict::Error;
        }
        let right = match self {
            Self::Status => reply.kind == b'+',
            Self::Integer => reply.kind == b':',
            Self::Value { size } => {
                (reply.kind == b'$' || reply.kind == b'_')
                    && reply.bulk_bytes == if reply.nulls == 0 { size } else { 0 }
            }
            Self::Values { count, size } => {
                reply.kind == b'*'
                    && reply.number == count
                    && reply.bulk_bytes + u64::from(reply.nulls) * size == count as u64 * size
            }
        };
        match (right, reply.nulls) {
            (true, 0) => Verdict::Right,
            (true, nulls) => Verdict::Missed(nulls),
            (false, _) => Verdict::Wrong,
        }
    }
}

/// Where random digits go in an image, and how large the number may be.
#[derive(Debug, Clone, Copy)]
struct Patch {
    start: usize,
    end: usize,
    range: u64,
    /// Part of a key (follows the key order) or an element inside one (always random).
    is_key: bool,
}

/// Which keys a batch asks for.
#[derive(Debug, Clone)]
pub(crate) enum KeyOrder {
    /// Uniform over the key space.
    Uniform(Random),
    /// One after another, from this number on: every key exactly once, for filling.
    Ascending { next: u64, elements: Random },
}

/// The bytes of one batch of commands, ready to be sent after patching.
#[derive(Debug)]
pub(crate) struct Image {
    bytes: Vec<u8>,
    patches: Vec<Patch>,
    /// End of each command in `bytes`, end of its patches, and its right reply.
    commands: Vec<(usize, usize, Expectation)>,
}

impl Image {
    /// Renders `commands` one after another.
    fn render(commands: impl Iterator<Item = Command>, shape: &Shape) -> Self {
        let mut image = Self {
            bytes: Vec::new(),
            patches: Vec::new(),
            commands: Vec::new(),
        };
        for command in commands {
            let expectation = image.push(command, shape);
            image
                .commands
                .push((image.bytes.len(), image.patches.len(), expectation));
        }
        image
    }

    /// What the reply to the command at `position` must be.
    #[inline]
    pub(crate) fn expectation(&self, position: usize) -> Expectation {
        self.commands[position].2
    }

    /// Overwrites the digits of the first `count` commands and gives their bytes.
    #[inline]
    pub(crate) fn patch(&mut self, count: usize, order: &mut KeyOrder) -> &[u8] {
        let (bytes_end, patches_end, _) = self.commands[count - 1];
        for patch in &self.patches[..patches_end] {
            let number = match order {
                KeyOrder::Uniform(random) => random.below(patch.range),
                KeyOrder::Ascending { next, .. } if patch.is_key => {
                    *next += 1;
                    (*next - 1) % patch.range
                }
                KeyOrder::Ascending { elements, .. } => elements.below(patch.range),
            };
            write_digits(&mut self.bytes[patch.start..patch.end], number);
        }
        &self.bytes[..bytes_end]
    }

    fn push(&mut self, command: Command, shape: &Shape) -> Expectation {
        let many = shape.keys_per_command;
        let size = shape.value_size as u64;
        let argc = match command {
            Command::Ping => 1,
            Command::Get | Command::Incr => 2,
            Command::Set
            | Command::SetNx
            | Command::Append
            | Command::LPush
            | Command::RPush
            | Command::SAdd => 3,
            Command::HSet => 4,
            Command::MGet => 1 + many,
            Command::MSet => 1 + 2 * many,
        };
        self.bytes
            .extend_from_slice(format!("*{argc}\r\n").as_bytes());
        self.bulk(command.name().as_bytes());
        match command {
            Command::Ping => return Expectation::Status,
            Command::Get => {
                self.key(b"key:", shape);
                return Expectation::Value { size };
            }
            Command::MGet => {
                (0..many).for_each(|_| self.key(b"key:", shape));
                return Expectation::Values {
                    count: many as i64,
                    size,
                };
            }
            Command::Set => {
                self.key(b"key:", shape);
                self.value(shape.value_size);
                return Expectation::Status;
            }
            Command::MSet => {
                for _ in 0..many {
                    self.key(b"key:", shape);
                    self.value(shape.value_size);
                }
                return Expectation::Status;
            }
            Command::SetNx => {
                self.key(b"snx:", shape);
                self.value(shape.value_size);
            }
            Command::Append => {
                self.key(b"apd:", shape);
                self.value(shape.value_size.min(APPEND_SIZE_MAX));
            }
            Command::Incr => self.key(b"ctr:", shape),
            Command::LPush | Command::RPush => {
                self.key(b"lst:", shape);
                self.value(shape.value_size);
            }
            Command::SAdd => {
                self.key(b"set:", shape);
                self.element();
            }
            Command::HSet => {
                self.key(b"hsh:", shape);
                self.element();
                self.value(shape.value_size);
            }
        }
        Expectation::Integer
    }

    fn bulk(&mut self, body: &[u8]) {
        self.bytes
            .extend_from_slice(format!("${}\r\n", body.len()).as_bytes());
        self.bytes.extend_from_slice(body);
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn value(&mut self, size: usize) {
        // Letters, so that no server can store it as an integer.
        let body: Vec<u8> = (0..size)
            .map(|position| b'a' + (position % 26) as u8)
            .collect();
        self.bulk(&body);
    }

    fn key(&mut self, prefix: &[u8; PREFIX_SIZE], shape: &Shape) {
        self.numbered(prefix, shape.key_size, shape.keys, true);
    }

    fn element(&mut self) {
        self.numbered(b"elt:", PREFIX_SIZE + 8, ELEMENTS_PER_KEY, false);
    }

    fn numbered(&mut self, prefix: &[u8], size: usize, range: u64, is_key: bool) {
        let mut body = prefix.to_vec();
        body.resize(size, b'0');
        self.bulk(&body);
        let end = self.bytes.len() - 2;
        let start = end - digits_of(range - 1);
        self.patches.push(Patch {
            start,
            end,
            range,
            is_key,
        });
    }
}

/// Decimal digits of every number below 100.
const DIGIT_PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Writes `number` into `field`, padded with zeros on the left; higher digits are lost if it does
/// not fit.
#[inline]
fn write_digits(field: &mut [u8], mut number: u64) {
    let mut end = field.len();
    while end >= 2 {
        field[end - 2..end].copy_from_slice(&DIGIT_PAIRS[(number % 100) as usize]);
        number /= 100;
        end -= 2;
    }
    if end == 1 {
        field[0] = b'0' + (number % 10) as u8;
    }
}

/// All images of one mix: batch n of a connection that started at s uses image (s + n) mod len.
#[derive(Debug)]
pub(crate) struct Images(Vec<Image>);

impl Images {
    /// Renders every batch of `pipeline` commands that the cycle of `mix` leads to.
    pub(crate) fn new(mix: &Mix, shape: &Shape, pipeline: usize) -> Self {
        let cycle = mix.cycle();
        let count = cycle.len() / greatest_common_divisor(cycle.len(), pipeline);
        let image = |start: usize| {
            let commands = cycle
                .iter()
                .cycle()
                .skip(start * pipeline % cycle.len())
                .take(pipeline);
            Image::render(commands.copied(), shape)
        };
        Self((0..count).map(image).collect())
    }

    /// Number of different batches.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The batch at `position`.
    #[inline]
    pub(crate) fn get(&self, position: usize) -> &Image {
        &self.0[position]
    }

    /// The batch at `position`, for patching.
    #[inline]
    pub(crate) fn get_mut(&mut self, position: usize) -> &mut Image {
        &mut self.0[position]
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Shape {
        Shape {
            keys: 100,
            key_size: 8,
            value_size: 3,
            keys_per_command: 2,
        }
    }

    fn text(mix: &str, pipeline: usize) -> String {
        let mut images = Images::new(&mix.parse().unwrap(), &small(), pipeline);
        let mut order = KeyOrder::Ascending {
            next: 7,
            elements: Random::new(1),
        };
        String::from_utf8(images.get_mut(0).patch(pipeline, &mut order).to_vec()).unwrap()
    }

    #[test]
    fn renders_commands_as_resp() {
        assert_eq!(text("PING", 1), "*1\r\n$4\r\nPING\r\n");
        assert_eq!(
            text("SET", 1),
            "*3\r\n$3\r\nSET\r\n$8\r\nkey:0007\r\n$3\r\nabc\r\n"
        );
        assert_eq!(
            text("MGET", 1),
            "*3\r\n$4\r\nMGET\r\n$8\r\nkey:0007\r\n$8\r\nkey:0008\r\n"
        );
        assert!(text("GET", 2).ends_with("key:0008\r\n"));
        assert!(
            text("HSET", 1).starts_with("*4\r\n$4\r\nHSET\r\n$8\r\nhsh:0007\r\n$12\r\nelt:000000")
        );
    }

    #[test]
    fn a_mix_keeps_its_ratio_over_all_images() {
        let images = Images::new(&"1:10".parse().unwrap(), &small(), 30);
        assert_eq!(images.len(), 11);
        let sets = (0..11)
            .flat_map(|image| (0..30).map(move |position| (image, position)))
            .filter(|&(image, position)| {
                images.get(image).expectation(position) == Expectation::Status
            })
            .count();
        assert_eq!(sets, 30);
        assert_eq!(Images::new(&Mix::only(Command::Get), &small(), 30).len(), 1);
    }

    #[test]
    fn a_part_of_an_image_is_whole_commands() {
        let mut images = Images::new(&Mix::only(Command::Get), &small(), 4);
        let mut order = KeyOrder::Uniform(Random::new(1));
        let all = images.get_mut(0).patch(4, &mut order).len();
        assert_eq!(images.get_mut(0).patch(1, &mut order).len() * 4, all);
    }

    #[test]
    fn parses_and_prints_mixes() {
        for (given, printed) in [
            ("get", "GET"),
            ("1:10", "SET:1,GET:10"),
            ("GET:3,INCR:1", "GET:3,INCR:1"),
            ("0:5", "GET"),
        ] {
            assert_eq!(given.parse::<Mix>().unwrap().to_string(), printed);
        }
        for wrong in ["", "FOO", "0:0", "GET:x", "GET:4000000000,SET:4000000000"] {
            assert!(wrong.parse::<Mix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn judges_replies() {
        let value = Expectation::Value { size: 3 };
        let reply = |kind, number, bulk_bytes, nulls, errors| Reply {
            kind,
            number,
            bulk_bytes,
            nulls,
            errors,
        };
        assert_eq!(value.judge(&reply(b'$', 3, 3, 0, 0)), Verdict::Right);
        assert_eq!(value.judge(&reply(b'$', 4, 4, 0, 0)), Verdict::Wrong);
        assert_eq!(value.judge(&reply(b'$', -1, 0, 1, 0)), Verdict::Missed(1));
        assert_eq!(value.judge(&reply(b'-', 0, 0, 0, 1)), Verdict::Error);
        let values = Expectation::Values { count: 2, size: 3 };
        assert_eq!(values.judge(&reply(b'*', 2, 3, 1, 0)), Verdict::Missed(1));
        assert_eq!(values.judge(&reply(b'*', 2, 4, 1, 0)), Verdict::Wrong);
    }

    #[test]
    fn refuses_keys_that_do_not_fit() {
        assert!(
            Shape {
                key_size: 9,
                ..Shape::default()
            }
            .check()
            .is_err()
        );
        assert!(
            Shape {
                key_size: 10,
                ..Shape::default()
            }
            .check()
            .is_ok()
        );
        assert!(
            Shape {
                keys: 0,
                ..Shape::default()
            }
            .check()
            .is_err()
        );
    }

    #[test]
    fn writes_digits_of_any_width() {
        for (number, width, expected) in [
            (7, 1, "7"),
            (7, 2, "07"),
            (123, 3, "123"),
            (45_678, 7, "0045678"),
        ] {
            let mut field = vec![b'x'; width];
            write_digits(&mut field, number);
            assert_eq!(field, expected.as_bytes());
        }
    }
}
