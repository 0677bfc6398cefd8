//! The gateway role: sockets, RESP, routing to the rings.
