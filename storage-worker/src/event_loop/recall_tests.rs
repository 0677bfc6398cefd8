//! Requests that their gateway calls back while they are in the ring.

use super::tests::World;
use proto::CommandError;
use proto::frame::{
    REQUEST_FLAGS_OFFSET, REQUEST_KIND_OFFSET, ReplyKind, RequestHeader, RequestKind, flags, padded,
};

/// Writes a byte over those at `offset` of the frames from `first` on that the worker has not released.
fn write_over(world: &mut World, first: usize, offset: usize, byte: u8) {
    let mut places = Vec::new();
    let (position, bytes) = world.requests.unreleased();
    let mut at = 0;
    while let Ok(header) = RequestHeader::decode(&bytes[at..]) {
        places.push(position + (at + offset) as u64);
        at += padded(header.len as usize);
    }
    for &place in places[first..].iter().rev() {
        world.requests.rewrite(place, byte);
    }
}

#[test]
fn requests_that_are_called_back_are_returned() {
    let mut world = World::new();
    let mut worker = world.start();
    for _ in 0..4 {
        world.send(1, "INCR n");
    }
    write_over(
        &mut world,
        1,
        REQUEST_KIND_OFFSET,
        RequestKind::Recalled as u8,
    );
    // The last one had been executed before, by a worker that died within it.
    write_over(&mut world, 3, REQUEST_FLAGS_OFFSET, flags::EXECUTED);
    worker.serve();
    let seen: Vec<(ReplyKind, u32, String)> = world
        .receive()
        .into_iter()
        .map(|frame| (frame.kind, frame.sequence, frame.bytes))
        .collect();
    let mut unknown = Vec::new();
    CommandError::OutcomeUnknown.write_resp(&mut unknown);
    let want = [
        (ReplyKind::Reply, 1, ":1\r\n".to_owned()),
        (ReplyKind::Returned, 2, String::new()),
        (ReplyKind::Returned, 3, String::new()),
        (ReplyKind::Reply, 4, String::from_utf8(unknown).unwrap()),
    ];
    assert_eq!(seen, want);
    assert_eq!(world.ask(&mut worker, "INCR n"), ":2\r\n");
}
