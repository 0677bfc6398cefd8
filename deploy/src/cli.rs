//! The command line: subcommands by clap, everything else by the rules of Redis.
//!
//! ```text
//!   sirocco [FILE | -] [--setting value ...]     the server
//!   sirocco status | bench ...                   tools
//!   sirocco --print-config [FILE] [--setting ..] what the server would use
//!   sirocco gateway | storage-worker             roles, started by the supervisor only
//!   sirocco completions | man                    for packagers
//! ```
//! Why two parsers: `redis-server`'s own rules (`--save 900 1`, `--bind a b`) cannot be said in
//! clap, and people have them in scripts. The same settings are given to clap as options, for help,
//! completions and the manual page.

use clap::{Arg, ArgAction, Args, Command, FromArgMatches, Parser, Subcommand};
use proto::settings::TABLE;
use std::path::PathBuf;

/// A Redis-compatible in-memory data server that consists of several small processes.
#[derive(Debug, Parser)]
#[command(
    name = "sirocco",
    version,
    disable_help_subcommand = true,
    override_usage = "sirocco [FILE | -] [--SETTING VALUE ...]\n       sirocco <COMMAND>",
    after_help = "\
Settings are those of redis.conf, in a file or as options: --port 7000 --maxmemory 1gb \
--save \"\"\nOur own ones: --storage-workers (0: one), --gateway-threads (0: by the cores), --pin, \
--ring-size,\n--spin-us, --supervisor-timeout, --stopped-timeout. `-` reads lines from standard \
input.\n`sirocco --print-config [FILE] [--SETTING VALUE ...]` prints all settings with their \
values.\n\nExit codes: 1 configuration, 3 address, 4 too little memory or too few descriptors,\n5 \
another instance or none found, 6 a part cannot start."
)]
pub struct Cli {
    /// What to do instead of serving.
    #[command(subcommand)]
    pub command: Tool,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Tool {
    /// Show running servers of this user: processes, state, memory, load
    Status(StatusArgs),
    /// Measure a RESP server
    Bench(Box<bench::BenchArgs>),
    /// Print a completion script for a shell
    #[command(hide = true)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
    /// Serve sockets (started by the supervisor)
    #[command(hide = true)]
    Gateway {
        /// Number of the process, for process lists.
        index: Option<u32>,
    },
    /// Own a part of the keyspace (started by the supervisor)
    #[command(hide = true)]
    StorageWorker {
        /// Number of the process, for process lists.
        index: Option<u32>,
    },
    /// Hand out messages of channels (started by the supervisor)
    #[command(hide = true)]
    PubsubBroker {
        /// Number of the process, for process lists.
        index: Option<u32>,
    },
}

/// Arguments of `sirocco status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Only the server with this port
    #[arg(long, short)]
    pub port: Option<u16>,
    /// Only servers with this data directory
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

/// What the words after the program's name ask for.
#[derive(Debug)]
pub enum Wish {
    /// Serve, with the words as Redis would read them.
    Serve(Vec<String>),
    /// Print the settings that these words give.
    PrintConfig(Vec<String>),
    /// Something else.
    Tool(Box<Tool>),
    /// Print this and exit with this code.
    Say(clap::Error),
}

/// Sorts out the words after the program's name.
pub fn parse(words: Vec<String>) -> Wish {
    let first = words.first().map(String::as_str).unwrap_or_default();
    match first {
        "--print-config" => Wish::PrintConfig(words[1..].to_vec()),
        "-h" | "--help" | "-v" | "-V" | "--version" => {
            let word = if first == "-v" { "-V" } else { first };
            Wish::Say(said(&[word.to_string()]))
        }
        _ if command().find_subcommand(first).is_some() => {
            let all = std::iter::once("sirocco".to_string()).chain(words);
            let parsed = command().try_get_matches_from(all);
            match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
                Ok(cli) => Wish::Tool(Box::new(cli.command)),
                Err(error) => Wish::Say(error),
            }
        }
        _ => Wish::Serve(words),
    }
}

/// What clap says to words that always end in a text.
fn said(words: &[String]) -> clap::Error {
    let all = std::iter::once("sirocco".to_string()).chain(words.iter().cloned());
    match command().try_get_matches_from(all) {
        Err(error) => error,
        Ok(_) => command().error(clap::error::ErrorKind::MissingSubcommand, "nothing to do"),
    }
}

/// The parser of subcommands.
fn command() -> Command {
    use clap::CommandFactory;
    Cli::command()
}

/// Writes the manual page. The synopsis is ours: the generated one would name every setting.
///
/// # Errors
/// If it cannot be written.
pub fn write_manual(to: &mut dyn std::io::Write) -> std::io::Result<()> {
    let manual = clap_mangen::Man::new(documented());
    manual.render_title(to)?;
    manual.render_name_section(to)?;
    to.write_all(
        b".SH SYNOPSIS\n\\fBsirocco\\fR [FILE | \\-] [\\-\\-SETTING VALUE ...]\n.br\n\\fBsirocco\\fR \
          <COMMAND>\n",
    )?;
    manual.render_description_section(to)?;
    manual.render_options_section(to)?;
    manual.render_subcommands_section(to)?;
    manual.render_extra_section(to)
}

/// The whole command line as clap sees it, with a file and every setting: for completions and the
/// manual page.
pub fn documented() -> Command {
    let file = Arg::new("FILE")
        .help("Configuration file in the format of redis.conf; - reads standard input")
        .value_hint(clap::ValueHint::FilePath);
    let print = Arg::new("print-config")
        .long("print-config")
        .action(ArgAction::SetTrue)
        .help("Print all settings with their values and exit");
    let settings = TABLE.iter().map(|row| {
        let words = possible_words(row);
        let default = if row.default.is_empty() {
            "\"\""
        } else {
            row.default
        };
        let arg = Arg::new(row.name)
            .long(row.name)
            .num_args(1..)
            .value_name("VALUE")
            .help(format!("{} (default: {default})", row.summary));
        if words.is_empty() {
            arg
        } else {
            arg.value_parser(words)
        }
    });
    command()
        .subcommand_required(false)
        .arg(file)
        .arg(print)
        .args(settings)
}

fn possible_words(row: &proto::settings::Row) -> Vec<&'static str> {
    use proto::settings::Kind;
    match row.kind {
        Kind::Bool => vec!["yes", "no"],
        Kind::Choice(words) | Kind::Flags(words) => words.to_vec(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(words: &[&str]) -> Wish {
        parse(words.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_parser_is_consistent() {
        command().debug_assert();
        documented().debug_assert();
    }

    #[test]
    fn settings_go_to_the_server_and_subcommands_to_clap() {
        assert!(matches!(wish(&[]), Wish::Serve(words) if words.is_empty()));
        assert!(matches!(wish(&["--port", "7000"]), Wish::Serve(words) if words.len() == 2));
        assert!(matches!(wish(&["my.conf", "--save", ""]), Wish::Serve(_)));
        assert!(
            matches!(wish(&["--print-config", "--port", "1"]), Wish::PrintConfig(w) if w.len() == 2)
        );
        assert!(matches!(wish(&["status", "--json"]), Wish::Tool(_)));
        assert!(matches!(wish(&["status", "--nosuch"]), Wish::Say(_)));
        for word in ["-v", "--version", "-h", "--help"] {
            let Wish::Say(error) = wish(&[word]) else {
                panic!("{word}")
            };
            assert!(!error.use_stderr(), "{word}");
        }
    }
}
