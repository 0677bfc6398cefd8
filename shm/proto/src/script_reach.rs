//! Whether a script can be seen to touch no keys but those that it declares.
//!
//! Why: with several workers a script holds all of them, because nobody knows what it will touch, unless it
//! is certain. Most scripts that are sent often (locks, rate limiters, counters) use nothing but `KEYS[n]`, and
//! are certain at a glance.
//!
//! ```text
//!   redis.call("incr", KEYS[1])                        certain
//!   local key = KEYS[1] ... redis.call("get", key)     certain, if `key` is never anything else
//!   redis.call("get", "a" .. ARGV[1])                  not
//!   redis.call(unpack(KEYS)), local r = redis.call     not
//! ```
//!
//! A glance is a list of tokens, no syntax tree: whatever is not one of the few known forms is "not". A wrong
//! "certain" would make a script fail, never go astray: it can reach only what it was given.
//!
//! Cost: one pass per script, when it is seen for the first time.

use crate::catalogue::{self, CommandRef, KeySpec, Lookup, Route};

/// A token of Lua.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A name or a word of the language.
    Name(&'a [u8]),
    /// A string without escapes: its text.
    Text(&'a [u8]),
    /// Any other string, or a number.
    Value,
    /// A sign; of `==`, `~=`, `<=`, `>=` the first byte with a bit on top, of dots how many.
    Sign(u8),
}

const EQUALS: Token<'_> = Token::Sign(b'=');
/// Marks the two-byte signs.
const TWICE: u8 = 0x80;

/// What may stand behind `redis.` and calls nothing.
const HARMLESS: [&[u8]; 12] = [
    b"error_reply",
    b"status_reply",
    b"sha1hex",
    b"log",
    b"LOG_DEBUG",
    b"LOG_VERBOSE",
    b"LOG_NOTICE",
    b"LOG_WARNING",
    b"setresp",
    b"replicate_commands",
    b"REDIS_VERSION",
    b"REDIS_VERSION_NUM",
];

/// Names with which anything is possible.
const DANGEROUS: [&[u8]; 13] = [
    b"load",
    b"loadstring",
    b"loadfile",
    b"dofile",
    b"setfenv",
    b"getfenv",
    b"_G",
    b"setmetatable",
    b"getmetatable",
    b"rawset",
    b"rawget",
    b"debug",
    b"server",
];

/// Whether the script with this body touches only keys that it declares. `false` says nothing.
#[must_use]
pub fn touches_only_its_keys(body: &[u8]) -> bool {
    let Some(tokens) = tokens(body) else {
        return false;
    };
    let is_certain = |at: usize| match tokens[at] {
        Token::Name(b"redis") => is_harmless_use(&tokens, at),
        Token::Name(b"KEYS") => is_harmless_keys(&tokens, at),
        Token::Name(name) => !DANGEROUS.contains(&name),
        _ => true,
    };
    (0..tokens.len()).all(is_certain)
}

/// `#KEYS`, or `KEYS[...]` that nothing is assigned to.
fn is_harmless_keys(tokens: &[Token<'_>], at: usize) -> bool {
    if at > 0 && tokens[at - 1] == Token::Sign(b'#') {
        return true;
    }
    let Some(end) = index_end(tokens, at) else {
        return false;
    };
    !matches!(tokens.get(end), Some(&EQUALS)) && !is_in_assigned_list(tokens, end)
}

/// `KEYS[1], x = ...`: outside of parentheses a comma may be part of that.
fn is_in_assigned_list(tokens: &[Token<'_>], end: usize) -> bool {
    if tokens.get(end) != Some(&Token::Sign(b',')) {
        return false;
    }
    depth_at(tokens, end) == 0
}

fn depth_at(tokens: &[Token<'_>], at: usize) -> i32 {
    tokens[..at].iter().fold(0, |depth, token| match token {
        Token::Sign(b'(' | b'{') => depth + 1,
        Token::Sign(b')' | b'}') => depth - 1,
        _ => depth,
    })
}

/// Behind the `]` of `NAME[...]`, in which nothing is called and nothing nested.
fn index_end(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    if tokens.get(at + 1) != Some(&Token::Sign(b'[')) {
        return None;
    }
    let inside = tokens.get(at + 2..)?;
    let len = inside
        .iter()
        .position(|token| *token == Token::Sign(b']'))?;
    let is_plain = |token: &Token<'_>| {
        let is_simple_sign = matches!(token, Token::Sign(b'+' | b'-' | b'*'));
        matches!(token, Token::Name(_) | Token::Value) || is_simple_sign
    };
    inside[..len].iter().all(is_plain).then_some(at + 3 + len)
}

/// `redis.something` that is no call of a command, or one whose keys are `KEYS[n]`.
fn is_harmless_use(tokens: &[Token<'_>], at: usize) -> bool {
    let (Some(Token::Sign(b'.')), Some(Token::Name(what))) =
        (tokens.get(at + 1), tokens.get(at + 2))
    else {
        return false;
    };
    if HARMLESS.contains(what) {
        return tokens.get(at + 3) != Some(&EQUALS);
    }
    matches!(*what, b"call" | b"pcall")
        && tokens.get(at + 3) == Some(&Token::Sign(b'('))
        && arguments(&tokens[at + 4..]).is_some_and(|all| is_certain_call(tokens, &all))
}

/// The arguments of a call whose parenthesis is open.
fn arguments<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<Vec<&'t [Token<'a>]>> {
    let mut all = Vec::new();
    let (mut start, mut depth) = (0, 0);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign(b'(' | b'[' | b'{') => depth += 1,
            Token::Sign(b')') if depth == 0 => {
                all.push(&tokens[start..at]);
                return Some(all);
            }
            Token::Sign(b')' | b']' | b'}') => depth -= 1,
            Token::Sign(b',') if depth == 0 => {
                all.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    None
}

fn is_certain_call(tokens: &[Token<'_>], arguments: &[&[Token<'_>]]) -> bool {
    // The last argument may be several values, of which a name or a value is one.
    let is_one = |argument: &&[Token<'_>]| {
        let calls = argument.contains(&Token::Sign(b'('));
        let spreads = argument.contains(&Token::Sign(b'.' | TWICE | 1));
        !spreads && (!calls || is_wrapped(argument))
    };
    let Some([Token::Text(name)]) = arguments.first() else {
        return false;
    };
    if !arguments.last().is_some_and(is_one) {
        return false;
    }
    let Lookup::Found(spec, _) = catalogue::find(name, None) else {
        return false;
    };
    if matches!(spec.command, CommandRef::Gateway(_)) {
        return spec.keys == KeySpec::None;
    }
    if !matches!(
        spec.route,
        Route::Owner | Route::Scatter(_) | Route::Together
    ) {
        return false;
    }
    let Some((first, last, step)) = spec.keys.range(arguments.len()) else {
        return false;
    };
    let mut keys = (first..=last).step_by(step.max(1));
    keys.all(|at| arguments.get(at).is_some_and(|key| is_key(tokens, key)))
}

/// `tostring(x)` and `tonumber(x)` give one value.
fn is_wrapped(argument: &[Token<'_>]) -> bool {
    let is_one_value = matches!(
        argument.first(),
        Some(Token::Name(b"tostring" | b"tonumber"))
    );
    is_one_value && argument.last() == Some(&Token::Sign(b')'))
}

/// `KEYS[n]`, or a name that stands for one.
fn is_key(tokens: &[Token<'_>], argument: &[Token<'_>]) -> bool {
    match argument {
        [Token::Name(b"KEYS"), ..] => index_end(argument, 0) == Some(argument.len()),
        [Token::Name(name)] => stands_for_key(tokens, name),
        _ => false,
    }
}

/// Whether a name is made by `local name = KEYS[n]`, once, and never anything else.
fn stands_for_key(tokens: &[Token<'_>], name: &[u8]) -> bool {
    let mut made = 0;
    for at in (0..tokens.len()).filter(|&at| tokens[at] == Token::Name(name)) {
        let before = at.checked_sub(1).map(|before| tokens[before]);
        let behind = tokens.get(at + 1);
        if before == Some(Token::Name(b"local")) && behind == Some(&EQUALS) {
            let is_keys = tokens.get(at + 2) == Some(&Token::Name(b"KEYS"));
            let end = is_keys.then(|| index_end(tokens, at + 2)).flatten();
            // The statement ends here: a name, or nothing, follows.
            let is_whole = end.is_some_and(|end| match tokens.get(end) {
                None | Some(Token::Sign(b';')) => true,
                Some(Token::Name(word)) => !matches!(*word, b"and" | b"or"),
                _ => false,
            });
            if !is_whole {
                return false;
            }
            made += 1;
            continue;
        }
        // A field of something else is another name.
        if before == Some(Token::Sign(b'.')) {
            continue;
        }
        let is_variable = matches!(before, Some(Token::Name(b"local" | b"for" | b"function")));
        let is_assigned = behind == Some(&EQUALS);
        let is_listed =
            matches!(behind, Some(Token::Sign(b','))) || before == Some(Token::Sign(b','));
        if is_variable || is_assigned || is_listed && depth_at(tokens, at) == 0 {
            return false;
        }
    }
    made == 1 && !is_parameter(tokens, name)
}

/// Whether a function has a parameter of this name.
fn is_parameter(tokens: &[Token<'_>], name: &[u8]) -> bool {
    let functions = (0..tokens.len()).filter(|&at| tokens[at] == Token::Name(b"function"));
    functions.into_iter().any(|at| {
        let list = tokens[at..].iter();
        let mut list = list.take_while(|token| **token != Token::Sign(b')'));
        list.any(|token| *token == Token::Name(name))
    })
}

/// The tokens of a script; nothing if it has a form that is not known here.
fn tokens(body: &[u8]) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    if body.starts_with(b"#!") {
        at = memchr::memchr(b'\n', body)?;
    }
    while let Some(&byte) = body.get(at) {
        let rest = &body[at..];
        at += match byte {
            b' ' | b'\t' | b'\r' | b'\n' => 1,
            b'-' if rest.starts_with(b"--[") => return None,
            b'-' if rest.starts_with(b"--") => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
            b'"' | b'\'' => {
                let len = memchr::memchr2(byte, b'\\', &rest[1..])?;
                if rest[1 + len] == b'\\' {
                    tokens.push(Token::Value);
                    string_len(rest)?
                } else {
                    tokens.push(Token::Text(&rest[1..=len]));
                    len + 2
                }
            }
            b'[' if matches!(rest.get(1), Some(b'[' | b'=')) => return None,
            b'0'..=b'9' => {
                tokens.push(Token::Value);
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.';
                rest.iter().take_while(|byte| is_part(byte)).count()
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                let len = rest.iter().take_while(|byte| is_part(byte)).count();
                tokens.push(Token::Name(&rest[..len]));
                len
            }
            b'=' | b'~' | b'<' | b'>' if rest.get(1) == Some(&b'=') => {
                tokens.push(Token::Sign(byte | TWICE));
                2
            }
            b'.' => {
                let dots = rest.iter().take_while(|byte| **byte == b'.').count();
                tokens.push(Token::Sign(match dots {
                    1 => b'.',
                    2 => b'.' | TWICE,
                    _ => b'.' | TWICE | 1,
                }));
                dots
            }
            byte if byte.is_ascii_punctuation() => {
                tokens.push(Token::Sign(byte));
                1
            }
            _ => return None,
        };
    }
    Some(tokens)
}

/// Bytes of a string with escapes, its quotes included.
fn string_len(rest: &[u8]) -> Option<usize> {
    let quote = *rest.first()?;
    let mut at = 1;
    loop {
        match *rest.get(at)? {
            b'\\' => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_use_their_keys_only() {
        for body in [
            "return 1",
            "while true do end",
            "return redis.call('get', KEYS[1])",
            "local c = redis.call('INCR', KEYS[1]) if c == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end return c",
            "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) else return 0 end",
            "local key = KEYS[1]\nlocal now = tonumber(ARGV[1])\nredis.call('zadd', key, now, tostring(now))\nreturn key",
            "-- a comment\nlocal key = KEYS[1]; return redis.call('mset', key, 'a', KEYS[2], 'b')",
            "for i = 1, #KEYS do redis.call('del', KEYS[i]) end return redis.error_reply('x')",
            "return redis.call('ping')",
            "#!lua flags=no-writes\nreturn redis.call('get', KEYS[1])",
        ] {
            assert!(touches_only_its_keys(body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn scripts_that_might_do_anything() {
        for body in [
            "return redis.call('get', 'a')",
            "return redis.call('get', KEYS[1] .. 'x')",
            "return redis.call('get', ARGV[1])",
            "return redis.call(ARGV[1], KEYS[1])",
            "return redis.call('mget', unpack(KEYS))",
            "return redis.call('mget', KEYS[1], unpack(ARGV))",
            "return redis.call('mget', KEYS[1], ...)",
            "local r = redis; return r.call('get', 'a')",
            "local call = redis.call return call('get', 'a')",
            "local k = KEYS k[1] = 'x' return redis.call('get', KEYS[1])",
            "KEYS[1] = 'x' return redis.call('get', KEYS[1])",
            "KEYS[1], x = 'x', 1 return redis.call('get', KEYS[1])",
            "x, KEYS[1] = 1, 'x' return redis.call('get', KEYS[1])",
            "local key = KEYS[1] key = 'x' return redis.call('get', key)",
            "local key = KEYS[1] .. 'x' return redis.call('get', key)",
            "local key = KEYS[1] or 'x' return redis.call('get', key)",
            "local key = KEYS[1] for key in x do redis.call('get', key) end",
            "local key = KEYS[1] local f = function(key) return redis.call('get', key) end return f('x')",
            "local key = KEYS[1] local a, key = 1, 'x' return redis.call('get', key)",
            "local key = KEYS[1] a, key = 1, 'x' return redis.call('get', key)",
            "return redis.call('dbsize')",
            "return redis.call('keys', '*')",
            "return redis.call('sort', KEYS[1], 'by', 'w_*')",
            "return redis.call('zunionstore', KEYS[1], 2, 'a', 'b')",
            "return redis.call'get'",
            "redis.call = f return 1",
            "return loadstring('x')()",
            "return _G.redis.call('get', 'a')",
            "--[[ x ]] return 1",
            "return redis['call']('get', 'a')",
        ] {
            assert!(!touches_only_its_keys(body.as_bytes()), "{body}");
        }
    }
}
