//! Consumer groups: who has been given which entries and has not yet said that they are done.
//!
//! ```text
//!   Group  name, last_id, entries_read
//!     pending    tree by id: consumer, time and number of deliveries      36 bytes each
//!     consumers  tree by name: Consumer  name, seen, active
//!                  pending  tree of ids                                   16 bytes each
//! ```
//!
//! Invariants
//!   G1  a pending entry of the group is in the set of exactly the consumer that it names, and every
//!       id in a consumer's set is pending in the group.
//!
//! Not here: whether the entries still exist (they may have been deleted).

use proto::time::UnixMillis;

use crate::collections::ordered::{Record, Tree};

use super::StreamId;
use super::named::{NamedAt, find};

/// An entry that was delivered and not acknowledged. Packed: there may be millions.
#[repr(C, packed(4))]
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    ms: u64,
    seq: u64,
    consumer_low: u32,
    consumer_high: u16,
    time_high: u16,
    time_low: u32,
    count: u64,
}

const _: () = assert!(size_of::<Pending>() == 36);

/// Times are kept in 48 bits: until the year 10889.
const TIME_MAX: u64 = (1 << 48) - 1;

impl Pending {
    fn new(id: StreamId, consumer: ConsumerAt, time: UnixMillis, count: u64) -> Self {
        let mut pending = Self {
            ms: id.ms,
            seq: id.seq,
            consumer_low: 0,
            consumer_high: 0,
            time_high: 0,
            time_low: 0,
            count,
        };
        pending.set_consumer(consumer);
        pending.set_time(time);
        pending
    }

    /// Id of the entry.
    #[must_use]
    pub fn id(&self) -> StreamId {
        StreamId {
            ms: self.ms,
            seq: self.seq,
        }
    }

    /// Who has it.
    #[must_use]
    pub fn consumer(&self) -> ConsumerAt {
        NamedAt::from_address(u64::from(self.consumer_high) << 32 | u64::from(self.consumer_low))
    }

    fn set_consumer(&mut self, consumer: ConsumerAt) {
        let address = consumer.address();
        debug_assert!(address < 1 << 48);
        self.consumer_low = address as u32;
        self.consumer_high = (address >> 32) as u16;
    }

    /// When it was delivered last.
    #[must_use]
    pub fn time(&self) -> UnixMillis {
        UnixMillis(u64::from(self.time_high) << 32 | u64::from(self.time_low))
    }

    fn set_time(&mut self, time: UnixMillis) {
        let time = time.get().min(TIME_MAX);
        self.time_low = time as u32;
        self.time_high = (time >> 32) as u16;
    }

    /// How often it was delivered.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl Record for Pending {
    type Key = StreamId;

    #[inline]
    fn key(&self) -> StreamId {
        self.id()
    }
}

/// Somebody who reads on behalf of a group.
#[repr(C)]
#[derive(Debug)]
pub struct Consumer {
    /// When it last asked for anything.
    pub seen: UnixMillis,
    /// When it last got anything; -1 for never.
    pub active: i64,
    pending: Tree<StreamId>,
}

impl Consumer {
    /// How much is pending for it.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }
}

/// A consumer of a group, good as long as it is not removed.
pub type ConsumerAt = NamedAt<Consumer>;

/// See the module.
#[repr(C)]
#[derive(Debug)]
pub struct Group {
    /// Id of the last entry that was delivered; XGROUP SETID changes it.
    pub last_id: StreamId,
    /// How many entries were delivered, counted from the first one ever; [`UNKNOWN`] if that cannot be
    /// told.
    pub entries_read: i64,
    pending: Tree<Pending>,
    consumers: Tree<ConsumerAt>,
}

/// A number of entries that is not known.
pub const UNKNOWN: i64 = -1;

impl Group {
    /// A group without consumers that has read up to an entry.
    #[must_use]
    pub fn new(last_id: StreamId, entries_read: i64) -> Self {
        Self {
            last_id,
            entries_read,
            pending: Tree::new(),
            consumers: Tree::new(),
        }
    }

    /// What is pending, by id.
    #[must_use]
    pub fn pending(&self) -> &Tree<Pending> {
        &self.pending
    }

    /// What is pending for one consumer, from an id on.
    pub fn pending_of(
        &self,
        consumer: ConsumerAt,
        from: StreamId,
    ) -> impl Iterator<Item = &Pending> {
        let ids = consumer.value().pending.iter_from(from);
        ids.filter_map(|&id| self.pending.get(id))
    }

    /// Number of consumers.
    #[must_use]
    pub fn consumer_count(&self) -> usize {
        self.consumers.len()
    }

    /// All consumers in the order of their names.
    pub fn consumers(&self) -> impl Iterator<Item = ConsumerAt> {
        self.consumers.iter().copied()
    }

    /// The consumer with a name.
    #[must_use]
    pub fn find_consumer(&self, name: &[u8]) -> Option<ConsumerAt> {
        find(&self.consumers, name)
    }

    /// Name of a consumer.
    #[must_use]
    pub fn consumer_name(&self, consumer: ConsumerAt) -> &[u8] {
        consumer.name()
    }

    /// A consumer.
    #[must_use]
    pub fn consumer(&self, consumer: ConsumerAt) -> &Consumer {
        consumer.value()
    }

    /// A consumer, to be changed.
    #[must_use]
    pub fn consumer_mut(&mut self, consumer: ConsumerAt) -> &mut Consumer {
        consumer.value_mut()
    }

    /// Adds a consumer; there is none with this name.
    pub fn create_consumer(&mut self, name: &[u8], now: UnixMillis) -> ConsumerAt {
        let consumer = Consumer {
            seen: now,
            active: -1,
            pending: Tree::new(),
        };
        let consumer = NamedAt::create(consumer, name);
        let is_new = self.consumers.insert(consumer);
        debug_assert!(is_new);
        consumer
    }

    /// Removes a consumer with all that is pending for it; returns how much that was.
    pub fn remove_consumer(&mut self, consumer: ConsumerAt) -> usize {
        self.consumers.remove(consumer);
        let mut pending = consumer.free().pending;
        let count = pending.len();
        pending.clear(|id| {
            self.pending.remove(id);
        });
        count
    }

    /// An entry is given to a consumer for the first time, or for the first time again (after SETID).
    pub fn deliver(&mut self, id: StreamId, consumer: ConsumerAt, now: UnixMillis) {
        self.give(id, consumer, now, |_| 1);
    }

    /// An entry is given to a consumer that it may have been pending for already, or not. `count` says
    /// how often it was delivered, from how often it was before; 1 for a new one.
    pub fn give(
        &mut self,
        id: StreamId,
        consumer: ConsumerAt,
        time: UnixMillis,
        count: impl FnOnce(u64) -> u64,
    ) {
        if let Some(pending) = self.pending.get_mut(id) {
            let old = pending.consumer();
            pending.set_time(time);
            pending.count = count(pending.count);
            if old == consumer {
                return;
            }
            pending.set_consumer(consumer);
            old.value_mut().pending.remove(id);
        } else {
            self.pending
                .insert(Pending::new(id, consumer, time, count(1)));
        }
        consumer.value_mut().pending.insert(id);
    }

    /// A pending entry is delivered to its consumer once more.
    pub fn deliver_again(&mut self, id: StreamId, now: UnixMillis) {
        if let Some(pending) = self.pending.get_mut(id) {
            pending.set_time(now);
            pending.count = pending.count.wrapping_add(1);
        }
    }

    /// An entry is not pending any more; says whether it was.
    pub fn forget(&mut self, id: StreamId) -> bool {
        let Some(pending) = self.pending.remove(id) else {
            return false;
        };
        pending.consumer().value_mut().pending.remove(id);
        true
    }

    /// Frees about `budget` elements and counts them down; true if more is left.
    fn free_some(&mut self, budget: &mut usize) -> bool {
        if free_tree(&mut self.pending, budget, |_| ()) {
            return true;
        }
        while let Some(&consumer) = self.consumers.last() {
            if *budget == 0 || free_tree(&mut consumer.value_mut().pending, budget, |_| ()) {
                return true;
            }
            self.consumers.pop_last();
            consumer.free();
            *budget = budget.saturating_sub(1);
        }
        false
    }

    fn copy(&self) -> Self {
        let mut copy = Self::new(self.last_id, self.entries_read);
        copy.pending = self.pending.map(|pending| *pending);
        copy.consumers = self.consumers.map(|consumer| {
            let old = consumer.value();
            let new = Consumer {
                pending: old.pending.map(|id| *id),
                ..*old
            };
            NamedAt::create(new, consumer.name())
        });
        for &consumer in copy.consumers.iter() {
            for &id in consumer.value().pending.iter() {
                if let Some(pending) = copy.pending.get_mut(id) {
                    pending.set_consumer(consumer);
                }
            }
        }
        copy
    }

    fn memory_bytes(&self) -> usize {
        let of_consumer =
            |consumer: &ConsumerAt| consumer.bytes() + consumer.value().pending.memory_bytes();
        let consumers: usize = self.consumers.iter().map(of_consumer).sum();
        self.pending.memory_bytes() + self.consumers.memory_bytes() + consumers
    }

    fn check(&self) -> Result<(), String> {
        self.pending.check()?;
        self.consumers.check()?;
        let mut count = 0;
        for &consumer in self.consumers.iter() {
            consumer.check()?;
            let ids = &consumer.value().pending;
            ids.check()?;
            count += ids.len();
            let is_mine = |id: &StreamId| {
                let pending = self.pending.get(*id);
                pending.is_some_and(|pending| pending.consumer() == consumer)
            };
            if !ids.iter().all(is_mine) {
                return Err(format!("{consumer:?} has an id that is not its own (G1)"));
            }
        }
        if count == self.pending.len() {
            Ok(())
        } else {
            Err("something is pending for nobody (G1)".to_owned())
        }
    }
}

/// Frees about `budget` records of a tree and counts them down; true if more is left.
pub(super) fn free_tree<R: Record>(
    tree: &mut Tree<R>,
    budget: &mut usize,
    mut each: impl FnMut(R),
) -> bool {
    let before = tree.len();
    let more = tree.free_some(*budget, &mut each);
    *budget = budget.saturating_sub(before - tree.len());
    more
}

/// The groups of a stream, in the order of their names.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Groups {
    groups: Tree<NamedAt<Group>>,
}

impl Groups {
    /// Number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The group with a name.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<&Group> {
        find(&self.groups, name).map(NamedAt::value)
    }

    /// The group with a name, to be changed.
    #[must_use]
    pub fn get_mut(&mut self, name: &[u8]) -> Option<&mut Group> {
        find(&self.groups, name).map(NamedAt::value_mut)
    }

    /// All groups with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Group)> {
        self.groups
            .iter()
            .map(|group| (group.name(), group.value()))
    }

    /// Adds a group; there is none with this name.
    pub fn create(&mut self, name: &[u8], group: Group) {
        let is_new = self.groups.insert(NamedAt::create(group, name));
        debug_assert!(is_new);
    }

    /// Removes a group; says whether there was one.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let Some(group) = find(&self.groups, name) else {
            return false;
        };
        self.groups.remove(group);
        let mut everything = usize::MAX;
        group.free().free_some(&mut everything);
        true
    }

    pub(super) fn free_some(&mut self, budget: &mut usize) -> bool {
        while let Some(&group) = self.groups.last() {
            if *budget == 0 || group.value_mut().free_some(budget) {
                return true;
            }
            self.groups.pop_last();
            group.free();
            *budget = budget.saturating_sub(1);
        }
        false
    }

    pub(super) fn copy(&self) -> Self {
        Self {
            groups: self
                .groups
                .map(|group| NamedAt::create(group.value().copy(), group.name())),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let of_group = |group: &NamedAt<Group>| group.bytes() + group.value().memory_bytes();
        self.groups.memory_bytes() + self.groups.iter().map(of_group).sum::<usize>()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.groups.check()?;
        for &group in self.groups.iter() {
            group.check()?;
            let value: &Group = group.value();
            value.check().map_err(|why| format!("{group:?}: {why}"))?;
        }
        Ok(())
    }
}
