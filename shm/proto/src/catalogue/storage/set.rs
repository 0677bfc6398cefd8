//! Sets: a row per command, and the trees of their arguments.

/// Passes the rows gathered so far and those of sets on.
#[doc(hidden)]
#[macro_export]
macro_rules! set_rows {
    ($with:ident $($gathered:tt)*) => { $crate::sorted_set_rows! { $with
        $($gathered)*
    }};
}
