//! Hashes: a row per command, and the trees of their arguments.

/// Passes the rows gathered so far and those of hashes on.
#[doc(hidden)]
#[macro_export]
macro_rules! hash_rows {
    ($with:ident $($gathered:tt)*) => { $crate::set_rows! { $with
        $($gathered)*
    }};
}
