//! The words that the processes share: catalogue, RESP, frames, slots, settings, error texts.
pub mod registry;
pub mod settings;
