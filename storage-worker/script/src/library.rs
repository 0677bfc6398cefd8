//! Libraries of functions: code that registers functions when it is loaded.
//!
//! While it is loaded a library sees nothing but `redis.register_function` and `redis.log`; afterwards its
//! functions see what scripts see. Names and flags are checked here, names of other libraries elsewhere.

use crate::lua::{self, bytes, lua_State, pop};
use crate::redis::raise_error;
use crate::vm::{Program, Vm, state};
use crate::{Host, flags, sandbox};
use mlua_sys as ffi;
use std::ffi::{c_int, c_void};

/// A function that a library has registered.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, as it was given.
    pub name: Vec<u8>,
    /// What is called.
    pub program: Program,
    /// Bits of [`flags`].
    pub flags: u8,
    /// What it does, if that was said.
    pub description: Option<Vec<u8>>,
}

/// Why a library cannot be loaded; the texts are for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// It does not compile.
    Compile(Vec<u8>),
    /// It ended with an error.
    Register(Vec<u8>),
    /// It has registered nothing.
    Nothing,
}

/// A library that is being loaded.
#[derive(Debug, Default)]
pub(crate) struct Loading {
    functions: Vec<Function>,
}

impl Vm {
    /// Loads a library; `code` is what follows its first line, the line break included.
    ///
    /// # Errors
    /// It is not usable, and nothing of it stays.
    pub fn load(&mut self, code: &[u8], host: &mut dyn Host) -> Result<Vec<Function>, LoadError> {
        let program = self.compile(code).map_err(LoadError::Compile)?;
        *self.loading() = Some(Box::default());
        let mut job = program.0;
        let is_loaded = self.protected(host, load, (&raw mut job).cast::<c_void>());
        let mut line = Vec::new();
        if !is_loaded {
            self.take_error(b"", &mut line);
        }
        let mut nothing = 0;
        self.protected(host, end_load, (&raw mut nothing).cast::<c_void>());
        self.release(program);
        let loading = self.loading().take().unwrap_or_default();
        if is_loaded && !loading.functions.is_empty() {
            return Ok(loading.functions);
        }
        for function in loading.functions {
            self.release(function.program);
        }
        Err(if is_loaded {
            LoadError::Nothing
        } else {
            LoadError::Register(line)
        })
    }
}

unsafe extern "C-unwind" fn load(l: *mut lua_State) -> c_int {
    let reference = ffi::lua_touserdata(l, 1).cast::<c_int>();
    sandbox::show_globals(l, true);
    ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, *reference);
    ffi::lua_call(l, 0, 0);
    0
}

unsafe extern "C-unwind" fn end_load(l: *mut lua_State) -> c_int {
    sandbox::show_globals(l, false);
    0
}

/// Whether a name of a library or function has only the characters that it may have.
#[must_use]
pub fn is_name(name: &[u8]) -> bool {
    let is_fine = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !name.is_empty() && name.iter().all(is_fine)
}

/// What is wrong with a name.
pub const BAD_NAME: &str = "Library names can only contain letters, numbers, or underscores(_) and must be \
                            at least one character long";

/// Places of a registration on the stack.
const NAME: c_int = 3;
const CALLBACK: c_int = 4;
const FLAGS: c_int = 5;
const DESCRIPTION: c_int = 6;

/// `redis.register_function`.
pub(crate) unsafe extern "C-unwind" fn register_function(l: *mut lua_State) -> c_int {
    if state(l).loading.is_none() {
        raise_error(
            l,
            b"redis.register_function can only be called on FUNCTION LOAD command",
        );
    }
    let count = ffi::lua_gettop(l);
    if !(1..=2).contains(&count) {
        raise_error(l, b"wrong number of arguments to redis.register_function");
    }
    ffi::lua_settop(l, DESCRIPTION);
    if count == 1 {
        take_named(l);
    } else {
        take_positional(l);
    }
    let flags = take_flags(l);
    if !is_name(bytes(l, NAME)) {
        raise_error(l, BAD_NAME.as_bytes());
    }
    let is_known = state(l).loading.as_ref().is_some_and(|loading| {
        let mut known = loading.functions.iter();
        known.any(|function| function.name == bytes(l, NAME))
    });
    if is_known {
        raise_error(l, b"Function already exists in the library");
    }
    ffi::lua_pushvalue(l, CALLBACK);
    let program = Program(ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX));
    let has_description = ffi::lua_type(l, DESCRIPTION) != ffi::LUA_TNIL;
    let name = bytes(l, NAME);
    let description = bytes(l, DESCRIPTION);
    if let Some(loading) = &mut state(l).loading {
        loading.functions.push(Function {
            name: name.to_vec(),
            program,
            flags,
            description: has_description.then(|| description.to_vec()),
        });
    }
    0
}

unsafe fn take_positional(l: *mut lua_State) {
    if ffi::lua_isstring(l, 1) == 0 {
        raise_error(
            l,
            b"first argument to redis.register_function must be a string",
        );
    }
    if ffi::lua_type(l, 2) != ffi::LUA_TFUNCTION {
        raise_error(
            l,
            b"second argument to redis.register_function must be a function",
        );
    }
    ffi::lua_pushvalue(l, 1);
    ffi::lua_replace(l, NAME);
    ffi::lua_pushvalue(l, 2);
    ffi::lua_replace(l, CALLBACK);
}

unsafe fn take_named(l: *mut lua_State) {
    if !lua::is_table(l, 1) {
        raise_error(
            l,
            b"calling redis.register_function with a single argument is only applicable to Lua table \
              (representing named arguments).",
        );
    }
    ffi::lua_pushnil(l);
    while ffi::lua_next(l, 1) != 0 {
        if ffi::lua_isstring(l, -2) == 0 {
            raise_error(
                l,
                b"named argument key given to redis.register_function is not a string",
            );
        }
        // A number must stay one, or `lua_next` loses its place.
        ffi::lua_pushvalue(l, -2);
        let name = bytes(l, -1);
        let is_text = ffi::lua_isstring(l, -2) != 0;
        let kind = ffi::lua_type(l, -2);
        let place = if name.eq_ignore_ascii_case(b"function_name") {
            if !is_text {
                raise_error(
                    l,
                    b"function_name argument given to redis.register_function must be a string",
                );
            }
            NAME
        } else if name.eq_ignore_ascii_case(b"description") {
            if !is_text {
                raise_error(
                    l,
                    b"description argument given to redis.register_function must be a string",
                );
            }
            DESCRIPTION
        } else if name.eq_ignore_ascii_case(b"callback") {
            if kind != ffi::LUA_TFUNCTION {
                raise_error(
                    l,
                    b"callback argument given to redis.register_function must be a function",
                );
            }
            CALLBACK
        } else if name.eq_ignore_ascii_case(b"flags") {
            if kind != ffi::LUA_TTABLE {
                raise_error(
                    l,
                    b"flags argument to redis.register_function must be a table representing function \
                      flags",
                );
            }
            FLAGS
        } else {
            raise_error(l, b"unknown argument given to redis.register_function")
        };
        pop(l, 1);
        ffi::lua_replace(l, place);
    }
    if ffi::lua_type(l, NAME) == ffi::LUA_TNIL {
        raise_error(
            l,
            b"redis.register_function must get a function name argument",
        );
    }
    if ffi::lua_type(l, CALLBACK) == ffi::LUA_TNIL {
        raise_error(l, b"redis.register_function must get a callback argument");
    }
}

unsafe fn take_flags(l: *mut lua_State) -> u8 {
    let mut all = 0;
    if !lua::is_table(l, FLAGS) {
        return all;
    }
    for at in 1.. {
        ffi::lua_rawgeti_(l, FLAGS, at);
        if ffi::lua_type(l, -1) == ffi::LUA_TNIL {
            pop(l, 1);
            break;
        }
        let is_text = ffi::lua_type(l, -1) == ffi::LUA_TSTRING;
        let Some(flag) = flags::by_name(bytes(l, -1)).filter(|_| is_text) else {
            raise_error(l, b"unknown flag given")
        };
        all |= flag;
        pop(l, 1);
    }
    all
}
