//! Libraries of functions in a worker: loaded as soon as the registry names them.
//!
//! A library that stays the same stays loaded, with what its functions remember.
//!
//! Not here: which libraries there are (supervisor), how a function runs (`commands::script`).

use crate::scripts::{LUA_BYTES_MAX, ScriptError};
use proto::registry::{self, Library, Registry};
use proto::settings::bytes::{to_bytes, to_text};
use script::{Host, Kind, LoadError, Program, Tick, Vm, Words, flags, shebang};
use std::collections::HashMap;

/// Loading a library must not take more looks at it: half a second or so.
const LOAD_TICKS_MAX: u32 = 1000;

/// A function that can be called.
#[derive(Debug)]
pub struct Function {
    /// What runs.
    pub program: Program,
    /// What it promises.
    pub flags: u8,
    /// Its name, as registered.
    pub name: Vec<u8>,
    library: String,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Functions {
    /// Runs functions; made for the first library.
    pub vm: Option<Vm>,
    /// By name in lower case.
    by_name: HashMap<Vec<u8>, Function>,
    libraries: Vec<Library>,
}

/// What a library does while it is loaded.
#[derive(Debug)]
struct Loader {
    ticks: u32,
}

impl Host for Loader {
    fn call(&mut self, _: Words<'_>, _: bool, reply: &mut Vec<u8>) {
        reply.extend_from_slice(b"-ERR redis.call can not be called while a library is loaded\r\n");
    }

    fn may_call(&mut self, _: Words<'_>) -> Option<bool> {
        Some(false)
    }

    fn log(&mut self, level: u8, text: &[u8]) {
        tracing::info!(level, "function: {}", String::from_utf8_lossy(text));
    }

    fn tick(&mut self) -> Tick {
        self.ticks += 1;
        if self.ticks > LOAD_TICKS_MAX {
            Tick::TimedOut
        } else {
            Tick::GoOn
        }
    }
}

impl Functions {
    /// Loads what is new, drops what is gone.
    pub fn take_registry(&mut self, registry: &Registry) {
        if self.libraries == registry.libraries {
            return;
        }
        let gone: Vec<String> = self
            .libraries
            .iter()
            .filter(|library| !registry.libraries.contains(library))
            .map(|library| library.name.clone())
            .collect();
        for name in gone {
            self.drop_library(&name);
        }
        if registry.libraries.is_empty() {
            // All of Lua's memory at once.
            self.vm = None;
        }
        for library in &registry.libraries {
            if !self.libraries.contains(library) {
                self.load_for_good(library);
            }
        }
        self.libraries.clone_from(&registry.libraries);
    }

    fn drop_library(&mut self, library: &str) {
        let names: Vec<Vec<u8>> = self
            .by_name
            .iter()
            .filter(|(_, function)| function.library == library)
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            if let (Some(function), Some(vm)) = (self.by_name.remove(&name), &mut self.vm) {
                vm.release(function.program);
            }
        }
    }

    fn load_for_good(&mut self, library: &Library) {
        let body = to_bytes(&library.code);
        match self.load(&body) {
            Ok((_, functions)) => {
                for function in functions {
                    let loaded = Function {
                        program: function.program,
                        flags: function.flags,
                        name: function.name.clone(),
                        library: library.name.clone(),
                    };
                    self.by_name
                        .insert(function.name.to_ascii_lowercase(), loaded);
                }
            }
            Err(error) => {
                tracing::error!(name = library.name, ?error, "a library cannot be loaded");
            }
        }
    }

    fn load(&mut self, body: &[u8]) -> Result<(Vec<u8>, Vec<script::Function>), ScriptError> {
        let library = shebang::of_library(body).map_err(ScriptError::Text)?;
        if self.vm.is_none() {
            self.vm = Vm::new(Kind::Functions, LUA_BYTES_MAX);
        }
        let vm = self.vm.as_mut().ok_or(ScriptError::Memory)?;
        let mut loader = Loader { ticks: 0 };
        let functions = vm.load(library.code, &mut loader).map_err(load_error)?;
        Ok((library.name, functions))
    }

    /// Looks whether a library can be loaded, and what it would register.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(&mut self, body: &[u8], replaces: bool) -> Result<Library, ScriptError> {
        let name = shebang::of_library(body).map_err(ScriptError::Text)?.name;
        let name = to_text(&name);
        let is_known = self.libraries.iter().any(|library| library.name == name);
        if is_known && !replaces {
            return Err(text(&format!("Library '{name}' already exists")));
        }
        let (_, functions) = self.load(body)?;
        let mut taken = functions.iter().filter(|function| {
            let other = self.by_name.get(&function.name.to_ascii_lowercase());
            other.is_some_and(|other| other.library != name)
        });
        let taken = taken.next().map(|function| to_text(&function.name));
        let library = self.describe(&name, body, functions);
        match taken {
            Some(taken) => Err(text(&format!("Function {taken} already exists"))),
            None => Ok(library),
        }
    }

    /// The same for one that may stand in the place of any other: who adds it looks at names again.
    ///
    /// # Errors
    /// It cannot.
    pub fn check_alone(&mut self, body: &[u8]) -> Result<Library, ScriptError> {
        let (name, functions) = self.load(body)?;
        Ok(self.describe(&to_text(&name), body, functions))
    }

    /// Describes a library, which is not kept.
    fn describe(&mut self, name: &str, body: &[u8], functions: Vec<script::Function>) -> Library {
        let mut described = Vec::new();
        for function in functions {
            described.push(registry::Function {
                name: to_text(&function.name),
                description: function.description.as_deref().map(to_text),
                flags: flags::NAMES
                    .iter()
                    .filter(|(bit, _)| function.flags & bit != 0)
                    .map(|(_, flag)| (*flag).to_owned())
                    .collect(),
            });
            if let Some(vm) = &mut self.vm {
                vm.release(function.program);
            }
        }
        Library {
            name: name.to_owned(),
            code: to_text(body),
            functions: described,
            revision: 0,
        }
    }

    /// All libraries.
    pub fn libraries(&self) -> &[Library] {
        &self.libraries
    }

    /// The parts that a call of a function needs.
    pub fn parts(&mut self, name: &[u8]) -> Option<(&mut Vm, &Function)> {
        let function = self.by_name.get(&name.to_ascii_lowercase())?;
        Some((self.vm.as_mut()?, function))
    }
}

fn text(text: &str) -> ScriptError {
    ScriptError::Text(text.as_bytes().to_vec())
}

fn load_error(error: LoadError) -> ScriptError {
    let (what, why): (&[u8], Vec<u8>) = match error {
        LoadError::Compile(why) => (b"Error compiling function: ", why),
        LoadError::Register(why) => (b"Error registering functions: ", why),
        LoadError::Nothing => (b"No functions registered", Vec::new()),
    };
    ScriptError::Text([what, &why].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, function: &str) -> String {
        format!(
            "#!lua name={name}\nlocal n=0 redis.register_function('{function}',function() n=n+1 return n end)"
        )
    }

    #[test]
    fn what_is_checked_is_not_kept_until_the_registry_names_it() {
        let mut functions = Functions::default();
        let a = functions
            .check(library("a", "F").as_bytes(), false)
            .unwrap();
        assert_eq!((a.name.as_str(), a.functions[0].name.as_str()), ("a", "F"));
        assert!(functions.parts(b"f").is_none());
        functions.load_for_good(&a);
        functions.libraries.push(a);
        assert!(functions.parts(b"f").is_some());
        let again = functions.check(library("a", "g").as_bytes(), false);
        assert_eq!(again, Err(text("Library 'a' already exists")));
        assert!(functions.check(library("a", "g").as_bytes(), true).is_ok());
        let taken = functions.check(library("b", "f").as_bytes(), true);
        assert_eq!(taken, Err(text("Function f already exists")));
        functions.drop_library("a");
        assert!(functions.parts(b"f").is_none());
    }
}
