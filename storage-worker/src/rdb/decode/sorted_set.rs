//! Sorted sets: of strings with scores, ziplists and listpacks of both.

use std::borrow::Cow;

use super::{Decoder, Malformed, Reader, Result, Value, check_names, listpack, ziplist};
use crate::collections::listpack::{BYTES_MAX, EMPTY, Listpack};
use crate::collections::sorted_set::{SortedSet, packed};
use crate::collections::{Owned, StringRef, Structure};
use crate::keyspace::{Form, ValueKind};

const SCORE: Malformed = Malformed("a score is no number");

/// Lengths of a score that mean something else.
const NAN: u8 = 253;
const INFINITE: u8 = 254;
const NEGATIVE_INFINITE: u8 = 255;

/// A score as text, with a length in one byte in front. As the reference reads it, what follows a
/// number does not matter.
pub(super) fn text_score(reader: &mut Reader<'_>) -> Result<f64> {
    match reader.byte()? {
        NAN => Err(SCORE),
        INFINITE => Ok(f64::INFINITY),
        NEGATIVE_INFINITE => Ok(f64::NEG_INFINITY),
        len => {
            let text = reader.take(len.into())?;
            let longest = (1..=text.len())
                .rev()
                .find_map(|end| score_of(&text[..end]));
            longest.ok_or(SCORE)
        }
    }
}

/// The number that a text is.
fn score_of(text: &[u8]) -> Option<f64> {
    let score: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!score.is_nan()).then_some(score)
}

impl Decoder<'_> {
    pub(super) fn sorted_set_of_strings<'a>(
        self,
        reader: &mut Reader<'a>,
        mut score: impl FnMut(&mut Reader<'a>) -> Result<f64>,
    ) -> Result<Value<'a>> {
        let limits = self.limits();
        let count = reader.length()?;
        if count == 0 {
            return Err(Malformed::EMPTY);
        }
        let mut table = SortedSet::create(self.seed);
        let (mut longest, mut bytes) = (0, 0usize);
        for _ in 0..count {
            let member = reader.string()?;
            let score = score(reader)?;
            if score.is_nan() {
                return Err(SCORE);
            }
            if table.find(&member).is_some() {
                return Err(Malformed::TWICE);
            }
            table.insert(score, &member);
            longest = longest.max(member.len());
            bytes = bytes.saturating_add(packed::pair_bytes(&member));
        }
        let is_small = Structure::len(&*table) <= limits.sorted_set_entries
            && longest <= limits.sorted_set_value_bytes
            && bytes < BYTES_MAX;
        if !is_small {
            return Ok(Value::SortedSet(table));
        }
        let mut pack = EMPTY.to_vec();
        for (score, member) in table.walk(0) {
            packed::push_last(&mut pack, score, member);
        }
        Ok(small(Cow::Owned(pack)))
    }

    pub(super) fn sorted_set_of_ziplist<'a>(self, reader: &mut Reader<'a>) -> Result<Value<'a>> {
        let pack = ziplist::to_listpack(&reader.string()?)?;
        self.sorted_set_of_pack(Cow::Owned(pack))
    }

    pub(super) fn sorted_set_of_listpack<'a>(self, reader: &mut Reader<'a>) -> Result<Value<'a>> {
        self.sorted_set_of_pack(listpack(reader)?)
    }

    fn sorted_set_of_pack(self, bytes: Cow<'_, [u8]>) -> Result<Value<'_>> {
        let list = Listpack::new(&bytes);
        check_order(list)?;
        check_names(list, 2)?;
        if list.len() / 2 <= self.limits().sorted_set_entries {
            return Ok(small(bytes));
        }
        let mut table: Owned<SortedSet> = SortedSet::create(self.seed);
        for (score, member) in packed::Packed::new(&bytes).walk(0) {
            member.with_bytes(|member| table.insert(score, member));
        }
        Ok(Value::SortedSet(table))
    }
}

fn small(pack: Cow<'_, [u8]>) -> Value<'_> {
    Value::packed(ValueKind::SortedSet, Form::SORTED_SET_LISTPACK, pack)
}

/// Whether these are members and scores, ascending by score and then by name.
fn check_order(list: Listpack<'_>) -> Result<()> {
    if list.is_empty() {
        return Err(Malformed::EMPTY);
    }
    let mut elements = list.iter();
    let mut last: Option<(f64, StringRef<'_>)> = None;
    while let Some(member) = elements.next() {
        let score = match elements.next() {
            Some(StringRef::Int(number)) => number as f64,
            Some(StringRef::Bytes(text)) => score_of(text).ok_or(SCORE)?,
            None => return Err(Malformed("a member has no score")),
        };
        if last.is_some_and(|last| !is_before(last, (score, member))) {
            return Err(Malformed("members are out of order"));
        }
        last = Some((score, member));
    }
    Ok(())
}

fn is_before(one: (f64, StringRef<'_>), next: (f64, StringRef<'_>)) -> bool {
    if one.0 != next.0 {
        return one.0 < next.0;
    }
    one.1.with_bytes(|one| next.1.with_bytes(|next| one < next))
}
