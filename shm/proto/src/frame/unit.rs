//! The arguments of a unit: several commands that a storage worker runs as one, nothing in between.
//!
//! ```text
//!   argv[1]    head   | watched u32 | form u32 |
//!   argv[2..]  items  | command u16 | database u16 | slot u16 | flags u16 | argc u32 | argv[1] ... |
//!                     or, with flag READY, | 0 ...                                   | RESP bytes  |
//! ```
//!
//! An item is a small request frame: its arguments are packed as those of a request. Its flags are those
//! of a request, with [`READY`] for one whose reply the gateway knows already (`SELECT`): the worker puts
//! it in its place.
//!
//! The reply is one array of the items' replies; nothing (`*-1`, `_`) if a watched key was changed; or one
//! error, and then nothing has been done.
//!
//! Not here: who collects the items (gateway), who runs them (storage worker).

use super::{u16_at, u32_at};

/// Bytes in front of an item's arguments.
pub const UNIT_ITEM_BYTES: usize = 12;

/// Flag of an item: what follows its header is its reply.
pub const READY: u16 = 1 << 8;

/// What a unit says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitHead {
    /// Keys that the connection watches at this worker; 0 if it watches none.
    pub watched: u32,
    /// Other workers at which it watches keys, and how many.
    pub watched_elsewhere: Vec<(u32, u32)>,
}

impl UnitHead {
    /// As argument.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let others = &self.watched_elsewhere;
        let count = u32::try_from(others.len()).unwrap_or(u32::MAX);
        let others = others.iter().flat_map(|(worker, keys)| [*worker, *keys]);
        let words = [self.watched, count].into_iter().chain(others);
        words.flat_map(u32::to_le_bytes).collect()
    }

    /// From its argument.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, others) = bytes.split_first_chunk::<8>()?;
        let count = u32_at(head, 4) as usize;
        let (others, rest) = others.as_chunks::<8>();
        let is_whole = rest.is_empty() && others.len() == count;
        is_whole.then(|| Self {
            watched: u32_at(head, 0),
            watched_elsewhere: others
                .iter()
                .map(|it| (u32_at(it, 0), u32_at(it, 4)))
                .collect(),
        })
    }
}

/// The header of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitItem {
    /// `StorageCommand` as a number.
    pub command: u16,
    /// Database.
    pub database: u16,
    /// Slot of its first key.
    pub slot: u16,
    /// Flags of a request, or [`READY`].
    pub flags: u16,
    /// Arguments, the name included.
    pub argc: u32,
}

impl UnitItem {
    /// Appends an item with these arguments (without the name).
    pub fn push<'a>(self, arguments: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
        self.push_header(out);
        for argument in arguments {
            let len = u32::try_from(argument.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(argument);
        }
    }

    /// Appends an item whose reply is known.
    pub fn push_ready(reply: &[u8], out: &mut Vec<u8>) {
        let item = Self {
            command: 0,
            database: 0,
            slot: 0,
            flags: READY,
            argc: 0,
        };
        item.push_header(out);
        out.extend_from_slice(reply);
    }

    fn push_header(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.command.to_le_bytes());
        out.extend_from_slice(&self.database.to_le_bytes());
        out.extend_from_slice(&self.slot.to_le_bytes());
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&self.argc.to_le_bytes());
    }

    /// An item and what follows its header.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, body) = bytes.split_first_chunk::<UNIT_ITEM_BYTES>()?;
        let item = Self {
            command: u16_at(head, 0),
            database: u16_at(head, 2),
            slot: u16_at(head, 4),
            flags: u16_at(head, 6),
            argc: u32_at(head, 8),
        };
        Some((item, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Args;

    #[test]
    fn items_read_back() {
        let item = UnitItem {
            command: 300,
            database: 15,
            slot: 16383,
            flags: 3,
            argc: 3,
        };
        let mut bytes = Vec::new();
        item.push([&b"key"[..], b""].into_iter(), &mut bytes);
        let (read, body) = UnitItem::decode(&bytes).unwrap();
        assert_eq!(read, item);
        let mut spans = Vec::new();
        let args = Args::new(body, read.argc, &mut spans).unwrap();
        assert_eq!(args.iter_from(1).collect::<Vec<_>>(), [&b"key"[..], b""]);
        bytes.clear();
        UnitItem::push_ready(b"+OK\r\n", &mut bytes);
        let (read, body) = UnitItem::decode(&bytes).unwrap();
        assert_eq!((read.flags, body), (READY, &b"+OK\r\n"[..]));
        assert_eq!(UnitItem::decode(&bytes[..11]), None);
        let head = UnitHead {
            watched: 7,
            watched_elsewhere: vec![(2, 3), (5, 1)],
        };
        assert_eq!(UnitHead::decode(&head.encode()), Some(head.clone()));
        assert_eq!(UnitHead::decode(&head.encode()[..16]), None);
        assert_eq!(UnitHead::decode(b""), None);
    }
}
