//! Commands that the gateway executes itself. One row each; see `catalogue` for how rows are used and
//! `storage` for the columns. The paths are those of functions in `gateway/src/commands`.

use super::arguments::*;
use super::command_table;
use super::flags::access::{NOT_KEY, RO};
use super::flags::category;
use super::flags::flag::*;
use super::keys::*;
use super::route::Route::*;
use super::spec::Group::*;
use super::spec::{CommandRef, Details, Row, Spec, docs, row};

/// Hands all rows to the macro `$with`, which sees
/// `$( $(#[doc = $summary:literal])+ $id:ident $columns:tt => $handler:path; )*`.
#[macro_export]
macro_rules! gateway_commands {
    ($with:ident) => { $with! {
        // --- connections
        /// Authenticates the connection.
        Auth           ("auth", -2, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, none(), Gateway,
            docs(Connection, "1.0.0", "O(N) with N the number of passwords of the user", AUTH)
                .history(&[("6.0.0", "User and password.")]))
            => connection::auth;
        /// Returns the name of the connection.
        ClientGetName  ("client|getname", 2, NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Connection, "2.6.9", "O(1)", NONE))
            => client::getname;
        /// Lists the subcommands.
        ClientHelp     ("client|help", 2, LOADING | STALE, none(), Gateway,
            docs(Connection, "5.0.0", "O(1)", NONE))
            => client::help;
        /// Returns the number of the connection.
        ClientId       ("client|id", 2, NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Connection, "5.0.0", "O(1)", NONE))
            => client::id;
        /// Describes the connection.
        ClientInfo     ("client|info", 2, NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Connection, "6.2.0", "O(1)", NONE).tips(&["nondeterministic_output"]))
            => client::info;
        /// Closes connections.
        ClientKill     ("client|kill", -3, ADMIN | NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Connection, "2.4.0", "O(N) with N the number of connections", CLIENT_KILL)
                .history(&[("2.8.12", "Filters by name."), ("2.8.12", "`ID`."), ("3.2.0", "`TYPE master`."), ("5.0.0", "`TYPE replica`; `slave` still works."), ("6.2.0", "`LADDR`."), ("7.4.0", "`MAXAGE`.")]))
            => client::kill;
        /// Describes all connections, or some of them.
        ClientList     ("client|list", -2, ADMIN | NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Connection, "2.4.0", "O(N) with N the number of connections", CLIENT_LIST)
                .history(&[("2.8.12", "Field `id`."), ("5.0.0", "`TYPE`."), ("6.0.0", "Field `user`."), ("6.2.0", "Fields `argv-mem`, `tot-mem`, `laddr` and `redir`; `ID`."), ("7.0.0", "Fields `resp`, `multi-mem`, `rbs` and `rbp`."), ("7.0.3", "Field `ssub`."), ("7.2.0", "Fields `lib-name` and `lib-ver`."), ("7.4.0", "Field `watch`."), ("8.0.0", "Field `io-thread`.")])
                .tips(&["nondeterministic_output"]))
            => client::list;
        /// Protects the connection from being closed when clients use too much memory.
        ClientNoEvict  ("client|no-evict", 3, ADMIN | NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Connection, "7.0.0", "O(1)", &[one_of("enabled", &[word("ON"), word("OFF")])]))
            => client::no_evict;
        /// Lets commands of the connection leave the access clocks of keys alone.
        ClientNoTouch  ("client|no-touch", 3, NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Connection, "7.2.0", "O(1)", &[one_of("enabled", &[word("ON"), word("OFF")])]))
            => client::no_touch;
        /// Holds back the commands of all connections for a while.
        ClientPause    ("client|pause", -3, ADMIN | NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Connection, "3.0.0", "O(1)", CLIENT_PAUSE).history(&[("6.2.0", "`WRITE` and `ALL`.")]))
            => client::pause;
        /// Switches replies off and on.
        ClientReply    ("client|reply", 3, NOSCRIPT | LOADING | STALE | REFUSED_IN_MULTI, none(), Gateway,
            docs(Connection, "3.2.0", "O(1)", &[one_of("action", &[word("ON"), word("OFF"), word("SKIP")])]))
            => client::reply;
        /// Records name or version of the client library.
        ClientSetInfo  ("client|setinfo", 4, NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Connection, "7.2.0", "O(1)", CLIENT_SETINFO)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]))
            => client::setinfo;
        /// Names the connection.
        ClientSetName  ("client|setname", 3, NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Connection, "2.6.9", "O(1)", &[string("connection-name")])
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]))
            => client::setname;
        /// Ends the wait of a client.
        ClientUnblock  ("client|unblock", -3, ADMIN | NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Connection, "5.0.0", "O(log N) with N the number of connections", CLIENT_UNBLOCK))
            => client::unblock;
        /// Ends a pause.
        ClientUnpause  ("client|unpause", 2, ADMIN | NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Connection, "6.2.0", "O(N) with N the number of held back connections", NONE))
            => client::unpause;
        /// Returns its argument.
        Echo           ("echo", 2, LOADING | STALE | FAST, none(), Gateway,
            docs(Connection, "1.0.0", "O(1)", &[string("message")]))
            => connection::echo;
        /// Chooses the protocol version; may authenticate and name the connection.
        Hello          ("hello", -1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, none(), Gateway,
            docs(Connection, "6.0.0", "O(1)", HELLO)
                .history(&[("6.2.0", "May be called without a version, which changes nothing.")]))
            => connection::hello;
        /// Answers, to show that the server is alive.
        Ping           ("ping", -1, FAST | SUBSCRIBED, none(), Gateway,
            docs(Connection, "1.0.0", "O(1)", &[string("message").optional()])
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]))
            => connection::ping;
        /// Closes the connection.
        Quit           ("quit", -1, NOSCRIPT | SUBSCRIBED | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY | AT_ONCE_IN_MULTI, none(), Gateway,
            docs(Connection, "1.0.0", "O(1)", NONE).deprecated("7.2.0", "closing the socket"))
            => connection::quit;
        /// Allows reads from a replica; without replicas it changes nothing.
        ReadOnly       ("readonly", 1, LOADING | STALE | FAST, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", NONE).categories(category::CONNECTION))
            => connection::readonly;
        /// Takes back READONLY.
        ReadWrite      ("readwrite", 1, LOADING | STALE | FAST, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", NONE).categories(category::CONNECTION))
            => connection::readwrite;
        /// Puts the connection back into the state of a new one.
        Reset          ("reset", 1, NOSCRIPT | SUBSCRIBED | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY | AT_ONCE_IN_MULTI, none(), Gateway,
            docs(Connection, "6.2.0", "O(1)", NONE))
            => connection::reset;
        /// Chooses the database.
        Select         ("select", 2, LOADING | STALE | FAST, none(), Gateway,
            docs(Connection, "1.0.0", "O(1)", &[int("index")]))
            => connection::select;

        // --- channels
        /// Hears what is published in channels that match patterns.
        PSubscribe     ("psubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE | SUBSCRIBED, none(), Gateway,
            docs(PubSub, "2.0.0", "O(N) with N the number of patterns", &[pattern("pattern").multiple()]))
            => pubsub::psubscribe;
        /// Publishes a message in a channel.
        Publish        ("publish", 3, PUBSUB | MAY_REPLICATE | LOADING | STALE | FAST, none(), Gateway,
            docs(PubSub, "2.0.0", "O(N+M) with N the number of subscribers and M the number of patterns that can match", &[string("channel"), string("message")]))
            => pubsub::publish;
        /// Returns the channels that somebody has subscribed to.
        PubSubChannels ("pubsub|channels", -2, PUBSUB | LOADING | STALE, none(), Gateway,
            docs(PubSub, "2.8.0", "O(N) with N the number of channels", &[pattern("pattern").optional()]))
            => pubsub::channels;
        /// Lists the subcommands.
        PubSubHelp     ("pubsub|help", 2, LOADING | STALE, none(), Gateway,
            docs(PubSub, "6.2.0", "O(1)", NONE).categories(0))
            => pubsub::help;
        /// Returns the number of patterns that somebody has subscribed to.
        PubSubNumPat   ("pubsub|numpat", 2, PUBSUB | LOADING | STALE, none(), Gateway,
            docs(PubSub, "2.8.0", "O(1)", NONE))
            => pubsub::numpat;
        /// Returns the number of subscribers of channels.
        PubSubNumSub   ("pubsub|numsub", -2, PUBSUB | LOADING | STALE, none(), Gateway,
            docs(PubSub, "2.8.0", "O(N) with N the number of channels asked for", &[string("channel").optional().multiple()]))
            => pubsub::numsub;
        /// Returns the shard channels that somebody has subscribed to.
        PubSubShardChannels("pubsub|shardchannels", -2, PUBSUB | LOADING | STALE, none(), Gateway,
            docs(PubSub, "7.0.0", "O(N) with N the number of shard channels", &[pattern("pattern").optional()]))
            => pubsub::shardchannels;
        /// Returns the number of subscribers of shard channels.
        PubSubShardNumSub("pubsub|shardnumsub", -2, PUBSUB | LOADING | STALE, none(), Gateway,
            docs(PubSub, "7.0.0", "O(N) with N the number of channels asked for", &[string("shardchannel").optional().multiple()]))
            => pubsub::shardnumsub;
        /// Does not hear patterns any more.
        PUnsubscribe   ("punsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE | SUBSCRIBED, none(), Gateway,
            docs(PubSub, "2.0.0", "O(N) with N the number of patterns", &[pattern("pattern").optional().multiple()]))
            => pubsub::punsubscribe;
        /// Publishes a message in a shard channel.
        SPublish       ("spublish", 3, PUBSUB | MAY_REPLICATE | LOADING | STALE | FAST, one(NOT_KEY), Gateway,
            docs(PubSub, "7.0.0", "O(N) with N the number of subscribers", &[string("shardchannel"), string("message")]))
            => pubsub::spublish;
        /// Hears what is published in shard channels.
        SSubscribe     ("ssubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE | SUBSCRIBED, all(NOT_KEY), Gateway,
            docs(PubSub, "7.0.0", "O(N) with N the number of shard channels", &[string("shardchannel").multiple()]))
            => pubsub::ssubscribe;
        /// Hears what is published in channels.
        Subscribe      ("subscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE | SUBSCRIBED, none(), Gateway,
            docs(PubSub, "2.0.0", "O(N) with N the number of channels", &[string("channel").multiple()]))
            => pubsub::subscribe;
        /// Does not hear shard channels any more.
        SUnsubscribe   ("sunsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE | SUBSCRIBED, all(NOT_KEY), Gateway,
            docs(PubSub, "7.0.0", "O(N) with N the number of shard channels", &[string("shardchannel").optional().multiple()]))
            => pubsub::sunsubscribe;
        /// Does not hear channels any more.
        Unsubscribe    ("unsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE | SUBSCRIBED, none(), Gateway,
            docs(PubSub, "2.0.0", "O(N) with N the number of channels", &[string("channel").optional().multiple()]))
            => pubsub::unsubscribe;

        // --- transactions
        /// Forgets the queued commands and the watched keys.
        Discard        ("discard", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY | AT_ONCE_IN_MULTI, none(), Gateway,
            docs(Transactions, "2.0.0", "O(N) with N the number of queued commands", NONE))
            => transaction::discard;
        /// Runs the queued commands as one.
        Exec           ("exec", 1, NOSCRIPT | LOADING | STALE | SKIP_SLOWLOG | AT_ONCE_IN_MULTI, none(), Gateway,
            docs(Transactions, "1.2.0", "That of the queued commands", NONE))
            => transaction::exec;
        /// Begins to queue commands.
        Multi          ("multi", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY | REFUSED_IN_MULTI, none(), Gateway,
            docs(Transactions, "1.2.0", "O(1)", NONE))
            => transaction::multi;
        /// Forgets the watched keys.
        Unwatch        ("unwatch", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, none(), Gateway,
            docs(Transactions, "2.2.0", "O(1)", NONE))
            => transaction::unwatch;
        /// Lets EXEC do nothing if one of these keys has been changed until then.
        Watch          ("watch", -2, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY | REFUSED_IN_MULTI, all(RO), Gateway,
            docs(Transactions, "2.2.0", "O(N) with N the number of keys", KEYS))
            => transaction::watch;

        // --- about commands
        /// Describes all commands.
        Command        ("command", -1, LOADING | STALE, none(), Gateway,
            docs(Server, "2.8.13", "O(N) with N the number of commands", NONE)
                .tips(&["nondeterministic_output_order"]).categories(category::CONNECTION))
            => introspection::command;
        /// Returns the number of commands.
        CommandCount   ("command|count", 2, LOADING | STALE, none(), Gateway,
            docs(Server, "2.8.13", "O(1)", NONE).categories(category::CONNECTION))
            => introspection::count;
        /// Returns the documentation of commands.
        CommandDocs    ("command|docs", -2, LOADING | STALE, none(), Gateway,
            docs(Server, "7.0.0", "O(N) with N the number of commands asked for", &[string("command-name").optional().multiple()])
                .tips(&["nondeterministic_output_order"]).categories(category::CONNECTION))
            => introspection::docs;
        /// Returns the keys of a request.
        CommandGetKeys ("command|getkeys", -3, LOADING | STALE, none(), Gateway,
            docs(Server, "2.8.13", "O(N) with N the number of arguments", &[string("command"), string("arg").optional().multiple()])
                .categories(category::CONNECTION))
            => introspection::getkeys;
        /// Returns the keys of a request and what it does with them.
        CommandGetKeysAndFlags("command|getkeysandflags", -3, LOADING | STALE, none(), Gateway,
            docs(Server, "7.0.0", "O(N) with N the number of arguments", &[string("command"), string("arg").optional().multiple()])
                .categories(category::CONNECTION))
            => introspection::getkeysandflags;
        /// Lists the subcommands.
        CommandHelp    ("command|help", 2, LOADING | STALE, none(), Gateway,
            docs(Server, "5.0.0", "O(1)", NONE).categories(category::CONNECTION))
            => introspection::help;
        /// Describes some commands, or all.
        CommandInfo    ("command|info", -2, LOADING | STALE, none(), Gateway,
            docs(Server, "2.8.13", "O(N) with N the number of commands asked for", &[string("command-name").optional().multiple()])
                .history(&[("7.0.0", "Without arguments: all commands.")])
                .tips(&["nondeterministic_output_order"]).categories(category::CONNECTION))
            => introspection::info;
        /// Returns the names of commands.
        CommandList    ("command|list", -2, LOADING | STALE, none(), Gateway,
            docs(Server, "7.0.0", "O(N) with N the number of commands", COMMAND_LIST)
                .tips(&["nondeterministic_output_order"]).categories(category::CONNECTION))
            => introspection::list;

        // --- the server
        /// Gives slots to the node.
        ClusterAddSlots ("cluster|addslots", -3, ADMIN | STALE | NO_ASYNC_LOADING, none(), Gateway,
            docs(Cluster, "3.0.0", "O(N) with N the number of slots", &[int("slot").multiple()]))
            => server::cluster_disabled;
        /// Gives ranges of slots to the node.
        ClusterAddSlotsRange ("cluster|addslotsrange", -4, ADMIN | STALE | NO_ASYNC_LOADING, none(), Gateway,
            docs(Cluster, "7.0.0", "O(N) with N the number of slots in all ranges", CLUSTER_RANGES))
            => server::cluster_disabled;
        /// Raises the node's epoch.
        ClusterBumpEpoch ("cluster|bumpepoch", 2, ADMIN | STALE | NO_ASYNC_LOADING, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", NONE).tips(&["nondeterministic_output"]))
            => server::cluster_disabled;
        /// Counts the nodes that report a node as lost.
        ClusterCountFailureReports ("cluster|count-failure-reports", 3, ADMIN | STALE, none(), Gateway,
            docs(Cluster, "3.0.0", "O(N) with N the number of reports", &[string("node-id")]).tips(&["nondeterministic_output"]))
            => server::cluster_disabled;
        /// Counts the keys of a slot.
        ClusterCountKeysInSlot ("cluster|countkeysinslot", 3, STALE, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", &[int("slot")]))
            => server::cluster_disabled;
        /// Takes slots away from the node.
        ClusterDelSlots ("cluster|delslots", -3, ADMIN | STALE | NO_ASYNC_LOADING, none(), Gateway,
            docs(Cluster, "3.0.0", "O(N) with N the number of slots", &[int("slot").multiple()]))
            => server::cluster_disabled;
        /// Takes ranges of slots away from the node.
        ClusterDelSlotsRange ("cluster|delslotsrange", -4, ADMIN | STALE | NO_ASYNC_LOADING, none(), Gateway,
            docs(Cluster, "7.0.0", "O(N) with N the number of slots in all ranges", CLUSTER_RANGES))
            => server::cluster_disabled;
        /// Makes a replica take over from its primary.
        ClusterFailover ("cluster|failover", -2, ADMIN | STALE | NO_ASYNC_LOADING, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", &[one_of("options", &[word("FORCE"), word("TAKEOVER")]).optional()]))
            => server::cluster_disabled;
        /// Takes all slots away from the node.
        ClusterFlushSlots ("cluster|flushslots", 2, ADMIN | STALE | NO_ASYNC_LOADING, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", NONE))
            => server::cluster_disabled;
        /// Removes a node from the table of nodes.
        ClusterForget ("cluster|forget", 3, ADMIN | STALE | NO_ASYNC_LOADING, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", &[string("node-id")]))
            => server::cluster_disabled;
        /// Lists keys of a slot.
        ClusterGetKeysInSlot ("cluster|getkeysinslot", 4, STALE, none(), Gateway,
            docs(Cluster, "3.0.0", "O(N) with N the number of keys asked for", &[int("slot"), int("count")]).tips(&["nondeterministic_output"]))
            => server::cluster_disabled;
        /// Lists the subcommands.
        ClusterHelp ("cluster|help", 2, LOADING | STALE, none(), Gateway,
            docs(Cluster, "5.0.0", "O(1)", NONE))
            => server::cluster_disabled;
        /// Describes the state of the node.
        ClusterInfo ("cluster|info", 2, STALE, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", NONE).tips(&["nondeterministic_output"]))
            => server::cluster_disabled;
        /// Returns the slot of a key.
        ClusterKeySlot ("cluster|keyslot", 3, STALE, none(), Gateway,
            docs(Cluster, "3.0.0", "O(N) with N the length of the key", &[string("key")]))
            => server::cluster_keyslot;
        /// Lists the connections to other nodes.
        ClusterLinks ("cluster|links", 2, STALE, none(), Gateway,
            docs(Cluster, "7.0.0", "O(N) with N the number of nodes", NONE).tips(&["nondeterministic_output"]))
            => server::cluster_disabled;
        /// Gets to know another node.
        ClusterMeet ("cluster|meet", -4, ADMIN | STALE | NO_ASYNC_LOADING, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", CLUSTER_MEET)
                .history(&[("4.0.0", "`cluster_bus_port`.")]))
            => server::cluster_disabled;
        /// Returns the id of the node.
        ClusterMyId ("cluster|myid", 2, STALE, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", NONE))
            => server::cluster_disabled;
        /// Returns the id of the node's shard.
        ClusterMyShardId ("cluster|myshardid", 2, STALE, none(), Gateway,
            docs(Cluster, "7.2.0", "O(1)", NONE).tips(&["nondeterministic_output"]))
            => server::cluster_disabled;
        /// Describes all nodes.
        ClusterNodes ("cluster|nodes", 2, STALE, none(), Gateway,
            docs(Cluster, "3.0.0", "O(N) with N the number of nodes", NONE).tips(&["nondeterministic_output"]))
            => server::cluster_disabled;
        /// Lists the replicas of a node.
        ClusterReplicas ("cluster|replicas", 3, ADMIN | STALE, none(), Gateway,
            docs(Cluster, "5.0.0", "O(N) with N the number of replicas", &[string("node-id")]).tips(&["nondeterministic_output"]))
            => server::cluster_disabled;
        /// Makes the node a replica of another one.
        ClusterReplicate ("cluster|replicate", 3, ADMIN | STALE | NO_ASYNC_LOADING, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", &[string("node-id")]))
            => server::cluster_disabled;
        /// Makes the node forget its cluster.
        ClusterReset ("cluster|reset", -2, ADMIN | NOSCRIPT | STALE, none(), Gateway,
            docs(Cluster, "3.0.0", "O(N) with N the number of nodes, and the time to empty the databases", &[one_of("reset-type", &[word("HARD"), word("SOFT")]).optional()]))
            => server::cluster_disabled;
        /// Writes the state of the cluster to its file.
        ClusterSaveConfig ("cluster|saveconfig", 2, ADMIN | STALE | NO_ASYNC_LOADING, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", NONE))
            => server::cluster_disabled;
        /// Sets the epoch of a new node.
        ClusterSetConfigEpoch ("cluster|set-config-epoch", 3, ADMIN | STALE | NO_ASYNC_LOADING, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", &[int("config-epoch")]))
            => server::cluster_disabled;
        /// Says which node a slot belongs to.
        ClusterSetSlot ("cluster|setslot", -4, ADMIN | STALE | NO_ASYNC_LOADING, none(), Gateway,
            docs(Cluster, "3.0.0", "O(1)", CLUSTER_SETSLOT))
            => server::cluster_disabled;
        /// Lists which shards have which slots.
        ClusterShards ("cluster|shards", 2, LOADING | STALE, none(), Gateway,
            docs(Cluster, "7.0.0", "O(N) with N the number of nodes", NONE).tips(&["nondeterministic_output"]))
            => server::cluster_disabled;
        /// Lists the replicas of a node.
        ClusterSlaves ("cluster|slaves", 3, ADMIN | STALE, none(), Gateway,
            docs(Cluster, "3.0.0", "O(N) with N the number of replicas", &[string("node-id")])
                .deprecated("5.0.0", "`CLUSTER REPLICAS`").tips(&["nondeterministic_output"]))
            => server::cluster_disabled;
        /// Lists which nodes have which slots.
        ClusterSlots ("cluster|slots", 2, LOADING | STALE, none(), Gateway,
            docs(Cluster, "3.0.0", "O(N) with N the number of nodes", NONE)
                .deprecated("7.0.0", "`CLUSTER SHARDS`")
                .history(&[("4.0.0", "Ids of nodes."), ("7.0.0", "More about the network.")]).tips(&["nondeterministic_output"]))
            => server::cluster_disabled;
        /// Returns settings whose names match.
        ConfigGet      ("config|get", -3, ADMIN | NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Server, "2.0.0", "O(N) with N the number of patterns", &[string("parameter").multiple()])
                .history(&[("7.0.0", "Several patterns at once.")]))
            => config::get;
        /// Lists the subcommands.
        ConfigHelp     ("config|help", 2, LOADING | STALE, none(), Gateway,
            docs(Server, "5.0.0", "O(1)", NONE))
            => config::help;
        /// Puts the statistics back to zero.
        ConfigResetStat("config|resetstat", 2, ADMIN | NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Server, "2.0.0", "O(1)", NONE)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]))
            => config::resetstat;
        /// Writes the settings in force to the configuration file.
        ConfigRewrite  ("config|rewrite", 2, ADMIN | NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Server, "2.8.0", "O(1)", NONE)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]))
            => config::rewrite;
        /// Changes settings.
        ConfigSet      ("config|set", -4, ADMIN | NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Server, "2.0.0", "O(N) with N the number of settings", CONFIG_SET)
                .history(&[("7.0.0", "Several settings at once.")])
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]))
            => config::set;
        /// Looks inside and disturbs, for tests.
        Debug          ("debug", -2, ADMIN | NOSCRIPT | LOADING | STALE, none(), Gateway,
            docs(Server, "1.0.0", "Depends on subcommand.", NONE).system())
            => debug::debug;
        /// Returns facts and statistics.
        Info           ("info", -1, LOADING | STALE, none(), Gateway,
            docs(Server, "1.0.0", "O(1)", &[string("section").optional().multiple()])
                .history(&[("7.0.0", "Several sections at once.")])
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
                .categories(category::DANGEROUS))
            => server::info;
        /// Draws a picture.
        LolWut         ("lolwut", -1, READONLY | FAST, none(), Gateway,
            docs(Server, "5.0.0", "", &[int("version").token("VERSION").optional()]))
            => server::lolwut;
        /// Judges the use of memory.
        MemoryDoctor   ("memory|doctor", 2, 0, none(), Gateway,
            docs(Server, "4.0.0", "O(1)", NONE)
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]))
            => server::memory_doctor;
        /// Lists the subcommands.
        MemoryHelp     ("memory|help", 2, LOADING | STALE, none(), Gateway,
            docs(Server, "4.0.0", "O(1)", NONE))
            => server::memory_help;
        /// Returns statistics of the allocator.
        MemoryMallocStats("memory|malloc-stats", 2, 0, none(), Gateway,
            docs(Server, "4.0.0", "Depends on how much memory is kept", NONE)
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]))
            => server::memory_malloc_stats;
        /// Returns how memory is used.
        MemoryStats    ("memory|stats", 2, 0, none(), Gateway,
            docs(Server, "4.0.0", "O(1)", NONE)
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]))
            => server::memory_stats;
        /// Lists the subcommands.
        ObjectHelp     ("object|help", 2, LOADING | STALE, none(), Gateway,
            docs(Generic, "6.2.0", "O(1)", NONE))
            => server::object_help;
        /// Returns the role in replication.
        Role           ("role", 1, NOSCRIPT | LOADING | STALE | FAST, none(), Gateway,
            docs(Server, "2.8.12", "O(1)", NONE).categories(category::ADMIN | category::DANGEROUS))
            => server::role;
        /// Stops the server, saving first if told so.
        Shutdown       ("shutdown", -1, ADMIN | NOSCRIPT | LOADING | STALE | NO_MULTI | ALLOW_BUSY, none(), Gateway,
            docs(Server, "1.0.0", "O(N) with N the number of keys if it saves, otherwise O(1)", SHUTDOWN)
                .history(&[("7.0.0", "`NOW`, `FORCE` and `ABORT`.")]))
            => server::shutdown;
        /// Returns the latest slow commands.
        SlowLogGet     ("slowlog|get", -2, ADMIN | LOADING | STALE, none(), Gateway,
            docs(Server, "2.2.12", "O(N) with N the number of entries returned", &[int("count").optional()])
                .history(&[("4.0.0", "Address and name of the client.")])
                .tips(&["request_policy:all_nodes", "nondeterministic_output"]))
            => slowlog::get;
        /// Lists the subcommands.
        SlowLogHelp    ("slowlog|help", 2, LOADING | STALE, none(), Gateway,
            docs(Server, "6.2.0", "O(1)", NONE))
            => slowlog::help;
        /// Returns how many slow commands are remembered.
        SlowLogLen     ("slowlog|len", 2, ADMIN | LOADING | STALE, none(), Gateway,
            docs(Server, "2.2.12", "O(1)", NONE)
                .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"]))
            => slowlog::len;
        /// Forgets the slow commands.
        SlowLogReset   ("slowlog|reset", 2, ADMIN | LOADING | STALE, none(), Gateway,
            docs(Server, "2.2.12", "O(N) with N the number of entries", NONE)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]))
            => slowlog::reset;
        /// Removes a library and its functions.
        FunctionDelete ("function|delete", 3, WRITE | NOSCRIPT, none(), Gateway,
            docs(Scripting, "7.0.0", "O(1)", &[string("library-name")])
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]))
            => function::delete;
        /// Removes all libraries.
        FunctionFlush  ("function|flush", -2, WRITE | NOSCRIPT, none(), Gateway,
            docs(Scripting, "7.0.0", "O(N) with N the number of functions", FUNCTION_FLUSH)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]))
            => function::flush;
        /// Lists the subcommands.
        FunctionHelp   ("function|help", 2, LOADING | STALE, none(), Gateway,
            docs(Scripting, "7.0.0", "O(1)", NONE))
            => function::help;
        /// Ends the function that runs.
        FunctionKill   ("function|kill", 2, NOSCRIPT | ALLOW_BUSY, none(), Gateway,
            docs(Scripting, "7.0.0", "O(1)", NONE)
                .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]))
            => function::kill;
        /// Describes the libraries.
        FunctionList   ("function|list", -2, NOSCRIPT, none(), Gateway,
            docs(Scripting, "7.0.0", "O(N) with N the number of functions", FUNCTION_LIST)
                .tips(&["nondeterministic_output_order"]))
            => function::list;
        /// Adds a library.
        FunctionLoad   ("function|load", -3, WRITE | DENYOOM | NOSCRIPT, none(), Gateway,
            docs(Scripting, "7.0.0", "O(1), compiling apart", FUNCTION_LOAD)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]))
            => function::load;
        /// Adds the libraries of a dump.
        FunctionRestore("function|restore", -3, WRITE | DENYOOM | NOSCRIPT, none(), Gateway,
            docs(Scripting, "7.0.0", "O(N) with N the number of functions", FUNCTION_RESTORE)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]))
            => function::restore;
        /// Describes the function that runs, and counts the others.
        FunctionStats  ("function|stats", 2, NOSCRIPT | ALLOW_BUSY, none(), Gateway,
            docs(Scripting, "7.0.0", "O(1)", NONE)
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]))
            => function::stats;
        /// Switches the debugger of scripts, which is not there, on or off.
        ScriptDebug    ("script|debug", 3, NOSCRIPT, none(), Gateway,
            docs(Scripting, "3.2.0", "O(1)", &[one_of("mode", &[word("YES"), word("SYNC"), word("NO")])]))
            => script::debug;
        /// Says which scripts are known.
        ScriptExists   ("script|exists", -3, NOSCRIPT, none(), Gateway,
            docs(Scripting, "2.6.0", "O(N) with N the number of scripts asked for", &[string("sha1").multiple()])
                .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"]))
            => script::exists;
        /// Forgets all scripts.
        ScriptFlush    ("script|flush", -2, NOSCRIPT, none(), Gateway,
            docs(Scripting, "2.6.0", "O(N) with N the number of scripts", SCRIPT_FLUSH)
                .history(&[("6.2.0", "`ASYNC` and `SYNC`.")])
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]))
            => script::flush;
        /// Lists the subcommands.
        ScriptHelp     ("script|help", 2, LOADING | STALE, none(), Gateway,
            docs(Scripting, "5.0.0", "O(1)", NONE))
            => script::help;
        /// Ends the script that runs.
        ScriptKill     ("script|kill", 2, NOSCRIPT | ALLOW_BUSY, none(), Gateway,
            docs(Scripting, "2.6.0", "O(1)", NONE)
                .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]))
            => script::kill;
        /// Remembers a script without running it.
        ScriptLoad     ("script|load", 3, NOSCRIPT | STALE, none(), Gateway,
            docs(Scripting, "2.6.0", "O(N) with N the length of the script", &[string("script")])
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]))
            => script::load;
        /// Returns the time of the server.
        Time           ("time", 1, LOADING | STALE | FAST, none(), Gateway,
            docs(Server, "2.6.0", "O(1)", NONE).tips(&["nondeterministic_output"]))
            => server::time;
        /// Waits until replicas have the writes of the connection.
        Wait           ("wait", 3, BLOCKING, none(), Gateway,
            docs(Generic, "3.0.0", "O(1)", &[int("numreplicas"), int("timeout")])
                .tips(&["request_policy:all_shards", "response_policy:agg_min"])
                .categories(category::CONNECTION))
            => server::wait;
        /// Lists the subcommands.
        XGroupHelp     ("xgroup|help", 2, LOADING | STALE, none(), Gateway,
            docs(Stream, "5.0.0", "O(1)", NONE))
            => server::xgroup_help;
        /// Lists the subcommands.
        XInfoHelp      ("xinfo|help", 2, LOADING | STALE, none(), Gateway,
            docs(Stream, "5.0.0", "O(1)", NONE))
            => server::xinfo_help;
    }};
}

macro_rules! tables {
    ($($rows:tt)*) => {
        command_table!(GatewayCommand, Gateway, $($rows)*);
    };
}
gateway_commands!(tables);
