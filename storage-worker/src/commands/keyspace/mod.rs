//! Commands on whole keys of any type.
//!
//! Not here: expiry (`commands::expire`), how a value is kept (`commands::object`).

mod keys;
mod walk;

pub(crate) use keys::{
    copy, del, exists, move_key, randomkey, rename, renamenx, touch, type_of, unlink,
};
pub(crate) use walk::{keys, scan};
