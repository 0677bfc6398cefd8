//! Lists: a row per command, and the trees of their arguments.

/// Passes the rows gathered so far and those of lists on.
#[doc(hidden)]
#[macro_export]
macro_rules! list_rows {
    ($with:ident $($gathered:tt)*) => { $crate::hash_rows! { $with
        $($gathered)*
    }};
}
