//! One client: what the gateway knows of it between two reads.
//!
//! ```text
//!   bytes ──> [pending] ──parse──> commands ──> rings            (Core drives this)
//!   socket <── [replies.output] <── [replies.stash] <── gathers <── rings
//! ```
//!
//! The state machine does no I/O: it is handed bytes and replies and holds bytes for the socket. A
//! connection parses on as long as its `wait` is `Nothing`; otherwise its bytes stay in `pending`
//! until what it waits for has come.
//!
//! Memory: an idle connection is this struct (under 512 bytes, asserted below) and its socket. Buffers
//! come from the thread's pool while they are in use.

use std::collections::VecDeque;
use std::net::SocketAddr;

use proto::resp::RequestParser;

use crate::blocking::Blocking;
use crate::gather::Gather;
use crate::lanes::Who;
use crate::limits;
use crate::order::{BufferPool, Replies};
use crate::pubsub::Subscriptions;
use crate::recall::Recall;
use crate::running::Running;
use crate::transaction::Transaction;

/// Why a connection does not go on with its next command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It does go on.
    #[default]
    Nothing,
    /// The ring to a worker is full.
    Room,
    /// Too many commands are unanswered, or too many reply bytes are unsent.
    Window,
    /// Its next command must see all earlier ones answered.
    Earlier,
    /// CLIENT PAUSE.
    Pause,
    /// A request too big for one frame is under way.
    Transfer,
    /// The command that was read last is answered later (steps, another thread, the supervisor).
    Answer,
    /// The command that was read last lets time pass. If its client goes away, nothing is lost.
    Time,
    /// The same for WAIT, which can be called off.
    Replicas,
    /// The command that was read last may wait at a storage worker.
    Blocked,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Closing {
    /// Not at all.
    #[default]
    No,
    /// Nothing more is read; it ends when everything read so far is answered and sent.
    AfterReplies,
    /// It ends as soon as the driver looks at it.
    Now,
}

/// Facts about a connection that are true or false.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each set by one command"
)]
pub(crate) struct Facts {
    /// Nothing below asks for special care with the next command: authenticated, no silence, no MULTI, no
    /// subscriptions in RESP2, nothing under way that must not be overtaken.
    pub(crate) plain: bool,
    /// It may run commands: it gave the password, or none is asked for.
    pub(crate) authenticated: bool,
    /// MULTI was said: commands are queued.
    pub(crate) in_multi: bool,
    /// HELLO 3.
    pub(crate) resp3: bool,
    /// CLIENT NO-TOUCH.
    pub(crate) no_touch: bool,
    /// CLIENT NO-EVICT.
    pub(crate) no_evict: bool,
    /// CLIENT REPLY OFF.
    pub(crate) reply_off: bool,
    /// CLIENT REPLY SKIP was the last command.
    pub(crate) skip_next: bool,
    /// The command under way follows CLIENT REPLY SKIP.
    pub(crate) skip_this: bool,
    /// It came over a unix socket.
    pub(crate) unix: bool,
    /// It has output that the driver was told about.
    pub(crate) dirty: bool,
    /// It stands in the list of connections to go on with.
    pub(crate) listed: bool,
    /// Its socket may have bytes that nobody wanted when they came.
    pub(crate) unread: bool,
    /// The client has closed its sending side.
    pub(crate) ended: bool,
    /// It counts as blocked.
    pub(crate) blocked: bool,
    /// It has subscribed to something.
    pub(crate) subscribed: bool,
    /// It stands in the queue of those to whom messages are written.
    pub(crate) heard: bool,
    /// The socket is gone, the place is kept until a multi-step command has finished.
    pub(crate) ghost: bool,
    /// A command over several workers may be unanswered: what comes next must not overtake it.
    pub(crate) crossing: bool,
}

impl Facts {
    /// Call it after changing one of the facts that `plain` sums up.
    pub(crate) fn settle(&mut self) {
        let is_silent = self.reply_off || self.skip_next || self.skip_this;
        let hears_only = self.subscribed && !self.resp3;
        let is_bare = !is_silent && !self.in_multi && !hears_only && !self.crossing;
        self.plain = self.authenticated && is_bare;
    }
}

/// Names that a client gave itself; most give none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) name: Box<[u8]>,
    pub(crate) library: Box<[u8]>,
    pub(crate) library_version: Box<[u8]>,
}

/// Where a connection comes from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// Client's and own address.
    Tcp(SocketAddr, SocketAddr),
    /// Path of the listening socket.
    Unix(Box<str>),
}

/// Bytes read and not parsed yet, and where their parsing stands.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) bytes: Vec<u8>,
    /// Bytes of finished commands at the front.
    pub(crate) start: usize,
    pub(crate) parser: RequestParser,
}

impl Pending {
    /// What is left to parse.
    pub(crate) fn rest(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

/// One client.
#[derive(Debug)]
pub(crate) struct Connection {
    /// As CLIENT ID shows it; unique in the system.
    pub(crate) id: u64,
    /// Which of the connections that had this place.
    pub(crate) generation: u32,
    pub(crate) database: u16,
    pub(crate) wait: Wait,
    pub(crate) closing: Closing,
    pub(crate) facts: Facts,
    pub(crate) replies: Replies,
    pub(crate) pending: Option<Box<Pending>>,
    pub(crate) gathers: VecDeque<Box<Gather>>,
    /// The command under way, if it may wait.
    pub(crate) blocking: Option<Box<Blocking>>,
    /// Commands that were called back from the workers.
    pub(crate) recall: Option<Box<Recall>>,
    /// The worker that runs its commands over several workers, while `Facts::crossing`.
    pub(crate) crossing_at: u16,
    /// Workers that may not have run a command without a reply yet; see `crossing`.
    pub(crate) unseen_at: u32,
    /// What was queued since MULTI, and watched keys.
    pub(crate) transaction: Option<Box<Transaction>>,
    /// What is left of an EXEC under way.
    pub(crate) running: Option<Box<Running>>,
    /// Channels and patterns that it listens to.
    pub(crate) subscriptions: Option<Box<Subscriptions>>,
    /// The latest script or transaction: messages wait for its reply.
    pub(crate) unit: Option<u32>,
    /// Messages of it that the broker has not answered.
    pub(crate) publishing: u32,
    pub(crate) names: Option<Box<Names>>,
    pub(crate) origin: Origin,
    /// Descriptor number, for CLIENT LIST only.
    pub(crate) descriptor: i32,
    /// Milliseconds since the thread started: accepted, and last read from.
    pub(crate) created: u64,
    pub(crate) active: u64,
    /// Since when the soft output limit has been exceeded.
    pub(crate) over_soft_limit_since: Option<u64>,
    /// Commands that may be unanswered, judged by the size of the latest replies.
    window: u32,
    /// Bytes of the command under way while it looks at its own connection.
    pub(crate) own_bytes: usize,
    /// Those of its arguments.
    pub(crate) own_arguments: usize,
    /// Row name of the last command, `NULL` if none.
    pub(crate) last_command: &'static str,
}

const _: () = assert!(size_of::<Connection>() <= 512);

impl Connection {
    /// A connection that has just been accepted.
    pub(crate) fn new(id: u64, generation: u32, origin: Origin, now: u64) -> Self {
        Self {
            id,
            generation,
            database: 0,
            wait: Wait::Nothing,
            closing: Closing::No,
            facts: Facts {
                unix: matches!(origin, Origin::Unix(_)),
                ..Facts::default()
            },
            replies: Replies::default(),
            pending: None,
            gathers: VecDeque::new(),
            blocking: None,
            recall: None,
            crossing_at: 0,
            unseen_at: 0,
            transaction: None,
            running: None,
            subscriptions: None,
            unit: None,
            publishing: 0,
            names: None,
            origin,
            descriptor: -1,
            created: now,
            active: now,
            over_soft_limit_since: None,
            window: limits::MAX_IN_FLIGHT,
            own_bytes: 0,
            own_arguments: 0,
            last_command: "NULL",
        }
    }

    /// The connection as frames name it.
    #[inline]
    pub(crate) fn who(&self, index: u32) -> Who {
        Who {
            index,
            generation: self.generation,
        }
    }

    /// Whether the command under way gets no reply.
    #[inline]
    pub(crate) fn is_muted(&self) -> bool {
        self.facts.reply_off || self.facts.skip_this
    }

    /// `count` replies took `bytes`: with large ones fewer commands may be in flight.
    #[inline]
    pub(crate) fn note_reply_size(&mut self, bytes: usize, count: u32) {
        self.window = if bytes <= limits::LARGE_REPLY_BYTES {
            limits::MAX_IN_FLIGHT
        } else {
            let each = u32::try_from(bytes).unwrap_or(u32::MAX) / count.max(1);
            (limits::EXPECTED_REPLY_BYTES / each.max(1))
                .clamp(limits::MIN_IN_FLIGHT, limits::MAX_IN_FLIGHT)
        };
    }

    /// Whether another command may be taken now.
    #[inline]
    pub(crate) fn has_window(&self) -> bool {
        self.replies.in_flight() < self.window
            && self.replies.held_bytes() < limits::OUTPUT_PAUSE_BYTES
    }

    /// Everything that the connection borrowed from the pool goes back.
    pub(crate) fn give_back(&mut self, pool: &mut BufferPool) {
        self.replies.clear(pool);
        if let Some(pending) = self.pending.take() {
            pool.give(pending.bytes);
        }
        self.gathers.clear();
        self.recall = None;
    }

    pub(crate) fn names_mut(&mut self) -> &mut Names {
        self.names.get_or_insert_default()
    }
}
