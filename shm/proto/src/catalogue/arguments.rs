//! The arguments of commands as COMMAND DOCS describes them: a small language to write trees in, and
//! the trees that are used by more than one command or too long for a row.
//!
//! ```text
//!   key("key")                     a key, found by the first key specification
//!   string("value").optional()     [value]
//!   int("count").token("COUNT")    COUNT count
//!   word("NX")                     the word NX itself
//!   one_of("condition", &[..])     alternatives
//!   block("data", &[..])           all of them, in this order
//! ```

/// What stands in the place of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// Any bytes.
    String,
    /// An integer.
    Integer,
    /// A floating point number.
    Double,
    /// The name of a key; holds the number of its key specification.
    Key(u8),
    /// A glob pattern.
    Pattern,
    /// A pattern that becomes keys; holds the number of their key specification.
    KeyPattern(u8),
    /// A point in time, in seconds or milliseconds since 1970.
    UnixTime,
    /// A fixed word.
    Token,
    /// One of the inner arguments.
    OneOf,
    /// All inner arguments.
    Block,
}

impl ArgumentKind {
    /// As COMMAND DOCS shows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::Key(_) => "key",
            Self::Pattern | Self::KeyPattern(_) => "pattern",
            Self::UnixTime => "unix-time",
            Self::Token => "pure-token",
            Self::OneOf => "oneof",
            Self::Block => "block",
        }
    }
}

/// One argument, or a group of them.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// What it is.
    pub kind: ArgumentKind,
    /// Its name; empty: the token in lower case.
    pub name: &'static str,
    /// What documentation prints for it; empty: the name.
    pub display: &'static str,
    /// The word in front of it, empty if there is none.
    pub token: &'static str,
    /// Version that introduced it, empty if it is as old as the command.
    pub since: &'static str,
    /// Version since which it should not be used, empty if it may.
    pub deprecated_since: &'static str,
    /// It may be left out.
    pub optional: bool,
    /// It may be repeated.
    pub multiple: bool,
    /// Its token is repeated too.
    pub multiple_token: bool,
    /// Inner arguments of a group.
    pub inner: &'static [Argument],
}

const fn argument(kind: ArgumentKind, name: &'static str, inner: &'static [Argument]) -> Argument {
    Argument {
        kind,
        name,
        display: "",
        token: "",
        since: "",
        deprecated_since: "",
        optional: false,
        multiple: false,
        multiple_token: false,
        inner,
    }
}

pub(super) const fn string(name: &'static str) -> Argument {
    argument(ArgumentKind::String, name, &[])
}

pub(super) const fn int(name: &'static str) -> Argument {
    argument(ArgumentKind::Integer, name, &[])
}

pub(super) const fn double(name: &'static str) -> Argument {
    argument(ArgumentKind::Double, name, &[])
}

pub(super) const fn key(name: &'static str) -> Argument {
    argument(ArgumentKind::Key(0), name, &[])
}

/// A key found by key specification number `area`.
pub(super) const fn key_of(area: u8, name: &'static str) -> Argument {
    argument(ArgumentKind::Key(area), name, &[])
}

pub(super) const fn pattern(name: &'static str) -> Argument {
    argument(ArgumentKind::Pattern, name, &[])
}

/// A pattern that becomes keys of key specification number `area`.
pub(super) const fn key_pattern(area: u8, name: &'static str) -> Argument {
    argument(ArgumentKind::KeyPattern(area), name, &[])
}

pub(super) const fn unix_time(name: &'static str) -> Argument {
    argument(ArgumentKind::UnixTime, name, &[])
}

pub(super) const fn word(token: &'static str) -> Argument {
    argument(ArgumentKind::Token, "", &[]).token(token)
}

pub(super) const fn one_of(name: &'static str, inner: &'static [Argument]) -> Argument {
    argument(ArgumentKind::OneOf, name, inner)
}

pub(super) const fn block(name: &'static str, inner: &'static [Argument]) -> Argument {
    argument(ArgumentKind::Block, name, inner)
}

impl Argument {
    pub(super) const fn token(mut self, token: &'static str) -> Self {
        self.token = token;
        self
    }

    /// Another name than the word itself.
    pub(super) const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    pub(super) const fn display(mut self, display: &'static str) -> Self {
        self.display = display;
        self
    }

    pub(super) const fn since(mut self, since: &'static str) -> Self {
        self.since = since;
        self
    }

    pub(super) const fn deprecated_since(mut self, version: &'static str) -> Self {
        self.deprecated_since = version;
        self
    }

    pub(super) const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    pub(super) const fn multiple(mut self) -> Self {
        self.multiple = true;
        self
    }

    pub(super) const fn multiple_token(mut self) -> Self {
        self.multiple = true;
        self.multiple_token = true;
        self
    }
}

/// No arguments.
pub(super) const NONE: &[Argument] = &[];

pub(super) const KEY: &[Argument] = &[key("key")];

pub(super) const KEYS: &[Argument] = &[key("key").multiple()];

pub(super) const AUTH: &[Argument] = &[
    string("username").since("6.0.0").optional(),
    string("password"),
];

pub(super) const CLUSTER_MEET: &[Argument] = &[
    string("ip"),
    int("port"),
    int("cluster-bus-port").since("4.0.0").optional(),
];
pub(super) const CLUSTER_RANGES: &[Argument] =
    &[block("range", &[int("start-slot"), int("end-slot")]).multiple()];
pub(super) const CLUSTER_SETSLOT: &[Argument] = &[
    int("slot"),
    one_of(
        "subcommand",
        &[
            string("importing").display("node-id").token("IMPORTING"),
            string("migrating").display("node-id").token("MIGRATING"),
            string("node").display("node-id").token("NODE"),
            word("STABLE"),
        ],
    ),
];
pub(super) const CLIENT_KILL: &[Argument] = &[one_of(
    "filter",
    &[
        string("old-format")
            .display("ip:port")
            .deprecated_since("2.8.12"),
        one_of(
            "new-format",
            &[
                int("client-id").token("ID").since("2.8.12").optional(),
                one_of(
                    "client-type",
                    &[
                        word("NORMAL"),
                        word("MASTER").since("3.2.0"),
                        word("SLAVE"),
                        word("REPLICA").since("5.0.0"),
                        word("PUBSUB"),
                    ],
                )
                .token("TYPE")
                .since("2.8.12")
                .optional(),
                string("username").token("USER").optional(),
                string("addr").token("ADDR").display("ip:port").optional(),
                string("laddr")
                    .token("LADDR")
                    .display("ip:port")
                    .since("6.2.0")
                    .optional(),
                one_of("skipme", &[word("YES"), word("NO")])
                    .token("SKIPME")
                    .optional(),
                int("maxage").token("MAXAGE").since("7.4.0").optional(),
            ],
        )
        .multiple(),
    ],
)];

pub(super) const CLIENT_LIST: &[Argument] = &[
    one_of(
        "client-type",
        &[
            word("NORMAL"),
            word("MASTER"),
            word("REPLICA"),
            word("PUBSUB"),
        ],
    )
    .token("TYPE")
    .since("5.0.0")
    .optional(),
    int("client-id")
        .token("ID")
        .since("6.2.0")
        .optional()
        .multiple(),
];

pub(super) const SCRIPT_FLUSH: &[Argument] =
    &[one_of("flush-type", &[word("ASYNC"), word("SYNC")])
        .since("6.2.0")
        .optional()];

pub(super) const FUNCTION_FLUSH: &[Argument] =
    &[one_of("flush-type", &[word("ASYNC"), word("SYNC")]).optional()];

pub(super) const FUNCTION_LIST: &[Argument] = &[
    string("library-name-pattern")
        .token("LIBRARYNAME")
        .optional(),
    word("WITHCODE").optional(),
];

pub(super) const FUNCTION_LOAD: &[Argument] =
    &[word("REPLACE").optional(), string("function-code")];

pub(super) const FUNCTION_RESTORE: &[Argument] = &[
    string("serialized-value"),
    one_of("policy", &[word("FLUSH"), word("APPEND"), word("REPLACE")]).optional(),
];

pub(super) const CLIENT_PAUSE: &[Argument] = &[
    int("timeout"),
    one_of("mode", &[word("WRITE"), word("ALL")])
        .since("6.2.0")
        .optional(),
];

pub(super) const CLIENT_UNBLOCK: &[Argument] = &[
    int("client-id"),
    one_of("unblock-type", &[word("TIMEOUT"), word("ERROR")]).optional(),
];

pub(super) const CLIENT_SETINFO: &[Argument] = &[one_of(
    "attr",
    &[
        string("libname").token("LIB-NAME"),
        string("libver").token("LIB-VER"),
    ],
)];

pub(super) const HELLO: &[Argument] = &[block(
    "arguments",
    &[
        int("protover"),
        block("auth", &[string("username"), string("password")])
            .token("AUTH")
            .optional(),
        string("clientname").token("SETNAME").optional(),
    ],
)
.optional()];

pub(super) const COMMAND_LIST: &[Argument] = &[one_of(
    "filterby",
    &[
        string("module-name").token("MODULE"),
        string("category").token("ACLCAT"),
        pattern("pattern").token("PATTERN"),
    ],
)
.token("FILTERBY")
.optional()];

pub(super) const CONFIG_SET: &[Argument] =
    &[block("data", &[string("parameter"), string("value")]).multiple()];

pub(super) const SHUTDOWN: &[Argument] = &[
    one_of("save-selector", &[word("NOSAVE"), word("SAVE")]).optional(),
    word("NOW").since("7.0.0").optional(),
    word("FORCE").since("7.0.0").optional(),
    word("ABORT").since("7.0.0").optional(),
];
