//! The library `redis`, but for the calls of commands.

use crate::lua::{self, Function, bytes, lua_State, push, raw_set_field, register};
use crate::vm::{Kind, state};
use crate::{REDIS_VERSION, REDIS_VERSION_NUMBER, call, library};
use mlua_sys as ffi;
use std::ffi::c_int;

const NUMBERS: [(&str, u32); 10] = [
    ("LOG_DEBUG", 0),
    ("LOG_VERBOSE", 1),
    ("LOG_NOTICE", 2),
    ("LOG_WARNING", 3),
    ("REPL_NONE", 0),
    ("REPL_AOF", 1),
    ("REPL_SLAVE", 2),
    ("REPL_REPLICA", 2),
    ("REPL_ALL", 3),
    ("REDIS_VERSION_NUM", REDIS_VERSION_NUMBER),
];

const FUNCTIONS: &[(&str, Function)] = &[
    ("acl_check_cmd", call::may_call),
    ("call", call::call),
    ("error_reply", error_reply),
    ("log", log),
    ("pcall", call::protected_call),
    ("set_repl", set_repl),
    ("setresp", set_resp),
    ("sha1hex", sha1hex),
    ("status_reply", status_reply),
];

/// Only scripts have these.
const OF_SCRIPTS: &[(&str, Function)] = &[
    ("breakpoint", breakpoint),
    ("debug", debug),
    ("replicate_commands", replicate_commands),
];

/// Pushes the library.
pub(crate) unsafe fn push_library(l: *mut lua_State) {
    ffi::lua_createtable(l, 0, 24);
    register(l, FUNCTIONS);
    if state(l).kind == Kind::Scripts {
        register(l, OF_SCRIPTS);
    }
    for (name, number) in NUMBERS {
        ffi::lua_pushnumber(l, f64::from(number));
        raw_set_field(l, -2, name.as_bytes());
    }
    push(l, REDIS_VERSION.as_bytes());
    raw_set_field(l, -2, b"REDIS_VERSION");
}

/// Pushes what a library sees of it while it is loaded.
pub(crate) unsafe fn push_for_loading(l: *mut lua_State) {
    ffi::lua_createtable(l, 0, 16);
    let functions: [(&str, Function); 2] = [
        ("log", log),
        ("register_function", library::register_function),
    ];
    register(l, &functions);
    for (name, number) in NUMBERS {
        if !name.starts_with("REPL") {
            ffi::lua_pushnumber(l, f64::from(number));
            raw_set_field(l, -2, name.as_bytes());
        }
    }
    push(l, REDIS_VERSION.as_bytes());
    raw_set_field(l, -2, b"REDIS_VERSION");
}

/// Pushes a table with an error: `line` begins with its code, after a `-` or not; a line of one word is
/// the text of an `ERR`.
pub(crate) unsafe fn push_error(l: *mut lua_State, line: &[u8], is_counted: bool) {
    let line = line.strip_prefix(b"-").unwrap_or(line);
    let line = line.strip_suffix(b"\r\n").unwrap_or(line);
    ffi::lua_createtable(l, 0, 4);
    if line.contains(&b' ') {
        push(l, line);
    } else {
        push(l, b"ERR ");
        push(l, line);
        ffi::lua_concat(l, 2);
    }
    raw_set_field(l, -2, b"err");
    if is_counted {
        ffi::lua_pushboolean(l, 1);
        raw_set_field(l, -2, b"ignore_error_stats_update");
    }
}

/// Pushes a table with an error of ours, whose code is `ERR`.
pub(crate) unsafe fn push_own_error(l: *mut lua_State, text: &[u8]) {
    ffi::lua_createtable(l, 0, 4);
    push(l, b"ERR ");
    push(l, text);
    ffi::lua_concat(l, 2);
    raw_set_field(l, -2, b"err");
}

/// Raises an error of ours.
pub(crate) unsafe fn raise_error(l: *mut lua_State, text: &[u8]) -> ! {
    push_own_error(l, text);
    ffi::lua_error(l)
}

unsafe extern "C-unwind" fn error_reply(l: *mut lua_State) -> c_int {
    if ffi::lua_gettop(l) != 1 || ffi::lua_type(l, 1) != ffi::LUA_TSTRING {
        push_own_error(l, b"wrong number or type of arguments");
    } else {
        push_error(l, bytes(l, 1), false);
    }
    1
}

unsafe extern "C-unwind" fn status_reply(l: *mut lua_State) -> c_int {
    if ffi::lua_gettop(l) != 1 || ffi::lua_type(l, 1) != ffi::LUA_TSTRING {
        push_own_error(l, b"wrong number or type of arguments");
        return 1;
    }
    ffi::lua_createtable(l, 0, 1);
    ffi::lua_pushvalue(l, 1);
    raw_set_field(l, -2, b"ok");
    1
}

unsafe extern "C-unwind" fn sha1hex(l: *mut lua_State) -> c_int {
    if ffi::lua_gettop(l) != 1 {
        raise_error(l, b"wrong number of arguments");
    }
    push(l, &proto::sha1::digest_text(bytes(l, 1)));
    1
}

unsafe extern "C-unwind" fn log(l: *mut lua_State) -> c_int {
    let count = ffi::lua_gettop(l);
    if count < 2 {
        raise_error(l, b"redis.log() requires two arguments or more.");
    }
    if ffi::lua_isnumber(l, 1) == 0 {
        raise_error(l, b"First argument must be a number (log level).");
    }
    let level = lua::truncated(ffi::lua_tonumber(l, 1));
    let Some(level) = u8::try_from(level).ok().filter(|&level| level <= 3) else {
        raise_error(l, b"Invalid log level.")
    };
    let mut parts = 0;
    for at in 2..=count {
        if ffi::lua_isstring(l, at) == 0 {
            continue;
        }
        if ffi::lua_checkstack(l, 3) == 0 {
            break;
        }
        if parts > 0 {
            push(l, b" ");
            parts += 1;
        }
        ffi::lua_pushvalue(l, at);
        parts += 1;
    }
    ffi::lua_concat(l, parts);
    let text = bytes(l, -1);
    if let Some(host) = state(l).host() {
        host.log(level, text);
    }
    0
}

unsafe extern "C-unwind" fn set_resp(l: *mut lua_State) -> c_int {
    if ffi::lua_gettop(l) != 1 {
        raise_error(l, b"redis.setresp() requires one argument.");
    }
    match lua::truncated(ffi::lua_tonumber(l, 1)) {
        2 => state(l).is_resp3 = false,
        3 => state(l).is_resp3 = true,
        _ => raise_error(l, b"RESP version must be 2 or 3."),
    }
    0
}

/// Nothing is replicated yet; the request is only checked.
unsafe extern "C-unwind" fn set_repl(l: *mut lua_State) -> c_int {
    if ffi::lua_gettop(l) != 1 {
        raise_error(l, b"redis.set_repl() requires one argument.");
    }
    if !(0..=3).contains(&lua::truncated(ffi::lua_tonumber(l, 1))) {
        raise_error(
            l,
            b"Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        );
    }
    0
}

/// Effects of commands are what is replicated, always.
unsafe extern "C-unwind" fn replicate_commands(l: *mut lua_State) -> c_int {
    ffi::lua_pushboolean(l, 1);
    1
}

/// There is no debugger attached, ever.
unsafe extern "C-unwind" fn breakpoint(l: *mut lua_State) -> c_int {
    ffi::lua_pushboolean(l, 0);
    1
}

unsafe extern "C-unwind" fn debug(_: *mut lua_State) -> c_int {
    0
}
