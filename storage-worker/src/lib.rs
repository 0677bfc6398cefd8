//! The storage worker role: one part of the keyspace.

pub mod collections;
pub mod keyspace;
