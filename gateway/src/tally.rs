//! What a gateway thread counts. Plain numbers in private memory, copied to the statistics page once
//! per turn; counts per command go to the page directly.
//!
//! Cost: an increment. The page has one writer, so no atomic read-modify-write is needed.

use std::sync::Arc;

use proto::catalogue::{GatewayCommand, StorageCommand};
use proto::counters::{CallCounter, GatewayCounter, gateway_page};
use shm::Party;

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
    /// Levels that are measured once a second.
    pub(crate) input_buffers: u64,
    pub(crate) output_buffers: u64,
    pub(crate) input_buffer_max: u64,
    pub(crate) output_buffer_max: u64,
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
            input_buffers: 0,
            output_buffers: 0,
            input_buffer_max: 0,
            output_buffer_max: 0,
        }
    }

    /// One more call of a command of the gateway, perhaps answered with an error.
    #[inline]
    pub(crate) fn call(&self, command: GatewayCommand, failed: bool) {
        self.add(gateway_page::call(command, CallCounter::Calls), 1);
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
        set(C::Sleeps, self.sleeps);
        set(C::RequestRingFull, self.ring_full);
        set(C::LastSeenMillis, unix_millis);
        counters.max(C::ConnectionsPeak.place(), self.connections);
    }
}
