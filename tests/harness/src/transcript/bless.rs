//! Writes the replies of a real Redis into a transcript.
//!
//! What is there and fits is kept as it stands, so holes survive; what is missing or does not fit is written
//! anew. `<ours` lines are kept: they say where we differ on purpose.

use std::collections::BTreeMap;

use super::parse::{Expected, Step, Transcript};
use super::run::{Outcome, Protocol};
use crate::pattern::{Memory, Pattern};

/// What came, by the line of the step.
#[derive(Debug, Default)]
pub struct Records {
    steps: BTreeMap<usize, Vec<Expected>>,
}

impl Records {
    /// Adds the replies to one step in one protocol.
    pub(super) fn add(
        &mut self,
        step: &Step,
        protocol: Protocol,
        outcomes: Vec<Outcome>,
        memory: &mut Memory,
    ) {
        let records = self.steps.entry(step.line).or_default();
        records.resize(records.len().max(outcomes.len()), Expected::default());
        for (place, outcome) in outcomes.into_iter().enumerate() {
            let known = step.replies.get(place);
            let three = protocol == Protocol::Resp3;
            let kept = known.and_then(|known| known.choose(false, three));
            let kept = kept.filter(|text| fits(text, &outcome, memory));
            let text = kept.map_or_else(|| outcome.render(), str::to_owned);
            let record = &mut records[place];
            if let Some(known) = known {
                record.ours.clone_from(&known.ours);
                record.ours_three.clone_from(&known.ours_three);
            }
            if three && record.base.is_some() {
                // Another hole, or the same text: only what differs gets a line of its own.
                let base = record.base.as_deref().unwrap_or_default();
                if !fits(base, &outcome, memory) {
                    record.three = Some(text);
                }
            } else {
                record.base = Some(text);
            }
        }
    }
}

fn fits(text: &str, outcome: &Outcome, memory: &mut Memory) -> bool {
    match (Pattern::parse(text), outcome) {
        (Ok(pattern), Outcome::Reply(reply)) => pattern.fits(reply, memory),
        (Ok(Pattern::Closed), Outcome::Closed) | (Ok(Pattern::Nothing), Outcome::Nothing) => true,
        _ => false,
    }
}

/// The text of the transcript with what was recorded.
pub(super) fn rewrite(transcript: &Transcript, records: &Records) -> String {
    let mut out = String::new();
    let mut next = 0;
    for step in transcript.cases.iter().flat_map(|case| &case.steps) {
        let Some(replies) = records.steps.get(&step.line) else {
            continue;
        };
        copy(&mut out, &transcript.lines[next..step.line]);
        for reply in replies {
            for (label, text) in [
                ("<", &reply.base),
                ("<3", &reply.three),
                ("<ours", &reply.ours),
                ("<ours3", &reply.ours_three),
            ] {
                if let Some(text) = text {
                    out.push_str(label);
                    out.push(' ');
                    out.push_str(text);
                    out.push('\n');
                }
            }
        }
        next = step.reply_lines.end;
    }
    copy(&mut out, &transcript.lines[next..]);
    out
}

fn copy(out: &mut String, lines: &[String]) {
    for line in lines {
        out.push_str(line);
        out.push('\n');
    }
}
