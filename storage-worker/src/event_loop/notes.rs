//! Notes: what a visitor leaves for the owner of a keyspace.
//!
//! ```text
//!   key        kind u8 | database u16 | key                                   somebody may wait for it
//!   database   kind u8 | database u16                                         the same for all of its keys
//!   write      kind u8 | changed u8 | command u16 | database u16 | argc u32 | arguments   somebody may watch a key
//!   interest   kind u8 | worker u16 | database u16 | key                      a client of that worker waits for it
//! ```
//!
//! Only workers of one build exchange them. Not here: when they are left and read (`visit`).

use super::core::Core;
use crate::blocking::Signal;
use crate::unit::NestedWrite;
use proto::catalogue::StorageCommand;
use proto::counters::WorkerCounter;

const NOTE_KEY: u8 = 1;
const NOTE_DATABASE: u8 = 2;
const NOTE_WRITE: u8 = 3;
const NOTE_INTEREST: u8 = 4;

pub(super) fn interest_note(own: usize, db: u16, key: &[u8]) -> Vec<u8> {
    let own = u16::try_from(own).unwrap_or(u16::MAX).to_le_bytes();
    [&[NOTE_INTEREST][..], &own, &db.to_le_bytes(), key].concat()
}

pub(super) fn signal_note(signal: &Signal) -> Vec<u8> {
    match signal {
        Signal::Key((db, key)) => [&[NOTE_KEY][..], &db.to_le_bytes(), key].concat(),
        Signal::Database(db) => [&[NOTE_DATABASE][..], &db.to_le_bytes()].concat(),
    }
}

fn write_note(write: &NestedWrite) -> Vec<u8> {
    let mut note = vec![NOTE_WRITE, u8::from(write.has_changed)];
    note.extend_from_slice(&(write.command as u16).to_le_bytes());
    note.extend_from_slice(&write.db.to_le_bytes());
    note.extend_from_slice(&write.argc.to_le_bytes());
    note.extend_from_slice(&write.body);
    note
}

fn read_write(bytes: &[u8]) -> Option<NestedWrite> {
    let (has_changed, rest) = bytes.split_first()?;
    let (command, rest) = rest.split_first_chunk()?;
    let (db, rest) = rest.split_first_chunk()?;
    let (argc, body) = rest.split_first_chunk()?;
    Some(NestedWrite {
        command: StorageCommand::from_u16(u16::from_le_bytes(*command))?,
        db: u16::from_le_bytes(*db),
        argc: u32::from_le_bytes(*argc),
        body: body.to_vec(),
        has_changed: *has_changed != 0,
    })
}

impl Core {
    /// What owners must hear of becomes notes.
    pub(super) fn tell_owners(&mut self) {
        let Some(visits) = &mut self.visits else {
            return;
        };
        let Some(near) = &mut self.engine.scripts.surroundings.near else {
            return;
        };
        let own = near.own();
        let mut notes: Vec<(usize, Vec<u8>)> = Vec::new();
        let held = visits.held;
        notes.extend(visits.about_interest.extract_if(.., |it| held.has(it.0)));
        for worker in visits.held.iter() {
            let Some(next) = visits.others.get(&worker) else {
                continue;
            };
            for key in next.ended.borrow_mut().drain(..) {
                notes.push((worker, signal_note(&Signal::Key(key))));
            }
        }
        let ready = std::mem::take(&mut self.engine.effects.waking.ready);
        let mut stay = Vec::new();
        for signal in ready {
            match &signal {
                Signal::Key((_, key)) if near.owner_of(key) != own => {
                    notes.push((near.owner_of(key), signal_note(&signal)));
                }
                Signal::Key(_) => stay.push(signal),
                Signal::Database(_) => {
                    let held = visits.held.iter();
                    notes.extend(held.map(|worker| (worker, signal_note(&signal))));
                    stay.push(signal);
                }
            }
        }
        self.engine.effects.waking.ready = stay;
        for write in self.writes_elsewhere.drain(..) {
            for worker in visits.held.iter() {
                notes.push((worker, write_note(&write)));
            }
        }
        for (worker, note) in notes {
            let page = visits.pages.get(&worker);
            let has = |counter: WorkerCounter| {
                page.is_none_or(|page| page.counters().get(counter.place()) > 0)
            };
            let is_wanted = match note.first() {
                Some(&NOTE_WRITE) => has(WorkerCounter::WatchedKeys),
                Some(&NOTE_INTEREST) => true,
                _ => has(WorkerCounter::Waiters) || has(WorkerCounter::Interests),
            };
            if visits.held.has(worker) && is_wanted {
                near.begin(worker, &mut self.engine.keyspace, 0, 0);
                near.with(worker, &mut self.engine.keyspace, |keyspace| {
                    keyspace.leave_note(&note);
                });
                visits.to_wake.add(worker);
            }
        }
        near.finish(&mut self.engine.keyspace);
    }

    pub(super) fn take_note(&mut self, note: &[u8]) -> Option<()> {
        let (kind, rest) = note.split_first()?;
        match *kind {
            NOTE_KEY => {
                let (db, key) = rest.split_first_chunk()?;
                let signal = Signal::Key((u16::from_le_bytes(*db), key.into()));
                self.engine.effects.waking.ready.push(signal);
            }
            NOTE_DATABASE => {
                let db = u16::from_le_bytes(rest.try_into().ok()?);
                self.engine.effects.waking.ready.push(Signal::Database(db));
            }
            NOTE_WRITE => {
                let write = read_write(rest)?;
                self.note_nested_write(&write);
            }
            NOTE_INTEREST => {
                let (worker, rest) = rest.split_first_chunk()?;
                let (db, key) = rest.split_first_chunk()?;
                let key = (u16::from_le_bytes(*db), key.into());
                let worker = usize::from(u16::from_le_bytes(*worker));
                self.interests.entry(key).or_default().add(worker);
                self.note_waiters();
            }
            _ => return None,
        }
        Some(())
    }
}
