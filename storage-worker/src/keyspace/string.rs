//! Strings: setting, appending, changing in place.
//!
//! A short value lives in the entry, and changing its length may move the entry. A value of more than
//! 1 KiB lives in a buffer outside with room to grow: doubled up to 1 MiB, a quarter more above, so
//! that appending costs amortised O(1) per byte; a large buffer grows in place where it can.

use proto::time::UnixMillis;

use super::dictionary::Place;
use super::entry::{Content, Entry, INLINE_MAX, Outside, Storage, Value};
use super::kind::Label;
use super::{Key, Keyspace, ValueKind};

/// Up to here a growing buffer doubles; above, it grows by a quarter.
const DOUBLING_MAX: usize = 1 << 20;

/// A value to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringValue<'a> {
    /// Kept as a number if the bytes are the decimal form of one.
    Auto(&'a [u8]),
    /// A number.
    Int(i64),
    /// Kept as bytes, as a command that never tries for a number leaves it (INCRBYFLOAT).
    Plain(&'a [u8]),
    /// As `Plain`, and shown as `raw` even if short.
    Raw(&'a [u8]),
}

/// What happens to the expiry of a key that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// The key lives for ever.
    Clear,
    /// It stays as it is.
    Keep,
    /// The key is gone after this time.
    At(UnixMillis),
}

/// The number that `bytes` is the decimal form of: no sign but one minus, no leading zeros, no space.
fn integer_of(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut value = 0u64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // 19 digits stay below 2^64.
        value = value * 10 + u64::from(digit - b'0');
    }
    if negative {
        0i64.checked_sub_unsigned(value)
    } else {
        i64::try_from(value).ok()
    }
}

impl<'a> StringValue<'a> {
    /// What is stored: bytes that fit inline as they are, longer ones in a fresh buffer.
    fn store(self) -> Value<'a> {
        let (bytes, raw) = match self {
            StringValue::Int(integer) => return number(integer),
            StringValue::Auto(bytes) => match integer_of(bytes) {
                Some(integer) => return number(integer),
                None => (bytes, false),
            },
            StringValue::Plain(bytes) => (bytes, false),
            StringValue::Raw(bytes) => (bytes, true),
        };
        if bytes.len() <= INLINE_MAX {
            return inline(bytes, raw);
        }
        outside(Outside::filled(bytes))
    }
}

fn number(integer: i64) -> Value<'static> {
    Value {
        label: Label::string(false),
        content: Content::Integer(integer),
    }
}

fn inline(bytes: &[u8], is_raw: bool) -> Value<'_> {
    Value {
        label: Label::string(is_raw),
        content: Content::Inline(bytes),
    }
}

fn outside(buffer: Outside) -> Value<'static> {
    Value {
        label: Label::string(true),
        content: Content::Outside(buffer),
    }
}

impl Keyspace {
    /// Sets a string, whatever was there before.
    pub fn set_string(&mut self, key: &Key<'_>, value: StringValue<'_>, expiry: Expiry) {
        match self.live_place_of(key) {
            Some(place) => self.overwrite(key, place, value, expiry),
            None => {
                let expiry = match expiry {
                    Expiry::At(at) => Some(at),
                    Expiry::Clear | Expiry::Keep => None,
                };
                self.insert_new(key, Entry::create(key.bytes, expiry, value.store()));
            }
        }
    }

    fn overwrite(&mut self, key: &Key<'_>, place: Place, value: StringValue<'_>, expiry: Expiry) {
        let old = Entry::new(place.element());
        self.touch(old);
        let expiry = match expiry {
            Expiry::Clear => None,
            Expiry::Keep => old.expiry(),
            Expiry::At(at) => Some(at),
        };
        self.put_value(key.db, place, value.store());
        if expiry != Entry::new(place.element()).expiry() {
            self.change_expiry(key.db, place, expiry);
        }
    }

    /// Gives the entry at `place` another value; its old buffer or structure is freed. The entry moves
    /// if that changes its size.
    pub(super) fn put_value(&mut self, db: u16, place: Place, value: Value<'_>) {
        let old = Entry::new(place.element());
        if old.kind() == ValueKind::Stream {
            self.hook.stream_removed(db, old.key());
        }
        if matches!(old.storage(), Storage::Outside | Storage::Structure) {
            self.free_outside(old, self.lazy_free.overwritten);
        }
        if old.has_field_expiry() {
            // It belongs to the hash that is overwritten.
            self.change_field_expiry(db, place, None);
        }
        self.put_value_keeping_outside(db, place, value);
    }

    /// As `put_value`; what the old value has outside the entry is the caller's.
    pub(super) fn put_value_keeping_outside(&mut self, db: u16, place: Place, value: Value<'_>) {
        use shm::arena::usable_size;
        let old = Entry::new(place.element());
        if usable_size(old.size()) == usable_size(old.size_with(value)) {
            old.write_value(value);
        } else {
            self.replace(db, place, Entry::create(old.key(), old.times(), value));
        }
    }

    /// Overwrites a value that is kept as a number by another number; says whether it was one.
    pub fn set_int_in_place(&mut self, key: &Key<'_>, value: i64) -> bool {
        let Some(place) = self.live_place_of(key) else {
            return false;
        };
        let entry = Entry::new(place.element());
        let is_integer = entry.storage() == Storage::Integer;
        if is_integer {
            entry.set_integer(value);
        }
        is_integer
    }

    /// Appends to a string (made if it is not there) and returns its new length.
    pub fn append(&mut self, key: &Key<'_>, bytes: &[u8]) -> usize {
        let Some(place) = self.live_place_of(key) else {
            self.set_string(key, StringValue::Auto(bytes), Expiry::Clear);
            return bytes.len();
        };
        let old_length = self.make_raw(key.db, place);
        let length = old_length + bytes.len();
        self.resize(key.db, place, length, false);
        Entry::new(place.element()).bytes_mut()[old_length..].copy_from_slice(bytes);
        length
    }

    /// Brings a string (made if it is not there) to `length` bytes, with zeroes where it grows, lets
    /// `change` edit it, and leaves it as raw bytes.
    pub fn string_mut<R>(
        &mut self,
        key: &Key<'_>,
        length: usize,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        let place = match self.live_place_of(key) {
            Some(place) => {
                self.make_raw(key.db, place);
                place
            }
            None => {
                self.set_string(key, StringValue::Raw(b""), Expiry::Clear);
                self.place_of(key).expect("it was just set")
            }
        };
        self.resize(key.db, place, length, true);
        change(Entry::new(place.element()).bytes_mut())
    }

    /// As [`Keyspace::string_mut`] within a command that only reads: brackets the change itself.
    pub fn string_mut_while_reading<R>(
        &mut self,
        key: &Key<'_>,
        length: usize,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        self.hook.begin_write(key.db, key.slot);
        let result = self.string_mut(key, length, change);
        self.hook.end_write();
        result
    }

    /// Turns a number into its text; marks a short string as modified. Returns the length.
    fn make_raw(&mut self, db: u16, place: Place) -> usize {
        let entry = Entry::new(place.element());
        match entry.storage() {
            Storage::Integer => {
                let mut text = itoa::Buffer::new();
                let bytes = text.format(entry.integer()).as_bytes();
                self.put_value(db, place, inline(bytes, true));
                bytes.len()
            }
            Storage::Inline => {
                entry.mark_raw();
                entry.bytes().len()
            }
            Storage::Outside | Storage::Structure => entry.outside().length,
        }
    }

    /// Changes the length of a raw string. New bytes are zero if `zeroed`, else anything.
    fn resize(&mut self, db: u16, place: Place, length: usize, zeroed: bool) {
        let entry = Entry::new(place.element());
        if entry.storage() == Storage::Outside {
            let buffer = resized(entry.outside(), length, zeroed);
            entry.set_outside(buffer);
            return;
        }
        let old = entry.bytes();
        if length == old.len() {
            return;
        }
        if length > INLINE_MAX {
            let buffer = Outside::create(length, grown(old.len(), length), old.len());
            buffer.rest(0)[..old.len()].copy_from_slice(old);
            self.put_value(db, place, outside(buffer));
            return;
        }
        let mut bytes = [0; INLINE_MAX];
        let kept = length.min(old.len());
        bytes[..kept].copy_from_slice(&old[..kept]);
        self.put_value(db, place, inline(&bytes[..length], true));
    }
}

/// Capacity for a buffer that grows from `old` bytes to `length`.
fn grown(old: usize, length: usize) -> usize {
    let ahead = if old <= DOUBLING_MAX {
        old * 2
    } else {
        old + old / 4
    };
    ahead.max(length)
}

/// A buffer of another length, with the same bytes as far as both reach.
fn resized(mut outside: Outside, length: usize, zeroed: bool) -> Outside {
    let (old_length, old_capacity) = (outside.length, outside.capacity);
    let capacity = grown(old_length, length);
    if length > old_capacity && !outside.extend(capacity) {
        let bigger = Outside::create(length, capacity, old_length);
        bigger.rest(0)[..old_length].copy_from_slice(&outside.rest(0)[..old_length]);
        outside.free();
        outside = bigger;
    }
    // What lies behind the old capacity is zero already.
    if zeroed && old_length < length.min(old_capacity) {
        outside.rest(old_length)[..length.min(old_capacity) - old_length].fill(0);
    }
    outside.length = length;
    outside
}

#[cfg(test)]
mod tests {
    use super::integer_of;

    #[test]
    fn only_canonical_decimals_are_numbers() {
        for value in [
            0,
            1,
            -1,
            42,
            i64::MAX,
            i64::MIN,
            i64::MAX - 1,
            1_000_000_000_000,
        ] {
            assert_eq!(integer_of(value.to_string().as_bytes()), Some(value));
        }
        let others = [
            "",
            "-",
            "+1",
            "-0",
            "01",
            " 1",
            "1 ",
            "1.0",
            "9223372036854775808",
            "0x1",
        ];
        for text in others
            .into_iter()
            .chain(["-9223372036854775809", "99999999999999999999"])
        {
            assert_eq!(integer_of(text.as_bytes()), None, "{text}");
        }
    }
}
