//! Transactions: what a client has queued since MULTI, and how EXEC sends it.
//!
//! ```text
//!   MULTI    +OK
//!   SET      +QUEUED     packed as an item of the unit that EXEC sends
//!   PING     +QUEUED     the gateway's own: kept beside it
//!   EXEC     ──> unit (one request to one worker) ──> one array, nothing, or an error
//! ```
//!
//! The unit is one request in every respect: it enters the ring as one frame, or in parts of which the worker
//! runs nothing before the last one. What a client has queued when it goes away has gone nowhere.
//!
//! Commands of the gateway run when the unit has: their replies stand in their places, and nothing of them is
//! done if a watched key was changed. `SELECT` is known while it is queued; it becomes the connection's
//! database with the unit.
//!
//! A transaction with keys of several workers runs on one of them, which visits the others: the owner of what
//! the client watches, if there is such a thing.
//!
//! WATCH: the owner of each key is told, and says at EXEC whether a key was changed. The connection keeps
//! which keys it watches: how many there are goes with the unit, so that a worker which has lost them says
//! that they were changed.
//!
//! Cost: nothing for other clients; per queued command a copy of its arguments.

use proto::CommandError;
use proto::catalogue::{CommandRef, GatewayCommand, Merge, Route, Spec, StorageCommand, flag};
use proto::counters::WorkerCounter;
use proto::frame::{
    REQUEST_HEADER_BYTES, RequestHeader, RequestKind, UnitHead, UnitItem, flags as frame_flags,
    request_len, write_request,
};
use proto::number::parse_i64;
use proto::resp::ReplyWriter;
use proto::settings::MaxmemoryPolicy;
use proto::slot::slot_of;

use crate::call::Call;
use crate::connection::{Connection, Wait};
use crate::core::{Core, Flow};
use crate::gather::{Finish, Gather};
use crate::internal::{UNIT, UNIT_OF_READS, UNWATCH_KEYS, WATCH_KEYS};
use crate::lanes::{NoRoom, Who};
use crate::router::{Place, header_for};
use crate::running::{Own, Unit};
use crate::transfer::{Span, Transfer};

/// What a client has said since MULTI, and which keys it watches.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// MULTI was said.
    pub(crate) is_open: bool,
    /// A command was refused: EXEC does nothing.
    is_broken: bool,
    /// Commands that are queued.
    count: usize,
    /// The head of the unit and its items, and where each of them is.
    bytes: Vec<u8>,
    spans: Vec<Span>,
    own: Vec<Own>,
    /// Of `SELECT`: how often it was queued.
    selects: usize,
    /// Slots of all keys; each as often as its neighbours differ.
    slots: Vec<u16>,
    /// All workers are concerned.
    is_everywhere: bool,
    writes: bool,
    /// One of its commands writes by what its row says.
    has_write: bool,
    /// CLIENT PAUSE WRITE holds one of its commands back.
    is_held: bool,
    /// Database and protocol version of the next command.
    database: u16,
    resp3: bool,
    pub(crate) watched: Vec<(u16, Box<[u8]>)>,
}

impl Transaction {
    /// What EXEC has to do beside its unit.
    fn rest(&mut self) -> Unit {
        Unit {
            count: self.count,
            own: std::mem::take(&mut self.own),
            database: self.database,
        }
    }

    /// Commands queued, `None` outside of MULTI.
    pub(crate) fn queued(&self) -> Option<usize> {
        self.is_open.then_some(self.count)
    }

    /// Bytes of the queued commands.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len() + self.own.iter().map(|own| own.bytes.len()).sum::<usize>()
    }

    /// The head is the first item; that of an attempt to send it before may be another one.
    fn write_head(&mut self, head: &UnitHead) {
        let start = self.begin_item();
        self.bytes.extend_from_slice(&head.encode());
        self.end_item(start);
        if let Some(head) = self.spans.pop() {
            self.spans[0] = head;
        }
    }

    /// The header of its request.
    fn header(&self, connection: &Connection, index: u32) -> RequestHeader {
        let command = if self.writes { UNIT } else { UNIT_OF_READS };
        let slot = self.slots.first().copied().unwrap_or_default();
        header_for(connection, index, command, slot, self.spans.len() + 1)
    }

    fn note_slot(&mut self, slot: u16) {
        if self.slots.last() != Some(&slot) {
            self.slots.push(slot);
        }
    }

    fn begin_item(&self) -> usize {
        self.bytes.len()
    }

    fn end_item(&mut self, start: usize) {
        let len = self.bytes.len() - start;
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        self.spans.push((number(start), number(len)));
    }

    fn push_ready(&mut self, write: impl FnOnce(&mut ReplyWriter<'_>)) {
        let start = self.begin_item();
        let mut reply = Vec::new();
        write(&mut ReplyWriter::to_vec(&mut reply, self.resp3));
        UnitItem::push_ready(&reply, &mut self.bytes);
        self.end_item(start);
    }
}

impl Core {
    /// MULTI
    pub(crate) fn open_transaction(&mut self, index: u32) {
        let Some(connection) = self.get_mut(index) else {
            return;
        };
        let transaction = connection.transaction.get_or_insert_default();
        transaction.is_open = true;
        transaction.database = connection.database;
        transaction.resp3 = connection.facts.resp3;
        transaction.bytes = Vec::new();
        // The head, which is written last.
        transaction.spans = vec![(0, 0)];
        connection.facts.in_multi = true;
        connection.facts.settle();
    }

    /// A command was refused: if that was inside MULTI, EXEC does nothing.
    pub(crate) fn break_transaction(&mut self, index: u32) {
        if let Some(connection) = self.get_mut(index)
            && connection.facts.in_multi
            && let Some(transaction) = &mut connection.transaction
        {
            transaction.is_broken = true;
        }
    }

    /// Whether a command is refused inside MULTI, and why.
    pub(crate) fn refusal_in_multi(&self, spec: &'static Spec) -> Option<CommandError> {
        if spec.flags.has(flag::NO_MULTI) {
            return Some(CommandError::NotInTransaction);
        }
        if spec.flags.has(flag::REFUSED_IN_MULTI) {
            return Some(CommandError::NotInMulti { name: spec.name });
        }
        let needs_memory = spec.flags.has(flag::DENYOOM);
        (needs_memory && self.is_memory_short()).then_some(CommandError::OutOfMemory)
    }

    /// Whether more memory is used than may be, and none of it can be had by eviction.
    pub(crate) fn is_memory_short(&self) -> bool {
        let settings = &self.live.settings;
        let limit = settings.maxmemory();
        if limit == 0 || settings.maxmemory_policy() != MaxmemoryPolicy::Noeviction {
            return false;
        }
        let used = WorkerCounter::UsedBytes.place();
        let used = (0..self.lanes.workers()).map(|worker| self.lanes.counter_of(worker, used));
        used.sum::<u64>() > limit
    }

    /// Whether this is EXEC of a transaction with a command that writes; scripts look for themselves.
    pub(crate) fn will_write(&self, index: u32, spec: &Spec) -> bool {
        self.to_execute(index, spec)
            .is_some_and(|transaction| transaction.has_write)
    }

    /// Whether this is EXEC of a transaction that CLIENT PAUSE WRITE holds back.
    pub(crate) fn is_held_by_exec(&self, index: u32, spec: &Spec) -> bool {
        self.to_execute(index, spec)
            .is_some_and(|transaction| transaction.is_held)
    }

    fn to_execute(&self, index: u32, spec: &Spec) -> Option<&Transaction> {
        let is_exec = matches!(spec.command, CommandRef::Gateway(GatewayCommand::Exec));
        let connection = self.get(index).filter(|_| is_exec)?;
        connection.transaction.as_deref()
    }

    /// Queues a command.
    pub(crate) fn queue(&mut self, call: &Call<'_>, spec: &'static Spec) -> Flow {
        if let CommandRef::Storage(command) = spec.command
            && spec.route == Route::Script
            && let Some(flow) = self.prepare_script(call, command)
        {
            return flow;
        }
        let Some(mut transaction) = self.take_transaction(call.index) else {
            return Flow::Stop;
        };
        transaction.has_write |= spec.flags.has(flag::WRITE);
        transaction.is_held |= self.is_held(call, spec);
        match spec.command {
            CommandRef::Storage(command) => self.queue_item(&mut transaction, call, spec, command),
            CommandRef::Gateway(GatewayCommand::Select) => {
                transaction.selects += 1;
                match self.database_number(call.arg(1)) {
                    Ok(number) => {
                        transaction.database = number;
                        transaction.push_ready(|reply| reply.ok());
                    }
                    Err(error) => transaction.push_ready(|reply| reply.error(&error)),
                }
            }
            CommandRef::Gateway(_) | CommandRef::Container(_) => {
                if matches!(spec.command, CommandRef::Gateway(GatewayCommand::Hello))
                    && let Some(version @ 2..=3) = parse_i64(call.arg(1))
                {
                    transaction.resp3 = version == 3;
                }
                let mut own = Own {
                    at: transaction.count,
                    spec,
                    bytes: Vec::new(),
                    spans: Vec::new(),
                };
                for argument in call.args(0) {
                    let start = own.bytes.len() as u32;
                    own.bytes.extend_from_slice(argument);
                    own.spans.push((start, own.bytes.len() as u32));
                }
                transaction.own.push(own);
            }
        }
        transaction.count += 1;
        let is_too_large = transaction.memory() > self.live.query_buffer_limit.min(BYTES_MAX);
        self.put_transaction(call.index, transaction);
        if is_too_large {
            tracing::warn!("closed: its transaction is over the limit of a query buffer");
            self.close_now(call.index);
            return Flow::Stop;
        }
        self.answer(call.index, b"+QUEUED\r\n");
        Flow::Next
    }

    fn queue_item(
        &mut self,
        transaction: &mut Transaction,
        call: &Call<'_>,
        spec: &'static Spec,
        command: StorageCommand,
    ) {
        transaction.writes |= spec.may_write();
        let slot = match self.slots_of(transaction, call, spec) {
            Ok(slot) => slot,
            // What is wrong with it is said at its time.
            Err(error) => return transaction.push_ready(|reply| reply.error(&error)),
        };
        let no_touch = self
            .get(call.index)
            .is_some_and(|connection| connection.facts.no_touch);
        let mut flags = 0;
        if transaction.resp3 {
            flags |= frame_flags::RESP3;
        }
        if no_touch {
            flags |= frame_flags::NO_TOUCH;
        }
        let item = UnitItem {
            command: command as u16,
            database: transaction.database,
            slot,
            flags: u16::from(flags),
            argc: u32::try_from(call.len()).unwrap_or(u32::MAX),
        };
        let start = transaction.begin_item();
        item.push(call.args(1), &mut transaction.bytes);
        transaction.end_item(start);
    }

    /// Notes the slots of a command's keys; returns that of the first one.
    fn slots_of(
        &mut self,
        transaction: &mut Transaction,
        call: &Call<'_>,
        spec: &'static Spec,
    ) -> Result<u16, CommandError> {
        if matches!(
            spec.route,
            Route::Every(_) | Route::Cursor | Route::RandomWorker
        ) {
            transaction.is_everywhere = true;
            return Ok(0);
        }
        if spec.keys.range(call.len()).is_none() {
            let (mut found, is_known) = self.found_keys_of(call, spec);
            transaction.is_everywhere |= !is_known;
            let slots = found
                .iter()
                .map(|key| slot_of(call.arg(key.position as usize)));
            slots.for_each(|slot| transaction.note_slot(slot));
            let first = found
                .first()
                .map_or(0, |key| slot_of(call.arg(key.position as usize)));
            found.clear();
            self.found_keys = found;
            return Ok(first);
        }
        let (first, last, step) = self.keys_of(call, spec)?;
        if first == 0 {
            return Ok(0);
        }
        for position in (first..=last).step_by(step.max(1)) {
            transaction.note_slot(slot_of(call.arg(position)));
        }
        Ok(slot_of(call.arg(first)))
    }

    fn take_transaction(&mut self, index: u32) -> Option<Box<Transaction>> {
        self.get_mut(index)?.transaction.take()
    }

    fn put_transaction(&mut self, index: u32, transaction: Box<Transaction>) {
        if let Some(connection) = self.get_mut(index) {
            connection.transaction = Some(transaction);
        }
    }

    /// Takes what was queued and watched; the client is outside of MULTI.
    fn end_transaction(&mut self, index: u32) -> Option<Box<Transaction>> {
        let connection = self.get_mut(index)?;
        connection.facts.in_multi = false;
        connection.facts.settle();
        let transaction = connection.transaction.take()?;
        self.tally.watching -= u64::from(!transaction.watched.is_empty());
        Some(transaction)
    }

    /// WATCH key ...
    pub(crate) fn watch(&mut self, call: &Call<'_>) -> Flow {
        let last = call.len() - 1;
        let flow = match self.place_of(call, 1, last, 1) {
            Place::One { worker, slot } => self.send(call, WATCH_KEYS, worker, slot),
            Place::Several { .. } => self.scatter(call, WATCH_KEYS, Merge::AllOk, (1, last, 1)),
        };
        if flow == Flow::Retry {
            return flow;
        }
        if let Some(connection) = self.get_mut(call.index) {
            let database = connection.database;
            let watched = &mut connection.transaction.get_or_insert_default().watched;
            let is_first = watched.is_empty();
            for key in call.args(1) {
                if !watched
                    .iter()
                    .any(|(db, known)| *db == database && **known == *key)
                {
                    watched.push((database, key.into()));
                }
            }
            self.tally.watching += u64::from(is_first);
        }
        flow
    }

    /// Ends transaction and watching with this reply: DISCARD, UNWATCH, RESET, an EXEC that does nothing.
    pub(crate) fn unwatch_and_answer(&mut self, index: u32, reply: &[u8]) -> Flow {
        let watched = self
            .end_transaction(index)
            .map(|transaction| transaction.watched);
        let mut workers = self.workers_of(&watched.unwrap_or_default());
        workers.retain(|&worker| self.lanes.is_usable(worker));
        let header = self
            .get(index)
            .map(|connection| header_for(connection, index, UNWATCH_KEYS, 0, 2));
        let Some(header) = header.filter(|_| !workers.is_empty()) else {
            self.answer(index, reply);
            return Flow::Next;
        };
        let finish = Finish::Join {
            merge: Merge::AllOk,
            order: Vec::new(),
        };
        let Some(header) = self.gather_for(index, header, workers.len(), finish) else {
            return Flow::Stop;
        };
        for (part, worker) in (1u32..).zip(workers) {
            self.send_or_keep(
                worker,
                RequestHeader { part, ..header },
                std::iter::once(reply),
            );
        }
        self.after_parts(index)
    }

    fn workers_of(&self, watched: &[(u16, Box<[u8]>)]) -> Vec<usize> {
        let mut workers = Vec::new();
        for (_, key) in watched {
            let worker = self.lanes.owner(slot_of(key));
            if !workers.contains(&worker) {
                workers.push(worker);
            }
        }
        workers
    }

    /// The connection is gone: nobody watches for it any more.
    pub(crate) fn cancel_watching(&mut self, who: Who) {
        if self.find_mut(who).is_none() {
            return;
        }
        let Some(transaction) = self.end_transaction(who.index) else {
            return;
        };
        for worker in self.workers_of(&transaction.watched) {
            if let Some(connection) = self.get(who.index) {
                let header = header_for(connection, who.index, UNWATCH_KEYS, 0, 0);
                self.send_about(worker, header, RequestKind::Cancel, 0);
            }
        }
    }

    /// EXEC
    pub(crate) fn execute(&mut self, index: u32) -> Flow {
        let Some(connection) = self.get(index) else {
            return Flow::Stop;
        };
        let Some(transaction) = connection.transaction.as_ref().filter(|it| it.is_open) else {
            return self.error(index, &CommandError::ExecWithoutMulti);
        };
        if transaction.is_broken {
            return self.abort(index, &CommandError::ExecAborted);
        }
        // Its commands come behind all earlier ones of the connection, wherever those run.
        if self.lanes.workers() > 1
            && let Some(wait) = self.wait_for_earlier(index)
        {
            return wait;
        }
        let Some(mut transaction) = self.take_transaction(index) else {
            return Flow::Stop;
        };
        let place = self.place_of_unit(&transaction);
        let has_items = transaction.spans.len() > 1 || !transaction.watched.is_empty();
        let flow = match place {
            _ if !has_items => {
                let unit = transaction.rest();
                self.put_transaction(index, transaction);
                self.end_transaction(index);
                return self.run_own(index, unit);
            }
            place => self
                .wait_before_unit(index, &transaction, place)
                .unwrap_or_else(|| self.send_unit(index, &mut transaction, place)),
        };
        let selects = transaction.selects as u64;
        let count = transaction.count as u64;
        self.put_transaction(index, transaction);
        if flow != Flow::Retry {
            // Its commands are counted where they run; these run nowhere.
            (0..selects).for_each(|_| self.tally.call(GatewayCommand::Select, false, None));
            self.tally.commands += count;
            self.end_transaction(index);
        }
        flow
    }

    /// EXEC is refused and forgets everything.
    pub(crate) fn abort(&mut self, index: u32, error: &CommandError) -> Flow {
        let mut reply = Vec::new();
        error.write_resp(&mut reply);
        self.count_error(&error.code());
        self.unwatch_and_answer(index, &reply)
    }

    /// The worker that runs a transaction: the owner of what is watched, or of the first key.
    fn place_of_unit(&self, transaction: &Transaction) -> UnitPlace {
        let watched = transaction.watched.iter().map(|(_, key)| slot_of(key));
        let mut slots = watched.chain(transaction.slots.iter().copied());
        let worker = slots.next().map_or(0, |slot| self.lanes.owner(slot));
        let is_one =
            !transaction.is_everywhere && slots.all(|slot| self.lanes.owner(slot) == worker);
        UnitPlace {
            worker,
            is_crossing: !is_one && self.lanes.workers() > 1,
        }
    }

    /// Neither a transfer nor what gets no reply can be called back (`recall`), so nothing before it may be,
    /// either: `Some` if there is something.
    fn wait_before_unit(
        &mut self,
        index: u32,
        transaction: &Transaction,
        UnitPlace {
            worker,
            is_crossing,
        }: UnitPlace,
    ) -> Option<Flow> {
        if is_crossing && let Some(wait) = self.wait_for_unseen(index, worker) {
            return Some(wait);
        }
        let arguments = transaction.bytes.len() + 4 * transaction.spans.len();
        let is_large = REQUEST_HEADER_BYTES + arguments > self.lanes.largest(worker);
        let is_muted = self.get(index).is_some_and(Connection::is_muted);
        if is_large || is_muted {
            self.wait_for_earlier(index)
        } else {
            None
        }
    }

    /// What is watched where.
    fn unit_head(&self, transaction: &Transaction, worker: usize) -> UnitHead {
        let mut head = UnitHead::default();
        for (_, key) in &transaction.watched {
            let owner = self.lanes.owner(slot_of(key));
            if owner == worker {
                head.watched += 1;
                continue;
            }
            let owner = u32::try_from(owner).unwrap_or(u32::MAX);
            match head.watched_elsewhere.iter_mut().find(|it| it.0 == owner) {
                Some((_, keys)) => *keys += 1,
                None => head.watched_elsewhere.push((owner, 1)),
            }
        }
        head
    }

    fn send_unit(&mut self, index: u32, transaction: &mut Transaction, place: UnitPlace) -> Flow {
        let worker = place.worker;
        let head = self.unit_head(transaction, worker);
        transaction.write_head(&head);
        let Some(connection) = self
            .connections
            .get_mut(index as usize)
            .and_then(Option::as_mut)
        else {
            return Flow::Stop;
        };
        connection.unit = Some(connection.replies.upcoming());
        let mut header = transaction.header(connection, index);
        let is_crossing = place.is_crossing;
        if is_crossing {
            header.flags |= frame_flags::CROSSING;
        }
        let is_gathered =
            !transaction.own.is_empty() || transaction.database != connection.database;
        let is_muted = connection.is_muted();
        header.part = u32::from(is_gathered);
        let bytes = &transaction.bytes;
        let arguments = transaction.spans.iter().map(|&(start, len)| {
            let (start, len) = (start as usize, len as usize);
            bytes.get(start..start + len).unwrap_or_default()
        });
        let len = request_len(arguments.clone());
        let is_large = match self.lanes.reserve(worker, len) {
            Ok(place) => {
                if is_muted && !is_gathered && !is_crossing {
                    header.flags |= frame_flags::DISCARD;
                    connection.note_unseen(worker);
                }
                if write_request(place, header, arguments).is_none() {
                    return self.internal_error(index, "a request did not fit its reservation");
                }
                self.lanes.commit(worker, len);
                false
            }
            Err(NoRoom::Full) => {
                connection.wait = Wait::Room;
                let who = connection.who(index);
                self.tally.ring_full += 1;
                self.lanes.wait_for_room(worker, who);
                return Flow::Retry;
            }
            Err(NoRoom::TooBig) => true,
            Err(NoRoom::Gone) => return self.unavailable(index, worker),
        };
        // Somebody must notice when a large request, or one that must not be overtaken, has its reply.
        let is_tracked = (is_large || is_crossing) && is_muted;
        if is_gathered || is_tracked {
            header.part = 1;
            let finish = if is_gathered {
                Finish::Unit(Box::new(transaction.rest()))
            } else {
                Finish::Drop
            };
            let gather = Gather::new(header.sequence, is_muted, 1, finish);
            connection.gathers.push_back(Box::new(gather));
        }
        if is_gathered || is_tracked || is_large || !is_muted {
            connection.replies.assign();
        }
        if is_crossing {
            connection.begin_crossing(worker);
        }
        if is_gathered {
            connection.wait = Wait::Answer;
        } else if is_large {
            connection.wait = Wait::Transfer;
        }
        let waits = connection.wait != Wait::Nothing;
        if is_large {
            let (bytes, spans) = (
                std::mem::take(&mut transaction.bytes),
                std::mem::take(&mut transaction.spans),
            );
            self.lanes
                .transfer(worker, Transfer::new(header, bytes, spans));
        }
        if self.lanes.wants_flush() {
            self.lanes.flush();
        }
        if waits { Flow::Stop } else { Flow::Next }
    }
}

/// Where a transaction runs.
#[derive(Clone, Copy, Debug)]
struct UnitPlace {
    worker: usize,
    /// It has keys elsewhere, too.
    is_crossing: bool,
}

/// A transaction is a frame of at most 4 GiB.
const BYTES_MAX: usize = 4_000_000_000;
