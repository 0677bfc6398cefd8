//! What scripts see, and what they cannot change.
//!
//! Lua 5.1 has no tables that are read-only, so what scripts see of the globals and libraries are empty
//! tables in front of the real ones:
//!
//! ```text
//!   what a script names `redis`   {}  ── metatable ──> __index     the real table
//!                                                      __newindex  raises an error
//!                                                      [MARK]      the real table
//! ```
//!
//! Functions that would look or write past a metatable (`rawset`, `table.insert`, `pairs`, ...) are replaced
//! by ones that know the mark. They call the original with the same stack, so its errors are the same.
//!
//! Cost: a global of the script is found behind one miss in an empty table.
//! Not here: the library `redis` (`redis`).

use crate::lua::{
    self, Function, bytes, lua_State, pop, push, push_function, push_key, raise, raise_here,
    raw_field, raw_set_field, register,
};
use crate::vm::{Kind, state};
use crate::{bit, json, msgpack, random, redis, structs};
use mlua_sys as ffi;
use std::ffi::{CStr, c_char, c_int, c_void};

/// The real table, in the metatable of one that stands before it.
static MARK: u8 = 1;
/// The real globals, in the registry.
static GLOBALS: u8 = 2;
/// The metatable of the globals, in the registry.
static GLOBALS_META: u8 = 3;
/// What a library sees while it is loaded, in the registry.
static LOADING: u8 = 4;

const READ_ONLY: &[u8] = b"Attempt to modify a readonly table";

/// Globals that stay; everything else goes.
const ALLOWED: [&str; 29] = [
    "_G",
    "_VERSION",
    "assert",
    "bit",
    "cjson",
    "cmsgpack",
    "collectgarbage",
    "coroutine",
    "error",
    "gcinfo",
    "getmetatable",
    "ipairs",
    "load",
    "loadstring",
    "math",
    "next",
    "os",
    "pairs",
    "pcall",
    "rawequal",
    "rawget",
    "rawset",
    "redis",
    "select",
    "setmetatable",
    "string",
    "struct",
    "table",
    "tonumber",
];
const ALLOWED_TOO: [&str; 4] = ["tostring", "type", "unpack", "xpcall"];

/// Libraries that scripts cannot change.
const LIBRARIES: [&str; 10] = [
    "bit",
    "cjson",
    "cmsgpack",
    "coroutine",
    "math",
    "os",
    "redis",
    "string",
    "struct",
    "table",
];

/// Functions that must not touch a table that is read-only.
const GUARDED: [&str; 2] = ["rawset", "setmetatable"];
/// The same in the library `table`.
const GUARDED_OF_TABLE: [&str; 1] = ["insert"];
/// Those that look at what stands behind one.
const SEEING_OF_TABLE: [&str; 1] = ["foreach"];

/// Builds everything in a new state.
pub(crate) unsafe extern "C-unwind" fn build(l: *mut lua_State) -> c_int {
    for open in [
        ffi::luaopen_base,
        ffi::luaopen_table,
        ffi::luaopen_string,
        ffi::luaopen_math,
        ffi::luaopen_os,
    ] {
        push_function(l, open);
        push(l, b"");
        ffi::lua_call(l, 1, 0);
    }
    ffi::lua_settop(l, 0);
    ffi::lua_pushvalue(l, ffi::LUA_GLOBALSINDEX); // 1: the real globals
    keep_known(l);
    keep_clock_only(l);
    guard(l);
    add_libraries(l);
    if state(l).kind == Kind::Scripts {
        push_function(l, explain_error);
        raw_set_field(l, 1, b"__redis__err__handler");
        for name in [&b"KEYS"[..], b"ARGV"] {
            ffi::lua_createtable(l, 0, 0);
            raw_set_field(l, 1, name);
        }
    }
    for name in LIBRARIES {
        raw_field(l, 1, name.as_bytes());
        protect(l);
        raw_set_field(l, 1, name.as_bytes());
    }
    protect_strings(l);
    protect_globals(l);
    0
}

unsafe fn keep_known(l: *mut lua_State) {
    ffi::lua_pushnil(l);
    while ffi::lua_next(l, 1) != 0 {
        pop(l, 1);
        let name = bytes(l, -1);
        let mut all = ALLOWED.iter().chain(&ALLOWED_TOO);
        if !all.any(|known| known.as_bytes() == name) {
            ffi::lua_pushvalue(l, -1);
            ffi::lua_pushnil(l);
            ffi::lua_rawset(l, 1);
        }
    }
}

unsafe fn keep_clock_only(l: *mut lua_State) {
    raw_field(l, 1, b"os");
    ffi::lua_createtable(l, 0, 1);
    raw_field(l, -2, b"clock");
    raw_set_field(l, -2, b"clock");
    raw_set_field(l, 1, b"os");
    pop(l, 1);
}

/// Replaces the functions that know the mark, or know more than they should.
unsafe fn guard(l: *mut lua_State) {
    for name in GUARDED {
        guard_one(l, 1, name, guarded);
    }
    raw_field(l, 1, b"table");
    for name in GUARDED_OF_TABLE {
        guard_one(l, 2, name, guarded);
    }
    for name in SEEING_OF_TABLE {
        guard_one(l, 2, name, seeing);
    }
    pop(l, 1);
    let own: [(&str, Function); 7] = [
        ("getmetatable", get_metatable),
        ("load", load),
        ("loadstring", load_string),
        ("next", next),
        ("pairs", pairs),
        ("pcall", protected_call),
        ("rawget", raw_get),
    ];
    ffi::lua_pushvalue(l, 1);
    register(l, &own);
    pop(l, 1);
    raw_field(l, 1, b"math");
    register(l, random::FUNCTIONS);
    pop(l, 1);
}

unsafe fn guard_one(l: *mut lua_State, table: c_int, name: &str, by: Function) {
    raw_field(l, table, name.as_bytes());
    let Some(original) = ffi::lua_tocfunction(l, -1) else {
        return pop(l, 1);
    };
    ffi::lua_pushlightuserdata(l, original as *mut c_void);
    ffi::lua_pushcclosure(l, by, 1);
    raw_set_field(l, table, name.as_bytes());
    pop(l, 1);
}

unsafe fn add_libraries(l: *mut lua_State) {
    type Builder = unsafe fn(*mut lua_State);
    let all: [(&str, Builder); 5] = [
        ("bit", bit::push),
        ("cjson", json::push),
        ("cmsgpack", msgpack::push),
        ("redis", redis::push_library),
        ("struct", structs::push),
    ];
    for (name, build) in all {
        build(l);
        raw_set_field(l, 1, name.as_bytes());
    }
}

/// Replaces the table on top by one that stands before it.
unsafe fn protect(l: *mut lua_State) {
    ffi::lua_createtable(l, 0, 0); // real, front
    push_front_metatable(l, -2);
    ffi::lua_setmetatable(l, -2);
    ffi::lua_remove(l, -2);
}

/// Pushes a metatable for a table before the one at `index`.
unsafe fn push_front_metatable(l: *mut lua_State, index: c_int) {
    let real = lua::absolute(l, index);
    ffi::lua_createtable(l, 0, 4);
    ffi::lua_pushvalue(l, real);
    raw_set_field(l, -2, b"__index");
    push_function(l, refuse_change);
    raw_set_field(l, -2, b"__newindex");
    push_key(l, &MARK);
    ffi::lua_pushvalue(l, real);
    ffi::lua_rawset(l, -3);
}

/// Sets what `getmetatable` shows for the metatable on top: an empty table, read-only itself.
unsafe fn hide_metatable(l: *mut lua_State) {
    ffi::lua_createtable(l, 0, 0);
    protect(l);
    raw_set_field(l, -2, b"__metatable");
}

/// Strings have a metatable that all of them share.
unsafe fn protect_strings(l: *mut lua_State) {
    push(l, b"");
    if ffi::lua_getmetatable(l, -1) != 0 {
        hide_metatable(l);
        pop(l, 1);
    }
    pop(l, 1);
}

/// Puts an empty table before the globals, which raises an error for names that are not there.
unsafe fn protect_globals(l: *mut lua_State) {
    push_missing_metatable(l);
    ffi::lua_setmetatable(l, 1);
    push_key(l, &GLOBALS);
    ffi::lua_pushvalue(l, 1);
    ffi::lua_rawset(l, ffi::LUA_REGISTRYINDEX);
    ffi::lua_createtable(l, 0, 0);
    push_front_metatable(l, 1);
    hide_metatable(l);
    push_key(l, &GLOBALS_META);
    ffi::lua_pushvalue(l, -2);
    ffi::lua_rawset(l, ffi::LUA_REGISTRYINDEX);
    ffi::lua_setmetatable(l, -2);
    ffi::lua_pushvalue(l, -1);
    raw_set_field(l, 1, b"_G");
    ffi::lua_replace(l, ffi::LUA_GLOBALSINDEX);
    // What a library sees while it is loaded.
    ffi::lua_createtable(l, 0, 1);
    redis::push_for_loading(l);
    push_missing_metatable(l);
    ffi::lua_setmetatable(l, -2);
    protect(l);
    raw_set_field(l, -2, b"redis");
    push_missing_metatable(l);
    ffi::lua_setmetatable(l, -2);
    push_key(l, &LOADING);
    ffi::lua_insert(l, -2);
    ffi::lua_rawset(l, ffi::LUA_REGISTRYINDEX);
}

unsafe fn push_missing_metatable(l: *mut lua_State) {
    ffi::lua_createtable(l, 0, 1);
    push_function(l, refuse_missing);
    raw_set_field(l, -2, b"__index");
}

/// Pushes the real globals.
pub(crate) unsafe fn push_globals(l: *mut lua_State) {
    push_key(l, &GLOBALS);
    ffi::lua_rawget_(l, ffi::LUA_REGISTRYINDEX);
}

/// From here on globals are those of a library that is loaded, or the usual ones.
pub(crate) unsafe fn show_globals(l: *mut lua_State, is_loading: bool) {
    push_key(l, &GLOBALS_META);
    ffi::lua_rawget_(l, ffi::LUA_REGISTRYINDEX);
    push_key(l, if is_loading { &LOADING } else { &GLOBALS });
    ffi::lua_rawget_(l, ffi::LUA_REGISTRYINDEX);
    raw_set_field(l, -2, b"__index");
    pop(l, 1);
}

/// Pushes the table that the one at `index` stands before; false and nothing if it is none of ours.
#[inline]
unsafe fn push_real(l: *mut lua_State, index: c_int) -> bool {
    if ffi::lua_getmetatable(l, index) == 0 {
        return false;
    }
    push_key(l, &MARK);
    ffi::lua_rawget_(l, -2);
    ffi::lua_remove(l, -2);
    if lua::is_table(l, -1) {
        return true;
    }
    pop(l, 1);
    false
}

unsafe extern "C-unwind" fn guarded(l: *mut lua_State) -> c_int {
    if lua::is_table(l, 1) && push_real(l, 1) {
        raise(l, READ_ONLY);
    }
    call_original(l)
}

unsafe extern "C-unwind" fn seeing(l: *mut lua_State) -> c_int {
    if lua::is_table(l, 1) && push_real(l, 1) {
        ffi::lua_replace(l, 1);
    }
    call_original(l)
}

unsafe fn call_original(l: *mut lua_State) -> c_int {
    let original = ffi::lua_touserdata(l, ffi::lua_upvalueindex(1));
    // SAFETY: `guard_one` put the address of a function there.
    let original: Function = std::mem::transmute::<*mut c_void, Function>(original);
    original(l)
}

unsafe extern "C-unwind" fn refuse_change(l: *mut lua_State) -> c_int {
    raise_here(l, READ_ONLY)
}

unsafe extern "C-unwind" fn refuse_missing(l: *mut lua_State) -> c_int {
    push(
        l,
        b"Script attempted to access nonexistent global variable '",
    );
    // A name that cannot be text is shown by its type.
    if ffi::lua_isstring(l, 2) == 0 {
        push(l, lua::type_name(l, ffi::lua_type(l, 2)).as_bytes());
    } else {
        ffi::lua_pushvalue(l, 2);
    }
    push(l, b"'");
    ffi::lua_concat(l, 3);
    lua::raise_top(l)
}

unsafe extern "C-unwind" fn next(l: *mut lua_State) -> c_int {
    ffi::luaL_checktype(l, 1, ffi::LUA_TTABLE);
    ffi::lua_settop(l, 2);
    if push_real(l, 1) {
        ffi::lua_replace(l, 1);
    }
    if ffi::lua_next(l, 1) != 0 {
        return 2;
    }
    ffi::lua_pushnil(l);
    1
}

unsafe extern "C-unwind" fn pairs(l: *mut lua_State) -> c_int {
    ffi::luaL_checktype(l, 1, ffi::LUA_TTABLE);
    push_function(l, next);
    ffi::lua_pushvalue(l, 1);
    ffi::lua_pushnil(l);
    3
}

unsafe extern "C-unwind" fn raw_get(l: *mut lua_State) -> c_int {
    ffi::luaL_checktype(l, 1, ffi::LUA_TTABLE);
    ffi::luaL_checkany(l, 2);
    ffi::lua_settop(l, 2);
    if push_real(l, 1) {
        ffi::lua_replace(l, 1);
    }
    ffi::lua_rawget_(l, 1);
    1
}

/// What stands before a table has no metatable that can be seen, but for the globals.
unsafe extern "C-unwind" fn get_metatable(l: *mut lua_State) -> c_int {
    ffi::luaL_checkany(l, 1);
    if lua::is_table(l, 1) && push_real(l, 1) {
        pop(l, 1);
        ffi::lua_getmetatable(l, 1);
        raw_field(l, -1, b"__metatable");
        return 1;
    }
    if ffi::lua_getmetatable(l, 1) == 0 {
        ffi::lua_pushnil(l);
        return 1;
    }
    if raw_field(l, -1, b"__metatable") == ffi::LUA_TNIL {
        pop(l, 1);
    }
    1
}

/// An error that is a table shows as its text.
unsafe extern "C-unwind" fn protected_call(l: *mut lua_State) -> c_int {
    if ffi::lua_gettop(l) == 0 {
        ffi::lua_pushboolean(l, 0);
        return 1;
    }
    let arguments = ffi::lua_gettop(l) - 1;
    let status = ffi::lua_pcall(l, arguments, ffi::LUA_MULTRET, 0);
    if status != ffi::LUA_OK && lua::is_table(l, -1) {
        if raw_field(l, -1, b"err") == ffi::LUA_TSTRING {
            ffi::lua_replace(l, -2);
        } else {
            pop(l, 1);
        }
    }
    ffi::lua_pushboolean(l, c_int::from(status == ffi::LUA_OK));
    ffi::lua_insert(l, 1);
    ffi::lua_gettop(l)
}

/// Compiles text, never bytecode, and pushes the function or the error.
pub(crate) unsafe fn load_text(l: *mut lua_State, code: &[u8], chunk: *const c_char) -> c_int {
    /// What bytecode begins with.
    const ESCAPE: u8 = 27;
    if code.first() != Some(&ESCAPE) {
        return ffi::luaL_loadbuffer(l, code.as_ptr().cast::<c_char>(), code.len(), chunk);
    }
    // Any other character that is no symbol leads to the same error, but for its number.
    let status = ffi::luaL_loadbuffer(l, c"\x02".as_ptr(), 1, chunk);
    ffi::luaL_gsub(
        l,
        lua_text(l, -1),
        c"char(2)".as_ptr(),
        c"char(27)".as_ptr(),
    );
    ffi::lua_remove(l, -2);
    status
}

unsafe fn lua_text(l: *mut lua_State, index: c_int) -> *const c_char {
    ffi::lua_tolstring(l, index, std::ptr::null_mut())
}

unsafe extern "C-unwind" fn load_string(l: *mut lua_State) -> c_int {
    let code = lua::check_bytes(l, 1);
    let default = code.as_ptr().cast::<c_char>();
    let chunk = ffi::luaL_optlstring(l, 2, default, std::ptr::null_mut());
    loaded(l, load_text(l, code, chunk))
}

unsafe fn loaded(l: *mut lua_State, status: c_int) -> c_int {
    if status == ffi::LUA_OK {
        return 1;
    }
    ffi::lua_pushnil(l);
    ffi::lua_insert(l, -2);
    2
}

unsafe extern "C-unwind" fn load(l: *mut lua_State) -> c_int {
    let chunk: *const c_char =
        ffi::luaL_optlstring(l, 2, c"=(load)".as_ptr(), std::ptr::null_mut());
    ffi::luaL_checktype(l, 1, ffi::LUA_TFUNCTION);
    ffi::lua_settop(l, 2);
    push_function(l, explain_error);
    push(l, b"");
    loop {
        ffi::lua_pushvalue(l, 1);
        let status = ffi::lua_pcall(l, 0, 1, 3);
        if status != ffi::LUA_OK {
            return loaded(l, status);
        }
        if ffi::lua_type(l, -1) == ffi::LUA_TNIL {
            pop(l, 1);
            break;
        }
        if ffi::lua_isstring(l, -1) == 0 {
            ffi::lua_createtable(l, 0, 1);
            push(l, b"ERR ");
            ffi::luaL_where(l, 1);
            push(l, b"reader function must return a string");
            ffi::lua_concat(l, 3);
            raw_set_field(l, -2, b"err");
            return loaded(l, ffi::LUA_ERRRUN);
        }
        if bytes(l, -1).is_empty() {
            pop(l, 1);
            break;
        }
        ffi::lua_concat(l, 2);
    }
    loaded(l, load_text(l, bytes(l, 4), chunk))
}

/// Makes a table of an error, and notes where in the script it came from.
pub(crate) unsafe extern "C-unwind" fn explain_error(l: *mut lua_State) -> c_int {
    ffi::lua_settop(l, 1);
    let mut place: ffi::lua_Debug = std::mem::zeroed();
    let mut is_known = ffi::lua_getstack(l, 1, &raw mut place) != 0
        && ffi::lua_getinfo(l, c"Sl".as_ptr(), &raw mut place) != 0;
    if is_known && CStr::from_ptr(place.what) == c"C" {
        is_known = ffi::lua_getstack(l, 2, &raw mut place) != 0
            && ffi::lua_getinfo(l, c"Sl".as_ptr(), &raw mut place) != 0;
    }
    if !lua::is_table(l, 1) {
        ffi::lua_createtable(l, 0, 3);
        push(l, b"ERR ");
        push_as_text(l, 1);
        ffi::lua_concat(l, 2);
        raw_set_field(l, -2, b"err");
        ffi::lua_replace(l, 1);
    }
    if is_known && is_own_table(l) {
        let source = CStr::from_ptr(place.source).to_bytes();
        push(l, source);
        raw_set_field(l, 1, b"source");
        ffi::lua_pushnumber(l, f64::from(place.currentline));
        raw_set_field(l, 1, b"line");
    }
    1
}

/// Whether fields of the table at 1 may be set: it is none that stands before another one.
unsafe fn is_own_table(l: *mut lua_State) -> bool {
    if push_real(l, 1) {
        pop(l, 1);
        return false;
    }
    true
}

/// Pushes the value at `index` as `tostring` shows it.
unsafe fn push_as_text(l: *mut lua_State, index: c_int) {
    match ffi::lua_type(l, index) {
        ffi::LUA_TSTRING | ffi::LUA_TNUMBER => {
            push(l, bytes(l, index));
        }
        ffi::LUA_TNIL => push(l, b"nil"),
        ffi::LUA_TBOOLEAN if ffi::lua_toboolean(l, index) != 0 => push(l, b"true"),
        ffi::LUA_TBOOLEAN => push(l, b"false"),
        kind => {
            let address = ffi::lua_topointer(l, index);
            lua::push_formatted(l, format_args!("{}: {address:p}", lua::type_name(l, kind)));
        }
    }
}
