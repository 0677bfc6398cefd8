//! What a value is: its type, and how the type keeps it.

/// The type of a value.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// A string, which may be kept as an integer.
    String = 0,
    /// A list.
    List = 1,
    /// A set.
    Set = 2,
    /// A sorted set.
    SortedSet = 3,
    /// A hash.
    Hash = 4,
    /// A stream.
    Stream = 5,
}

impl ValueKind {
    /// All of them, by number.
    pub const ALL: [ValueKind; 6] = [
        ValueKind::String,
        ValueKind::List,
        ValueKind::Set,
        ValueKind::SortedSet,
        ValueKind::Hash,
        ValueKind::Stream,
    ];

    /// What TYPE answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::String => "string",
            ValueKind::List => "list",
            ValueKind::Set => "set",
            ValueKind::SortedSet => "zset",
            ValueKind::Hash => "hash",
            ValueKind::Stream => "stream",
        }
    }

    /// The kind with this number, which an entry says.
    #[inline]
    pub(super) fn numbered(number: u8) -> ValueKind {
        match number {
            0 => ValueKind::String,
            1 => ValueKind::List,
            2 => ValueKind::Set,
            3 => ValueKind::SortedSet,
            4 => ValueKind::Hash,
            _ => ValueKind::Stream,
        }
    }
}

/// How a collection is kept, as a number below 8 whose meaning belongs to its type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Form(pub u8);

/// What the numbers mean, but for those of hashes (`collections::hash::form`).
impl Form {
    /// A list in one listpack.
    pub const LIST_LISTPACK: Form = Form(0);
    /// A list in nodes.
    pub const LIST_NODES: Form = Form(1);
    /// A set of integers.
    pub const SET_INTSET: Form = Form(0);
    /// A small set.
    pub const SET_LISTPACK: Form = Form(1);
    /// A large set.
    pub const SET_TABLE: Form = Form(2);
    /// A small sorted set.
    pub const SORTED_SET_LISTPACK: Form = Form(0);
    /// A large sorted set.
    pub const SORTED_SET_TABLE: Form = Form(1);
    /// A stream.
    pub const STREAM: Form = Form(0);
}

/// What an entry says of its value besides the value: kind, form, and whether a short string is shown
/// as `raw`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    pub kind: ValueKind,
    /// Bits of the entry's flags.
    pub marks: u8,
}

/// Shown as `raw` although it is short: it was modified in place.
pub(super) const RAW: u8 = 4;
const FORM_SHIFT: u32 = 3;
const FORM: u8 = 7 << FORM_SHIFT;
/// The flags that belong to the value.
pub(super) const MARKS: u8 = RAW | FORM;

impl Label {
    #[inline]
    pub(super) fn string(is_raw: bool) -> Label {
        Label {
            kind: ValueKind::String,
            marks: if is_raw { RAW } else { 0 },
        }
    }

    #[inline]
    pub(super) fn collection(kind: ValueKind, form: Form) -> Label {
        debug_assert!(form.0 < 8);
        Label {
            kind,
            marks: form.0 << FORM_SHIFT & FORM,
        }
    }

    #[inline]
    pub(super) fn form(self) -> Form {
        Form((self.marks & FORM) >> FORM_SHIFT)
    }
}
