//! Keyspace events: what each command that writes says about its keys (`notify-keyspace-events`).
//!
//! ```text
//!   before   which of its keys are there        command        after   which are there now
//!   absent, then there: new      has it changed anything? its own events      there, then gone: del
//! ```
//!
//! What a command says follows from its row here, from whether it has changed anything, and from which keys
//! have come or gone; so handlers know nothing of events. What is not the doing of a command (expired,
//! evicted) is noted where it happens. All of it goes into one list, in the order in which it happened, and from
//! there to the broker before the replies of the batch are published.
//!
//! Cost: nothing for commands while no events are wanted; otherwise two looks at each key that is written.

use crate::keyspace::{Key, Keyspace, ValueKind};
use crate::neighbours::Neighbours;
use proto::catalogue::{KeyAt, StorageCommand, access, extract_from};
use proto::frame::Args;
use proto::number::parse_i64;
use proto::slot::slot_of;
use proto::time::UnixMillis;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Classes of events, by the bits of the setting.
pub mod class {
    /// About keys of any type.
    pub const GENERIC: u64 = 1 << 2;
    /// Strings.
    pub const STRING: u64 = 1 << 3;
    /// Lists.
    pub const LIST: u64 = 1 << 4;
    /// Sets.
    pub const SET: u64 = 1 << 5;
    /// Hashes.
    pub const HASH: u64 = 1 << 6;
    /// Sorted sets.
    pub const SORTED_SET: u64 = 1 << 7;
    /// Keys whose time has come.
    pub const EXPIRED: u64 = 1 << 8;
    /// Keys that made room for others.
    pub const EVICTED: u64 = 1 << 9;
    /// Streams.
    pub const STREAM: u64 = 1 << 10;
    /// Reads of keys that are not there.
    pub const MISS: u64 = 1 << 11;
    /// Keys that were not there before.
    pub const NEW: u64 = 1 << 14;
}

/// What is said when the time of fields has come.
const FIELDS_EXPIRED: &str = "hexpired";

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Database of the key.
    pub db: u16,
    /// What happened.
    pub event: &'static str,
    /// To which key.
    pub key: Box<[u8]>,
}

/// Events of this worker that the broker has not been told, and which are wanted. Shared by all who note some.
#[derive(Clone, Debug, Default)]
pub struct Notes(Rc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    wanted: Cell<u64>,
    is_any: Cell<bool>,
    list: RefCell<Vec<Note>>,
}

impl Notes {
    /// Which classes are wanted from here on.
    pub fn want(&self, classes: u64) {
        self.0.wanted.set(classes);
    }

    /// The classes that are wanted, and in which channels.
    #[inline]
    pub fn wanted(&self) -> u64 {
        self.0.wanted.get()
    }

    /// Whether there is anything to tell.
    #[inline]
    pub fn is_any(&self) -> bool {
        self.0.is_any.get()
    }

    /// Notes an event if its class is wanted.
    pub fn say(&self, class: u64, event: &'static str, db: u16, key: &[u8]) {
        if self.wanted() & class != 0 {
            self.0.is_any.set(true);
            self.0.list.borrow_mut().push(Note {
                db,
                event,
                key: key.into(),
            });
        }
    }

    /// The time of a field had come: said once for all fields of a hash that go together.
    pub fn field_expired(&self, db: u16, key: &[u8]) {
        let is_said =
            self.0.list.borrow().last().is_some_and(|last| {
                last.event == FIELDS_EXPIRED && last.db == db && *last.key == *key
            });
        if !is_said {
            self.say(class::HASH, FIELDS_EXPIRED, db, key);
        }
    }

    /// There is still something to tell.
    pub fn keep(&self) {
        self.0.is_any.set(true);
    }

    /// All that were noted.
    pub fn take(&self) -> Vec<Note> {
        self.0.is_any.set(false);
        self.0.list.take()
    }
}

/// What is known of a key at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    is_there: bool,
    /// Entries of a stream.
    entries: u64,
    /// Consumers of the groups of a stream.
    consumers: usize,
}

/// Where keys are looked at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The data.
    pub keyspace: &'a Keyspace,
    /// The keyspaces of other workers, as far as they are open.
    pub near: Option<&'a Neighbours>,
    /// Seed of key hashes.
    pub hash_seed: u64,
    /// Time of the command.
    pub now: UnixMillis,
}

impl View<'_> {
    /// Where the keys of a slot live, if that can be looked at.
    fn keyspace_of(&self, slot: u16) -> Option<&Keyspace> {
        let Some(near) = self.near else {
            return Some(self.keyspace);
        };
        let owner = near.owner(slot);
        if owner == near.own() {
            return Some(self.keyspace);
        }
        let neighbour = near.get(owner).filter(|_| near.opened().has(owner));
        neighbour.map(|neighbour| &neighbour.keyspace)
    }

    fn see(&self, db: u16, bytes: &[u8]) -> Seen {
        let key = Key::new(self.hash_seed, db, slot_of(bytes), bytes);
        let Some(keyspace) = self.keyspace_of(key.slot) else {
            // Its owner knows.
            return Seen {
                is_there: true,
                ..Seen::default()
            };
        };
        let Some(found) = keyspace.look(&key, self.now) else {
            return Seen::default();
        };
        let mut seen = Seen {
            is_there: true,
            ..Seen::default()
        };
        if found.kind() == ValueKind::Stream {
            (seen.entries, seen.consumers) = crate::commands::stream_counts(&found);
        }
        seen
    }
}

/// Hashes are gone with their last field, which nobody has said yet.
#[must_use]
pub fn complete(notes: Vec<Note>, wanted: u64, view: &View<'_>) -> Vec<Note> {
    let mut all = Vec::with_capacity(notes.len());
    for note in notes {
        let is_gone = note.event == FIELDS_EXPIRED
            && wanted & class::GENERIC != 0
            && !view.see(note.db, &note.key).is_there;
        let del = is_gone.then(|| Note {
            event: "del",
            ..note.clone()
        });
        all.push(note);
        all.extend(del);
    }
    all
}

/// The keys of a command that is about to run.
#[derive(Debug, Default)]
pub struct Before {
    /// Those that it writes, by their places.
    keys: Vec<(usize, Seen)>,
    /// Those that it wants to read and that are not there.
    missed: Vec<usize>,
}

/// Looks at the keys of a command before it runs.
#[cold]
pub fn before(command: StorageCommand, db: u16, args: Args<'_>, view: &View<'_>) -> Before {
    let mut found: Vec<KeyAt> = Vec::new();
    extract_from(command, args, &mut found);
    let mut keys = Vec::new();
    for key in found {
        let is_written = key.access.has(access::RW | access::OW | access::RM)
            || command == StorageCommand::XReadGroup;
        let at = key.position as usize;
        if is_written && !keys.iter().any(|(known, _)| *known == at) {
            keys.push((at, view.see(target_db(command, db, args, at), args.get(at))));
        }
    }
    if command == StorageCommand::Move {
        // The same key in the other database.
        keys.push((
            0,
            view.see(other_db(args.get(2)).unwrap_or(db), args.get(1)),
        ));
    }
    Before {
        keys,
        missed: missing(command, db, args, view),
    }
}

fn other_db(text: &[u8]) -> Option<u16> {
    parse_i64(text).and_then(|number| u16::try_from(number).ok())
}

/// The database of the key at a place: COPY may write into another one.
fn target_db(command: StorageCommand, db: u16, args: Args<'_>, at: usize) -> u16 {
    if command != StorageCommand::Copy || at != 2 {
        return db;
    }
    let option = (3..args.len()).find(|&at| args.get(at).eq_ignore_ascii_case(b"DB"));
    option
        .and_then(|at| other_db(args.get(at + 1)))
        .unwrap_or(db)
}

/// What a command says of its first key if it has changed anything.
fn own_event(command: StorageCommand) -> Option<(u64, &'static str)> {
    use StorageCommand as C;
    Some(match command {
        C::Set | C::SetNx | C::GetSet | C::MSet | C::MSetNx | C::SetEx | C::PSetEx => {
            (class::STRING, "set")
        }
        C::Append => (class::STRING, "append"),
        C::Incr | C::Decr | C::IncrBy | C::DecrBy => (class::STRING, "incrby"),
        C::IncrByFloat => (class::STRING, "incrbyfloat"),
        C::SetRange => (class::STRING, "setrange"),
        C::SetBit | C::BitField => (class::STRING, "setbit"),
        C::BitOp => (class::STRING, "set"),
        C::PfAdd | C::PfMerge => (class::STRING, "pfadd"),
        C::Expire | C::ExpireAt | C::PExpire | C::PExpireAt => (class::GENERIC, "expire"),
        C::Persist => (class::GENERIC, "persist"),
        C::Restore => (class::GENERIC, "restore"),
        C::Sort => (class::LIST, "sortstore"),
        C::LPush | C::LPushX => (class::LIST, "lpush"),
        C::RPush | C::RPushX => (class::LIST, "rpush"),
        C::LPop | C::BLPop => (class::LIST, "lpop"),
        C::RPop | C::BRPop => (class::LIST, "rpop"),
        C::LInsert => (class::LIST, "linsert"),
        C::LSet => (class::LIST, "lset"),
        C::LRem => (class::LIST, "lrem"),
        C::LTrim => (class::LIST, "ltrim"),
        C::SAdd => (class::SET, "sadd"),
        C::SRem => (class::SET, "srem"),
        C::SPop => (class::SET, "spop"),
        C::SInterStore => (class::SET, "sinterstore"),
        C::SUnionStore => (class::SET, "sunionstore"),
        C::SDiffStore => (class::SET, "sdiffstore"),
        C::HSet | C::HMSet | C::HSetNx => (class::HASH, "hset"),
        C::HIncrBy => (class::HASH, "hincrby"),
        C::HIncrByFloat => (class::HASH, "hincrbyfloat"),
        C::HDel | C::HGetDel => (class::HASH, "hdel"),
        C::HPersist => (class::HASH, "hpersist"),
        C::ZAdd | C::GeoAdd => (class::SORTED_SET, "zadd"),
        C::ZIncrBy => (class::SORTED_SET, "zincr"),
        C::ZRem => (class::SORTED_SET, "zrem"),
        C::ZRemRangeByScore => (class::SORTED_SET, "zremrangebyscore"),
        C::ZRemRangeByRank => (class::SORTED_SET, "zremrangebyrank"),
        C::ZRemRangeByLex => (class::SORTED_SET, "zremrangebylex"),
        C::ZPopMin | C::BZPopMin => (class::SORTED_SET, "zpopmin"),
        C::ZPopMax | C::BZPopMax => (class::SORTED_SET, "zpopmax"),
        C::ZUnionStore => (class::SORTED_SET, "zunionstore"),
        C::ZInterStore => (class::SORTED_SET, "zinterstore"),
        C::ZDiffStore => (class::SORTED_SET, "zdiffstore"),
        C::ZRangeStore => (class::SORTED_SET, "zrangestore"),
        C::GeoSearchStore => (class::SORTED_SET, "geosearchstore"),
        C::GeoRadius | C::GeoRadiusByMember => (class::SORTED_SET, "georadiusstore"),
        C::XAdd => (class::STREAM, "xadd"),
        C::XDel => (class::STREAM, "xdel"),
        C::XTrim => (class::STREAM, "xtrim"),
        C::XSetId => (class::STREAM, "xsetid"),
        C::XGroupCreate => (class::STREAM, "xgroup-create"),
        C::XGroupCreateConsumer => (class::STREAM, "xgroup-createconsumer"),
        C::XGroupDelConsumer => (class::STREAM, "xgroup-delconsumer"),
        C::XGroupDestroy => (class::STREAM, "xgroup-destroy"),
        C::XGroupSetId => (class::STREAM, "xgroup-setid"),
        _ => return None,
    })
}

/// A command under notes.
struct Telling<'a> {
    notes: &'a Notes,
    db: u16,
    args: Args<'a>,
    view: &'a View<'a>,
    before: &'a Before,
    changes: u64,
}

impl Telling<'_> {
    fn say(&self, class: u64, event: &'static str, at: usize) {
        self.notes.say(class, event, self.db, self.args.get(at));
    }

    fn is(&self, at: usize, word: &[u8]) -> bool {
        self.args.get(at).eq_ignore_ascii_case(word)
    }

    fn has_option(&self, from: usize, words: &[&[u8]]) -> bool {
        (from..self.args.len()).any(|at| words.iter().any(|word| self.is(at, word)))
    }

    /// Whether the time at an argument has passed already.
    fn is_over(&self, at: usize, is_in_millis: bool, is_absolute: bool) -> bool {
        let time = parse_i64(self.args.get(at)).unwrap_or(i64::MAX);
        let millis = time.saturating_mul(if is_in_millis { 1 } else { 1000 });
        let from = if is_absolute { self.view.now.get() } else { 0 };
        millis <= i64::try_from(from).unwrap_or(i64::MAX)
    }

    /// Whether an option from this argument on names a time that has passed.
    fn option_is_over(&self, from: usize) -> bool {
        let options: [(&[u8], bool, bool); 4] = [
            (b"EX", false, false),
            (b"PX", true, false),
            (b"EXAT", false, true),
            (b"PXAT", true, true),
        ];
        (from..self.args.len()).any(|at| {
            let option = options.iter().find(|(word, ..)| self.is(at, word));
            option.is_some_and(|(_, millis, absolute)| self.is_over(at + 1, *millis, *absolute))
        })
    }

    fn now(&self, at: usize) -> Seen {
        self.view.see(self.db, self.args.get(at))
    }

    fn seen(&self, at: usize) -> Seen {
        let known = self.before.keys.iter().find(|(known, _)| *known == at);
        known.map(|(_, seen)| *seen).unwrap_or_default()
    }

    /// The same key may be given more than once.
    fn is_repeated(&self, at: usize) -> bool {
        let is_same = |known: usize| known < at && self.args.get(known) == self.args.get(at);
        self.before.keys.iter().any(|(known, _)| is_same(*known))
    }

    fn new_if(&self, at: usize) {
        if !self.seen(at).is_there && self.now(at).is_there && !self.is_repeated(at) {
            self.say(class::NEW, "new", at);
        }
    }

    fn gone_if(&self, at: usize) {
        if self.seen(at).is_there && !self.now(at).is_there && !self.is_repeated(at) {
            self.say(class::GENERIC, "del", at);
        }
    }

    /// One key: it may be new, something happened to it, it may be gone.
    fn one(&self, at: usize, class: u64, event: &'static str) {
        self.new_if(at);
        self.say(class, event, at);
        self.gone_if(at);
    }

    /// A destination: something was stored, or what was there is gone.
    fn stored(&self, at: usize, class: u64, event: &'static str) {
        if self.now(at).is_there {
            self.new_if(at);
            self.say(class, event, at);
        } else {
            self.gone_if(at);
        }
    }

    /// Of several keys the one that something was taken from.
    fn taken_from(&self, changed: Option<usize>, class: u64, event: &'static str) {
        if let Some(at) = changed {
            self.say(class, event, at);
            self.gone_if(at);
        }
    }
}

/// Notes what a command has done, which has run without an error and made so many changes.
#[cold]
pub fn after(
    notes: &Notes,
    command: StorageCommand,
    db: u16,
    args: Args<'_>,
    changes: u64,
    before: &Before,
    view: &View<'_>,
) {
    for at in &before.missed {
        notes.say(class::MISS, "keymiss", db, args.get(*at));
    }
    // LTRIM says so even if it leaves everything as it is.
    if changes == 0 && command != StorageCommand::LTrim {
        return;
    }
    let telling = Telling {
        notes,
        db,
        args,
        view,
        before,
        changes,
    };
    // Of several keys something is taken from the first one that has anything.
    let mut places = before.keys.iter();
    let taken = places.find(|(_, seen)| seen.is_there).map(|(at, _)| *at);
    if telling.unusual(command, taken) {
        return;
    }
    let Some((class, event)) = own_event(command) else {
        return;
    };
    telling.one(1, class, event);
}

impl Telling<'_> {
    /// Commands that say something else, or more, than one event of their first key. False for others.
    fn unusual(&self, command: StorageCommand, taken: Option<usize>) -> bool {
        use StorageCommand as C;
        match command {
            C::Set => {
                self.set_with_expiry();
                if self.has_option(3, &[b"EX", b"PX", b"EXAT", b"PXAT"]) {
                    self.say(class::GENERIC, "expire", 1);
                }
            }
            C::SetEx | C::PSetEx => {
                self.set_with_expiry();
                self.say(class::GENERIC, "expire", 1);
            }
            C::MSet | C::MSetNx => {
                for at in (1..self.args.len()).step_by(2) {
                    self.one(at, class::STRING, "set");
                }
            }
            C::GetEx => {
                if !self.now(1).is_there {
                    self.say(class::GENERIC, "del", 1);
                } else if self.is(2, b"PERSIST") {
                    self.say(class::GENERIC, "persist", 1);
                } else {
                    self.say(class::GENERIC, "expire", 1);
                }
            }
            C::Expire | C::ExpireAt | C::PExpire | C::PExpireAt => {
                let is_there = self.now(1).is_there;
                let event = if is_there { "expire" } else { "del" };
                self.say(class::GENERIC, event, 1);
            }
            C::Del | C::Unlink | C::GetDel | C::DelIfEq => {
                for (at, _) in &self.before.keys {
                    self.gone_if(*at);
                }
            }
            C::Rename | C::RenameNx => {
                // The destination is always made anew.
                self.say(class::NEW, "new", 2);
                self.say(class::GENERIC, "rename_from", 1);
                self.say(class::GENERIC, "rename_to", 2);
            }
            C::Move => {
                let (to, key) = (other_db(self.args.get(2)), self.args.get(1));
                let to = to.unwrap_or(self.db);
                self.notes.say(class::NEW, "new", to, key);
                self.say(class::GENERIC, "move_from", 1);
                self.notes.say(class::GENERIC, "move_to", to, key);
            }
            C::Copy => {
                let (to, key) = (target_db(command, self.db, self.args, 2), self.args.get(2));
                self.notes.say(class::NEW, "new", to, key);
                self.notes.say(class::GENERIC, "copy_to", to, key);
            }
            C::Restore | C::RestoreAsking => {
                if self.now(1).is_there {
                    self.say(class::NEW, "new", 1);
                    self.say(class::GENERIC, "restore", 1);
                } else {
                    self.gone_if(1);
                }
            }
            C::LTrim => {
                if self.seen(1).is_there {
                    self.one(1, class::LIST, "ltrim");
                }
            }
            C::BitOp => self.stored(2, class::STRING, "set"),
            C::Sort => self.stored_anywhere(class::LIST, "sortstore"),
            _ => return self.unusual_collection(command, taken),
        }
        true
    }

    /// A string was set. If its time is over already, that is for its expiry to say.
    fn set_with_expiry(&self) {
        if !self.seen(1).is_there {
            self.say(class::NEW, "new", 1);
        }
        self.say(class::STRING, "set", 1);
    }

    /// The destination is the last key that is written.
    fn stored_anywhere(&self, class: u64, event: &'static str) {
        if let Some((at, _)) = self.before.keys.last() {
            self.stored(*at, class, event);
        }
    }

    fn unusual_collection(&self, command: StorageCommand, taken: Option<usize>) -> bool {
        use StorageCommand as C;
        match command {
            C::LMove | C::BLMove | C::RPopLPush | C::BRPopLPush => {
                let is_named = matches!(command, C::LMove | C::BLMove);
                let from_left = is_named && self.is(3, b"LEFT");
                let to_left = !is_named || self.is(4, b"LEFT");
                self.new_if(2);
                self.say(class::LIST, if to_left { "lpush" } else { "rpush" }, 2);
                self.say(class::LIST, if from_left { "lpop" } else { "rpop" }, 1);
                self.gone_if(1);
            }
            C::LMPop | C::BLMPop => {
                let is_left = self.has_option(2, &[b"LEFT"]);
                let event = if is_left { "lpop" } else { "rpop" };
                self.taken_from(taken, class::LIST, event);
            }
            C::BLPop => self.taken_from(taken, class::LIST, "lpop"),
            C::BRPop => self.taken_from(taken, class::LIST, "rpop"),
            C::ZMPop | C::BZMPop => {
                let is_min = self.has_option(2, &[b"MIN"]);
                let event = if is_min { "zpopmin" } else { "zpopmax" };
                self.taken_from(taken, class::SORTED_SET, event);
            }
            C::BZPopMin => self.taken_from(taken, class::SORTED_SET, "zpopmin"),
            C::BZPopMax => self.taken_from(taken, class::SORTED_SET, "zpopmax"),
            C::SMove => {
                self.say(class::SET, "srem", 1);
                self.gone_if(1);
                // One change is that the member has left, another one that it was not there already.
                if self.changes > 1 {
                    self.new_if(2);
                    self.say(class::SET, "sadd", 2);
                }
            }
            C::ZAdd => {
                let is_increment = self.has_option(2, &[b"INCR"]);
                let event = if is_increment { "zincr" } else { "zadd" };
                self.one(1, class::SORTED_SET, event);
            }
            C::SInterStore
            | C::SUnionStore
            | C::SDiffStore
            | C::ZUnionStore
            | C::ZInterStore
            | C::ZDiffStore
            | C::ZRangeStore
            | C::GeoSearchStore => {
                if let Some((class, event)) = own_event(command) {
                    self.stored(1, class, event);
                }
            }
            C::GeoRadius | C::GeoRadiusByMember => {
                self.stored_anywhere(class::SORTED_SET, "georadiusstore");
            }
            _ => return self.unusual_hash_or_stream(command),
        }
        true
    }

    fn unusual_hash_or_stream(&self, command: StorageCommand) -> bool {
        use StorageCommand as C;
        match command {
            C::HSetEx => {
                if !self.seen(1).is_there {
                    self.say(class::NEW, "new", 1);
                }
                self.say(class::HASH, "hset", 1);
                if self.option_is_over(2) {
                    self.say(class::HASH, "hdel", 1);
                } else if self.has_option(2, &[b"EX", b"PX", b"EXAT", b"PXAT"]) {
                    self.say(class::HASH, "hexpire", 1);
                }
                if !self.now(1).is_there {
                    self.say(class::GENERIC, "del", 1);
                }
            }
            C::HGetEx => {
                let event = if self.is(2, b"PERSIST") {
                    "hpersist"
                } else if self.option_is_over(2) {
                    "hdel"
                } else {
                    "hexpire"
                };
                self.one(1, class::HASH, event);
            }
            C::HExpire | C::HExpireAt | C::HPExpire | C::HPExpireAt => {
                let (is_in_millis, is_absolute) = match command {
                    C::HExpire => (false, false),
                    C::HExpireAt => (false, true),
                    C::HPExpire => (true, false),
                    _ => (true, true),
                };
                let is_over = self.is_over(2, is_in_millis, is_absolute);
                self.one(1, class::HASH, if is_over { "hdel" } else { "hexpire" });
            }
            C::XAdd => {
                self.new_if(1);
                self.say(class::STREAM, "xadd", 1);
                if self.now(1).entries < self.seen(1).entries + 1 {
                    self.say(class::STREAM, "xtrim", 1);
                }
            }
            C::XReadGroup => {
                for (at, seen) in &self.before.keys {
                    if self.now(*at).consumers > seen.consumers {
                        self.say(class::STREAM, "xgroup-createconsumer", *at);
                    }
                }
            }
            C::XClaim | C::XAutoClaim => {
                if self.now(1).consumers > self.seen(1).consumers {
                    self.say(class::STREAM, "xgroup-createconsumer", 1);
                }
            }
            C::XGroupCreate
            | C::XGroupCreateConsumer
            | C::XGroupDelConsumer
            | C::XGroupDestroy
            | C::XGroupSetId => {
                if let Some((class, event)) = own_event(command) {
                    self.one(2, class, event);
                }
            }
            _ => return false,
        }
        true
    }
}

/// Notes the keys that a command has wanted to read and that are not there.
#[cold]
pub fn missed(notes: &Notes, command: StorageCommand, db: u16, args: Args<'_>, view: &View<'_>) {
    for at in missing(command, db, args, view) {
        notes.say(class::MISS, "keymiss", db, args.get(at));
    }
}

/// The keys that a command wants to read and that are not there.
fn missing(command: StorageCommand, db: u16, args: Args<'_>, view: &View<'_>) -> Vec<usize> {
    use StorageCommand as C;
    let spec = command.spec();
    if spec.name.starts_with("object|") {
        return Vec::new();
    }
    let has_get = || (3..args.len()).any(|at| args.get(at).eq_ignore_ascii_case(b"GET"));
    // These return what was there before.
    let reads_all = match command {
        C::GetSet | C::GetEx | C::GetDel | C::PfMerge | C::XAck => true,
        C::Set => has_get(),
        _ => !spec.may_write(),
    };
    let mut found: Vec<KeyAt> = Vec::new();
    extract_from(command, args, &mut found);
    found.retain(|key| {
        let is_written = key.access.has(access::RW | access::OW | access::RM);
        let is_read = reads_all || !is_written;
        is_read && !view.see(db, args.get(key.position as usize)).is_there
    });
    found.iter().map(|key| key.position as usize).collect()
}
