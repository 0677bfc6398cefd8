//! What the HELP subcommands say.
//!
//! Each is a list of lines: the syntax, then, indented, what it does. The first line and the last two
//! (about HELP itself) are the same for all.

use crate::call::Call;
use crate::core::{Core, Flow};

/// A command with subcommands and the lines of its help.
#[derive(Clone, Copy, Debug)]
pub(super) struct Help {
    name: &'static str,
    lines: &'static [&'static str],
}

/// Answers with a help text.
pub(super) fn answer(core: &mut Core, call: &Call<'_>, help: Help) -> Flow {
    core.reply(call.index, |reply| {
        reply.array(help.lines.len() + 3);
        let name = help.name;
        reply.simple(&format!(
            "{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
        ));
        for line in help.lines {
            reply.simple(line);
        }
        reply.simple("HELP");
        reply.simple("    Print this help.");
    })
}

pub(super) const CLIENT: Help = Help {
    name: "CLIENT",
    lines: &[
        "GETNAME",
        "    The name of this connection.",
        "ID",
        "    The number of this connection.",
        "INFO",
        "    One line about this connection.",
        "KILL <ip:port>",
        "    Close the connection from this address.",
        "KILL <option> <value> [<option> <value> [...]]",
        "    Close the connections that fit all options:",
        "    * ADDR (<ip:port>|<unixsocket>:0)",
        "      Their remote address.",
        "    * LADDR (<ip:port>|<unixsocket>:0)",
        "      Their local address.",
        "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
        "      Their kind.",
        "    * USER <username>",
        "      Their user.",
        "    * SKIPME (YES|NO)",
        "      Whether this connection is spared (default: yes).",
        "    * ID <client-id>",
        "      Their number.",
        "    * MAXAGE <maxage>",
        "      Their age in seconds, at least.",
        "LIST [options ...]",
        "    One line about each connection. Options:",
        "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
        "      Only connections of this kind.",
        "    * ID <client-id> [<client-id> [...]]",
        "      Only these connections.",
        "NO-EVICT (ON|OFF)",
        "    Protect this connection when clients use too much memory.",
        "NO-TOUCH (ON|OFF)",
        "    Let commands of this connection leave access times of keys alone.",
        "PAUSE <timeout> [WRITE|ALL]",
        "    Hold back all commands, or those that write, for <timeout> milliseconds.",
        "REPLY (ON|OFF|SKIP)",
        "    Switch replies on or off, or skip the next one.",
        "SETINFO <option> <value>",
        "    Tell about the client library. Options:",
        "    * LIB-NAME: its name.",
        "    * LIB-VER: its version.",
        "SETNAME <name>",
        "    Name this connection.",
        "UNBLOCK <clientid> [TIMEOUT|ERROR]",
        "    End the wait of a client.",
        "UNPAUSE",
        "    End a pause.",
    ],
};

pub(super) const CONFIG: Help = Help {
    name: "CONFIG",
    lines: &[
        "GET <pattern>",
        "    Settings whose names match the pattern, with their values.",
        "SET <directive> <value>",
        "    Change a setting.",
        "RESETSTAT",
        "    Count the statistics of INFO from zero.",
        "REWRITE",
        "    Write the settings in force to the configuration file.",
    ],
};

pub(super) const COMMAND: Help = Help {
    name: "COMMAND",
    lines: &[
        "(no subcommand)",
        "    Details of all commands.",
        "COUNT",
        "    The number of commands.",
        "LIST",
        "    The names of all commands.",
        "INFO [<command-name> ...]",
        "    Details of these commands, or of all.",
        "DOCS [<command-name> ...]",
        "    Documentation of these commands, or of all.",
        "GETKEYS <full-command>",
        "    The keys in a full command.",
        "GETKEYSANDFLAGS <full-command>",
        "    The keys in a full command, and what it does with each.",
    ],
};

pub(super) const DEBUG: Help = Help {
    name: "DEBUG",
    lines: &[
        "CHANGE-REPL-ID",
        "    Accepted, has no effect: there is no replication.",
        "DIGEST",
        "    A signature of all data.",
        "DIGEST-VALUE <key> [<key> ...]",
        "    Signatures of the values of these keys.",
        "ERROR <string>",
        "    Answer with this error.",
        "HTSTATS <dbid> [full]",
        "    Keys of a database, and how many of them expire.",
        "HTSTATS-KEY <key> [full]",
        "    The hash table of a value.",
        "JMAP",
        "    Accepted, has no effect.",
        "LISTPACK <key>",
        "    Write the packed bytes of a value to the log.",
        "LOG <message>",
        "    Write a message to the log.",
        "OBJECT <key>",
        "    How a value is kept.",
        "PANIC",
        "    End this gateway process by a panic.",
        "POPULATE <count> [<prefix>] [<size>]",
        "    Make this many strings under the names <prefix>:<num>.",
        "PROTOCOL <type>",
        "    Answer with a value of this type: string, integer, double, null, array, set, map,",
        "    attrib, push, verbatim, true, false or bignum.",
        "QUICKLIST <key> [<0|1>]",
        "    Write how a large list is kept to the log.",
        "QUICKLIST-PACKED-THRESHOLD <size>",
        "    Elements of this size get a node of their own; 0: those that do not fit into one.",
        "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
        "    Write every key in its serialized form and read it back. The options are accepted: keys",
        "    are replaced one by one, in memory, whatever they say.",
        "REPLYBUFFER PEAK-RESET-TIME <NEVER|RESET|time>",
        "    Accepted, has no effect.",
        "REPLYBUFFER RESIZING <0|1>",
        "    Accepted, has no effect.",
        "SEGFAULT",
        "    Kill this gateway process.",
        "SET-ACTIVE-EXPIRE (0|1)",
        "    Switch expiry in the background off or on.",
        "SLEEP <seconds>",
        "    Answer after this time; other connections go on. Decimals are allowed.",
        "STRINGMATCH-TEST",
        "    Match patterns and texts by chance.",
    ],
};

pub(super) const MEMORY: Help = Help {
    name: "MEMORY",
    lines: &[
        "DOCTOR",
        "    What is wrong with the use of memory.",
        "MALLOC-STATS",
        "    What the allocators know about themselves.",
        "PURGE",
        "    Give unused memory back to the operating system.",
        "STATS",
        "    How memory is used.",
        "USAGE <key> [SAMPLES <count>]",
        "    Bytes that a key and its value take. <count> is accepted: nothing is estimated.",
    ],
};

pub(super) const FUNCTION: Help = Help {
    name: "FUNCTION",
    lines: &[
        "DELETE <library>",
        "    Remove a library and its functions.",
        "DUMP",
        "    All libraries as bytes.",
        "FLUSH [ASYNC|SYNC]",
        "    Remove all libraries.",
        "KILL",
        "    End the function that runs.",
        "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
        "    Describe the libraries.",
        "LOAD [REPLACE] <code>",
        "    Add a library.",
        "RESTORE <payload> [FLUSH|APPEND|REPLACE]",
        "    Add the libraries of a dump: instead of all, beside all, or instead of those of their names.",
        "STATS",
        "    Describe the function that runs, and count the others.",
    ],
};

pub(super) const SCRIPT: Help = Help {
    name: "SCRIPT",
    lines: &[
        "DEBUG (YES|SYNC|NO)",
        "    The debugger of scripts; there is none.",
        "EXISTS <sha1> [<sha1> ...]",
        "    Whether these scripts are known.",
        "FLUSH [ASYNC|SYNC]",
        "    Forget all scripts.",
        "KILL",
        "    End the script that runs.",
        "LOAD <script>",
        "    Remember a script without running it.",
    ],
};

pub(super) const SLOWLOG: Help = Help {
    name: "SLOWLOG",
    lines: &[
        "GET [<count>]",
        "    The latest slow commands (10, or <count>; -1 means all), each with: number,",
        "    time, microseconds that it took, arguments, address and name of the client.",
        "LEN",
        "    How many there are.",
        "RESET",
        "    Forget all of them.",
    ],
};

pub(super) const OBJECT: Help = Help {
    name: "OBJECT",
    lines: &[
        "ENCODING <key>",
        "    In which form the value is kept.",
        "FREQ <key>",
        "    How often the key was used lately, on a logarithmic scale.",
        "IDLETIME <key>",
        "    Seconds since the key was used.",
        "REFCOUNT <key>",
        "    How often the value is referred to.",
    ],
};

pub(super) const XGROUP: Help = Help {
    name: "XGROUP",
    lines: &[
        "CREATE <key> <groupname> <id|$> [option]",
        "    Make a group that is served what comes behind an id. Options:",
        "    * MKSTREAM",
        "      Make an empty stream if there is none.",
        "    * ENTRIESREAD entries_read",
        "      How many entries lie up to the id.",
        "CREATECONSUMER <key> <groupname> <consumer>",
        "    Make a consumer of a group.",
        "DELCONSUMER <key> <groupname> <consumer>",
        "    Remove a consumer, and what is pending for it.",
        "DESTROY <key> <groupname>",
        "    Remove a group.",
        "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
        "    Let a group be served what comes behind another id.",
    ],
};

pub(super) const XINFO: Help = Help {
    name: "XINFO",
    lines: &[
        "CONSUMERS <key> <groupname>",
        "    The consumers of a group.",
        "GROUPS <key>",
        "    The groups of a stream.",
        "STREAM <key> [FULL [COUNT <count>]",
        "    A stream; with FULL also its first entries, groups and what is pending.",
    ],
};

pub(super) const PUBSUB: Help = Help {
    name: "PUBSUB",
    lines: &[
        "CHANNELS [<pattern>]",
        "    The channels that fit and have subscribers (default: all).",
        "NUMPAT",
        "    How many patterns have subscribers.",
        "NUMSUB [<channel> ...]",
        "    How many subscribers each of these channels has, those of patterns not",
        "    counted (default: no channels).",
        "SHARDCHANNELS [<pattern>]",
        "    The shard channels that fit and have subscribers (default: all).",
        "SHARDNUMSUB [<shardchannel> ...]",
        "    How many subscribers each of these shard channels has",
    ],
};
