//! The library `cjson`: its functions and their settings. Settings hold for all later scripts.

mod decode;
mod encode;

use crate::lua::{
    self, Function, lua_State, raise_argument, raw_set_field, register, register_texts,
};
use crate::vm::state;
use mlua_sys as ffi;
use std::ffi::{c_char, c_int};

const FUNCTIONS: &[(&str, Function)] = &[
    ("decode", decode::decode),
    ("decode_invalid_numbers", decode_invalid_numbers),
    ("decode_max_depth", decode_max_depth),
    ("encode", encode::encode),
    ("encode_invalid_numbers", encode_invalid_numbers),
    ("encode_keep_buffer", encode_keep_buffer),
    ("encode_max_depth", encode_max_depth),
    ("encode_number_precision", encode_number_precision),
    ("encode_sparse_array", encode_sparse_array),
    ("new", new),
];

/// What happens to numbers that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvalidNumbers {
    Refused,
    Written,
    Null,
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonSettings {
    converts_sparse: bool,
    sparse_ratio: c_int,
    sparse_safe: c_int,
    encode_depth_max: c_int,
    decode_depth_max: c_int,
    precision: c_int,
    keeps_buffer: bool,
    encode_invalid: InvalidNumbers,
    decodes_invalid: bool,
}

impl Default for JsonSettings {
    fn default() -> Self {
        Self {
            converts_sparse: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth_max: 1000,
            decode_depth_max: 1000,
            precision: 14,
            keeps_buffer: true,
            encode_invalid: InvalidNumbers::Refused,
            decodes_invalid: true,
        }
    }
}

/// Pushes the library.
pub(crate) unsafe fn push(l: *mut lua_State) {
    ffi::lua_createtable(l, 0, 16);
    register(l, FUNCTIONS);
    ffi::lua_pushlightuserdata(l, std::ptr::null_mut());
    raw_set_field(l, -2, b"null");
    register_texts(l, &[("_NAME", "cjson"), ("_VERSION", "2.1.0")]);
}

unsafe extern "C-unwind" fn new(l: *mut lua_State) -> c_int {
    push(l);
    1
}

/// Begins a function with at most `count` arguments.
unsafe fn begin_setting(l: *mut lua_State, count: c_int) {
    if ffi::lua_gettop(l) > count {
        raise_argument(l, count + 1, c"found too many arguments");
    }
    ffi::lua_settop(l, count);
}

/// A number that is set if it is given; pushes what holds.
unsafe fn number_setting(l: *mut lua_State, at: c_int, value: &mut c_int, low: c_int, high: c_int) {
    if ffi::lua_type(l, at) != ffi::LUA_TNIL {
        let number = ffi::luaL_checkinteger(l, at);
        let fitting = c_int::try_from(number)
            .ok()
            .filter(|n| (low..=high).contains(n));
        let Some(number) = fitting else {
            lua::push_formatted(l, format_args!("expected integer between {low} and {high}"));
            // Whichever it is, it is called the first.
            ffi::luaL_argerror(l, 1, ffi::lua_tolstring(l, -1, std::ptr::null_mut()));
            return;
        };
        *value = number;
    }
    ffi::lua_pushnumber(l, f64::from(*value));
}

/// One of `words`, or a truth value, which stands for the first two.
unsafe fn word_setting(l: *mut lua_State, at: c_int, words: &[*const c_char]) -> Option<c_int> {
    match ffi::lua_type(l, at) {
        ffi::LUA_TNIL => None,
        ffi::LUA_TBOOLEAN => Some(ffi::lua_toboolean(l, at)),
        _ => Some(ffi::luaL_checkoption(
            l,
            at,
            std::ptr::null(),
            words.as_ptr(),
        )),
    }
}

unsafe fn switch_setting(l: *mut lua_State, at: c_int, value: &mut bool) {
    let words = [c"off".as_ptr(), c"on".as_ptr(), std::ptr::null()];
    if let Some(chosen) = word_setting(l, at, &words) {
        *value = chosen != 0;
    }
    ffi::lua_pushboolean(l, c_int::from(*value));
}

unsafe extern "C-unwind" fn encode_sparse_array(l: *mut lua_State) -> c_int {
    begin_setting(l, 3);
    let json = &mut state(l).json;
    switch_setting(l, 1, &mut json.converts_sparse);
    number_setting(l, 2, &mut json.sparse_ratio, 0, c_int::MAX);
    number_setting(l, 3, &mut json.sparse_safe, 0, c_int::MAX);
    3
}

unsafe extern "C-unwind" fn encode_max_depth(l: *mut lua_State) -> c_int {
    begin_setting(l, 1);
    number_setting(l, 1, &mut state(l).json.encode_depth_max, 1, c_int::MAX);
    1
}

unsafe extern "C-unwind" fn decode_max_depth(l: *mut lua_State) -> c_int {
    begin_setting(l, 1);
    number_setting(l, 1, &mut state(l).json.decode_depth_max, 1, c_int::MAX);
    1
}

unsafe extern "C-unwind" fn encode_number_precision(l: *mut lua_State) -> c_int {
    begin_setting(l, 1);
    number_setting(l, 1, &mut state(l).json.precision, 1, 14);
    1
}

unsafe extern "C-unwind" fn encode_keep_buffer(l: *mut lua_State) -> c_int {
    begin_setting(l, 1);
    switch_setting(l, 1, &mut state(l).json.keeps_buffer);
    1
}

unsafe extern "C-unwind" fn decode_invalid_numbers(l: *mut lua_State) -> c_int {
    begin_setting(l, 1);
    switch_setting(l, 1, &mut state(l).json.decodes_invalid);
    1
}

unsafe extern "C-unwind" fn encode_invalid_numbers(l: *mut lua_State) -> c_int {
    begin_setting(l, 1);
    let words = [
        c"off".as_ptr(),
        c"on".as_ptr(),
        c"null".as_ptr(),
        std::ptr::null(),
    ];
    let json = &mut state(l).json;
    if let Some(chosen) = word_setting(l, 1, &words) {
        json.encode_invalid = match chosen {
            0 => InvalidNumbers::Refused,
            1 => InvalidNumbers::Written,
            _ => InvalidNumbers::Null,
        };
    }
    match json.encode_invalid {
        InvalidNumbers::Null => lua::push(l, b"null"),
        InvalidNumbers::Written => ffi::lua_pushboolean(l, 1),
        InvalidNumbers::Refused => ffi::lua_pushboolean(l, 0),
    }
    1
}
