//! A registry whose writer dies between filling a buffer and showing it.

use shm::RegistrySegment;
use shm::fault::FaultPoint;

use super::process::{Plan, start};

const CAPACITY: usize = 64 * 1024;

fn content(version: u64) -> Vec<u8> {
    version.to_le_bytes().repeat(1000 + version as usize)
}

/// Child: publishes versions until there are `plan.number`.
pub fn registrar(mut plan: Plan) {
    let registry = RegistrySegment::open(plan.take(), 1).unwrap();
    while registry.version() < plan.number {
        let next = registry.version() + 1;
        assert_eq!(registry.publish(&content(next)).unwrap(), next);
    }
}

#[test]
fn a_half_written_version_is_never_seen() {
    let registry = RegistrySegment::create(CAPACITY, 1).unwrap();
    for nth in 1..=4 {
        let before = registry.version();
        let fault = (FaultPoint::RegistryFilled, nth);
        start("registrar", Some(fault), 1000, &[registry.fd()]).died();
        let version = before + u64::from(nth) - 1;
        let want = if version == 0 {
            Vec::new()
        } else {
            content(version)
        };
        assert_eq!(registry.read().unwrap(), (version, want));
        start("registrar", None, version + 1, &[registry.fd()]).succeeded();
        assert_eq!(
            registry.read().unwrap(),
            (version + 1, content(version + 1))
        );
    }
}
