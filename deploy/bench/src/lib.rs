//! Load generator for RESP servers.
