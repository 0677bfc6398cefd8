//! The library `bit`: operations on 32-bit integers.

use crate::lua::{self, Function, lua_State, register};
use mlua_sys as ffi;
use std::ffi::c_int;

const FUNCTIONS: &[(&str, Function)] = &[
    ("arshift", arshift),
    ("band", band),
    ("bnot", bnot),
    ("bor", bor),
    ("bswap", bswap),
    ("bxor", bxor),
    ("lshift", lshift),
    ("rol", rol),
    ("ror", ror),
    ("rshift", rshift),
    ("tobit", tobit),
    ("tohex", tohex),
];

/// Pushes the library.
pub(crate) unsafe fn push(l: *mut lua_State) {
    ffi::lua_createtable(l, 0, 12);
    register(l, FUNCTIONS);
}

/// 2^52 + 2^51: a number that is added to it has its integer in the low bits of the sum.
const SHIFTER: f64 = 6_755_399_441_055_744.0;

/// An argument modulo 2^32, rounded to the nearest.
unsafe fn argument(l: *mut lua_State, at: c_int) -> u32 {
    let number = ffi::luaL_checknumber(l, at);
    (number + SHIFTER).to_bits() as u32
}

unsafe fn answer(l: *mut lua_State, bits: u32) -> c_int {
    ffi::lua_pushnumber(l, f64::from(bits.cast_signed()));
    1
}

unsafe fn fold(l: *mut lua_State, join: fn(u32, u32) -> u32) -> c_int {
    let mut bits = argument(l, 1);
    for at in 2..=ffi::lua_gettop(l) {
        bits = join(bits, argument(l, at));
    }
    answer(l, bits)
}

unsafe fn shift(l: *mut lua_State, by: fn(u32, u32) -> u32) -> c_int {
    let bits = argument(l, 1);
    let count = argument(l, 2) & 31;
    answer(l, by(bits, count))
}

unsafe extern "C-unwind" fn tobit(l: *mut lua_State) -> c_int {
    answer(l, argument(l, 1))
}

unsafe extern "C-unwind" fn bnot(l: *mut lua_State) -> c_int {
    answer(l, !argument(l, 1))
}

unsafe extern "C-unwind" fn bswap(l: *mut lua_State) -> c_int {
    answer(l, argument(l, 1).swap_bytes())
}

unsafe extern "C-unwind" fn band(l: *mut lua_State) -> c_int {
    fold(l, |left, right| left & right)
}

unsafe extern "C-unwind" fn bor(l: *mut lua_State) -> c_int {
    fold(l, |left, right| left | right)
}

unsafe extern "C-unwind" fn bxor(l: *mut lua_State) -> c_int {
    fold(l, |left, right| left ^ right)
}

unsafe extern "C-unwind" fn lshift(l: *mut lua_State) -> c_int {
    shift(l, |bits, count| bits << count)
}

unsafe extern "C-unwind" fn rshift(l: *mut lua_State) -> c_int {
    shift(l, |bits, count| bits >> count)
}

unsafe extern "C-unwind" fn arshift(l: *mut lua_State) -> c_int {
    shift(l, |bits, count| {
        (bits.cast_signed() >> count).cast_unsigned()
    })
}

unsafe extern "C-unwind" fn rol(l: *mut lua_State) -> c_int {
    shift(l, u32::rotate_left)
}

unsafe extern "C-unwind" fn ror(l: *mut lua_State) -> c_int {
    shift(l, u32::rotate_right)
}

unsafe extern "C-unwind" fn tohex(l: *mut lua_State) -> c_int {
    let bits = argument(l, 1);
    let wanted = if ffi::lua_type(l, 2) == ffi::LUA_TNONE {
        8
    } else {
        argument(l, 2).cast_signed()
    };
    let digits: &[u8; 16] = if wanted < 0 {
        b"0123456789ABCDEF"
    } else {
        b"0123456789abcdef"
    };
    let count = wanted.unsigned_abs().min(8) as usize;
    let mut text = [0u8; 8];
    for (at, digit) in text[..count].iter_mut().enumerate() {
        *digit = digits[(bits >> (4 * (count - 1 - at)) & 15) as usize];
    }
    lua::push(l, &text[..count]);
    1
}
