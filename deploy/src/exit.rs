//! Why the program ends early, and with which exit code.

use std::fmt;

/// A reason not to start, or to end.
#[derive(Debug)]
pub enum Failure {
    /// Something is wrong with the configuration or the command line. Code 1, as Redis has it.
    Configuration(String),
    /// An address cannot be listened on. Code 3.
    Address(String),
    /// Memory or descriptors do not suffice. Code 4.
    Resources(String),
    /// Another instance owns the data directory, or none is found. Code 5.
    Instance(String),
    /// A part cannot start, or the system failed in another way. Code 6.
    System(String),
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Configuration(_) => 1,
            Self::Address(_) => 3,
            Self::Resources(_) => 4,
            Self::Instance(_) => 5,
            Self::System(_) => 6,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(text)
            | Self::Address(text)
            | Self::Resources(text)
            | Self::Instance(text)
            | Self::System(text) => f.write_str(text),
        }
    }
}

impl From<shm::ShmError> for Failure {
    fn from(error: shm::ShmError) -> Self {
        match error {
            shm::ShmError::OutOfMemory { .. } | shm::ShmError::OutOfDescriptors { .. } => {
                Self::Resources(error.to_string())
            }
            _ => Self::System(error.to_string()),
        }
    }
}
