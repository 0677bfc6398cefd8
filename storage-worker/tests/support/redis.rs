//! A real Redis in a scratch directory, spoken to over one connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The process and the connection; both end with the value.
pub(crate) struct Redis {
    process: Child,
    stream: TcpStream,
    _directory: Directory,
}

/// A scratch directory that goes with its owner.
struct Directory(std::path::PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Redis {
    pub(crate) fn start() -> Option<Self> {
        let program = std::env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
        let directory = std::env::temp_dir().join(format!("differential-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let directory = Directory(directory);
        let socket = directory.0.join("socket");
        let port = free_port();
        let process = Command::new(program)
            .args([
                "--port",
                &port.to_string(),
                "--save",
                "",
                "--appendonly",
                "no",
            ])
            .args(["--enable-debug-command", "yes"])
            .arg("--unixsocket")
            .arg(&socket)
            .arg("--dir")
            .arg(&directory.0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
                stream.set_nodelay(true).unwrap();
                return Some(Self {
                    process,
                    stream,
                    _directory: directory,
                });
            }
            assert!(
                Instant::now() < deadline,
                "the reference server does not start"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn run(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.stream.write_all(&request).unwrap();
        let mut reply = Vec::new();
        let mut buffer = [0; 65536];
        loop {
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the reference server closed the connection");
            reply.extend_from_slice(&buffer[..count]);
            if reply_end(&reply, 0) == Some(reply.len()) {
                return reply;
            }
        }
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Where the reply that starts at `at` ends, if it is complete.
fn reply_end(bytes: &[u8], at: usize) -> Option<usize> {
    let line = bytes.get(at..)?.windows(2).position(|two| two == b"\r\n")? + at;
    let number = || {
        std::str::from_utf8(&bytes[at + 1..line])
            .ok()?
            .parse::<i64>()
            .ok()
    };
    let next = line + 2;
    match bytes[at] {
        b'$' => match number()? {
            -1 => Some(next),
            len => Some(next + len as usize + 2).filter(|end| *end <= bytes.len()),
        },
        kind @ (b'*' | b'%' | b'~') => {
            let count = number()?.max(0) * if kind == b'%' { 2 } else { 1 };
            (0..count).try_fold(next, |at, _| reply_end(bytes, at))
        }
        _ => Some(next),
    }
}
