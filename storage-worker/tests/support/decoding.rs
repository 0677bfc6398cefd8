//! A keyspace to decode payloads into: what is taken must be whole and survive being written again.
//!
//! For the mutation driver in `payloads.rs` and the fuzz target `fuzz/fuzz_targets/payload.rs`.

use proto::settings::Settings;
use proto::slot::slot_of;
use proto::time::UnixMillis;
use shm::arena::Mapping;
use storage_worker::keyspace::{self, Access, Freeing, Key, Keyspace, LazyFree};
use storage_worker::rdb::{self, Decoder, Dialect};
use storage_worker::settings::{EngineSettings, Limits};

/// The time of all of it.
pub const NOW: UnixMillis = UnixMillis(1_800_000_000_000);

/// A keyspace with one key, and the two sets of limits.
pub struct World {
    keyspace: Keyspace,
    settings: [EngineSettings; 2],
    _arena: Mapping,
}

impl World {
    pub fn new() -> Self {
        let arena = Mapping::private_anywhere(1 << 32, keyspace::fingerprint()).unwrap();
        arena.enter();
        let mut keyspace = Keyspace::create(1, 42);
        keyspace.set_lazy_free(LazyFree {
            overwritten: Freeing::Plain,
            ..LazyFree::default()
        });
        let usual = EngineSettings::new(&Settings::default());
        let tiny = EngineSettings {
            list_compress_depth: 1,
            limits: Limits {
                hash_entries: 2,
                set_integers: 2,
                set_entries: 2,
                sorted_set_entries: 2,
                ..usual.limits
            },
            ..usual
        };
        Self {
            keyspace,
            settings: [usual, tiny],
            _arena: arena,
        }
    }

    /// Decodes, and if there is a value, lets it be a key and decodes what that is written as. Says
    /// whether there was one.
    pub fn try_out(&mut self, bytes: &[u8], dialect: Dialect, settings: usize) -> bool {
        let key = Key::new(42, 0, slot_of(b"k"), b"k");
        let settings = self.settings[settings];
        let decoder = Decoder::new(&settings, 42);
        let Ok(value) = decoder.decode_payload(bytes, dialect) else {
            return false;
        };
        let kind = value.kind();
        value.store(&mut self.keyspace, &key);
        self.keyspace.check_invariants().unwrap();
        let found = self.keyspace.find(&key, NOW, Access::Peek).unwrap();
        let mut written = vec![rdb::type_of(&found)];
        rdb::write_value(&found, &mut rdb::Writer::new(&mut written, true));
        let again = decoder.decode_payload(&written, Dialect::Redis).unwrap();
        assert_eq!(again.kind(), kind);
        drop(again);
        self.keyspace.remove(&key);
        true
    }
}
