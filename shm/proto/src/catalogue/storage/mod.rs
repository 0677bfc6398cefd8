//! Commands that a storage worker executes. One row each, one file per group; see `catalogue` for how
//! rows are used.
//!
//! ```text
//!   id   ("name", arity, flags, keys, route,
//!       docs(group, since, complexity, arguments) .history(..) .tips(..) .deprecated(..) .categories(..))
//!       => path of the function in `storage-worker/src/commands`
//! ```
//!
//! Every group's file is a macro that passes the rows gathered so far and its own on to the next
//! group's; the last one hands all of them to whom asked. Argument trees of more than a line stand
//! above the rows of their group and are named with it: `list::LPOS`. The order of the groups and of
//! the rows in them gives commands their numbers.
//!
//! Facts (arity, flags, key positions, versions, groups, argument trees) are those of Redis 8.0.6;
//! texts are ours. Different on purpose: `SET` has Valkey's `IFEQ` and `DELIFEQ` exists; `MEMORY
//! USAGE` and friends are split between the tables by where they run.

use super::arguments::*;
use super::command_table;
use super::flags::access::*;
use super::flags::flag::*;
use super::keys::*;
use super::route::Merge;
use super::route::Route::*;
use super::spec::Group::*;
use super::spec::{CommandRef, Details, Row, Spec, docs, row};

mod bitmap;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod internal;
mod list;
mod scripting;
mod server;
mod set;
mod sorted_set;
mod stream;
mod string;

/// Hands all rows to the macro `$with`, which sees
/// `$( $(#[doc = $summary:literal])+ $id:ident $columns:tt => $handler:path; )*`.
#[macro_export]
macro_rules! storage_commands {
    ($with:ident) => {
        $crate::string_rows!($with);
    };
}

macro_rules! tables {
    ($($rows:tt)*) => {
        command_table!(StorageCommand, Storage, $($rows)*);
    };
}
storage_commands!(tables);
