//! Results of scripts as RESP.
//!
//! A table is the first of these that it has a field for: an error (`err`), a status (`ok`), a `double`, a
//! `map`, a `set`, a `big_number`, a `verbatim_string`; otherwise an array up to its first nil. Fields are
//! read without metamethods, so nothing of the script runs here.

use crate::lua::{bytes, lua_State, pop, raw_field, truncated};
use crate::vm::state;
use mlua_sys as ffi;
use proto::resp::ReplyWriter;

/// Places on the stack that a level of nesting needs.
const PLACES_PER_LEVEL: i32 = 4;
/// Levels that nest: where Redis' own Lua stack would end.
const LEVELS_MAX: usize = 1900;

/// Writes the value on top of the stack and removes it.
pub(crate) unsafe fn convert(l: *mut lua_State, reply: &mut ReplyWriter<'_>) {
    convert_level(l, reply, 0);
}

unsafe fn convert_level(l: *mut lua_State, reply: &mut ReplyWriter<'_>, level: usize) {
    match ffi::lua_type(l, -1) {
        ffi::LUA_TSTRING => reply.bulk(bytes(l, -1)),
        ffi::LUA_TNUMBER => reply.int(truncated(ffi::lua_tonumber(l, -1))),
        ffi::LUA_TBOOLEAN => {
            let is_true = ffi::lua_toboolean(l, -1) != 0;
            match (state(l).is_resp3, is_true) {
                (true, _) => reply.bool(is_true),
                (false, true) => reply.int(1),
                (false, false) => reply.null(),
            }
        }
        ffi::LUA_TTABLE => {
            if level >= LEVELS_MAX || ffi::lua_checkstack(l, PLACES_PER_LEVEL) == 0 {
                reply.error_bytes(b"ERR reached lua stack limit");
            } else {
                convert_table(l, reply, level);
            }
        }
        _ => reply.null(),
    }
    pop(l, 1);
}

unsafe fn convert_table(l: *mut lua_State, reply: &mut ReplyWriter<'_>, level: usize) {
    if raw_field(l, -1, b"err") == ffi::LUA_TSTRING {
        reply.error_bytes(bytes(l, -1));
        pop(l, 1);
        if level == 0 {
            state(l).is_result_counted = is_counted(l);
        }
        return;
    }
    pop(l, 1);
    if raw_field(l, -1, b"ok") == ffi::LUA_TSTRING {
        reply.status_bytes(bytes(l, -1));
        return pop(l, 1);
    }
    pop(l, 1);
    if raw_field(l, -1, b"double") == ffi::LUA_TNUMBER {
        reply.double(ffi::lua_tonumber(l, -1));
        return pop(l, 1);
    }
    pop(l, 1);
    if raw_field(l, -1, b"map") == ffi::LUA_TTABLE {
        let mark = reply.begin_array();
        let mut count = 0;
        ffi::lua_pushnil(l);
        while ffi::lua_next(l, -2) != 0 {
            ffi::lua_pushvalue(l, -2); // map, name, value, name
            convert_level(l, reply, level + 1);
            convert_level(l, reply, level + 1);
            count += 1;
        }
        reply.set_map_len(mark, count);
        return pop(l, 1);
    }
    pop(l, 1);
    if raw_field(l, -1, b"set") == ffi::LUA_TTABLE {
        let mark = reply.begin_array();
        let mut count = 0;
        ffi::lua_pushnil(l);
        while ffi::lua_next(l, -2) != 0 {
            pop(l, 1);
            ffi::lua_pushvalue(l, -1);
            convert_level(l, reply, level + 1);
            count += 1;
        }
        reply.set_set_len(mark, count);
        return pop(l, 1);
    }
    pop(l, 1);
    if raw_field(l, -1, b"big_number") == ffi::LUA_TSTRING {
        let state = state(l);
        state.scratch.clear();
        let digits = bytes(l, -1).iter();
        state.scratch.extend(digits.map(|byte| {
            if matches!(byte, b'\r' | b'\n') {
                b' '
            } else {
                *byte
            }
        }));
        reply.big_number(&state.scratch);
        return pop(l, 1);
    }
    pop(l, 1);
    if raw_field(l, -1, b"verbatim_string") == ffi::LUA_TTABLE {
        let has_format = raw_field(l, -1, b"format") == ffi::LUA_TSTRING;
        let has_text = raw_field(l, -2, b"string") == ffi::LUA_TSTRING;
        if has_format && has_text {
            reply.verbatim_bytes(bytes(l, -2), bytes(l, -1));
            return pop(l, 3);
        }
        pop(l, 2);
    }
    pop(l, 1);
    convert_array(l, reply, level);
}

/// Whether the error on top says of itself that it has been counted: one that a command has answered with.
pub(crate) unsafe fn is_counted(l: *mut lua_State) -> bool {
    raw_field(l, -1, b"ignore_error_stats_update");
    let is_counted = ffi::lua_toboolean(l, -1) != 0;
    pop(l, 1);
    is_counted
}

unsafe fn convert_array(l: *mut lua_State, reply: &mut ReplyWriter<'_>, level: usize) {
    let mark = reply.begin_array();
    let mut count = 0;
    for at in 1.. {
        ffi::lua_rawgeti_(l, -1, at);
        if ffi::lua_type(l, -1) == ffi::LUA_TNIL {
            pop(l, 1);
            break;
        }
        convert_level(l, reply, level + 1);
        count += 1;
    }
    reply.set_array_len(mark, count);
}
