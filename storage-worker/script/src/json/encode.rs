//! Lua values as JSON.

use super::InvalidNumbers;
use crate::lua::{self, bytes, format_g, lua_State, pop, raise_argument};
use crate::vm::state;
use mlua_sys as ffi;
use std::ffi::c_int;

/// `cjson.encode`.
pub(super) unsafe extern "C-unwind" fn encode(l: *mut lua_State) -> c_int {
    if ffi::lua_gettop(l) != 1 {
        raise_argument(l, 1, c"expected 1 argument");
    }
    state(l).scratch.clear();
    append(l, 0);
    lua::push(l, &state(l).scratch);
    1
}

/// Appends the value on top.
unsafe fn append(l: *mut lua_State, depth: c_int) {
    match ffi::lua_type(l, -1) {
        ffi::LUA_TSTRING => append_text(&mut state(l).scratch, bytes(l, -1)),
        ffi::LUA_TNUMBER => append_number(l, -1),
        ffi::LUA_TBOOLEAN => {
            let word: &[u8] = if ffi::lua_toboolean(l, -1) != 0 {
                b"true"
            } else {
                b"false"
            };
            state(l).scratch.extend_from_slice(word);
        }
        ffi::LUA_TTABLE => append_table(l, depth + 1),
        ffi::LUA_TNIL => state(l).scratch.extend_from_slice(b"null"),
        ffi::LUA_TLIGHTUSERDATA if ffi::lua_touserdata(l, -1).is_null() => {
            state(l).scratch.extend_from_slice(b"null");
        }
        _ => refuse(l, -1, "type not supported"),
    }
}

unsafe fn refuse(l: *mut lua_State, index: c_int, reason: &str) -> ! {
    let kind = lua::type_name(l, ffi::lua_type(l, index));
    lua::push_formatted(l, format_args!("Cannot serialise {kind}: {reason}"));
    lua::raise_top(l)
}

unsafe fn append_table(l: *mut lua_State, depth: c_int) {
    if depth > state(l).json.encode_depth_max || ffi::lua_checkstack(l, 3) == 0 {
        lua::push_formatted(
            l,
            format_args!("Cannot serialise, excessive nesting ({depth})"),
        );
        lua::raise_top(l);
    }
    match array_len(l) {
        Some(len) => {
            state(l).scratch.push(b'[');
            for at in 1..=len {
                if at > 1 {
                    state(l).scratch.push(b',');
                }
                ffi::lua_rawgeti_(l, -1, at);
                append(l, depth);
                pop(l, 1);
            }
            state(l).scratch.push(b']');
        }
        None => append_object(l, depth),
    }
}

unsafe fn append_object(l: *mut lua_State, depth: c_int) {
    state(l).scratch.push(b'{');
    let mut is_first = true;
    ffi::lua_pushnil(l);
    while ffi::lua_next(l, -2) != 0 {
        if !std::mem::take(&mut is_first) {
            state(l).scratch.push(b',');
        }
        match ffi::lua_type(l, -2) {
            ffi::LUA_TNUMBER => {
                state(l).scratch.push(b'"');
                append_number(l, -2);
                state(l).scratch.push(b'"');
            }
            ffi::LUA_TSTRING => append_text(&mut state(l).scratch, bytes(l, -2)),
            _ => refuse(l, -2, "table key must be a number or string"),
        }
        state(l).scratch.push(b':');
        append(l, depth);
        pop(l, 1);
    }
    state(l).scratch.push(b'}');
}

/// Elements of the table on top if it is an array: it has one, and its keys are positions that are not
/// too far apart.
unsafe fn array_len(l: *mut lua_State) -> Option<c_int> {
    let (mut highest, mut count) = (0.0f64, 0u32);
    ffi::lua_pushnil(l);
    while ffi::lua_next(l, -2) != 0 {
        let key = ffi::lua_tonumber(l, -2);
        let is_position =
            ffi::lua_type(l, -2) == ffi::LUA_TNUMBER && key > 0.0 && key.fract() == 0.0;
        if !is_position {
            pop(l, 2);
            return None;
        }
        highest = highest.max(key);
        count += 1;
        pop(l, 1);
    }
    let json = state(l).json;
    let is_sparse = json.sparse_ratio > 0
        && highest > f64::from(count) * f64::from(json.sparse_ratio)
        && highest > f64::from(json.sparse_safe);
    if is_sparse {
        if !json.converts_sparse {
            lua::raise_here(l, b"Cannot serialise table: excessively sparse array");
        }
        return None;
    }
    (1.0..=f64::from(c_int::MAX))
        .contains(&highest)
        .then_some(highest as c_int)
}

unsafe fn append_number(l: *mut lua_State, index: c_int) {
    let number = ffi::lua_tonumber(l, index);
    let json = state(l).json;
    if !number.is_finite() {
        match json.encode_invalid {
            InvalidNumbers::Refused => refuse(l, index, "must not be NaN or Inf"),
            InvalidNumbers::Null => return state(l).scratch.extend_from_slice(b"null"),
            InvalidNumbers::Written if number.is_nan() => {
                return state(l).scratch.extend_from_slice(b"nan");
            }
            InvalidNumbers::Written => {}
        }
    }
    let precision = usize::try_from(json.precision).unwrap_or(14);
    format_g(number, precision, &mut state(l).scratch);
}

fn append_text(out: &mut Vec<u8>, text: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for &byte in text {
        let short = match byte {
            b'"' | b'\\' | b'/' => byte,
            8 => b'b',
            9 => b't',
            10 => b'n',
            12 => b'f',
            13 => b'r',
            0..=31 | 127 => {
                out.extend_from_slice(b"\\u00");
                out.push(DIGITS[usize::from(byte >> 4)]);
                out.push(DIGITS[usize::from(byte & 15)]);
                continue;
            }
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.push(b'"');
}
