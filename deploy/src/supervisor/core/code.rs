//! Scripts and libraries of functions that all processes know.
//!
//! A script that is only sent with EVAL is none of them: a gateway remembers it for a while and adds it
//! when somebody asks for it by its SHA1.

use proto::registry::{Library, Registry, Script};
use runtime::LibraryChange;
use serde_json::to_string;

/// Bytes of all of them as JSON, at most: half of what the registry holds.
const BYTES_MAX: usize = 32 << 20;

/// The same for libraries.
const LIBRARY_BYTES_MAX: usize = 16 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Code {
    scripts: Vec<Script>,
    script_bytes: usize,
    script_flushes: u64,
    libraries: Vec<Library>,
    revision: u64,
}

impl Code {
    /// Adds a script; false if it is known.
    pub(super) fn add_script(&mut self, script: Script) -> Result<bool, String> {
        if self.scripts.iter().any(|known| known.sha1 == script.sha1) {
            return Ok(false);
        }
        let bytes =
            self.script_bytes + to_string(&script.body).map_or(BYTES_MAX, |text| text.len());
        if bytes > BYTES_MAX {
            return Err(format!(
                "scripts may have {BYTES_MAX} bytes in all; SCRIPT FLUSH makes room"
            ));
        }
        self.script_bytes = bytes;
        self.scripts.push(script);
        Ok(true)
    }

    pub(super) fn flush_scripts(&mut self) {
        self.scripts.clear();
        self.script_bytes = 0;
        self.script_flushes += 1;
    }

    /// Adds or removes libraries: all that was asked for, or nothing.
    pub(super) fn change_libraries(&mut self, change: LibraryChange) -> Result<(), String> {
        let mut libraries = match change {
            LibraryChange::Set(libraries) => joined(Vec::new(), libraries, false)?,
            LibraryChange::Add { libraries, replace } => {
                joined(self.libraries.clone(), libraries, replace)?
            }
            LibraryChange::Delete(name) => {
                let mut libraries = self.libraries.clone();
                let position = libraries.iter().position(|known| known.name == name);
                libraries.remove(position.ok_or("Library not found")?);
                libraries
            }
        };
        let text = to_string(&libraries).map_err(|error| error.to_string())?;
        if text.len() > LIBRARY_BYTES_MAX {
            return Err(format!(
                "libraries may have {LIBRARY_BYTES_MAX} bytes in all"
            ));
        }
        // Those that are new have no number yet.
        for library in libraries.iter_mut().filter(|library| library.revision == 0) {
            self.revision += 1;
            library.revision = self.revision;
        }
        self.libraries = libraries;
        Ok(())
    }

    /// Writes them into the registry.
    pub(super) fn put_into(&self, registry: &mut Registry) {
        registry.libraries.clone_from(&self.libraries);
        registry.scripts.clone_from(&self.scripts);
        registry.script_flushes = self.script_flushes;
    }
}

/// Adds libraries to others. Names of libraries and of functions are used once.
fn joined(
    mut all: Vec<Library>,
    libraries: Vec<Library>,
    replace: bool,
) -> Result<Vec<Library>, String> {
    for library in libraries {
        let position = all.iter().position(|known| known.name == library.name);
        if let Some(position) = position {
            if !replace {
                return Err(format!("Library {} already exists", library.name));
            }
            all.remove(position);
        }
        for function in &library.functions {
            let mut known = all.iter().flat_map(|library| &library.functions);
            if known.any(|known| known.name.eq_ignore_ascii_case(&function.name)) {
                return Err(format!("Function {} already exists", function.name));
            }
        }
        all.push(library);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use proto::registry::Function;

    fn library(name: &str, function: &str) -> Library {
        let function = Function {
            name: function.into(),
            description: None,
            flags: Vec::new(),
        };
        Library {
            name: name.into(),
            code: String::new(),
            revision: 0,
            functions: vec![function],
        }
    }

    #[test]
    fn names_are_used_once() {
        let mut code = Code::default();
        let add = |libraries, replace| LibraryChange::Add { libraries, replace };
        assert!(
            code.change_libraries(add(vec![library("a", "f")], false))
                .is_ok()
        );
        assert!(
            code.change_libraries(add(vec![library("a", "g")], false))
                .is_err()
        );
        assert!(
            code.change_libraries(add(vec![library("b", "F")], false))
                .is_err()
        );
        assert!(
            code.change_libraries(add(vec![library("a", "g")], true))
                .is_ok()
        );
        assert!(
            code.change_libraries(add(vec![library("b", "f"), library("c", "f")], false))
                .is_err()
        );
        assert_eq!(code.libraries.len(), 1, "all or nothing");
        assert!(
            code.change_libraries(LibraryChange::Delete("b".into()))
                .is_err()
        );
        assert!(
            code.change_libraries(LibraryChange::Delete("a".into()))
                .is_ok()
        );
        assert!(
            code.change_libraries(LibraryChange::Set(vec![library("x", "y")]))
                .is_ok()
        );
    }

    use super::*;

    #[test]
    fn a_script_is_kept_once_and_all_have_a_bound() {
        let script = |sha1: &str, len| Script {
            sha1: sha1.into(),
            body: "x".repeat(len),
        };
        let mut code = Code::default();
        assert_eq!(code.add_script(script("a", 1)), Ok(true));
        assert_eq!(code.add_script(script("a", 1)), Ok(false));
        assert!(code.add_script(script("b", BYTES_MAX)).is_err());
        code.flush_scripts();
        assert_eq!(code.add_script(script("b", BYTES_MAX / 2)), Ok(true));
    }
}
