//! The process: starts the threads, then handles the control socket until the end.
//!
//! ```text
//!   plan ─> listeners, parties, mailboxes ─> threads ─> Ready
//!   loop   AttachLink ─> letter to its thread ─> Attached
//!          Registry   ─> letters to all, when all have it ─> RegistrySeen
//!          Reply      ─> letter to the thread that asked
//!          Drain      ─> letters to all, join ─> Drained
//!          every 250 ms: rates for INFO
//! ```
//!
//! The main thread serves no client; nothing here is urgent.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use proto::counters::GatewayCounter;
use proto::registry::{Registry, SlotRange};
use runtime::{AttachLink, Child, ChildEvent, Descriptor, FromChild, PartyId, PeerState, Role};
use shm::{Bell, LinkSegment, Party, PartyState};

use crate::core::Core;
use crate::driver::Driver;
use crate::lanes::LaneParts;
use crate::listener::Listening;
use crate::live::Live;
use crate::mail::Letter;
use crate::pubsub::BrokerParts;
use crate::shared::{Listener, Mailbox, Shared};
use crate::tally::Tally;

/// How often rates are measured.
const SAMPLE: Duration = Duration::from_millis(250);

/// Milliseconds over which a rate is averaged.
const RATE_WINDOW: u32 = 1000;

/// How long a change of settings may take to reach all threads before it is called done anyway.
const SEEN_TIMEOUT: Duration = Duration::from_secs(5);

/// What one thread starts with.
struct Seat {
    party: Arc<Party>,
    bell: OwnedFd,
    cpu: Option<usize>,
    tcp: Vec<OwnedFd>,
    unix: Option<(String, OwnedFd)>,
}

/// Serves until the supervisor ends it. Returns the reason if that cannot begin.
///
/// # Errors
/// A descriptor or segment is missing or of another build, or the system gives no more.
pub fn run(mut child: Child) -> Result<(), String> {
    let (seats, listeners) = take_seats(&mut child)?;
    let mut mailboxes = Vec::new();
    for seat in &seats {
        let bell = seat
            .bell
            .try_clone()
            .map_err(|error| format!("bell: {error}"))?;
        mailboxes.push(Mailbox::new(Arc::clone(&seat.party), Bell::EventFd(bell)));
    }
    let parties: Vec<Arc<Party>> = seats.iter().map(|seat| Arc::clone(&seat.party)).collect();
    let registry = child.registry();
    let shared = Arc::new(Shared::new(
        mailboxes,
        Some(child.sender()),
        Arc::clone(&registry),
        listeners,
    ));
    // A process that comes after this one starts far above the numbers given out here.
    shared.start_client_ids((child.plan().generation.saturating_sub(1)) << 32);
    let live = Arc::new(Live::new(child.settings()));
    let mut threads = Vec::new();
    for (number, seat) in seats.into_iter().enumerate() {
        let index = child.plan().first_party + u32::try_from(number).unwrap_or(u32::MAX);
        shared.add_page(PartyId::gateway_thread(index), Arc::clone(&seat.party));
        threads.push(start_thread(number, seat, &live, &shared, &registry)?);
    }
    let mut process = Process {
        child,
        shared,
        parties,
        threads,
        samples: Vec::new(),
        links: HashMap::new(),
    };
    process.serve();
    Ok(())
}

fn take_seats(child: &mut Child) -> Result<(Vec<Seat>, Vec<Listener>), String> {
    let plan = child.plan().clone();
    let unix = child.take_unix_listener();
    let mut listeners: Vec<Listener> = Vec::new();
    let mut seats = Vec::new();
    for number in 0..plan.parties {
        let index = plan.first_party + number;
        let party = child.take_party(index).map_err(|error| error.to_string())?;
        let bell = child
            .take(&Descriptor::Bell { index })
            .map_err(|error| error.to_string())?;
        let tcp = child.take_tcp_listeners(index);
        for (address, _) in &tcp {
            if !listeners.contains(&Listener::Tcp(address.clone())) {
                listeners.push(Listener::Tcp(address.clone()));
            }
        }
        let unix = match &unix {
            Some((path, fd)) => {
                let fd = fd
                    .as_fd()
                    .try_clone_to_owned()
                    .map_err(|error| error.to_string())?;
                Some((path.clone(), fd))
            }
            None => None,
        };
        seats.push(Seat {
            party: Arc::new(party),
            bell,
            cpu: plan.cpus.get(number as usize).copied().flatten(),
            tcp: tcp.into_iter().map(|(_, fd)| fd).collect(),
            unix,
        });
    }
    listeners.extend(unix.map(|(path, _)| Listener::Unix(path)));
    Ok((seats, listeners))
}

fn start_thread(
    number: usize,
    seat: Seat,
    live: &Arc<Live>,
    shared: &Arc<Shared>,
    registry: &Registry,
) -> Result<JoinHandle<()>, String> {
    let (live, shared) = (Arc::clone(live), Arc::clone(shared));
    let slots = registry.slot_map.clone();
    let (told, outcome) = flume::bounded(1);
    let thread = std::thread::Builder::new()
        .name(format!("gateway-{number}"))
        .spawn(move || {
            if let Err(error) = thread_main(number, seat, live, shared, &slots, &told) {
                let _ = told.send(Err(error));
            }
        })
        .map_err(|error| format!("thread: {error}"))?;
    outcome
        .recv()
        .unwrap_or_else(|_| Err("a thread ended at its start".to_owned()))?;
    Ok(thread)
}

fn thread_main(
    number: usize,
    seat: Seat,
    live: Arc<Live>,
    shared: Arc<Shared>,
    slots: &[SlotRange],
    started: &flume::Sender<Result<(), String>>,
) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    if let Some(cpu) = seat.cpu
        && let Err(error) = runtime::cpus::pin_this_thread(cpu)
    {
        tracing::warn!(cpu, %error, "cannot pin a gateway thread");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(text)?;
    let _entered = runtime.enter();
    let mut listeners = Vec::new();
    for fd in seat.tcp {
        listeners.push(Listening::tcp(fd).map_err(text)?);
    }
    if let Some((path, fd)) = seat.unix {
        listeners.push(Listening::unix(fd, &path).map_err(text)?);
    }
    let tally = Tally::new(Arc::clone(&seat.party));
    let mut core = Core::new(number, live, shared, tally);
    core.lanes.set_owners(slots);
    let driver = Driver::new(core, Arc::clone(&seat.party), seat.bell, listeners).map_err(text)?;
    let _ = started.send(Ok(()));
    // Without tokio's budget: the driver limits its turns itself.
    runtime.block_on(tokio::task::unconstrained(driver));
    Ok(())
}

/// The main thread.
struct Process {
    child: Child,
    shared: Arc<Shared>,
    parties: Vec<Arc<Party>>,
    threads: Vec<JoinHandle<()>>,
    /// Times and sums of commands, bytes in, bytes out.
    samples: Vec<(Instant, [u64; 3])>,
    /// Positions of news in use, by thread.
    links: HashMap<usize, usize>,
}

impl Process {
    fn serve(&mut self) {
        let mut events = self.child.events();
        for party in &self.parties {
            party.set_pid(std::process::id());
            party.set_state(PartyState::Ready as u32);
        }
        self.tell(&FromChild::Ready);
        loop {
            let event = events.next_event_within(SAMPLE);
            self.sample();
            match event {
                None => {}
                Some(ChildEvent::Drain { within }) => return self.drain(within),
                Some(event) => self.handle(event),
            }
        }
    }

    fn handle(&mut self, event: ChildEvent) {
        match event {
            ChildEvent::AttachLink(link) => {
                let (number, generation) = (link.plan.link, link.plan.generation);
                match self.attach(link) {
                    Ok(()) => self.tell(&FromChild::Attached {
                        link: number,
                        generation,
                    }),
                    Err(error) => tracing::error!(link = number, error, "cannot attach a link"),
                }
            }
            ChildEvent::DetachLink { link } => {
                for mailbox in &self.shared.mailboxes {
                    mailbox.post(Letter::Detach { link });
                }
                self.tell(&FromChild::Detached { link });
            }
            ChildEvent::Peer { party, page } => {
                match Party::open(page, self.child.plan().fingerprints.system) {
                    Ok(page) => self.shared.add_page(party, Arc::new(page)),
                    Err(error) => tracing::error!(%party, %error, "cannot open a statistics page"),
                }
            }
            ChildEvent::PeerState { party, state, .. } => {
                tracing::info!(%party, ?state, "a peer changed its state");
                let (worker, is_down) = (party.index as usize, state == PeerState::Down);
                for mailbox in &self.shared.mailboxes {
                    match party.role {
                        Role::StorageWorker => mailbox.post(Letter::Down { worker, is_down }),
                        Role::Broker => mailbox.post(Letter::BrokerDown(is_down)),
                        Role::Gateway => {}
                    }
                }
            }
            ChildEvent::Registry {
                version,
                registry,
                settings,
            } => {
                self.spread(&registry, Arc::new(Live::new(settings)));
                self.tell(&FromChild::RegistrySeen { version });
            }
            ChildEvent::Reply { request, result } => {
                let thread = usize::try_from(request >> 32).unwrap_or(usize::MAX);
                if let Some(mailbox) = self.shared.mailboxes.get(thread) {
                    mailbox.post(Letter::Supervisor { request, result });
                }
            }
            ChildEvent::SupervisorLost => self.shared.set_supervised(false),
            ChildEvent::Drain { .. } | ChildEvent::Neighbour { .. } => {}
        }
    }

    fn tell(&self, message: &FromChild) {
        if let Err(error) = self.child.sender().send(message) {
            tracing::debug!(%error, "the supervisor was not told");
        }
    }

    fn attach(&mut self, link: AttachLink) -> Result<(), String> {
        let fingerprint = self.child.plan().fingerprints.system;
        let text = |error: shm::ShmError| error.to_string();
        let own = link.plan.own;
        let thread = own.index.wrapping_sub(self.child.plan().first_party) as usize;
        let mailbox = self
            .shared
            .mailboxes
            .get(thread)
            .filter(|_| own.role == Role::Gateway);
        let Some(mailbox) = mailbox else {
            return Err(format!("{own} is not here"));
        };
        let party = self.parties.get(thread).ok_or("no such thread")?;
        if link.plan.peer.role == Role::Gateway {
            return Err(format!("{} is not known as a peer", link.plan.peer));
        }
        let page = link
            .peer_party
            .try_clone()
            .map_err(|error| error.to_string())?;
        let page = Party::open(page, fingerprint).map_err(text)?;
        // A worker's counters are part of INFO from its first link on.
        self.shared.add_page(link.plan.peer, Arc::new(page));
        let segment = LinkSegment::open(link.segment, fingerprint).map_err(text)?;
        let our_position = link.plan.own_position as usize;
        let links = self.links.entry(thread).or_default();
        *links = (*links).max(our_position + 1);
        if link.plan.peer.role == Role::Broker {
            let (requests, replies) = segment.requester().map_err(text)?;
            let parts = BrokerParts {
                requests,
                replies,
                broker: Party::open(link.peer_party, fingerprint).map_err(text)?,
                bell: link.peer_bell.map_or(Bell::Futex, Bell::EventFd),
                their_position: link.plan.peer_position as usize,
                our_position,
                link: link.plan.link,
                generation: link.plan.generation,
            };
            party.news().set_links(*links);
            mailbox.post(Letter::AttachBroker(Box::new(parts)));
            return Ok(());
        }
        let side = segment.side_producer().map_err(text)?;
        let (requests, replies) = segment.requester().map_err(text)?;
        let parts = LaneParts {
            requests,
            replies,
            side,
            worker: Party::open(link.peer_party, fingerprint).map_err(text)?,
            bell: link.peer_bell.map_or(Bell::Futex, Bell::EventFd),
            their_position: link.plan.peer_position as usize,
            our_position,
            link: link.plan.link,
            generation: link.plan.generation,
        };
        party.news().set_links(*links);
        mailbox.post(Letter::Attach {
            worker: link.plan.peer.index as usize,
            parts: Box::new(parts),
        });
        Ok(())
    }

    /// Hands new settings and slots to all threads and waits until they are in force.
    fn spread(&self, registry: &Arc<Registry>, live: Arc<Live>) {
        self.shared.set_registry(Arc::clone(registry));
        let slots: Arc<[SlotRange]> = registry.slot_map.clone().into();
        let seen = Arc::new(AtomicUsize::new(0));
        for mailbox in &self.shared.mailboxes {
            mailbox.post(Letter::Live {
                live: Arc::clone(&live),
                slots: Arc::clone(&slots),
                seen: Arc::clone(&seen),
            });
        }
        let until = Instant::now() + SEEN_TIMEOUT;
        while seen.load(Ordering::Acquire) < self.shared.mailboxes.len() {
            if Instant::now() > until {
                tracing::warn!("a gateway thread is slow to take new settings");
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Measures what INFO calls instantaneous.
    fn sample(&mut self) {
        use GatewayCounter as C;
        let now = Instant::now();
        if self
            .samples
            .last()
            .is_some_and(|(at, _)| now.duration_since(*at) < SAMPLE)
        {
            return;
        }
        let sum = |counter: C| -> u64 {
            self.parties
                .iter()
                .map(|party| party.counters().get(counter.place()))
                .sum()
        };
        let sums = [
            sum(C::Commands),
            sum(C::NetInputBytes),
            sum(C::NetOutputBytes),
        ];
        let window = Duration::from_millis(u64::from(RATE_WINDOW));
        let old = self
            .samples
            .iter()
            .rposition(|(at, _)| now.duration_since(*at) >= window);
        self.samples.drain(..old.unwrap_or(0));
        if let Some((at, before)) = self.samples.first() {
            let seconds = now.duration_since(*at).as_secs_f64().max(0.001);
            let rates = &self.shared.rates;
            let places = [
                &rates.commands_per_second,
                &rates.input_bytes_per_second,
                &rates.output_bytes_per_second,
            ];
            for ((place, now), before) in places.into_iter().zip(sums).zip(before) {
                let rate = (now.saturating_sub(*before)) as f64 / seconds;
                place.store(rate.round() as u64, Ordering::Relaxed);
            }
        }
        self.samples.push((now, sums));
    }

    fn drain(&mut self, within: Duration) {
        // A little is left for saying so.
        let millis = u64::try_from(within.as_millis())
            .unwrap_or(u64::MAX)
            .saturating_sub(100);
        for mailbox in &self.shared.mailboxes {
            mailbox.post(Letter::Drain { millis });
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a gateway thread ended with a panic");
            }
        }
        self.tell(&FromChild::Drained);
    }
}
