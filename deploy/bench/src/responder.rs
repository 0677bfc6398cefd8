//! A tiny RESP server inside the test process: SET, GET, MGET and PING on a map, enough of INFO and
//! CONFIG to be described, everything else an error. Slow and simple on purpose; it stands in for a
//! real server where none may be needed. The test executable can also be started as one.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::client::Target;

#[derive(Default)]
struct State {
    values: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    requests: AtomicU64,
    /// Connections close when so many requests were answered; 0 = never.
    close_after: AtomicU64,
    /// Time that each request takes, in microseconds.
    delay_us: AtomicU64,
}

/// A running responder; its threads end with the process.
pub(crate) struct Responder {
    port: u16,
    state: Arc<State>,
}

impl Responder {
    pub(crate) fn start() -> Self {
        Self::start_at(0)
    }

    fn start_at(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(stream.unwrap(), &state));
            }
        });
        Self { port, state }
    }

    pub(crate) fn target(&self) -> Target {
        Target::local(self.port)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn keys(&self) -> usize {
        self.state.values.lock().unwrap().len()
    }

    pub(crate) fn close_after(&self, requests: u64) {
        self.state.close_after.store(requests, Ordering::SeqCst);
    }

    pub(crate) fn delay(&self, delay: Duration) {
        self.state
            .delay_us
            .store(u64::try_from(delay.as_micros()).unwrap(), Ordering::SeqCst);
    }
}

fn serve(stream: TcpStream, state: &State) {
    stream.set_nodelay(true).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    let mut out = Vec::new();
    while let Some(arguments) = request(&mut reader) {
        let count = state.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let limit = state.close_after.load(Ordering::SeqCst);
        if limit > 0 && count > limit {
            return;
        }
        let delay = state.delay_us.load(Ordering::SeqCst);
        if delay > 0 {
            thread::sleep(Duration::from_micros(delay));
        }
        answer(&arguments, state, &mut out);
        if reader.buffer().is_empty() {
            if writer.write_all(&out).is_err() {
                return;
            }
            out.clear();
        }
    }
}

fn request(reader: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let number = |reader: &mut dyn BufRead, mark: u8| {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).ok()?;
        let text = line.strip_prefix(&[mark])?.trim_ascii();
        String::from_utf8_lossy(text).parse::<usize>().ok()
    };
    let count = number(reader, b'*')?;
    let mut arguments = Vec::new();
    for _ in 0..count {
        let length = number(reader, b'$')?;
        let mut body = vec![0; length + 2];
        reader.read_exact(&mut body).ok()?;
        assert_eq!(&body[length..], b"\r\n");
        body.truncate(length);
        arguments.push(body);
    }
    Some(arguments)
}

fn bulk(value: Option<&Vec<u8>>, out: &mut Vec<u8>) {
    match value {
        Some(value) => {
            out.extend(format!("${}\r\n", value.len()).bytes());
            out.extend(value);
            out.extend(b"\r\n");
        }
        None => out.extend(b"$-1\r\n"),
    }
}

fn answer(arguments: &[Vec<u8>], state: &State, out: &mut Vec<u8>) {
    let mut values = state.values.lock().unwrap();
    match (arguments[0].as_slice(), &arguments[1..]) {
        (b"PING", []) => out.extend(b"+PONG\r\n"),
        (b"SET", [key, value]) => {
            values.insert(key.clone(), value.clone());
            out.extend(b"+OK\r\n");
        }
        (b"GET", [key]) => bulk(values.get(key), out),
        (b"STRLEN", [key]) => {
            out.extend(format!(":{}\r\n", values.get(key).map_or(0, Vec::len)).bytes());
        }
        (b"MGET", keys) if !keys.is_empty() => {
            out.extend(format!("*{}\r\n", keys.len()).bytes());
            keys.iter().for_each(|key| bulk(values.get(key), out));
        }
        (b"INFO", [_]) => {
            let used: usize = values
                .iter()
                .map(|(key, value)| key.len() + value.len())
                .sum();
            let text = format!("redis_version:0.0.1\r\nused_memory:{used}\r\n");
            bulk(Some(&text.into_bytes()), out);
        }
        (b"CONFIG", _) => out.extend(b"*2\r\n$3\r\ndir\r\n$10\r\n/some/data\r\n"),
        (b"EXISTS", [key]) => {
            out.extend(format!(":{}\r\n", u8::from(values.contains_key(key))).bytes());
        }
        (b"FLUSHALL", _) => {
            values.clear();
            out.extend(b"+OK\r\n");
        }
        (b"SET" | b"GET" | b"MGET", _) => out.extend(b"-ERR wrong number of arguments\r\n"),
        (name, _) => out.extend(
            format!(
                "-ERR unknown command '{}'\r\n",
                String::from_utf8_lossy(name)
            )
            .bytes(),
        ),
    }
}

/// Not a test unless the variable is set: then this process is a server until it is ended.
#[test]
fn answers_as_a_process() {
    if let Ok(port) = std::env::var("SIROCCO_BENCH_RESPONDER") {
        let _responder = Responder::start_at(port.parse().unwrap());
        loop {
            thread::sleep(Duration::from_secs(60));
        }
    }
}
