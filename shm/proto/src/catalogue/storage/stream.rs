//! Streams: a row per command, and the trees of their arguments.

/// Passes the rows gathered so far and those of streams on.
#[doc(hidden)]
#[macro_export]
macro_rules! stream_rows {
    ($with:ident $($gathered:tt)*) => { $crate::geo_rows! { $with
        $($gathered)*
    }};
}
