//! The request side of one link: frames seen ahead, and requests that come in parts.
//!
//! Looking ahead is what makes many small tables fast. A look-up touches three places in memory,
//! each found through the one before: slot header, bucket, entry. Done for one command after the
//! other every step is a cache miss that stalls the core; done for 32 commands in three passes, the
//! misses of a pass overlap.
//!
//! ```text
//!   decode 32 headers, hash their keys
//!   pass 1  prefetch slot headers
//!   pass 2  prefetch buckets
//!   pass 3  prefetch entries
//!   pass 4  and 5, for HSET, SADD, ZADD ...: bucket and element in the table of a big collection
//!   execute one by one
//! ```
//!
//! A request bigger than a quarter of the ring comes in parts, and parts of several connections may
//! alternate. They are collected in private memory; the last part executes the whole. A part that
//! does not continue what is collected (its beginning died with a predecessor) is answered with
//! `Again`, once per request.
//!
//! Cost: about 40 ns per command for decoding, hashing and the three passes, paid back several
//! times by the misses.
//! Not here: running commands (`link`), what a key is (`keyspace`).

use crate::engine::Engine;
use crate::keyspace::{Key, Keyspace};
use proto::catalogue::StorageCommand;
use proto::frame::{FrameError, REQUEST_HEADER_BYTES, RequestHeader, RequestKind, padded};
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Frames seen ahead: beyond 32 the misses of a pass no longer overlap better, and the first ones
/// might be evicted before they are used.
pub(crate) const AHEAD_MAX: usize = 32;

/// A frame that has been decoded and whose key has been hashed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    /// Where it starts in the readable bytes.
    pub(crate) start: usize,
    pub(crate) header: RequestHeader,
    /// Hash of argument 1, if the command has a key there.
    pub(crate) hash: Option<u64>,
}

impl Ahead {
    /// Where the next frame starts.
    pub(crate) fn end(&self) -> usize {
        self.start + padded(self.header.len as usize)
    }

    /// What finds the memory of its key: everything but the name.
    #[inline]
    fn nameless_key(&self) -> Option<Key<'static>> {
        self.hash.map(|hash| Key {
            db: self.header.database,
            slot: self.header.slot,
            bytes: &[],
            hash,
        })
    }

    /// The packed arguments, within the same readable bytes.
    pub(crate) fn body<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes
            .get(self.start + REQUEST_HEADER_BYTES..self.start + self.header.len as usize)
            .unwrap_or(&[])
    }
}

/// Decodes up to [`AHEAD_MAX`] frames of `bytes` and fetches the memory that they will need.
///
/// # Errors
/// The first frame that makes no sense, if it is the first of all; frames before a bad one are
/// returned so that they are still answered.
pub(crate) fn look_ahead(
    bytes: &[u8],
    keyspace: &Keyspace,
    hash_seed: u64,
    ahead: &mut Vec<Ahead>,
) -> Result<(), FrameError> {
    ahead.clear();
    let mut start = 0;
    let mut names_elements = false;
    while start < bytes.len() && ahead.len() < AHEAD_MAX {
        let header = match RequestHeader::decode(&bytes[start..]) {
            Ok(header) => header,
            Err(error) if ahead.is_empty() => return Err(error),
            Err(_) => break,
        };
        let mut frame = Ahead {
            start,
            header,
            hash: None,
        };
        if header.kind == RequestKind::Request
            && let Some(bytes) = first_key(&header, frame.body(bytes))
        {
            let key = Key::new(hash_seed, header.database, header.slot, bytes);
            keyspace.prefetch_slot(&key);
            frame.hash = Some(key.hash);
            names_elements |= element_argument(&header) != 0;
        }
        start = frame.end();
        ahead.push(frame);
    }
    let keys = || ahead.iter().filter_map(Ahead::nameless_key);
    keys().for_each(|key| keyspace.prefetch_bucket(&key));
    keys().for_each(|key| keyspace.prefetch_entry(&key));
    if names_elements && ahead.len() > 1 {
        look_inside(bytes, keyspace, hash_seed, ahead);
    }
    Ok(())
}

/// Two more passes for commands that name an element of a collection: big ones have a table in which
/// the same misses wait.
#[inline(never)]
fn look_inside(bytes: &[u8], keyspace: &Keyspace, hash_seed: u64, ahead: &[Ahead]) {
    let mut found = [None; AHEAD_MAX];
    for (frame, found) in ahead.iter().zip(&mut found) {
        let number = element_argument(&frame.header);
        if number != 0
            && let Some(key) = frame.nameless_key()
            && let Some(name) = argument(frame.body(bytes), number)
        {
            let hash = xxh3_64_with_seed(name, hash_seed);
            let inner = keyspace.prefetch_inner_bucket(&key, hash);
            *found = inner.map(|inner| (inner, hash));
        }
    }
    for (inner, hash) in found.into_iter().flatten() {
        keyspace.prefetch_inner_element(inner, hash);
    }
}

/// Number of the argument that names an element of the collection; 0 if none does.
#[inline]
fn element_argument(header: &RequestHeader) -> usize {
    StorageCommand::from_u16(header.command).map_or(0, Engine::element_argument)
}

/// An argument of a frame that has not been checked yet.
#[inline]
fn argument(body: &[u8], number: usize) -> Option<&[u8]> {
    let mut rest = body;
    for _ in 1..number {
        let (len, behind) = rest.split_first_chunk()?;
        rest = behind.get(u32::from_le_bytes(*len) as usize..)?;
    }
    let (len, behind) = rest.split_first_chunk()?;
    behind.get(..u32::from_le_bytes(*len) as usize)
}

/// Argument 1 if it is a key. The frame is checked as a whole when it is executed.
#[inline]
fn first_key<'a>(header: &RequestHeader, body: &'a [u8]) -> Option<&'a [u8]> {
    if !Engine::key_is_first(StorageCommand::from_u16(header.command)?) {
        return None;
    }
    argument(body, 1)
}

/// What a part of a request led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Assembled {
    /// More parts are to come, or this one was a leftover that has been dealt with.
    Nothing,
    /// The whole frame.
    Whole(Vec<u8>),
    /// The beginning is missing: ask for all of it again.
    Again,
}

/// A request that is being collected.
#[derive(Debug)]
struct Partial {
    sequence: u32,
    total: usize,
    bytes: Vec<u8>,
    /// Its beginning is missing and has been asked for.
    is_asked_again: bool,
}

/// The requests that come in parts, by connection.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    partial: HashMap<(u32, u32), Partial>,
}

impl Assembly {
    /// Whether this part makes its request whole and `is_held` says that it must not run now.
    pub(crate) fn is_held(
        &mut self,
        header: &RequestHeader,
        body: &[u8],
        is_held: impl FnOnce(&[u8]) -> bool,
    ) -> bool {
        let who = (header.connection, header.generation);
        let Some(partial) = self.partial.get_mut(&who) else {
            return false;
        };
        let len = partial.bytes.len();
        if len != header.part as usize || len + body.len() != partial.total {
            return false;
        }
        partial.bytes.extend_from_slice(body);
        let is_held = is_held(&partial.bytes);
        partial.bytes.truncate(len);
        is_held
    }

    /// Takes one part.
    pub(crate) fn accept(&mut self, header: &RequestHeader, body: &[u8]) -> Assembled {
        let (offset, total) = (header.part as usize, header.argc as usize);
        let who = (header.connection, header.generation);
        let partial = self.partial.entry(who).or_insert_with(|| Partial {
            sequence: header.sequence,
            total,
            bytes: Vec::new(),
            is_asked_again: false,
        });
        if offset == 0 {
            *partial = Partial {
                sequence: header.sequence,
                total,
                // Filled part by part; a sender that announces more than it sends costs nothing.
                bytes: Vec::with_capacity(total.min(CAPACITY_AHEAD)),
                is_asked_again: false,
            };
        }
        let fits = offset <= total
            && partial.bytes.len() == offset
            && partial.sequence == header.sequence
            && partial.total == total
            && body.len() <= total - offset;
        if !fits {
            let is_first = !partial.is_asked_again || partial.sequence != header.sequence;
            partial.bytes = Vec::new();
            partial.sequence = header.sequence;
            partial.is_asked_again = true;
            return if is_first {
                Assembled::Again
            } else {
                Assembled::Nothing
            };
        }
        partial.bytes.extend_from_slice(body);
        if partial.bytes.len() < total {
            return Assembled::Nothing;
        }
        match self.partial.remove(&who) {
            Some(partial) => Assembled::Whole(partial.bytes),
            None => Assembled::Nothing,
        }
    }
}

/// Memory taken at once for a request in parts; more is taken as parts arrive.
const CAPACITY_AHEAD: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_an_unchecked_body_are_found_or_missing() {
        let body = [&2u32.to_le_bytes()[..], b"ab", &1u32.to_le_bytes(), b"c"].concat();
        assert_eq!(argument(&body, 1), Some(&b"ab"[..]));
        assert_eq!(argument(&body, 2), Some(&b"c"[..]));
        assert_eq!(argument(&body, 3), None);
        for end in 0..body.len() {
            assert_eq!(argument(&body[..end], 2), None, "{end}");
        }
        let too_long = u32::MAX.to_le_bytes();
        assert_eq!(argument(&too_long, 2), None);
    }

    #[test]
    fn who_names_an_element_has_a_key_in_front_of_it() {
        let mut count = 0;
        for number in 0..StorageCommand::COUNT {
            let command = StorageCommand::from_u16(number as u16).unwrap();
            if Engine::element_argument(command) != 0 {
                assert!(Engine::key_is_first(command), "{command:?}");
                count += 1;
            }
        }
        assert_eq!(count, 21);
    }
}
