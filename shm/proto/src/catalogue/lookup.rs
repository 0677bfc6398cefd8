//! Name to row.
//!
//! A hash table made at compile time. A name is read as two overlapping 8-byte words with the case
//! bit cleared; up to 16 bytes, these words and the length are the whole name, so one comparison of
//! registers decides and no upper-cased copy is made.
//!
//! ```text
//!   "incrbyfloat"   head = "INCRBYFL"   tail = "RBYFLOAT"   length = 11
//! ```
//!
//! Subcommands are in a second table of the same form; their hash is mixed with the place of their
//! container in the first one.

use super::spec::{CommandRef, Spec};
use super::{containers, flag, gateway, storage};
use crate::error::CommandError;

/// Places per table: a power of two, four times the commands of all tables that are planned, so
/// that nearly every name is at its first place.
const PLACES: usize = 1024;
const PLACE_BITS: u32 = PLACES.trailing_zeros();

/// Clears the bit that tells lower from upper case.
const CASE_MASK: u64 = 0xDFDF_DFDF_DFDF_DFDF;

/// What a name means.
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    /// This command.
    Found(&'static Spec, CommandRef),
    /// No command has this name.
    UnknownCommand,
    /// The command has subcommands, but not this one.
    UnknownSubcommand(&'static Spec),
}

#[derive(Clone, Copy)]
struct Entry {
    head: u64,
    tail: u64,
    /// 0 = free place.
    length: u8,
    /// The words do not tell the whole name: compare it.
    verify: bool,
    has_subcommands: bool,
    table: Table,
    index: u16,
    /// Subcommands: place of the container plus 1, as mixed into the hash.
    seed: u16,
}

#[derive(Clone, Copy)]
#[repr(u8)]
enum Table {
    Gateway,
    Storage,
    Container,
}

const FREE: Entry = Entry {
    head: 0,
    tail: 0,
    length: 0,
    verify: false,
    has_subcommands: false,
    table: Table::Gateway,
    index: 0,
    seed: 0,
};

struct Tables {
    commands: [Entry; PLACES],
    subcommands: [Entry; PLACES],
}

static TABLES: Tables = build();

/// The row that `name` (and `sub`, the first argument, if there is one) means. Case does not matter.
#[inline]
#[must_use]
pub fn find(name: &[u8], sub: Option<&[u8]>) -> Lookup {
    let Some((place, entry)) = probe(&TABLES.commands, name, 0) else {
        return Lookup::UnknownCommand;
    };
    let spec = entry.spec();
    if !entry.has_subcommands {
        return Lookup::Found(spec, spec.command);
    }
    let Some(sub) = sub else {
        return Lookup::Found(spec, spec.command);
    };
    match probe(&TABLES.subcommands, sub, place as u16 + 1) {
        Some((_, entry)) => Lookup::Found(entry.spec(), entry.spec().command),
        None => Lookup::UnknownSubcommand(spec),
    }
}

/// The error for a request whose name [`find`] did not find.
#[must_use]
pub fn unknown<'a>(
    lookup: Lookup,
    name: &[u8],
    mut arguments: impl Iterator<Item = &'a [u8]>,
) -> CommandError {
    match lookup {
        Lookup::UnknownSubcommand(parent) => {
            CommandError::unknown_subcommand(parent.name, arguments.next().unwrap_or_default())
        }
        Lookup::UnknownCommand | Lookup::Found(..) => {
            CommandError::unknown_command(name, arguments)
        }
    }
}

impl Entry {
    #[inline]
    fn spec(&self) -> &'static Spec {
        let index = self.index as usize;
        match self.table {
            Table::Gateway => &gateway::SPECS[index],
            Table::Storage => &storage::SPECS[index],
            Table::Container => &containers::SPECS[index],
        }
    }
}

#[inline]
fn probe(
    table: &'static [Entry; PLACES],
    name: &[u8],
    seed: u16,
) -> Option<(usize, &'static Entry)> {
    let (head, tail) = words(name);
    let mut place = place_of(head, tail, name.len(), seed);
    loop {
        let entry = &table[place];
        if entry.length == 0 {
            return None;
        }
        if entry.head == head
            && entry.tail == tail
            && entry.length as usize == name.len()
            && entry.seed == seed
            && (!entry.verify || is_name(entry, name))
        {
            return Some((place, entry));
        }
        place = (place + 1) % PLACES;
    }
}

#[cold]
fn is_name(entry: &Entry, name: &[u8]) -> bool {
    let full = entry.spec().name;
    let own = full.split_once('|').map_or(full, |(_, sub)| sub);
    own.as_bytes().eq_ignore_ascii_case(name)
}

/// The first and the last eight bytes without case; for short names, all bytes in `head`.
#[inline]
fn words(name: &[u8]) -> (u64, u64) {
    let length = name.len();
    let (head, tail) = if let (Some(head), Some(tail)) = (name.first_chunk(), name.last_chunk()) {
        (u64::from_le_bytes(*head), u64::from_le_bytes(*tail))
    } else if let (Some(head), Some(tail)) = (name.first_chunk(), name.last_chunk()) {
        let (head, tail) = (u32::from_le_bytes(*head), u32::from_le_bytes(*tail));
        (u64::from(head) | u64::from(tail) << 32, 0)
    } else if length > 0 {
        let bytes = [name[0], name[length / 2], name[length - 1]];
        (
            u64::from(bytes[0]) | u64::from(bytes[1]) << 8 | u64::from(bytes[2]) << 16,
            0,
        )
    } else {
        (0, 0)
    };
    (head & CASE_MASK, tail & CASE_MASK)
}

#[inline]
const fn place_of(head: u64, tail: u64, length: usize, seed: u16) -> usize {
    let mixed = head ^ tail.rotate_left(27) ^ (length as u64) ^ ((seed as u64) << 32);
    (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PLACE_BITS)) as usize
}

// The same as `words`, for the compiler: slices of constants, byte by byte.
const fn constant_words(name: &[u8], from: usize) -> (u64, u64) {
    let length = name.len() - from;
    let (mut head, mut tail) = (0u64, 0u64);
    let mut at = 0;
    if length >= 8 {
        while at < 8 {
            head |= (name[from + at] as u64) << (8 * at);
            tail |= (name[from + length - 8 + at] as u64) << (8 * at);
            at += 1;
        }
    } else if length >= 4 {
        while at < 4 {
            head |= (name[from + at] as u64) << (8 * at);
            head |= (name[from + length - 4 + at] as u64) << (8 * at + 32);
            at += 1;
        }
    } else if length > 0 {
        head = name[from] as u64
            | (name[from + length / 2] as u64) << 8
            | (name[from + length - 1] as u64) << 16;
    }
    (head & CASE_MASK, tail & CASE_MASK)
}

const fn build() -> Tables {
    let mut tables = Tables {
        commands: [FREE; PLACES],
        subcommands: [FREE; PLACES],
    };
    insert_all(&mut tables, Table::Gateway, &gateway::SPECS, false);
    insert_all(&mut tables, Table::Storage, &storage::SPECS, false);
    insert_all(&mut tables, Table::Container, &containers::SPECS, false);
    insert_all(&mut tables, Table::Gateway, &gateway::SPECS, true);
    insert_all(&mut tables, Table::Storage, &storage::SPECS, true);
    tables
}

/// First pass: names of one word; second pass: subcommands, whose container is then known.
const fn insert_all(tables: &mut Tables, table: Table, specs: &[Spec], second_words: bool) {
    let mut index = 0;
    while index < specs.len() {
        let spec = &specs[index];
        let name = spec.name.as_bytes();
        let bar = bar_of(name);
        let is_internal = spec.flags.has(flag::INTERNAL);
        if !is_internal && second_words == (bar < name.len()) {
            let mut entry = entry_of(name, if second_words { bar + 1 } else { 0 });
            entry.table = table;
            entry.index = index as u16;
            if second_words {
                let parent = parent_place(&tables.commands, name, bar);
                tables.commands[parent].has_subcommands = true;
                insert(&mut tables.subcommands, entry, parent as u16 + 1);
            } else {
                insert(&mut tables.commands, entry, 0);
            }
        }
        index += 1;
    }
}

const fn bar_of(name: &[u8]) -> usize {
    let mut at = 0;
    while at < name.len() && name[at] != b'|' {
        at += 1;
    }
    at
}

const fn entry_of(name: &[u8], from: usize) -> Entry {
    let (head, tail) = constant_words(name, from);
    let length = name.len() - from;
    let mut verify = length > 16;
    let mut at = from;
    while at < name.len() {
        // Clearing the case bit keeps letters apart; of other characters it may make one out of two.
        verify |= !name[at].is_ascii_alphabetic();
        at += 1;
    }
    Entry {
        head,
        tail,
        length: length as u8,
        verify,
        ..FREE
    }
}

const fn insert(table: &mut [Entry; PLACES], mut entry: Entry, seed: u16) {
    entry.seed = seed;
    let mut place = place_of(entry.head, entry.tail, entry.length as usize, seed);
    while table[place].length != 0 {
        place = (place + 1) % PLACES;
    }
    table[place] = entry;
}

const fn parent_place(table: &[Entry; PLACES], name: &[u8], bar: usize) -> usize {
    let (parent, _) = name.split_at(bar);
    let wanted = entry_of(parent, 0);
    let mut place = place_of(wanted.head, wanted.tail, bar, 0);
    loop {
        assert!(
            table[place].length != 0,
            "a subcommand without its container"
        );
        if table[place].head == wanted.head
            && table[place].tail == wanted.tail
            && table[place].length == wanted.length
        {
            return place;
        }
        place = (place + 1) % PLACES;
    }
}
