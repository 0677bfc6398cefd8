//! The shell of the broker: rings, doorbell, control messages. No decisions.
//!
//! ```text
//!            +--------------------------------------------------------------+
//!            |  mail from the control thread?  attach, detach, drain
//!            |  each link with news: everything that is there (`link`)
//!            |  publish what goes out, ring; then give the room back
//!            |  nothing left: say "sleeping", look at the news again, sleep on the doorbell
//!            +--------------------------------------------------------------+
//! ```
//!
//! Answers are published before the room of what they answer is given back, so that a gateway which finds
//! something in the ring of a dead broker knows that it was not answered.
//!
//! A successor first hears from every gateway thread who listens. It does not wait for ever for threads
//! that may be gone: after a time it serves those that have told it.
//!
//! Cost: an idle broker sleeps in one system call and wakes once in five seconds.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proto::counters::BrokerCounter;
use runtime::{AttachLink, Child, ControlSender, FromChild};
use shm::{Party, PartyState};

use crate::control::{Control, Mail};
use crate::core::{Core, Figures};
use crate::link::{self, AllAnswers, Incoming, Turn};

/// How long gateway threads have to tell who listens.
const RESTORED_WITHIN: Duration = Duration::from_secs(1);

/// The longest sleep.
const NAP: Duration = Duration::from_secs(5);
/// The longest sleep while a large frame is on its way.
const SHORT_NAP: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Debug)]
pub(crate) struct Shell {
    core: Core,
    incoming: Vec<Option<Incoming>>,
    answers: AllAnswers,
    party: Party,
    control: Control,
    sender: ControlSender,
    fingerprint: u64,
    /// When messages are published even if not all links have told who listens; `None` once they are.
    opens_at: Option<Instant>,
    /// Links that there will be if every gateway runs.
    expected: usize,
    /// What the page knows.
    counted: Figures,
    is_draining: bool,
}

impl Shell {
    /// Takes over the plan.
    ///
    /// # Errors
    /// As for [`crate::run`].
    pub(crate) fn new(mut child: Child) -> Result<Self, String> {
        let plan = child.plan().clone();
        let fingerprint = plan.fingerprints.system;
        if let Some(cpu) = plan.cpus.first().copied().flatten()
            && let Err(error) = runtime::cpus::pin_this_thread(cpu)
        {
            tracing::warn!(cpu, %error, "cannot pin the broker");
        }
        let party = child
            .take_party(plan.first_party)
            .map_err(|error| error.to_string())?;
        party.doorbell().cancel_sleep();
        let again = party
            .fd()
            .try_clone_to_owned()
            .map_err(|error| error.to_string())?;
        let again = Party::open(again, fingerprint).map_err(|error| error.to_string())?;
        let control = Control::start(child.events(), again)
            .map_err(|error| format!("control thread: {error}"))?;
        if plan.generation > 1 {
            party.counters().add(BrokerCounter::Takeovers.place(), 1);
        }
        Ok(Self {
            core: Core::default(),
            incoming: Vec::new(),
            answers: AllAnswers::default(),
            party,
            control,
            sender: child.sender(),
            fingerprint,
            opens_at: Some(Instant::now() + RESTORED_WITHIN),
            expected: plan.gateway_threads as usize,
            counted: Figures::default(),
            is_draining: false,
        })
    }

    /// Runs until drained.
    pub(crate) fn run(&mut self) {
        self.party.set_pid(std::process::id());
        self.party.set_state(PartyState::Ready as u32);
        self.report(&FromChild::Ready);
        let mut is_every = true;
        loop {
            self.read_mail();
            let is_busy = self.turn(is_every);
            is_every = false;
            if is_busy {
                continue;
            }
            if self.is_draining && !self.has_work() {
                break;
            }
            is_every = self.sleep();
        }
        self.party.set_state(PartyState::Down as u32);
        self.report(&FromChild::Drained);
    }

    fn has_work(&mut self) -> bool {
        self.incoming.iter_mut().flatten().any(Incoming::has_work)
    }

    /// Serves the links that have announced something, or all of them; true if there is more to do.
    fn turn(&mut self, is_every: bool) -> bool {
        self.party.news().take_each(|position| {
            if let Some(Some(incoming)) = self.incoming.get_mut(position) {
                incoming.is_pending = true;
            }
        });
        if is_every {
            for incoming in self.incoming.iter_mut().flatten() {
                incoming.is_pending = true;
            }
        }
        // Room may have come.
        self.answers.publish();
        let was_open = self.look_whether_open();
        let mut broken = Vec::new();
        // What a worker has said before somebody publishes is taken before that: the rings of gateways are
        // looked at first and read last.
        for is_worker in [false, true] {
            for incoming in self.incoming.iter_mut().flatten() {
                if incoming.is_pending && incoming.is_worker == is_worker {
                    // A damaged one is found when it is read.
                    let _ = incoming.refresh();
                }
            }
        }
        for is_worker in [true, false] {
            for (place, incoming) in self.incoming.iter_mut().enumerate() {
                let Some(incoming) = incoming.as_mut().filter(|it| it.is_worker == is_worker)
                else {
                    continue;
                };
                let may_serve = was_open || !incoming.is_restored;
                if !incoming.is_pending || !may_serve {
                    continue;
                }
                let link = u16::try_from(place).unwrap_or(u16::MAX);
                match incoming.serve(link, &mut self.core, &mut self.answers, !was_open) {
                    Ok(turn) => incoming.is_pending = turn != Turn::Empty,
                    Err(error) => {
                        tracing::error!(link = incoming.id, %error, "link dropped: it is damaged");
                        broken.push(place);
                    }
                }
            }
        }
        // Whoever hears of a subscription finds it on the page.
        self.count();
        self.answers.publish();
        for (place, incoming) in self.incoming.iter_mut().enumerate() {
            if incoming.as_mut().is_some_and(Incoming::release) {
                self.answers.ring(place);
            }
        }
        for place in broken {
            if let Some(incoming) = self.drop_link(place) {
                let (link, generation) = (incoming.id, incoming.generation);
                self.report(&FromChild::LinkBroken { link, generation });
            }
        }
        // What became possible by the last one that told who listens.
        !was_open && self.look_whether_open()
    }

    /// Whether messages may be published.
    fn look_whether_open(&mut self) -> bool {
        let Some(at) = self.opens_at else {
            return true;
        };
        let mut links = self.incoming.iter().flatten();
        let threads = links.clone().filter(|it| !it.is_worker).count();
        let is_complete = threads >= self.expected && links.all(|it| it.is_restored);
        if !is_complete && Instant::now() < at {
            return false;
        }
        if !is_complete {
            tracing::warn!("not all gateway threads have told who listens");
        }
        self.opens_at = None;
        true
    }

    /// Sleeps until rung. True if every link should be looked at.
    fn sleep(&mut self) -> bool {
        let doorbell = self.party.doorbell();
        doorbell.prepare_sleep();
        if self.party.news().any() || self.control.has_mail() {
            doorbell.cancel_sleep();
            return false;
        }
        let nap = match self.opens_at {
            Some(at) => at.saturating_duration_since(Instant::now()),
            None if self.is_amid_pieces() => SHORT_NAP,
            None => NAP,
        };
        let counters = self.party.counters();
        counters.add(BrokerCounter::Sleeps.place(), 1);
        doorbell.wait(Some(nap));
        // A peer that died between publishing and announcing must not leave anything lying.
        !self.party.news().any()
    }

    /// Whether a large frame is on its way: then the rings are looked at again soon, whether or not somebody rings.
    fn is_amid_pieces(&self) -> bool {
        let mut incoming = self.incoming.iter().flatten();
        self.answers.is_any_kept() || incoming.any(Incoming::has_begun)
    }

    fn count(&mut self) {
        use BrokerCounter as C;
        let figures = self.core.figures();
        let before = std::mem::replace(&mut self.counted, figures);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let counters = self.party.counters();
        // Until it is told who listens, the page says what the predecessor knew.
        if self.opens_at.is_some() {
            return;
        }
        let level = |count: usize| count as u64;
        // Sums go on where the predecessor stopped.
        let published = figures.published - before.published;
        counters.add(C::Published.place(), published);
        let delivered = figures.delivered - before.delivered;
        counters.add(C::Delivered.place(), delivered);
        for (counter, value) in [
            (C::Channels, level(figures.channels)),
            (C::Patterns, level(figures.patterns)),
            (C::ShardChannels, level(figures.shard_channels)),
            (
                C::LastSeenMillis,
                u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            ),
        ] {
            counters.set(counter.place(), value);
        }
    }

    fn read_mail(&mut self) {
        if !self.control.has_mail() {
            return;
        }
        for mail in self.control.take_mail() {
            match mail {
                Mail::Attach(attach) => self.attach(*attach),
                Mail::Detach(link) => {
                    if let Some(place) = self.place_of(link) {
                        self.drop_link(place);
                    }
                    self.report(&FromChild::Detached { link });
                }
                Mail::Seen(version) => self.report(&FromChild::RegistrySeen { version }),
                Mail::Drain => {
                    self.party.set_state(PartyState::Draining as u32);
                    self.is_draining = true;
                }
            }
        }
    }

    fn place_of(&self, link: u32) -> Option<usize> {
        let is_it = |it: &Option<Incoming>| it.as_ref().is_some_and(|it| it.id == link);
        self.incoming.iter().position(is_it)
    }

    fn attach(&mut self, attach: AttachLink) {
        let (link, generation) = (attach.plan.link, attach.plan.generation);
        let place = attach.plan.own_position as usize;
        if place >= shm::NEWS_POSITIONS {
            tracing::error!(link, place, "link not attached: no place for it");
            return;
        }
        self.drop_link(place);
        match link::open(attach, self.fingerprint) {
            Ok((incoming, answers)) => {
                if self.incoming.len() <= place {
                    self.incoming.resize_with(place + 1, || None);
                    self.answers.all.resize_with(place + 1, || None);
                }
                self.incoming[place] = Some(incoming);
                self.answers.all[place] = Some(answers);
                self.party.news().set_links(self.incoming.len());
                self.report(&FromChild::Attached { link, generation });
            }
            Err(error) => tracing::error!(link, %error, "link not attached"),
        }
    }

    /// Drops a link, and those who listen behind it.
    fn drop_link(&mut self, place: usize) -> Option<Incoming> {
        if let Some(answers) = self.answers.all.get_mut(place) {
            *answers = None;
        }
        let incoming = self.incoming.get_mut(place).and_then(Option::take)?;
        self.core
            .drop_link(u16::try_from(place).unwrap_or(u16::MAX));
        Some(incoming)
    }

    /// A supervisor that is gone is no reason to stop serving.
    fn report(&self, message: &FromChild) {
        if let Err(error) = self.sender.send(message) {
            tracing::debug!(%error, "control message not sent");
        }
    }
}
