//! Replies of commands as Lua values.
//!
//! ```text
//!   :1        number             $.. =..   string, {verbatim_string={string=, format=}}
//!   +OK       {ok="OK"}          *..       table, numbered from 1
//!   -ERR x    {err="ERR x"}      %.. ~..   {map={..}}, {set={..=true}}
//!   $-1 *-1   false              ,1.5      {double=1.5}
//!   _         nil                #t (12    boolean, {big_number="12"}
//! ```
//!
//! The replies come from our own handlers, so they are well formed; what is not ends as nil.

use crate::lua::{lua_State, pop, push, raw_set_field};
use crate::redis::push_error;
use mlua_sys as ffi;
use proto::number::{parse_f64, parse_i64};
use std::ffi::c_int;

/// Pushes the reply in `bytes`.
pub(crate) unsafe fn push_reply(l: *mut lua_State, bytes: &[u8]) {
    let top = ffi::lua_gettop(l);
    if push_next(l, bytes).is_none() {
        ffi::lua_settop(l, top);
        ffi::lua_pushnil(l);
    }
}

/// Pushes the first reply; returns what follows it.
unsafe fn push_next(l: *mut lua_State, bytes: &[u8]) -> Option<&[u8]> {
    if ffi::lua_checkstack(l, 6) == 0 {
        return None;
    }
    let end = memchr::memchr(b'\n', bytes)?;
    let (kind, line) = bytes.get(..end - 1)?.split_first()?;
    let rest = bytes.get(end + 1..)?;
    match kind {
        b':' => ffi::lua_pushnumber(l, parse_i64(line)? as f64),
        b'$' => match length(line)? {
            None => ffi::lua_pushboolean(l, 0),
            Some(len) => {
                push(l, rest.get(..len)?);
                return rest.get(len + 2..);
            }
        },
        b'+' => wrap(l, b"ok", line),
        b'-' => push_error(l, line, true),
        b'*' | b'>' => match length(line)? {
            None => ffi::lua_pushboolean(l, 0),
            Some(count) => return push_array(l, count, rest),
        },
        b'%' => return push_map(l, length(line)??, rest),
        b'~' => return push_set(l, length(line)??, rest),
        b'_' => ffi::lua_pushnil(l),
        b'#' => ffi::lua_pushboolean(l, c_int::from(line == b"t")),
        b',' => {
            ffi::lua_createtable(l, 0, 1);
            ffi::lua_pushnumber(l, parse_f64(line)?);
            raw_set_field(l, -2, b"double");
        }
        b'(' => wrap(l, b"big_number", line),
        b'=' => return push_verbatim(l, length(line)??, rest),
        _ => return None,
    }
    Some(rest)
}

/// A length; `None` in it is nothing.
#[expect(clippy::option_option, reason = "malformed, nothing, something")]
fn length(line: &[u8]) -> Option<Option<usize>> {
    let number = parse_i64(line)?;
    Some(usize::try_from(number).ok())
}

unsafe fn wrap(l: *mut lua_State, name: &[u8], text: &[u8]) {
    ffi::lua_createtable(l, 0, 1);
    push(l, text);
    raw_set_field(l, -2, name);
}

unsafe fn push_array(l: *mut lua_State, count: usize, mut rest: &[u8]) -> Option<&[u8]> {
    let count = c_int::try_from(count).ok()?;
    ffi::lua_createtable(l, count, 0);
    for at in 1..=count {
        rest = push_next(l, rest)?;
        ffi::lua_rawseti_(l, -2, at);
    }
    Some(rest)
}

unsafe fn push_map(l: *mut lua_State, count: usize, mut rest: &[u8]) -> Option<&[u8]> {
    ffi::lua_createtable(l, 0, 1);
    // It grows as it is filled, as in Redis, which shows in the order of `pairs`.
    ffi::lua_createtable(l, 0, 0);
    for _ in 0..count {
        rest = push_next(l, rest)?;
        rest = push_next(l, rest)?;
        set_pair(l);
    }
    raw_set_field(l, -2, b"map");
    Some(rest)
}

unsafe fn push_set(l: *mut lua_State, count: usize, mut rest: &[u8]) -> Option<&[u8]> {
    ffi::lua_createtable(l, 0, 1);
    // It grows as it is filled, as in Redis, which shows in the order of `pairs`.
    ffi::lua_createtable(l, 0, 0);
    for _ in 0..count {
        rest = push_next(l, rest)?;
        ffi::lua_pushboolean(l, 1);
        set_pair(l);
    }
    raw_set_field(l, -2, b"set");
    Some(rest)
}

/// Sets the name and value on top in the table below; a name that is nothing is left out.
unsafe fn set_pair(l: *mut lua_State) {
    if ffi::lua_type(l, -2) == ffi::LUA_TNIL {
        pop(l, 2);
    } else {
        ffi::lua_rawset(l, -3);
    }
}

unsafe fn push_verbatim(l: *mut lua_State, len: usize, rest: &[u8]) -> Option<&[u8]> {
    let body = rest.get(..len)?;
    let (format, text) = (body.get(..3)?, body.get(4..)?);
    ffi::lua_createtable(l, 0, 1);
    ffi::lua_createtable(l, 0, 2);
    push(l, text);
    raw_set_field(l, -2, b"string");
    push(l, format);
    raw_set_field(l, -2, b"format");
    raw_set_field(l, -2, b"verbatim_string");
    rest.get(len + 2..)
}
