//! One field of a table: name, value, and where it stands among those that expire, in one object.
//!
//! ```text
//!   +------+- - - - -+- - - - -+------+-------------------------------------+
//!   | head | number  | length  | name | length (1/2/5) and bytes            |
//!   +------+- - - - -+- - - - -+------+ or address (6) and length (6) of a  |
//!      1    4 if it   2 or 4          | value of more than 1 KiB            |
//!           expires                   +-------------------------------------+
//!
//!   head:  bit 7: it expires   bit 6: the value is outside   bits 0..6: length of the name,
//!          62: two bytes say it, 63: four
//! ```
//!
//! Nothing is aligned and no size is stored: it follows from the lengths.
//!
//! Invariants
//!   F1  the object was taken with a size of the class of `size`.
//!   F2  an outside value was taken with its length and belongs to this field alone.
//!
//! Cost: three bytes besides name and value, seven if the field expires.
//! Not here: when it expires (`schedule` keeps the times), the index by name (`table`).

use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};

const EXPIRES: u8 = 0x80;
const OUTSIDE: u8 = 0x40;
const LENGTH: u8 = 0x3F;
/// Longest name whose length fits into the head.
const SHORT_NAME_MAX: usize = 61;
const TWO_BYTES: u8 = 62;
const FOUR_BYTES: u8 = 63;
const NUMBER_BYTES: usize = 4;
/// Longest value that is kept in the object: above, moving the field would copy too much.
const INLINE_MAX: usize = 1024;
/// Address and length of an outside value.
const OUTSIDE_BYTES: usize = 12;

/// A field, by the address of its object. See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field(NonNull<u8>);

/// A value that is about to be written.
#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    Inline(&'a [u8]),
    Outside { address: u64, length: usize },
}

impl<'a> Value<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        if bytes.len() <= INLINE_MAX {
            return Value::Inline(bytes);
        }
        let buffer = Arena.take(bytes.len());
        // SAFETY: the buffer was just taken with this length.
        unsafe {
            buffer
                .as_ptr()
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        Value::Outside {
            address: buffer.as_ptr().expose_provenance() as u64,
            length: bytes.len(),
        }
    }

    fn stored_bytes(self) -> usize {
        match self {
            Value::Inline(bytes) => length_bytes(bytes.len()) + bytes.len(),
            Value::Outside { .. } => OUTSIDE_BYTES,
        }
    }
}

/// Bytes that the length of an inline value takes.
fn length_bytes(length: usize) -> usize {
    if length < 192 { 1 } else { 2 }
}

/// Bytes that the length of a name takes behind the head.
fn name_length_bytes(length: usize) -> usize {
    match length {
        0..=SHORT_NAME_MAX => 0,
        62..=0xFFFF => 2,
        _ => 4,
    }
}

impl Field {
    #[inline]
    pub(super) fn new(object: NonNull<u8>) -> Self {
        Self(object)
    }

    #[inline]
    pub(super) fn object(self) -> NonNull<u8> {
        self.0
    }

    /// Makes a field. With a number it expires.
    pub(super) fn create(name: &[u8], value: &[u8], number: Option<u32>) -> Self {
        Self::write(name, Value::new(value), number)
    }

    fn write(name: &[u8], value: Value<'_>, number: Option<u32>) -> Self {
        let number_bytes = if number.is_some() { NUMBER_BYTES } else { 0 };
        let name_offset = 1 + number_bytes + name_length_bytes(name.len());
        let size = name_offset + name.len() + value.stored_bytes();
        let field = Self(Arena.take(size));
        let mut head = match name_length_bytes(name.len()) {
            0 => name.len() as u8,
            2 => {
                field.copy_in(name_offset - 2, &(name.len() as u16).to_le_bytes());
                TWO_BYTES
            }
            _ => {
                // A request is far below 4 GiB.
                field.copy_in(name_offset - 4, &(name.len() as u32).to_le_bytes());
                FOUR_BYTES
            }
        };
        if let Some(number) = number {
            head |= EXPIRES;
            field.copy_in(1, &number.to_le_bytes());
        }
        if matches!(value, Value::Outside { .. }) {
            head |= OUTSIDE;
        }
        field.copy_in(0, &[head]);
        field.copy_in(name_offset, name);
        field.write_value(name_offset + name.len(), value);
        field
    }

    fn write_value(self, offset: usize, value: Value<'_>) {
        match value {
            Value::Inline(bytes) if bytes.len() < 192 => {
                self.copy_in(offset, &[bytes.len() as u8]);
                self.copy_in(offset + 1, bytes);
            }
            Value::Inline(bytes) => {
                let rest = bytes.len() - 192;
                self.copy_in(offset, &[192 + (rest >> 8) as u8, rest as u8]);
                self.copy_in(offset + 2, bytes);
            }
            Value::Outside { address, length } => {
                self.copy_in(offset, &address.to_le_bytes()[..6]);
                self.copy_in(offset + 6, &(length as u64).to_le_bytes()[..6]);
            }
        }
    }

    #[inline]
    fn bytes<const N: usize>(self, offset: usize) -> [u8; N] {
        // SAFETY: the field is live, and callers stay within its size.
        unsafe { self.0.add(offset).cast::<[u8; N]>().read() }
    }

    #[inline]
    fn copy_in(self, offset: usize, bytes: &[u8]) {
        // SAFETY: as in `bytes`; `bytes` is not part of this field.
        unsafe {
            let to = self.0.add(offset).as_ptr();
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    #[inline]
    fn slice<'a>(self, offset: usize, length: usize) -> &'a [u8] {
        // SAFETY: as in `bytes`; the table lends it no longer than the field stays as it is.
        unsafe { std::slice::from_raw_parts(self.0.add(offset).as_ptr(), length) }
    }

    #[inline]
    fn head(self) -> u8 {
        let [head] = self.bytes(0);
        head
    }

    /// Whether the field is in the schedule.
    #[inline]
    pub(super) fn expires(self) -> bool {
        self.head() & EXPIRES != 0
    }

    /// Its number in the schedule.
    #[inline]
    pub(super) fn number(self) -> Option<u32> {
        self.expires().then(|| u32::from_le_bytes(self.bytes(1)))
    }

    /// Gives a field that expires another number.
    #[inline]
    pub(super) fn set_number(self, number: u32) {
        debug_assert!(self.expires());
        self.copy_in(1, &number.to_le_bytes());
    }

    /// Offset and length of the name.
    #[inline]
    fn name_at(self) -> (usize, usize) {
        let head = self.head();
        let offset = if head & EXPIRES == 0 {
            1
        } else {
            1 + NUMBER_BYTES
        };
        match head & LENGTH {
            TWO_BYTES => {
                let length = u16::from_le_bytes(self.bytes(offset));
                (offset + 2, usize::from(length))
            }
            FOUR_BYTES => {
                let length = u32::from_le_bytes(self.bytes(offset));
                (offset + 4, length as usize)
            }
            length => (offset, usize::from(length)),
        }
    }

    #[inline]
    pub(super) fn name<'a>(self) -> &'a [u8] {
        let (offset, length) = self.name_at();
        self.slice(offset, length)
    }

    #[inline]
    fn value_offset(self) -> usize {
        let (offset, length) = self.name_at();
        offset + length
    }

    /// Offset and length of an inline value's bytes.
    #[inline]
    fn inline_at(self, offset: usize) -> (usize, usize) {
        let [first] = self.bytes(offset);
        if first < 192 {
            return (offset + 1, usize::from(first));
        }
        let [low] = self.bytes(offset + 1);
        let rest = (usize::from(first) - 192) << 8 | usize::from(low);
        (offset + 2, rest + 192)
    }

    /// Address and length of an outside value.
    #[inline]
    fn outside_at(self, offset: usize) -> (NonNull<u8>, usize) {
        let six = |at: usize| {
            let [a, b, c, d, e, f] = self.bytes(at);
            u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
        };
        let address = std::ptr::with_exposed_provenance_mut(six(offset) as usize);
        // SAFETY: F2: the address is that of a buffer.
        let buffer = unsafe { NonNull::new_unchecked(address) };
        (buffer, six(offset + 6) as usize)
    }

    #[inline]
    fn is_outside(self) -> bool {
        self.head() & OUTSIDE != 0
    }

    #[inline]
    pub(super) fn value<'a>(self) -> &'a [u8] {
        let offset = self.value_offset();
        if self.is_outside() {
            let (buffer, length) = self.outside_at(offset);
            // SAFETY: F2: the buffer has this length.
            return unsafe { std::slice::from_raw_parts(buffer.as_ptr(), length) };
        }
        let (offset, length) = self.inline_at(offset);
        self.slice(offset, length)
    }

    /// Bytes of the object, without a value outside (F1).
    fn size(self) -> usize {
        let offset = self.value_offset();
        if self.is_outside() {
            return offset + OUTSIDE_BYTES;
        }
        let (start, length) = self.inline_at(offset);
        start + length
    }

    /// Bytes that the field takes in the arena, with its value.
    pub(super) fn memory_bytes(self) -> usize {
        let outside = if self.is_outside() {
            usable_size(self.outside_at(self.value_offset()).1)
        } else {
            0
        };
        usable_size(self.size()) + outside
    }

    /// Gives the field another value; it moves if that changes its size. The number stays.
    pub(super) fn with_value(self, bytes: &[u8]) -> Self {
        let (offset, old_size) = (self.value_offset(), self.size());
        let value = Value::new(bytes);
        self.free_outside();
        if usable_size(old_size) != usable_size(offset + value.stored_bytes()) {
            let moved = Self::write(self.name(), value, self.number());
            // SAFETY: F1; nobody uses the old object any more.
            unsafe { Arena.give(self.0, old_size) }
            return moved;
        }
        let head = self.head() & !OUTSIDE;
        let outside = matches!(value, Value::Outside { .. });
        self.copy_in(0, &[if outside { head | OUTSIDE } else { head }]);
        self.write_value(offset, value);
        self
    }

    /// Moves the field to an object with or without a number; the value goes along.
    pub(super) fn with_number(self, number: Option<u32>) -> Self {
        let offset = self.value_offset();
        let value = if self.is_outside() {
            let (buffer, length) = self.outside_at(offset);
            let address = buffer.as_ptr().expose_provenance() as u64;
            Value::Outside { address, length }
        } else {
            let (start, length) = self.inline_at(offset);
            Value::Inline(self.slice(start, length))
        };
        let moved = Self::write(self.name(), value, number);
        // SAFETY: F1; nobody uses the old object any more, and the value outside has moved on.
        unsafe { Arena.give(self.0, self.size()) }
        moved
    }

    fn free_outside(self) {
        if self.is_outside() {
            let (buffer, length) = self.outside_at(self.value_offset());
            // SAFETY: F2; the caller writes another value or frees the field.
            unsafe { Arena.give(buffer, length) }
        }
    }

    /// Gives everything back.
    pub(super) fn free(self) {
        self.free_outside();
        // SAFETY: F1; the caller forgets the field.
        unsafe { Arena.give(self.0, self.size()) }
    }

    /// Whether everything lies in the arena.
    pub(super) fn check(self) -> Result<(), String> {
        let at = self.0.addr().get() as u64;
        if !Arena.contains(at, self.size()) {
            return Err(format!("the field at {at:#x} reaches outside the arena"));
        }
        if self.is_outside() {
            let (buffer, length) = self.outside_at(self.value_offset());
            if length <= INLINE_MAX || !Arena.contains(buffer.addr().get() as u64, length) {
                return Err(format!("the value of the field at {at:#x} is broken (F2)"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shm::arena::Mapping;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_field_keeps_its_parts_through_all_changes(
            name_length in prop_oneof![0usize..70, 60000usize..70000],
            steps in proptest::collection::vec(
                (prop_oneof![0usize..300, 900usize..1200, 5000usize..6000], any::<u8>(), any::<Option<u32>>()),
                1..20,
            )
        ) {
            let mapping = Mapping::private_anywhere(1 << 26, 1).unwrap();
            mapping.enter();
            let empty = Arena.used_bytes();
            let name = vec![7; name_length];
            let mut field = Field::create(&name, b"", None);
            for (length, fill, number) in steps {
                let value = vec![fill; length];
                let before = field.number();
                field = field.with_value(&value);
                prop_assert_eq!(field.number(), before);
                field = field.with_number(number);
                prop_assert_eq!((field.name(), field.value()), (&name[..], &value[..]));
                prop_assert_eq!((field.number(), field.expires()), (number, number.is_some()));
                field.check().map_err(TestCaseError::fail)?;
                let bytes = Arena.used_bytes() - empty;
                prop_assert_eq!(field.memory_bytes() as u64, bytes);
            }
            field.free();
            prop_assert_eq!(Arena.used_bytes(), empty);
        }
    }
}
