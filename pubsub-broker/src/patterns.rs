//! Patterns of channels, found by what they begin with.
//!
//! ```text
//!   user:1:*   user:2:*   user:?   *:log        beginning   user:1:   user:2:   user:   (nothing)
//!
//!   message in user:1:mail     of each length that occurs (7, 5, 0) one lookup: 2 candidates of 4
//! ```
//!
//! A beginning is what stands before the first special character, cut at 64 bytes. Only those patterns
//! are compared with a channel whose beginning it has.
//!
//! Cost per message: a lookup for each length of a beginning that occurs, at most 65, and a comparison for
//! each candidate.

use hashbrown::HashMap;

use crate::holders::{Holders, LinkPlace};

/// Longer beginnings are cut.
const BEGINNING_MAX: usize = 64;

#[derive(Debug)]
struct Pattern {
    text: Box<[u8]>,
    holders: Holders,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Patterns {
    places: HashMap<Box<[u8]>, u32>,
    patterns: Vec<Option<Pattern>>,
    free: Vec<u32>,
    by_beginning: HashMap<Box<[u8]>, Vec<u32>>,
    /// How many beginnings have each length.
    lengths: [u32; BEGINNING_MAX + 1],
}

impl Default for Patterns {
    fn default() -> Self {
        Self {
            places: HashMap::new(),
            patterns: Vec::new(),
            free: Vec::new(),
            by_beginning: HashMap::new(),
            lengths: [0; BEGINNING_MAX + 1],
        }
    }
}

/// What a pattern begins with.
fn beginning(pattern: &[u8]) -> &[u8] {
    let is_special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    let end = pattern.iter().position(is_special).unwrap_or(pattern.len());
    &pattern[..end.min(BEGINNING_MAX)]
}

impl Patterns {
    pub(crate) fn add(&mut self, text: &[u8], link: LinkPlace, more: u32) {
        if let Some(&place) = self.places.get(text) {
            if let Some(Some(pattern)) = self.patterns.get_mut(place as usize) {
                pattern.holders.add(link, more);
            }
            return;
        }
        let mut holders = Holders::default();
        holders.add(link, more);
        let pattern = Some(Pattern {
            text: text.into(),
            holders,
        });
        let place = match self.free.pop() {
            Some(place) => {
                self.patterns[place as usize] = pattern;
                place
            }
            None => {
                self.patterns.push(pattern);
                (self.patterns.len() - 1) as u32
            }
        };
        self.places.insert(text.into(), place);
        let beginning = beginning(text);
        let group = self.by_beginning.entry_ref(beginning).or_default();
        self.lengths[beginning.len()] += u32::from(group.is_empty());
        group.push(place);
    }

    pub(crate) fn remove(&mut self, text: &[u8], link: LinkPlace, less: u32) {
        let Some(&place) = self.places.get(text) else {
            return;
        };
        let Some(slot) = self.patterns.get_mut(place as usize) else {
            return;
        };
        if let Some(pattern) = slot {
            pattern.holders.remove(link, less);
            if !pattern.holders.is_empty() {
                return;
            }
        }
        *slot = None;
        self.free.push(place);
        self.places.remove(text);
        let beginning = beginning(text);
        if let Some(group) = self.by_beginning.get_mut(beginning) {
            group.retain(|known| *known != place);
            if group.is_empty() {
                self.by_beginning.remove(beginning);
                self.lengths[beginning.len()] -= 1;
            }
        }
    }

    /// Nobody behind this link listens any more.
    pub(crate) fn remove_link(&mut self, link: LinkPlace) {
        let is_its = |pattern: &&Pattern| pattern.holders.iter().any(|(known, _)| known == link);
        let all = self.patterns.iter().flatten();
        let texts: Vec<Box<[u8]>> = all.filter(is_its).map(|it| it.text.clone()).collect();
        for text in texts {
            self.remove(&text, link, u32::MAX);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Calls `each` with every pattern that fits a channel.
    pub(crate) fn matching(&self, channel: &[u8], mut each: impl FnMut(&[u8], &Holders)) {
        if self.places.is_empty() {
            return;
        }
        for len in 0..=channel.len().min(BEGINNING_MAX) {
            if self.lengths[len] == 0 {
                continue;
            }
            let Some(group) = self.by_beginning.get(&channel[..len]) else {
                continue;
            };
            let patterns = group
                .iter()
                .filter_map(|place| self.patterns.get(*place as usize)?.as_ref());
            for pattern in patterns {
                if proto::glob::matches(&pattern.text, channel, false) {
                    each(&pattern.text, &pattern.holders);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn beginnings_end_at_special_characters() {
        let of = |text: &str| String::from_utf8_lossy(beginning(text.as_bytes())).into_owned();
        assert_eq!(of("user:*"), "user:");
        assert_eq!(of("h[ae]llo"), "h");
        assert_eq!(of(r"a\*b"), "a");
        assert_eq!(of("plain"), "plain");
        assert_eq!(of(&"x".repeat(100)).len(), BEGINNING_MAX);
    }

    proptest! {
        /// The index finds what a look at every pattern finds, whatever comes and goes.
        #[test]
        fn the_index_misses_nothing(
            steps in prop::collection::vec(("[ab*?\\[\\]]{0,4}", 0u16..3, any::<bool>()), 0..60),
            channel in "[ab]{0,5}",
        ) {
            let mut patterns = Patterns::default();
            let mut model: Vec<(String, u16)> = Vec::new();
            for (text, link, is_added) in steps {
                if is_added {
                    patterns.add(text.as_bytes(), link, 1);
                    model.push((text, link));
                } else {
                    patterns.remove(text.as_bytes(), link, u32::MAX);
                    model.retain(|known| *known != (text.clone(), link));
                }
            }
            let mut found = Vec::new();
            patterns.matching(channel.as_bytes(), |text, holders| {
                let text = String::from_utf8_lossy(text).into_owned();
                for (link, count) in holders.iter() {
                    found.extend((0..count).map(|_| (text.clone(), link)));
                }
            });
            let fits = |known: &&(String, u16)| {
                proto::glob::matches(known.0.as_bytes(), channel.as_bytes(), false)
            };
            let mut wanted: Vec<_> = model.iter().filter(fits).cloned().collect();
            found.sort();
            wanted.sort();
            prop_assert_eq!(found, wanted);
            let mut names: Vec<_> = model.iter().map(|known| &known.0).collect();
            names.sort();
            names.dedup();
            prop_assert_eq!(patterns.len(), names.len());
        }
    }
}
