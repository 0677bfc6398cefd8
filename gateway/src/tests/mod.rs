//! The core against workers that live in the same test: real rings, a model of a keyspace, and a
//! scheduler that decides by lot who moves next.
//!
//! What is proved: however the input is cut into reads, however the workers take turns, whatever does
//! not fit into a ring at once, every client gets the replies that one worker alone would have given, in
//! the order of its requests.

mod crossing;
mod half;
mod lent;
mod machine;
mod protocol;
mod slow;
mod world;
