//! Clients that wait for keys of other workers.
//!
//! ```text
//!   BLPOP a b   runs at the owner of a, finds nothing, and is parked there
//!               ── note ──> the owner of b: worker A is interested in b
//!   RPUSH b     ── note ──> worker A: look at b       (once; the interest is gone with it)
//!               worker A runs the command again: it takes, or says again that it is interested
//! ```
//!
//! Who waits for keys of one worker is served in the order of coming. Of several workers that are interested in one key
//! the one that comes first gets it; those that wait at its owner come before them. Nobody is forgotten: the note that
//! says so is left in the same visit that has found nothing, and if an owner dies, who knows by heart what others
//! wait for, all look again.

use super::core::Core;
use super::notes::{interest_note, signal_note};
use super::visit::NotNow;
use crate::blocking::{Signal, WaitKey};
use shm::Party;

impl Core {
    /// Clients of ours wait for these keys: the owners of those that are not ours must know.
    pub(super) fn show_interest(&mut self, keys: &[WaitKey]) {
        let (Some(visits), Some(near)) = (
            &mut self.visits,
            self.engine.scripts.surroundings.near.as_deref(),
        ) else {
            return;
        };
        for (db, key) in keys {
            let owner = near.owner_of(key);
            if owner != near.own() && visits.held.has(owner) {
                let note = interest_note(near.own(), *db, key);
                visits.about_interest.push((owner, note));
                let page = visits.pages.get(&owner);
                let generation = page.map_or(0, Party::generation);
                visits.interested_in.entry(owner).or_insert(generation);
            }
        }
    }

    /// Whether an owner has a successor that knows nothing of our interest: all who wait for keys of others look
    /// again.
    pub(super) fn look_after_interest(&mut self) {
        let Some(visits) = &mut self.visits else {
            return;
        };
        let pages = &visits.pages;
        let is_new = |(owner, known): (&usize, &u64)| {
            let page = pages.get(owner);
            page.is_some_and(|page| page.generation() != *known)
        };
        if !visits.interested_in.iter().any(is_new) {
            return;
        }
        visits.interested_in.clear();
        let near = self.engine.scripts.surroundings.near.as_deref();
        let is_foreign = |key: &[u8]| near.is_some_and(|near| near.owner_of(key) != near.own());
        let keys = self.waiters.all_keys().filter(|(_, key)| is_foreign(key));
        let signals: Vec<Signal> = keys.cloned().map(Signal::Key).collect();
        self.engine.effects.waking.ready.extend(signals);
    }

    /// Whether a key belongs to another worker.
    pub(super) fn is_foreign(&self, key: &[u8]) -> bool {
        let near = self.engine.scripts.surroundings.near.as_deref();
        near.is_some_and(|near| near.owner_of(key) != near.own())
    }

    /// Tells the workers whose clients wait for a key of ours that there is something. They come and look; whoever
    /// finds nothing says again that it is interested. `Err` if it cannot be now.
    pub(super) fn tell_interested(&mut self, key: &WaitKey) -> Result<(), NotNow> {
        let Some(workers) = self.interests.get(key).copied() else {
            return Ok(());
        };
        self.visit(workers)?;
        if let (Some(visits), Some(near)) =
            (&mut self.visits, &mut self.engine.scripts.surroundings.near)
        {
            let note = signal_note(&Signal::Key(key.clone()));
            for worker in workers.iter().filter(|&worker| visits.held.has(worker)) {
                near.begin(worker, &mut self.engine.keyspace, 0, 0);
                near.with(worker, &mut self.engine.keyspace, |keyspace| {
                    keyspace.leave_note(&note);
                });
                visits.to_wake.add(worker);
            }
            near.finish(&mut self.engine.keyspace);
        }
        self.interests.remove(key);
        self.leave();
        self.note_waiters();
        Ok(())
    }
}
