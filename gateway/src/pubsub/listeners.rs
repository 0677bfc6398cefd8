//! Names and the connections that listen to each.
//!
//! A name has a number as long as somebody listens to it. Connections know the numbers of their names and
//! their place among the listeners of each, so that leaving costs the same however many listen.
//!
//! Cost: one lookup per message; per name and listener 4 bytes, per name about 50 and the name itself.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

#[derive(Debug, Default)]
struct Listened {
    name: Box<[u8]>,
    /// Places of connections.
    listeners: Vec<u32>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    hasher: DefaultHashBuilder,
    numbers: HashTable<u32>,
    names: Vec<Listened>,
    free: Vec<u32>,
}

impl Listeners {
    fn name(&self, number: u32) -> &[u8] {
        self.names
            .get(number as usize)
            .map_or(&[], |listened| &listened.name)
    }

    /// The number of a name, if somebody listens to it.
    pub(super) fn find(&self, name: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        let is_it = |number: &u32| self.name(*number) == name;
        self.numbers.find(hash, is_it).copied()
    }

    /// Who listens to the name with this number.
    pub(super) fn of(&self, number: u32) -> &[u32] {
        self.names
            .get(number as usize)
            .map_or(&[], |listened| &listened.listeners)
    }

    /// The name with this number.
    pub(super) fn name_of(&self, number: u32) -> Box<[u8]> {
        self.name(number).into()
    }

    /// All names with the number of their listeners.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let used = self
            .names
            .iter()
            .filter(|listened| !listened.listeners.is_empty());
        used.map(|listened| (&listened.name[..], listened.listeners.len()))
    }

    /// One more listener: the number of the name, and the listener's place.
    pub(super) fn add(&mut self, name: &[u8], connection: u32) -> (u32, u32) {
        let number = self.find(name).unwrap_or_else(|| self.new_name(name));
        let listeners = &mut self.names[number as usize].listeners;
        listeners.push(connection);
        (number, (listeners.len() - 1) as u32)
    }

    fn new_name(&mut self, name: &[u8]) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.names.push(Listened::default());
            (self.names.len() - 1) as u32
        });
        self.names[number as usize].name = name.into();
        let Self {
            hasher,
            numbers,
            names,
            ..
        } = self;
        let hash = |number: &u32| hasher.hash_one(&names[*number as usize].name[..]);
        numbers.insert_unique(hasher.hash_one(name), number, hash);
        number
    }

    /// The listener at this place leaves; says who has its place now.
    pub(super) fn remove(&mut self, number: u32, place: u32) -> Option<u32> {
        let listened = self.names.get_mut(number as usize)?;
        if place as usize >= listened.listeners.len() {
            return None;
        }
        listened.listeners.swap_remove(place as usize);
        let moved = listened.listeners.get(place as usize).copied();
        if listened.listeners.is_empty() {
            let listened = std::mem::take(listened);
            let hash = self.hasher.hash_one(&listened.name[..]);
            if let Ok(entry) = self.numbers.find_entry(hash, |known| *known == number) {
                entry.remove();
            }
            self.free.push(number);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_and_go() {
        let mut table = Listeners::default();
        assert_eq!(table.add(b"a", 1), (0, 0));
        assert_eq!(table.add(b"a", 2), (0, 1));
        assert_eq!(table.add(b"b", 2), (1, 0));
        assert_eq!(table.remove(0, 0), Some(2), "it moves to the free place");
        assert_eq!(table.of(0), [2]);
        assert_eq!(table.remove(0, 0), None);
        assert_eq!(table.find(b"a"), None);
        assert_eq!(table.iter().collect::<Vec<_>>(), [(&b"b"[..], 1)]);
        assert_eq!(table.add(b"c", 3), (0, 0), "numbers are used again");
        assert_eq!(&*table.name_of(0), b"c");
    }
}
