//! What DEBUG OBJECT says of a list.

use super::value::ListRef;
use crate::commands::internal::with_length;
use crate::commands::prelude::*;
use crate::keyspace::Found;

/// Bytes that the list takes in a dump file, uncompressed, and what the line says at its end.
pub(crate) fn debug_facts(found: &Found<'_>) -> Result<(usize, String), CommandError> {
    let list = match ListRef::of(found)? {
        // Number of nodes and form of the only one, a byte each.
        ListRef::Packed(pack) => return Ok((2 + with_length(pack.bytes_len()), String::new())),
        ListRef::Nodes(list) => list,
    };
    let (mut bytes, mut serialized) = (0, 0);
    let nodes = list.nodes().len();
    list.nodes().visit(0, false, |node| {
        bytes += node.bytes_len();
        serialized += 1 + with_length(node.bytes_len());
        true
    });
    let average = list.len() as f64 / nodes.max(1) as f64;
    let more = format!(
        " ql_nodes:{nodes} ql_avg_node:{average:.2} ql_listpack_max:{} ql_compressed:{} \
         ql_uncompressed_size:{bytes}",
        list.fill().shown(),
        i32::from(list.depth() > 0),
    );
    Ok((with_length(nodes) - nodes + serialized, more))
}
