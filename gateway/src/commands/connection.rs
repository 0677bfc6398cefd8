//! Commands about the connection itself: greeting, authentication, database, end.

use proto::CommandError;
use proto::number::parse_i64;

use crate::call::Call;
use crate::connection::Names;
use crate::core::{Core, Flow};

/// AUTH [user] password
pub(super) fn auth(core: &mut Core, call: &Call<'_>) -> Flow {
    let (user, password) = match call.len() {
        2 if core.live.password.is_none() => {
            return core.error(call.index, &CommandError::NoPasswordSet);
        }
        2 => (&b"default"[..], call.arg(1)),
        3 => (call.arg(1), call.arg(2)),
        _ => return core.error(call.index, &CommandError::Syntax),
    };
    match authenticate(core, call.index, user, password) {
        Ok(()) => core.ok(call.index),
        Err(error) => core.error(call.index, &error),
    }
}

/// Lets the connection in if the password is right.
fn authenticate(
    core: &mut Core,
    index: u32,
    user: &[u8],
    password: &[u8],
) -> Result<(), CommandError> {
    let right = user == b"default"
        && core
            .live
            .password
            .as_deref()
            .is_none_or(|wanted| same_bytes(wanted, password));
    if !right {
        core.tally.auth_failures += 1;
        return Err(CommandError::WrongPassword);
    }
    if let Some(connection) = core.get_mut(index) {
        connection.facts.authenticated = true;
        connection.facts.settle();
    }
    Ok(())
}

/// Equality in a time that does not depend on where the first difference is.
fn same_bytes(wanted: &[u8], given: &[u8]) -> bool {
    let mut difference = wanted.len() ^ given.len();
    for (at, &byte) in given.iter().enumerate() {
        let other = wanted
            .get(at % wanted.len().max(1))
            .copied()
            .unwrap_or_default();
        difference |= usize::from(byte ^ other);
    }
    difference == 0
}

/// ECHO message
pub(super) fn echo(core: &mut Core, call: &Call<'_>) -> Flow {
    core.reply(call.index, |reply| reply.bulk(call.arg(1)))
}

/// PING [message]
pub(super) fn ping(core: &mut Core, call: &Call<'_>) -> Flow {
    let facts = core.get(call.index).map(|connection| connection.facts);
    // Whoever hears only messages gets something like one.
    if facts.is_some_and(|facts| facts.subscribed && !facts.resp3) && call.len() <= 2 {
        return core.reply(call.index, |reply| {
            reply.array(2);
            reply.bulk(b"pong");
            reply.bulk(call.arg(1));
        });
    }
    match call.len() {
        1 => {
            core.answer(call.index, b"+PONG\r\n");
            Flow::Next
        }
        2 => core.reply(call.index, |reply| reply.bulk(call.arg(1))),
        _ => core.error(call.index, &CommandError::Arity { name: "ping" }),
    }
}

/// QUIT
pub(super) fn quit(core: &mut Core, call: &Call<'_>) -> Flow {
    core.ok(call.index);
    core.close_after_replies(call.index);
    Flow::Stop
}

/// SELECT index
pub(super) fn select(core: &mut Core, call: &Call<'_>) -> Flow {
    match core.database_number(call.arg(1)) {
        Ok(number) => {
            if let Some(connection) = core.get_mut(call.index) {
                connection.database = number;
            }
            core.ok(call.index)
        }
        Err(error) => core.error(call.index, &error),
    }
}

/// RESET
pub(super) fn reset(core: &mut Core, call: &Call<'_>) -> Flow {
    let authenticated = core.live.password.is_none();
    core.unsubscribe_all(call.index);
    if let Some(connection) = core.get_mut(call.index) {
        connection.database = 0;
        if let Some(names) = &mut connection.names {
            names.name = Box::default();
        }
        let facts = &mut connection.facts;
        facts.resp3 = false;
        facts.no_touch = false;
        facts.no_evict = false;
        facts.reply_off = false;
        facts.skip_next = false;
        facts.skip_this = false;
        facts.authenticated = authenticated;
        facts.settle();
    }
    core.unwatch_and_answer(call.index, b"+RESET\r\n")
}

/// What HELLO asks for.
#[derive(Default)]
struct Hello<'a> {
    version: Option<i64>,
    credentials: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

impl<'a> Hello<'a> {
    fn parse(call: &Call<'a>) -> Result<Self, CommandError> {
        let mut hello = Self::default();
        if call.len() > 1 {
            let version = parse_i64(call.arg(1)).ok_or(CommandError::ProtoNotInteger)?;
            if !(2..=3).contains(&version) {
                return Err(CommandError::NoProto);
            }
            hello.version = Some(version);
        }
        let mut at = 2;
        while at < call.len() {
            let more = call.len() - at - 1;
            if call.is(at, "AUTH") && more >= 2 {
                hello.credentials = Some((call.arg(at + 1), call.arg(at + 2)));
                at += 3;
            } else if call.is(at, "SETNAME") && more >= 1 {
                if !is_valid_name(call.arg(at + 1)) {
                    return Err(CommandError::ClientNameCharacters);
                }
                hello.name = Some(call.arg(at + 1));
                at += 2;
            } else {
                return Err(CommandError::HelloOption(call.arg(at).into()));
            }
        }
        Ok(hello)
    }
}

/// HELLO [version [AUTH user password] [SETNAME name]]
pub(super) fn hello(core: &mut Core, call: &Call<'_>) -> Flow {
    let hello = match Hello::parse(call) {
        Ok(hello) => hello,
        Err(error) => return core.error(call.index, &error),
    };
    if let Some((user, password)) = hello.credentials
        && let Err(error) = authenticate(core, call.index, user, password)
    {
        return core.error(call.index, &error);
    }
    let Some(connection) = core.get_mut(call.index) else {
        return Flow::Stop;
    };
    if !connection.facts.authenticated {
        return core.error(call.index, &CommandError::NoAuthHello);
    }
    if let Some(name) = hello.name {
        set_name(connection.names_mut(), name);
    }
    if let Some(version) = hello.version {
        connection.facts.resp3 = version == 3;
        connection.facts.settle();
    }
    let id = i64::try_from(connection.id).unwrap_or(i64::MAX);
    let version = if connection.facts.resp3 { 3 } else { 2 };
    core.reply(call.index, |reply| {
        reply.map(7);
        let texts = [("server", "redis"), ("version", crate::info::REDIS_VERSION)];
        for (name, value) in texts {
            reply.bulk(name.as_bytes());
            reply.bulk(value.as_bytes());
        }
        reply.bulk(b"proto");
        reply.int(version);
        reply.bulk(b"id");
        reply.int(id);
        for (name, value) in [("mode", "standalone"), ("role", "master")] {
            reply.bulk(name.as_bytes());
            reply.bulk(value.as_bytes());
        }
        reply.bulk(b"modules");
        reply.array(0);
    })
}

/// READONLY
pub(super) fn readonly(core: &mut Core, call: &Call<'_>) -> Flow {
    core.ok(call.index)
}

/// READWRITE
pub(super) fn readwrite(core: &mut Core, call: &Call<'_>) -> Flow {
    core.ok(call.index)
}

/// Names are printable ASCII without spaces, so that CLIENT LIST stays readable.
pub(super) fn is_valid_name(name: &[u8]) -> bool {
    name.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

pub(super) fn set_name(names: &mut Names, name: &[u8]) {
    names.name = name.into();
}
