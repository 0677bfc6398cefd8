//! What can go wrong in a measurement, sorted by who has to react.

use std::fmt;
use std::io;

/// Why a benchmark command could not deliver a result.
#[derive(Debug)]
pub enum BenchError {
    /// The command line asks for something that cannot be done; the text says what to change.
    Usage(String),
    /// A system call failed.
    Io {
        /// What was being done, as a phrase that follows "cannot".
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The server sent something that is not RESP, closed the connection, or refused a needed
    /// command.
    Server(String),
}

impl BenchError {
    /// Wraps a system error; `doing` is a phrase such as `connect to 127.0.0.1:6379`.
    pub(crate) fn io(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io {
            doing: doing.into(),
            source: source.into(),
        }
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) => write!(out, "{text}"),
            Self::Io { doing, source } => write!(out, "cannot {doing}: {source}"),
            Self::Server(text) => write!(out, "server: {text}"),
        }
    }
}

impl std::error::Error for BenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Usage(_) | Self::Server(_) => None,
        }
    }
}
