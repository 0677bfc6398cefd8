//! Keys made from elements: the patterns of BY and GET.
//!
//! ```text
//!   weight_*        the string at weight_ELEMENT
//!   user_*->name    the field `name` of the hash at user_ELEMENT
//!   #               the element itself
//!   anything else   nothing: a key that does not depend on the element is not looked up
//! ```

use crate::commands::hash::value::{HashRef, is_over};
use crate::commands::prelude::*;

/// A pattern of BY or GET.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pattern<'a> {
    Element,
    Key {
        /// In front of the element.
        before: &'a [u8],
        /// Behind it.
        behind: &'a [u8],
        /// The key is a hash, and its field is meant.
        field: Option<&'a [u8]>,
    },
    Nothing,
}

impl<'a> Pattern<'a> {
    /// Reads a pattern. Star and arrow behind a NUL do not count.
    pub(super) fn new(text: &'a [u8]) -> Self {
        let seen = until_nul(text);
        if seen == b"#" {
            return Pattern::Element;
        }
        let Some(star) = memchr::memchr(b'*', seen) else {
            return Pattern::Nothing;
        };
        let arrow = memchr::memmem::find(&seen[star + 1..], b"->").map(|at| star + 1 + at);
        let (end, field) = match arrow {
            Some(arrow) if arrow + 2 < seen.len() => (arrow, Some(&text[arrow + 2..])),
            _ => (text.len(), None),
        };
        Pattern::Key {
            before: &text[..star],
            behind: &text[star + 1..end],
            field,
        }
    }

    /// Whether it gives different keys for different elements.
    pub(super) fn varies(&self) -> bool {
        matches!(self, Pattern::Key { .. })
    }

    /// Writes the name of the key for an element, if there is one.
    pub(super) fn name_key(&self, element: &[u8], name: &mut Vec<u8>) {
        name.clear();
        if let Pattern::Key { before, behind, .. } = *self {
            for part in [before, element, behind] {
                name.extend_from_slice(part);
            }
        }
    }

    /// Calls `give` with what the pattern stands for with this element, if there is such a thing.
    /// `name` is scratch memory.
    pub(super) fn with_value<R>(
        &self,
        ctx: &mut Context<'_>,
        element: &[u8],
        name: &mut Vec<u8>,
        give: impl FnOnce(Option<StringRef<'_>>, &mut ReplyWriter<'_>) -> R,
    ) -> R {
        let field = match *self {
            Pattern::Element => return give(Some(StringRef::Bytes(element)), &mut ctx.reply),
            Pattern::Nothing => return give(None, &mut ctx.reply),
            Pattern::Key { field, .. } => field,
        };
        self.name_key(element, name);
        let key = ctx.key(name);
        let found = ctx.keyspace.find(&key, ctx.now, ctx.access);
        let value = found.and_then(|found| match field {
            None => string_of(&found).ok(),
            Some(field) => {
                let (value, expiry) = HashRef::of(&found).ok()?.get(field)?;
                (!is_over(expiry, ctx.now)).then_some(value)
            }
        });
        give(value, &mut ctx.reply)
    }
}

/// What C sees of a text.
pub(super) fn until_nul(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &[u8]) -> String {
        match Pattern::new(text) {
            Pattern::Element => "element".into(),
            Pattern::Nothing => "nothing".into(),
            Pattern::Key {
                before,
                behind,
                field,
            } => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                format!("{}|{}|{:?}", text(before), text(behind), field.map(text))
            }
        }
    }

    #[test]
    fn patterns_are_taken_apart_as_the_reference_does() {
        for (text, want) in [
            (&b"#"[..], "element"),
            (b"#x", "nothing"),
            (b"plain", "nothing"),
            (b"", "nothing"),
            (b"*", "||None"),
            (b"a*b", "a|b|None"),
            (b"a*b*c", "a|b*c|None"),
            (b"a*->f", "a||Some(\"f\")"),
            (b"a*b->f", "a|b|Some(\"f\")"),
            (b"a*->", "a|->|None"),
            (b"a*->f->g", "a||Some(\"f->g\")"),
            (b"a->b*", "a->b||None"),
            (b"a->b*->c", "a->b||Some(\"c\")"),
            (b"a\0*", "nothing"),
            (b"a*\0->f", "a|\0->f|None"),
        ] {
            assert_eq!(shown(text), want, "{text:?}");
        }
    }
}
