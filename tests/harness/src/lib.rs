//! Starts servers and speaks transcripts to them.
