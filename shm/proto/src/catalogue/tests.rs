//! The tables as a whole.

use super::*;
use std::collections::HashSet;

#[test]
fn names_are_unique_over_all_tables() {
    let mut names = HashSet::new();
    for spec in gateway::SPECS
        .iter()
        .chain(&storage::SPECS)
        .chain(&containers::SPECS)
    {
        assert!(names.insert(spec.name), "{}", spec.name);
        assert_eq!(spec.name, spec.name.to_ascii_lowercase());
    }
}
