//! PUBLISH, SPUBLISH and the questions of PUBSUB: what is told to the broker and answered by it.
//!
//! A message has effects outside of its connection, so it is told to the broker only when all earlier commands
//! of its connection are answered: `SET` then `PUBLISH` are never seen in the wrong order. Messages in a row
//! keep their order by themselves and need not wait for each other.

use proto::CommandError;
use proto::frame::{BrokerHeader, BrokerKind, Question, Space, broker_flags, push_name};

use super::{Asked, What};
use crate::call::Call;
use crate::connection::Wait;
use crate::core::{Core, Flow};

pub(super) const BROKER_GONE: CommandError = CommandError::Unavailable {
    what: "the pub/sub broker",
};

impl Core {
    /// `Some` if the broker can be told nothing now.
    pub(super) fn wait_for_broker(&mut self, index: u32) -> Option<Flow> {
        if !self.pubsub.is_usable() {
            return Some(self.error(index, &BROKER_GONE));
        }
        if self.pubsub.outbox.is_empty() {
            return None;
        }
        let connection = self.get_mut(index)?;
        connection.wait = Wait::Room;
        let who = connection.who(index);
        self.pubsub.waiting.push_back(who);
        Some(Flow::Retry)
    }

    /// PUBLISH channel message
    pub(crate) fn publish(&mut self, call: &Call<'_>, space: Space) -> Flow {
        let Some(connection) = self.get_mut(call.index) else {
            return Flow::Stop;
        };
        if connection.replies.in_flight() != connection.publishing {
            connection.wait = Wait::Earlier;
            return Flow::Retry;
        }
        if let Some(flow) = self.wait_for_broker(call.index) {
            return flow;
        }
        let Some(connection) = self.get_mut(call.index) else {
            return Flow::Stop;
        };
        let who = connection.who(call.index);
        let mut header = BrokerHeader {
            connection: who.index,
            generation: who.generation,
            sequence: connection.replies.upcoming(),
            ..BrokerHeader::new(BrokerKind::Publish, space)
        };
        // Within an EXEC the next command comes behind the answer, and so do messages.
        let is_counted = connection.running.is_none();
        if !connection.is_muted() {
            header.flags = broker_flags::ANSWER;
            connection.replies.assign();
            if is_counted {
                connection.publishing += 1;
            } else {
                connection.wait = Wait::Answer;
            }
            self.pubsub.asked.push_back(Asked {
                who,
                sequence: header.sequence,
                what: What::Publish { is_counted },
            });
        }
        let is_waiting = header.flags != 0 && !is_counted;
        self.pubsub.send(&header, call.arg(1), &[call.arg(2)]);
        if is_waiting { Flow::Stop } else { Flow::Next }
    }

    /// PUBSUB CHANNELS, NUMSUB, NUMPAT and so on.
    pub(crate) fn ask_broker(&mut self, call: &Call<'_>, space: Space, question: Question) -> Flow {
        if let Some(flow) = self.wait_for_earlier(call.index) {
            return flow;
        }
        if let Some(flow) = self.wait_for_broker(call.index) {
            return flow;
        }
        let ticket = self.answer_later(call.index);
        let mut header = BrokerHeader {
            connection: ticket.who.index,
            generation: ticket.who.generation,
            sequence: ticket.sequence,
            count: question as u32,
            ..BrokerHeader::new(BrokerKind::Ask, space)
        };
        let mut list = Vec::new();
        let mut pattern: &[u8] = &[];
        match question {
            Question::Names => {
                if let Some(given) = call.get(2) {
                    header.flags = broker_flags::PATTERN;
                    pattern = given;
                }
            }
            Question::Counts => call.args(2).for_each(|name| push_name(&mut list, name)),
            Question::Patterns => {}
        }
        self.pubsub.send(&header, pattern, &[&list]);
        self.pubsub.asked.push_back(Asked {
            who: ticket.who,
            sequence: ticket.sequence,
            what: What::Ask,
        });
        Flow::Stop
    }
}
