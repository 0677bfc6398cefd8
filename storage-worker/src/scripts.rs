//! The scripts of a worker: compiled ones, those that everybody knows, and what they run in.
//!
//! ```text
//!   EVAL body      ──> hash of the body ──┐
//!   EVALSHA sha1   ──> sha1 ──────────────┴──> compiled script, the least recently used of which goes
//!                        └ not compiled: body in the registry, or NOSCRIPT
//! ```
//!
//! Not here: how a script's commands are run (`commands::script`), Lua (crate `script`).

use crate::functions::Functions;
use crate::neighbours::{Neighbours, Workers};
use hashbrown::HashMap;
use proto::frame::{Args, Question, Space};
use proto::registry::Registry;
use proto::settings::bytes::to_bytes;
use proto::sha1::{Sha1Text, digest_text, sha1_text};
use script::{Kind, Program, Tick, Vm};
use std::fmt;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Compiled scripts that are kept.
const COMPILED_MAX: usize = 500;
/// Memory of all scripts of a worker; one that needs more ends with an error.
pub const LUA_BYTES_MAX: usize = 1 << 30;

/// Looks at the clock and at control words on behalf of scripts, which must not.
pub trait Watch: fmt::Debug {
    /// A script, or this function, runs and has run for some time; it holds these workers.
    fn tick(
        &mut self,
        function: Option<FunctionCall<'_>>,
        has_written: bool,
        holds: Workers,
    ) -> Tick;
    /// It has ended.
    fn end(&mut self);
    /// The time after which others see that it is busy.
    fn set_threshold(&mut self, millis: u64);
}

/// Publishes messages and asks who listens, on behalf of scripts.
pub trait Publish: fmt::Debug {
    /// Publishes a message; says how many clients get it.
    fn publish(&mut self, space: Space, channel: &[u8], message: &[u8]) -> u32;
    /// The answer to a question, as RESP; nothing if there is nobody to ask.
    fn ask(&mut self, question: &Questions<'_>) -> Option<Vec<u8>>;
}

/// A question about channels.
#[derive(Debug)]
pub struct Questions<'a> {
    /// What is asked.
    pub what: Question,
    /// About which names.
    pub space: Space,
    /// Only about those that fit.
    pub pattern: Option<&'a [u8]>,
    /// Only about these.
    pub names: Vec<&'a [u8]>,
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBroker;

impl Publish for NoBroker {
    fn publish(&mut self, _: Space, _: &[u8], _: &[u8]) -> u32 {
        0
    }

    fn ask(&mut self, _: &Questions<'_>) -> Option<Vec<u8>> {
        None
    }
}

/// A call of a function, for FUNCTION STATS.
#[derive(Clone, Copy, Debug)]
pub struct FunctionCall<'a> {
    /// Its name, as registered.
    pub name: &'a [u8],
    /// The command's.
    pub command: &'static str,
    /// The command's arguments.
    pub args: Args<'a>,
}

/// Lets every script run as long as it likes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWatch;

impl Watch for NoWatch {
    fn tick(&mut self, _: Option<FunctionCall<'_>>, _: bool, _: Workers) -> Tick {
        Tick::GoOn
    }
    fn end(&mut self) {}
    fn set_threshold(&mut self, _: u64) {}
}

/// What a script runs in, beside the data.
#[derive(Debug)]
pub struct Surroundings {
    /// Clock and control words.
    pub watch: Box<dyn Watch>,
    /// Channels.
    pub broker: Box<dyn Publish>,
    /// Memory was short before the script began.
    pub is_memory_short: bool,
    /// Slots that live here; `None`: all.
    pub slots: Option<Box<[bool]>>,
    /// The keyspaces of the other workers.
    pub near: Option<Box<Neighbours>>,
}

/// A compiled script.
#[derive(Debug)]
pub struct Compiled {
    /// What runs.
    pub program: Program,
    /// What its first line promises.
    pub flags: u8,
    /// Its SHA1.
    pub sha1: Sha1Text,
    body: Box<[u8]>,
    used: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Scripts {
    /// Runs scripts; made for the first one.
    pub vm: Option<Vm>,
    compiled: HashMap<u64, Compiled>,
    by_sha1: HashMap<Sha1Text, u64>,
    uses: u64,
    registry: Option<Arc<Registry>>,
    known: HashMap<Sha1Text, usize>,
    flushes: u64,
    /// Functions.
    pub functions: Functions,
    /// What scripts run in.
    pub surroundings: Surroundings,
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            vm: None,
            compiled: HashMap::new(),
            by_sha1: HashMap::new(),
            uses: 0,
            registry: None,
            known: HashMap::new(),
            flushes: 0,
            functions: Functions::default(),
            surroundings: Surroundings {
                watch: Box::new(NoWatch),
                broker: Box::new(NoBroker),
                is_memory_short: false,
                slots: None,
                near: None,
            },
        }
    }
}

/// Why a script cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptError {
    /// Nobody knows it.
    Unknown,
    /// There is no memory for Lua.
    Memory,
    /// Its first line is not understood, or it does not compile.
    Text(Vec<u8>),
}

impl Scripts {
    /// Takes over what holds system-wide.
    pub fn take_registry(&mut self, registry: &Arc<Registry>, own_index: u32) {
        if registry.script_flushes != self.flushes {
            self.flushes = registry.script_flushes;
            self.forget_all();
        }
        let is_same = self
            .registry
            .as_ref()
            .is_some_and(|old| old.scripts == registry.scripts);
        if !is_same {
            let scripts = registry.scripts.iter().enumerate();
            self.known = scripts
                .filter_map(|(at, script)| Some((sha1_text(script.sha1.as_bytes())?, at)))
                .collect();
        }
        self.functions.take_registry(registry);
        self.surroundings.slots = (registry.storage_workers > 1).then(|| {
            let mut slots = vec![false; 1 << 14];
            let own = registry.slot_map.iter();
            for range in own.filter(|range| u32::from(range.worker) == own_index) {
                let last = usize::from(range.last).min(slots.len() - 1);
                slots[usize::from(range.first).min(last)..=last].fill(true);
            }
            slots.into_boxed_slice()
        });
        self.registry = Some(Arc::clone(registry));
    }

    fn forget_all(&mut self) {
        self.compiled.clear();
        self.by_sha1.clear();
        // All of Lua's memory at once.
        self.vm = None;
    }

    fn vm(&mut self) -> Result<&mut Vm, ScriptError> {
        if self.vm.is_none() {
            self.vm = Vm::new(Kind::Scripts, LUA_BYTES_MAX);
        }
        self.vm.as_mut().ok_or(ScriptError::Memory)
    }

    /// Makes sure that the script with this body is compiled; returns its place.
    ///
    /// # Errors
    /// It cannot be.
    pub fn by_body(&mut self, body: &[u8]) -> Result<u64, ScriptError> {
        let place = xxh3_64(body);
        self.uses += 1;
        if let Some(compiled) = self.compiled.get_mut(&place) {
            if *compiled.body == *body {
                compiled.used = self.uses;
                return Ok(place);
            }
            self.remove(place);
        }
        self.compile(place, body)
    }

    /// The same for a SHA1.
    ///
    /// # Errors
    /// It cannot be.
    pub fn by_sha1(&mut self, text: &[u8]) -> Result<u64, ScriptError> {
        let sha1 = sha1_text(text).ok_or(ScriptError::Unknown)?;
        if let Some(&place) = self.by_sha1.get(&sha1) {
            self.uses += 1;
            if let Some(compiled) = self.compiled.get_mut(&place) {
                compiled.used = self.uses;
            }
            return Ok(place);
        }
        let at = *self.known.get(&sha1).ok_or(ScriptError::Unknown)?;
        let known = self
            .registry
            .as_ref()
            .and_then(|registry| registry.scripts.get(at));
        let body = to_bytes(&known.ok_or(ScriptError::Unknown)?.body);
        self.by_body(&body)
    }

    /// Looks whether a script compiles.
    ///
    /// # Errors
    /// It does not.
    pub fn check(&mut self, body: &[u8]) -> Result<(), ScriptError> {
        let (_, code) = script::shebang::of_script(body).map_err(ScriptError::Text)?;
        let vm = self.vm()?;
        let program = vm.compile(code).map_err(compile_error)?;
        vm.release(program);
        Ok(())
    }

    fn compile(&mut self, place: u64, body: &[u8]) -> Result<u64, ScriptError> {
        let (flags, code) = script::shebang::of_script(body).map_err(ScriptError::Text)?;
        let program = self.vm()?.compile(code).map_err(compile_error)?;
        if self.compiled.len() >= COMPILED_MAX {
            let oldest = self.compiled.iter().min_by_key(|(_, script)| script.used);
            if let Some(oldest) = oldest.map(|(place, _)| *place) {
                self.remove(oldest);
            }
        }
        let sha1 = digest_text(body);
        self.by_sha1.insert(sha1, place);
        let compiled = Compiled {
            program,
            flags,
            sha1,
            body: body.into(),
            used: self.uses,
        };
        self.compiled.insert(place, compiled);
        Ok(place)
    }

    fn remove(&mut self, place: u64) {
        if let Some(compiled) = self.compiled.remove(&place) {
            self.by_sha1.remove(&compiled.sha1);
            if let Some(vm) = &mut self.vm {
                vm.release(compiled.program);
            }
        }
    }

    /// The parts that a run of the script at `place` needs.
    pub fn parts(&mut self, place: u64) -> Option<(&mut Vm, &Compiled, &mut Surroundings)> {
        let compiled = self.compiled.get(&place)?;
        Some((self.vm.as_mut()?, compiled, &mut self.surroundings))
    }
}

fn compile_error(text: Vec<u8>) -> ScriptError {
    ScriptError::Text([b"Error compiling script (new function): ", &text[..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_compiled_once_and_found_by_its_sha1() {
        let mut scripts = Scripts::default();
        let place = scripts.by_body(b"return 1").unwrap();
        assert_eq!(scripts.by_body(b"return 1"), Ok(place));
        let sha1 = b"E0E1F9FABFC9D4800C877A703B823AC0578FF8DB";
        assert_eq!(scripts.by_sha1(sha1), Ok(place));
        assert_eq!(scripts.by_sha1(b"x"), Err(ScriptError::Unknown));
        assert!(matches!(scripts.by_body(b"x x"), Err(ScriptError::Text(_))));
    }

    #[test]
    fn only_the_latest_stay_compiled() {
        let mut scripts = Scripts::default();
        for number in 0..COMPILED_MAX + 10 {
            scripts
                .by_body(format!("return {number}").as_bytes())
                .unwrap();
        }
        assert_eq!(scripts.compiled.len(), COMPILED_MAX);
        assert_eq!(scripts.by_sha1.len(), COMPILED_MAX);
    }
}
