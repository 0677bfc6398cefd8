//! The clock of scripts: says on the worker's page that one runs for long, and hears whether it is to end.
//!
//! Scripts that end within the first ticks never look at a clock and write nothing to the page.

use crate::neighbours::Workers;
use crate::scripts::{FunctionCall, Watch};
use proto::control_words::{
    RunningScript, SCRIPT, SCRIPT_BEGAN, SCRIPT_CALL, SCRIPT_END, SCRIPT_HOLDS, call_words,
};
use script::Tick;
use shm::Party;
use std::time::{Duration, Instant, SystemTime};

/// See the module.
#[derive(Debug)]
pub(super) struct ScriptWatch {
    party: Party,
    began: Option<Instant>,
    /// The script that runs, once it is on the page.
    shown: Option<RunningScript>,
    last_number: u64,
    threshold: Duration,
}

impl ScriptWatch {
    /// `party` is the worker's own page, opened once more. What a predecessor left there is not true any
    /// more.
    pub(super) fn new(party: Party) -> Self {
        party.set_control(SCRIPT, 0);
        let last_number = party.control(SCRIPT_END);
        Self {
            party,
            began: None,
            shown: None,
            last_number,
            threshold: Duration::ZERO,
        }
    }

    /// Puts what is to be seen of the script on the page.
    fn show(&mut self, function: Option<FunctionCall<'_>>) -> RunningScript {
        self.last_number += 1;
        let mut words = Vec::new();
        if let Some(call) = function {
            words.extend([call.name, call.command.as_bytes()]);
            words.extend(call.args.iter_from(1));
        }
        for (word, value) in (SCRIPT_CALL..).zip(call_words(&words)) {
            self.party.set_control(word, value);
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let millis = u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(0);
        self.party.set_control(SCRIPT_BEGAN, millis);
        RunningScript {
            number: self.last_number,
            is_busy: false,
            has_written: false,
            is_function: function.is_some(),
        }
    }
}

impl Watch for ScriptWatch {
    fn tick(
        &mut self,
        function: Option<FunctionCall<'_>>,
        has_written: bool,
        holds: Workers,
    ) -> Tick {
        let began = *self.began.get_or_insert_with(Instant::now);
        let before = self.shown;
        let mut script = match before {
            Some(script) => script,
            None => {
                self.party.set_control(SCRIPT_HOLDS, holds.0);
                self.show(function)
            }
        };
        script.has_written = has_written;
        script.is_busy = self.threshold > Duration::ZERO && began.elapsed() >= self.threshold;
        if before != Some(script) {
            self.party.set_control(SCRIPT, script.to_word());
            self.shown = Some(script);
        }
        let is_wanted_dead = self.party.control(SCRIPT_END) == script.number;
        if is_wanted_dead && !has_written {
            Tick::Kill
        } else {
            Tick::GoOn
        }
    }

    fn end(&mut self) {
        if self.began.take().is_some() && self.shown.take().is_some() {
            self.party.set_control(SCRIPT, 0);
        }
    }

    fn set_threshold(&mut self, millis: u64) {
        self.threshold = Duration::from_millis(millis);
    }
}
