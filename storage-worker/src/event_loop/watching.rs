//! Who watches which keys, and whether those have been changed since: WATCH.
//!
//! ```text
//!   keys       key ──> (database, client), ...        looked at behind commands that have changed something
//!   clients    client ──> keys, is one changed?       looked at by EXEC
//! ```
//!
//! A command that has changed something touches those of its keys that it writes, as the catalogue says.
//! What leaves no trace there (expiry, eviction, a flush) is found at EXEC: a key that was there and is not
//! any more has been changed. One that was missing, or whose time was over, and still is, has not.
//!
//! The table is in private memory and dies with the worker. EXEC says how many keys its client watches here,
//! and a successor, which knows of none, takes them for changed.
//!
//! Cost: one compare behind a command that writes while nobody watches; nothing for one that reads.

use crate::blocking::WaitKey;
use crate::keyspace::{Key, Keyspace};
use proto::catalogue::{KeyAt, KeySpec, StorageCommand, access, extract_from};
use proto::frame::Args;
use proto::number::parse_i64;
use proto::slot::slot_of;
use proto::time::UnixMillis;
use std::collections::HashMap;

/// A connection of a gateway thread: link, place there, generation of the place.
pub(crate) type Client = (u32, u32, u32);

/// What is known of a key from when it was watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    exists: bool,
    /// Bytes of its elements if they are packed.
    packed: Option<usize>,
}

#[derive(Debug, Default)]
struct Watcher {
    is_changed: bool,
    keys: Vec<(WaitKey, Seen)>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    keys: HashMap<Box<[u8]>, Vec<(u16, Client)>>,
    clients: HashMap<Client, Watcher>,
    found: Vec<KeyAt>,
}

/// What is looked at to see whether a key is still what it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) hash_seed: u64,
    pub(crate) now: UnixMillis,
}

impl View<'_> {
    fn see(&self, db: u16, bytes: &[u8]) -> Seen {
        let key = Key::new(self.hash_seed, db, slot_of(bytes), bytes);
        let found = self.keyspace.look(&key, self.now);
        Seen {
            exists: found.is_some(),
            packed: found.and_then(|found| {
                let is_packed =
                    !found.is_structure() && found.kind() != crate::keyspace::ValueKind::String;
                is_packed.then(|| found.packed().len())
            }),
        }
    }
}

impl Watching {
    /// Whether nobody watches anything.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Keys that somebody watches.
    pub(crate) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// The client watches a key from now on.
    pub(crate) fn watch(&mut self, client: Client, (db, bytes): (u16, &[u8]), view: &View<'_>) {
        let watcher = self.clients.entry(client).or_default();
        if watcher
            .keys
            .iter()
            .any(|((in_db, key), _)| *in_db == db && **key == *bytes)
        {
            return;
        }
        watcher.keys.push(((db, bytes.into()), view.see(db, bytes)));
        self.keys
            .entry(bytes.into())
            .or_default()
            .push((db, client));
    }

    /// The client watches nothing from now on. Whether one of its keys, which should be `count`, has been
    /// changed.
    pub(crate) fn end(&mut self, client: Client, count: u32, view: &View<'_>) -> bool {
        let Some(watcher) = self.forget(client) else {
            return count > 0;
        };
        let is_gone =
            |(key, seen): &(WaitKey, Seen)| seen.exists && !view.see(key.0, &key.1).exists;
        watcher.is_changed
            || watcher.keys.len() != count as usize
            || watcher.keys.iter().any(is_gone)
    }

    fn forget(&mut self, client: Client) -> Option<Watcher> {
        let watcher = self.clients.remove(&client)?;
        for ((_, key), _) in &watcher.keys {
            if let Some(list) = self.keys.get_mut(key) {
                list.retain(|(_, other)| *other != client);
                if list.is_empty() {
                    self.keys.remove(key);
                }
            }
        }
        Some(watcher)
    }

    /// The client is gone.
    pub(crate) fn remove(&mut self, client: Client) {
        self.forget(client);
    }

    /// All clients of a link are gone.
    pub(crate) fn remove_link(&mut self, link: u32) {
        let gone: Vec<Client> = self
            .clients
            .keys()
            .copied()
            .filter(|client| client.0 == link)
            .collect();
        gone.into_iter().for_each(|client| self.remove(client));
    }

    /// A command that writes has run without an error, and has changed something or not.
    #[cold]
    pub(crate) fn note(
        &mut self,
        command: StorageCommand,
        (db, argc): (u16, u32),
        (body, has_changed): (&[u8], bool),
        view: &View<'_>,
    ) {
        use StorageCommand as C;
        // Those without keys count their changes at one worker only; LTRIM touches what it leaves as it is.
        let may_touch = command.spec().keys == KeySpec::None || command == C::LTrim;
        if !has_changed && !may_touch {
            return;
        }
        let mut spans = Vec::new();
        let Ok(args) = Args::new(body, argc, &mut spans) else {
            return;
        };
        let other =
            |at: usize| parse_i64(args.get(at)).and_then(|number| u16::try_from(number).ok());
        match command {
            // The value of the stream stays as it is.
            C::XAck | C::XClaim | C::XAutoClaim | C::XReadGroup | C::XSetId => return,
            C::XGroupSetId | C::XGroupDestroy | C::XGroupCreateConsumer | C::XGroupDelConsumer => {
                return;
            }
            // It matters only if it has made the stream.
            C::XGroupCreate => return self.note_anything(view),
            C::DebugReload => {
                return self
                    .clients
                    .values_mut()
                    .for_each(|watcher| watcher.is_changed = true);
            }
            C::SwapDb => {
                if let (Some(one), Some(two)) = (other(1), other(2)) {
                    self.note_swap(one, two, view);
                }
                return;
            }
            C::Move => {
                let to = other(2).unwrap_or(db);
                self.touch(db, args.get(1), false, view);
                return self.touch(to, args.get(1), false, view);
            }
            C::Copy => {
                let at = (3..args.len()).find(|&at| args.get(at).eq_ignore_ascii_case(b"DB"));
                let to = at.and_then(|at| other(at + 1)).unwrap_or(db);
                return self.touch(to, args.get(2), false, view);
            }
            _ => {}
        }
        // These write some of their keys and leave the others as they are.
        let may_spare = matches!(
            command,
            C::LMPop
                | C::BLMPop
                | C::ZMPop
                | C::BZMPop
                | C::BLPop
                | C::BRPop
                | C::BZPopMin
                | C::BZPopMax
                | C::SMove
        );
        let mut found = std::mem::take(&mut self.found);
        extract_from(command, args, &mut found);
        if found.is_empty() {
            self.note_anything(view);
        }
        for key in &found {
            if key.access.has(access::RW | access::OW | access::RM) {
                self.touch(db, args.get(key.position as usize), may_spare, view);
            }
        }
        self.found = found;
    }

    /// A key was written, unless there was nothing before and is nothing now, or, if that `may_spare` it, it
    /// is just as large as it was.
    fn touch(&mut self, db: u16, bytes: &[u8], may_spare: bool, view: &View<'_>) {
        let Some(list) = self.keys.get(bytes) else {
            return;
        };
        let now = view.see(db, bytes);
        for (_, client) in list.iter().filter(|(in_db, _)| *in_db == db) {
            let Some(watcher) = self.clients.get_mut(client) else {
                continue;
            };
            let key = watcher
                .keys
                .iter()
                .find(|((in_db, key), _)| *in_db == db && **key == *bytes);
            let is_same = key.is_some_and(|(_, before)| {
                let is_missing = !before.exists && !now.exists;
                is_missing || may_spare && now.packed.is_some() && now == *before
            });
            watcher.is_changed |= !is_same;
        }
    }

    /// Two databases have changed places: keys that are in one of them are other ones now.
    fn note_swap(&mut self, one: u16, two: u16, view: &View<'_>) {
        for watcher in self.clients.values_mut().filter(|_| one != two) {
            watcher.is_changed |= watcher.keys.iter().any(|((db, key), _)| {
                let is_meant = *db == one || *db == two;
                is_meant && (view.see(one, key).exists || view.see(two, key).exists)
            });
        }
    }

    /// A command without keys has changed something: keys may have come or gone.
    fn note_anything(&mut self, view: &View<'_>) {
        for watcher in self.clients.values_mut() {
            let is_other =
                |(key, seen): &(WaitKey, Seen)| seen.exists != view.see(key.0, &key.1).exists;
            watcher.is_changed |= watcher.keys.iter().any(is_other);
        }
    }
}
