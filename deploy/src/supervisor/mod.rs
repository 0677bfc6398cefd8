//! The supervisor.
pub mod core;
pub mod layout;
