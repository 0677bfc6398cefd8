//! The shared memory of a system with one gateway thread and one worker, and the messages that
//! introduce it to a worker: what a supervisor would make and say.

use proto::catalogue;
use proto::counters::{gateway_page, worker_page};
use proto::registry::{Registry, SlotRange};
use runtime::control::send;
use runtime::{
    ArenaState, Descriptor, Fingerprints, LinkPlan, LinkRole, PartyId, Plan, Role, ToChild,
};
use shm::{Journal, LOG_BYTES_DEFAULT, LinkSegment, Party, RegistrySegment};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const DATABASES: u16 = 16;

pub struct Segments {
    pub fingerprint: u64,
    registry: RegistrySegment,
    pub worker: Party,
    gateway: Party,
    journal: Journal,
    arena: OwnedFd,
    arena_bytes: u64,
    pub link: LinkSegment,
}

fn new_arena(bytes: u64) -> OwnedFd {
    shm::arena::create_memory("arena", bytes).unwrap()
}

/// Both ends of a control socket.
pub fn socket_pair() -> (OwnedFd, OwnedFd) {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
    let flags = SockFlag::SOCK_CLOEXEC;
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap()
}

impl Segments {
    pub fn new(ring_bytes: usize, arena_bytes: u64) -> Self {
        let fingerprint = catalogue::fingerprint();
        let registry = RegistrySegment::create(1 << 16, fingerprint).unwrap();
        let contents = Registry {
            settings: Vec::new(),
            hash_seed: 5,
            slot_map: vec![SlotRange {
                first: 0,
                last: 16383,
                worker: 0,
            }],
            run_id: "0".repeat(40),
            started_unix_ms: 0,
            gateway_threads: 1,
            storage_workers: 1,
            executable: String::new(),
            config_file: String::new(),
            supervisor_pid: std::process::id(),
            scripts: Vec::new(),
            script_flushes: 0,
            libraries: Vec::new(),
        };
        registry.publish(&contents.to_bytes()).unwrap();
        let counters = worker_page::len(DATABASES);
        Self {
            fingerprint,
            registry,
            worker: Party::create("worker", 2, 0, counters, fingerprint).unwrap(),
            gateway: Party::create("gateway", 1, 0, gateway_page::LEN, fingerprint).unwrap(),
            journal: Journal::create("journal", LOG_BYTES_DEFAULT, fingerprint).unwrap(),
            arena: new_arena(arena_bytes),
            arena_bytes,
            link: LinkSegment::create("link", ring_bytes, fingerprint).unwrap(),
        }
    }

    /// Tells a process that was just started who it is and what it has.
    pub fn introduce(&self, control: BorrowedFd<'_>, generation: u64, arena: ArenaState) {
        let names = vec![
            Descriptor::Registry,
            Descriptor::Party { index: 0 },
            Descriptor::Arena,
            Descriptor::Journal,
        ];
        let fds: [BorrowedFd<'_>; 4] = [
            self.registry.fd(),
            self.worker.fd(),
            self.arena.as_fd(),
            self.journal.fd(),
        ];
        let plan = Plan {
            role: Role::StorageWorker,
            index: 0,
            generation,
            deaths_in_a_row: 0,
            first_party: 0,
            parties: 1,
            cpus: vec![None],
            gateway_threads: 1,
            storage_workers: 1,
            arena,
            arena_bytes: self.arena_bytes,
            fingerprints: Fingerprints {
                system: self.fingerprint,
            },
        };
        let link = LinkPlan {
            link: 0,
            generation: 1,
            role: LinkRole::Responder,
            own: PartyId::storage_worker(0),
            peer: PartyId::gateway_thread(0),
            peer_generation: 1,
            own_position: 0,
            peer_position: 0,
            has_bell: false,
        };
        // A process that died already does not take its messages; its successor will.
        let _ = send(control, &ToChild::Descriptors(names), &fds);
        let _ = send(control, &ToChild::Start(Box::new(plan)), &[]);
        let fds = [self.link.fd(), self.gateway.fd()];
        let _ = send(control, &ToChild::AttachLink(link), &fds);
    }

    /// After a death: whether the arena had to be thrown away.
    pub fn renew_if_torn(&mut self) -> bool {
        let journal = self.journal.fd().try_clone_to_owned().unwrap();
        let journal = Journal::open(journal, self.fingerprint).unwrap();
        let is_torn = journal.writing() % 2 == 1;
        if is_torn {
            self.arena = new_arena(self.arena_bytes);
        }
        is_torn
    }
}
