//! Questions about watched keys, from a worker that runs a transaction to one that its client watches keys at.
//!
//! ```text
//!   who runs EXEC has the leases of all      client, number of keys, question ──> page of the other one, bell
//!   who waits for its own lease              looks into its table ──> answer on its page
//! ```
//!
//! The table of who watches what is in the private memory of the owner, and nothing can change meanwhile: the
//! keyspace belongs to whoever asks. Who does not answer in time is dead or has a successor, which knows of no
//! watched key: they count as changed.

use super::core::Core;
use super::watching::Client;
use proto::control_words::{WATCH_ANSWER, WATCH_ASK, WATCH_CLIENT, WATCH_COUNT};
use runtime::link_id;
use runtime::plan::parties_of_link;
use shm::Bell;
use std::time::{Duration, Instant};

/// How long a worker may take to answer a question, and how often one looks.
const ANSWER_WITHIN: Duration = Duration::from_millis(200);
const LOOK_AGAIN: Duration = Duration::from_micros(20);

impl Core {
    /// Answers a worker that holds our lease, if it asks whether keys were changed that a client watches here.
    pub(super) fn answer_about_watched(&mut self) {
        let page = &self.party;
        let ask = page.control(WATCH_ASK);
        let Some(visits) = self.visits.as_mut().filter(|it| it.answered != ask) else {
            return;
        };
        // Only who holds our lease may ask: then nothing changes meanwhile.
        if visits.own.holder().map(u64::from) != Some(ask >> 48) {
            return;
        }
        visits.answered = ask;
        let (client, count) = (page.control(WATCH_CLIENT), page.control(WATCH_COUNT));
        let low = |word: u64| (word & u64::from(u32::MAX)) as u32;
        let client = ((client >> 32) as u32, low(client), (count >> 32) as u32);
        let (watching, view) = self.watching_and_view();
        let is_changed = watching.end(client, low(count), &view);
        self.note_watchers();
        let answer = ask << 1 | u64::from(is_changed);
        self.party.set_control(WATCH_ANSWER, answer);
    }

    /// Whether a key was changed that a client watches at a worker whose lease we hold. It watches nothing there
    /// any more. Who does not answer has lost its memory of that, and so they count as changed.
    pub(super) fn ask_about_watched(
        &mut self,
        worker: usize,
        (link, connection, generation): Client,
        keys: u32,
    ) -> bool {
        let number = u32::try_from(worker).unwrap_or(u32::MAX);
        let link = link_id(parties_of_link(link).0, number);
        let Some(visits) = self.visits.as_mut().filter(|it| it.held.has(worker)) else {
            return true;
        };
        let Some(page) = visits.pages.get(&worker) else {
            return true;
        };
        visits.asked += 1;
        // The answer to a question of a predecessor of ours must not be taken for that to another one.
        let line = u64::from(self.party.generation() as u16) << 32;
        let ask = (visits.own_index as u64) << 48 | line | visits.asked & u64::from(u32::MAX);
        page.set_control(WATCH_CLIENT, u64::from(link) << 32 | u64::from(connection));
        page.set_control(WATCH_COUNT, u64::from(generation) << 32 | u64::from(keys));
        page.set_control(WATCH_ASK, ask);
        page.doorbell().ring(&Bell::Futex);
        let until = Instant::now() + ANSWER_WITHIN;
        loop {
            let answer = page.control(WATCH_ANSWER);
            if answer >> 1 == ask & (u64::MAX >> 1) {
                return answer & 1 == 1;
            }
            if Instant::now() > until {
                return true;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}
