//! The life of a process: plan, control channel, pinning, signals, logging.
