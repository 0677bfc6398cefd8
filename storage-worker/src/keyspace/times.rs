//! The times of an entry: when its key expires, and when the next field of its hash may.
//!
//! ```text
//!   +-----------+-------------+- - -+-----------+-------------+
//!   | expiry ms | wheel place |     | fields ms | wheel place |      each half only if it is there
//!   +-----------+-------------+- - -+-----------+-------------+
//!        6             6        (2)      6             6
//! ```
//!
//! The two bytes in brackets exist only for an expiry that does not fit into 48 bits (after the year
//! 10889); fields expire before 4200.

use proto::time::UnixMillis;

use super::dictionary::Element;
use super::entry::{Entry, FIXED_BYTES};
use super::wheel::Timed;

const HAS_EXPIRY: u8 = 1;
const FAR_EXPIRY: u8 = 2;
const HAS_FIELDS: u8 = 64;

/// A time and a place in a wheel.
const TIME_BYTES: usize = 12;
const FAR_BYTES: usize = 2;
/// First expiry that needs the two extra bytes.
const FAR: u64 = 1 << 48;

/// See the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// When the key is gone.
    pub expiry: Option<UnixMillis>,
    /// Before which no field of the hash expires.
    pub fields: Option<UnixMillis>,
}

impl From<Option<UnixMillis>> for Times {
    fn from(expiry: Option<UnixMillis>) -> Self {
        Times {
            expiry,
            fields: None,
        }
    }
}

impl Times {
    fn flags(self) -> u8 {
        let expiry = match self.expiry {
            None => 0,
            Some(at) if at.0 < FAR => HAS_EXPIRY,
            Some(_) => HAS_EXPIRY | FAR_EXPIRY,
        };
        expiry | if self.fields.is_some() { HAS_FIELDS } else { 0 }
    }

    /// Bytes that they take in an entry.
    pub(super) fn bytes(self) -> usize {
        bytes_of(self.flags())
    }
}

#[inline]
fn bytes_of(flags: u8) -> usize {
    let count = |flag: u8| usize::from(flags & flag != 0);
    count(HAS_EXPIRY) * TIME_BYTES + count(FAR_EXPIRY) * FAR_BYTES + count(HAS_FIELDS) * TIME_BYTES
}

impl Entry {
    /// Bytes that the times take.
    #[inline]
    pub(super) fn times_bytes(self) -> usize {
        bytes_of(self.flags())
    }

    pub(super) fn times(self) -> Times {
        Times {
            expiry: self.expiry(),
            fields: self.field_expiry(),
        }
    }

    /// Writes the times of a new entry, and no other flags.
    pub(super) fn set_times(self, times: Times) {
        self.set_byte(1, times.flags());
        if let Some(at) = times.expiry {
            self.set_expiry(at);
        }
        if let Some(at) = times.fields {
            self.set_field_expiry(at);
        }
    }

    #[inline]
    pub(super) fn has_expiry(self) -> bool {
        self.flags() & HAS_EXPIRY != 0
    }

    #[inline]
    pub(super) fn expiry(self) -> Option<UnixMillis> {
        if !self.has_expiry() {
            return None;
        }
        let low = self.half(FIXED_BYTES);
        let high = if self.flags() & FAR_EXPIRY == 0 {
            0
        } else {
            let at = FIXED_BYTES + TIME_BYTES;
            u64::from(self.byte(at)) | u64::from(self.byte(at + 1)) << 8
        };
        Some(UnixMillis(low | high << 48))
    }

    /// Overwrites the expiry; the new one takes as many bytes as the old one.
    pub(super) fn set_expiry(self, at: UnixMillis) {
        debug_assert_eq!(at.0 >= FAR, self.flags() & FAR_EXPIRY != 0);
        self.set_half(FIXED_BYTES, at.0);
        if self.flags() & FAR_EXPIRY != 0 {
            self.set_byte(FIXED_BYTES + TIME_BYTES, (at.0 >> 48) as u8);
            self.set_byte(FIXED_BYTES + TIME_BYTES + 1, (at.0 >> 56) as u8);
        }
    }

    #[inline]
    pub(super) fn has_field_expiry(self) -> bool {
        self.flags() & HAS_FIELDS != 0
    }

    /// Offset of the time of the fields.
    fn fields_at(self) -> usize {
        debug_assert!(self.has_field_expiry());
        FIXED_BYTES + self.times_bytes() - TIME_BYTES
    }

    #[inline]
    pub(super) fn field_expiry(self) -> Option<UnixMillis> {
        self.has_field_expiry()
            .then(|| UnixMillis(self.half(self.fields_at())))
    }

    /// Overwrites the time of the fields.
    pub(super) fn set_field_expiry(self, at: UnixMillis) {
        debug_assert!(at.0 < FAR);
        self.set_half(self.fields_at(), at.0);
    }

    /// The entry as the wheel of fields sees it.
    pub(super) fn expiring_fields(self) -> ExpiringFields {
        ExpiringFields(self)
    }
}

/// In the wheel of keys (E2).
impl Timed for Entry {
    fn of(object: Element) -> Self {
        Entry::new(object)
    }

    fn object(self) -> Element {
        Entry::object(self)
    }

    fn time(self) -> UnixMillis {
        self.expiry().unwrap_or_default()
    }

    fn place(self) -> u64 {
        debug_assert!(self.has_expiry());
        self.half(FIXED_BYTES + 6)
    }

    fn set_place(self, place: u64) {
        debug_assert!(self.has_expiry());
        self.set_half(FIXED_BYTES + 6, place);
    }
}

/// A hash with fields that expire, in the wheel of fields (E2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExpiringFields(pub Entry);

impl Timed for ExpiringFields {
    fn of(object: Element) -> Self {
        ExpiringFields(Entry::new(object))
    }

    fn object(self) -> Element {
        self.0.object()
    }

    fn time(self) -> UnixMillis {
        self.0.field_expiry().unwrap_or_default()
    }

    fn place(self) -> u64 {
        self.0.half(self.0.fields_at() + 6)
    }

    fn set_place(self, place: u64) {
        self.0.set_half(self.0.fields_at() + 6, place);
    }
}
