//! The end of the system: gateways finish first, then workers and the broker, and whoever is late is killed.
//!
//! Why in this order: what a gateway has accepted must still be answered by the workers.

use super::process::Process;
use super::{Action, Core, Millis, Phase};
use runtime::message::ToChild;
use runtime::plan::Role;

/// Time for what is in flight when somebody asks for the second time.
pub(super) const HURRY_MS: Millis = 500;

/// Where a shutdown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drain {
    No,
    Gateways { deadline: Millis },
    Workers { deadline: Millis },
}

impl Core {
    pub(super) fn shut_down(&mut self, now: Millis, fast: bool) {
        let patience = u64::try_from(self.settings.shutdown_timeout()).unwrap_or(10) * 1000;
        match self.drain {
            Drain::No => {
                let within = if fast {
                    HURRY_MS
                } else {
                    patience.max(HURRY_MS)
                };
                self.log(tracing::Level::INFO, "shutting down".to_string());
                self.drain = Drain::Gateways {
                    deadline: now + within,
                };
                for process in 0..self.processes.len() {
                    let place = &mut self.processes[process];
                    if let Phase::Waiting { .. } = place.phase
                        && place.place.role == Role::Gateway
                    {
                        place.phase = Phase::Gone;
                    }
                }
                for gateway in self.alive(Role::Gateway) {
                    self.drain_process(gateway, within);
                }
            }
            Drain::Gateways { deadline } => {
                self.hurry(now, deadline, Role::Gateway);
                let deadline = deadline.min(now + HURRY_MS);
                self.drain = Drain::Gateways { deadline };
            }
            Drain::Workers { deadline } => {
                self.hurry(now, deadline, Role::StorageWorker);
                self.hurry(now, deadline, Role::Broker);
                let deadline = deadline.min(now + HURRY_MS);
                self.drain = Drain::Workers { deadline };
            }
        }
    }

    pub(super) fn hurry(&mut self, now: Millis, deadline: Millis, role: Role) {
        if deadline > now + HURRY_MS {
            for process in self.alive(role) {
                self.drain_process(process, HURRY_MS);
            }
        }
    }

    pub(super) fn drain_process(&mut self, process: usize, within_ms: Millis) {
        let is_served = self.processes[process].place.role != Role::Gateway;
        if is_served && !matches!(self.drain, Drain::Workers { .. }) {
            return;
        }
        self.processes[process].asked_to_end = true;
        self.send(process, ToChild::Drain { within_ms });
    }

    pub(super) fn exit_at_once(&mut self, code: u8) {
        for process in 0..self.processes.len() {
            if self.processes[process].is_alive() {
                self.actions.push(Action::Kill { process });
            }
        }
        self.exiting = true;
        self.actions.push(Action::Exit { code });
    }

    pub(super) fn tick_drain(&mut self, now: Millis) {
        if let Drain::Gateways { deadline } = self.drain {
            self.kill_late(now, deadline, &[Role::Gateway]);
            let gone = |process: &&Process| process.place.role == Role::Gateway;
            if self
                .processes
                .iter()
                .filter(gone)
                .all(|place| place.phase == Phase::Gone)
            {
                let within = deadline.saturating_sub(now).max(HURRY_MS);
                self.drain = Drain::Workers {
                    deadline: now + within,
                };
                for process in 0..self.processes.len() {
                    let place = &mut self.processes[process];
                    if let Phase::Waiting { .. } = place.phase {
                        place.phase = Phase::Gone;
                    } else if place.is_alive() {
                        self.drain_process(process, within);
                    }
                }
            }
        }
        if let Drain::Workers { deadline } = self.drain {
            self.kill_late(now, deadline, &[Role::StorageWorker, Role::Broker]);
            if self
                .processes
                .iter()
                .all(|place| place.phase == Phase::Gone)
            {
                self.exiting = true;
                self.log(
                    tracing::Level::INFO,
                    "all parts have ended, good bye".to_string(),
                );
                self.actions.push(Action::Exit { code: 0 });
            }
        }
    }

    pub(super) fn kill_late(&mut self, now: Millis, deadline: Millis, roles: &[Role]) {
        if now < deadline {
            return;
        }
        let late = roles.iter().flat_map(|role| self.alive(*role));
        for process in late.collect::<Vec<_>>() {
            if !std::mem::replace(&mut self.processes[process].killed, true) {
                let text = format!(
                    "{} did not finish in time: killed",
                    self.processes[process].name()
                );
                self.log(tracing::Level::WARN, text);
                self.actions.push(Action::Kill { process });
            }
        }
        // Deaths of the killed arrive as events; do not wake up for this deadline again.
        match &mut self.drain {
            Drain::Gateways { deadline } | Drain::Workers { deadline } => {
                *deadline = now + HURRY_MS;
            }
            Drain::No => {}
        }
    }
}
