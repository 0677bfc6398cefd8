//! What COMMAND and its subcommands answer, rendered from the rows. Pure: arguments in, reply out.
//!
//! ```text
//!   COMMAND            an array of infos: name, arity, flags, first/last/step of keys,
//!                      ACL categories, tips, key specifications, subcommands
//!   COMMAND INFO       the same for some names; nothing for unknown ones
//!   COMMAND DOCS       a map from names to maps; unknown names are left out
//!   COMMAND LIST       names, subcommands included, all or filtered
//!   COMMAND COUNT      how many names of one word
//!   COMMAND GETKEYS    the keys of a request; GETKEYSANDFLAGS also what happens to them
//! ```
//!
//! Shapes (which collections are sets and maps in RESP3, which texts are simple strings) are those of
//! Redis 8.0.6. The order of commands is that of the tables; Redis' order is that of a hash table.
//!
//! `argument(i)` returns argument `i` of the request, the name `COMMAND` being 0.

use crate::catalogue::arguments::{Argument, ArgumentKind};
use crate::catalogue::spec::{Begin, Find, KeyArea};
use crate::catalogue::{self, Access, Categories, Details, KeyAt, Lookup, Spec, access, extract};
use crate::error::CommandError;
use crate::glob;
use crate::resp::ReplyWriter;

/// Answers `COMMAND`.
pub fn all(reply: &mut ReplyWriter<'_>) {
    reply.array(top_level().count());
    for spec in top_level() {
        info(reply, spec);
    }
}

/// Answers `COMMAND COUNT`.
pub fn count(reply: &mut ReplyWriter<'_>) {
    reply.count(top_level().count());
}

/// Answers `COMMAND INFO [name ...]`.
pub fn infos<'a>(reply: &mut ReplyWriter<'_>, argc: usize, argument: impl Fn(usize) -> &'a [u8]) {
    if argc <= 2 {
        return all(reply);
    }
    reply.array(argc - 2);
    for at in 2..argc {
        match by_name(argument(at)) {
            Some(spec) => info(reply, spec),
            None => reply.null(),
        }
    }
}

/// Answers `COMMAND DOCS [name ...]`.
pub fn docs<'a>(reply: &mut ReplyWriter<'_>, argc: usize, argument: impl Fn(usize) -> &'a [u8]) {
    if argc <= 2 {
        reply.map(top_level().count());
        for spec in top_level() {
            documentation(reply, spec);
        }
        return;
    }
    let specs: Vec<_> = (2..argc).filter_map(|at| by_name(argument(at))).collect();
    reply.map(specs.len());
    for spec in specs {
        documentation(reply, spec);
    }
}

/// Answers `COMMAND LIST [FILTERBY kind value]`.
///
/// # Errors
/// `Syntax` for anything else behind `LIST`.
pub fn list<'a>(
    reply: &mut ReplyWriter<'_>,
    argc: usize,
    argument: impl Fn(usize) -> &'a [u8],
) -> Result<(), CommandError> {
    let is = |at: usize, word: &str| argument(at).eq_ignore_ascii_case(word.as_bytes());
    let mut filter: Box<dyn Fn(&Spec) -> bool + '_> = Box::new(|_| true);
    match argc {
        2 => {}
        5 if is(2, "FILTERBY") => {
            let value = argument(4);
            if is(3, "PATTERN") {
                filter = Box::new(move |spec| glob::matches(value, spec.name.as_bytes(), true));
            } else if is(3, "ACLCAT") {
                let wanted = Categories::by_name(value);
                filter = Box::new(move |spec| wanted.is_some_and(|one| spec.categories.has(one.0)));
            } else if is(3, "MODULE") {
                // There are no modules, so no command came from one.
                filter = Box::new(|_| false);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        _ => return Err(CommandError::Syntax),
    }
    let names: Vec<_> = catalogue::all().filter(|spec| filter(spec)).collect();
    reply.array(names.len());
    for spec in names {
        reply.bulk(spec.name.as_bytes());
    }
    Ok(())
}

/// Answers `COMMAND GETKEYS command arg ...` and, with `flags`, `COMMAND GETKEYSANDFLAGS`.
///
/// # Errors
/// The request's command is unknown, has no keys or the wrong number of arguments.
pub fn getkeys<'a>(
    reply: &mut ReplyWriter<'_>,
    argc: usize,
    argument: impl Fn(usize) -> &'a [u8],
    flags: bool,
) -> Result<(), CommandError> {
    let (name, sub) = (argument(2), (argc > 3).then(|| argument(3)));
    let Lookup::Found(spec, _) = catalogue::find(name, sub) else {
        return Err(CommandError::InvalidCommand);
    };
    let is_none = |area: &KeyArea| area.access.has(access::NOT_KEY);
    if spec.details().areas().all(is_none) {
        return Err(CommandError::NoKeyArguments);
    }
    if !spec.arity_fits(argc - 2) {
        return Err(CommandError::InvalidArguments);
    }
    let mut keys = Vec::new();
    extract(spec, argc - 2, |at| argument(at + 2), &mut keys)?;
    reply.array(keys.len());
    for KeyAt { position, access } in keys {
        let key = argument(position as usize + 2);
        if flags {
            reply.array(2);
            reply.bulk(key);
            access_names(reply, access);
        } else {
            reply.bulk(key);
        }
    }
    Ok(())
}

fn top_level() -> impl Iterator<Item = &'static Spec> {
    catalogue::all().filter(|spec| spec.parent().is_none())
}

/// The command with this full name (`config|get`).
fn by_name(name: &[u8]) -> Option<&'static Spec> {
    let mut parts = name.splitn(2, |&byte| byte == b'|');
    let (first, second) = (parts.next()?, parts.next());
    match catalogue::find(first, second) {
        // A second word behind a command that has no subcommands.
        Lookup::Found(spec, _) if second.is_some() && spec.parent().is_none() => None,
        Lookup::Found(spec, _) => Some(spec),
        Lookup::UnknownCommand | Lookup::UnknownSubcommand(_) => None,
    }
}

/// The subcommands of a command; collected, since a reply needs their number first.
fn subcommands_of(spec: &Spec) -> Vec<&'static Spec> {
    catalogue::subcommands(spec).collect()
}

fn info(reply: &mut ReplyWriter<'_>, spec: &Spec) {
    let details = spec.details();
    reply.array(10);
    reply.bulk(spec.name.as_bytes());
    reply.int(i64::from(spec.arity));
    reply.set(spec.flags.names().count());
    spec.flags.names().for_each(|name| reply.simple(name));
    let (first, last, step) = spec.keys.legacy_range();
    reply.int(first);
    reply.int(last);
    reply.int(step);
    reply.set(spec.categories.names().count());
    for name in spec.categories.names() {
        reply.raw(b"+@");
        reply.raw(name.as_bytes());
        reply.raw(b"\r\n");
    }
    reply.set(details.docs.tips.len());
    details
        .docs
        .tips
        .iter()
        .for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(details.areas().count());
    details.areas().for_each(|area| key_area(reply, area));
    let subcommands = subcommands_of(spec);
    match subcommands.len() {
        0 => reply.set(0),
        count => reply.array(count),
    }
    for sub in subcommands {
        info(reply, sub);
    }
}

fn key_area(reply: &mut ReplyWriter<'_>, area: &KeyArea) {
    reply.map(3 + usize::from(area.notes.is_some()));
    if let Some(notes) = area.notes {
        pair(reply, "notes", notes);
    }
    reply.bulk(b"flags");
    access_names(reply, area.access);
    reply.bulk(b"begin_search");
    reply.map(2);
    match area.begin {
        Begin::Index(index) => {
            pair(reply, "type", "index");
            numbers(reply, &[("index", i64::from(index))]);
        }
        Begin::Keyword(word, from) => {
            pair(reply, "type", "keyword");
            reply.bulk(b"spec");
            reply.map(2);
            pair(reply, "keyword", word);
            reply.bulk(b"startfrom");
            reply.int(i64::from(from));
        }
        Begin::Unknown => unknown(reply),
    }
    reply.bulk(b"find_keys");
    reply.map(2);
    match area.find {
        Find::Range { last, step, limit } => {
            pair(reply, "type", "range");
            let (last, step, limit) = (i64::from(last), i64::from(step), i64::from(limit));
            numbers(
                reply,
                &[("lastkey", last), ("keystep", step), ("limit", limit)],
            );
        }
        Find::Count {
            number,
            first,
            step,
        } => {
            pair(reply, "type", "keynum");
            let (number, first, step) = (i64::from(number), i64::from(first), i64::from(step));
            numbers(
                reply,
                &[
                    ("keynumidx", number),
                    ("firstkey", first),
                    ("keystep", step),
                ],
            );
        }
        Find::Unknown => unknown(reply),
    }
}

fn unknown(reply: &mut ReplyWriter<'_>) {
    pair(reply, "type", "unknown");
    numbers(reply, &[]);
}

fn access_names(reply: &mut ReplyWriter<'_>, access: Access) {
    reply.set(access.names().count());
    access.names().for_each(|name| reply.simple(name));
}

fn numbers(reply: &mut ReplyWriter<'_>, pairs: &[(&str, i64)]) {
    reply.bulk(b"spec");
    reply.map(pairs.len());
    for (name, value) in pairs {
        reply.bulk(name.as_bytes());
        reply.int(*value);
    }
}

fn pair(reply: &mut ReplyWriter<'_>, name: &str, value: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(value.as_bytes());
}

/// A map that counts its pairs while they are written.
struct Fields<'a, 'b> {
    reply: &'a mut ReplyWriter<'b>,
    mark: crate::resp::reply::LengthMark,
    count: usize,
}

impl<'a, 'b> Fields<'a, 'b> {
    fn begin(reply: &'a mut ReplyWriter<'b>) -> Self {
        let mark = reply.begin_array();
        Self {
            reply,
            mark,
            count: 0,
        }
    }

    fn name(&mut self, name: &str) -> &mut ReplyWriter<'b> {
        self.count += 1;
        self.reply.bulk(name.as_bytes());
        self.reply
    }

    /// A text, left out if empty.
    fn text(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.name(name).bulk(value.as_bytes());
        }
    }

    /// A set of words, left out if empty.
    fn words(&mut self, name: &str, words: &[&str]) {
        if !words.is_empty() {
            let reply = self.name(name);
            reply.set(words.len());
            words.iter().for_each(|word| reply.simple(word));
        }
    }

    fn end(self) {
        self.reply.set_map_len(self.mark, self.count);
    }
}

fn documentation(reply: &mut ReplyWriter<'_>, spec: &Spec) {
    let Details { summary, docs, .. } = spec.details();
    reply.bulk(spec.name.as_bytes());
    let mut fields = Fields::begin(reply);
    fields.text("summary", summary.trim_start());
    fields.text("since", docs.since);
    fields.text("group", docs.group.name());
    fields.text("complexity", docs.complexity);
    match (docs.deprecated, docs.system) {
        (Some((since, instead)), _) => {
            fields.words("doc_flags", &["deprecated"]);
            fields.text("deprecated_since", since);
            fields.text("replaced_by", instead);
        }
        (None, true) => fields.words("doc_flags", &["syscmd"]),
        (None, false) => {}
    }
    if !docs.history.is_empty() {
        let reply = fields.name("history");
        reply.set(docs.history.len());
        for (version, change) in docs.history {
            reply.array(2);
            reply.bulk(version.as_bytes());
            reply.bulk(change.as_bytes());
        }
    }
    if !docs.arguments.is_empty() {
        arguments(fields.name("arguments"), docs.arguments);
    }
    let subcommands = subcommands_of(spec);
    if !subcommands.is_empty() {
        let reply = fields.name("subcommands");
        reply.map(subcommands.len());
        for sub in subcommands {
            documentation(reply, sub);
        }
    }
    fields.end();
}

fn arguments(reply: &mut ReplyWriter<'_>, list: &[Argument]) {
    reply.array(list.len());
    for one in list {
        let lower = one.token.to_ascii_lowercase();
        let name = if one.name.is_empty() {
            &lower
        } else {
            one.name
        };
        let mut fields = Fields::begin(reply);
        fields.text("name", name);
        fields.text("type", one.kind.name());
        if !matches!(one.kind, ArgumentKind::OneOf | ArgumentKind::Block) {
            fields.text(
                "display_text",
                if one.display.is_empty() {
                    name
                } else {
                    one.display
                },
            );
        }
        if let ArgumentKind::Key(area) | ArgumentKind::KeyPattern(area) = one.kind {
            fields.name("key_spec_index").int(i64::from(area));
        }
        fields.text("token", one.token);
        fields.text("since", one.since);
        fields.text("deprecated_since", one.deprecated_since);
        let flags: Vec<&str> = [
            (one.optional, "optional"),
            (one.multiple, "multiple"),
            (one.multiple_token, "multiple_token"),
        ]
        .into_iter()
        .filter_map(|(set, name)| set.then_some(name))
        .collect();
        fields.words("flags", &flags);
        if !one.inner.is_empty() {
            arguments(fields.name("arguments"), one.inner);
        }
        fields.end();
    }
}

#[cfg(test)]
mod tests;
