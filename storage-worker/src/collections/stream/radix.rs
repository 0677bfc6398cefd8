//! How large the index of the reference would be: XINFO STREAM shows it.
//!
//! Redis finds the nodes of a stream through a radix tree over their ids, as 16 bytes each. Such a
//! tree has a node for every id (a leaf), for every place where ids part, and for every stretch of
//! bytes between those that is not empty; alone, the root is one. Which nodes come and go with an id
//! follows from its neighbours, so nothing has to be walked.

use super::StreamId;
use super::log::Log;

/// Bytes of an id.
const BYTES: u32 = 16;

/// Bytes that two ids begin with together.
fn common(one: StreamId, other: StreamId) -> u32 {
    (one.to_bits() ^ other.to_bits()).leading_zeros() / 8
}

fn byte(id: StreamId, at: u32) -> u8 {
    id.to_bits().to_be_bytes()[at as usize]
}

/// The first and the last id that begin with `depth` bytes of this one.
fn bounds(id: StreamId, depth: u32) -> (StreamId, StreamId) {
    let rest = u128::MAX.checked_shr(depth * 8).unwrap_or(0);
    (
        StreamId::from_bits(id.to_bits() & !rest),
        StreamId::from_bits(id.to_bits() | rest),
    )
}

impl Log {
    /// By how many nodes such a tree over the ids of all other nodes grows with this one.
    pub(super) fn radix_gain(&self, id: StreamId) -> u64 {
        let before = self.node_before(id).map(|node| node.id);
        let after = self.node_after(id).map(|node| node.id);
        let with_before = before.map(|other| common(id, other));
        let with_after = after.map(|other| common(id, other));
        // Where the id parts from all others; the first one hangs below the root.
        let Some(depth) = with_before.max(with_after) else {
            return 1;
        };
        let own = 1 + u64::from(depth + 1 < BYTES);
        if with_before == with_after {
            // Its neighbours part there already.
            return own;
        }
        // The others that begin with the same bytes.
        let (low, high) = bounds(id, depth);
        let nearest = before
            .filter(|_| with_before > with_after)
            .or(after)
            .unwrap_or(id);
        let (first, last) = if with_before > with_after {
            let first = low
                .previous()
                .map_or(self.first_node(), |low| self.node_after(low));
            (first.map_or(nearest, |node| node.id), nearest)
        } else {
            (
                nearest,
                self.node_at_or_before(high).map_or(nearest, |node| node.id),
            )
        };
        if byte(first, depth) != byte(last, depth) {
            return own;
        }
        // They do not: the stretch from `start` to `end` is cut in two, with a new node in between.
        let start = |other: Option<StreamId>, edge: StreamId| {
            other.map_or(0, |other| common(other, edge) + 1)
        };
        let outer_before = self.node_before(first).map(|node| node.id);
        let outer_after = self.node_after(last).map(|node| node.id);
        let start = start(outer_before, first).max(start(outer_after, last));
        let end = if first == last {
            BYTES
        } else {
            common(first, last)
        };
        own + u64::from(depth > start) + u64::from(end > depth + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shm::arena::Mapping;

    use super::*;
    use crate::collections::stream::NodeLimits;

    /// The tree, built and counted.
    fn nodes_of(ids: &[[u8; 16]], depth: usize) -> u64 {
        let [only] = ids else {
            let mut same = depth;
            while ids.iter().all(|id| id[same] == ids[0][same]) {
                same += 1;
            }
            let children = ids.chunk_by(|one, other| one[same] == other[same]);
            return 1
                + u64::from(same > depth)
                + children.map(|ids| nodes_of(ids, same + 1)).sum::<u64>();
        };
        1 + u64::from(depth < only.len())
    }

    fn wanted(ids: &[StreamId]) -> u64 {
        if ids.is_empty() {
            return 1;
        }
        let ids: Vec<[u8; 16]> = ids.iter().map(|id| id.to_bits().to_be_bytes()).collect();
        nodes_of(&ids, 0)
    }

    proptest! {
        #[test]
        fn the_size_of_the_radix_tree_is_kept(
            steps in proptest::collection::vec((any::<prop::sample::Index>(), 0u32..118, 1u64..600), 1..80),
            gone in proptest::collection::vec(any::<prop::sample::Index>(), 0..60),
        ) {
            let mapping = Mapping::private_anywhere(1 << 28, 1).unwrap();
            mapping.enter();
            let mut log = Log::new();
            let mut ids = Vec::new();
            let limits = NodeLimits { bytes: 0, entries: 1 };
            let mut last = 0u128;
            for (_, shift, step) in steps {
                let Some(bits) = last.checked_add(u128::from(step) << shift) else { continue };
                last = bits;
                ids.push(StreamId::from_bits(last));
                log.append(StreamId::from_bits(last), [(&b"f"[..], &b"v"[..])].into_iter(), limits);
                prop_assert_eq!(log.radix_nodes(), wanted(&ids));
            }
            for index in gone {
                if ids.is_empty() { break }
                let id = ids.remove(index.index(ids.len()));
                prop_assert_eq!(log.delete(&[id]), 1);
                prop_assert_eq!(log.radix_nodes(), wanted(&ids));
            }
        }
    }
}
