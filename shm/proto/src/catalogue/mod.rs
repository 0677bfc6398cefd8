//! One catalogue of commands: everything that is known about a command before it runs.
//!
//! Two lists of rows (`storage`, `gateway`), one per process that executes them, and the containers
//! of subcommands. A row is an id, its columns and the path of the function that runs it:
//!
//! ```text
//!   /// Returns the string stored at a key.
//!   Get ("get", 2, READONLY | FAST, one(RO | ACCESS), Owner, docs(...)) => string::get;
//!    │        │                                                              │
//!    │        └ columns: expanded only in here, into SPECS and DETAILS       └ expanded only in the
//!    └ the id: `StorageCommand::Get`, index into all tables                    process, into its
//!                                                                              table of functions
//! ```
//!
//! Why: the gateway must know all about a command without linking the code that runs it. The path is
//! nothing but tokens here; the worker expands the same rows into its dispatch table, so a row
//! without a function does not compile there, and a function without a row is reported as unused.
//! Columns stand in one pair of parentheses, so a new column touches this crate only.
//!
//! Invariants
//!   C1  names are unique over all tables.
//!   C2  ids are dense and travel in frames; [`fingerprint`] covers all rows, so two builds that
//!       number them differently refuse to talk to each other.
//!
//! Different from Redis 8.0.6 on purpose
//!   - `SET` has Valkey's `IFEQ`, and `DELIFEQ` exists.
//!   - Summaries, complexities, histories and notes are in our own words.
//!   - `CLUSTER` has only `KEYSLOT`, `CLIENT` only what works without tracking and blocking; commands
//!     of other types have no rows until they are served, so COMMAND COUNT is ours.
//!   - There are no modules: `COMMAND LIST FILTERBY MODULE` is always empty.
//!
//! Everything else that COMMAND, INFO, DOCS and GETKEYS show was compared with it, byte by byte, in
//! RESP2 and RESP3.
//!
//! Cost: [`find`] is one probe of a table made at compile time, about 5 ns, no allocation.
//!
//! Not here: what COMMAND prints (`command_docs`), the functions (gateway, storage worker).

pub mod arguments;
pub mod containers;
mod fingerprint;
pub mod flags;
pub mod gateway;
pub mod key_options;
pub mod keys;
mod lookup;
pub mod route;
pub mod spec;
pub mod storage;

pub use fingerprint::fingerprint;
pub use flags::{Access, Categories, Flags, access, category, flag};
pub use gateway::GatewayCommand;
pub use key_options::{KeyOptions, Reach, routing_keys};
pub use keys::{KeyAt, KeySpec, extract, extract_from};
pub use lookup::{Lookup, find, unknown};
pub use route::{Merge, Route};
pub use spec::{CommandRef, Details, Group, Spec};
pub use storage::StorageCommand;

/// Every command that a client can name, containers and subcommands included, sorted within each
/// table as its rows are.
pub fn all() -> impl Iterator<Item = &'static Spec> {
    let tables = gateway::SPECS
        .iter()
        .chain(&storage::SPECS)
        .chain(&containers::SPECS);
    tables.filter(|spec| !spec.flags.has(flag::INTERNAL))
}

/// The subcommands of `parent`.
pub fn subcommands(parent: &Spec) -> impl Iterator<Item = &'static Spec> + use<> {
    let name = parent.name;
    all().filter(move |spec| spec.parent() == Some(name))
}

/// Expands rows into the id enum, `SPECS` and `DETAILS`. The module that calls it must have the
/// columns' functions in scope.
macro_rules! command_table {
    ($name:ident, $reference:ident, $( $(#[doc = $summary:literal])+ $id:ident $columns:tt => $handler:path; )*) => {
        const ROWS: &[Row] = &[ $( row $columns, )* ];

        /// How many rows there are.
        const COUNT: usize = ROWS.len();

        /// Columns that routing looks at, by id.
        pub static SPECS: [Spec; COUNT] = {
            let mut specs = [ROWS[0].spec(CommandRef::$reference($name::ALL[0])); COUNT];
            let mut at = 0;
            while at < COUNT {
                specs[at] = ROWS[at].spec(CommandRef::$reference($name::ALL[at]));
                at += 1;
            }
            specs
        };

        /// Columns of the documentation, by id.
        pub static DETAILS: [Details; COUNT] = {
            let summaries = [ $( concat!($($summary),+), )* ];
            let mut details = [ROWS[0].details(summaries[0]); COUNT];
            let mut at = 0;
            while at < COUNT {
                details[at] = ROWS[at].details(summaries[at]);
                at += 1;
            }
            details
        };

        /// Number of a command; index into every table of its process.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum $name { $( $(#[doc = $summary])+ $id, )* }

        impl $name {
            /// How many there are.
            pub const COUNT: usize = COUNT;

            /// All of them, by number.
            pub const ALL: [Self; COUNT] = [ $( Self::$id, )* ];

            /// The command with this number.
            #[inline]
            #[must_use]
            pub fn from_u16(number: u16) -> Option<Self> {
                Self::ALL.get(number as usize).copied()
            }

            /// Its row.
            #[inline]
            #[must_use]
            pub fn spec(self) -> &'static Spec {
                &SPECS[self as usize]
            }

            /// Its name as shown to users.
            #[must_use]
            pub fn name(self) -> &'static str {
                self.spec().name
            }
        }
    };
}
use command_table;

#[cfg(test)]
mod tests;
