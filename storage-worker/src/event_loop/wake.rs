//! Serves those who wait: after a command that signalled, when their time is over, and when they
//! have come back from the gateways after a death.
//!
//! ```text
//!   a batch ends behind the command that signalled; its reply is published
//!     for each signalled key, in the order of the signals
//!       for each that waits for it, in the order of tickets
//!         the key holds what it waits for?  run its handler: it replies, or waits on
//!     signals of those (BLMOVE) are the next round
//!   the next batch
//! ```
//!
//! The order is the reference's. One thing differs: who finds nothing keeps its old place in all
//! queues, where the reference puts it at the end.
//!
//! Who cannot be served because the ring of its link has no room, or waits with another reply, keeps
//! its place, and nobody behind it in the same queue is served; the signal is kept (`deferred`) and
//! looked at again in every turn. The peer has been asked to ring, so there will be one.
//!
//! Cost: for commands that nobody waits for, one compare.
//! Not here: commit lines and rings (`link`), queues (`waiters`).

use super::core::Core;
use super::links::Served;
use super::parked::Parked;
use crate::blocking::{Signal, WaitKey};
use crate::keyspace::Key;
use proto::CommandError;
use proto::frame::flags;
use proto::slot::slot_of;
use proto::time::UnixMillis;

/// Somebody cannot be served now.
struct NoRoom;

/// Serves everybody that a signal has made ready, and everybody that these make ready.
pub(super) fn serve_ready(core: &mut Core, links: &mut [Served]) {
    let mut round = std::mem::take(&mut core.deferred);
    loop {
        round.append(&mut core.engine.effects.waking.ready);
        if core.bracket.is_any_ended() {
            round.extend(core.bracket.take_ended().into_iter().map(Signal::Key));
        }
        if round.is_empty() {
            return;
        }
        for signal in round.drain(..) {
            match signal {
                Signal::Key(key) => serve_or_defer(core, links, key),
                Signal::Database(db) => {
                    for key in core.waiters.keys_of(db) {
                        serve_or_defer(core, links, key);
                    }
                }
            }
        }
    }
}

fn serve_or_defer(core: &mut Core, links: &mut [Served], key: WaitKey) {
    if serve_queue(core, links, &key).is_err() || core.tell_interested(&key).is_err() {
        defer(core, Signal::Key(key));
    }
}

/// Serves those who wait for `key` as long as there is something for them.
fn serve_queue(core: &mut Core, links: &mut [Served], key: &WaitKey) -> Result<(), NoRoom> {
    // Who comes while this goes on is looked at when the next signal comes.
    let Some(last) = core.waiters.last(key) else {
        return Ok(());
    };
    let mut ticket = 0;
    while let Some(next) = core.waiters.next(key, ticket).filter(|&next| next <= last) {
        ticket = next;
        let Some(parked) = core.waiters.get(ticket).cloned() else {
            continue;
        };
        if core.is_foreign(&key.1) {
            // What it holds is seen when the command runs.
            serve(core, links, &parked)?;
            continue;
        }
        let kind = core.kind_of(key);
        if kind == Some(parked.kind) || parked.wakes_without_key {
            serve(core, links, &parked)?;
        } else if kind.is_none() && !core.waiters.is_any_without_key(key) {
            break;
        }
    }
    Ok(())
}

fn serve(core: &mut Core, links: &mut [Served], parked: &Parked) -> Result<(), NoRoom> {
    // A link that is gone has taken along those who waited.
    let Some(served) = links.iter_mut().find(|it| it.link.id() == parked.link) else {
        return Ok(());
    };
    if !served.link.can_push() {
        return Err(NoRoom);
    }
    if parked.request.flags & flags::CROSSING != 0 && !core.visit_for(&parked.request, &parked.body)
    {
        return Err(NoRoom);
    }
    served.link.serve_parked(core, parked);
    if core.is_visiting() {
        core.leave();
    }
    Ok(())
}

/// Answers those whose time is over. Who cannot be answered now is looked at again later.
pub(super) fn end_waits(core: &mut Core, links: &mut [Served]) {
    for ticket in core.waiters.due(core.now) {
        let Some(parked) = core.waiters.get(ticket).cloned() else {
            continue;
        };
        if let Some(served) = links.iter_mut().find(|it| it.link.id() == parked.link)
            && served.link.can_push()
        {
            let error = parked.is_lost.then_some(CommandError::OutcomeUnknown);
            served.link.end_wait(core, &parked, error);
        }
    }
}

/// Takes those in who waited at the predecessor: they wait on, unless what they wait for has come
/// and the predecessor died before it could serve them.
pub(super) fn welcome(core: &mut Core, links: &mut [Served]) {
    let mut arrived = std::mem::take(&mut core.arrived);
    arrived.sort_unstable_by_key(|parked| parked.ticket);
    let mut tickets = Vec::with_capacity(arrived.len());
    for mut parked in arrived {
        let Some(served) = links.iter().find(|it| it.link.id() == parked.link) else {
            continue;
        };
        if served.link.is_lost(&parked) || core.deadly == Some(parked.ticket) {
            // Its time is over, and it will be told so.
            parked.is_lost = true;
            parked.deadline = Some(UnixMillis(0));
            parked.keys.clear();
        }
        tickets.push(parked.ticket);
        core.park(parked);
    }
    // Those first whose link could otherwise note another ticket in place of theirs.
    end_waits(core, links);
    for served in &mut *links {
        served.link.settle_note(core);
    }
    for ticket in tickets {
        let Some(parked) = core.waiters.get(ticket).cloned() else {
            continue;
        };
        let is_ready = |key: &WaitKey| match core.kind_of(key) {
            Some(kind) => kind == parked.kind,
            None => parked.wakes_without_key || core.is_foreign(&key.1),
        };
        if parked.keys.iter().any(is_ready) && serve(core, links, &parked).is_err() {
            for key in &parked.keys {
                defer(core, Signal::Key(key.clone()));
            }
        }
    }
}

/// Keeps a signal for later. There are as many as keys that somebody waits for, at most.
fn defer(core: &mut Core, signal: Signal) {
    if !core.deferred.contains(&signal) {
        core.deferred.push(signal);
    }
}

impl Core {
    /// What a key holds now.
    fn kind_of(&self, key: &WaitKey) -> Option<crate::keyspace::ValueKind> {
        let (db, bytes) = key;
        let key = Key::new(self.engine.hash_seed(), *db, slot_of(bytes), bytes);
        let found = self.engine.keyspace.look(&key, self.now);
        found.map(|found| found.kind())
    }
}
