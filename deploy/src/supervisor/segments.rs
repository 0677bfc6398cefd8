//! Everything shared that the supervisor makes and keeps: pages, bells, links, arenas, journals and
//! the registry.
//!
//! Why kept for good: a successor of a dead process gets the same descriptors and goes on. Only
//! three things are ever made anew: the links of a gateway that died (their contents belong to connections
//! that are gone), those of a broker that died (gateways know what is in them) and an arena that is not trusted.
//!
//! ```text
//!   links[thread * workers + worker]   segment and generation; generation = times it was made
//!   broker_links[thread, then worker]  the same
//!   parties                            gateway threads (with a bell), then workers, then the broker
//! ```
//!
//! Not here: who gets what when (`core`, `shell`), what is in a segment (`shm`).

use super::layout::Layout;
use crate::exit::Failure;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use proto::counters::{BrokerCounter, gateway_page, worker_page};
use proto::registry::Registry;
use runtime::message::{LinkPlan, LinkRole, ToChild};
use runtime::plan::{Fingerprints, PartyId, Role, broker_link_id, link_id};
use shm::arena;
use shm::{Bell, Journal, Lease, LinkSegment, Party, PartyState, RegistrySegment};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

/// Bytes of each buffer of the registry; sparse, so room for growth costs nothing.
const REGISTRY_BYTES: usize = 64 << 20;

/// A descriptor that waits to be sent while the thing it belongs to lives on.
#[derive(Clone, Debug)]
pub enum Handle {
    /// A plain descriptor.
    Plain(Rc<OwnedFd>),
    /// A link segment.
    Link(Rc<LinkSegment>),
    /// A party's page.
    Page(Rc<Party>),
    /// A journal.
    Journal(Rc<Journal>),
    /// The registry.
    Registry(Rc<RegistrySegment>),
}

impl Handle {
    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(fd) => fd.as_fd(),
            Self::Link(link) => link.fd(),
            Self::Page(page) => page.fd(),
            Self::Journal(journal) => journal.fd(),
            Self::Registry(registry) => registry.fd(),
        }
    }
}

/// A party's page and what wakes it.
#[derive(Debug)]
pub struct PartyPart {
    /// The page.
    pub page: Rc<Party>,
    /// The eventfd of a gateway thread.
    pub bell: Option<Rc<OwnedFd>>,
    /// For waking it from here.
    alarm: Bell,
}

#[derive(Debug)]
struct LinkPart {
    segment: Rc<LinkSegment>,
    generation: u64,
}

/// What a storage worker leaves to its successor.
#[derive(Debug)]
pub struct WorkerPart {
    /// Memory of the arena.
    pub arena: Rc<OwnedFd>,
    /// The journal.
    pub journal: Rc<Journal>,
    /// The lease of the arena. It is never taken from here.
    lease: Lease,
}

/// All of it.
#[derive(Debug)]
pub struct Segments {
    fingerprints: Fingerprints,
    layout: Layout,
    registry: Rc<RegistrySegment>,
    threads: Vec<PartyPart>,
    workers: Vec<PartyPart>,
    broker: PartyPart,
    parts: Vec<WorkerPart>,
    links: Vec<LinkPart>,
    broker_links: Vec<LinkPart>,
}

impl Segments {
    /// Makes everything for a layout and publishes the first registry.
    ///
    /// # Errors
    /// Too little memory or too few descriptors, mostly.
    pub fn create(layout: &Layout, databases: u16, registry: &Registry) -> Result<Self, Failure> {
        let fingerprints = Fingerprints {
            system: proto::catalogue::fingerprint(),
        };
        let system = fingerprints.system;
        let segment = RegistrySegment::create(REGISTRY_BYTES, system)?;
        segment.publish(&registry.to_bytes())?;
        let thread = |index| -> Result<PartyPart, Failure> {
            let kind = Role::Gateway as u32;
            let name = format!("sirocco-gateway-{index}");
            let page = Party::create(&name, kind, index, gateway_page::LEN, system)?;
            let bell = Rc::new(shm::eventfd()?);
            let alarm = Bell::EventFd(bell.try_clone().map_err(out_of_descriptors)?);
            Ok(PartyPart {
                page: Rc::new(page),
                bell: Some(bell),
                alarm,
            })
        };
        let worker = |index| -> Result<PartyPart, Failure> {
            let kind = Role::StorageWorker as u32;
            let name = format!("sirocco-worker-{index}");
            let page = Party::create(&name, kind, index, worker_page::len(databases), system)?;
            Ok(PartyPart {
                page: Rc::new(page),
                bell: None,
                alarm: Bell::Futex,
            })
        };
        let broker = || -> Result<PartyPart, Failure> {
            let kind = Role::Broker as u32;
            let page = Party::create("sirocco-broker", kind, 0, BrokerCounter::COUNT, system)?;
            Ok(PartyPart {
                page: Rc::new(page),
                bell: None,
                alarm: Bell::Futex,
            })
        };
        let part = |index| -> Result<WorkerPart, Failure> {
            let name = format!("sirocco-journal-{index}");
            let journal = Journal::create(&name, shm::LOG_BYTES_DEFAULT, system)?;
            let fd = journal.fd().try_clone_to_owned();
            Ok(WorkerPart {
                arena: Rc::new(new_arena(index)?),
                lease: Lease::open(fd.map_err(out_of_descriptors)?, system, 0)?,
                journal: Rc::new(journal),
            })
        };
        let mut segments = Self {
            fingerprints,
            layout: layout.clone(),
            registry: Rc::new(segment),
            threads: (0..layout.gateway_threads)
                .map(thread)
                .collect::<Result<_, _>>()?,
            workers: (0..layout.storage_workers)
                .map(worker)
                .collect::<Result<_, _>>()?,
            broker: broker()?,
            parts: (0..layout.storage_workers)
                .map(part)
                .collect::<Result<_, _>>()?,
            links: Vec::new(),
            broker_links: Vec::new(),
        };
        for thread in 0..layout.gateway_threads {
            for worker in 0..layout.storage_workers {
                let segment = segments.new_link(thread, worker)?;
                segments.links.push(LinkPart {
                    segment,
                    generation: 0,
                });
            }
        }
        for place in 0..layout.broker_links() {
            let segment = segments.new_broker_link(place)?;
            segments.broker_links.push(LinkPart {
                segment,
                generation: 0,
            });
        }
        Ok(segments)
    }

    fn new_broker_link(&self, place: u32) -> Result<Rc<LinkSegment>, Failure> {
        let name = format!("sirocco-link-broker-{place}");
        let system = self.fingerprints.system;
        Ok(Rc::new(LinkSegment::create(
            &name,
            self.layout.broker_ring_bytes,
            system,
        )?))
    }

    fn new_link(&self, thread: u32, worker: u32) -> Result<Rc<LinkSegment>, Failure> {
        let name = format!("sirocco-link-{thread}-{worker}");
        let system = self.fingerprints.system;
        Ok(Rc::new(LinkSegment::create(
            &name,
            self.layout.ring_bytes,
            system,
        )?))
    }

    /// Fingerprints for plans.
    pub fn fingerprints(&self) -> Fingerprints {
        self.fingerprints
    }

    /// Bytes that an arena may grow to.
    pub fn arena_bytes(&self) -> u64 {
        arena::default_capacity()
    }

    /// The registry.
    pub fn registry(&self) -> &Rc<RegistrySegment> {
        &self.registry
    }

    /// A party's page and bell.
    pub fn party(&self, party: PartyId) -> &PartyPart {
        match party.role {
            Role::Gateway => &self.threads[party.index as usize],
            Role::StorageWorker => &self.workers[party.index as usize],
            Role::Broker => &self.broker,
        }
    }

    /// Arena and journal of a worker.
    pub fn worker(&self, index: u32) -> &WorkerPart {
        &self.parts[index as usize]
    }

    /// Gives a worker new, empty arena memory. What others knew of the old one is void, also if that
    /// fails: the successor empties the old one then.
    ///
    /// # Errors
    /// Too little memory or too few descriptors.
    pub fn renew_arena(&mut self, index: u32) -> Result<(), Failure> {
        let part = &mut self.parts[index as usize];
        let renewed = new_arena(index).map(|arena| part.arena = Rc::new(arena));
        part.lease.renew();
        renewed
    }

    /// What a worker works in, as a message to another one, with its descriptors.
    pub fn neighbour(&self, index: u32) -> (ToChild, Vec<Handle>) {
        let part = self.worker(index);
        let message = ToChild::Neighbour {
            worker: index,
            arena_generation: part.lease.arena_generation(),
        };
        let handles = vec![
            Handle::Plain(Rc::clone(&part.arena)),
            Handle::Journal(Rc::clone(&part.journal)),
        ];
        (message, handles)
    }

    /// Other workers' arenas that the dead one had begun to change and not made whole again.
    pub fn torn_by(&self, dead: u32) -> Vec<u32> {
        let others = (0..self.layout.storage_workers).filter(|index| *index != dead);
        let is_torn = |index: &u32| {
            let lease = &self.worker(*index).lease;
            lease.holder() == Some(dead) && lease.is_torn_by_dead(|worker| worker != dead)
        };
        others.filter(is_torn).collect()
    }

    /// In the leases of these workers' arenas, the dead one holds and wants nothing any more.
    pub fn forget(&self, dead: u32, leases: &[u32]) {
        for index in leases {
            self.worker(*index).lease.forget(dead);
        }
    }

    /// Whether the arena of a dead worker is not whole: its journal says that it was inside a write,
    /// or a visitor was that is not alive either.
    pub fn died_inside_write(&self, index: u32, is_alive: impl Fn(u32) -> bool) -> bool {
        if self.worker(index).lease.is_torn_by_dead(is_alive) {
            return true;
        }
        // A fresh mapping reads what is there; an open one has copies of its own.
        let fd = self.parts[index as usize].journal.fd().try_clone_to_owned();
        let journal = fd
            .ok()
            .and_then(|fd| Journal::open(fd, self.fingerprints.system).ok());
        journal.is_none_or(|journal| journal.writing() % 2 == 1)
    }

    /// Makes the links of a gateway thread anew.
    ///
    /// # Errors
    /// Too little memory or too few descriptors.
    pub fn renew_links(&mut self, thread: u32) -> Result<(), Failure> {
        for worker in 0..self.layout.storage_workers {
            let position = self.link_position(thread, worker);
            // The first generation uses the segment that was made at the start.
            if self.links[position].generation > 0 {
                self.links[position].segment = self.new_link(thread, worker)?;
            }
            self.links[position].generation += 1;
        }
        Ok(())
    }

    /// Makes a link of the broker anew.
    ///
    /// # Errors
    /// Too little memory or too few descriptors.
    pub fn renew_broker_link(&mut self, place: u32) -> Result<(), Failure> {
        let position = place as usize;
        // The first generation uses the segment that was made at the start.
        if self.broker_links[position].generation > 0 {
            self.broker_links[position].segment = self.new_broker_link(place)?;
        }
        self.broker_links[position].generation += 1;
        Ok(())
    }

    /// Makes one link anew, unless it is not of this generation any more or there is no such link: then
    /// nothing is done, and the answer is false.
    ///
    /// # Errors
    /// Too little memory or too few descriptors.
    pub fn renew_link(
        &mut self,
        thread: u32,
        worker: u32,
        generation: u64,
    ) -> Result<bool, Failure> {
        let is_one = thread < self.layout.gateway_threads && worker < self.layout.storage_workers;
        let position = self.link_position(thread, worker);
        if !is_one || self.links[position].generation != generation {
            return Ok(false);
        }
        self.links[position].segment = self.new_link(thread, worker)?;
        self.links[position].generation += 1;
        Ok(true)
    }

    fn link_position(&self, thread: u32, worker: u32) -> usize {
        (thread * self.layout.storage_workers + worker) as usize
    }

    /// One end of a link as a message with its descriptors.
    pub fn link_end(&self, thread: u32, worker: u32, role: Role) -> (LinkPlan, Vec<Handle>) {
        let part = &self.links[self.link_position(thread, worker)];
        let link = link_id(thread, worker);
        let (thread_id, worker_id) = (
            PartyId::gateway_thread(thread),
            PartyId::storage_worker(worker),
        );
        // News positions: a worker counts gateway threads, a gateway thread counts workers.
        let (own, peer, own_position, peer_position, end) = match role {
            Role::Gateway => (thread_id, worker_id, worker, thread, LinkRole::Requester),
            _ => (worker_id, thread_id, thread, worker, LinkRole::Responder),
        };
        let plan = LinkPlan {
            link,
            generation: part.generation,
            role: end,
            own,
            peer,
            peer_generation: 0,
            own_position,
            peer_position,
            has_bell: false,
        };
        self.end(part, plan)
    }

    /// One end of a link of the broker, for the broker or for the peer.
    pub fn broker_link_end(&self, place: u32, role: Role) -> (LinkPlan, Vec<Handle>) {
        let part = &self.broker_links[place as usize];
        let broker = PartyId::broker();
        let threads = self.layout.gateway_threads;
        // In the news of gateway threads the broker comes behind the workers, in those of workers behind
        // the threads.
        let (other, behind) = match place.checked_sub(threads) {
            None => (PartyId::gateway_thread(place), self.layout.storage_workers),
            Some(worker) => (PartyId::storage_worker(worker), threads),
        };
        let (own, peer, own_position, peer_position, end) = match role {
            Role::Broker => (broker, other, place, behind, LinkRole::Responder),
            _ => (other, broker, behind, place, LinkRole::Requester),
        };
        let plan = LinkPlan {
            link: broker_link_id(place),
            generation: part.generation,
            role: end,
            own,
            peer,
            peer_generation: 0,
            own_position,
            peer_position,
            has_bell: false,
        };
        self.end(part, plan)
    }

    /// Completes the plan of an end of a link, and adds its descriptors.
    fn end(&self, part: &LinkPart, plan: LinkPlan) -> (LinkPlan, Vec<Handle>) {
        let peer_part = self.party(plan.peer);
        let plan = LinkPlan {
            peer_generation: peer_part.page.generation(),
            has_bell: peer_part.bell.is_some(),
            ..plan
        };
        let mut handles = vec![
            Handle::Link(Rc::clone(&part.segment)),
            Handle::Page(Rc::clone(&peer_part.page)),
        ];
        handles.extend(
            peer_part
                .bell
                .iter()
                .map(|bell| Handle::Plain(Rc::clone(bell))),
        );
        (plan, handles)
    }

    /// Writes into the pages of some parties of one role.
    pub fn mark(
        &self,
        parties: impl Iterator<Item = PartyId>,
        state: PartyState,
        generation: u64,
        pid: u32,
    ) {
        for party in parties {
            let page = &self.party(party).page;
            page.set_generation(generation);
            page.set_pid(pid);
            page.set_state(state as u32);
        }
    }

    /// Wakes everybody.
    pub fn alarm_all(&self) {
        let all = self.threads.iter().chain(&self.workers);
        for part in all.chain([&self.broker]) {
            part.page.doorbell().alarm(&part.alarm);
        }
    }
}

fn new_arena(index: u32) -> Result<OwnedFd, Failure> {
    arena::create_memory(&format!("sirocco-arena-{index}"), arena::default_capacity())
        .map_err(|error| Failure::Resources(format!("arena of storage worker {index}: {error}")))
}

fn out_of_descriptors(error: std::io::Error) -> Failure {
    Failure::Resources(format!("cannot duplicate a descriptor: {error}"))
}

/// A pair of connected control sockets: (supervisor's end, non-blocking; child's end).
///
/// # Errors
/// Too few descriptors.
pub fn control_pair() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )?;
    let flags = nix::fcntl::OFlag::O_NONBLOCK;
    nix::fcntl::fcntl(&ours, nix::fcntl::FcntlArg::F_SETFL(flags))?;
    Ok((ours, theirs))
}
