//! From bytes of a socket to commands.
//!
//! Bytes are parsed where they were read, in the buffer that the thread's connections share. Only what
//! cannot be used at once is copied to the connection: the rest of a command that has not arrived
//! completely, and everything behind a command that must wait.
//!
//! Any division of the input into reads gives the same commands (tested below with random cuts).

use proto::resp::RequestParser;
use proto::resp::request::{ParseLimits, Parsed, ProtocolError, is_cross_protocol_attack};

use crate::call::Call;
use crate::connection::{Closing, Pending, Wait};
use crate::core::{Core, Flow};
use crate::router::Large;

/// Why parsing has stopped.
#[derive(Debug)]
enum Halt {
    /// The bytes are used up, but for an unfinished command.
    Incomplete,
    /// The connection waits, or closes.
    Held,
    /// The command that was consumed last, `len` bytes before the end of the consumed ones, travels
    /// as a transfer and may take the bytes.
    Large { len: usize, inline: bool },
}

impl Core {
    /// Bytes were read from the socket of `index`.
    pub(crate) fn input(&mut self, index: u32, bytes: &[u8]) {
        self.tally.net_input += bytes.len() as u64;
        self.tally.reads += 1;
        let now = self.now.millis;
        let Some(connection) = self.get_mut(index) else {
            return;
        };
        connection.active = now;
        if connection.closing != Closing::No {
            return;
        }
        if let Some(pending) = &mut connection.pending {
            pending.bytes.extend_from_slice(bytes);
            if connection.wait == Wait::Nothing {
                self.run_pending(index);
            }
        } else if connection.wait == Wait::Nothing {
            self.run_shared(index, bytes);
        } else {
            self.keep(index, bytes, RequestParser::new());
        }
    }

    /// The buffer into which the driver should read the rest of a large command, with room for it.
    pub(crate) fn own_buffer(&mut self, index: u32) -> Option<&mut Vec<u8>> {
        let connection = self.get_mut(index)?;
        let pending = connection.pending.as_mut()?;
        let missing = pending.parser.wanted().saturating_sub(pending.rest().len());
        if connection.wait != Wait::Nothing || missing < crate::limits::READ_BUFFER_BYTES {
            return None;
        }
        if pending.start > 0 {
            pending.bytes.drain(..pending.start);
            pending.start = 0;
        }
        // Room for what was announced, but not all at once: a client may announce and never send.
        let room = missing.min(pending.bytes.len().max(crate::limits::READ_BUFFER_BYTES));
        pending.bytes.reserve(room);
        Some(&mut pending.bytes)
    }

    /// The driver has read `count` bytes into the buffer of `own_buffer`.
    pub(crate) fn own_buffer_filled(&mut self, index: u32, count: usize) {
        self.tally.net_input += count as u64;
        self.tally.reads += 1;
        let now = self.now.millis;
        if let Some(connection) = self.get_mut(index) {
            connection.active = now;
            if connection.closing == Closing::No {
                self.run_pending(index);
            }
        }
    }

    /// The client has closed its sending side. What it asked is still answered.
    pub(crate) fn input_ended(&mut self, index: u32) {
        let Some(connection) = self.get_mut(index) else {
            return;
        };
        connection.facts.ended = true;
        match connection.wait {
            Wait::Nothing => self.close_after_replies(index),
            Wait::Pause | Wait::Time | Wait::Replicas => self.close_now(index),
            Wait::Blocked if connection.facts.blocked => self.close_now(index),
            Wait::Room
            | Wait::Window
            | Wait::Earlier
            | Wait::Transfer
            | Wait::Answer
            | Wait::Blocked => {}
        }
    }

    /// Goes on with the connections whose wait is over.
    pub(crate) fn run_resumed(&mut self) {
        if self.runnable.is_empty() {
            return;
        }
        let mut list = std::mem::take(&mut self.runnable);
        for who in list.drain(..) {
            let Some(connection) = self.find_mut(who) else {
                continue;
            };
            connection.facts.listed = false;
            if connection.wait != Wait::Nothing || connection.closing != Closing::No {
                continue;
            }
            if connection.running.is_some() && !self.go_on_running(who.index) {
                continue;
            }
            let connection = self.find_mut(who);
            if connection.is_some_and(|connection| connection.pending.is_some()) {
                self.run_pending(who.index);
            }
            if let Some(connection) = self.find_mut(who)
                && connection.facts.ended
                && connection.wait == Wait::Nothing
            {
                self.close_after_replies(who.index);
            }
            self.look_at_unread(who.index);
        }
        // Connections that became runnable meanwhile stay listed for the next round.
        if self.runnable.is_empty() {
            self.runnable = list;
        }
    }

    fn run_shared(&mut self, index: u32, bytes: &[u8]) {
        let mut parser = std::mem::take(&mut self.parser);
        let mut spans = std::mem::take(&mut self.spans);
        let (used, halt) = self.run(index, bytes, &mut parser, &mut spans);
        if let Halt::Large { len, inline } = halt {
            let command = if inline {
                parser.inline_bytes()
            } else {
                &bytes[used - len..used]
            };
            self.send_large(command.to_vec(), 0, &spans);
        }
        self.spans = spans;
        if used < bytes.len() {
            let parser = match halt {
                Halt::Incomplete => std::mem::take(&mut parser),
                Halt::Held | Halt::Large { .. } => RequestParser::new(),
            };
            self.keep(index, &bytes[used..], parser);
        }
        parser.reset();
        self.parser = parser;
    }

    /// Copies bytes that must wait to the connection.
    fn keep(&mut self, index: u32, bytes: &[u8], parser: RequestParser) {
        let mut buffer = self.pool.take();
        buffer.extend_from_slice(bytes);
        let held = buffer.len();
        match self.get_mut(index) {
            Some(connection) if connection.closing == Closing::No => {
                connection.pending = Some(Box::new(Pending {
                    bytes: buffer,
                    start: 0,
                    parser,
                }));
                self.check_query_limit(index, held);
            }
            _ => self.pool.give(buffer),
        }
    }

    fn run_pending(&mut self, index: u32) {
        let Some(mut pending) = self.get_mut(index).and_then(|c| c.pending.take()) else {
            return;
        };
        let mut spans = std::mem::take(&mut self.spans);
        let (used, halt) = {
            let Pending {
                bytes,
                start,
                parser,
            } = &mut *pending;
            let (used, halt) = self.run(index, &bytes[*start..], parser, &mut spans);
            *start += used;
            (used, halt)
        };
        match halt {
            Halt::Large { len, inline: false } => {
                let first = pending.start - len;
                let rest = pending.rest().to_vec();
                let bytes = std::mem::replace(&mut pending.bytes, rest);
                pending.start = 0;
                self.send_large(bytes, first, &spans);
            }
            Halt::Large { inline: true, .. } => {
                self.send_large(pending.parser.inline_bytes().to_vec(), 0, &spans);
            }
            Halt::Incomplete | Halt::Held => {}
        }
        self.spans = spans;
        if !matches!(halt, Halt::Incomplete) {
            pending.parser.reset();
        }
        let held = pending.rest().len();
        if held == 0 {
            self.pool.give(pending.bytes);
            return;
        }
        if pending.start >= crate::limits::COMPACT_BYTES || (used > 0 && held < pending.start) {
            pending.bytes.drain(..pending.start);
            pending.start = 0;
        }
        match self.get_mut(index) {
            Some(connection) if connection.closing == Closing::No => {
                connection.pending = Some(pending);
                self.check_query_limit(index, held);
            }
            _ => self.pool.give(pending.bytes),
        }
    }

    /// Runs the commands in `bytes`. Returns how many bytes are dealt with and why it stopped.
    fn run(
        &mut self,
        index: u32,
        bytes: &[u8],
        parser: &mut RequestParser,
        spans: &mut Vec<(u32, u32)>,
    ) -> (usize, Halt) {
        let mut at = 0;
        if !self.go_on_running(index) {
            return (at, Halt::Held);
        }
        loop {
            let Some(connection) = self.get(index) else {
                return (at, Halt::Held);
            };
            let limits = ParseLimits {
                bulk_bytes_max: self.live.bulk_bytes_max,
                authenticated: connection.facts.authenticated,
            };
            let rest = &bytes[at..];
            let (len, inline) = match parser.parse(rest, spans, limits) {
                Ok(Parsed::Complete { consumed }) => (consumed, false),
                Ok(Parsed::Inline { consumed }) => (consumed, true),
                Ok(Parsed::Empty { consumed }) => {
                    at += consumed;
                    continue;
                }
                Ok(Parsed::Incomplete) => return (at, Halt::Incomplete),
                Err(error) => {
                    self.protocol_error(index, error);
                    return (bytes.len(), Halt::Held);
                }
            };
            let command = if inline { parser.inline_bytes() } else { rest };
            let call = Call {
                index,
                bytes: command,
                spans,
            };
            match self.command(&call) {
                Flow::Next => at += len,
                Flow::Stop => {
                    at += len;
                    let halt = if self.large.is_some() {
                        Halt::Large { len, inline }
                    } else {
                        Halt::Held
                    };
                    return (at, halt);
                }
                Flow::Retry => return (at, Halt::Held),
            }
        }
    }

    /// Hands a request that is too big for one frame to its lane. `first` is where its bytes begin.
    fn send_large(&mut self, bytes: Vec<u8>, first: usize, spans: &[(u32, u32)]) {
        if let Some(large) = self.large.take() {
            let Large { worker, header } = *large;
            let offset = u32::try_from(first).unwrap_or(u32::MAX);
            let spans = spans
                .iter()
                .skip(1)
                .map(|&(start, end)| (offset + start, end - start));
            let transfer = crate::transfer::Transfer::new(header, bytes, spans.collect());
            self.lanes.transfer(worker, transfer);
        }
    }

    fn protocol_error(&mut self, index: u32, error: ProtocolError) {
        self.tally.protocol_errors += 1;
        self.end_of_skip(index);
        let mut reply = vec![b'-'];
        reply.extend_from_slice(&error.line());
        reply.extend_from_slice(b"\r\n");
        self.answer(index, &reply);
        self.close_after_replies(index);
        if let Some(connection) = self.get(index) {
            tracing::debug!(client = connection.id, %error, "client broke the protocol");
        }
    }

    /// Redis closes a connection whose first word is the beginning of an HTTP request, so that a web
    /// page cannot make a browser send commands.
    pub(crate) fn is_attack(&mut self, index: u32, name: &[u8]) -> bool {
        if !is_cross_protocol_attack(name) {
            return false;
        }
        tracing::warn!(
            "possible attack: a client sent an HTTP request (a web page may have made a browser do \
             that); connection closed"
        );
        // Nothing that waits to be sent is, either.
        let Self {
            connections, pool, ..
        } = self;
        if let Some(connection) = connections.get_mut(index as usize).and_then(Option::as_mut) {
            connection.replies.clear(pool);
        }
        self.close_now(index);
        true
    }

    fn check_query_limit(&mut self, index: u32, held: usize) {
        if held > self.live.query_buffer_limit {
            self.tally.query_limit_disconnections += 1;
            let id = self.get(index).map_or(0, |connection| connection.id);
            tracing::warn!(
                client = id,
                bytes = held,
                "closed: its query buffer is over the limit"
            );
            self.close_now(index);
        }
    }
}
