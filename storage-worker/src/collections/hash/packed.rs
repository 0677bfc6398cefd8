//! A small hash: its fields one after the other in a listpack.
//!
//! ```text
//!   pairs      name value name value ...             in order of writing
//!   triples    name value time name value time ...   by time, then those with time 0, which stay
//! ```
//!
//! Both are laid out as Redis does it, so that DUMP copies them; triples begin with the first field
//! that expires. Among equal times the one that was set last comes first, also as in Redis: clients
//! see the order.
//!
//! Cost: finding a field walks over the ones in front of it, about 1 ns each.
//! Not here: how long a packed hash may become (`commands::hash`).

use proto::time::UnixMillis;

use super::Ttl;
use crate::collections::listpack::{self, Listpack, Position};
use crate::collections::{Splice, StringRef};

/// How the elements of a listpack make up fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Name and value.
    Pairs = 2,
    /// Name, value and time.
    Triples = 3,
}

impl Width {
    /// Elements per field.
    #[inline]
    #[must_use]
    pub fn elements(self) -> usize {
        self as usize
    }
}

/// A packed hash to be read.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a> {
    list: Listpack<'a>,
    width: Width,
}

/// A field that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// Its name.
    pub name: StringRef<'a>,
    /// Its value.
    pub value: StringRef<'a>,
    /// When it expires.
    pub expiry: Option<UnixMillis>,
}

impl<'a> Packed<'a> {
    /// Reads bytes that are known to be such a listpack.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8], width: Width) -> Self {
        Self {
            list: Listpack::new(bytes),
            width,
        }
    }

    /// Number of fields, expired or not.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.list.len() / self.width.elements()
    }

    /// Whether there is no field.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.list.is_empty()
    }

    #[inline]
    fn find(self, name: &[u8]) -> Option<Position> {
        let first = self.list.first()?;
        self.list.find(first, name, self.width.elements() - 1)
    }

    /// The element that comes `distance` behind another one of the same field.
    #[inline]
    fn behind(self, position: Position, distance: usize) -> Position {
        let mut at = position;
        for _ in 0..distance {
            at = self.list.next(at).expect("a field is whole");
        }
        at
    }

    fn expiry_at(self, position: Position) -> Option<UnixMillis> {
        if self.width == Width::Pairs {
            return None;
        }
        time_of(self.list.get(self.behind(position, 2)))
    }

    /// The field with this name, expired or not.
    #[inline]
    #[must_use]
    pub fn get(self, name: &[u8]) -> Option<(StringRef<'a>, Option<UnixMillis>)> {
        let position = self.find(name)?;
        let value = self.list.get(self.behind(position, 1));
        Some((value, self.expiry_at(position)))
    }

    /// When the first field expires.
    #[must_use]
    pub fn next_expiry(self) -> Option<UnixMillis> {
        self.expiry_at(self.list.first()?)
    }

    /// All fields in order, expired or not.
    pub fn iter(self) -> impl Iterator<Item = Found<'a>> + Clone {
        let mut elements = self.list.iter();
        let width = self.width;
        std::iter::from_fn(move || {
            let (name, value) = (elements.next()?, elements.next()?);
            let expiry = match width {
                Width::Pairs => None,
                Width::Triples => time_of(elements.next()?),
            };
            Some(Found {
                name,
                value,
                expiry,
            })
        })
    }

    /// Field number `index`.
    #[must_use]
    pub fn nth(self, index: usize) -> Option<Found<'a>> {
        let at = i64::try_from(index * self.width.elements()).ok()?;
        let position = self.list.seek(at)?;
        Some(Found {
            name: self.list.get(position),
            value: self.list.get(self.behind(position, 1)),
            expiry: self.expiry_at(position),
        })
    }
}

/// The time that a triple's last element means.
fn time_of(element: StringRef<'_>) -> Option<UnixMillis> {
    match element {
        StringRef::Int(0) | StringRef::Bytes(_) => None,
        StringRef::Int(at) => Some(UnixMillis(at.cast_unsigned())),
    }
}

fn element_of(expiry: Option<UnixMillis>) -> StringRef<'static> {
    StringRef::Int(expiry.map_or(0, |at| at.0.cast_signed()))
}

/// Writes a field; says whether it is new. Pairs take no time.
pub fn set(target: &mut impl Splice, width: Width, name: &[u8], value: &[u8], ttl: Ttl) -> bool {
    let packed = Packed::new(target.bytes(), width);
    let Some(position) = packed.find(name) else {
        insert(target, width, name.into(), value.into(), ttl.of_new());
        return true;
    };
    let before = packed.expiry_at(position);
    let value_at = packed.behind(position, 1);
    match ttl {
        Ttl::At(at) => {
            remove_at(target, width, position);
            insert(target, width, name.into(), value.into(), Some(at));
        }
        // What loses its time goes to the end.
        Ttl::Clear if before.is_some() => {
            remove_at(target, width, position);
            insert(target, width, name.into(), value.into(), None);
        }
        Ttl::Clear | Ttl::Keep => {
            listpack::replace(target, value_at, value);
        }
    }
    false
}

/// Adds a field that is not there.
pub fn insert(
    target: &mut impl Splice,
    width: Width,
    name: StringRef<'_>,
    value: StringRef<'_>,
    expiry: Option<UnixMillis>,
) {
    if width == Width::Pairs {
        debug_assert!(expiry.is_none(), "pairs have no time");
        return listpack::push_back_all(target, [name, value].into_iter());
    }
    let elements = [name, value, element_of(expiry)];
    match place_for(Packed::new(target.bytes(), width), expiry) {
        None => listpack::push_back_all(target, elements.into_iter()),
        Some(position) => {
            // Each goes in front of the one that was there, so the last comes first.
            for element in elements.into_iter().rev() {
                listpack::insert_before(target, position, element);
            }
        }
    }
}

/// The field in front of which one with this expiry goes; at the end if there is none.
fn place_for(packed: Packed<'_>, expiry: Option<UnixMillis>) -> Option<Position> {
    let at = expiry?;
    let mut next = packed.list.first();
    while let Some(position) = next {
        let time = packed.behind(position, 2);
        if time_of(packed.list.get(time)).is_none_or(|time| time >= at) {
            return Some(position);
        }
        next = packed.list.next(time);
    }
    None
}

fn remove_at(target: &mut impl Splice, width: Width, position: Position) {
    listpack::delete(target, position, width.elements());
}

/// Removes a field; says whether it was there.
pub fn remove(target: &mut impl Splice, width: Width, name: &[u8]) -> bool {
    let found = Packed::new(target.bytes(), width).find(name);
    if let Some(position) = found {
        remove_at(target, width, position);
    }
    found.is_some()
}

/// Gives a field of triples another expiry; says whether the field is there.
pub fn set_expiry(target: &mut impl Splice, name: &[u8], expiry: Option<UnixMillis>) -> bool {
    let packed = Packed::new(target.bytes(), Width::Triples);
    let Some(position) = packed.find(name) else {
        return false;
    };
    let value = packed.list.get(packed.behind(position, 1)).to_vec();
    remove_at(target, Width::Triples, position);
    insert(
        target,
        Width::Triples,
        name.into(),
        StringRef::Bytes(&value),
        expiry,
    );
    true
}

/// Removes the first `count` fields of triples: those that expire first.
pub fn remove_first(target: &mut impl Splice, count: usize) {
    let packed = Packed::new(target.bytes(), Width::Triples);
    if let Some(first) = packed.list.first()
        && count > 0
    {
        listpack::delete(target, first, count * Width::Triples.elements());
    }
}

/// The same fields as triples, none of which expires.
#[must_use]
pub fn widened(pairs: Packed<'_>) -> Vec<u8> {
    let mut triples = listpack::EMPTY.to_vec();
    let elements = pairs
        .iter()
        .flat_map(|field| [field.name, field.value, StringRef::Int(0)]);
    listpack::push_back_all(&mut triples, elements);
    triples
}
