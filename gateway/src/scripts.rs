//! Scripts as a gateway sees them: where they run, and which are remembered.
//!
//! ```text
//!   SCRIPT LOAD  ──> a worker looks whether it compiles ──> the supervisor puts it into the registry
//!   EVAL         ──> remembered by this process, the oldest goes; runs where its keys live
//!   EVALSHA      ──> only remembered: first the supervisor puts it into the registry, for all workers
//!                    and for those that come later; otherwise it runs where its keys live
//! ```
//!
//! So scripts that are made anew for every call stay out of the registry, and those that are called by
//! their SHA1 survive every process.
//!
//! Cost of EVAL: a hash of the body per call. Not here: compiling and running (storage worker).

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;
use proto::catalogue::{Spec, StorageCommand, flag};
use proto::frame::flags as frame_flags;
use proto::number::parse_i64;
use proto::registry::{Registry, Script};
use proto::script_reach::touches_only_its_keys;
use proto::settings::bytes::{to_bytes, to_text};
use proto::sha1::{Sha1Text, digest_text, sha1_text};
use runtime::Request;
use xxhash_rust::xxh3::xxh3_64;

use crate::call::Call;
use crate::core::{Core, Flow};
use crate::internal::{BY_BODY, BY_SHA1};
use crate::router::Place;

/// Scripts of EVAL that are remembered.
const REMEMBERED_MAX: usize = 500;
/// Bytes of them.
const REMEMBERED_BYTES_MAX: usize = 64 << 20;

/// The flag of scripts and functions that do not write.
const NO_WRITES: &str = "no-writes";

/// Whether the first line of a script says so.
fn body_promises_not_to_write(body: &[u8]) -> bool {
    let line = body.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let words = line.split(|&byte| byte == b' ');
    let mut flags = words
        .filter_map(|word| word.strip_prefix(b"flags="))
        .flat_map(|names| names.split(|&byte| byte == b','));
    line.starts_with(b"#!lua") && flags.any(|flag| flag == NO_WRITES.as_bytes())
}

/// A script for the registry.
pub(crate) fn script(sha1: &Sha1Text, body: &[u8]) -> Script {
    Script {
        sha1: String::from_utf8_lossy(sha1).into_owned(),
        body: to_text(body),
    }
}

/// The scripts that a gateway process knows.
#[derive(Debug, Default)]
pub(crate) struct ScriptStore {
    /// Those in the registry, and whether they touch only keys that they declare.
    known: HashMap<Sha1Text, bool>,
    flushes: u64,
    /// Those of EVAL.
    remembered: HashMap<Sha1Text, Arc<[u8]>>,
    /// The same, oldest first.
    order: VecDeque<Sha1Text>,
    bytes: usize,
}

impl ScriptStore {
    /// Takes over what is in the registry; true if threads may have seen scripts that are gone.
    pub(crate) fn take_registry(&mut self, registry: &Registry) -> bool {
        let is_flushed = registry.script_flushes != self.flushes;
        self.flushes = registry.script_flushes;
        let scripts = registry.scripts.iter();
        let before = std::mem::take(&mut self.known);
        self.known = scripts
            .filter_map(|script| {
                let sha1 = sha1_text(script.sha1.as_bytes())?;
                let known = before.get(&sha1).copied();
                let is_certain =
                    known.unwrap_or_else(|| touches_only_its_keys(&to_bytes(&script.body)));
                Some((sha1, is_certain))
            })
            .collect();
        if is_flushed {
            self.remembered.clear();
        }
        self.remembered
            .retain(|sha1, _| !self.known.contains_key(sha1));
        self.order.retain(|sha1| self.remembered.contains_key(sha1));
        self.bytes = self.remembered.values().map(|body| body.len()).sum();
        is_flushed
    }

    /// Remembers a script; true if others are forgotten for it.
    pub(crate) fn remember(&mut self, sha1: Sha1Text, body: &[u8]) -> bool {
        if body.len() > REMEMBERED_BYTES_MAX || self.has(&sha1) {
            return false;
        }
        self.remembered.insert(sha1, body.into());
        self.order.push_back(sha1);
        self.bytes += body.len();
        let mut is_any_gone = false;
        while self.order.len() > REMEMBERED_MAX || self.bytes > REMEMBERED_BYTES_MAX {
            let Some(oldest) = self.order.front().copied() else {
                break;
            };
            self.forget(&oldest);
            is_any_gone = true;
        }
        is_any_gone
    }

    /// Forgets one of EVAL.
    pub(crate) fn forget(&mut self, sha1: &Sha1Text) {
        if let Some(body) = self.remembered.remove(sha1) {
            self.bytes -= body.len();
            self.order.retain(|known| known != sha1);
        }
    }

    /// Whether it is known here or in the registry.
    pub(crate) fn has(&self, sha1: &Sha1Text) -> bool {
        self.known.contains_key(sha1) || self.remembered.contains_key(sha1)
    }

    /// Whether it is in the registry.
    pub(crate) fn is_registered(&self, sha1: &Sha1Text) -> bool {
        self.known.contains_key(sha1)
    }

    /// Whether it is in the registry and touches only keys that it declares.
    pub(crate) fn is_certain(&self, sha1: &Sha1Text) -> bool {
        self.known.get(sha1).copied().unwrap_or(false)
    }

    /// The body of a script that only this process knows.
    pub(crate) fn remembered(&self, sha1: &Sha1Text) -> Option<Arc<[u8]>> {
        self.remembered.get(sha1).cloned()
    }

    /// How many are known.
    pub(crate) fn len(&self) -> usize {
        self.known.len() + self.remembered.len()
    }
}

/// Hashes of scripts that a thread need not remember again, and whether they touch only keys that they declare.
#[derive(Debug, Default)]
pub(crate) struct SeenScripts {
    hashes: HashMap<u64, bool>,
    epoch: u64,
}

impl Core {
    /// Sends a script where its keys live.
    pub(crate) fn route_script(
        &mut self,
        call: &Call<'_>,
        spec: &'static Spec,
        command: StorageCommand,
    ) -> Flow {
        if let Some(flow) = self.prepare_script(call, command) {
            return flow;
        }
        let is_certain = self.lanes.workers() == 1 || self.is_certain(call, command);
        match self.script_place(call) {
            Place::One { worker, slot } if is_certain => {
                self.note_unit(call.index);
                self.send(call, command, worker, slot)
            }
            Place::One { slot, .. } | Place::Several { slot } => {
                let flags = if is_certain {
                    frame_flags::ONLY_ITS_KEYS
                } else {
                    0
                };
                self.cross_with(call, spec, command, (slot, flags))
            }
        }
    }

    /// Whether a script promises not to write, which the row of its command cannot know.
    pub(crate) fn promises_not_to_write(&self, call: &Call<'_>, command: StorageCommand) -> bool {
        if !command.spec().flags.has(flag::SCRIPT) {
            return false;
        }
        if BY_BODY.contains(&command) {
            return body_promises_not_to_write(call.arg(1));
        }
        if !BY_SHA1.contains(&command) {
            let registry = self.shared.registry();
            let libraries = registry.libraries.iter();
            let mut functions = libraries.flat_map(|library| &library.functions);
            let function = functions.find(|function| *to_bytes(&function.name) == *call.arg(1));
            return function
                .is_some_and(|function| function.flags.iter().any(|flag| flag == NO_WRITES));
        }
        let Some(sha1) = sha1_text(call.arg(1)) else {
            return false;
        };
        if let Some(body) = self.shared.scripts(|scripts| scripts.remembered(&sha1)) {
            return body_promises_not_to_write(&body);
        }
        let registry = self.shared.registry();
        let mut scripts = registry.scripts.iter();
        let script = scripts.find(|script| *script.sha1.as_bytes() == sha1);
        script.is_some_and(|script| body_promises_not_to_write(&to_bytes(&script.body)))
    }

    /// Whether the script is one that touches only keys that it declares.
    fn is_certain(&self, call: &Call<'_>, command: StorageCommand) -> bool {
        if BY_BODY.contains(&command) {
            let seen = self.seen_scripts.hashes.get(&xxh3_64(call.arg(1)));
            return seen.copied().unwrap_or(false);
        }
        let sha1 = sha1_text(call.arg(1)).filter(|_| BY_SHA1.contains(&command));
        sha1.is_some_and(|sha1| self.shared.scripts(|scripts| scripts.is_certain(&sha1)))
    }

    /// Whether a script goes to this worker behind a command over several workers that went there.
    pub(crate) fn script_goes_to(
        &self,
        call: &Call<'_>,
        command: StorageCommand,
        to: usize,
    ) -> bool {
        match self.script_place(call) {
            Place::One { worker, .. } if self.is_certain(call, command) => worker == to,
            _ => true,
        }
    }

    /// Does what must be done before a script runs, or stands in a transaction; `Some` if the command has to
    /// wait for that.
    pub(crate) fn prepare_script(
        &mut self,
        call: &Call<'_>,
        command: StorageCommand,
    ) -> Option<Flow> {
        if BY_BODY.contains(&command) {
            self.remember_script(call.arg(1));
            return None;
        }
        if BY_SHA1.contains(&command) {
            return self.register_first(call);
        }
        None
    }

    /// Where its keys live; what is not understood goes to any worker, which refuses it.
    fn script_place(&self, call: &Call<'_>) -> Place {
        let count = parse_i64(call.arg(2)).and_then(|count| usize::try_from(count).ok());
        match count {
            Some(count @ 1..) if count <= call.len().saturating_sub(3) => {
                self.place_of(call, 3, 2 + count, 1)
            }
            _ => Place::One { worker: 0, slot: 0 },
        }
    }

    fn remember_script(&mut self, body: &[u8]) {
        let epoch = self.shared.script_epoch();
        let seen = &mut self.seen_scripts;
        if seen.epoch != epoch || seen.hashes.len() > REMEMBERED_MAX {
            seen.epoch = epoch;
            seen.hashes.clear();
        }
        let hash = xxh3_64(body);
        if !seen.hashes.contains_key(&hash) {
            seen.hashes.insert(hash, touches_only_its_keys(body));
            self.shared.remember_script(digest_text(body), body);
        }
    }

    /// A script that only this process knows must be known to all before it is called by its SHA1; the
    /// command then waits.
    fn register_first(&mut self, call: &Call<'_>) -> Option<Flow> {
        let sha1 = sha1_text(call.arg(1))?;
        let body = self.shared.scripts(|scripts| scripts.remembered(&sha1))?;
        let who = self.get(call.index)?.who(call.index);
        let request = Request::AddScript(script(&sha1, &body));
        self.ask_and_retry(who, request, sha1)
            .then_some(Flow::Retry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_stand_in_the_first_line() {
        for (body, promises) in [
            ("#!lua flags=no-writes\nreturn 1", true),
            ("#!lua  flags=allow-oom,no-writes \n", true),
            ("#!lua flags=allow-oom\n", false),
            ("#!lua\n-- flags=no-writes\n", false),
            ("return 'flags=no-writes'", false),
            ("", false),
        ] {
            assert_eq!(body_promises_not_to_write(body.as_bytes()), promises);
        }
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut store = ScriptStore::default();
        for number in 0..REMEMBERED_MAX {
            let body = format!("return {number}");
            assert!(!store.remember(digest_text(body.as_bytes()), body.as_bytes()));
        }
        assert!(store.remember(digest_text(b"x"), b"x"));
        assert_eq!(store.len(), REMEMBERED_MAX);
        assert!(!store.has(&digest_text(b"return 0")));
        assert!(store.has(&digest_text(b"x")));
    }
}
