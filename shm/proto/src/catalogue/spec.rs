//! The columns of a row.
//!
//! ```text
//!   Spec      what is looked at for every request: arity, flags, keys, route. One cache line.
//!   Details   what COMMAND tells about it: key specifications, group, versions, arguments, texts.
//! ```
//!
//! Both are made from the same row, so that a command is described in one place; they are stored
//! apart, so that the requests do not drag the documentation through the caches.

use super::arguments::Argument;
use super::flags::{Access, Categories, Flags, category, flag};
use super::keys::KeySpec;
use super::route::Route;
use super::{GatewayCommand, StorageCommand};

/// Which process runs a command, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandRef {
    /// Run by the gateway.
    Gateway(GatewayCommand),
    /// Run by a storage worker.
    Storage(StorageCommand),
    /// The first word of commands with two words, alone: never runs, its arity forbids it.
    Container(u16),
}

/// What is known about a command while it is being routed.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// As shown to users: lower case, `object|encoding` for a subcommand.
    pub name: &'static str,
    /// Number of arguments, the name included; negative: at least that many.
    pub arity: i8,
    /// What it may do and when.
    pub flags: Flags,
    /// ACL categories.
    pub categories: Categories,
    /// Which arguments are keys.
    pub keys: KeySpec,
    /// Where it runs.
    pub route: Route,
    /// Who it is.
    pub command: CommandRef,
}

impl Spec {
    /// Whether a request of `argc` arguments, the name included, has the right length.
    #[inline]
    #[must_use]
    pub const fn arity_fits(&self, argc: usize) -> bool {
        if self.arity >= 0 {
            argc == self.arity as usize
        } else {
            argc >= self.arity.unsigned_abs() as usize
        }
    }

    /// Whether a request with these arguments may wait for something.
    #[inline]
    pub fn may_wait<'a>(&self, argc: usize, argument: impl Fn(usize) -> &'a [u8]) -> bool {
        self.flags.has(flag::BLOCKING)
            && match self.keys {
                KeySpec::Options(options) => options.may_wait(argc, argument),
                _ => true,
            }
    }

    /// Whether it may change keys, by itself or by what it runs.
    #[inline]
    #[must_use]
    pub const fn may_write(&self) -> bool {
        let runs_any = self.flags.has(flag::SCRIPT) && !self.flags.has(flag::READONLY);
        self.flags.has(flag::WRITE) || runs_any
    }

    /// Whether it may do what replicas would have to be told of, which CLIENT PAUSE WRITE holds back.
    #[must_use]
    pub const fn may_replicate(&self) -> bool {
        self.may_write() || self.flags.has(flag::MAY_REPLICATE)
    }

    /// What COMMAND tells about it.
    #[must_use]
    pub fn details(&self) -> &'static Details {
        match self.command {
            CommandRef::Gateway(command) => &super::gateway::DETAILS[command as usize],
            CommandRef::Storage(command) => &super::storage::DETAILS[command as usize],
            CommandRef::Container(index) => &super::containers::DETAILS[index as usize],
        }
    }

    /// The name's part in front of `|`, if this is a subcommand.
    #[must_use]
    pub fn parent(&self) -> Option<&'static str> {
        self.name.split_once('|').map(|(parent, _)| parent)
    }
}

/// Groups of the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Group {
    Generic,
    String,
    List,
    Set,
    SortedSet,
    Hash,
    PubSub,
    Transactions,
    Connection,
    Server,
    Scripting,
    HyperLogLog,
    Cluster,
    Geo,
    Stream,
    Bitmap,
}

impl Group {
    /// As COMMAND DOCS shows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::String => "string",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Hash => "hash",
            Self::PubSub => "pubsub",
            Self::Transactions => "transactions",
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Scripting => "scripting",
            Self::HyperLogLog => "hyperloglog",
            Self::Cluster => "cluster",
            Self::Geo => "geo",
            Self::Stream => "stream",
            Self::Bitmap => "bitmap",
        }
    }

    /// The ACL category of a group's commands, unless a row says otherwise.
    const fn category(self) -> u32 {
        match self {
            Self::Generic => category::KEYSPACE,
            Self::String => category::STRING,
            Self::List => category::LIST,
            Self::Set => category::SET,
            Self::SortedSet => category::SORTEDSET,
            Self::Hash => category::HASH,
            Self::PubSub => category::PUBSUB,
            Self::Transactions => category::TRANSACTION,
            Self::Connection => category::CONNECTION,
            Self::Server | Self::Cluster => 0,
            Self::Scripting => category::SCRIPTING,
            Self::HyperLogLog => category::HYPERLOGLOG,
            Self::Geo => category::GEO,
            Self::Stream => category::STREAM,
            Self::Bitmap => category::BITMAP,
        }
    }
}

/// Where the search for keys begins.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    /// At this argument.
    Index(u8),
    /// Behind this word, searched from an argument on (negative: from the end, backwards).
    Keyword(&'static str, i8),
    /// No rule says it.
    Unknown,
}

/// How keys follow from where the search begins.
#[derive(Clone, Copy, Debug)]
pub enum Find {
    /// From the begin on, every `step`th argument.
    Range {
        /// Where the last key is, counted from the begin; negative: from the end of the arguments.
        last: i8,
        /// Distance between keys.
        step: u8,
        /// 2: only the first half of the arguments that are left, 3: a third, and so on.
        limit: u8,
    },
    /// An argument says how many keys follow.
    Count {
        /// Where that argument is, counted from the begin.
        number: u8,
        /// Where the first key is, counted from the begin.
        first: u8,
        /// Distance between keys.
        step: u8,
    },
    /// No rule says it.
    Unknown,
}

/// One key specification as COMMAND INFO shows it.
#[derive(Clone, Copy, Debug)]
pub struct KeyArea {
    /// What happens to these keys.
    pub access: Access,
    /// A remark.
    pub notes: Option<&'static str>,
    /// Where the search begins.
    pub begin: Begin,
    /// Which arguments from there on are keys.
    pub find: Find,
}

/// What COMMAND tells about a command.
#[derive(Clone, Copy, Debug)]
pub struct Details {
    /// One sentence, in our own words.
    pub summary: &'static str,
    /// Key specifications; the unused places are at the end.
    pub areas: [Option<KeyArea>; AREAS_MAX],
    /// The documentation columns.
    pub docs: Docs,
}

impl Details {
    /// Key specifications.
    pub fn areas(&self) -> impl Iterator<Item = &KeyArea> {
        self.areas.iter().flatten()
    }
}

/// Key specifications per command at most: `GEORADIUS` has three.
pub const AREAS_MAX: usize = 3;

/// The documentation columns of a row.
#[derive(Clone, Copy, Debug)]
pub struct Docs {
    /// Group.
    pub group: Group,
    /// Version of Redis (or of ours, if it says so) that introduced the command.
    pub since: &'static str,
    /// Cost; empty where there is nothing to say.
    pub complexity: &'static str,
    /// Arguments behind the name.
    pub arguments: &'static [Argument],
    /// Changes: version and what changed.
    pub history: &'static [(&'static str, &'static str)],
    /// Hints for clients that talk to several shards, in Redis' words.
    pub tips: &'static [&'static str],
    /// Since when deprecated, and what to use.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// Meant for internal use (`DEBUG`).
    pub system: bool,
    categories: Option<u32>,
}

/// Documentation columns.
pub(super) const fn docs(
    group: Group,
    since: &'static str,
    complexity: &'static str,
    arguments: &'static [Argument],
) -> Docs {
    Docs {
        group,
        since,
        complexity,
        arguments,
        history: &[],
        tips: &[],
        deprecated: None,
        system: false,
        categories: None,
    }
}

impl Docs {
    pub(super) const fn history(
        mut self,
        history: &'static [(&'static str, &'static str)],
    ) -> Self {
        self.history = history;
        self
    }

    pub(super) const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.tips = tips;
        self
    }

    pub(super) const fn deprecated(mut self, since: &'static str, instead: &'static str) -> Self {
        self.deprecated = Some((since, instead));
        self
    }

    pub(super) const fn system(mut self) -> Self {
        self.system = true;
        self
    }

    /// Categories in place of the group's own.
    pub(super) const fn categories(mut self, categories: u32) -> Self {
        self.categories = Some(categories);
        self
    }
}

/// Key columns: how keys are found, and how that is shown.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    pub(super) spec: KeySpec,
    pub(super) areas: [Option<KeyArea>; AREAS_MAX],
}

/// All columns of a row, before they are stored apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    name: &'static str,
    arity: i8,
    flags: u32,
    keys: Keys,
    route: Route,
    docs: Docs,
}

/// The columns of a row in the order in which they are written.
pub(super) const fn row(
    name: &'static str,
    arity: i8,
    flags: u32,
    keys: Keys,
    route: Route,
    docs: Docs,
) -> Row {
    Row {
        name,
        arity,
        flags,
        keys,
        route,
        docs,
    }
}

impl Row {
    pub(super) const fn spec(&self, command: CommandRef) -> Spec {
        assert!(
            self.flags & flag::WRITE == 0 || self.flags & flag::READONLY == 0,
            "a command writes or is read-only"
        );
        assert!(
            self.flags & flag::DENYOOM == 0 || self.flags & flag::WRITE != 0,
            "only writes can need memory"
        );
        assert!(self.arity != 0, "the name is an argument too");
        let own = match self.docs.categories {
            Some(categories) => categories,
            None if self.flags & flag::CONTAINER != 0 => 0,
            None => self.docs.group.category(),
        };
        Spec {
            name: self.name,
            arity: self.arity,
            flags: Flags(self.flags),
            categories: Categories::implied(own, Flags(self.flags)),
            keys: self.keys.spec,
            route: self.route,
            command,
        }
    }

    pub(super) const fn details(&self, summary: &'static str) -> Details {
        Details {
            summary,
            areas: self.keys.areas,
            docs: self.docs,
        }
    }
}
