//! Scripts that run for too long: who gets BUSY meanwhile, and how one is ended.
//!
//! A worker says on its page that a script runs. Commands for that worker are refused, others are not; a
//! command of the gateway's own is refused if no worker is free, as it would be by a server of one thread.

use proto::CommandError;
use proto::catalogue::{CommandRef, Route, Spec, flag, routing_keys};
use proto::control_words::{
    RunningScript, SCRIPT, SCRIPT_BEGAN, SCRIPT_END, SCRIPT_HOLDS, call_texts,
};
use proto::number::parse_i64;
use proto::slot::slot_of;

use crate::call::Call;
use crate::core::Core;

impl Core {
    /// The script that has run on `worker` for some time.
    fn running_script(&self, worker: usize) -> Option<RunningScript> {
        RunningScript::from_word(self.lanes.page(worker)?.control(SCRIPT))
    }

    /// The script that has held `worker` for too long: it runs there, or at another one.
    fn busy_script(&self, worker: usize) -> Option<RunningScript> {
        let is_held = |other: &usize| {
            let page = self.lanes.page(*other);
            let holds = page.map_or(0, |page| page.control(SCRIPT_HOLDS));
            *other == worker || holds >> (worker % 64) & 1 == 1
        };
        let mut holders = (0..self.lanes.workers()).filter(is_held);
        holders.find_map(|other| self.running_script(other).filter(|script| script.is_busy))
    }

    /// Looks at the pages of all workers, once per turn.
    #[inline]
    pub(crate) fn look_at_scripts(&mut self) {
        let is_busy = |worker| {
            self.running_script(worker)
                .is_some_and(|script| script.is_busy)
        };
        self.is_any_busy = (0..self.lanes.workers()).any(is_busy);
    }

    /// Why a command is refused while scripts hold workers.
    pub(crate) fn busy_refusal(
        &mut self,
        call: &Call<'_>,
        spec: &'static Spec,
    ) -> Option<CommandError> {
        if !self.is_any_busy || spec.flags.has(flag::ALLOW_BUSY) {
            return None;
        }
        let mut all = 0..self.lanes.workers();
        let busy = match spec.command {
            CommandRef::Storage(_) => match spec.route {
                Route::Every(_) | Route::Cursor | Route::RandomWorker => {
                    all.find_map(|worker| self.busy_script(worker))
                }
                _ => self.busy_owner(call, spec),
            },
            CommandRef::Gateway(_) | CommandRef::Container(_) => {
                let one = self.busy_script(0);
                let is_any_free = all.any(|worker| self.busy_script(worker).is_none());
                one.filter(|_| !is_any_free)
            }
        };
        busy.map(|script| refusal(script.is_function))
    }

    /// A script on a worker that owns a key of the command.
    fn busy_owner(&mut self, call: &Call<'_>, spec: &'static Spec) -> Option<RunningScript> {
        if spec.route == Route::Script && parse_i64(call.arg(2)).is_none_or(|count| count < 1) {
            return self.busy_script(0);
        }
        let mut keys = std::mem::take(&mut self.found_keys);
        keys.clear();
        routing_keys(spec, call.len(), |at| call.arg(at), &mut keys);
        let mut owners = keys
            .iter()
            .map(|key| self.lanes.owner(slot_of(call.arg(key.position as usize))));
        let busy = owners.find_map(|worker| self.busy_script(worker));
        self.found_keys = keys;
        busy
    }

    /// The function that has run for some time: its name and the words of its call, and for how many
    /// milliseconds.
    pub(crate) fn running_function(&self) -> Option<(Vec<Vec<u8>>, u64)> {
        let mut workers = 0..self.lanes.workers();
        let found = workers.find(|&worker| {
            self.running_script(worker)
                .is_some_and(|script| script.is_function)
        });
        let page = self.lanes.page(found?)?;
        let began = page.control(SCRIPT_BEGAN);
        let texts = call_texts(|word| page.control(word));
        Some((texts, (self.now.unix_micros / 1000).saturating_sub(began)))
    }

    /// Ends the script, or function, that runs.
    pub(crate) fn end_script(&self, is_function: bool) -> Result<(), CommandError> {
        let running = (0..self.lanes.workers())
            .filter_map(|worker| Some((worker, self.running_script(worker)?)));
        let mut refused = CommandError::NoScriptRuns;
        for (worker, script) in running {
            if script.is_function != is_function {
                refused = refusal(script.is_function);
            } else if script.has_written {
                refused = CommandError::ScriptUnkillable;
            } else if let Some(page) = self.lanes.page(worker) {
                page.set_control(SCRIPT_END, script.number);
                return Ok(());
            }
        }
        Err(refused)
    }
}

fn refusal(is_function: bool) -> CommandError {
    if is_function {
        CommandError::BusyFunction
    } else {
        CommandError::BusyScript
    }
}
