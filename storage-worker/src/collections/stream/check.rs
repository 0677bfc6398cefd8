//! Whether a node from outside is one, and whether a whole stream agrees with itself.

use crate::collections::StringRef;
use crate::collections::listpack::{Iter, Listpack};
use crate::collections::ordered::Record;

use super::StreamId;
use super::log::Log;
use super::node::{Node, View};

/// The next element, which must be a number of this range.
fn number(elements: &mut Iter<'_>, least: i64) -> Option<i64> {
    match elements.next()? {
        StringRef::Int(number) if number >= least => Some(number),
        _ => None,
    }
}

/// Leaves out elements that must exist.
fn pass(elements: &mut Iter<'_>, count: i64) -> Option<()> {
    (0..count).try_for_each(|_| elements.next().map(|_| ()))
}

/// Whether bytes from outside are the entries of a node, with every number in its place (N1, N2).
#[must_use]
pub fn is_node(id: StreamId, bytes: &[u8]) -> bool {
    Listpack::check(bytes).is_some_and(|list| check_entries(id, list).is_some())
}

fn check_entries(id: StreamId, list: Listpack<'_>) -> Option<()> {
    let mut elements = list.iter();
    let live = number(&mut elements, 0)?;
    let deleted = number(&mut elements, 0)?;
    let fields = number(&mut elements, 0)?;
    pass(&mut elements, fields)?;
    (number(&mut elements, 0)? == 0).then_some(())?;
    let (mut marked, mut count) = (0, 0);
    while !elements.is_empty() {
        let flags = number(&mut elements, 0).filter(|&flags| flags < 4)?;
        number(&mut elements, i64::MIN)?;
        number(&mut elements, i64::MIN)?;
        let size = if flags & 2 == 0 {
            let own = number(&mut elements, 0)?;
            pass(&mut elements, own.checked_mul(2)?)?;
            own * 2 + 4
        } else {
            pass(&mut elements, fields)?;
            fields + 3
        };
        (number(&mut elements, 0)? == size).then_some(())?;
        marked += flags & 1;
        count += 1;
    }
    let counts_agree = deleted == marked && live.checked_add(deleted) == Some(count) && count > 0;
    counts_agree.then_some(())?;
    let view = View::new(id, list);
    (view.entries().next()?.id == id).then_some(())?;
    let mut last = None;
    view.entries()
        .all(|entry| last.replace(entry.id).is_none_or(|last| last < entry.id))
        .then_some(())
}

impl Log {
    /// Compares everything that must agree.
    pub(super) fn check(&self) -> Result<(), String> {
        self.nodes.check()?;
        let (mut length, mut first, mut last) = (0, None, None);
        for node in self.nodes.iter().chain(self.tail()) {
            self.check_node(node, last)?;
            let view = node.view();
            length += view.live as u64;
            let mut live = view.entries().filter(|entry| !entry.is_deleted);
            first = first.or_else(|| live.next().map(|entry| entry.id));
            last = Some(view.last_id());
        }
        if !self.nodes.is_empty() && self.tail().is_none() {
            return Err("a stream with nodes has no last one (L1)".to_owned());
        }
        if length != self.length || first.unwrap_or_default() != self.first_id {
            return Err(format!(
                "{length} entries from {first:?} on are not {self:?} (L2)"
            ));
        }
        if last.is_some_and(|last| last > self.last_id) {
            return Err(format!(
                "the last entry {last:?} is behind {:?}",
                self.last_id
            ));
        }
        Ok(())
    }

    fn check_node(&self, node: &Node, last: Option<StreamId>) -> Result<(), String> {
        node.bytes.check()?;
        if last.is_some_and(|last| last >= node.key()) {
            return Err(format!("node {:?} is out of order (N2)", node.id));
        }
        if is_node(node.id, node.view().bytes()) {
            Ok(())
        } else {
            Err(format!("node {:?} is broken (N1, N2)", node.id))
        }
    }
}
