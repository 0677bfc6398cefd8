//! Small words over the Lua API.

use mlua_sys as ffi;
pub(crate) use mlua_sys::lua_State;
use std::ffi::{CStr, c_char, c_int, c_void};

/// A function that Lua calls.
pub(crate) type Function = ffi::lua_CFunction;

/// Pushes a string.
#[inline]
pub(crate) unsafe fn push(l: *mut lua_State, bytes: &[u8]) {
    ffi::lua_pushlstring_(l, bytes.as_ptr().cast::<c_char>(), bytes.len());
}

/// The bytes of the string at `index`; a number becomes one. Empty for everything else. They live while
/// the string is on the stack (L4).
#[inline]
pub(crate) unsafe fn bytes<'a>(l: *mut lua_State, index: c_int) -> &'a [u8] {
    let mut len = 0;
    let start = ffi::lua_tolstring(l, index, &raw mut len);
    if start.is_null() {
        return &[];
    }
    std::slice::from_raw_parts(start.cast::<u8>(), len)
}

/// The bytes of argument `index`, which must be a string or number.
pub(crate) unsafe fn check_bytes<'a>(l: *mut lua_State, index: c_int) -> &'a [u8] {
    let mut len = 0;
    let start = ffi::luaL_checklstring(l, index, &raw mut len);
    std::slice::from_raw_parts(start.cast::<u8>(), len)
}

/// Pops `count` values.
#[inline]
pub(crate) unsafe fn pop(l: *mut lua_State, count: c_int) {
    ffi::lua_settop(l, -count - 1);
}

/// Whether the value at `index` is a table.
#[inline]
pub(crate) unsafe fn is_table(l: *mut lua_State, index: c_int) -> bool {
    ffi::lua_type(l, index) == ffi::LUA_TTABLE
}

/// Pushes a function without values of its own.
pub(crate) unsafe fn push_function(l: *mut lua_State, function: Function) {
    ffi::lua_pushcclosure(l, function, 0);
}

/// Sets a field of the table at `index` (below the value, counted with it) to the value on top, without
/// metamethods.
pub(crate) unsafe fn raw_set_field(l: *mut lua_State, index: c_int, name: &[u8]) {
    let index = absolute(l, index);
    push(l, name);
    ffi::lua_insert(l, -2);
    ffi::lua_rawset(l, index);
}

/// Pushes a field of the table at `index` without metamethods; returns its type.
#[inline]
pub(crate) unsafe fn raw_field(l: *mut lua_State, index: c_int, name: &[u8]) -> c_int {
    let index = absolute(l, index);
    push(l, name);
    ffi::lua_rawget_(l, index);
    ffi::lua_type(l, -1)
}

/// The same place counted from the bottom.
#[inline]
pub(crate) unsafe fn absolute(l: *mut lua_State, index: c_int) -> c_int {
    if index > 0 || index <= ffi::LUA_REGISTRYINDEX {
        index
    } else {
        ffi::lua_gettop(l) + index + 1
    }
}

/// Puts functions into the table on top.
pub(crate) unsafe fn register(l: *mut lua_State, functions: &[(&str, Function)]) {
    for (name, function) in functions {
        push_function(l, *function);
        raw_set_field(l, -2, name.as_bytes());
    }
}

/// Puts texts into the table on top.
pub(crate) unsafe fn register_texts(l: *mut lua_State, texts: &[(&str, &str)]) {
    for (name, text) in texts {
        push(l, text.as_bytes());
        raw_set_field(l, -2, name.as_bytes());
    }
}

/// Raises the error `text` as it is.
pub(crate) unsafe fn raise(l: *mut lua_State, text: &[u8]) -> ! {
    push(l, text);
    ffi::lua_error(l)
}

/// Raises the string on top, with the place in front of it where the script called.
pub(crate) unsafe fn raise_top(l: *mut lua_State) -> ! {
    ffi::luaL_where(l, 1);
    ffi::lua_insert(l, -2);
    ffi::lua_concat(l, 2);
    ffi::lua_error(l)
}

/// Raises `text` with the place in front of it where the script called.
pub(crate) unsafe fn raise_here(l: *mut lua_State, text: &[u8]) -> ! {
    push(l, text);
    raise_top(l)
}

/// Raises the complaint about argument `number`.
pub(crate) unsafe fn raise_argument(l: *mut lua_State, number: c_int, text: &CStr) -> ! {
    ffi::luaL_argerror(l, number, text.as_ptr());
    unreachable!("luaL_argerror does not return")
}

/// Pushes the string that `format` makes of numbers and such: what has a destructor is gone when an error
/// of Lua can come (L2), except when Lua's memory is short, which then costs the bytes of this text.
pub(crate) unsafe fn push_formatted(l: *mut lua_State, text: std::fmt::Arguments<'_>) {
    let text = text.to_string();
    push(l, text.as_bytes());
}

/// A pointer that only this process knows, as a key of tables.
#[inline]
pub(crate) unsafe fn push_key(l: *mut lua_State, key: &'static u8) {
    ffi::lua_pushlightuserdata(l, std::ptr::from_ref(key).cast::<c_void>().cast_mut());
}

/// The number at `index` as C converts it to a 64-bit integer.
#[inline]
pub(crate) fn truncated(number: f64) -> i64 {
    // What fits nowhere becomes the smallest, as the processor does it.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

/// The name of a type.
pub(crate) unsafe fn type_name(l: *mut lua_State, kind: c_int) -> &'static str {
    CStr::from_ptr(ffi::lua_typename(l, kind))
        .to_str()
        .unwrap_or("value")
}

/// Writes `number` as C's `%.*g` does.
pub(crate) fn format_g(number: f64, precision: usize, out: &mut Vec<u8>) {
    let mut text = [0u8; 64];
    let precision = c_int::try_from(precision.min(40)).unwrap_or(14);
    // SAFETY: the buffer is as long as said; the format takes an int and a double.
    let len = unsafe {
        libc::snprintf(
            text.as_mut_ptr().cast::<c_char>(),
            text.len(),
            c"%.*g".as_ptr(),
            precision,
            number,
        )
    };
    let len = usize::try_from(len).unwrap_or(0).min(text.len() - 1);
    out.extend_from_slice(&text[..len]);
}
