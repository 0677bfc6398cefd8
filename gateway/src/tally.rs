//! What a gateway thread counts. Plain numbers in private memory, copied to the statistics page once
//! per turn; counts per command go to the page directly.
//!
//! The gateway's own commands are timed, too, but not each: the first few calls of a command, then every
//! sixteenth, which stands for those since the last one. So INFO, called once, has its time, and PING,
//! called a million times, does not pay for two looks at the clock.
//!
//! Cost: an increment. The page has one writer, so no atomic read-modify-write is needed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::catalogue::{GatewayCommand, StorageCommand};
use proto::counters::{CallCounter, GatewayCounter, gateway_page};
use proto::latency;
use shm::Party;

/// Of a command that is called often, one call of so many is timed, and as many are at the beginning.
const TIMED_EVERY: u64 = 16;

/// See the module. Sums since the thread started unless it says otherwise.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) party: Arc<Party>,
    pub(crate) connections_received: u64,
    /// Connections open now.
    pub(crate) connections: u64,
    pub(crate) connections_rejected: u64,
    pub(crate) net_input: u64,
    pub(crate) net_output: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) commands: u64,
    pub(crate) rejected: u64,
    pub(crate) errors: u64,
    pub(crate) protocol_errors: u64,
    pub(crate) output_limit_disconnections: u64,
    pub(crate) query_limit_disconnections: u64,
    pub(crate) idle_disconnections: u64,
    pub(crate) auth_failures: u64,
    pub(crate) ring_full: u64,
    pub(crate) sleeps: u64,
    /// Clients that wait for a key, for replicas or for the end of a pause now.
    pub(crate) blocked: u64,
    /// Clients that watch keys now.
    pub(crate) watching: u64,
    /// Clients that have subscribed to something now.
    pub(crate) subscribed: u64,
    pub(crate) messages_delivered: u64,
    pub(crate) messages_uncertain: u64,
    /// Levels that are measured once a second.
    pub(crate) input_buffers: u64,
    pub(crate) output_buffers: u64,
    pub(crate) input_buffer_max: u64,
    pub(crate) output_buffer_max: u64,
    /// Every call of the gateway's commands is timed: the slow log wants to know of short times, too.
    pub(crate) times_all: bool,
    /// Nanoseconds of gateway commands not yet counted as whole microseconds.
    rest_ns: [u32; GatewayCommand::COUNT],
}

/// The time of a call that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    since: Instant,
    /// Calls for which it stands.
    calls: u64,
}

impl Timed {
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Tally {
    pub(crate) fn new(party: Arc<Party>) -> Self {
        Self {
            party,
            connections_received: 0,
            connections: 0,
            connections_rejected: 0,
            net_input: 0,
            net_output: 0,
            reads: 0,
            writes: 0,
            commands: 0,
            rejected: 0,
            errors: 0,
            protocol_errors: 0,
            output_limit_disconnections: 0,
            query_limit_disconnections: 0,
            idle_disconnections: 0,
            auth_failures: 0,
            ring_full: 0,
            sleeps: 0,
            blocked: 0,
            watching: 0,
            subscribed: 0,
            messages_delivered: 0,
            messages_uncertain: 0,
            input_buffers: 0,
            output_buffers: 0,
            input_buffer_max: 0,
            output_buffer_max: 0,
            times_all: false,
            rest_ns: [0; GatewayCommand::COUNT],
        }
    }

    /// A command of the gateway begins; is it one to be timed?
    #[inline]
    pub(crate) fn begin(&self, command: GatewayCommand) -> Option<Timed> {
        let counters = self.party.counters();
        let place = gateway_page::call(command, CallCounter::Calls);
        if place >= counters.len() {
            return None;
        }
        let calls = counters.get(place);
        let is_due = calls < TIMED_EVERY || calls.is_multiple_of(TIMED_EVERY);
        let is_timed = self.times_all || is_due;
        let is_alone = self.times_all || calls <= TIMED_EVERY;
        is_timed.then(|| Timed {
            since: Instant::now(),
            calls: if is_alone { 1 } else { TIMED_EVERY },
        })
    }

    /// One more call of a command of the gateway, perhaps answered with an error.
    #[inline]
    pub(crate) fn call(&mut self, command: GatewayCommand, failed: bool, timed: Option<Timed>) {
        self.add(gateway_page::call(command, CallCounter::Calls), 1);
        if let Some(timed) = timed {
            let each = u64::try_from(timed.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let place = gateway_page::latency(command, latency::bucket(each));
            self.add(place, timed.calls);
            let rest = &mut self.rest_ns[command as usize];
            let all = each
                .saturating_mul(timed.calls)
                .saturating_add((*rest).into());
            *rest = (all % 1000) as u32;
            self.add(gateway_page::call(command, CallCounter::Micros), all / 1000);
        }
        if failed {
            self.add(gateway_page::call(command, CallCounter::Failed), 1);
        }
    }

    pub(crate) fn reject(&self, command: GatewayCommand) {
        self.add(gateway_page::call_rejected(command), 1);
    }

    pub(crate) fn reject_storage(&self, command: StorageCommand) {
        self.add(gateway_page::storage_rejected(command), 1);
    }

    fn add(&self, place: usize, more: u64) {
        let counters = self.party.counters();
        if place < counters.len() {
            counters.add(place, more);
        }
    }

    /// Copies everything to the page.
    pub(crate) fn publish(&self, unix_millis: u64) {
        use GatewayCounter as C;
        let counters = self.party.counters();
        if counters.len() < C::COUNT {
            return;
        }
        let set = |counter: C, value| counters.set(counter.place(), value);
        set(C::ConnectionsReceived, self.connections_received);
        set(C::Connections, self.connections);
        set(C::ConnectionsRejected, self.connections_rejected);
        set(C::NetInputBytes, self.net_input);
        set(C::NetOutputBytes, self.net_output);
        set(C::Commands, self.commands);
        set(C::InputBufferBytes, self.input_buffers);
        set(C::OutputBufferBytes, self.output_buffers);
        set(C::InputBufferBytesMax, self.input_buffer_max);
        set(C::OutputBufferBytesMax, self.output_buffer_max);
        set(C::ProtocolErrors, self.protocol_errors);
        set(C::ErrorReplies, self.errors);
        set(
            C::OutputLimitDisconnections,
            self.output_limit_disconnections,
        );
        set(C::QueryLimitDisconnections, self.query_limit_disconnections);
        set(C::IdleDisconnections, self.idle_disconnections);
        set(C::Rejected, self.rejected);
        set(C::ReadsProcessed, self.reads);
        set(C::WritesProcessed, self.writes);
        set(C::AuthFailures, self.auth_failures);
        set(C::BlockedClients, self.blocked);
        set(C::WatchingClients, self.watching);
        set(C::SubscribedClients, self.subscribed);
        set(C::MessagesDelivered, self.messages_delivered);
        set(C::MessagesUncertain, self.messages_uncertain);
        set(C::Sleeps, self.sleeps);
        set(C::RequestRingFull, self.ring_full);
        set(C::LastSeenMillis, unix_millis);
        counters.max(C::ConnectionsPeak.place(), self.connections);
    }
}
