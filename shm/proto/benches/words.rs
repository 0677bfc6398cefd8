//! What the words cost per request: `cargo bench -p proto`.
//!
//! Plain loops over `Instant`, best of five, since the numbers wanted are single nanoseconds on a
//! quiet machine and not their distribution. Measured on one core of a 2-core virtual machine: parse
//! a GET 14 ns, with lookup and slot 27; find 5; slot of 16 bytes 7; Args of two 3; bulk 5 to 7.

use proto::catalogue;
use proto::frame::{Args, RequestHeader, RequestKind, write_request};
use proto::resp::{ParseLimits, Parsed, ReplyWriter, RequestParser};
use proto::slot::slot_of;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 5;
const KEY: &[u8] = b"key:000000007919";

/// Gets the bytes of a request and the spans of its arguments.
type Each<'a> = dyn FnMut(&[u8], &[(u32, u32)]) + 'a;

/// Prints the time of one of the `steps` that a call of `run` takes.
#[expect(clippy::print_stdout, reason = "a bench talks to its user")]
fn measure(name: &str, calls: u32, steps: u32, mut run: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        (0..calls).for_each(|_| run());
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(calls * steps));
    }
    println!("{name:<28} {best:7.2} ns");
}

fn main() {
    requests();
    lookups();
    frames();
    replies();
    numbers();
}

fn requests() {
    let get = b"*2\r\n$3\r\nGET\r\n$16\r\nkey:000000007919\r\n".repeat(30);
    let value = "x".repeat(256);
    let set =
        format!("*3\r\n$3\r\nSET\r\n$16\r\nkey:000000007919\r\n$256\r\n{value}\r\n").repeat(30);
    let mut parser = RequestParser::new();
    let mut spans = Vec::with_capacity(16);
    let mut all = |bytes: &[u8], each: &mut Each<'_>| {
        let mut at = 0;
        let limits = ParseLimits::default();
        while let Ok(Parsed::Complete { consumed }) = parser.parse(&bytes[at..], &mut spans, limits)
        {
            each(&bytes[at..], &spans);
            at += consumed;
        }
    };
    let mut nothing = |_: &[u8], spans: &[(u32, u32)]| {
        black_box(spans);
    };
    measure("parse GET", 20_000, 30, || all(&get, &mut nothing));
    measure("parse SET of 256 bytes", 20_000, 30, || {
        all(set.as_bytes(), &mut nothing);
    });
    let mut route = |bytes: &[u8], spans: &[(u32, u32)]| {
        let argument = |at: usize| &bytes[spans[at].0 as usize..spans[at].1 as usize];
        black_box(catalogue::find(argument(0), Some(argument(1))));
        black_box(slot_of(argument(1)));
    };
    measure("parse, find and slot of GET", 20_000, 30, || {
        all(&get, &mut route);
    });
}

fn lookups() {
    for (name, sub) in [
        ("GET", "key"),
        ("INCRBYFLOAT", "key"),
        ("OBJECT", "ENCODING"),
    ] {
        measure(&format!("find {name}"), 1_000_000, 1, || {
            black_box(catalogue::find(
                black_box(name.as_bytes()),
                Some(sub.as_bytes()),
            ));
        });
    }
    for length in [5, 16, 40] {
        let key = KEY.repeat(3);
        measure(&format!("slot of {length} bytes"), 1_000_000, 1, || {
            black_box(slot_of(black_box(&key[..length])));
        });
    }
    measure("glob key:*79?9", 1_000_000, 1, || {
        black_box(proto::glob::matches(black_box(b"key:*79?9"), KEY, false));
    });
}

fn frames() {
    let header = RequestHeader {
        len: 0,
        kind: RequestKind::Request,
        flags: 0,
        command: 1,
        connection: 2,
        generation: 3,
        sequence: 4,
        slot: 5,
        database: 0,
        argc: 3,
        part: 0,
    };
    let value = [b'v'; 256];
    let mut out = [0u8; 512];
    let mut spans = Vec::with_capacity(16);
    measure("write frame of SET", 1_000_000, 1, || {
        black_box(write_request(
            &mut out,
            black_box(header),
            [KEY, &value].into_iter(),
        ));
    });
    let length = write_request(&mut out, header, [KEY, &value].into_iter()).unwrap_or(0);
    measure("read frame of SET", 1_000_000, 1, || {
        if let Ok(header) = RequestHeader::decode(black_box(&out[..length])) {
            let args = Args::new(&out[32..header.len as usize], header.argc, &mut spans);
            black_box(args.map_or(0, |args| args.get(2).len()));
        }
    });
}

fn replies() {
    let (mut buf, mut spill) = (vec![0u8; 1 << 16], Vec::new());
    for length in [8, 256] {
        let value = vec![b'v'; length];
        measure(&format!("bulk of {length} bytes"), 20_000, 100, || {
            let mut reply = ReplyWriter::new(&mut buf, &mut spill, false);
            (0..100).for_each(|_| reply.bulk(black_box(&value)));
            black_box(reply.len());
        });
    }
    measure("integer", 20_000, 100, || {
        let mut reply = ReplyWriter::new(&mut buf, &mut spill, false);
        (0..100).for_each(|number| reply.int(black_box(number)));
        black_box(reply.len());
    });
}

fn numbers() {
    use proto::number::{DoubleText, LongDouble, parse_i64};
    measure("parse_i64 of 5 digits", 1_000_000, 1, || {
        black_box(parse_i64(black_box(b"12345")));
    });
    measure("print a double", 300_000, 1, || {
        black_box(DoubleText::new().format(black_box(0.1 + 0.2)));
    });
    let mut text = Vec::with_capacity(64);
    measure("INCRBYFLOAT 10.5 by 0.1", 300_000, 1, || {
        let parse = |text: &[u8]| LongDouble::parse(black_box(text)).unwrap_or(LongDouble::from(0));
        text.clear();
        (parse(b"10.5") + parse(b"0.1")).write(&mut text);
        black_box(&text);
    });
}
