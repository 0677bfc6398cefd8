//! Owns a Lua state: its memory, its limits, and the way a script is compiled and run.
//!
//! Why our own allocator: a script that eats memory must end with an error instead of the process, and
//! the address of `State` travels with it, so that a function that Lua calls finds its state with one load.
//!
//! Everything that may raise an error of Lua runs inside a protected call.

use crate::call::KEPT_BYTES_MAX;
use crate::json::JsonSettings;
use crate::library::Loading;
use crate::lua::{self, bytes, lua_State, pop, push, raw_field, raw_set_field};
use crate::memory::Memory;
use crate::random::Rand48;
use crate::{Host, Tick, sandbox, to_resp};
use mlua_sys as ffi;
use proto::resp::ReplyWriter;
use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::ptr::{self, NonNull};

/// For whom a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// EVAL and friends: keys and arguments are globals.
    Scripts,
    /// Libraries of functions, which get keys and arguments as values.
    Functions,
}

/// Instructions between two looks at whether a script may go on.
const INSTRUCTIONS_PER_TICK: c_int = 100_000;

/// Percent of the memory in use at which Lua collects garbage.
const PAUSE: c_int = 200;
/// The same while there is little.
const LAZY_PAUSE: c_int = 1000;
/// What is little.
const LAZY_BYTES_MAX: usize = 4 << 20;

/// What belongs to a Lua state beside it.
pub(crate) struct State {
    memory: Memory,
    lua: *mut lua_State,
    /// Garbage is collected seldom, as there is little of everything.
    is_lazy: bool,
    pub(crate) kind: Kind,
    host: Option<NonNull<dyn Host>>,
    /// `redis.setresp(3)`.
    pub(crate) is_resp3: bool,
    /// The result is an error that has been counted.
    pub(crate) is_result_counted: bool,
    /// Arguments of the nested command.
    pub(crate) words: Vec<u8>,
    pub(crate) spans: Vec<(u32, u32)>,
    /// Its reply.
    pub(crate) reply: Vec<u8>,
    /// For whatever has to be built.
    pub(crate) scratch: Vec<u8>,
    pub(crate) json: JsonSettings,
    pub(crate) random: Rand48,
    pub(crate) loading: Option<Box<Loading>>,
    is_killed: bool,
}

impl State {
    /// What the script runs in.
    ///
    /// # Safety
    /// Only while a script runs, and not while another such reference is used.
    #[inline]
    pub(crate) unsafe fn host<'a>(&mut self) -> Option<&'a mut dyn Host> {
        // SAFETY: `Vm::protected` sets it for as long as the script runs.
        self.host.map(|mut host| host.as_mut())
    }
}

/// The state's companion (L1).
#[inline]
pub(crate) unsafe fn state<'a>(l: *mut lua_State) -> &'a mut State {
    let mut companion: *mut c_void = ptr::null_mut();
    ffi::lua_getallocf(l, &raw mut companion);
    &mut *companion.cast::<State>()
}

unsafe extern "C" fn allocate(
    companion: *mut c_void,
    block: *mut c_void,
    old: usize,
    new: usize,
) -> *mut c_void {
    let state = companion.cast::<State>();
    let moved = (*state).memory.change(block, old, new);
    if (*state).is_lazy && (*state).memory.used() > LAZY_BYTES_MAX {
        // Only a number is stored: this is safe wherever Lua is.
        (*state).is_lazy = false;
        ffi::lua_gc((*state).lua, ffi::LUA_GCSETPAUSE, PAUSE);
    }
    moved
}

/// A compiled script.
#[derive(Debug, PartialEq, Eq)]
pub struct Program(pub(crate) c_int);

/// Keys and arguments of a script.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    /// The keys.
    pub keys: Slices<'a>,
    /// The other arguments.
    pub others: Slices<'a>,
}

/// Some slices of one buffer.
pub type Slices<'a> = crate::Words<'a>;

/// How a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its result is the reply.
    Done,
    /// An error is the reply.
    Failed,
    /// The same, and it says of itself that it has been counted.
    FailedAndCounted,
}

/// A Lua state with everything that scripts see.
pub struct Vm {
    lua: NonNull<lua_State>,
    state: NonNull<State>,
}

impl fmt::Debug for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vm")
            .field("used_bytes", &self.used_bytes())
            .finish_non_exhaustive()
    }
}

impl Vm {
    /// A state that may use so much memory; `None` if there is not even enough for the libraries.
    #[must_use]
    pub fn new(kind: Kind, bytes_max: usize) -> Option<Self> {
        let state = Box::new(State {
            memory: Memory::new(bytes_max),
            lua: ptr::null_mut(),
            is_lazy: false,
            kind,
            host: None,
            is_resp3: false,
            is_result_counted: false,
            words: Vec::new(),
            spans: Vec::new(),
            reply: Vec::new(),
            scratch: Vec::new(),
            json: JsonSettings::default(),
            random: Rand48::default(),
            loading: None,
            is_killed: false,
        });
        let state = NonNull::from(Box::leak(state));
        // SAFETY: `allocate` gets the companion that it expects, which lives until `drop`.
        let lua = unsafe { ffi::lua_newstate(allocate, state.as_ptr().cast::<c_void>()) };
        let Some(lua) = NonNull::new(lua) else {
            // SAFETY: leaked above, and nobody knows it.
            drop(unsafe { Box::from_raw(state.as_ptr()) });
            return None;
        };
        let mut vm = Self { lua, state };
        vm.state().lua = lua.as_ptr();
        // SAFETY: L1; errors end in the protected call.
        let status = unsafe { ffi::lua_cpcall(vm.lua.as_ptr(), sandbox::build, ptr::null_mut()) };
        if status != ffi::LUA_OK {
            return None;
        }
        vm.set_hook(ffi::LUA_MASKCOUNT, INSTRUCTIONS_PER_TICK);
        vm.be_lazy();
        Some(vm)
    }

    /// While Lua has little memory a collection would mostly look at the libraries, again and again.
    fn be_lazy(&mut self) {
        if !self.state().is_lazy && self.used_bytes() < LAZY_BYTES_MAX / 2 {
            self.state().is_lazy = true;
            // SAFETY: L1; only a number is stored.
            unsafe { ffi::lua_gc(self.lua.as_ptr(), ffi::LUA_GCSETPAUSE, LAZY_PAUSE) };
        }
    }

    fn set_hook(&self, mask: c_int, count: c_int) {
        // SAFETY: L1.
        unsafe { ffi::lua_sethook(self.lua.as_ptr(), Some(tick), mask, count) };
    }

    fn state(&mut self) -> &mut State {
        // SAFETY: made in `new`, freed in `drop`; Lua's functions use it only while they run.
        unsafe { self.state.as_mut() }
    }

    /// Bytes that Lua uses.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        // SAFETY: as in `state`.
        unsafe { self.state.as_ref() }.memory.used()
    }

    /// Compiles a script, whose first line may say what language it is in.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile(&mut self, body: &[u8]) -> Result<Program, Vec<u8>> {
        let l = self.lua.as_ptr();
        let mut job = Compile {
            code: body,
            chunk: match self.state().kind {
                Kind::Scripts => c"@user_script".as_ptr(),
                Kind::Functions => c"@user_function".as_ptr(),
            },
            reference: ffi::LUA_NOREF,
        };
        // SAFETY: L1; the job lives as long as the call.
        unsafe {
            ffi::lua_settop(l, 0);
            let status = ffi::lua_cpcall(l, compile, (&raw mut job).cast::<c_void>());
            if status != ffi::LUA_OK {
                let text = bytes(l, -1).to_vec();
                ffi::lua_settop(l, 0);
                return Err(text);
            }
        }
        Ok(Program(job.reference))
    }

    /// Forgets a compiled script or a function.
    pub fn release(&mut self, program: Program) {
        // SAFETY: L1; taking a number out of the registry raises nothing.
        unsafe { ffi::luaL_unref(self.lua.as_ptr(), ffi::LUA_REGISTRYINDEX, program.0) };
    }

    /// Runs a script; what it returns, or the error it ends with, is written to `reply`. `name` is what
    /// errors call it.
    pub fn run(
        &mut self,
        program: &Program,
        name: &[u8],
        arguments: Arguments<'_>,
        host: &mut dyn Host,
        reply: &mut ReplyWriter<'_>,
    ) -> Outcome {
        self.state().is_resp3 = false;
        self.state().is_result_counted = false;
        self.be_lazy();
        let start = reply.len();
        let mut job = Run {
            reference: program.0,
            arguments,
            reply: (&raw mut *reply).cast::<c_void>(),
        };
        let job = (&raw mut job).cast::<c_void>();
        if self.protected(host, run, job) {
            return if self.state().is_result_counted {
                Outcome::FailedAndCounted
            } else {
                Outcome::Done
            };
        }
        reply.truncate(start);
        let mut line = Vec::new();
        let is_counted = self.take_error(name, &mut line);
        reply.error_bytes(&line);
        if is_counted {
            Outcome::FailedAndCounted
        } else {
            Outcome::Failed
        }
    }

    /// Calls `function` with `job`; false if it ended with an error, which is on the stack then.
    pub(crate) fn protected(
        &mut self,
        host: &mut dyn Host,
        function: lua::Function,
        job: *mut c_void,
    ) -> bool {
        let l = self.lua.as_ptr();
        let host: NonNull<dyn Host + '_> = NonNull::from(host);
        // SAFETY: the reference is taken back below, before the borrow that it comes from ends.
        let host: NonNull<dyn Host> = unsafe { std::mem::transmute(host) };
        self.state().host = Some(host);
        // SAFETY: L1. Light values and functions without upvalues need no memory.
        let status = unsafe {
            ffi::lua_settop(l, 0);
            lua::push_function(l, sandbox::explain_error);
            lua::push_function(l, function);
            ffi::lua_pushlightuserdata(l, job);
            ffi::lua_pcall(l, 1, 0, 1)
        };
        let state = self.state();
        state.host = None;
        for buffer in [&mut state.words, &mut state.reply, &mut state.scratch] {
            if buffer.capacity() > KEPT_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
        if std::mem::take(&mut state.is_killed) {
            self.set_hook(ffi::LUA_MASKCOUNT, INSTRUCTIONS_PER_TICK);
        }
        if status == ffi::LUA_ERRMEM {
            self.collect_garbage();
        }
        if status == ffi::LUA_OK {
            // SAFETY: L1.
            unsafe { ffi::lua_settop(l, 0) };
        }
        status == ffi::LUA_OK
    }

    /// Frees what nobody uses.
    pub fn collect_garbage(&mut self) {
        let l = self.lua.as_ptr();
        // SAFETY: L1; there are no finalizers that could raise an error.
        unsafe {
            ffi::lua_gc(l, ffi::LUA_GCRESTART, 0);
            ffi::lua_gc(l, ffi::LUA_GCCOLLECT, 0);
        }
    }

    /// The line of the error on the stack, which goes. True if it says that it has been counted.
    pub(crate) fn take_error(&mut self, name: &[u8], line: &mut Vec<u8>) -> bool {
        let l = self.lua.as_ptr();
        // Nothing catches errors here, so memory must not be short.
        let limit = self.state().memory.set_limit(usize::MAX);
        // SAFETY: L1.
        let is_counted = unsafe { read_error(l, name, line) };
        self.state().memory.set_limit(limit);
        is_counted
    }

    /// The library that is being loaded.
    pub(crate) fn loading(&mut self) -> &mut Option<Box<Loading>> {
        &mut self.state().loading
    }
}

unsafe fn read_error(l: *mut lua_State, name: &[u8], line: &mut Vec<u8>) -> bool {
    if !lua::is_table(l, -1) {
        line.extend_from_slice(b"ERR ");
        line.extend_from_slice(bytes(l, -1));
        ffi::lua_settop(l, 0);
        return false;
    }
    let is_text = matches!(
        raw_field(l, -1, b"err"),
        ffi::LUA_TSTRING | ffi::LUA_TNUMBER
    );
    line.extend_from_slice(if is_text {
        bytes(l, -1)
    } else {
        b"ERR unknown error"
    });
    pop(l, 1);
    let has_source = raw_field(l, -1, b"source") == ffi::LUA_TSTRING;
    let has_line = raw_field(l, -2, b"line") == ffi::LUA_TNUMBER;
    if has_source && has_line && !name.is_empty() {
        line.extend_from_slice(b" script: ");
        line.extend_from_slice(name);
        line.extend_from_slice(b", on ");
        line.extend_from_slice(bytes(l, -2));
        line.extend_from_slice(b":");
        line.extend_from_slice(bytes(l, -1));
        line.extend_from_slice(b".");
    }
    pop(l, 2);
    let is_counted = to_resp::is_counted(l);
    ffi::lua_settop(l, 0);
    is_counted
}

impl Drop for Vm {
    fn drop(&mut self) {
        // SAFETY: nobody else knows the state; its companion is used until it is closed.
        unsafe {
            ffi::lua_close(self.lua.as_ptr());
            drop(Box::from_raw(self.state.as_ptr()));
        }
    }
}

/// What `compile` is given.
struct Compile<'a> {
    code: &'a [u8],
    chunk: *const c_char,
    reference: c_int,
}

unsafe extern "C-unwind" fn compile(l: *mut lua_State) -> c_int {
    let job = ffi::lua_touserdata(l, 1).cast::<Compile<'_>>();
    if sandbox::load_text(l, (*job).code, (*job).chunk) != ffi::LUA_OK {
        ffi::lua_error(l);
    }
    (*job).reference = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
    0
}

/// What `run` is given.
struct Run<'a> {
    reference: c_int,
    arguments: Arguments<'a>,
    reply: *mut c_void,
}

unsafe extern "C-unwind" fn run(l: *mut lua_State) -> c_int {
    let job = ffi::lua_touserdata(l, 1).cast::<Run<'_>>();
    let Arguments { keys, others } = (*job).arguments;
    let arguments = match state(l).kind {
        Kind::Scripts => {
            sandbox::push_globals(l);
            push_table(l, keys);
            raw_set_field(l, -2, b"KEYS");
            push_table(l, others);
            raw_set_field(l, -2, b"ARGV");
            pop(l, 1);
            ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, (*job).reference);
            0
        }
        Kind::Functions => {
            ffi::lua_rawgeti_(l, ffi::LUA_REGISTRYINDEX, (*job).reference);
            push_table(l, keys);
            push_table(l, others);
            2
        }
    };
    ffi::lua_call(l, arguments, 1);
    let reply = (*job).reply.cast::<ReplyWriter<'_>>();
    to_resp::convert(l, &mut *reply);
    0
}

unsafe fn push_table(l: *mut lua_State, words: Slices<'_>) {
    let count = c_int::try_from(words.spans.len()).unwrap_or(c_int::MAX);
    ffi::lua_createtable(l, count, 0);
    for at in 0..count {
        push(l, words.get(at as usize));
        ffi::lua_rawseti_(l, -2, at + 1);
    }
}

/// Looks whether the script may go on.
unsafe extern "C-unwind" fn tick(l: *mut lua_State, _: *mut ffi::lua_Debug) {
    let state = state(l);
    let told = state.host().map_or(Tick::GoOn, Host::tick);
    let text: &[u8] = match told {
        Tick::GoOn => return,
        Tick::TimedOut => b"FUNCTION LOAD timeout",
        // Functions that are killed say the same.
        Tick::Kill => b"Script killed by user with SCRIPT KILL...",
    };
    // From here on it is told again with every line, so that it cannot catch the error and go on.
    state.is_killed = true;
    ffi::lua_sethook(l, Some(tick), ffi::LUA_MASKLINE, 0);
    crate::redis::raise_error(l, text)
}
