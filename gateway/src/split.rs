//! Splits a command by the workers that own its keys.
//!
//! Not here: how the parts are executed as one (`atomic`) and their replies joined (`gather`).

use proto::catalogue::{Merge, StorageCommand};
use proto::frame::RequestHeader;
use proto::slot::slot_of;

use crate::call::Call;
use crate::core::{Core, Flow};
use crate::gather::Finish;

/// The keys of a command that one worker owns, each with the arguments that belong to it.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) worker: usize,
    /// Positions of the keys.
    positions: Vec<usize>,
    /// Arguments from one key to the next.
    step: usize,
}

impl Share {
    /// The arguments that go to the worker.
    pub(crate) fn arguments<'a>(
        &self,
        call: &'a Call<'_>,
    ) -> impl Iterator<Item = &'a [u8]> + Clone {
        let step = self.step;
        let keys = self.positions.iter();
        keys.flat_map(move |&at| (at..at + step).map(|at| call.arg(at)))
    }

    /// The header of a request with these arguments; `common` is that of the whole command.
    pub(crate) fn header(&self, call: &Call<'_>, common: RequestHeader) -> RequestHeader {
        let first = self.positions.first();
        RequestHeader {
            slot: first.map_or(0, |&at| slot_of(call.arg(at))),
            argc: u32::try_from(self.positions.len() * self.step + 1).unwrap_or(u32::MAX),
            ..common
        }
    }
}

/// A command, split.
#[derive(Debug)]
pub(crate) struct Split {
    /// In the order of workers, none of them empty.
    pub(crate) shares: Vec<Share>,
    /// The owner of each key.
    owners: Vec<usize>,
}

impl Split {
    /// What `Finish::Join` wants to know for this way of joining: the share (from 0) of each key.
    pub(crate) fn order(&self, merge: Merge) -> Vec<u8> {
        match merge {
            Merge::Zip => {
                let share_of = |owner: &usize| {
                    let at = self.shares.binary_search_by_key(owner, |it| it.worker);
                    u8::try_from(at.unwrap_or(0)).unwrap_or(u8::MAX)
                };
                self.owners.iter().map(share_of).collect()
            }
            Merge::Sum | Merge::Concat | Merge::AllOk | Merge::First => Vec::new(),
        }
    }
}

impl Core {
    /// Splits a command whose keys are every `step`-th argument from `first` to `last`.
    pub(crate) fn split(
        &self,
        call: &Call<'_>,
        (first, last, step): (usize, usize, usize),
    ) -> Split {
        let mut groups = vec![Vec::new(); self.lanes.workers()];
        let mut owners = Vec::new();
        for position in (first..=last).step_by(step) {
            let worker = self.lanes.owner(slot_of(call.arg(position)));
            if let Some(group) = groups.get_mut(worker) {
                group.push(position);
                owners.push(worker);
            }
        }
        let shares = groups.into_iter().enumerate();
        let shares = shares.filter(|(_, positions)| !positions.is_empty());
        let share = |(worker, positions)| Share {
            worker,
            positions,
            step,
        };
        Split {
            shares: shares.map(share).collect(),
            owners,
        }
    }

    /// Sends the parts of a command to the owners of its keys; they execute them one by one.
    pub(crate) fn scatter(
        &mut self,
        call: &Call<'_>,
        command: StorageCommand,
        merge: Merge,
        keys: (usize, usize, usize),
    ) -> Flow {
        let split = self.split(call, keys);
        let mut workers = split.shares.iter().map(|share| share.worker);
        if let Some(worker) = workers.find(|&worker| !self.lanes.is_usable(worker)) {
            return self.unavailable(call.index, worker);
        }
        let mut workers = split.shares.iter().map(|share| share.worker);
        if let Some(wait) = workers.find_map(|worker| self.wait_for_room_or_earlier(call, worker)) {
            return wait;
        }
        let order = split.order(merge);
        let finish = Finish::Join { merge, order };
        let Some(common) = self.gather(call, command, split.shares.len(), finish) else {
            return Flow::Stop;
        };
        for (part, share) in (1u32..).zip(&split.shares) {
            let header = share.header(call, RequestHeader { part, ..common });
            self.send_or_keep(share.worker, header, share.arguments(call));
        }
        self.after_parts(call.index)
    }
}
