//! The words that the processes share: catalogue, RESP, frames, slots, settings, error texts.
