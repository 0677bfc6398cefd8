//! May this command run now? One ordered list of checks, driven by the command's row.
//!
//! ```text
//!   window      too much unanswered or unsent?              wait (Window)
//!   lookup      known name and subcommand?                  error
//!   arity       right number of arguments?                  error
//!   password    given, if one is asked for?                 NOAUTH
//!   subscribed  allowed to a RESP2 client that listens?     error
//!   draining    is the process about to end?                wait
//!   replicas    a write, and too few of them?               NOREPLICAS
//!   script      does one hold the worker for too long?      BUSY
//!   MULTI       allowed in it? memory to queue it?          error
//!   crossing    a command over several workers under way?   wait (Earlier)
//!   pause       CLIENT PAUSE?                               wait (Pause)
//!   MULTI       one to be queued?                           QUEUED
//!   ──> the gateway's own table, or the router
//! ```
//!
//! The order of the errors is Redis'. Not here: memory limits and types (the worker checks them).

use proto::CommandError;
use proto::catalogue::{self, CommandRef, GatewayCommand, Lookup, Spec, flag};

use crate::call::Call;
use crate::commands;
use crate::connection::Wait;
use crate::core::{Core, Flow};

impl Core {
    /// Looks at one command and runs it, sends it, refuses it or lets it wait.
    #[inline]
    pub(crate) fn command(&mut self, call: &Call<'_>) -> Flow {
        let Some(connection) = self
            .connections
            .get_mut(call.index as usize)
            .and_then(Option::as_mut)
        else {
            return Flow::Stop;
        };
        if !connection.has_window() {
            connection.wait = Wait::Window;
            return Flow::Retry;
        }
        let spec = match catalogue::find(call.arg(0), call.get(1)) {
            Lookup::Found(spec, _) => spec,
            other => return self.refuse_unknown(call, other),
        };
        if !spec.arity_fits(call.len()) {
            return self.refuse(call, spec, &CommandError::Arity { name: spec.name });
        }
        if connection.facts.plain
            && self.pause.is_none()
            && !(self.is_any_busy | self.lacks_replicas)
        {
            connection.last_command = spec.name;
            let flow = self.dispatch(call, spec);
            self.tally.commands += u64::from(flow != Flow::Retry);
            return flow;
        }
        self.command_of_a_special_client(call, spec)
    }

    /// The same for a client that has to authenticate, has asked for silence, or must wait.
    #[cold]
    fn command_of_a_special_client(&mut self, call: &Call<'_>, spec: &'static Spec) -> Flow {
        let paused = self.is_paused(call, spec);
        let Some(connection) = self.get_mut(call.index) else {
            return Flow::Stop;
        };
        connection.last_command = spec.name;
        if !connection.facts.authenticated && !spec.flags.has(flag::NO_AUTH) {
            return self.refuse(call, spec, &CommandError::NoAuth);
        }
        let hears_only = connection.facts.subscribed && !connection.facts.resp3;
        if hears_only && !spec.flags.has(flag::SUBSCRIBED) {
            return self.refuse(call, spec, &CommandError::Subscribed { name: spec.name });
        }
        let in_multi = connection.facts.in_multi;
        let is_crossing = connection.facts.crossing;
        if self.lacks_replicas && (spec.flags.has(flag::WRITE) || self.will_write(call.index, spec))
        {
            return self.refuse(call, spec, &CommandError::NoReplicas);
        }
        if is_crossing
            && !in_multi
            && let Some(wait) = self.wait_for_crossing(call, spec)
        {
            return wait;
        }
        if let Some(error) = self.busy_refusal(call, spec) {
            return self.refuse(call, spec, &error);
        }
        if in_multi && let Some(error) = self.refusal_in_multi(spec) {
            return self.refuse(call, spec, &error);
        }
        let Some(connection) = self.get_mut(call.index) else {
            return Flow::Stop;
        };
        if paused {
            connection.wait = Wait::Pause;
            self.set_blocked(call.index, true);
            return Flow::Retry;
        }
        connection.facts.skip_this = std::mem::take(&mut connection.facts.skip_next);
        let is_queued = in_multi && !spec.flags.has(flag::AT_ONCE_IN_MULTI);
        let flow = if is_queued {
            self.queue(call, spec)
        } else {
            self.dispatch(call, spec)
        };
        // What is queued is counted when it runs.
        self.tally.commands += u64::from(flow != Flow::Retry && !is_queued);
        if let Some(connection) = self.get_mut(call.index) {
            let skipped = std::mem::take(&mut connection.facts.skip_this);
            connection.facts.skip_next |= skipped && flow == Flow::Retry;
            connection.facts.settle();
        }
        flow
    }

    #[inline]
    pub(crate) fn dispatch(&mut self, call: &Call<'_>, spec: &'static Spec) -> Flow {
        match spec.command {
            CommandRef::Storage(command) => self.route(call, spec, command),
            CommandRef::Gateway(command) => {
                let errors = self.tally.errors;
                let timed = self.tally.begin(command);
                let flow = commands::HANDLERS[command as usize](self, call);
                if flow != Flow::Retry {
                    let failed = self.tally.errors != errors;
                    self.tally.call(command, failed, timed);
                    // How long one takes that is answered later is not known here.
                    if let Some(timed) = timed.filter(|_| flow == Flow::Next) {
                        self.look_at_time(call, spec, timed);
                    }
                }
                flow
            }
            CommandRef::Container(_) => {
                self.refuse(call, spec, &CommandError::Arity { name: spec.name })
            }
        }
    }

    /// Whether CLIENT PAUSE holds this command back.
    fn is_paused(&self, call: &Call<'_>, spec: &Spec) -> bool {
        let writes = || self.is_held(call, spec) || self.is_held_by_exec(call.index, spec);
        self.pause
            .is_some_and(|pause| !pause.writes_only || writes())
    }

    /// Whether CLIENT PAUSE WRITE holds this command back, should it run.
    pub(crate) fn is_held(&self, call: &Call<'_>, spec: &Spec) -> bool {
        let promises_not_to = || match spec.command {
            CommandRef::Storage(command) => self.promises_not_to_write(call, command),
            CommandRef::Gateway(_) | CommandRef::Container(_) => false,
        };
        spec.may_replicate() && !promises_not_to()
    }

    /// Answers a command that will not run.
    #[cold]
    pub(crate) fn refuse(&mut self, call: &Call<'_>, spec: &Spec, error: &CommandError) -> Flow {
        match spec.command {
            CommandRef::Gateway(command) => self.tally.reject(command),
            CommandRef::Storage(command) => self.tally.reject_storage(command),
            CommandRef::Container(_) => {}
        }
        self.tally.rejected += 1;
        self.end_of_skip(call.index);
        if matches!(spec.command, CommandRef::Gateway(GatewayCommand::Exec)) {
            return self.abort(call.index, &error.aborting_exec());
        }
        self.break_transaction(call.index);
        self.error(call.index, error)
    }

    /// A refused command, too, is the one that CLIENT REPLY SKIP meant.
    pub(crate) fn end_of_skip(&mut self, index: u32) {
        if let Some(connection) = self.get_mut(index) {
            connection.facts.skip_this = std::mem::take(&mut connection.facts.skip_next);
        }
    }

    #[cold]
    fn refuse_unknown(&mut self, call: &Call<'_>, found: Lookup) -> Flow {
        let name = call.arg(0);
        if self.is_attack(call.index, name) {
            return Flow::Stop;
        }
        self.tally.rejected += 1;
        self.end_of_skip(call.index);
        self.break_transaction(call.index);
        let error = catalogue::unknown(found, name, call.args(1));
        self.error(call.index, &error)
    }

    pub(crate) fn count_error(&mut self, code: &str) {
        self.tally.errors += 1;
        self.shared.count_error(code);
    }

    /// Answers with an error.
    #[cold]
    pub(crate) fn error(&mut self, index: u32, error: &CommandError) -> Flow {
        let mut reply = Vec::with_capacity(64);
        error.write_resp(&mut reply);
        self.count_error(&error.code());
        self.answer(index, &reply);
        if let Some(connection) = self.get_mut(index) {
            connection.facts.skip_this = false;
            connection.facts.settle();
        }
        Flow::Next
    }
}
