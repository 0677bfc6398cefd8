//! Commands that need values of several workers beside each other: copies of the foreign ones become guests
//! in one keyspace, the command runs there, and what it has written goes home.
//!
//! ```text
//!   base     the owner of the largest value that is read
//!   in       values that are read: a copy; keys that are only overwritten: a stub, if they exist
//!   run      the ordinary handler
//!   out      what it has written of foreign keys, if it has changed anything
//!   away     the guests
//! ```
//!
//! Guests stand under their own names: their slots are not the base's, so they meet nobody. The keyspace
//! knows that it has some (`Keyspace::expect_guests`), and if we die meanwhile whoever comes next takes them away.
//! Between `in` and `run` no bracket is open, so a long command that only reads until it stores something
//! loses nothing if it dies (`pause_write`).

use super::Crossing;
use crate::blocking::Block;
use crate::commands::moved::{payload_of, store_payload};
use crate::commands::sort::names_of_patterns;
use crate::engine::Engine;
use crate::keyspace::{Access, Expiry, Key, StringValue};
use proto::CommandError;
use proto::catalogue::{KeyAt, StorageCommand, access};
use proto::frame::Args;
use proto::number::parse_i64;
use proto::slot::slot_of;
use proto::time::UnixMillis;

/// A key of the command.
#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    name: &'a [u8],
    db: u16,
    owner: usize,
    is_read: bool,
    is_written: bool,
}

/// A value on its way.
type Moved = (Vec<u8>, Option<UnixMillis>);

impl Crossing<'_, '_> {
    pub(super) fn with_guests(
        &mut self,
        command: StorageCommand,
        args: Args<'_>,
        keys: &[KeyAt],
        out: &mut Vec<u8>,
    ) -> Result<Option<Box<Block>>, CommandError> {
        let parts = self.parts(command, args, keys);
        let base = self.base(&parts);
        let mut names = Vec::new();
        if matches!(command, StorageCommand::Sort | StorageCommand::SortRo) {
            names = self.pattern_names(args);
        }
        let foreign: Vec<Part<'_>> = {
            let of_patterns = names.iter().map(|name| Part {
                name: &name[..],
                db: self.manner.db,
                owner: self.near.owner_of(name),
                is_read: true,
                is_written: false,
            });
            let all = parts.iter().copied().chain(of_patterns);
            all.filter(|part| part.owner != base).collect()
        };
        self.begin(base, 0);
        self.look(base, |keyspace| keyspace.expect_guests());
        for part in &foreign {
            self.invite(base, part);
        }
        // What follows may read for long.
        self.finish();
        let changes = self.ground.effects.changes;
        let result = self.at(base, command, args, out);
        let has_changed = self.ground.effects.changes != changes;
        self.begin(base, 0);
        if result.is_ok() && has_changed && Engine::writes(command) {
            for part in foreign.iter().filter(|part| part.is_written) {
                self.send_home(base, part);
            }
        }
        for part in &foreign {
            let key = self.key_of(part);
            self.look(base, |keyspace| keyspace.remove(&key));
        }
        self.look(base, |keyspace| keyspace.guests_have_gone());
        result
    }

    fn key_of<'k>(&self, part: &Part<'k>) -> Key<'k> {
        Key::new(
            self.ground.hash_seed,
            part.db,
            slot_of(part.name),
            part.name,
        )
    }

    fn parts<'k>(&self, command: StorageCommand, args: Args<'k>, keys: &[KeyAt]) -> Vec<Part<'k>> {
        let mut parts: Vec<Part<'k>> = Vec::with_capacity(keys.len());
        for key in keys {
            let name = args.get(key.position as usize);
            let is = |bits: u16| key.access.has(bits);
            let mut db = self.manner.db;
            if command == StorageCommand::Copy && key.position == 2 {
                db = self.copy_database(args);
            }
            let part = Part {
                name,
                db,
                owner: self.near.owner_of(name),
                is_read: is(access::RO) || is(access::RW),
                is_written: is(access::RW) || is(access::OW) || is(access::RM),
            };
            match parts.iter_mut().find(|it| it.name == name && it.db == db) {
                Some(known) => {
                    known.is_read |= part.is_read;
                    known.is_written |= part.is_written;
                }
                None => parts.push(part),
            }
        }
        parts
    }

    /// The database that COPY copies to; what is wrong with it the handler says.
    fn copy_database(&self, args: Args<'_>) -> u16 {
        let at = (3..args.len()).find(|&at| args.get(at).eq_ignore_ascii_case(b"DB"));
        let number = at.and_then(|at| parse_i64(args.get(at + 1)));
        let number = number.and_then(|number| u16::try_from(number).ok());
        let known = number.filter(|&number| number < self.ground.settings.databases);
        known.unwrap_or(self.manner.db)
    }

    /// Where the command runs: beside the largest of the values that it reads, so that the others travel.
    fn base(&mut self, parts: &[Part<'_>]) -> usize {
        let now = self.ground.now;
        let mut largest = (0, self.near.own());
        for (number, part) in parts.iter().enumerate() {
            let key = self.key_of(part);
            let bytes = if part.is_read {
                self.look(part.owner, |keyspace| {
                    let found = keyspace.look(&key, now);
                    found.map_or(0, |found| found.memory_bytes(SAMPLES))
                })
            } else {
                0
            };
            if number == 0 || bytes > largest.0 {
                largest = (bytes, part.owner);
            }
        }
        largest.1
    }

    /// Puts a copy of a value, or a stub for a key that is only overwritten, beside the others.
    fn invite(&mut self, base: usize, part: &Part<'_>) {
        let key = self.key_of(part);
        let now = self.ground.now;
        if !part.is_read {
            let is_there = self.look(part.owner, |keyspace| keyspace.look(&key, now).is_some());
            if is_there {
                self.look(base, |keyspace| {
                    keyspace.set_string(&key, StringValue::Auto(b""), Expiry::Clear);
                });
            }
            return;
        }
        if let Some(moved) = self.copy_of(part.owner, &key) {
            self.put(base, &key, &moved);
        }
    }

    /// What the command has made of a foreign key becomes its value.
    fn send_home(&mut self, base: usize, part: &Part<'_>) {
        let key = self.key_of(part);
        let moved = self.copy_of(base, &key);
        self.begin(part.owner, key.slot);
        match moved {
            Some(moved) => self.put(part.owner, &key, &moved),
            None => {
                self.look(part.owner, |keyspace| keyspace.remove(&key));
            }
        }
    }

    fn copy_of(&mut self, worker: usize, key: &Key<'_>) -> Option<Moved> {
        let now = self.ground.now;
        self.look(worker, |keyspace| {
            let found = keyspace.find(key, now, Access::Peek)?;
            Some((payload_of(&found), found.expiry()))
        })
    }

    fn put(&mut self, worker: usize, key: &Key<'_>, (payload, expiry): &Moved) {
        let Self { ground, near, .. } = self;
        let (settings, seed) = (&*ground.settings, ground.hash_seed);
        near.with(worker, ground.keyspace, |keyspace| {
            let is_stored = store_payload(keyspace, settings, seed, key, payload, *expiry);
            debug_assert!(is_stored.is_ok(), "it was made by us");
        });
    }

    /// Keys that SORT makes from patterns. What is wrong with the request it says itself.
    fn pattern_names(&mut self, args: Args<'_>) -> Vec<Vec<u8>> {
        let owner = self.near.owner_of(args.get(1));
        let mut unwanted = Vec::new();
        self.with_context(owner, slot_of(args.get(1)), &mut unwanted, |context| {
            names_of_patterns(context, args).unwrap_or_default()
        })
    }
}

/// Elements of a collection that are measured to know about how large it is.
const SAMPLES: usize = 5;
