//! The library `cmsgpack`: MessagePack in its older form, with strings but no binaries and extensions.

use crate::lua::{self, Function, bytes, lua_State, pop, register, register_texts};
use crate::vm::state;
use mlua_sys as ffi;
use std::ffi::c_int;

const FUNCTIONS: &[(&str, Function)] = &[
    ("pack", pack),
    ("unpack", unpack),
    ("unpack_limit", unpack_limit),
    ("unpack_one", unpack_one),
];

/// Tables that are deeper become nil.
const NESTING_MAX: usize = 16;

/// Pushes the library.
pub(crate) unsafe fn push(l: *mut lua_State) {
    ffi::lua_createtable(l, 0, 8);
    register(l, FUNCTIONS);
    register_texts(
        l,
        &[
            ("_NAME", "cmsgpack"),
            ("_VERSION", "lua-cmsgpack 0.4.0"),
            ("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"),
            ("_DESCRIPTION", "MessagePack C implementation for Lua"),
        ],
    );
}

unsafe extern "C-unwind" fn pack(l: *mut lua_State) -> c_int {
    let count = ffi::lua_gettop(l);
    if count == 0 {
        lua::raise_argument(l, 0, c"MessagePack pack needs input.");
    }
    if ffi::lua_checkstack(l, 4) == 0 {
        lua::raise_argument(l, 0, c"Too many arguments for MessagePack pack.");
    }
    state(l).scratch.clear();
    for at in 1..=count {
        ffi::lua_pushvalue(l, at);
        put_value(l, 0);
    }
    lua::push(l, &state(l).scratch);
    1
}

/// Appends the value on top and removes it.
unsafe fn put_value(l: *mut lua_State, level: usize) {
    let out = &mut state(l).scratch;
    match ffi::lua_type(l, -1) {
        ffi::LUA_TSTRING => put_text(out, bytes(l, -1)),
        ffi::LUA_TBOOLEAN => out.push(if ffi::lua_toboolean(l, -1) != 0 {
            0xC3
        } else {
            0xC2
        }),
        ffi::LUA_TNUMBER => put_number(out, ffi::lua_tonumber(l, -1)),
        ffi::LUA_TTABLE if level < NESTING_MAX && ffi::lua_checkstack(l, 4) != 0 => {
            put_table(l, level);
        }
        _ => out.push(0xC0),
    }
    pop(l, 1);
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        len @ 0..=31 => out.push(0xA0 | len as u8),
        len @ 32..=0xFF => out.extend_from_slice(&[0xD9, len as u8]),
        len @ 0x100..=0xFFFF => {
            out.push(0xDA);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        len => {
            out.push(0xDB);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(text);
}

/// The integer that a number is, if it is one of 64 bits.
#[expect(clippy::float_cmp, reason = "whether it is whole")]
fn as_integer(number: f64) -> Option<i64> {
    let whole = lua::truncated(number);
    let fits = number < 9_223_372_036_854_775_808.0;
    (fits && whole as f64 == number).then_some(whole)
}

#[expect(clippy::float_cmp, reason = "whether 32 bits are enough")]
fn put_number(out: &mut Vec<u8>, number: f64) {
    if let Some(integer) = as_integer(number) {
        return put_integer(out, integer);
    }
    let short = number as f32;
    if f64::from(short) == number {
        out.push(0xCA);
        out.extend_from_slice(&short.to_be_bytes());
    } else {
        out.push(0xCB);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn put_integer(out: &mut Vec<u8>, integer: i64) {
    match integer {
        0..=0x7F => out.push(integer as u8),
        0x80..=0xFF => out.extend_from_slice(&[0xCC, integer as u8]),
        0x100..=0xFFFF => {
            out.push(0xCD);
            out.extend_from_slice(&(integer as u16).to_be_bytes());
        }
        0x1_0000..=0xFFFF_FFFF => {
            out.push(0xCE);
            out.extend_from_slice(&(integer as u32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            out.push(0xCF);
            out.extend_from_slice(&integer.to_be_bytes());
        }
        -32..=-1 => out.push(integer as u8),
        -128..=-33 => out.extend_from_slice(&[0xD0, integer as u8]),
        -0x8000..=-129 => {
            out.push(0xD1);
            out.extend_from_slice(&(integer as i16).to_be_bytes());
        }
        -0x8000_0000..=-0x8001 => {
            out.push(0xD2);
            out.extend_from_slice(&(integer as i32).to_be_bytes());
        }
        _ => {
            out.push(0xD3);
            out.extend_from_slice(&integer.to_be_bytes());
        }
    }
}

unsafe fn put_table(l: *mut lua_State, level: usize) {
    let (count, is_array) = count_pairs(l);
    let out = &mut state(l).scratch;
    let (short, long) = if is_array { (0x90, 0xDC) } else { (0x80, 0xDE) };
    match count {
        0..=15 => out.push(short | count as u8),
        16..=0xFFFF => {
            out.push(long);
            out.extend_from_slice(&(count as u16).to_be_bytes());
        }
        _ => {
            out.push(long + 1);
            out.extend_from_slice(&(count as u32).to_be_bytes());
        }
    }
    if is_array {
        for at in 1..=c_int::try_from(count).unwrap_or(c_int::MAX) {
            ffi::lua_rawgeti_(l, -1, at);
            put_value(l, level + 1);
        }
        return;
    }
    ffi::lua_pushnil(l);
    while ffi::lua_next(l, -2) != 0 {
        ffi::lua_pushvalue(l, -2);
        put_value(l, level + 1);
        put_value(l, level + 1);
    }
}

/// How many pairs the table on top has, and whether their keys are 1 to that number.
unsafe fn count_pairs(l: *mut lua_State) -> (usize, bool) {
    let (mut count, mut highest) = (0usize, 0i64);
    let mut is_array = true;
    ffi::lua_pushnil(l);
    while ffi::lua_next(l, -2) != 0 {
        pop(l, 1);
        count += 1;
        let is_number = ffi::lua_type(l, -1) == ffi::LUA_TNUMBER;
        let key = is_number
            .then(|| ffi::lua_tonumber(l, -1))
            .and_then(as_integer);
        match key.filter(|&key| key > 0) {
            Some(key) => highest = highest.max(key),
            None => is_array = false,
        }
    }
    (count, is_array && usize::try_from(highest) == Ok(count))
}

/// Why a text cannot be read.
#[derive(Clone, Copy)]
enum Trouble {
    Missing,
    Malformed,
}

unsafe extern "C-unwind" fn unpack(l: *mut lua_State) -> c_int {
    unpack_some(l, 0, 0)
}

unsafe extern "C-unwind" fn unpack_one(l: *mut lua_State) -> c_int {
    let offset = ffi::luaL_optinteger(l, 2, 0);
    unpack_some(l, 1, offset as i64)
}

unsafe extern "C-unwind" fn unpack_limit(l: *mut lua_State) -> c_int {
    let limit = ffi::luaL_checkinteger(l, 2);
    let offset = ffi::luaL_optinteger(l, 3, 0);
    unpack_some(l, limit as i64, offset as i64)
}

/// Pushes at most `limit` values from `offset` on, and before them where the next one begins, or -1;
/// without limit and offset all values and nothing else.
unsafe fn unpack_some(l: *mut lua_State, limit: i64, offset: i64) -> c_int {
    let text = lua::check_bytes(l, 1);
    ffi::lua_settop(l, 1);
    let len = text.len();
    let takes_all = limit == 0 && offset == 0;
    let start = usize::try_from(offset);
    let (Ok(start), true) = (start, limit >= 0) else {
        lua::push_formatted(
            l,
            format_args!("Invalid request to unpack with offset of {offset} and limit of {len}."),
        );
        lua::raise_top(l)
    };
    let Some(mut rest) = text.get(start..) else {
        lua::push_formatted(
            l,
            format_args!("Start offset {offset} greater than input length {len}."),
        );
        lua::raise_top(l)
    };
    let mut count = 0;
    while !rest.is_empty() && (takes_all || i64::from(count) < limit) {
        match take_value(l, rest) {
            Ok(after) => rest = after,
            Err(Trouble::Missing) => lua::raise_here(l, b"Missing bytes in input."),
            Err(Trouble::Malformed) => lua::raise_here(l, b"Bad data format in input."),
        }
        count += 1;
    }
    if takes_all {
        return count;
    }
    let next = if rest.is_empty() {
        -1.0
    } else {
        (len - rest.len()) as f64
    };
    if ffi::lua_checkstack(l, 1) == 0 {
        lua::raise_here(l, TOO_MANY);
    }
    ffi::lua_pushnumber(l, next);
    ffi::lua_insert(l, 2);
    count + 1
}

const TOO_MANY: &[u8] =
    b"stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)";

/// The first `N` bytes and the rest.
fn split<const N: usize>(text: &[u8]) -> Result<([u8; N], &[u8]), Trouble> {
    let (first, rest) = text.split_first_chunk().ok_or(Trouble::Missing)?;
    Ok((*first, rest))
}

/// Pushes the first value; returns what follows it.
unsafe fn take_value(l: *mut lua_State, text: &[u8]) -> Result<&[u8], Trouble> {
    if ffi::lua_checkstack(l, 3) == 0 {
        lua::raise_here(l, TOO_MANY);
    }
    let ([kind], rest) = split(text)?;
    macro_rules! number {
        ($kind:ty) => {{
            let (bytes, rest) = split(rest)?;
            ffi::lua_pushnumber(l, <$kind>::from_be_bytes(bytes) as f64);
            Ok(rest)
        }};
    }
    macro_rules! length {
        ($kind:ty) => {{
            let (bytes, rest) = split(rest)?;
            (<$kind>::from_be_bytes(bytes) as usize, rest)
        }};
    }
    let small = usize::from(kind);
    match kind {
        0x00..=0x7F => ffi::lua_pushnumber(l, f64::from(kind)),
        0xE0..=0xFF => ffi::lua_pushnumber(l, f64::from(kind.cast_signed())),
        0xC0 => ffi::lua_pushnil(l),
        0xC2 | 0xC3 => ffi::lua_pushboolean(l, c_int::from(kind == 0xC3)),
        0xCC => return number!(u8),
        0xCD => return number!(u16),
        0xCE => return number!(u32),
        // As a signed one, which is how it was written.
        0xCF => return number!(i64),
        0xD0 => return number!(i8),
        0xD1 => return number!(i16),
        0xD2 => return number!(i32),
        0xD3 => return number!(i64),
        0xCA => return number!(f32),
        0xCB => return number!(f64),
        0xA0..=0xBF => return take_text(l, (small & 31, rest)),
        0xD9 => return take_text(l, length!(u8)),
        0xDA => return take_text(l, length!(u16)),
        0xDB => return take_text(l, length!(u32)),
        0x90..=0x9F => return take_array(l, (small & 15, rest)),
        0xDC => return take_array(l, length!(u16)),
        0xDD => return take_array(l, length!(u32)),
        0x80..=0x8F => return take_map(l, (small & 15, rest)),
        0xDE => return take_map(l, length!(u16)),
        0xDF => return take_map(l, length!(u32)),
        _ => return Err(Trouble::Malformed),
    }
    Ok(rest)
}

unsafe fn take_text(l: *mut lua_State, (len, rest): (usize, &[u8])) -> Result<&[u8], Trouble> {
    let (text, rest) = rest.split_at_checked(len).ok_or(Trouble::Missing)?;
    lua::push(l, text);
    Ok(rest)
}

unsafe fn take_array(l: *mut lua_State, (len, mut rest): (usize, &[u8])) -> Result<&[u8], Trouble> {
    ffi::lua_createtable(l, 0, 0);
    for at in 1..=c_int::try_from(len).unwrap_or(c_int::MAX) {
        rest = take_value(l, rest)?;
        ffi::lua_rawseti_(l, -2, at);
    }
    Ok(rest)
}

unsafe fn take_map(l: *mut lua_State, (len, mut rest): (usize, &[u8])) -> Result<&[u8], Trouble> {
    ffi::lua_createtable(l, 0, 0);
    for _ in 0..len {
        rest = take_value(l, rest)?;
        rest = take_value(l, rest)?;
        ffi::lua_rawset(l, -3);
    }
    Ok(rest)
}
