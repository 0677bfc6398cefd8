//! The library `struct`: values as the bytes of C structures.
//!
//! ```text
//!   > <      big, little endian         b B h H i I l L T   integers; i and I with a size up to 32
//!   !n       alignment, 8 if no n       f d                 floating point
//!   x        a byte of padding          s                   text with a NUL behind it
//!   space    nothing                    cn                  n bytes; c0: all of a string, or as many as
//!                                                           the number read before says
//! ```

use crate::lua::{self, Function, lua_State, raise_argument, register};
use crate::vm::state;
use mlua_sys as ffi;
use std::ffi::{CStr, c_int};

const FUNCTIONS: &[(&str, Function)] = &[("pack", pack), ("size", size), ("unpack", unpack)];

/// Largest integer in bytes.
const INTEGER_BYTES_MAX: usize = 32;
/// Alignment of `!` alone.
const ALIGNMENT_DEFAULT: usize = 8;

/// Pushes the library.
pub(crate) unsafe fn push(l: *mut lua_State) {
    ffi::lua_createtable(l, 0, 3);
    register(l, FUNCTIONS);
}

/// How values lie.
#[derive(Clone, Copy)]
struct Layout {
    is_little: bool,
    alignment: usize,
}

/// The rest of a format.
#[derive(Clone, Copy)]
struct Format<'a>(&'a [u8]);

impl Format<'_> {
    fn next(&mut self) -> Option<u8> {
        // C's strings end with a NUL.
        let (first, rest) = self.0.split_first().filter(|(byte, _)| **byte != 0)?;
        self.0 = rest;
        Some(*first)
    }

    /// A number, if there is one here. What does not fit an `int` is an error.
    unsafe fn number(&mut self, l: *mut lua_State, default: usize) -> usize {
        if !self.0.first().is_some_and(u8::is_ascii_digit) {
            return default;
        }
        let mut number = 0usize;
        while let Some((digit, rest)) = self
            .0
            .split_first()
            .filter(|(byte, _)| byte.is_ascii_digit())
        {
            let digit = usize::from(digit - b'0');
            if number > (i32::MAX as usize - digit) / 10 {
                lua::raise_here(l, b"integral size overflow");
            }
            number = number * 10 + digit;
            self.0 = rest;
        }
        number
    }

    /// Bytes of what `option` stands for.
    unsafe fn size(&mut self, l: *mut lua_State, option: u8) -> usize {
        match option {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'T' | b'L' | b'l' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(l, 1),
            b'i' | b'I' => {
                let size = self.number(l, 4);
                if size > INTEGER_BYTES_MAX {
                    lua::push_formatted(
                        l,
                        format_args!(
                            "integral size {size} is larger than limit of {INTEGER_BYTES_MAX}"
                        ),
                    );
                    lua::raise_top(l);
                }
                size
            }
            _ => 0,
        }
    }

    /// An option that says how values lie.
    unsafe fn control(&mut self, l: *mut lua_State, option: u8, layout: &mut Layout) {
        match option {
            b' ' => {}
            b'>' => layout.is_little = false,
            b'<' => layout.is_little = true,
            b'!' => {
                let alignment = self.number(l, ALIGNMENT_DEFAULT);
                if !alignment.is_power_of_two() {
                    lua::push_formatted(
                        l,
                        format_args!("alignment {alignment} is not a power of 2"),
                    );
                    lua::raise_top(l);
                }
                layout.alignment = alignment;
            }
            _ => {
                lua::push_formatted(
                    l,
                    format_args!("invalid format option '{}'", char::from(option)),
                );
                ffi::luaL_argerror(l, 1, ffi::lua_tolstring(l, -1, std::ptr::null_mut()));
            }
        }
    }
}

const fn layout() -> Layout {
    Layout {
        is_little: true,
        alignment: 1,
    }
}

/// Bytes of padding in front of a value.
fn padding(len: usize, alignment: usize, size: usize, option: u8) -> usize {
    if size == 0 || option == b'c' {
        return 0;
    }
    let alignment = size.min(alignment);
    if alignment <= 1 {
        return 0;
    }
    (alignment - (len & (alignment - 1))) & (alignment - 1)
}

unsafe extern "C-unwind" fn pack(l: *mut lua_State) -> c_int {
    let mut format = Format(lua::check_bytes(l, 1));
    let mut layout = layout();
    let mut argument = 2;
    ffi::lua_pushnil(l); // so that a missing argument is a nil
    state(l).scratch.clear();
    while let Some(option) = format.next() {
        let size = format.size(l, option);
        let len = state(l).scratch.len();
        let out = &mut state(l).scratch;
        out.resize(len + padding(len, layout.alignment, size, option), 0);
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let number = ffi::luaL_checknumber(l, argument);
                argument += 1;
                put_integer(&mut state(l).scratch, number, size, layout.is_little);
            }
            b'x' => state(l).scratch.push(0),
            b'f' => {
                let number = ffi::luaL_checknumber(l, argument) as f32;
                argument += 1;
                put(
                    &mut state(l).scratch,
                    number.to_le_bytes(),
                    layout.is_little,
                );
            }
            b'd' => {
                let number = ffi::luaL_checknumber(l, argument);
                argument += 1;
                put(
                    &mut state(l).scratch,
                    number.to_le_bytes(),
                    layout.is_little,
                );
            }
            b'c' | b's' => {
                let text = lua::check_bytes(l, argument);
                argument += 1;
                let size = if size == 0 { text.len() } else { size };
                let Some(text) = text.get(..size) else {
                    raise_argument(l, argument, c"string too short")
                };
                let out = &mut state(l).scratch;
                out.extend_from_slice(text);
                if option == b's' {
                    out.push(0);
                }
            }
            _ => format.control(l, option, &mut layout),
        }
    }
    lua::push(l, &state(l).scratch);
    1
}

fn put<const N: usize>(out: &mut Vec<u8>, mut bytes: [u8; N], is_little: bool) {
    if !is_little {
        bytes.reverse();
    }
    out.extend_from_slice(&bytes);
}

fn put_integer(out: &mut Vec<u8>, number: f64, size: usize, is_little: bool) {
    // What fits nowhere becomes what the processor makes of it.
    let bits = if (0.0..18_446_744_073_709_551_616.0).contains(&number) {
        number as u64
    } else if number < 0.0 || number.is_nan() {
        lua::truncated(number).cast_unsigned()
    } else {
        0
    };
    let start = out.len();
    let word = bits.to_le_bytes();
    for at in 0..size {
        out.push(word.get(at).copied().unwrap_or(0));
    }
    if !is_little {
        out[start..].reverse();
    }
}

unsafe extern "C-unwind" fn unpack(l: *mut lua_State) -> c_int {
    const TOO_SHORT: &CStr = c"data string too short";
    let mut format = Format(lua::check_bytes(l, 1));
    let data = lua::check_bytes(l, 2);
    let offset = ffi::luaL_optnumber(l, 3, 1.0);
    let offset = lua::truncated(offset);
    if offset == 0 {
        raise_argument(l, 3, c"offset must be 1 or greater");
    }
    let mut at = usize::try_from(offset.wrapping_sub(1)).unwrap_or(usize::MAX);
    let mut layout = layout();
    let mut count = 0;
    while let Some(option) = format.next() {
        let mut size = format.size(l, option);
        at = at.saturating_add(padding(at, layout.alignment, size, option));
        if at > data.len() || size > data.len() - at {
            raise_argument(l, 2, TOO_SHORT);
        }
        if ffi::lua_checkstack(l, 3) == 0 {
            lua::raise_here(l, b"stack overflow (too many results)");
        }
        let rest = &data[at..];
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let is_signed = option.is_ascii_lowercase();
                let number = integer(&rest[..size], layout.is_little, is_signed);
                ffi::lua_pushnumber(l, number);
                count += 1;
            }
            b'x' => {}
            b'f' => {
                let number = f32::from_le_bytes(ordered(rest, layout.is_little));
                ffi::lua_pushnumber(l, f64::from(number));
                count += 1;
            }
            b'd' => {
                ffi::lua_pushnumber(l, f64::from_le_bytes(ordered(rest, layout.is_little)));
                count += 1;
            }
            b'c' => {
                if size == 0 {
                    if count == 0 || ffi::lua_isnumber(l, -1) == 0 {
                        lua::raise_here(l, b"format 'c0' needs a previous size");
                    }
                    let wanted = lua::truncated(ffi::lua_tonumber(l, -1));
                    size = usize::try_from(wanted).unwrap_or(usize::MAX);
                    lua::pop(l, 1);
                    count -= 1;
                    if size > rest.len() {
                        raise_argument(l, 2, TOO_SHORT);
                    }
                }
                lua::push(l, &rest[..size]);
                count += 1;
            }
            b's' => {
                let Some(len) = memchr::memchr(0, rest) else {
                    lua::raise_here(l, b"unfinished string in data")
                };
                lua::push(l, &rest[..len]);
                size = len + 1;
                count += 1;
            }
            _ => format.control(l, option, &mut layout),
        }
        at += size;
    }
    ffi::lua_pushnumber(l, at as f64 + 1.0);
    count + 1
}

/// The first bytes, little end first.
fn ordered<const N: usize>(bytes: &[u8], is_little: bool) -> [u8; N] {
    let mut word = [0; N];
    if let Some(bytes) = bytes.get(..N) {
        word.copy_from_slice(bytes);
    }
    if !is_little {
        word.reverse();
    }
    word
}

/// The lowest eight bytes of an integer as a number.
fn integer(bytes: &[u8], is_little: bool, is_signed: bool) -> f64 {
    let mut bits = 0u64;
    // As C shifts it: what is beyond eight bytes falls out at the top.
    let mut add = |byte: &u8| bits = bits << 8 | u64::from(*byte);
    if is_little {
        bytes.iter().rev().for_each(&mut add);
    } else {
        bytes.iter().for_each(&mut add);
    }
    if !is_signed {
        return bits as f64;
    }
    let width = (bytes.len() * 8).min(64);
    if width == 0 {
        return 0.0;
    }
    let unused = 64 - width;
    ((bits << unused).cast_signed() >> unused) as f64
}

unsafe extern "C-unwind" fn size(l: *mut lua_State) -> c_int {
    let mut format = Format(lua::check_bytes(l, 1));
    let mut layout = layout();
    let mut total = 0usize;
    while let Some(option) = format.next() {
        let size = format.size(l, option);
        total += padding(total, layout.alignment, size, option);
        match option {
            b's' => raise_argument(l, 1, c"option 's' has no fixed size"),
            b'c' if size == 0 => raise_argument(l, 1, c"option 'c0' has no fixed size"),
            // Sizes of other options are those of what they stand for.
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' | b'f' | b'd' | b'x'
            | b'c' => {}
            option if !option.is_ascii_alphanumeric() => format.control(l, option, &mut layout),
            _ => {}
        }
        if size > i32::MAX as usize - total.min(i32::MAX as usize) {
            lua::raise_here(l, b"integral size overflow");
        }
        total += size;
    }
    ffi::lua_pushnumber(l, total as f64);
    1
}
