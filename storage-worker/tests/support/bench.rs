//! An engine without processes: words in, RESP bytes out.
//!
//! It does what a gateway would do before a worker sees a command (look the name up, check the
//! number of arguments, pack the frame) and nothing else.

use proto::CommandError;
use proto::catalogue::{self, CommandRef, Lookup, StorageCommand};
use proto::frame::{REQUEST_HEADER_BYTES, RequestHeader, RequestKind, flags};
use proto::resp::reply::ReplyWriter;
use proto::settings::Settings;
use proto::slot::slot_of;
use proto::time::UnixMillis;
use shm::arena::Mapping;
use storage_worker::engine::Engine;
use storage_worker::keyspace::{self, Keyspace};
use storage_worker::settings::EngineSettings;

/// Address space of a test's arena.
const ARENA_BYTES: u64 = 4 << 30;

/// An engine over an arena of its own, with a clock that stands until it is moved.
pub struct Bench {
    engine: Engine,
    pub now: UnixMillis,
    pub database: u16,
    pub is_resp3: bool,
    _arena: Mapping,
}

impl Bench {
    pub fn new(now: UnixMillis) -> Self {
        let arena = Mapping::private_anywhere(ARENA_BYTES, keyspace::fingerprint()).unwrap();
        arena.enter();
        let keyspace = Keyspace::create(16, 42);
        let settings = EngineSettings::new(&Settings::default());
        let engine = Engine::new(keyspace, settings, 42, 7);
        Self {
            engine,
            now,
            database: 0,
            is_resp3: false,
            _arena: arena,
        }
    }

    /// Runs one command and returns the bytes of its reply.
    pub fn run(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        let (spec, command) = match find(words) {
            Ok(found) => found,
            Err(error) => {
                ReplyWriter::to_vec(&mut out, self.is_resp3).error(&error);
                return out;
            }
        };
        if !spec.arity_fits(words.len()) {
            let error = CommandError::Arity { name: spec.name };
            ReplyWriter::to_vec(&mut out, self.is_resp3).error(&error);
            return out;
        }
        let mut body = Vec::new();
        for word in &words[1..] {
            body.extend_from_slice(&(word.len() as u32).to_le_bytes());
            body.extend_from_slice(word);
        }
        let header = RequestHeader {
            len: (REQUEST_HEADER_BYTES + body.len()) as u32,
            kind: RequestKind::Request,
            flags: if self.is_resp3 { flags::RESP3 } else { 0 },
            command: command as u16,
            connection: 0,
            generation: 0,
            sequence: 0,
            slot: words.get(1).map_or(0, |word| slot_of(word)),
            database: self.database,
            argc: words.len() as u32,
            part: 0,
        };
        self.engine.keyspace.set_now(self.now);
        let reply = ReplyWriter::to_vec(&mut out, self.is_resp3);
        self.engine
            .execute(&header, command, &body, None, self.now, reply);
        out
    }

    /// Checks everything that the keyspace promises about itself.
    pub fn check(&self) {
        self.engine.keyspace.check_invariants().unwrap();
    }
}

fn find(words: &[Vec<u8>]) -> Result<(&'static catalogue::Spec, StorageCommand), CommandError> {
    let sub = words.get(1).map(Vec::as_slice);
    match catalogue::find(&words[0], sub) {
        Lookup::Found(spec, CommandRef::Storage(command)) => Ok((spec, command)),
        other => panic!(
            "not a command of a storage worker: {:?} {other:?}",
            words[0]
        ),
    }
}
