//! What children say and ask: readiness, seen registry versions, changes of settings.

use super::{Action, Core};
use proto::settings::{ConfigSetError, Effect, Setting, SettingError};
use runtime::message::{FromChild, Request, ShutdownHow, ToChild};

use super::Millis;

/// A CONFIG SET that waits for processes.
#[derive(Debug)]
pub(super) struct PendingSet {
    process: usize,
    generation: u64,
    request: u64,
    version: u64,
}

impl Core {
    pub(super) fn message(&mut self, now: Millis, process: usize, message: FromChild) {
        match message {
            FromChild::Ready => self.ready(now, process),
            FromChild::Attached { .. } | FromChild::Detached { .. } => {}
            FromChild::LinkBroken { link, generation } => self.link_broken(now, link, generation),
            FromChild::RegistrySeen { version } => {
                let place = &mut self.processes[process];
                place.seen_version = place.seen_version.max(version);
                self.answer_sets();
            }
            FromChild::ArenaUntrusted { reason } => {
                let place = &mut self.processes[process];
                place.wants_fresh_arena = true;
                let text = format!("{} does not trust its arena: {reason}", place.name());
                self.log(tracing::Level::ERROR, text);
                self.actions.push(Action::Kill { process });
            }
            FromChild::Drained => {}
            FromChild::Request { request, body } => self.request(now, process, request, body),
        }
    }

    pub(super) fn request(&mut self, now: Millis, process: usize, request: u64, body: Request) {
        match body {
            Request::SetSettings { pairs, local } => {
                let changed = self.change_settings(&pairs, local);
                self.answer_change(process, request, changed.map_err(|error| error.to_string()));
            }
            Request::AddScript(script) => {
                let added = self.code.add_script(script);
                let changed = added.map(|is_new| {
                    if is_new {
                        self.publish();
                    }
                });
                self.answer_change(process, request, changed);
            }
            Request::ChangeLibraries(change) => {
                let changed = self.code.change_libraries(change);
                if changed.is_ok() {
                    self.publish();
                }
                self.answer_change(process, request, changed);
            }
            Request::FlushScripts => {
                self.code.flush_scripts();
                self.publish();
                self.answer_change(process, request, Ok(()));
            }
            Request::RewriteConfig => {
                self.actions
                    .push(Action::RewriteConfig { process, request });
            }
            Request::Shutdown(how) if how.abort => {
                let result = Err("No shutdown in progress.".to_string());
                self.send(process, ToChild::Reply { request, result });
            }
            Request::Shutdown(how) if how.save == Some(true) && !how.force => {
                let text = "SHUTDOWN SAVE refused: this version keeps data in memory only; NOSAVE \
                            or FORCE ends it";
                self.log(tracing::Level::WARN, text.to_string());
                let result = Err("Errors trying to SHUTDOWN. Check logs.".to_string());
                self.send(process, ToChild::Reply { request, result });
            }
            Request::Shutdown(ShutdownHow { now: fast, .. }) => {
                self.log(
                    tracing::Level::INFO,
                    "a client asked for shutdown".to_string(),
                );
                self.shut_down(now, fast);
            }
        }
    }

    pub(super) fn change_settings(
        &mut self,
        pairs: &[(String, String)],
        local: bool,
    ) -> Result<(), ConfigSetError> {
        let mut settings = self.settings.clone();
        let named = settings.set_many(pairs, local)?;
        for (setting, (name, text)) in named.iter().zip(pairs) {
            let refuse = |reason| ConfigSetError::Refused {
                name: name.clone(),
                reason,
            };
            match setting {
                Setting::Maxclients
                    if u64::try_from(settings.maxclients()).unwrap_or(0)
                        > self.checks.clients_max =>
                {
                    return Err(refuse(SettingError::TooManyClients(
                        self.checks.clients_max,
                    )));
                }
                Setting::Dir => {
                    (self.checks.directory)(text)
                        .map_err(|reason| refuse(SettingError::Other(reason)))?;
                }
                _ => {}
            }
        }
        for setting in named {
            let row = setting.row();
            if row.effect == Effect::None && !settings.is_default(setting) {
                let text = format!("CONFIG SET {}: without effect in this version", row.name);
                self.log(tracing::Level::WARN, text);
            }
        }
        self.settings = settings;
        self.publish();
        Ok(())
    }

    /// The registry has changed: publishes it and lets every process know.
    fn publish(&mut self) {
        self.version += 1;
        let version = self.version;
        self.actions.push(Action::Publish { version });
        for process in 0..self.processes.len() {
            if self.processes[process].is_alive() {
                self.send(process, ToChild::Registry { version });
            }
        }
    }

    /// Answers once every process has seen the registry as it is now, or at once with an error.
    fn answer_change(&mut self, process: usize, request: u64, changed: Result<(), String>) {
        if let Err(text) = changed {
            let result = Err(text);
            return self.send(process, ToChild::Reply { request, result });
        }
        let generation = self.processes[process].generation;
        self.pending.push(PendingSet {
            process,
            generation,
            request,
            version: self.version,
        });
        self.answer_sets();
    }

    pub(super) fn forget_requests_of(&mut self, process: usize) {
        let generation = self.processes[process].generation;
        self.pending
            .retain(|set| set.process != process || set.generation != generation);
    }

    /// Answers every CONFIG SET whose version all live processes have seen (C3).
    pub(super) fn answer_sets(&mut self) {
        let alive = self.processes.iter().filter(|process| process.is_alive());
        let seen = alive
            .map(|process| process.seen_version)
            .min()
            .unwrap_or(u64::MAX);
        let (done, waiting) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|set| set.version <= seen);
        self.pending = waiting;
        let done: Vec<PendingSet> = done;
        for set in done {
            let (request, result) = (set.request, Ok("OK".to_string()));
            self.send(set.process, ToChild::Reply { request, result });
        }
    }
}
