//! Letters between the threads of a gateway process, and questions that all threads answer.
//!
//! ```text
//!   main thread ──Attach, Detach, Live, Supervisor, Drain──> thread
//!   thread ──Ask(question)──> every other thread ──Answer──> thread ──> the waiting client
//! ```
//!
//! A client that asks something about all threads (CLIENT LIST, KILL, PAUSE) waits, its connection
//! only; the thread goes on. Letters are few, so they may allocate.

use std::collections::HashMap;
use std::sync::Arc;

use proto::CommandError;
use proto::registry::SlotRange;
use proto::sha1::Sha1Text;

use crate::clients::{KillFilter, ListFilter};
use crate::core::{Core, Flow, Pause, Ticket};
use crate::lanes::{LaneParts, Who};
use crate::live::Live;
use crate::pubsub::BrokerParts;

/// A message for one thread.
#[derive(Debug)]
pub(crate) enum Letter {
    /// A link to a worker.
    Attach {
        worker: usize,
        parts: Box<LaneParts>,
    },
    /// A link to the broker.
    AttachBroker(Box<BrokerParts>),
    /// The broker keeps dying and comes back after a delay, or it is there again.
    BrokerDown(bool),
    /// A worker keeps dying and comes back after a delay, or it is there again.
    Down { worker: usize, is_down: bool },
    /// The link is gone for good.
    Detach { link: u32 },
    /// Settings and slots in force from now on; acknowledged through the counter.
    Live {
        live: Arc<Live>,
        slots: Arc<[SlotRange]>,
        seen: Arc<std::sync::atomic::AtomicUsize>,
    },
    /// The supervisor's answer to a request of this thread.
    Supervisor {
        request: u64,
        result: Result<String, String>,
    },
    /// Another thread wants to know or to have something done.
    Ask {
        from: usize,
        number: u64,
        question: Question,
    },
    /// What another thread found or did.
    Answer { number: u64, answer: Answer },
    /// Take no new commands and finish within so many milliseconds.
    Drain { millis: u64 },
}

/// Something that every thread does for a client of one of them.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    List(ListFilter),
    Kill(KillFilter),
    Pause(Option<Pause>),
    /// End the wait of the client with this number, as if its time were over or with an error.
    Unblock {
        id: u64,
        with_error: bool,
    },
}

/// Who waits for an answer: a thread, and the number under which it asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    thread: usize,
    number: u64,
}

/// A thread's part of an answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Numbers of clients and their lines.
    Lines(Vec<(u64, String)>),
    /// How many clients it was done to.
    Count(u64),
}

/// How the parts become a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    /// All lines, by number of client.
    Lines,
    Count,
    /// OK if there was at least one, otherwise "No such client".
    OkIfAny,
    Ok,
}

#[derive(Debug)]
struct Asked {
    ticket: Ticket,
    missing: usize,
    reply: Reply,
    lines: Vec<(u64, String)>,
    count: u64,
}

/// What happens when the supervisor has answered.
#[derive(Debug)]
enum Awaiting {
    /// The client gets its answer, or this one if all is well.
    Deliver(Ticket, Option<Vec<u8>>),
    /// The client's command is tried again; if the answer is an error, this script is forgotten.
    Retry(Who, Sha1Text),
}

/// Questions under way and requests to the supervisor.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    next: u64,
    asked: HashMap<u64, Asked>,
    requests: HashMap<u64, Awaiting>,
}

impl Core {
    /// Has every thread, this one included, deal with `question`, then answers the client of `index`.
    pub(crate) fn ask_all(&mut self, index: u32, question: Question, reply: Reply) {
        let ticket = self.answer_later(index);
        let others = self.shared.mailboxes.len().saturating_sub(1);
        let number = self.asks.next;
        self.asks.next += 1;
        let asked = Asked {
            ticket,
            missing: others + 1,
            reply,
            lines: Vec::new(),
            count: 0,
        };
        self.asks.asked.insert(number, asked);
        let asker = Asker {
            thread: self.thread,
            number,
        };
        let own = self.deal_with(&question, asker);
        for thread in (0..=others).filter(|&thread| thread != self.thread) {
            let question = question.clone();
            self.shared.mailboxes[thread].post(Letter::Ask {
                from: self.thread,
                number,
                question,
            });
        }
        if let Some(own) = own {
            self.take_answer(number, own);
        }
    }

    /// Tells an asker what he waits for.
    pub(crate) fn answer_asker(&mut self, asker: Asker, answer: Answer) {
        let Asker { thread, number } = asker;
        if thread == self.thread {
            self.take_answer(number, answer);
        } else if let Some(mailbox) = self.shared.mailboxes.get(thread) {
            mailbox.post(Letter::Answer { number, answer });
        }
    }

    fn take_answer(&mut self, number: u64, answer: Answer) {
        let Some(asked) = self.asks.asked.get_mut(&number) else {
            return;
        };
        asked.missing -= 1;
        match answer {
            Answer::Lines(lines) => asked.lines.extend(lines),
            Answer::Count(count) => asked.count += count,
        }
        if asked.missing > 0 {
            return;
        }
        let Some(mut asked) = self.asks.asked.remove(&number) else {
            return;
        };
        let mut reply = Vec::new();
        let resp3 = self
            .find_mut(asked.ticket.who)
            .is_some_and(|client| client.facts.resp3);
        let mut writer = proto::resp::ReplyWriter::to_vec(&mut reply, resp3);
        match asked.reply {
            Reply::Lines => {
                asked.lines.sort_unstable_by_key(|line| line.0);
                let text: String = asked.lines.into_iter().map(|line| line.1).collect();
                writer.verbatim("txt", text.as_bytes());
            }
            Reply::Count => writer.int(i64::try_from(asked.count).unwrap_or(i64::MAX)),
            Reply::OkIfAny if asked.count == 0 => {
                writer.error(&CommandError::NoSuchClient);
            }
            Reply::OkIfAny | Reply::Ok => writer.ok(),
        }
        self.deliver(asked.ticket, &reply);
    }

    /// Asks the supervisor; the client of `index` gets its answer, or an error if there is no supervisor.
    pub(crate) fn ask_supervisor(&mut self, index: u32, body: runtime::Request) -> Flow {
        let Some(request) = self.ask(body) else {
            return self.error(index, &CommandError::NoSupervisor);
        };
        let ticket = self.answer_later(index);
        self.asks
            .requests
            .insert(request, Awaiting::Deliver(ticket, None));
        Flow::Stop
    }

    /// The same for a command that waits already; `reply` is what it answers if all is well.
    pub(crate) fn ask_supervisor_for(
        &mut self,
        ticket: Ticket,
        body: runtime::Request,
        reply: Vec<u8>,
    ) -> bool {
        let Some(request) = self.ask(body) else {
            return false;
        };
        let awaiting = Awaiting::Deliver(ticket, Some(reply));
        self.asks.requests.insert(request, awaiting);
        true
    }

    /// Asks the supervisor and lets the connection try its command again afterwards.
    pub(crate) fn ask_and_retry(
        &mut self,
        who: Who,
        body: runtime::Request,
        sha1: Sha1Text,
    ) -> bool {
        let Some(request) = self.ask(body) else {
            return false;
        };
        self.asks
            .requests
            .insert(request, Awaiting::Retry(who, sha1));
        if let Some(connection) = self.find_mut(who) {
            connection.wait = crate::connection::Wait::Answer;
        }
        true
    }

    fn ask(&mut self, body: runtime::Request) -> Option<u64> {
        let request = (self.thread as u64) << 32 | self.asks.next & u64::from(u32::MAX);
        self.asks.next += 1;
        self.shared.ask_supervisor(request, body).then_some(request)
    }

    /// Takes one letter.
    pub(crate) fn letter(&mut self, letter: Letter) {
        match letter {
            Letter::Attach { worker, parts } => {
                self.settle_lent();
                // The worker has found its end of the old link damaged.
                if self.lanes.parts_mut(worker).is_some() {
                    self.close_unanswered();
                }
                self.lanes.attach(worker, *parts);
                self.look_everywhere = true;
            }
            Letter::AttachBroker(parts) => self.attach_broker(*parts),
            Letter::BrokerDown(is_down) => self.set_broker_down(is_down),
            Letter::Down { worker, is_down } => {
                for who in self.lanes.set_down(worker, is_down) {
                    if self.find_mut(who).is_some() {
                        self.resume(who.index);
                    }
                }
            }
            Letter::Detach { link } => self.detach(link),
            Letter::Live { live, slots, seen } => {
                self.lanes.set_owners(&slots);
                self.take_settings(live);
                seen.fetch_add(1, std::sync::atomic::Ordering::Release);
            }
            Letter::Supervisor { request, result } => match self.asks.requests.remove(&request) {
                Some(Awaiting::Deliver(ticket, reply)) => {
                    self.supervisor_answered(ticket, reply, result);
                }
                Some(Awaiting::Retry(who, sha1)) => {
                    if result.is_err() {
                        self.shared.scripts(|scripts| scripts.forget(&sha1));
                    }
                    if self.find_mut(who).is_some() {
                        self.resume(who.index);
                    }
                }
                None => {}
            },
            Letter::Ask {
                from,
                number,
                question,
            } => {
                let asker = Asker {
                    thread: from,
                    number,
                };
                if let Some(answer) = self.deal_with(&question, asker) {
                    self.answer_asker(asker, answer);
                }
            }
            Letter::Answer { number, answer } => self.take_answer(number, answer),
            Letter::Drain { millis } => {
                self.drain_until = Some(self.now.millis.saturating_add(millis));
                // Commands that come from now on wait for ever, that is, until the end.
                self.pause = Some(Pause {
                    until_unix_millis: u64::MAX,
                    writes_only: false,
                });
            }
        }
    }

    fn supervisor_answered(
        &mut self,
        ticket: Ticket,
        ready: Option<Vec<u8>>,
        result: Result<String, String>,
    ) {
        let mut reply = Vec::new();
        match result {
            Ok(_) if ready.is_some() => reply = ready.unwrap_or_default(),
            Ok(text) if text.is_empty() => reply.extend_from_slice(b"+OK\r\n"),
            Ok(text) => reply.extend_from_slice(format!("+{text}\r\n").as_bytes()),
            Err(text) => {
                let line = format!("ERR {text}").into_bytes().into_boxed_slice();
                CommandError::Line(line).write_resp(&mut reply);
                self.count_error("ERR");
            }
        }
        self.deliver(ticket, &reply);
    }

    /// `None` if the answer comes later.
    fn deal_with(&mut self, question: &Question, asker: Asker) -> Option<Answer> {
        Some(match question {
            Question::List(filter) => Answer::Lines(self.list_clients(filter)),
            Question::Kill(filter) => Answer::Count(self.kill_clients(filter)),
            Question::Pause(pause) => {
                self.set_pause(*pause);
                Answer::Count(1)
            }
            Question::Unblock { id, with_error } => return self.unblock(*id, *with_error, asker),
        })
    }

    /// The link is gone: who waits for room in it is told on its next try, and answers that can not
    /// come any more are errors.
    pub(crate) fn detach(&mut self, link: u32) {
        self.settle_lent();
        for who in self.lanes.detach(link) {
            if self.find_mut(who).is_some() {
                self.resume(who.index);
            }
        }
    }

    /// Starts, changes or ends a pause.
    pub(crate) fn set_pause(&mut self, pause: Option<Pause>) {
        if self.drain_until.is_some() {
            return;
        }
        self.pause = pause;
        if pause.is_none() {
            let paused: Vec<u32> = self
                .clients()
                .filter(|(_, client)| client.wait == crate::connection::Wait::Pause)
                .map(|(index, _)| index)
                .collect();
            for index in paused {
                self.resume(index);
            }
        }
    }

    fn take_settings(&mut self, live: Arc<Live>) {
        // As in Redis, a password that is set later does not log anybody out.
        let open = live.password.is_none();
        self.lacks_replicas = live.lacks_replicas;
        self.live = live;
        self.choose_timing();
        if open {
            for client in self.connections.iter_mut().flatten() {
                client.facts.authenticated = true;
                client.facts.settle();
            }
        }
    }
}
