//! The wire: malformed requests, limits, clients that misbehave, and the start of the server with bad input.
//!
//! The rule behind all of these: Redis' error text where it has one, bounded memory, never a panic, and never a
//! neighbour that waits.

mod channels;
mod garbage;
mod settings_file;
mod slow_clients;
mod sockets;
mod start;

mod transcripts {
    harness::transcripts!("tests/protocol/transcripts": inline, limits, malformed, pieces);
}
