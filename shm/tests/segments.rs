//! Each kind of segment in one process: what is written at one end is seen at the other, sizes and
//! mix-ups are refused, descriptors travel.

#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use shm::{
    Bell, CommitLine, Journal, LinkSegment, Party, PartyState, RegistrySegment, RingConsumer,
    RingProducer, Segment, SegmentKind, ShmError, eventfd, recv_with_fds, send_with_fds,
};

const FINGERPRINT: u64 = 0x5eed;
const RING: usize = 64 * 1024;

struct Ends {
    requests: (RingProducer, RingConsumer),
    replies: (RingProducer, RingConsumer),
}

fn ends() -> Ends {
    let link = LinkSegment::create("test-link", RING, FINGERPRINT).unwrap();
    let other = LinkSegment::open(link.fd().try_clone_to_owned().unwrap(), FINGERPRINT).unwrap();
    let (request_out, mut reply_in) = link.requester().unwrap();
    assert!(reply_in.release());
    let (mut request_in, reply_out) = other.responder(None).unwrap();
    assert!(
        request_in.release(),
        "the first release rings for a dead predecessor"
    );
    Ends {
        requests: (request_out, request_in),
        replies: (reply_out, reply_in),
    }
}

#[test]
fn a_frame_is_invisible_until_published_and_whole_after() {
    let Ends {
        requests: (mut out, mut inn),
        ..
    } = ends();
    out.reserve(16)
        .unwrap()
        .copy_from_slice(b"sixteen bytes...");
    out.commit(16);
    assert_eq!(inn.refresh().unwrap(), 0);
    assert!(out.publish());
    assert!(!out.publish());
    assert_eq!(inn.refresh().unwrap(), 16);
    assert_eq!(inn.readable(), b"sixteen bytes...");
    assert!(!out.is_empty());
    inn.consume(16);
    assert_eq!(inn.kept(8, 5), Some(&b"bytes"[..]));
    assert!(!inn.release());
    assert_eq!(inn.kept(8, 5), None);
    assert!(out.is_empty());
}

#[test]
fn frames_never_wrap_and_both_directions_work() {
    let Ends { requests, replies } = ends();
    for (mut out, mut inn) in [requests, replies] {
        for round in 0..100u8 {
            let len = 5000 + usize::from(round) * 8;
            out.reserve(len).unwrap().fill(round);
            out.commit(len);
            out.publish();
            assert_eq!(inn.refresh().unwrap(), len);
            assert!(inn.readable().iter().all(|byte| *byte == round));
            inn.consume(len);
            inn.release();
        }
    }
}

#[test]
fn a_full_ring_refuses_and_the_release_says_that_space_was_asked_for() {
    let Ends {
        requests: (mut out, mut inn),
        ..
    } = ends();
    assert_eq!(out.reserve_up_to(usize::MAX).len(), RING);
    out.commit(RING);
    out.publish();
    assert!(out.reserve(8).is_none());
    out.want_space();
    assert_eq!(out.free(), 0);
    inn.refresh().unwrap();
    inn.consume(64);
    assert!(inn.release());
    assert_eq!(out.free(), 64);
    inn.consume(64);
    assert!(!inn.release());
}

#[test]
fn an_open_frame_can_be_completed_until_it_is_published() {
    let Ends {
        requests: (mut out, mut inn),
        ..
    } = ends();
    let start = out.position();
    out.reserve(24).unwrap().fill(1);
    out.commit(24);
    out.unpublished_mut(start).unwrap()[..8].copy_from_slice(&[9; 8]);
    out.publish();
    assert!(out.unpublished_mut(start).is_none());
    assert_eq!(out.unpublished_mut(out.position()).unwrap().len(), 0);
    inn.refresh().unwrap();
    assert_eq!(&inn.readable()[..9], &[9, 9, 9, 9, 9, 9, 9, 9, 1]);
    out.reserve(8).unwrap();
    out.commit(8);
    assert!(out.rewind(24));
    assert!(!out.rewind(0));
    assert!(!out.publish());
}

#[test]
fn a_responder_resumes_where_its_journal_says() {
    let link = LinkSegment::create("test-link", RING, FINGERPRINT).unwrap();
    let (mut out, mut replies) = link.try_clone().unwrap().requester().unwrap();
    out.reserve(64).unwrap().fill(3);
    out.commit(64);
    out.publish();
    let (first, mut written) = link.try_clone().unwrap().responder(None).unwrap();
    assert_eq!(first.position(), 0);
    written.reserve(32).unwrap().fill(7);
    written.commit(32);
    drop((first, written));
    let (mut second, mut written) = link.try_clone().unwrap().responder(Some((48, 32))).unwrap();
    written.unpublished_mut(0).unwrap()[..8].fill(8);
    written.publish();
    assert_eq!(second.refresh().unwrap(), 16);
    assert_eq!(replies.refresh().unwrap(), 32);
    assert_eq!(replies.readable()[..9], [8, 8, 8, 8, 8, 8, 8, 8, 7]);
    assert!(matches!(
        link.try_clone().unwrap().responder(Some((72, 32))),
        Err(ShmError::CorruptPosition { .. })
    ));
    assert!(matches!(
        link.responder(Some((64, 32 + RING as u64 + 8))),
        Err(ShmError::CorruptPosition { .. })
    ));
}

#[test]
fn a_party_shows_its_state_counters_news_and_control_words() {
    let party = Party::create("test-party", 2, 7, 10, FINGERPRINT).unwrap();
    let other = Party::open(party.fd().try_clone_to_owned().unwrap(), FINGERPRINT).unwrap();
    assert_eq!(
        (other.kind(), other.index(), other.counters().len()),
        (2, 7, 10)
    );
    assert_eq!(other.state(), PartyState::Starting as u32);
    party.set_state(PartyState::Ready as u32);
    party.set_pid(42);
    party.set_generation(3);
    party.set_control(1, 99);
    party.set_control(1000, 1);
    assert_eq!((other.state(), other.pid(), other.generation()), (1, 42, 3));
    assert_eq!((other.control(1), other.control(1000)), (99, 0));
    party.counters().add(9, 5);
    party.counters().sub(9, 2);
    party.counters().max(0, 8);
    party.counters().max(0, 2);
    assert_eq!((other.counters().get(9), other.counters().get(0)), (3, 8));
    party.news().set_links(4);
    other.news().announce(3);
    other.news().announce(1);
    other.news().announce(7000);
    assert!(party.news().any());
    let mut seen = Vec::new();
    party.news().take_each(|position| seen.push(position));
    assert_eq!(seen, [1, 3]);
    assert!(!party.news().any() && !party.news().take(3) && !party.news().take(7000));
}

#[test]
fn a_bell_makes_one_system_call_per_sleep() {
    let party = Party::create("test-party", 0, 0, 0, FINGERPRINT).unwrap();
    let bell = party.doorbell();
    assert!(!bell.ring(&Bell::Futex));
    bell.prepare_sleep();
    assert!(bell.ring(&Bell::Futex));
    assert!(!bell.ring(&Bell::Futex));
    assert!(
        bell.wait(None),
        "the word was taken, so there is nothing to wait for"
    );
    bell.prepare_sleep();
    assert!(!bell.wait(Some(Duration::from_millis(5))));
    bell.prepare_sleep();
    bell.cancel_sleep();
    assert!(!bell.ring(&Bell::Futex));
    let eventfd = eventfd().unwrap();
    let via = Bell::EventFd(eventfd.try_clone().unwrap());
    bell.prepare_sleep();
    assert!(bell.ring(&via));
    bell.alarm(&via);
    let mut count = [0; 8];
    nix::unistd::read(eventfd.as_fd(), &mut count).unwrap();
    assert_eq!(u64::from_ne_bytes(count), 2);
}

#[test]
fn a_sleeper_in_another_thread_is_woken() {
    let party = Party::create("test-party", 0, 0, 0, FINGERPRINT).unwrap();
    let Ends {
        requests: (mut out, mut inn),
        ..
    } = ends();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..1000 {
                out.reserve(8).unwrap().fill(1);
                out.commit(8);
                out.publish();
                party.doorbell().ring(&Bell::Futex);
                while !out.is_empty() {
                    std::thread::yield_now();
                }
            }
        });
        let mut seen = 0;
        while seen < 8000 {
            party.doorbell().prepare_sleep();
            if inn.refresh().unwrap() == 0 {
                party.doorbell().wait(None);
            } else {
                party.doorbell().cancel_sleep();
            }
            let readable = inn.refresh().unwrap();
            inn.consume(readable);
            inn.release();
            seen += readable;
        }
    });
}

#[test]
fn a_journal_tells_the_successor_the_last_commit_and_the_log() {
    let mut journal = Journal::create("test-journal", 1 << 16, FINGERPRINT).unwrap();
    assert_eq!(journal.last_commit(), CommitLine::default());
    journal.begin_write(3, 77);
    assert_eq!((journal.writing(), journal.write_place()), (1, (3, 77)));
    journal.end_write();
    journal.append(b"SET a 1").unwrap();
    let line = CommitLine {
        sequence: 1,
        link: 2,
        link_generation: 3,
        request_position: 4,
        reply_position: 5,
        frame_start: 6,
        frame_count: 7,
        started: 8,
        writing: journal.writing(),
        log_length: journal.log_length(),
    };
    journal.set_ticket(9);
    journal.commit(&line);
    journal.append(b"SET b 2").unwrap();
    let mut next = Journal::open(journal.fd().try_clone_to_owned().unwrap(), FINGERPRINT).unwrap();
    assert_eq!(next.last_commit(), line);
    assert_eq!(next.ticket(), 9);
    assert_eq!((next.writing(), next.write_place()), (2, (3, 77)));
    assert_eq!(next.unwritten(), b"SET a 1SET b 2");
    next.truncate_log(line.log_length).unwrap();
    assert!(next.truncate_log(line.log_length + 1).is_err());
    next.start_file(1000);
    assert_eq!(next.unwritten(), b"SET a 1");
    next.mark_written(7);
    assert_eq!((next.file_offset(), next.unwritten()), (1007, &b""[..]));
    next.start_file(0);
    assert_eq!(next.file_offset(), 0);
    next.append(&vec![1; 1 << 16]).unwrap();
    assert!(matches!(
        next.append(&[1]),
        Err(ShmError::TooLarge { limit: 0, .. })
    ));
    next.mark_written(1 << 16);
    assert_eq!(next.file_offset(), 1 << 16);
}

#[test]
fn the_side_ring_passes_a_full_one() {
    let link = LinkSegment::create("test-link", RING, FINGERPRINT).unwrap();
    let (mut requests, _) = link.try_clone().unwrap().requester().unwrap();
    while requests.reserve(1024).is_some() {
        requests.commit(1024);
    }
    let (mut out, mut inn) = (link.side_producer().unwrap(), link.side_consumer().unwrap());
    inn.release();
    for round in 0..20u8 {
        out.reserve(out.largest()).unwrap().fill(round);
        out.commit(out.largest());
        out.publish();
        assert_eq!(inn.refresh().unwrap(), out.largest());
        assert!(inn.readable().iter().all(|byte| *byte == round));
        inn.consume(out.largest());
        inn.release();
    }
}

#[test]
fn a_producer_leaves_a_note_to_its_successor() {
    let link = LinkSegment::create("test-link", RING, FINGERPRINT).unwrap();
    let (_, mut replies) = link.try_clone().unwrap().responder(None).unwrap();
    assert_eq!(replies.note(), 0);
    replies.set_note(7);
    let (_, next) = link.responder(None).unwrap();
    assert_eq!(next.note(), 7);
}

#[test]
fn a_registry_shows_whole_versions() {
    let registry = RegistrySegment::create(10_000, FINGERPRINT).unwrap();
    let other =
        RegistrySegment::open(registry.fd().try_clone_to_owned().unwrap(), FINGERPRINT).unwrap();
    assert_eq!(other.read().unwrap(), (0, vec![]));
    for version in 1..=20u8 {
        let content = vec![version; 100 + usize::from(version)];
        assert_eq!(registry.publish(&content).unwrap(), u64::from(version));
        assert_eq!(other.read().unwrap(), (u64::from(version), content));
    }
    assert!(matches!(
        registry.publish(&vec![0; 20_000]),
        Err(ShmError::TooLarge { .. })
    ));
    assert_eq!(other.version(), 20);
}

#[test]
fn readers_of_a_changing_registry_never_see_a_mixture() {
    let registry = RegistrySegment::create(64 * 1024, FINGERPRINT).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in 1..2000u32 {
                registry
                    .publish(&[(version % 251) as u8].repeat(4096))
                    .unwrap();
            }
        });
        let mut last = 0;
        while last < 1999 {
            let Ok((version, content)) = registry.read() else {
                continue;
            };
            assert!(version >= last);
            last = version;
            assert!(content.iter().all(|byte| u64::from(*byte) == version % 251));
        }
    });
}

fn sockets() -> (OwnedFd, OwnedFd) {
    let family = AddressFamily::Unix;
    socketpair(family, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap()
}

#[test]
fn descriptors_travel_with_their_message() {
    let (left, right) = sockets();
    let party = Party::create("test-party", 1, 2, 3, FINGERPRINT).unwrap();
    send_with_fds(left.as_fd(), b"page", &[party.fd(), left.as_fd()]).unwrap();
    send_with_fds(left.as_fd(), &[5; 100_000], &[]).unwrap();
    let mut message = b"old".to_vec();
    let fds = recv_with_fds(right.as_fd(), &mut message).unwrap().unwrap();
    assert_eq!((message.as_slice(), fds.len()), (&b"page"[..], 2));
    let opened = Party::open(fds.into_iter().next().unwrap(), FINGERPRINT).unwrap();
    party.counters().set(0, 11);
    assert_eq!(opened.counters().get(0), 11);
    assert!(
        recv_with_fds(right.as_fd(), &mut message)
            .unwrap()
            .unwrap()
            .is_empty()
    );
    assert_eq!(message, [5; 100_000]);
    assert!(send_with_fds(left.as_fd(), b"", &[]).is_err());
    drop(left);
    assert!(
        recv_with_fds(right.as_fd(), &mut message)
            .unwrap()
            .is_none()
    );
    let gone = send_with_fds(right.as_fd(), b"anybody?", &[]).unwrap_err();
    assert!(matches!(gone, ShmError::Io { .. }), "{gone}");
}

#[test]
fn mixed_up_and_foreign_segments_are_refused() {
    let link = LinkSegment::create("test-link", RING, FINGERPRINT).unwrap();
    let fd = || link.fd().try_clone_to_owned().unwrap();
    assert!(matches!(
        LinkSegment::open(fd(), 1),
        Err(ShmError::BadFingerprint { .. })
    ));
    assert!(matches!(
        Party::open(fd(), FINGERPRINT),
        Err(ShmError::BadKind { .. })
    ));
    assert!(matches!(
        LinkSegment::create("test-link", RING + 1, 0),
        Err(ShmError::BadSize { .. })
    ));
    assert!(LinkSegment::create("test-link", RING / 2, 0).is_err());
    assert!(Journal::create("test-journal", 100, 0).is_err());
    assert!(Party::create("test-party", 0, 0, usize::MAX, 0).is_err());
    assert!(RegistrySegment::create(usize::MAX, 0).is_err());
    assert!(Segment::create("test", SegmentKind::Arena, usize::MAX, 0).is_err());
    let text = LinkSegment::open(fd(), 1).unwrap_err().to_string();
    assert!(text.contains("another build"), "{text}");
}
