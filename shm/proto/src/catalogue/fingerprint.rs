//! One number for all tables, compared when processes attach to each other.
//!
//! Ids of commands travel in frames and counters are found by position, so two processes must have
//! been built from the same rows. The number changes with every row, with their order and with the
//! layout of frames and pages.

use super::{containers, flag, gateway, spec::Spec, storage};
use crate::counters::{
    BrokerCounter, CallCounter, DatabaseCounter, GatewayCounter, RejectCounter, WorkerCounter,
};
use crate::frame::{
    BROKER_HEADER_BYTES, MORE_HEADER_BYTES, REPLY_HEADER_BYTES, REQUEST_HEADER_BYTES,
};

const FINGERPRINT: u64 = {
    let mut hash = 0xCBF2_9CE4_8422_2325;
    hash = specs(hash, &gateway::SPECS);
    hash = specs(hash, &storage::SPECS);
    hash = specs(hash, &containers::SPECS);
    let numbers = [
        WorkerCounter::COUNT,
        DatabaseCounter::COUNT,
        CallCounter::COUNT,
        GatewayCounter::COUNT,
        RejectCounter::COUNT,
        REQUEST_HEADER_BYTES,
        REPLY_HEADER_BYTES,
        MORE_HEADER_BYTES,
        BrokerCounter::COUNT,
        BROKER_HEADER_BYTES,
    ];
    let mut at = 0;
    while at < numbers.len() {
        hash = word(hash, numbers[at] as u64);
        at += 1;
    }
    hash
};

/// The fingerprint of this build's catalogue; never 0.
#[must_use]
pub const fn fingerprint() -> u64 {
    FINGERPRINT | 1
}

const fn specs(mut hash: u64, specs: &[Spec]) -> u64 {
    hash = word(hash, specs.len() as u64);
    let mut at = 0;
    while at < specs.len() {
        let spec = &specs[at];
        let name = spec.name.as_bytes();
        let mut byte = 0;
        while byte < name.len() {
            hash = step(hash, name[byte]);
            byte += 1;
        }
        hash = word(hash, spec.arity as u64);
        hash = word(
            hash,
            spec.flags.0 as u64 | (spec.flags.has(flag::INTERNAL) as u64) << 40,
        );
        let (first, last, stride) = spec.keys.legacy_range();
        hash = word(hash, first as u64);
        hash = word(hash, last as u64);
        hash = word(hash, stride as u64);
        at += 1;
    }
    hash
}

const fn word(mut hash: u64, number: u64) -> u64 {
    let bytes = number.to_le_bytes();
    let mut at = 0;
    while at < bytes.len() {
        hash = step(hash, bytes[at]);
        at += 1;
    }
    hash
}

/// FNV-1a.
const fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0100_0000_01B3)
}
