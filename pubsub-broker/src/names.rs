//! Channels and who listens to them.
//!
//! Cost: a lookup per message; per channel its name and 32 bytes in a table that is at most 7/8 full.

use hashbrown::HashMap;

use crate::holders::{Holders, LinkPlace};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<Box<[u8]>, Holders>);

impl Names {
    pub(crate) fn add(&mut self, name: &[u8], link: LinkPlace, more: u32) {
        self.0.entry_ref(name).or_default().add(link, more);
    }

    pub(crate) fn remove(&mut self, name: &[u8], link: LinkPlace, less: u32) {
        if let Some(holders) = self.0.get_mut(name) {
            holders.remove(link, less);
            if holders.is_empty() {
                self.0.remove(name);
                self.shrink();
            }
        }
    }

    /// Nobody behind this link listens any more.
    pub(crate) fn remove_link(&mut self, link: LinkPlace) {
        self.0.retain(|_, holders| {
            holders.remove(link, u32::MAX);
            !holders.is_empty()
        });
        self.shrink();
    }

    fn shrink(&mut self) {
        const WORTH_IT: usize = 1024;
        if self.0.capacity() > WORTH_IT && self.0.len() < self.0.capacity() / 8 {
            self.0.shrink_to(self.0.len() * 2);
        }
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&Holders> {
        self.0.get(name)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.keys().map(|name| &name[..])
    }
}
