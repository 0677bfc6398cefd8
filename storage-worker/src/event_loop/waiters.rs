//! Who waits: by ticket, by key, by client and by deadline.
//!
//! ```text
//!   parked     ticket -> command                 everything about it
//!   queues     key -> tickets, ascending         who is served first when the key is signalled
//!   clients    (link, connection) -> ticket      a client waits for one command at most
//!   deadlines  (time, ticket), ascending         whose time is over first
//! ```
//!
//! Invariants
//!   W1  a ticket in any of the other three is in `parked`, and the other way round.
//!   W2  no queue is empty.
//!
//! Tickets ascend in the order in which the commands were parked, over the lives of all workers of a
//! line, so a queue that a successor builds in any order is the predecessor's.
//!
//! Cost: a few allocations and tree steps per command that waits; nothing for others.
//! Not here: serving (`wake`).

use super::parked::Parked;
use crate::blocking::WaitKey;
use proto::time::UnixMillis;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::rc::Rc;

/// Those who wait for one key: tickets, and whether each is woken without the key, too.
#[derive(Debug, Default)]
struct Queue {
    tickets: BTreeMap<u64, bool>,
    without_key: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    parked: HashMap<u64, Rc<Parked>>,
    queues: HashMap<WaitKey, Queue>,
    clients: HashMap<(u32, u32), u64>,
    deadlines: BTreeSet<(UnixMillis, u64)>,
    /// Queues with somebody who is woken without the key.
    queues_without_key: usize,
}

impl Waiters {
    pub(crate) fn is_empty(&self) -> bool {
        self.parked.is_empty()
    }

    /// Commands that wait.
    pub(crate) fn len(&self) -> usize {
        self.parked.len()
    }

    /// Keys that somebody waits for.
    pub(crate) fn keys(&self) -> usize {
        self.queues.len()
    }

    /// All keys that somebody waits for.
    pub(crate) fn all_keys(&self) -> impl Iterator<Item = &WaitKey> {
        self.queues.keys()
    }

    /// Keys whose end somebody waits for.
    pub(crate) fn keys_without_key(&self) -> usize {
        self.queues_without_key
    }

    /// Commands that wait for a time only.
    pub(crate) fn with_deadline(&self) -> usize {
        self.deadlines.len()
    }

    /// Adds a command. Another one of the same client, or with the same ticket, can only be left
    /// over from before a death, and goes.
    pub(crate) fn insert(&mut self, parked: Parked) {
        let ticket = parked.ticket;
        let client = (parked.link, parked.request.connection);
        self.remove(ticket);
        if let Some(old) = self.clients.insert(client, ticket) {
            self.remove(old);
            self.clients.insert(client, ticket);
        }
        for key in &parked.keys {
            let queue = self.queues.entry(key.clone()).or_default();
            let is_new = queue
                .tickets
                .insert(ticket, parked.wakes_without_key)
                .is_none();
            if is_new && parked.wakes_without_key {
                queue.without_key += 1;
                self.queues_without_key += usize::from(queue.without_key == 1);
            }
        }
        if let Some(deadline) = parked.deadline {
            self.deadlines.insert((deadline, ticket));
        }
        self.parked.insert(ticket, Rc::new(parked));
    }

    /// Takes a command out.
    pub(crate) fn remove(&mut self, ticket: u64) -> Option<Rc<Parked>> {
        let parked = self.parked.remove(&ticket)?;
        self.clients
            .remove(&(parked.link, parked.request.connection));
        for key in &parked.keys {
            let Some(queue) = self.queues.get_mut(key) else {
                continue;
            };
            if queue.tickets.remove(&ticket) == Some(true) {
                queue.without_key -= 1;
                self.queues_without_key -= usize::from(queue.without_key == 0);
            }
            if queue.tickets.is_empty() {
                self.queues.remove(key);
            }
        }
        if let Some(deadline) = parked.deadline {
            self.deadlines.remove(&(deadline, ticket));
        }
        Some(parked)
    }

    pub(crate) fn get(&self, ticket: u64) -> Option<&Rc<Parked>> {
        self.parked.get(&ticket)
    }

    /// The command that a client waits for.
    pub(crate) fn of_client(&self, link: u32, connection: u32) -> Option<&Rc<Parked>> {
        self.get(*self.clients.get(&(link, connection))?)
    }

    /// Removes all commands of a link that is gone.
    pub(crate) fn remove_link(&mut self, link: u32) {
        let of_link = |parked: &&Rc<Parked>| parked.link == link;
        let gone: Vec<u64> = self
            .parked
            .values()
            .filter(of_link)
            .map(|parked| parked.ticket)
            .collect();
        for ticket in gone {
            self.remove(ticket);
        }
    }

    /// The first ticket behind `ticket` in the queue of a key.
    pub(crate) fn next(&self, key: &WaitKey, ticket: u64) -> Option<u64> {
        let range = (Bound::Excluded(ticket), Bound::Unbounded);
        let tickets = &self.queues.get(key)?.tickets;
        tickets.range(range).next().map(|(&ticket, _)| ticket)
    }

    /// The last ticket in the queue of a key.
    pub(crate) fn last(&self, key: &WaitKey) -> Option<u64> {
        let (&ticket, _) = self.queues.get(key)?.tickets.last_key_value()?;
        Some(ticket)
    }

    /// Whether somebody is woken when the key is gone.
    pub(crate) fn is_any_without_key(&self, key: &WaitKey) -> bool {
        self.queues
            .get(key)
            .is_some_and(|queue| queue.without_key > 0)
    }

    /// The keys of a database that somebody waits for, those first whose first ticket is lowest.
    pub(crate) fn keys_of(&self, db: u16) -> Vec<WaitKey> {
        let mut keys: Vec<(Option<u64>, &WaitKey)> = self
            .queues
            .iter()
            .filter(|(key, _)| key.0 == db)
            .map(|(key, queue)| (queue.tickets.keys().next().copied(), key))
            .collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key.clone()).collect()
    }

    /// When the first deadline is over.
    pub(crate) fn next_deadline(&self) -> Option<UnixMillis> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Those whose time is over at `now`.
    pub(crate) fn due(&self, now: UnixMillis) -> Vec<u64> {
        self.deadlines
            .iter()
            .take_while(|(deadline, _)| deadline.has_passed(now))
            .map(|&(_, ticket)| ticket)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::ValueKind;
    use proptest::prelude::*;
    use proto::catalogue::StorageCommand;
    use proto::frame::{RequestHeader, RequestKind};

    fn parked(ticket: u64, connection: u32, keys: &[u8], deadline: u64, without: bool) -> Parked {
        Parked {
            ticket,
            link: connection % 3,
            request: RequestHeader {
                len: 0,
                kind: RequestKind::Request,
                flags: 0,
                command: 0,
                connection,
                generation: 0,
                sequence: 0,
                slot: 0,
                database: 0,
                argc: 1,
                part: 0,
            },
            command: StorageCommand::GetDel,
            body: [].into(),
            kind: ValueKind::String,
            keys: keys.iter().map(|&key| (0, Box::from([key]))).collect(),
            deadline: (deadline > 0).then_some(UnixMillis(deadline)),
            wakes_without_key: without,
            is_lost: false,
        }
    }

    fn queue(waiters: &Waiters, key: u8) -> Vec<u64> {
        let key = (0, Box::from([key]));
        let mut tickets = Vec::new();
        while let Some(ticket) = waiters.next(&key, tickets.last().copied().unwrap_or(0)) {
            tickets.push(ticket);
        }
        assert_eq!(waiters.last(&key), tickets.last().copied());
        tickets
    }

    #[test]
    fn a_queue_is_in_the_order_of_tickets_whatever_the_order_of_arrival() {
        let mut waiters = Waiters::default();
        for ticket in [5, 3, 9, 1] {
            let client = u32::try_from(ticket).unwrap();
            waiters.insert(parked(ticket, client, b"aba", ticket, ticket == 9));
        }
        assert_eq!(queue(&waiters, b'a'), [1, 3, 5, 9]);
        assert_eq!((waiters.keys(), waiters.keys_without_key()), (2, 2));
        assert_eq!(waiters.due(UnixMillis(5)), [1, 3]);
        waiters.remove(9);
        assert_eq!(waiters.keys_without_key(), 0);
        assert!(!waiters.is_any_without_key(&(0, Box::from([b'a']))));
    }

    #[test]
    fn a_client_waits_once() {
        let mut waiters = Waiters::default();
        waiters.insert(parked(1, 7, b"a", 0, false));
        waiters.insert(parked(2, 7, b"b", 0, false));
        assert_eq!(
            (queue(&waiters, b'a'), queue(&waiters, b'b')),
            (vec![], vec![2])
        );
        assert_eq!(waiters.of_client(1, 7).unwrap().ticket, 2);
    }

    proptest! {
        #[test]
        fn the_four_views_agree(steps in prop::collection::vec((1u64..20, 0u32..8, "[a-d]{1,3}", 0u64..5, any::<bool>(), any::<bool>()), 0..80)) {
            let mut waiters = Waiters::default();
            let mut model: BTreeMap<u64, Parked> = BTreeMap::new();
            for (ticket, client, keys, deadline, without, is_removal) in steps {
                if is_removal {
                    prop_assert_eq!(waiters.remove(ticket).is_some(), model.remove(&ticket).is_some());
                } else {
                    let new = parked(ticket, client, keys.as_bytes(), deadline, without);
                    waiters.insert(new.clone());
                    model.retain(|_, old| old.request.connection != client);
                    model.insert(ticket, new);
                }
                prop_assert_eq!(waiters.len(), model.len());
                prop_assert_eq!(waiters.clients.len(), model.len());
                prop_assert_eq!(waiters.with_deadline(), model.values().filter(|it| it.deadline.is_some()).count());
                let mut keys = 0;
                let mut without_key = 0;
                for key in b'a'..=b'd' {
                    let waiting = || model.values().filter(|it| it.keys.iter().any(|(_, name)| **name == [key]));
                    let tickets: Vec<u64> = waiting().map(|it| it.ticket).collect();
                    keys += usize::from(!tickets.is_empty());
                    without_key += usize::from(waiting().any(|it| it.wakes_without_key));
                    prop_assert_eq!(queue(&waiters, key), tickets);
                }
                prop_assert_eq!((waiters.keys(), waiters.keys_without_key()), (keys, without_key));
            }
            waiters.remove_link(0);
            waiters.remove_link(1);
            waiters.remove_link(2);
            prop_assert!(waiters.is_empty() && waiters.keys() == 0 && waiters.with_deadline() == 0);
        }
    }
}
