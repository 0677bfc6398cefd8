//! Every error text that a client can see.
//!
//! Why one enum: the first word of an error (`WRONGTYPE`, `NOAUTH`, ...) and, for many clients, the
//! whole sentence are public interface. Code that fails names a variant; the sentence stands here
//! once and is pinned by a golden test against the reference (Redis 8.0.6).
//!
//! Layout of a variant's text: the line without the leading `-` and without CRLF, first word
//! included. Text that repeats what a client sent is bytes, not UTF-8; CR and LF inside it become
//! spaces, as Redis does it, so that an error can never break the protocol.
//!
//! Cost: errors without words of the client are plain discriminants; `WRONGTYPE` and friends are
//! normal traffic and allocate nothing.
//!
//! Not here: errors of the byte stream itself (`resp::request::ProtocolError`), frames (`frame`).

use crate::limits::UNKNOWN_COMMAND_BYTES_MAX;
use std::fmt;

macro_rules! fixed_errors {
    ($( $(#[$doc:meta])* $name:ident = $text:literal; )*) => {
        /// An error reply to a command. See the module for how its text is made.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "a fixed text documents itself; the others have fields that do")]
        pub enum CommandError {
            $( $(#[$doc])* $name, )*
            /// The name names no command; holds what the client sent.
            UnknownCommand(Box<[u8]>),
            /// `name` has no such subcommand.
            UnknownSubcommand { name: &'static str, subcommand: Box<[u8]> },
            /// A container command was given a word it understands only with other arguments.
            SubcommandSyntax { name: &'static str, subcommand: Box<[u8]> },
            /// Number of arguments does not fit; `name` as shown to users (`object|encoding`).
            Arity { name: &'static str },
            /// Expiry not positive or beyond what fits; `name` in lower case.
            InvalidExpire { name: &'static str },
            /// An option that the command does not know: `EXPIRE key 1 FOO`.
            UnsupportedOption(Box<[u8]>),
            /// A word that HSETEX does not know.
            UnknownArgument(Box<[u8]>),
            /// `CLIENT LIST TYPE foo`.
            UnknownClientType(Box<[u8]>),
            /// `CLIENT KILL USER foo`.
            NoSuchUser(Box<[u8]>),
            /// `CLIENT SETINFO foo bar`.
            UnrecognizedOption(Box<[u8]>),
            /// `CLIENT SETINFO foo` with a value that CLIENT LIST could not show.
            AttributeCharacters(Box<[u8]>),
            /// `HELLO 3 foo`.
            HelloOption(Box<[u8]>),
            /// `ZUNION 0 k`; `name` in lower case.
            NoInputKey { name: &'static str },
            /// `GEOSEARCH` without one of `words`, which say the same thing; `name` as most clients write it.
            ExactlyOne { words: &'static str, name: &'static str },
            /// Part of the system that answers for the command is gone; `what` names it.
            Unavailable { what: &'static str },
            /// `name` from a client with RESP2 that has subscribed to something.
            Subscribed { name: &'static str },
            /// `name` inside MULTI, where it is refused; Redis answers in its own way to each of these.
            NotInMulti { name: &'static str },
            /// A whole line made by its owner, first word included.
            Line(Box<[u8]>),
        }

        impl CommandError {
            /// The texts that never change, by name; for the golden test and for documentation.
            pub const FIXED: &'static [(&'static str, &'static str)] = &[
                $( (stringify!($name), $text), )*
            ];

            /// The line of an error without words of the client.
            #[inline]
            #[must_use]
            pub fn fixed_text(&self) -> Option<&'static str> {
                match self {
                    $( Self::$name => Some($text), )*
                    _ => None,
                }
            }
        }
    };
}

fixed_errors! {
    // --- values and types
    WrongType = "WRONGTYPE Operation against a key holding the wrong kind of value";
    NoSuchKey = "ERR no such key";
    Syntax = "ERR syntax error";
    NotAnInteger = "ERR value is not an integer or out of range";
    NotAFloat = "ERR value is not a valid float";
    Overflow = "ERR increment or decrement would overflow";
    DecrementOverflow = "ERR decrement would overflow";
    NotFinite = "ERR increment would produce NaN or Infinity";
    SameObject = "ERR source and destination objects are the same";
    NotInt32 = "ERR value is out of range, value must between -2147483648 and 2147483647";
    StringTooLong = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    OffsetOutOfRange = "ERR offset is out of range";
    // --- bitmaps
    BitOffset = "ERR bit offset is not an integer or out of range";
    BitValue = "ERR bit is not an integer or out of range";
    BitArgument = "ERR The bit argument must be 1 or 0.";
    BitfieldType = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";
    BitfieldOverflow = "ERR Invalid OVERFLOW type specified";
    BitfieldReadOnly = "ERR BITFIELD_RO only supports the GET subcommand";
    BitopNot = "ERR BITOP NOT must be called with a single source key.";
    // --- expiry
    ExpireOptionsNx = "ERR NX and XX, GT or LT options at the same time are not compatible";
    ExpireOptionsGtLt = "ERR GT and LT options at the same time are not compatible";
    // --- strings
    LcsStrings = "ERR The specified keys must contain string values";
    LcsTooLong = "ERR String too long for LCS";
    LcsMemory = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
    LcsLenAndIdx = "ERR If you want both the length and indexes, please just use IDX.";
    // --- lists
    IndexOutOfRange = "ERR index out of range";
    RankZero = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list";
    CountNegative = "ERR COUNT can't be negative";
    MaxlenNegative = "ERR MAXLEN can't be negative";
    CountNotPositive = "ERR count should be greater than 0";
    PackedThreshold = "ERR argument must be a memory value bigger than 1 and smaller than 4gb";
    // --- hashes
    HashValueNotInteger = "ERR hash value is not an integer";
    HashValueNotFloat = "ERR hash value is not a float";
    IncrementNotFinite = "ERR value is NaN or Infinity";
    FieldsMissing = "ERR Mandatory argument FIELDS is missing or not at the right position";
    FieldCountMismatch = "ERR The `numfields` parameter must match the number of arguments";
    FieldCountNotPositive = "ERR Number of fields must be a positive integer";
    NumFieldsNotPositive = "ERR Parameter `numFields` should be greater than 0";
    InvalidFieldCount = "ERR invalid number of fields";
    NegativeExpire = "ERR invalid expire time, must be >= 0";
    FieldConditions = "ERR Only one of FXX or FNX arguments can be specified";
    FieldExpiries = "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
    // --- sets
    NotPositive = "ERR value is out of range, must be positive";
    NumkeysNotPositive = "ERR numkeys should be greater than 0";
    NumkeysTooLarge = "ERR Number of keys can't be greater than number of args";
    LimitNegative = "ERR LIMIT can't be negative";
    // --- sorted sets
    ScoreRange = "ERR min or max is not a float";
    LexRange = "ERR min or max not valid string range item";
    XxAndNx = "ERR XX and NX options at the same time are not compatible";
    GtLtAndNx = "ERR GT, LT, and/or NX options at the same time are not compatible";
    IncrOfOnePair = "ERR INCR option supports a single increment-element pair";
    ScoreNaN = "ERR resulting score is not a number (NaN)";
    RangeLimit = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
    RangeLexScores = "ERR syntax error, WITHSCORES not supported in combination with BYLEX";
    WeightNotFloat = "ERR weight value is not a float";
    // --- streams
    StreamId = "ERR Invalid stream ID specified as stream command argument";
    StreamIdZero = "ERR The ID specified in XADD must be greater than 0-0";
    StreamIdNotGreater = "ERR The ID specified in XADD is equal or smaller than the target stream top item";
    StreamIdsExhausted = "ERR The stream has exhausted the last possible ID, unable to add more items";
    StreamEntryTooLarge = "ERR Elements are too large to be stored";
    StreamIntervalStart = "ERR invalid start ID for the interval";
    StreamIntervalEnd = "ERR invalid end ID for the interval";
    TrimStrategies = "ERR syntax error, MAXLEN and MINID options at the same time are not compatible";
    TrimMaxLen = "ERR The MAXLEN argument must be >= 0.";
    TrimLimit = "ERR The LIMIT argument must be >= 0.";
    TrimLimitAlone = "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy";
    TrimMissing = "ERR syntax error, XTRIM must be called with a trimming strategy";
    TrimLimitExact = "ERR syntax error, LIMIT cannot be used without the special ~ option";
    XreadUnbalanced = "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified.";
    XreadgroupUnbalanced = "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified.";
    XreadGroup = "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.";
    XreadNoAck = "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.";
    XreadNew = "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.";
    XreadgroupNoGroup = "ERR Missing GROUP option for XREADGROUP";
    XreadgroupEnd = "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.";
    XreadgroupLast = "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return an empty result set.";
    XgroupNoStream = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.";
    XgroupEntriesRead = "ERR value for ENTRIESREAD must be positive or -1";
    XgroupBusy = "BUSYGROUP Consumer Group name already exists";
    XsetidEntriesAdded = "ERR entries_added must be positive";
    XsetidMaxDeleted = "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id";
    XsetidDeleted = "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id";
    XsetidTop = "ERR The ID specified in XSETID is smaller than the target stream top item";
    XsetidLength = "ERR The entries_added specified in XSETID is smaller than the target stream length";
    XclaimMinIdle = "ERR Invalid min-idle-time argument for XCLAIM";
    XclaimIdle = "ERR Invalid IDLE option argument for XCLAIM";
    XclaimTime = "ERR Invalid TIME option argument for XCLAIM";
    XclaimRetryCount = "ERR Invalid RETRYCOUNT option argument for XCLAIM";
    XautoclaimMinIdle = "ERR Invalid min-idle-time argument for XAUTOCLAIM";
    XautoclaimCount = "ERR COUNT must be > 0";
    XautoclaimMemory = "ERR Insufficient memory, failed allocating transient memory, COUNT too high.";
    // --- places
    GeoUnit = "ERR unsupported unit provided. please use M, KM, FT, MI";
    GeoRadius = "ERR need numeric radius";
    GeoRadiusNegative = "ERR radius cannot be negative";
    GeoWidth = "ERR need numeric width";
    GeoHeight = "ERR need numeric height";
    GeoBoxNegative = "ERR height or width cannot be negative";
    GeoMember = "ERR could not decode requested zset member";
    GeoCount = "ERR COUNT must be > 0";
    GeoAny = "ERR the ANY argument requires COUNT argument";
    GeoSearchStoreShows = "ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options";
    GeoRadiusStoreShows = "ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options";
    // --- HyperLogLogs
    NotHyperLogLog = "WRONGTYPE Key is not a valid HyperLogLog string value.";
    CorruptHyperLogLog = "INVALIDOBJ Corrupted HLL object detected";
    HyperLogLogNotSparse = "ERR HLL encoding is not sparse";
    NotOnOrOff = "ERR Argument must be ON or OFF";
    NoSuchKeyHere = "ERR The specified key does not exist";
    // --- scripts
    NoScript = "NOSCRIPT No matching script. Please use EVAL.";
    KeyCountNegative = "ERR Number of keys can't be negative";
    ReadOnlyScript = "ERR Can not execute a script with write flag using *_ro command.";
    ScriptUnknownCommand = "ERR Unknown Redis command called from script";
    ScriptArity = "ERR Wrong number of args calling Redis command from script";
    ScriptForbidden = "ERR This Redis command is not allowed from script";
    ScriptWrites = "ERR Write commands are not allowed from read-only scripts.";
    ScriptNotServed = "ERR This command is not served inside of scripts yet";
    ScriptElsewhere = "ERR Script attempted to access keys of another storage worker, which is not possible yet";
    ScriptEngine = "ERR There is not enough memory for the script engine";
    NoScriptRuns = "NOTBUSY No scripts in execution right now.";
    ScriptUnkillable = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.";
    BusyScript = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
    BusyFunction = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";
    ScriptFlushOption = "ERR SCRIPT FLUSH only support SYNC|ASYNC option";
    ScriptDebugMode = "ERR Use SCRIPT DEBUG YES/SYNC/NO";
    ScriptDebugMissing = "ERR There is no debugger of scripts";
    // --- functions
    FunctionNotFound = "ERR Function not found";
    FunctionKeyCount = "ERR Bad number of keys provided";
    FunctionRead = "ERR failed loading functions payload";
    FunctionReadType = "ERR given type is not a function";
    FunctionCodeMissing = "ERR Function code is missing";
    FunctionFlushOption = "ERR FUNCTION FLUSH only supports SYNC|ASYNC option";
    FunctionLibraryName = "ERR library name argument was not given";
    FunctionPolicy = "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.";
    // --- generic
    SlowLogCount = "ERR count should be greater than or equal to -1";
    OutOfRange = "ERR value is out of range";
    NotInSymmetricRange = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
    SortByDenied = "ERR BY option of SORT denied in cluster mode when keys formed by the pattern may be in different slots.";
    SortGetDenied = "ERR GET option of SORT denied in cluster mode when keys formed by the pattern may be in different slots.";
    ScoresNotNumbers = "ERR One or more scores can't be converted into double";
    InvalidCursor = "ERR invalid cursor";
    NoValuesOutsideHscan = "ERR NOVALUES option can only be used in HSCAN";
    FirstDatabase = "ERR invalid first DB index";
    SecondDatabase = "ERR invalid second DB index";
    DatabaseOutOfRange = "ERR DB index is out of range";
    BusyKey = "BUSYKEY Target key name already exists.";
    RestoreIdleTime = "ERR Invalid IDLETIME value, must be >= 0";
    RestoreFrequency = "ERR Invalid FREQ value, must be >= 0 and <= 255";
    RestoreTtl = "ERR Invalid TTL value, must be >= 0";
    RestorePayload = "ERR DUMP payload version or checksum are wrong";
    RestoreData = "ERR Bad data format";
    ReloadOptions = "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.";
    ReloadFailed = "ERR Error trying to load the RDB dump, check server logs.";
    NoFrequency = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.";
    NoIdleTime = "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.";
    // --- connection
    NoAuth = "NOAUTH Authentication required.";
    NoAuthHello = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";
    WrongPassword = "WRONGPASS invalid username-password pair or user is disabled.";
    NoPasswordSet = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?";
    NoProto = "NOPROTO unsupported protocol version";
    ProtoNotInteger = "ERR Protocol version is not an integer or out of range";
    ClientNameCharacters = "ERR Client names cannot contain spaces, newlines or special characters.";
    NoSuchClient = "ERR No such client";
    ClientIdNotPositive = "ERR client-id should be greater than 0";
    MaxAgeNotInteger = "ERR maxage is not an integer or out of range";
    MaxAgeNotPositive = "ERR maxage should be greater than 0";
    PauseMode = "ERR CLIENT PAUSE mode must be WRITE or ALL";
    ClientIdInvalid = "ERR Invalid client ID";
    TimeoutNotInteger = "ERR timeout is not an integer or out of range";
    TimeoutNegative = "ERR timeout is negative";
    TimeoutNotFloat = "ERR timeout is not a float or out of range";
    TimeoutOutOfRange = "ERR timeout is out of range";
    NotInTransaction = "ERR Command not allowed inside a transaction";
    ExecWithoutMulti = "ERR EXEC without MULTI";
    DiscardWithoutMulti = "ERR DISCARD without MULTI";
    ExecAborted = "EXECABORT Transaction discarded because of previous errors.";
    Unblocked = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
    UnblockReason = "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR";
    MaxClients = "ERR max number of clients reached";
    // --- server
    InvalidCommand = "ERR Invalid command specified";
    NoKeyArguments = "ERR The command has no key arguments";
    InvalidArguments = "ERR Invalid number of arguments specified for command";
    InvalidKeyArguments = "ERR Invalid arguments specified for command";
    OutOfMemory = "OOM command not allowed when used memory > 'maxmemory'.";
    NoReplicas = "NOREPLICAS Not enough good replicas to write.";
    ClusterDisabled = "ERR This instance has cluster support disabled";
    DebugNotAllowed = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.";
    ShutdownNotRunning = "ERR No shutdown in progress.";
    NoConfigFile = "ERR The server is running without a config file";
    CrossSlot = "CROSSSLOT Keys in request don't hash to the same slot";
    // --- ours: a part of the system died or is missing
    OutcomeUnknown = "ERR storage worker died inside this command, outcome unknown";
    NoSupervisor = "ERR no supervisor is running, this cannot be done now";
    Internal = "ERR internal error, see the log";
}

impl CommandError {
    /// The error for a name that no row has, with the beginning of its arguments as Redis shows it.
    #[must_use]
    pub fn unknown_command<'a>(name: &[u8], arguments: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut shown = Vec::with_capacity(64);
        for argument in arguments {
            if shown.len() >= UNKNOWN_COMMAND_BYTES_MAX {
                break;
            }
            let room = UNKNOWN_COMMAND_BYTES_MAX - shown.len();
            shown.push(b'\'');
            shown.extend_from_slice(printed(argument, room));
            shown.extend_from_slice(b"' ");
        }
        let mut text = b"ERR unknown command '".to_vec();
        text.extend_from_slice(printed(name, UNKNOWN_COMMAND_BYTES_MAX));
        text.extend_from_slice(b"', with args beginning with: ");
        text.extend_from_slice(&shown);
        Self::UnknownCommand(text.into())
    }

    /// The error for a subcommand that container `name` does not have.
    #[must_use]
    pub fn unknown_subcommand(name: &'static str, subcommand: &[u8]) -> Self {
        Self::UnknownSubcommand {
            name,
            subcommand: printed(subcommand, UNKNOWN_COMMAND_BYTES_MAX).into(),
        }
    }

    /// EXEC itself was refused because of this error.
    #[must_use]
    pub fn aborting_exec(&self) -> Self {
        let line = self.to_line();
        // As the reference prints it: of its own errors only those without a code have one put in front.
        let line = line.strip_prefix(b"ERR ").unwrap_or(&line);
        let mut text = b"EXECABORT Transaction discarded because of: ".to_vec();
        text.extend_from_slice(line);
        Self::Line(text.into())
    }

    /// Appends the error as RESP: `-`, the line, CRLF.
    pub fn write_resp(&self, out: &mut Vec<u8>) {
        out.push(b'-');
        if let Some(text) = self.fixed_text() {
            out.extend_from_slice(text.as_bytes());
        } else {
            let start = out.len();
            self.write_line(out);
            for byte in &mut out[start..] {
                if matches!(*byte, b'\r' | b'\n') {
                    *byte = b' ';
                }
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The line as bytes, without `-` and CRLF.
    #[must_use]
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = Vec::new();
        self.write_line(&mut line);
        line
    }

    /// The first word: `ERR`, `WRONGTYPE`, ... INFO counts errors by it.
    #[must_use]
    pub fn code(&self) -> String {
        let line = self.to_line();
        let end = line
            .iter()
            .position(|&byte| byte == b' ')
            .unwrap_or(line.len());
        String::from_utf8_lossy(&line[..end]).into_owned()
    }

    fn write_line(&self, out: &mut Vec<u8>) {
        // Whatever a client sent is shown up to its first NUL.
        let mut parts = |parts: &[&[u8]]| {
            let shown = parts.iter().map(|part| printed(part, usize::MAX));
            shown.for_each(|part| out.extend_from_slice(part));
        };
        match self {
            Self::UnknownCommand(line) | Self::Line(line) => parts(&[line]),
            Self::UnknownSubcommand { name, subcommand } => parts(&[
                b"ERR unknown subcommand '",
                subcommand,
                b"'. Try ",
                name.to_uppercase().as_bytes(),
                b" HELP.",
            ]),
            Self::SubcommandSyntax { name, subcommand } => parts(&[
                b"ERR unknown subcommand or wrong number of arguments for '",
                subcommand,
                b"'. Try ",
                name.to_uppercase().as_bytes(),
                b" HELP.",
            ]),
            Self::Arity { name } => {
                parts(&[
                    b"ERR wrong number of arguments for '",
                    name.as_bytes(),
                    b"' command",
                ]);
            }
            Self::InvalidExpire { name } => {
                parts(&[
                    b"ERR invalid expire time in '",
                    name.as_bytes(),
                    b"' command",
                ]);
            }
            Self::Subscribed { name } => parts(&[
                b"ERR Can't execute '",
                name.as_bytes(),
                b"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
            ]),
            Self::NotInMulti { name } => parts(&[
                b"ERR Command '",
                name.as_bytes(),
                b"' not allowed inside a transaction",
            ]),
            Self::NoInputKey { name } => parts(&[
                b"ERR at least 1 input key is needed for '",
                name.as_bytes(),
                b"' command",
            ]),
            Self::ExactlyOne { words, name } => parts(&[
                b"ERR exactly one of ",
                words.as_bytes(),
                b" can be specified for ",
                name.as_bytes(),
            ]),
            Self::UnsupportedOption(option) => parts(&[b"ERR Unsupported option ", option]),
            Self::UnknownArgument(word) => parts(&[b"ERR unknown argument: ", word]),
            Self::UnknownClientType(name) => parts(&[b"ERR Unknown client type '", name, b"'"]),
            Self::NoSuchUser(name) => parts(&[b"ERR No such user '", name, b"'"]),
            Self::UnrecognizedOption(name) => parts(&[b"ERR Unrecognized option '", name, b"'"]),
            Self::AttributeCharacters(name) => parts(&[
                b"ERR ",
                name,
                b" cannot contain spaces, newlines or special characters.",
            ]),
            Self::HelloOption(name) => parts(&[b"ERR Syntax error in HELLO option '", name, b"'"]),
            Self::Unavailable { what } => {
                parts(&[b"ERR ", what.as_bytes(), b" is not available right now"]);
            }
            fixed => parts(&[fixed.fixed_text().unwrap_or("ERR").as_bytes()]),
        }
    }
}

/// What C's `%.*s` prints of client bytes: at most `limit`, and nothing behind a NUL.
fn printed(bytes: &[u8], limit: usize) -> &[u8] {
    let cut = &bytes[..bytes.len().min(limit)];
    &cut[..memchr::memchr(0, cut).unwrap_or(cut.len())]
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fixed_text() {
            Some(text) => f.write_str(text),
            None => f.write_str(&String::from_utf8_lossy(&self.to_line())),
        }
    }
}

impl std::error::Error for CommandError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_command_repeats_at_most_128_bytes_of_arguments() {
        let long = vec![b'x'; 200];
        let error =
            CommandError::unknown_command(b"foo", [b"a\0b".as_slice(), &long, b"z"].into_iter());
        let line = String::from_utf8(error.to_line()).unwrap();
        assert!(line.starts_with("ERR unknown command 'foo', with args beginning with: 'a' 'xxx"));
        assert_eq!(line.matches('x').count(), 128 - 4);
        assert!(!line.contains('z'));
    }

    #[test]
    fn line_breaks_of_a_client_cannot_break_the_protocol() {
        let mut out = Vec::new();
        CommandError::unknown_command(b"a\r\n-b", std::iter::empty()).write_resp(&mut out);
        assert_eq!(
            out,
            b"-ERR unknown command 'a  -b', with args beginning with: \r\n"
        );
    }

    #[test]
    fn errors_are_small() {
        assert!(size_of::<CommandError>() <= 40);
    }
}
