//! Sorted sets: a row per command, and the trees of their arguments.

/// Passes the rows gathered so far and those of sorted sets on.
#[doc(hidden)]
#[macro_export]
macro_rules! sorted_set_rows {
    ($with:ident $($gathered:tt)*) => { $crate::stream_rows! { $with
        $($gathered)*
    }};
}
