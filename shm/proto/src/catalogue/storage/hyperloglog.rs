//! HyperLogLogs, kept in strings: a row per command, and the trees of their arguments.

/// Passes the rows gathered so far and those of HyperLogLogs on.
#[doc(hidden)]
#[macro_export]
macro_rules! hyperloglog_rows {
    ($with:ident $($gathered:tt)*) => { $crate::server_rows! { $with
        $($gathered)*
    }};
}
