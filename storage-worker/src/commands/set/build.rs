//! Adding and removing members, in whatever form a set is kept, and the change from one to another.
//!
//! ```text
//!             not an integer, few, short            too many, too long
//!   intset -----------------------------> listpack -------------------> table
//!      +------------------------------------------- too many ------------^
//! ```
//!
//! Nothing goes back by itself: a table that shrinks stays one. Commands that store a whole new set
//! choose its form anew.

use std::ptr::NonNull;

use crate::collections::intset::{self, Intset};
use crate::collections::listpack::{self, Listpack};
use crate::collections::set_table::SetTable;
use crate::collections::{Owned, Splice, StringRef, Structure};
use crate::commands::prelude::*;
use crate::keyspace::{Form, Key, Keyspace, ValueMut};
use crate::random::Random;

use super::value::{INTSET, LISTPACK, SetRef, TABLE, number_of, position};

/// What decides the form of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// `set-max-intset-entries`
    intset: usize,
    /// `set-max-listpack-entries`
    listpack: usize,
    /// `set-max-listpack-value`
    value: usize,
    /// Seed of the hashes in a table.
    seed: u64,
}

impl Limits {
    /// Members of an intset, whatever the setting says: its count has 32 bits.
    const INTSET_MAX: usize = 1 << 30;

    pub(crate) fn of(ctx: &Context<'_>) -> Limits {
        let limits = &ctx.settings.limits;
        Limits {
            intset: limits.set_integers.min(Self::INTSET_MAX),
            listpack: limits.set_entries,
            value: limits.set_value_bytes,
            seed: ctx.hash_seed,
        }
    }
}

/// A packed set that can be edited.
trait Packed: Splice {
    fn form(&self) -> Form;
    fn set_form(&mut self, form: Form);

    fn as_ref(&self) -> SetRef<'_> {
        SetRef::packed(self.form(), self.bytes())
    }
}

impl Packed for ValueMut<'_> {
    fn form(&self) -> Form {
        ValueMut::form(self)
    }

    fn set_form(&mut self, form: Form) {
        ValueMut::set_form(self, form);
    }
}

/// A packed set in memory of its own.
#[derive(Debug)]
struct Loose {
    form: Form,
    bytes: Vec<u8>,
}

impl Splice for Loose {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    fn splice(&mut self, at: usize, removed: usize, inserted: usize) -> &mut [u8] {
        Splice::splice(&mut self.bytes, at, removed, inserted)
    }
}

impl Packed for Loose {
    fn form(&self) -> Form {
        self.form
    }

    fn set_form(&mut self, form: Form) {
        self.form = form;
    }
}

/// Adds a member to a packed set; says whether it was not there, or `None` if only a table may hold
/// the set with it.
fn add_packed(set: &mut impl Packed, member: StringRef<'_>, limits: &Limits) -> Option<bool> {
    if set.form() == LISTPACK {
        return with_bytes(member, |member| {
            if position(Listpack::new(set.bytes()), member).is_some() {
                return Some(false);
            }
            push(set, member, limits).then_some(true)
        });
    }
    let intset = Intset::new(set.bytes());
    if let Some(number) = number_of(member) {
        if intset.len() < limits.intset {
            return Some(intset::insert(set, number));
        }
        return intset.contains(number).then_some(false);
    }
    let widest = [intset.first(), intset.last()].into_iter().flatten();
    let widest = widest
        .map(|number| string_len(StringRef::Int(number)))
        .max();
    if intset.len() >= limits.listpack
        || string_len(member) > limits.value
        || widest.is_some_and(|widest| widest > limits.value)
    {
        return None;
    }
    let mut bytes = listpack::EMPTY.to_vec();
    listpack::push_back_all(&mut bytes, intset.iter());
    let before = set.bytes().len();
    set.splice(0, before, bytes.len()).copy_from_slice(&bytes);
    set.set_form(LISTPACK);
    with_bytes(member, |member| push(set, member, limits).then_some(true))
}

/// Adds a new member to a listpack, if that may have it.
fn push(set: &mut impl Packed, member: &[u8], limits: &Limits) -> bool {
    let listpack = Listpack::new(set.bytes());
    let fits = listpack.len() < limits.listpack
        && member.len() <= limits.value
        && listpack.bytes_len() + listpack::encoded_len(member) <= listpack::BYTES_MAX;
    if fits {
        listpack::push_back(set, member);
    }
    fits
}

/// Removes a member from a packed set; says whether it was there.
fn remove_packed(set: &mut impl Packed, member: StringRef<'_>) -> bool {
    if set.form() == INTSET {
        return number_of(member).is_some_and(|number| intset::remove(set, number));
    }
    let listpack = Listpack::new(set.bytes());
    let Some(position) = with_bytes(member, |member| position(listpack, member)) else {
        return false;
    };
    listpack::delete(set, position, 1);
    true
}

/// A table with the members of a set.
fn table_of(set: SetRef<'_>, limits: &Limits) -> Owned<SetTable> {
    let mut table = SetTable::create(limits.seed);
    for member in set.iter() {
        insert(&mut table, member);
    }
    table
}

fn insert(table: &mut SetTable, member: StringRef<'_>) -> bool {
    with_bytes(member, |member| table.insert(member))
}

/// The set of a key, to be changed.
#[derive(Debug)]
pub(super) struct SetMut<'a> {
    value: ValueMut<'a>,
    limits: Limits,
}

impl<'a> SetMut<'a> {
    /// # Errors
    /// `WrongType` for a key of another type.
    pub(super) fn new(value: ValueMut<'a>, limits: Limits) -> Result<SetMut<'a>, CommandError> {
        if value.kind() == ValueKind::Set {
            Ok(SetMut { value, limits })
        } else {
            Err(CommandError::WrongType)
        }
    }

    /// The set as it is now.
    pub(super) fn as_ref(&self) -> SetRef<'_> {
        if self.value.is_structure() {
            SetRef::Table(self.value.structure())
        } else {
            self.value.as_ref()
        }
    }

    /// The table, if it is one.
    pub(super) fn table(&mut self) -> Option<&mut SetTable> {
        self.value
            .is_structure()
            .then(|| self.value.structure_mut())
    }

    /// Prepares for so many members at once, which as Redis has it are all new.
    pub(super) fn expect(&mut self, count: usize) {
        let most = match self.as_ref() {
            SetRef::Intset(_) => self.limits.intset,
            SetRef::Listpack(_) => self.limits.listpack,
            SetRef::Table(_) => return,
        };
        if count > most {
            self.become_table();
        }
    }

    fn become_table(&mut self) -> &mut SetTable {
        let table = table_of(self.value.as_ref(), &self.limits);
        self.value.set_structure(TABLE, table.release());
        self.value.structure_mut()
    }

    /// Adds a member; says whether it was not there.
    pub(super) fn add(&mut self, member: StringRef<'_>) -> bool {
        if self.value.is_structure() {
            return insert(self.value.structure_mut(), member);
        }
        match add_packed(&mut self.value, member, &self.limits) {
            Some(is_new) => is_new,
            None => insert(self.become_table(), member),
        }
    }

    /// Removes a member; says whether it was there. The set may be empty then.
    pub(super) fn remove(&mut self, member: StringRef<'_>) -> bool {
        if self.value.is_structure() {
            let table: &mut SetTable = self.value.structure_mut();
            return with_bytes(member, |member| table.remove(member));
        }
        remove_packed(&mut self.value, member)
    }

    /// Removes a random member that `visit` sees first.
    pub(super) fn pop(&mut self, random: &mut Random, visit: impl FnOnce(StringRef<'_>)) {
        match self.as_ref() {
            SetRef::Intset(intset) => {
                let index = random.below(intset.len() as u64) as usize;
                visit(StringRef::Int(intset.get(index)));
                intset::remove_at(&mut self.value, index);
            }
            SetRef::Listpack(listpack) => {
                let index = random.below(listpack.len() as u64) as i64;
                if let Some(position) = listpack.seek(index) {
                    visit(listpack.get(position));
                    listpack::delete(&mut self.value, position, 1);
                }
            }
            SetRef::Table(_) => {
                let table: &mut SetTable = self.value.structure_mut();
                table.pop(
                    || random.next_u64(),
                    |member| visit(StringRef::Bytes(member)),
                );
            }
        }
    }

    /// Puts another set in the place of this one, which is freed.
    pub(super) fn replace(&mut self, set: NewSet) {
        let old = self.table().map(NonNull::from);
        match set.state {
            State::Packed(Loose { form, bytes }) => self.value.set_packed(form, &bytes),
            State::Table(table) => self.value.set_structure(TABLE, table.release()),
        }
        if let Some(old) = old {
            SetTable::free(old);
        }
    }

    /// The key goes.
    pub(super) fn delete(self) {
        self.value.remove();
    }

    /// The key goes if its set is empty.
    pub(super) fn finish(self) {
        if self.as_ref().len() == 0 {
            self.delete();
        }
    }
}

/// A set that is not yet that of a key.
#[derive(Debug)]
pub(super) struct NewSet {
    state: State,
    limits: Limits,
}

#[derive(Debug)]
enum State {
    Packed(Loose),
    Table(Owned<SetTable>),
}

impl NewSet {
    /// An empty set of integers.
    pub(super) fn intset(limits: Limits) -> NewSet {
        Self::packed(INTSET, intset::EMPTY.to_vec(), limits)
    }

    /// An empty listpack.
    pub(super) fn listpack(limits: Limits) -> NewSet {
        Self::packed(LISTPACK, listpack::EMPTY.to_vec(), limits)
    }

    /// A set in packed bytes.
    pub(super) fn packed(form: Form, bytes: Vec<u8>, limits: Limits) -> NewSet {
        NewSet {
            state: State::Packed(Loose { form, bytes }),
            limits,
        }
    }

    /// An empty set that is about to get `count` members, this one first.
    pub(super) fn for_members(member: &[u8], count: usize, limits: Limits) -> NewSet {
        if count <= limits.intset && parse_i64(member).is_some() {
            NewSet::intset(limits)
        } else if count <= limits.listpack {
            NewSet::listpack(limits)
        } else {
            NewSet {
                state: State::Table(SetTable::create(limits.seed)),
                limits,
            }
        }
    }

    /// The set as it is now.
    pub(super) fn as_ref(&self) -> SetRef<'_> {
        match &self.state {
            State::Packed(packed) => packed.as_ref(),
            State::Table(table) => SetRef::Table(table),
        }
    }

    /// Adds a member; says whether it was not there.
    pub(super) fn add(&mut self, member: StringRef<'_>) -> bool {
        let packed = match &mut self.state {
            State::Packed(packed) => packed,
            State::Table(table) => return insert(table, member),
        };
        if let Some(is_new) = add_packed(packed, member, &self.limits) {
            return is_new;
        }
        let mut table = table_of(packed.as_ref(), &self.limits);
        let is_new = insert(&mut table, member);
        self.state = State::Table(table);
        is_new
    }

    /// Adds a member of another set of this form, all of which come in order and once.
    pub(super) fn keep(&mut self, member: StringRef<'_>) {
        match &mut self.state {
            State::Packed(packed) if packed.form == LISTPACK => {
                listpack::push_back(packed, member);
            }
            _ => {
                self.add(member);
            }
        }
    }

    /// Removes a member; says whether it was there.
    pub(super) fn remove(&mut self, member: StringRef<'_>) -> bool {
        match &mut self.state {
            State::Packed(packed) => remove_packed(packed, member),
            State::Table(table) => with_bytes(member, |member| table.remove(member)),
        }
    }

    /// Becomes an intset, if all members are integers (the caller knows) and not too many.
    pub(super) fn pack_integers(&mut self) {
        let set = self.as_ref();
        if matches!(set, SetRef::Intset(_)) || set.len() > self.limits.intset {
            return;
        }
        let mut numbers: Vec<i64> = set.iter().filter_map(number_of).collect();
        // Ascending, each goes to the end.
        numbers.sort_unstable();
        let mut bytes = intset::EMPTY.to_vec();
        for number in numbers {
            intset::insert(&mut bytes, number);
        }
        *self = Self::packed(INTSET, bytes, self.limits);
    }

    /// Becomes the value of a key that does not exist.
    pub(super) fn create(self, keyspace: &mut Keyspace, key: &Key<'_>) {
        match self.state {
            State::Packed(Loose { form, bytes }) => {
                keyspace.create_packed(key, ValueKind::Set, form, &bytes);
            }
            State::Table(table) => {
                keyspace.create_structure(key, TABLE, table.release());
            }
        }
    }

    /// Becomes the value of a key, whatever was there.
    pub(super) fn store(self, keyspace: &mut Keyspace, key: &Key<'_>) {
        match self.state {
            State::Packed(Loose { form, bytes }) => {
                keyspace.replace_with_packed(key, ValueKind::Set, form, &bytes);
            }
            State::Table(table) => {
                keyspace.replace_with_structure(key, TABLE, table.release());
            }
        }
    }
}
