//! Every shared field overwritten with garbage: an error, never a panic and never an access outside.
//!
//! Method: the peer is played by writes through the segment's descriptor, which change the mapped
//! memory at once. After each of them everything that the public types offer is called; whatever
//! slice comes back is read to its end, so one byte too many would be a fault or an address
//! sanitizer's report.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::sys::resource::{Resource, setrlimit};
use proptest::prelude::*;
use shm::{
    Bell, CommitLine, Journal, LinkSegment, Party, PartyState, RegistrySegment, RingConsumer,
    RingProducer, Segment, SegmentKind, ShmError,
};

const RING: usize = 64 * 1024;
const FINGERPRINT: u64 = 7;

/// Values that break sums, masks, comparisons and casts, besides the plainly wrong ones.
const GARBAGE: [u64; 14] = [
    0,
    1,
    7,
    255,
    4096,
    RING as u64,
    RING as u64 + 1,
    u32::MAX as u64,
    1 << 31,
    1 << 62,
    (1 << 62) + 1,
    1 << 63,
    u64::MAX - 7,
    u64::MAX,
];

/// The peer's pen.
struct Pen(File);

impl Pen {
    fn new(fd: BorrowedFd<'_>) -> Self {
        Self(File::from(fd.try_clone_to_owned().unwrap()))
    }

    fn word(&self, offset: u64, value: u64) {
        self.0.write_all_at(&value.to_le_bytes(), offset).unwrap();
    }

    fn half(&self, offset: u64, value: u32) {
        self.0.write_all_at(&value.to_le_bytes(), offset).unwrap();
    }

    fn read(&self, offset: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, offset).unwrap();
        u64::from_le_bytes(bytes)
    }
}

fn again(fd: BorrowedFd<'_>) -> OwnedFd {
    fd.try_clone_to_owned().unwrap()
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte)).sum()
}

/// Overwrites each word and half word of a header and opens the segment.
fn garble_header(fd: BorrowedFd<'_>, mut open: impl FnMut(OwnedFd) -> Result<(), ShmError>) {
    let pen = Pen::new(fd);
    open(again(fd)).unwrap();
    for offset in (0..64).step_by(4) {
        let before = pen.read(offset);
        for garbage in GARBAGE {
            pen.word(offset, garbage);
            let wide = open(again(fd));
            pen.word(offset, before);
            pen.half(offset, garbage as u32);
            let narrow = open(again(fd));
            pen.word(offset, before);
            // Magic, versions, fingerprint, length: any change is found.
            if offset < 28 && garbage != before {
                assert!(wide.is_err(), "{garbage:#x} at {offset}");
            }
            if offset < 32 && garbage as u32 != before as u32 {
                assert!(narrow.is_err(), "{:#x} at {offset}", garbage as u32);
            }
        }
    }
    open(again(fd)).unwrap();
}

#[test]
fn garbled_segment_headers_are_refused() {
    let link = LinkSegment::create("test", RING, FINGERPRINT).unwrap();
    garble_header(link.fd(), |fd| {
        LinkSegment::open(fd, FINGERPRINT)?.requester().map(drop)
    });
    let party = Party::create("test", 0, 0, 5, FINGERPRINT).unwrap();
    garble_header(party.fd(), |fd| {
        let party = Party::open(fd, FINGERPRINT)?;
        (0..party.counters().len()).for_each(|index| party.counters().add(index, 1));
        Ok(())
    });
    let journal = Journal::create("test", 1 << 12, FINGERPRINT).unwrap();
    garble_header(journal.fd(), |fd| {
        Journal::open(fd, FINGERPRINT).map(|mut open| use_journal(&mut open))
    });
    let registry = RegistrySegment::create(100, FINGERPRINT).unwrap();
    garble_header(registry.fd(), |fd| {
        RegistrySegment::open(fd, FINGERPRINT)?.read().map(drop)
    });
}

#[test]
fn the_error_says_which_field_differs() {
    let link = LinkSegment::create("test", RING, FINGERPRINT).unwrap();
    let pen = Pen::new(link.fd());
    let open = || {
        LinkSegment::open(again(link.fd()), FINGERPRINT)
            .map(drop)
            .unwrap_err()
    };
    let broken = |offset, value, check: fn(&ShmError) -> bool| {
        let before = pen.read(offset);
        pen.word(offset, value);
        let error = open();
        assert!(check(&error), "{error:?}");
        pen.word(offset, before);
    };
    broken(0, 5, |error| {
        matches!(error, ShmError::BadMagic { found: 5 })
    });
    broken(8, 99, |error| {
        matches!(error, ShmError::BadLayout { found: 99, .. })
    });
    broken(16, 3, |error| {
        matches!(error, ShmError::BadFingerprint { found: 3, want: 7 })
    });
    broken(24, 3, |error| {
        matches!(error, ShmError::BadLength { want: 3, .. })
    });
    broken(32, 3, |error| {
        matches!(error, ShmError::BadSize { found: 3, .. })
    });
    broken(32, 1 << 17, |error| {
        matches!(error, ShmError::BadLength { .. })
    });
    pen.half(12, 3);
    assert!(matches!(open(), ShmError::BadKind { found: 3, want: 1 }));
}

#[test]
fn what_is_no_segment_of_ours_is_refused() {
    let open = |fd: OwnedFd| LinkSegment::open(fd, FINGERPRINT).map(drop).unwrap_err();
    let null = File::open("/dev/null").unwrap();
    assert!(matches!(
        open(null.into()),
        ShmError::BadLength { found: 0, .. }
    ));
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(matches!(open(socket.into()), ShmError::BadLength { .. }));
    let text = File::open(std::env::current_exe().unwrap()).unwrap();
    assert!(matches!(open(text.into()), ShmError::BadMagic { .. }));
    // The bytes of a good segment in a file that may still shrink.
    let link = LinkSegment::create("test", RING, FINGERPRINT).unwrap();
    let copy = File::from(
        nix::sys::memfd::memfd_create("copy", nix::sys::memfd::MFdFlags::MFD_ALLOW_SEALING)
            .unwrap(),
    );
    let mut header = [0; 64];
    File::from(again(link.fd()))
        .read_exact_at(&mut header, 0)
        .unwrap();
    copy.write_all_at(&header, 0).unwrap();
    copy.set_len(File::from(again(link.fd())).metadata().unwrap().len())
        .unwrap();
    assert_eq!(open(copy.into()), ShmError::NotSealed);
    assert!(
        File::from(again(link.fd())).set_len(100).is_err(),
        "sealed against shrinking"
    );
}

/// Uses all of a producer; the result is what it believes to be free.
fn use_producer(out: &mut RingProducer) -> usize {
    let free = out.free();
    assert!(free <= RING);
    // Resumed inside an open frame, which is closed first.
    let open = (out.position().next_multiple_of(8) - out.position()) as usize;
    if out.reserve(open).is_some() {
        out.commit(open);
    }
    out.reserve_up_to(usize::MAX).fill(1);
    assert!(out.reserve(RING + 1).is_none());
    if let Some(place) = out.reserve(64) {
        place.fill(2);
        out.commit(64);
        out.unpublished_mut(out.published()).unwrap().fill(3);
        out.publish();
    }
    out.want_space();
    out.is_empty();
    free
}

/// Uses all of a consumer.
fn use_consumer(inn: &mut RingConsumer) -> Result<usize, ShmError> {
    let refreshed = inn.refresh();
    let len = inn.readable().len();
    assert!(len <= RING);
    sum(inn.readable());
    inn.consume(len / 16 * 8);
    inn.release();
    refreshed
}

/// Offsets of tail, head and want_space of both rings.
const RING_WORDS: [u64; 6] = [128, 256, 384, 512, 640, 768];

#[test]
fn a_garbled_tail_is_an_error_and_reads_nothing_new() {
    for garbage in GARBAGE {
        let link = LinkSegment::create("test", RING, FINGERPRINT).unwrap();
        let pen = Pen::new(link.fd());
        let (mut out, _) = link.try_clone().unwrap().requester().unwrap();
        let (mut inn, _) = link.try_clone().unwrap().responder(None).unwrap();
        out.reserve(4096).unwrap().fill(1);
        out.commit(4096);
        out.publish();
        assert_eq!(inn.refresh(), Ok(4096));
        pen.word(128, garbage);
        let valid = (4096..=RING as u64).contains(&garbage) && garbage.is_multiple_of(8);
        assert_eq!(use_consumer(&mut inn).is_ok(), valid, "{garbage:#x}");
        let attached = link.responder(None);
        assert_eq!(
            attached.is_ok(),
            (2048..=2048 + RING as u64).contains(&garbage) && garbage.is_multiple_of(8),
            "{garbage:#x}"
        );
    }
}

#[test]
fn a_garbled_head_gives_no_space_and_is_reported() {
    for garbage in GARBAGE {
        let link = LinkSegment::create("test", RING, FINGERPRINT).unwrap();
        let pen = Pen::new(link.fd());
        let (mut out, _) = link.try_clone().unwrap().requester().unwrap();
        out.reserve(4096).unwrap().fill(1);
        out.commit(4096);
        out.publish();
        pen.word(256, garbage);
        let valid = garbage <= 4096 && garbage.is_multiple_of(8);
        let free = use_producer(&mut out);
        let used = if valid { 4096 - garbage as usize } else { 4096 };
        assert_eq!(free, RING - used, "{garbage:#x}");
        assert_eq!(out.check().is_ok(), valid, "{garbage:#x}");
        assert_eq!(
            link.responder(None).is_ok(),
            garbage <= 4096 + 64 && garbage.is_multiple_of(8),
            "{garbage:#x}"
        );
    }
}

#[test]
fn a_head_that_goes_back_is_reported_and_changes_nothing() {
    let link = LinkSegment::create("test", RING, FINGERPRINT).unwrap();
    let pen = Pen::new(link.fd());
    let (mut out, _) = link.requester().unwrap();
    out.reserve(4096).unwrap().fill(1);
    out.commit(4096);
    out.publish();
    pen.word(256, 2048);
    assert_eq!(out.free(), RING - 2048);
    out.reserve_up_to(usize::MAX).fill(1);
    out.commit(RING - 2048);
    out.publish();
    pen.word(256, 1024);
    assert_eq!(out.free(), 0);
    assert!(matches!(
        out.check(),
        Err(ShmError::CorruptPosition {
            found: 1024,
            low: 2048,
            ..
        })
    ));
}

#[test]
fn a_garbled_party_page_only_shows_wrong_numbers() {
    let party = Party::create("test", 0, 0, 3, FINGERPRINT).unwrap();
    let pen = Pen::new(party.fd());
    for offset in (128..2688 + 24).step_by(4) {
        for garbage in [0, 1, 2, u32::MAX, 1 << 31] {
            pen.half(offset, garbage);
            assert!(party.state() <= PartyState::Down as u32);
            let _ = (
                party.generation(),
                party.pid(),
                party.control(0),
                party.control(31),
            );
            let mut taken = 0;
            party.news().announce(255);
            party
                .news()
                .take_each(|position| taken += usize::from(position < 256));
            assert!(taken <= 256 && !party.news().any());
            (0..3).for_each(|index| party.counters().add(index, u64::MAX));
            party.doorbell().ring(&Bell::Futex);
            assert!(
                !party.doorbell().ring(&Bell::Futex),
                "one call, whatever the word was"
            );
            party.doorbell().wait(Some(Duration::ZERO));
        }
    }
}

fn use_journal(journal: &mut Journal) {
    sum(journal.unwritten());
    let _ = (
        journal.writing(),
        journal.write_place(),
        journal.last_commit(),
    );
    let _ = (
        journal.file_offset(),
        journal.truncate_log(journal.log_length()),
    );
    journal.begin_write(1, 2);
    journal.end_write();
    journal.commit(&CommitLine::default());
    let fits = journal.append(&[1; 100]).is_ok();
    sum(journal.unwritten());
    journal.mark_written(if fits { 50 } else { 0 });
    assert!(journal.unwritten().len() <= 1 << 12);
}

#[test]
fn a_garbled_journal_is_refused_or_harmless() {
    for offset in (128..896).step_by(8) {
        for garbage in GARBAGE {
            let journal = Journal::create("test", 1 << 12, FINGERPRINT).unwrap();
            Pen::new(journal.fd()).word(offset, garbage);
            let log_word = offset == 640 || offset == 768;
            match Journal::open(again(journal.fd()), FINGERPRINT) {
                Ok(mut opened) => use_journal(&mut opened),
                Err(error) => assert!(log_word, "{garbage:#x} at {offset}: {error}"),
            }
        }
    }
}

#[test]
fn a_garbled_registry_is_an_error_or_an_old_content() {
    let registry = RegistrySegment::create(100, FINGERPRINT).unwrap();
    registry.publish(b"one").unwrap();
    registry.publish(b"two").unwrap();
    let pen = Pen::new(registry.fd());
    for offset in [128, 256, 264] {
        let before = pen.read(offset);
        for garbage in GARBAGE {
            pen.word(offset, garbage);
            if let Ok((version, content)) = registry.read() {
                assert!(content.len() <= registry.capacity());
                assert_eq!(version, if offset == 128 { garbage } else { 2 });
            }
            pen.word(offset, before);
        }
    }
    assert_eq!(registry.read().unwrap(), (2, b"two".to_vec()));
    pen.word(128, u64::MAX);
    assert_eq!(
        registry.publish(b"three").unwrap(),
        0,
        "even this only wraps"
    );
    assert_eq!(registry.read().unwrap(), (0, b"three".to_vec()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_peer_that_writes_anything_at_any_time_stays_inside(
        strokes in prop::collection::vec(
            (prop::sample::select(&RING_WORDS[..]), any::<u64>(), 0..3u8, any::<bool>()), 1..100),
    ) {
        let link = LinkSegment::create("test", RING, FINGERPRINT).unwrap();
        let pen = Pen::new(link.fd());
        let (mut out, mut replies) = link.try_clone().unwrap().requester().unwrap();
        let (mut inn, mut answers) = link.try_clone().unwrap().responder(None).unwrap();
        for (offset, random, shape, attach) in strokes {
            let value = match shape {
                0 => random,
                1 => random % (4 * RING as u64),
                _ => pen.read(offset).wrapping_add(random % 256 * 64),
            };
            pen.word(offset, value);
            for producer in [&mut out, &mut answers] {
                use_producer(producer);
            }
            for consumer in [&mut inn, &mut replies] {
                let _ = use_consumer(consumer);
            }
            if attach {
                let resume = Some((random % (4 * RING as u64), value));
                let _ = link.try_clone().unwrap().responder(resume).map(|(mut inn, mut out)| {
                    use_producer(&mut out);
                    let _ = use_consumer(&mut inn);
                });
                let _ = link.try_clone().unwrap().requester();
            }
        }
    }
}

/// Runs one of the two tests below in a process of its own, because limits are for a whole process.
fn in_child(test: &str) -> bool {
    const MARK: &str = "SHM_TEST_LIMITS";
    if std::env::var(MARK).is_ok() {
        return true;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(MARK, "1");
    assert!(
        command
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    false
}

#[test]
fn too_few_descriptors_is_said_in_words() {
    if !in_child("too_few_descriptors_is_said_in_words") {
        return;
    }
    setrlimit(Resource::RLIMIT_NOFILE, 20, 20).unwrap();
    let mut links = Vec::new();
    let error = loop {
        match LinkSegment::create("test", RING, FINGERPRINT) {
            Ok(link) => links.push(link),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, ShmError::OutOfDescriptors { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("descriptor limit"), "{error}");
    assert_eq!(
        shm::eventfd().map(drop).unwrap_err(),
        ShmError::OutOfDescriptors { what: "eventfd" }
    );
    assert!(links.len() > 5);
}

#[test]
fn too_little_memory_is_said_in_words() {
    if !in_child("too_little_memory_is_said_in_words") {
        return;
    }
    // Relative to what is mapped already: sanitizers map terabytes.
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    let limit = pages * shm::page_size() as u64 + (1 << 29);
    setrlimit(Resource::RLIMIT_AS, limit, limit).unwrap();
    let mut ends = Vec::new();
    let error = loop {
        let made =
            LinkSegment::create("test", 16 << 20, FINGERPRINT).and_then(LinkSegment::requester);
        match made {
            Ok(end) => ends.push(end),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ShmError::OutOfMemory { .. }), "{error:?}");
    assert!(error.to_string().contains("not enough memory"), "{error}");
    assert!(ends.len() > 2);
    let arena = Segment::create("test", SegmentKind::Arena, 64 << 30, FINGERPRINT).unwrap();
    assert_eq!(
        arena.len(),
        64 << 30,
        "an arena takes its memory as it grows"
    );
}
