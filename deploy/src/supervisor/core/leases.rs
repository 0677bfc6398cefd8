//! What a death means for arenas and their leases.
//!
//! A worker may die while it works in the arena of another one, as its visitor. If it was not inside a
//! change, its leases are freed and nothing is lost. Otherwise that arena is torn, although its owner
//! lives:
//!
//! ```text
//!   visitor dies      the owner is killed, the lease stays with the dead visitor: nobody gets in
//!   owner's death     FreshArena, and only then the lease is freed (C5)
//! ```
//!
//! An owner that dies while a live visitor is in its arena is replaced like any other: its successor
//! waits for the lease.

use super::{Action, ArenaState, Core, Role};

impl Core {
    /// A worker's arena is not trusted; its process is gone.
    pub(super) fn renew_arena(&mut self, process: usize, death: &str) {
        let place = &mut self.processes[process];
        place.wants_fresh_arena = false;
        place.arena = ArenaState::Fresh;
        let had_data = place.place.role == Role::StorageWorker && place.ready_once;
        place.lost_data |= had_data;
        let name = place.name();
        let cause = match place.torn_by {
            Some(visitor) => format!("{name}: its arena was torn by storage-worker {visitor}"),
            None => format!("{name} died inside a write ({death})"),
        };
        self.actions.push(Action::FreshArena { process });
        if had_data {
            let text =
                format!("{cause}: ALL KEYS OF THIS WORKER ARE LOST, its successor starts empty");
            self.log(tracing::Level::ERROR, text);
        }
    }

    /// After a death: frees what the dead worker held, except arenas that it tore, whose owners are
    /// killed. If its own arena was torn and is made anew by now, that lease is freed too.
    pub(super) fn settle_leases(&mut self, process: usize, torn: &[u32]) {
        let place = &mut self.processes[process];
        if place.place.role != Role::StorageWorker {
            return;
        }
        let (dead, name) = (place.place.first_party, place.name());
        if let Some(visitor) = place.torn_by.take() {
            self.forget(visitor, vec![dead]);
        }
        let workers = self.processes.iter().map(|process| &process.place);
        let workers = workers.filter(|place| place.role == Role::StorageWorker);
        let leases = workers.map(|place| place.first_party);
        let leases = leases.filter(|owner| !torn.contains(owner)).collect();
        self.forget(dead, leases);
        for owner in torn {
            let Some(position) = self.position_of(*owner) else {
                continue;
            };
            let is_alive = self.processes[position].is_alive();
            let fate = if is_alive {
                "is killed"
            } else {
                "gets a new one"
            };
            let text = format!(
                "{name} died while it changed the arena of storage-worker {owner}, which {fate}"
            );
            self.log(tracing::Level::ERROR, text);
            self.processes[position].torn_by = Some(dead);
            if is_alive {
                self.processes[position].wants_fresh_arena = true;
                self.actions.push(Action::Kill { process: position });
            } else {
                self.renew_arena(position, "");
                self.processes[position].torn_by = None;
                self.forget(dead, vec![*owner]);
            }
        }
    }

    fn forget(&mut self, dead: u32, leases: Vec<u32>) {
        self.actions.push(Action::Forget { dead, leases });
    }
}
