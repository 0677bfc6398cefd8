//! Transcripts: what a client says and what the server answers, byte for byte.
//!
//! ```text
//! # GETDEL returns the value and removes the key.
//!
//! == it removes the key
//! > SET name ada
//! < +OK
//! > GETDEL name
//! < "ada"
//! > GETDEL name
//! < $-1
//! <3 _
//!
//! == a second connection does not see it  [plain]
//! b> GET name
//! < $-1
//! ```
//!
//! | line | meaning |
//! | --- | --- |
//! | `== title  [tag] ...` | starts a case: empty databases, new connections |
//! | `> words` | sends a command on the connection `a`; `b> words` on another one; quoting as in redis-cli |
//! | `>> words` | sends it together with the next `>` line, in one write; the replies follow that one |
//! | `>! "bytes"` | sends bytes as they are; any number of replies follow |
//! | `< reply` | the reply in both protocols; a line that starts with two blanks continues it |
//! | `<3 reply` | the reply in RESP3, where it differs |
//! | `<ours reply` | our reply, where ARCHITECTURE.md section 11 says that we differ on purpose |
//! | `<ours3 reply` | the same in RESP3 |
//! | `! wait 20` | waits for 20 milliseconds |
//! | `! read` | nothing is sent; replies follow |
//! | `! eventually` | the next command is sent again until the reply fits |
//! | `! close b` | closes a connection |
//! | `# text` | a comment |
//!
//! Tags: `plain` (no HELLO is sent, so RESP2, once), `resp2`, `resp3` (only that protocol), `redis`, `ours` (only
//! that server), `one-worker` (with several it is not the same yet), `own` (a server of its own, ended after the
//! case), `with name value` (a server of its own with this setting; may be given more than once). A tag line
//! `@with name value` in front of the first case holds for the whole file; `@logs text` announces warnings with
//! that text, which would fail the test otherwise. The expected replies are described in
//! [`crate::pattern`].
//!
//! With `UPDATE_EXPECT=1` a run against the real Redis writes what it answered over what does not fit, and keeps
//! what fits, holes included. The result is to be read before it is committed.

mod bless;
mod parse;
mod run;

pub use parse::{Case, Expected, Step, StepKind, Transcript, command_names};
pub use run::{Protocol, World, check_file};

/// Makes tests of transcripts: for each file one test with 1, 2 and 4 workers, and one against a real Redis.
///
/// ```text
/// harness::transcripts!("tests/commands/strings": append, get, getrange);
/// ```
///
/// stands for `mod append { fn with_1_worker ... }` and so on, each with its own server.
#[macro_export]
macro_rules! transcripts {
    ($folder:literal : $($name:ident),* $(,)?) => {
        $(
            mod $name {
                const FILE: &str = concat!($folder, "/", stringify!($name), ".resp");

                fn check(workers: usize) {
                    let kind = $crate::Kind::sirocco($crate::sirocco!(), workers);
                    $crate::transcript::check_file(FILE, &kind);
                }

                #[test]
                fn with_1_worker() {
                    check(1);
                }

                #[test]
                fn with_2_workers() {
                    check(2);
                }

                #[test]
                fn with_4_workers() {
                    check(4);
                }

                #[test]
                fn as_a_real_redis() {
                    if let Some(kind) = $crate::server::reference() {
                        $crate::transcript::check_file(FILE, &kind);
                    }
                }
            }
        )*

        #[test]
        fn no_transcript_is_forgotten() {
            $crate::transcript::assert_complete($folder, &[$(stringify!($name)),*]);
        }
    };
}

/// Asserts that a folder holds exactly the transcripts of these names.
///
/// # Panics
/// When it does not.
pub fn assert_complete(folder: &str, names: &[&str]) {
    let mut found: Vec<String> = std::fs::read_dir(crate::workspace().join(folder))
        .unwrap_or_else(|error| panic!("{folder}: {error}"))
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_suffix(".resp")
                .map(str::to_owned)
        })
        .collect();
    found.sort();
    let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    names.sort();
    assert_eq!(
        found, names,
        "the transcripts of {folder} and the list in its main.rs differ"
    );
}
