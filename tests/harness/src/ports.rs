//! Free TCP ports that no other test of this machine takes at the same time.
//!
//! Why: "bind to port 0, close, hand the number on" is a race, and one that our own server would hide: its
//! sockets have SO_REUSEPORT, so two servers on one port would share the clients. So a port is a lock file, held
//! as long as the port is in use; test programs of several worktrees may run side by side.
//!
//! The range lies below the ephemeral ports of Linux (32768 and up), so no outgoing connection sits on one.

use std::fs::{File, OpenOptions};
use std::net::TcpListener;

const FIRST: u16 = 21_000;
const COUNT: u16 = 8_000;

/// A port that is ours until this is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// Takes a free one.
    ///
    /// # Panics
    /// When none is free, or the folder of temporary files cannot be written.
    #[must_use]
    pub fn take() -> Self {
        let folder = std::env::temp_dir().join("sirocco-test-ports");
        std::fs::create_dir_all(&folder).expect("the folder of temporary files can be written");
        let start = u16::try_from(std::process::id() * 37 % u32::from(COUNT)).unwrap_or(0);
        for step in 0..COUNT {
            let number = FIRST + (start + step) % COUNT;
            let path = folder.join(number.to_string());
            let Ok(lock) = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(path)
            else {
                continue;
            };
            // flock(2): belongs to the open file and ends with it, also when this process is killed.
            if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Port {
                    number,
                    _lock: lock,
                };
            }
        }
        panic!("no free port from {FIRST} on");
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ports_are_different() {
        let (one, two) = (Port::take(), Port::take());
        assert_ne!(one.number(), two.number());
    }
}
