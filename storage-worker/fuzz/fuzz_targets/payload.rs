//! Any bytes as the value of a RESTORE: refused, or whole in every detail, and nothing is left behind.
//!
//! `cargo +nightly fuzz run payload` in `storage-worker`. The first byte chooses dialect and limits.

#![no_main]
#![expect(clippy::unwrap_used, reason = "what cannot happen is a finding")]

#[path = "../../tests/support/decoding.rs"]
mod decoding;

use std::cell::RefCell;

use decoding::World;
use libfuzzer_sys::fuzz_target;
use shm::arena::Arena;
use storage_worker::rdb::Dialect;

thread_local! {
    static WORLD: RefCell<World> = RefCell::new({
        let mut world = World::new();
        // The first key of all makes tables that stay.
        assert!(world.try_out(&[0, 1, b'x'], Dialect::Redis, 0));
        world
    });
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, value)) = bytes.split_first() else {
        return;
    };
    let dialect = if choice & 1 == 0 {
        Dialect::Redis
    } else {
        Dialect::Valkey
    };
    WORLD.with_borrow_mut(|world| {
        let before = Arena.used_bytes();
        world.try_out(value, dialect, usize::from(choice >> 1 & 1));
        assert_eq!(Arena.used_bytes(), before, "something is left behind");
    });
});
