//! The protocols across real processes, killed with SIGKILL at every named step.
//!
//! Method: the test binary starts itself again as a child (the test `process::entry` is the child's
//! main function), hands it the segments over a socket on descriptor 0, and arms one fault point
//! through the environment. The parent plays the supervisor and the other end of the link: it waits
//! for the death, looks at what the ring's, the bell's and the journal's headers promise for exactly
//! this step, starts a successor and follows it to the end.
//!
//! Fault points exist in debug builds and with the feature `fault-points`.
#![cfg(all(any(debug_assertions, feature = "fault-points"), not(loom)))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod lease;
mod process;
mod registry;
mod ring;
mod worker;
