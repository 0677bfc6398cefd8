//! Places, kept in sorted sets: a row per command, and the trees of their arguments.

/// Passes the rows gathered so far and those of places on.
#[doc(hidden)]
#[macro_export]
macro_rules! geo_rows {
    ($with:ident $($gathered:tt)*) => { $crate::hyperloglog_rows! { $with
        $($gathered)*
    }};
}
