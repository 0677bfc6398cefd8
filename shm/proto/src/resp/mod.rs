//! RESP, the protocol of the sockets, on one page.
//!
//! ```text
//!   request    *2\r\n $3\r\n GET\r\n $1\r\n k\r\n       or inline:   GET k\r\n
//!
//!   reply      RESP2                 RESP3 (after HELLO 3), where it differs
//!   text       +OK\r\n
//!   error      -ERR text\r\n
//!   integer    :12\r\n
//!   bulk       $5\r\nhello\r\n       =9\r\ntxt:hello\r\n  (verbatim)
//!   nothing    $-1\r\n  *-1\r\n      _\r\n
//!   array      *2\r\n ...            %1\r\n (map)  ~2\r\n (set)  >2\r\n (push)
//!   double     as bulk               ,3.14\r\n
//!   bool       :1\r\n                #t\r\n
//!   big number as bulk               (123\r\n
//! ```
//!
//! Invariant: no file outside `reply.rs` and `error.rs` writes a RESP type byte.
//!
//! Not here: which connection speaks which version (gateway), the texts of errors (`error`).

pub mod inline;
pub mod reply;
pub mod reply_view;
pub mod request;

pub use reply::ReplyWriter;
pub use request::{ParseLimits, Parsed, ProtocolError, RequestParser};
