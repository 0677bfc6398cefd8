//! DEBUG: what tests use to look inside and to disturb. Allowed as `enable-debug-command` says.

use proto::CommandError;
use proto::catalogue::Merge;
use proto::glob;
use proto::resp::ReplyWriter;
use proto::settings::Protected;

use super::{debug_data, help, reload};
use crate::call::Call;
use crate::connection::Origin;
use crate::core::{Core, Flow};
use crate::gather::Finish;
use crate::internal;

/// DEBUG subcommand [arguments ...]
pub(super) fn debug(core: &mut Core, call: &Call<'_>) -> Flow {
    if !is_allowed(core, call.index) {
        return core.error(call.index, &CommandError::DebugNotAllowed);
    }
    let word = call.arg(1).to_ascii_uppercase();
    match (word.as_slice(), call.len()) {
        (b"HELP", 2) => help::answer(core, call, help::DEBUG),
        (b"SLEEP", 3) => sleep(core, call),
        (b"RELOAD", 2..) => reload::reload(core, call),
        (b"OBJECT", 3 | 4) | (b"LISTPACK", 3) => debug_data::key(core, call),
        (b"QUICKLIST" | b"HTSTATS-KEY", 3 | 4) => debug_data::key(core, call),
        (b"HTSTATS", 3 | 4) => debug_data::tables(core, call),
        (b"DIGEST", 2) => debug_data::digest(core, call),
        (b"DIGEST-VALUE", 2..) => debug_data::digest_value(core, call),
        (b"POPULATE", 3..=5) => debug_data::populate(core, call),
        (b"SET-ACTIVE-EXPIRE" | b"QUICKLIST-PACKED-THRESHOLD", 3) => {
            let finish = Finish::Join {
                merge: Merge::AllOk,
                order: Vec::new(),
            };
            core.send_to_all(
                call.index,
                internal::DEBUG,
                &[call.arg(1), call.arg(2)],
                finish,
            )
        }
        (b"STRINGMATCH-TEST", 2) => match_at_random(core, call),
        (b"ERROR", 3) => core.error(call.index, &CommandError::Line(call.arg(2).into())),
        (b"LOG", 3) => {
            tracing::warn!(message = %String::from_utf8_lossy(call.arg(2)), "DEBUG LOG");
            core.ok(call.index)
        }
        (b"PROTOCOL", 3) => protocol(core, call),
        (b"JMAP" | b"CHANGE-REPL-ID", 2) => core.ok(call.index),
        (b"DICT-RESIZING" | b"PAUSE-CRON" | b"SET-SKIP-CHECKSUM-VALIDATION", 3) => {
            core.ok(call.index)
        }
        (b"REPLYBUFFER", 4) if call.is(2, "RESIZING") => core.ok(call.index),
        (b"REPLYBUFFER", 4) if call.is(2, "PEAK-RESET-TIME") => reset_time(core, call),
        (b"PANIC", 2) => panic_on_request(),
        (b"SEGFAULT", 2) => {
            // A process of ours that dies at any instruction is replaced; a signal is the honest test.
            let own = nix::unistd::Pid::this();
            let _ = nix::sys::signal::kill(own, nix::sys::signal::Signal::SIGSEGV);
            Flow::Stop
        }
        _ => {
            let subcommand = call.arg(1).into();
            core.error(
                call.index,
                &CommandError::SubcommandSyntax {
                    name: "debug",
                    subcommand,
                },
            )
        }
    }
}

fn is_allowed(core: &Core, index: u32) -> bool {
    match core.live.debug {
        Protected::Yes => true,
        Protected::No => false,
        Protected::Local => core.get(index).is_some_and(|client| match &client.origin {
            Origin::Unix(_) => true,
            Origin::Tcp(remote, _) => remote.ip().to_canonical().is_loopback(),
        }),
    }
}

#[expect(
    clippy::panic,
    reason = "the client asked for it, to see the process replaced"
)]
fn panic_on_request() -> Flow {
    panic!("DEBUG PANIC")
}

/// DEBUG SLEEP seconds: this connection sleeps; Redis stops altogether.
fn sleep(core: &mut Core, call: &Call<'_>) -> Flow {
    if let Some(wait) = core.wait_for_earlier(call.index) {
        return wait;
    }
    // What is no number counts as 0, as it does for strtod.
    let seconds = proto::number::parse_f64(call.arg(2))
        .unwrap_or_default()
        .clamp(0.0, 1e9);
    let millis = (seconds * 1000.0).ceil() as u64;
    core.answer_at(call.index, Some(core.now.millis + millis), b"+OK\r\n");
    Flow::Stop
}

/// DEBUG STRINGMATCH-TEST: patterns and texts by chance, of which none must take long or do harm.
fn match_at_random(core: &mut Core, call: &Call<'_>) -> Flow {
    const TRIES: usize = 20_000;
    const LETTERS: &[u8] = b"**?[]^-\\ab";
    for _ in 0..TRIES {
        let mut word = || {
            let mut bits = core.random();
            let length = bits % 12;
            let mut letters = Vec::new();
            for _ in 0..length {
                bits /= LETTERS.len() as u64;
                letters.extend(LETTERS.get(bits as usize % LETTERS.len()));
            }
            letters
        };
        let (pattern, text) = (word(), word());
        let _ = glob::matches(&pattern, &text, false);
    }
    let line = "Apparently Redis did not crash: test passed";
    core.reply(call.index, |reply| reply.simple(line))
}

/// DEBUG REPLYBUFFER PEAK-RESET-TIME never | reset | milliseconds: there is no such time, so only the word is
/// checked.
fn reset_time(core: &mut Core, call: &Call<'_>) -> Flow {
    let is_known = call.is(3, "NEVER") || call.is(3, "RESET");
    if is_known || proto::number::parse_i64(call.arg(3)).is_some() {
        core.ok(call.index)
    } else {
        core.error(call.index, &CommandError::NotAnInteger)
    }
}

/// DEBUG PROTOCOL type
fn protocol(core: &mut Core, call: &Call<'_>) -> Flow {
    let word = call.arg(2).to_ascii_lowercase();
    let resp3 = core
        .get(call.index)
        .is_some_and(|client| client.facts.resp3);
    if word == b"push" && !resp3 {
        let text = b"ERR RESP2 is not supported by this command";
        return core.error(call.index, &CommandError::Line(text[..].into()));
    }
    let mut sample = Vec::new();
    if !write_sample(&word, &mut ReplyWriter::to_vec(&mut sample, resp3)) {
        let text = b"ERR Wrong protocol type name. Please use one of the following: \
            string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false";
        return core.error(call.index, &CommandError::Line(text[..].into()));
    }
    core.answer(call.index, &sample);
    Flow::Next
}

/// A value of the named type; false if there is no such type.
#[expect(clippy::approx_constant, reason = "the number that Redis answers with")]
fn write_sample(word: &[u8], reply: &mut ReplyWriter<'_>) -> bool {
    match word {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.int(12345),
        b"double" => reply.double(3.141),
        b"null" => reply.null(),
        b"array" | b"set" => {
            if word == b"set" {
                reply.set(3);
            } else {
                reply.array(3);
            }
            (0..3).for_each(|number| reply.int(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.int(number);
                reply.bool(number == 1);
            }
        }
        b"attrib" => {
            if reply.resp3() {
                reply.raw(b"|1\r\n");
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.int(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" => {
            reply.bulk(b"Some real reply following the push reply");
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.int(42);
        }
        b"verbatim" => reply.verbatim("txt", b"This is a verbatim\nstring"),
        b"true" => reply.bool(true),
        b"false" => reply.bool(false),
        b"bignum" => reply.big_number(b"1234567999999999999999999999999999999"),
        _ => return false,
    }
    true
}
