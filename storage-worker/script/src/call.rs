//! `redis.call` and `redis.pcall`: from Lua values to a command, and back from its reply.

use crate::Words;
use crate::lua::{self, bytes, lua_State};
use crate::redis::{push_own_error, raise_error};
use crate::to_lua;
use crate::vm::state;
use mlua_sys as ffi;
use proto::number::DoubleText;
use std::ffi::c_int;

/// Buffers that have become larger than that are given back.
pub(crate) const KEPT_BYTES_MAX: usize = 64 << 10;

const NO_ARGUMENTS: &[u8] = b"Please specify at least one argument for this redis lib call";
const BAD_ARGUMENT: &[u8] = b"Lua redis lib command arguments must be strings or integers";

pub(crate) unsafe extern "C-unwind" fn call(l: *mut lua_State) -> c_int {
    run(l, true)
}

pub(crate) unsafe extern "C-unwind" fn protected_call(l: *mut lua_State) -> c_int {
    run(l, false)
}

unsafe fn run(l: *mut lua_State, raises: bool) -> c_int {
    if let Err(text) = collect_words(l) {
        return fail(l, text, raises);
    }
    // The arguments have been copied, and the reply needs places on the stack.
    ffi::lua_settop(l, 0);
    execute(l);
    let state = state(l);
    let is_error = state.reply.first() == Some(&b'-');
    // The reply is taken from the state for the time of the conversion, during which no command runs.
    let reply: *const [u8] = state.reply.as_slice();
    to_lua::push_reply(l, &*reply);
    if state.reply.capacity() > KEPT_BYTES_MAX {
        state.reply = Vec::new();
    }
    if is_error && raises {
        ffi::lua_error(l);
    }
    1
}

unsafe fn fail(l: *mut lua_State, text: &[u8], raises: bool) -> c_int {
    if raises {
        raise_error(l, text);
    }
    push_own_error(l, text);
    1
}

/// Runs the words that have been collected; the reply is in the state.
unsafe fn execute(l: *mut lua_State) {
    let state = state(l);
    let mut reply = std::mem::take(&mut state.reply);
    reply.clear();
    let words: *const [u8] = state.words.as_slice();
    let spans: *const [(u32, u32)] = state.spans.as_slice();
    let words = Words {
        bytes: &*words,
        spans: &*spans,
    };
    let is_resp3 = state.is_resp3;
    if let Some(host) = state.host() {
        host.call(words, is_resp3, &mut reply);
    }
    state.reply = reply;
    if state.words.capacity() > KEPT_BYTES_MAX {
        state.words = Vec::new();
    }
}

/// Copies the arguments of the running function.
unsafe fn collect_words(l: *mut lua_State) -> Result<(), &'static [u8]> {
    let count = ffi::lua_gettop(l);
    let state = state(l);
    state.words.clear();
    state.spans.clear();
    if count == 0 {
        return Err(NO_ARGUMENTS);
    }
    for at in 1..=count {
        let start = state.words.len();
        match ffi::lua_type(l, at) {
            ffi::LUA_TSTRING => state.words.extend_from_slice(bytes(l, at)),
            ffi::LUA_TNUMBER => add_number(&mut state.words, ffi::lua_tonumber(l, at)),
            _ => return Err(BAD_ARGUMENT),
        }
        let end = u32::try_from(state.words.len()).map_err(|_| BAD_ARGUMENT)?;
        state.spans.push((start as u32, end));
    }
    Ok(())
}

/// A whole number as such, any other with as many digits as it takes.
fn add_number(out: &mut Vec<u8>, number: f64) {
    let whole = lua::truncated(number);
    #[expect(clippy::float_cmp, reason = "whether it is whole")]
    if whole as f64 == number && whole != i64::MIN && whole != i64::MAX {
        let mut digits = itoa::Buffer::new();
        return out.extend_from_slice(digits.format(whole).as_bytes());
    }
    if number.is_nan() && number.is_sign_negative() {
        out.push(b'-');
    }
    out.extend_from_slice(DoubleText::new().format(number));
}

/// `redis.acl_check_cmd`.
pub(crate) unsafe extern "C-unwind" fn may_call(l: *mut lua_State) -> c_int {
    if let Err(text) = collect_words(l) {
        raise_error(l, text);
    }
    let state = state(l);
    let words: *const [u8] = state.words.as_slice();
    let spans: *const [(u32, u32)] = state.spans.as_slice();
    let words = Words {
        bytes: &*words,
        spans: &*spans,
    };
    let may = state.host().and_then(|host| host.may_call(words));
    let Some(may) = may else {
        raise_error(l, b"Invalid command passed to redis.acl_check_cmd()")
    };
    ffi::lua_pushboolean(l, c_int::from(may));
    1
}
