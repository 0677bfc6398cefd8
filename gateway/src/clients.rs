//! CLIENT LIST and CLIENT KILL: which clients are meant, and what is shown of them.
//!
//! Filters are plain data, so that they can be sent to the other threads of the process. Parsing knows
//! the words and error texts of Redis 8.0.

use std::fmt::Write as _;
use std::net::SocketAddr;

use proto::CommandError;
use proto::frame::Space;
use proto::number::parse_i64;

use crate::call::Call;
use crate::connection::{Closing, Connection, Origin};
use crate::core::Core;
use crate::transaction::Transaction;

/// Kinds of clients that filters name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientKind {
    Normal,
    Master,
    Replica,
    PubSub,
}

impl ClientKind {
    fn parse(word: &[u8]) -> Option<Self> {
        const WORDS: [(&str, ClientKind); 5] = [
            ("normal", ClientKind::Normal),
            ("slave", ClientKind::Replica),
            ("replica", ClientKind::Replica),
            ("pubsub", ClientKind::PubSub),
            ("master", ClientKind::Master),
        ];
        WORDS
            .iter()
            .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()))
            .map(|w| w.1)
    }

    /// There are no masters and replicas.
    fn fits(self, client: &Connection) -> bool {
        match self {
            Self::Normal => !client.facts.subscribed,
            Self::PubSub => client.facts.subscribed,
            Self::Master | Self::Replica => false,
        }
    }
}

/// Which clients CLIENT LIST shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListFilter {
    kind: Option<ClientKind>,
    ids: Vec<i64>,
}

/// Which clients CLIENT KILL closes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KillFilter {
    address: Option<Vec<u8>>,
    local_address: Option<Vec<u8>>,
    kind: Option<ClientKind>,
    id: Option<u64>,
    /// Seconds since the connection was accepted, at least.
    age: Option<u64>,
    /// The client that asks, if it is spared.
    spared: Option<u64>,
    /// The client that asks; it is closed after its reply.
    pub(crate) asker: u64,
}

impl ListFilter {
    /// CLIENT LIST [TYPE kind | ID id ...]
    pub(crate) fn parse(call: &Call<'_>) -> Result<Self, CommandError> {
        let mut filter = Self::default();
        match call.len() {
            2 => {}
            4 if call.is(2, "TYPE") => {
                filter.kind = Some(kind_of(call.arg(3))?);
            }
            len if len > 3 && call.is(2, "ID") => {
                for word in call.args(3) {
                    filter
                        .ids
                        .push(parse_i64(word).ok_or(CommandError::ClientIdInvalid)?);
                }
            }
            _ => return Err(CommandError::Syntax),
        }
        Ok(filter)
    }

    fn fits(&self, client: &Connection) -> bool {
        self.kind.is_none_or(|kind| kind.fits(client))
            && (self.ids.is_empty() || self.ids.contains(&client.id.cast_signed()))
    }
}

impl KillFilter {
    /// CLIENT KILL address | option value ...
    /// The flag says whether it is the old form, whose reply is OK instead of a number.
    pub(crate) fn parse(call: &Call<'_>, asker: u64) -> Result<(Self, bool), CommandError> {
        let mut filter = Self {
            asker,
            ..Self::default()
        };
        if call.len() == 3 {
            filter.address = Some(call.arg(2).to_vec());
            return Ok((filter, true));
        }
        filter.spared = Some(asker);
        let mut at = 2;
        while at < call.len() {
            // An option without a value is no option.
            let Some(value) = call.get(at + 1) else {
                return Err(CommandError::Syntax);
            };
            filter.option(call, at, value)?;
            at += 2;
        }
        Ok((filter, false))
    }

    fn option(&mut self, call: &Call<'_>, at: usize, value: &[u8]) -> Result<(), CommandError> {
        if call.is(at, "ID") {
            let id = parse_i64(value).filter(|&id| id > 0);
            let id = id.ok_or(CommandError::ClientIdNotPositive)?;
            self.id = Some(id.unsigned_abs());
        } else if call.is(at, "MAXAGE") {
            let age = parse_i64(value);
            let age = age.ok_or(CommandError::MaxAgeNotInteger)?;
            if age <= 0 {
                return Err(CommandError::MaxAgeNotPositive);
            }
            self.age = Some(age.unsigned_abs());
        } else if call.is(at, "TYPE") {
            self.kind = Some(kind_of(value)?);
        } else if call.is(at, "ADDR") {
            self.address = Some(value.to_vec());
        } else if call.is(at, "LADDR") {
            self.local_address = Some(value.to_vec());
        } else if call.is(at, "USER") {
            if value != b"default" {
                return Err(CommandError::NoSuchUser(value.into()));
            }
        } else if call.is(at, "SKIPME") {
            self.spared = if value.eq_ignore_ascii_case(b"yes") {
                Some(self.asker)
            } else if value.eq_ignore_ascii_case(b"no") {
                None
            } else {
                return Err(CommandError::Syntax);
            };
        } else {
            return Err(CommandError::Syntax);
        }
        Ok(())
    }

    fn fits(&self, client: &Connection, now: u64) -> bool {
        let address = |wanted: &Option<Vec<u8>>, text: String| {
            wanted
                .as_ref()
                .is_none_or(|wanted| wanted == text.as_bytes())
        };
        self.spared != Some(client.id)
            && self.id.is_none_or(|id| id == client.id)
            && self.kind.is_none_or(|kind| kind.fits(client))
            && self
                .age
                .is_none_or(|age| (now - client.created) / 1000 >= age)
            && address(&self.address, remote_address(&client.origin))
            && address(&self.local_address, local_address(&client.origin))
    }
}

fn kind_of(word: &[u8]) -> Result<ClientKind, CommandError> {
    ClientKind::parse(word).ok_or_else(|| CommandError::UnknownClientType(word.into()))
}

/// Address and port as Redis prints them: IPv6 addresses in brackets, `path:0` for unix sockets.
fn socket_address(address: &SocketAddr) -> String {
    match address {
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_none() => {
            format!("[{}]:{}", v6.ip(), v6.port())
        }
        other => format!("{}:{}", other.ip().to_canonical(), other.port()),
    }
}

pub(crate) fn remote_address(origin: &Origin) -> String {
    match origin {
        Origin::Tcp(remote, _) => socket_address(remote),
        Origin::Unix(path) => format!("{path}:0"),
    }
}

fn local_address(origin: &Origin) -> String {
    match origin {
        Origin::Tcp(_, local) => socket_address(local),
        Origin::Unix(path) => format!("{path}:0"),
    }
}

/// Reply bytes up to which CLIENT LIST shows no list of replies.
const FIXED_BUFFER_BYTES: usize = 16 * 1024;

/// One line of CLIENT LIST, line feed included.
pub(crate) fn describe(client: &Connection, thread: usize, now: u64) -> String {
    let names = client.names.as_deref().cloned().unwrap_or_default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut flags = String::new();
    for (set, letter) in [
        (client.facts.subscribed, 'P'),
        (client.facts.in_multi, 'x'),
        (client.facts.blocked, 'b'),
        (client.closing == Closing::AfterReplies, 'c'),
        (client.closing == Closing::Now, 'A'),
        (client.facts.unix, 'U'),
        (client.facts.no_evict, 'e'),
        (client.facts.no_touch, 'T'),
    ] {
        if set {
            flags.push(letter);
        }
    }
    if flags.is_empty() {
        flags.push('N');
    }
    let (pending, capacity) = client.pending.as_ref().map_or((0, 0), |pending| {
        (pending.rest().len(), pending.bytes.capacity())
    });
    let (pending, capacity) = (pending + client.own_bytes, capacity + client.own_bytes);
    // Arguments stay in the query buffer, but for those of a command that waits.
    let arguments = match &client.blocking {
        Some(waiting) => client.last_command.len() + waiting.argument_bytes(),
        None => client.own_arguments,
    };
    let unsent = client.replies.unsent().len();
    // There is one buffer. A small one is shown as Redis' fixed one, a large one as its list.
    let is_large = unsent > FIXED_BUFFER_BYTES;
    let (small, listed) = if is_large {
        (0, client.replies.memory())
    } else {
        (unsent, 0)
    };
    let transaction = client.transaction.as_deref();
    let queued = transaction.and_then(Transaction::queued);
    let queued = queued.map_or_else(|| "-1".to_owned(), |count| count.to_string());
    let watched = transaction.map_or(0, |transaction| transaction.watched.len());
    let queued_memory = transaction.map_or(0, Transaction::memory);
    let subscriptions = client.subscriptions.as_deref();
    let count = |space| subscriptions.map_or(0, |it| it.count(space));
    let subscribed = format!(
        "sub={} psub={} ssub={}",
        count(Space::Channel),
        count(Space::Pattern),
        count(Space::Shard)
    );
    let memory = size_of::<Connection>() + capacity + client.replies.memory() + queued_memory;
    let mut line = String::with_capacity(400);
    let _ = writeln!(
        line,
        "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={flags} db={} {subscribed} \
         multi={queued} watch={watched} qbuf={pending} qbuf-free={} argv-mem={arguments} \
         multi-mem={queued_memory} \
         rbs={} rbp={} obl={small} oll={} omem={listed} tot-mem={memory} events={} cmd={} \
         user=default redir=-1 resp={} lib-name={} lib-ver={} io-thread={thread}",
        client.id,
        remote_address(&client.origin),
        local_address(&client.origin),
        client.descriptor,
        text(&names.name),
        (now - client.created) / 1000,
        (now - client.active) / 1000,
        client.database,
        capacity - pending.min(capacity),
        client.replies.memory(),
        client.replies.held_bytes(),
        u8::from(is_large),
        if unsent > 0 { "rw" } else { "r" },
        client.last_command,
        if client.facts.resp3 { 3 } else { 2 },
        text(&names.library),
        text(&names.library_version),
    );
    line
}

impl Core {
    pub(crate) fn list_clients(&self, filter: &ListFilter) -> Vec<(u64, String)> {
        self.clients()
            .filter(|(_, client)| filter.fits(client))
            .map(|(_, client)| (client.id, describe(client, self.thread, self.now.millis)))
            .collect()
    }

    /// Closes the clients that fit; returns how many.
    pub(crate) fn kill_clients(&mut self, filter: &KillFilter) -> u64 {
        let now = self.now.millis;
        let meant: Vec<(u32, u64)> = self
            .clients()
            .filter(|(_, client)| client.closing == Closing::No && filter.fits(client, now))
            .map(|(index, client)| (index, client.id))
            .collect();
        for &(index, id) in &meant {
            if id == filter.asker {
                self.close_after_replies(index);
            } else {
                self.close_now(index);
            }
        }
        meant.len() as u64
    }
}
