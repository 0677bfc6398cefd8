//! What DEBUG asks the workers: digests of values, what a value is made of, keys to play with.
//!
//! Only the gateway sends these. Not here: switches that every worker hears of (`commands::internal`).

mod digest;
mod populate;

pub(crate) use digest::{digest, digest_value};
pub(crate) use populate::populate;

use crate::commands::prelude::*;
use crate::keyspace::Encoding;

/// _DEBUGKEY LISTPACK | QUICKLIST | HTSTATS-KEY key
///
/// What the reference prints goes to the log here, too; the client hears that it did.
pub(crate) fn describe_key(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let refuse = |line: &str| Err(CommandError::Line(line.as_bytes().into()));
    let is = |word: &str| args.get(1).eq_ignore_ascii_case(word.as_bytes());
    let key = ctx.key(args.get(2));
    let Some(found) = ctx.keyspace.find(&key, ctx.now, Access::Peek) else {
        return Err(CommandError::NoSuchKey);
    };
    let encoding = found.encoding();
    if is("LISTPACK") {
        if !matches!(encoding, Encoding::Listpack | Encoding::ListpackEx) {
            return refuse("ERR Not a listpack encoded object.");
        }
        tracing::info!(bytes = ?found.packed(), "DEBUG LISTPACK");
        ctx.reply.simple("Listpack structure printed on stdout");
    } else if is("QUICKLIST") {
        if encoding != Encoding::Quicklist {
            return refuse("ERR Not a quicklist encoded object.");
        }
        let (_, facts) = super::list::debug_facts(&found)?;
        tracing::info!(facts, "DEBUG QUICKLIST");
        ctx.reply.simple("Quicklist structure printed on stdout");
    } else {
        if !matches!(encoding, Encoding::Hashtable | Encoding::Skiplist) {
            let line =
                "ERR The value stored at the specified key is not represented using an hash table";
            return refuse(line);
        }
        let text = format!(
            "Hash table 0 stats (main hash table):\n memory: {}\n",
            found.memory_bytes(0)
        );
        ctx.reply.verbatim("txt", text.as_bytes());
    }
    Ok(())
}
