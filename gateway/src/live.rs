//! The settings that a gateway thread acts on, taken out of the table once per change.
//!
//! Why: a request must not look anything up; and a thread reads the same values for a whole turn.

use std::sync::Arc;

use proto::settings::bytes::to_bytes;
use proto::settings::{Protected, Settings};

/// Limits of `client-output-buffer-limit` for one class of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputLimits {
    /// Bytes at which a client is closed at once; `usize::MAX` if there is no limit.
    pub(crate) hard: usize,
    /// Bytes that a client may exceed for `soft_millis` at most.
    pub(crate) soft: usize,
    pub(crate) soft_millis: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Live {
    /// `proto-max-bulk-len`.
    pub(crate) bulk_bytes_max: u64,
    /// `client-query-buffer-limit`.
    pub(crate) query_buffer_limit: usize,
    pub(crate) output_limits: OutputLimits,
    /// Those of clients that have subscribed to something.
    pub(crate) subscriber_limits: OutputLimits,
    /// `timeout`, 0 = never.
    pub(crate) timeout_millis: u64,
    /// `tcp-keepalive` in seconds, 0 = off.
    pub(crate) keepalive_seconds: u32,
    pub(crate) maxclients: usize,
    pub(crate) databases: u16,
    pub(crate) protected_mode: bool,
    /// `requirepass`.
    pub(crate) password: Option<Box<[u8]>>,
    /// `min-replicas-to-write` asks for some, and there is no replication.
    pub(crate) lacks_replicas: bool,
    pub(crate) debug: Protected,
    /// All of them, for CONFIG GET and INFO.
    pub(crate) settings: Arc<Settings>,
}

impl Live {
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        let password = settings.requirepass();
        let limits = settings.client_output_buffer_limit();
        let no_limit = |bytes: u64| match usize::try_from(bytes) {
            Ok(0) | Err(_) => usize::MAX,
            Ok(bytes) => bytes,
        };
        let output_limits = |class: usize| OutputLimits {
            hard: no_limit(limits[class].hard_bytes),
            soft: no_limit(limits[class].soft_bytes),
            soft_millis: limits[class].soft_seconds * 1000,
        };
        Self {
            bulk_bytes_max: settings.proto_max_bulk_len(),
            query_buffer_limit: no_limit(settings.client_query_buffer_limit()),
            output_limits: output_limits(0),
            subscriber_limits: output_limits(2),
            timeout_millis: u64::try_from(settings.timeout()).unwrap_or_default() * 1000,
            keepalive_seconds: u32::try_from(settings.tcp_keepalive()).unwrap_or_default(),
            maxclients: usize::try_from(settings.maxclients()).unwrap_or(usize::MAX),
            databases: u16::try_from(settings.databases()).unwrap_or(u16::MAX),
            protected_mode: settings.protected_mode(),
            password: (!password.is_empty()).then(|| to_bytes(password).into()),
            lacks_replicas: settings.asks_for_replicas(),
            debug: settings.enable_debug_command(),
            settings,
        }
    }
}
