//! DEBUG DIGEST and DIGEST-VALUE: the same value has the same digest, in whatever form it is kept, here and
//! in the reference.

use crate::collections::StringRef;
use crate::collections::hash::{Packed, Table, form};
use crate::collections::list::List;
use crate::collections::listpack::Listpack;
use crate::collections::stream::{Stream, StreamId};
use crate::commands::prelude::*;
use crate::commands::set::SetRef;
use crate::commands::sorted_set::value::View;
use crate::keyspace::Found;
use proto::digest::Digest;
use proto::number::DoubleText;

/// _DIGEST
///
/// Replies with number and digest of every database that has keys.
pub(crate) fn digest(ctx: &mut Context<'_>, _args: Args<'_>) -> CommandResult {
    let mark = ctx.reply.begin_array();
    let mut count = 0;
    for db in 0..ctx.settings.databases {
        if ctx.keyspace.len(db) == 0 {
            continue;
        }
        let mut all = Digest::default();
        ctx.keyspace.for_each(db, ctx.now, |found| {
            let mut one = Digest::default();
            one.mix(found.key());
            mix_value(&mut one, found);
            all.add(one.as_bytes());
        });
        ctx.reply.int(i64::from(db));
        ctx.reply.bulk(all.as_bytes());
        count += 2;
    }
    ctx.reply.set_array_len(mark, count);
    Ok(())
}

/// _DIGESTVALUE key [key ...]
///
/// A missing key has the digest of nothing.
pub(crate) fn digest_value(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    ctx.reply.array(args.len() - 1);
    ctx.for_each_key(args, 1, 1, |ctx, key, _| {
        let mut digest = Digest::default();
        if let Some(found) = ctx.keyspace.find(key, ctx.now, Access::Peek) {
            mix_value(&mut digest, &found);
        }
        ctx.reply.simple(&digest.to_string());
        Ok(())
    })
}

/// The number that stands for a type.
fn number_of(kind: ValueKind) -> u32 {
    match kind {
        ValueKind::String => 0,
        ValueKind::List => 1,
        ValueKind::Set => 2,
        ValueKind::SortedSet => 3,
        ValueKind::Hash => 4,
        // 5 stands for values of modules.
        ValueKind::Stream => 6,
    }
}

fn mix_value(digest: &mut Digest, found: &Found<'_>) {
    digest.mix(&number_of(found.kind()).to_be_bytes());
    match found.kind() {
        ValueKind::String => mix(digest, found.string()),
        ValueKind::List => mix_list(digest, found),
        ValueKind::Set => {
            for member in SetRef::of(found).iter().flat_map(|set| set.iter()) {
                with_bytes(member, |member| digest.add(member));
            }
        }
        ValueKind::SortedSet => {
            let mut text = DoubleText::new();
            for (score, member) in View::of(found).iter().flat_map(|view| view.walk(0)) {
                let mut one = Digest::default();
                mix(&mut one, member);
                one.mix(text.format_by_digits(score));
                digest.add(one.as_bytes());
            }
        }
        ValueKind::Hash => mix_hash(digest, found),
        ValueKind::Stream => {
            let stream = found.structure::<Stream>();
            for entry in stream.log.range(StreamId::MIN, StreamId::MAX) {
                digest.mix(format!("{}.{}", entry.id.ms, entry.id.seq).as_bytes());
                for (field, value) in entry.pairs() {
                    mix(digest, field);
                    mix(digest, value);
                }
            }
        }
    }
    if found.expiry().is_some() {
        digest.add(b"!!expire!!");
    }
}

fn mix(digest: &mut Digest, value: StringRef<'_>) {
    with_bytes(value, |bytes| digest.mix(bytes));
}

fn mix_list(digest: &mut Digest, found: &Found<'_>) {
    if found.is_structure() {
        found.structure::<List>().visit(0, false, |element| {
            mix(digest, element);
            true
        });
    } else {
        let elements = Listpack::new(found.packed()).iter();
        elements.for_each(|element| mix(digest, element));
    }
}

fn mix_hash(digest: &mut Digest, found: &Found<'_>) {
    let mut add = |name: StringRef<'_>, value: StringRef<'_>, expires: bool| {
        let mut one = Digest::default();
        mix(&mut one, name);
        mix(&mut one, value);
        if expires {
            one.add(b"!!hexpire!!");
        }
        digest.add(one.as_bytes());
    };
    match form::width(found.form().0) {
        Some(width) => Packed::new(found.packed(), width)
            .iter()
            .for_each(|field| add(field.name, field.value, field.expiry.is_some())),
        None => found.structure::<Table>().iter().for_each(|field| {
            add(
                field.name.into(),
                field.value.into(),
                field.expiry.is_some(),
            );
        }),
    }
}
