//! What the threads of one gateway process share: mailboxes, numbers, and what INFO needs to know.
//!
//! Nothing in here is touched by an ordinary command. Numbers of clients are taken once per connection;
//! locks are held for a few instructions, by commands such as INFO and CONFIG SET.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proto::registry::Registry;
use proto::sha1::Sha1Text;
use runtime::{ControlSender, FromChild, PartyId, Request};
use shm::{Bell, Party};

use crate::mail::Letter;
use crate::scripts::ScriptStore;
use crate::slow_log::SlowLog;

/// Where letters to one thread go.
#[derive(Debug)]
pub(crate) struct Mailbox {
    sender: flume::Sender<Letter>,
    receiver: flume::Receiver<Letter>,
    /// Looked at once per turn, instead of the queue.
    has_mail: AtomicBool,
    party: Arc<Party>,
    bell: Bell,
}

impl Mailbox {
    pub(crate) fn new(party: Arc<Party>, bell: Bell) -> Self {
        let (sender, receiver) = flume::unbounded();
        Self {
            sender,
            receiver,
            has_mail: AtomicBool::new(false),
            party,
            bell,
        }
    }

    /// Puts a letter in and wakes the thread if it sleeps.
    pub(crate) fn post(&self, letter: Letter) {
        if self.sender.send(letter).is_ok() {
            self.has_mail.store(true, Ordering::Release);
            self.party.doorbell().ring(&self.bell);
        }
    }

    /// Whether there may be letters.
    #[inline]
    pub(crate) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Relaxed)
    }

    /// Takes all letters.
    pub(crate) fn take(&self) -> Vec<Letter> {
        self.has_mail.swap(false, Ordering::AcqRel);
        self.receiver.try_iter().collect()
    }
}

/// Rates over the last moments, for INFO.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    pub(crate) commands_per_second: AtomicU64,
    pub(crate) input_bytes_per_second: AtomicU64,
    pub(crate) output_bytes_per_second: AtomicU64,
}

/// A page of counters and what it read when statistics were last reset.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) id: PartyId,
    pub(crate) party: Arc<Party>,
    baseline: Vec<u64>,
}

impl Page {
    /// A sum since the last reset.
    pub(crate) fn since_reset(&self, place: usize) -> u64 {
        let before = self.baseline.get(place).copied().unwrap_or_default();
        let now = self.level(place);
        // A page that starts again from zero has nothing from before the reset in it.
        if now >= before { now - before } else { now }
    }

    /// The number as it stands.
    pub(crate) fn level(&self, place: usize) -> u64 {
        let counters = self.party.counters();
        if place < counters.len() {
            counters.get(place)
        } else {
            0
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) mailboxes: Vec<Mailbox>,
    pub(crate) rates: Rates,
    client_ids: AtomicU64,
    clients: AtomicUsize,
    control: Option<ControlSender>,
    registry: Mutex<Arc<Registry>>,
    pages: Mutex<Vec<Page>>,
    errors: Mutex<BTreeMap<String, u64>>,
    slow_log: Mutex<SlowLog>,
    scripts: Mutex<ScriptStore>,
    /// Changes with every change of the scripts that a thread must hear of.
    script_epoch: AtomicU64,
    /// Addresses that are listened on, for INFO: name, address, port.
    pub(crate) listeners: Vec<Listener>,
    supervised: AtomicBool,
}

/// A listening socket as INFO shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    Tcp(String),
    Unix(String),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(
        mailboxes: Vec<Mailbox>,
        control: Option<ControlSender>,
        registry: Arc<Registry>,
        listeners: Vec<Listener>,
    ) -> Self {
        let mut scripts = ScriptStore::default();
        scripts.take_registry(&registry);
        Self {
            mailboxes,
            rates: Rates::default(),
            client_ids: AtomicU64::new(0),
            clients: AtomicUsize::new(0),
            control,
            registry: Mutex::new(registry),
            pages: Mutex::new(Vec::new()),
            errors: Mutex::new(BTreeMap::new()),
            slow_log: Mutex::default(),
            scripts: Mutex::new(scripts),
            script_epoch: AtomicU64::new(0),
            listeners,
            supervised: AtomicBool::new(true),
        }
    }

    /// A number that no client had before. The process' generation is part of it, so that numbers do
    /// not come again after a restart.
    pub(crate) fn next_client_id(&self) -> u64 {
        self.client_ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// First number to give out.
    pub(crate) fn start_client_ids(&self, first: u64) {
        self.client_ids.store(first, Ordering::Relaxed);
    }

    /// Counts a new client unless `limit` has been reached.
    pub(crate) fn admit_client(&self, limit: usize) -> bool {
        let admitted = self.clients.fetch_add(1, Ordering::Relaxed) < limit;
        if !admitted {
            self.client_left();
        }
        admitted
    }

    pub(crate) fn client_left(&self) {
        self.clients.fetch_sub(1, Ordering::Relaxed);
    }

    /// Asks the supervisor for something. The thread's number is in the upper half of `request`, so
    /// that the answer finds its way. False if there is no supervisor.
    pub(crate) fn ask_supervisor(&self, request: u64, body: Request) -> bool {
        let Some(control) = &self.control else {
            return false;
        };
        self.supervised.load(Ordering::Relaxed)
            && control.send(&FromChild::Request { request, body }).is_ok()
    }

    /// Lets the supervisor know that a link is of no use any more; it makes a new one.
    pub(crate) fn report_broken(&self, link: u32, generation: u64) {
        let message = FromChild::LinkBroken { link, generation };
        if let Some(control) = &self.control
            && let Err(error) = control.send(&message)
        {
            tracing::debug!(%error, "the supervisor was not told");
        }
    }

    /// The supervisor is gone, or one is there again.
    pub(crate) fn set_supervised(&self, supervised: bool) {
        self.supervised.store(supervised, Ordering::Relaxed);
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&lock(&self.registry))
    }

    pub(crate) fn set_registry(&self, registry: Arc<Registry>) {
        if self.scripts(|scripts| scripts.take_registry(&registry)) {
            self.script_epoch.fetch_add(1, Ordering::Relaxed);
        }
        *lock(&self.registry) = registry;
    }

    /// Looks at the scripts, or changes them.
    pub(crate) fn scripts<T>(&self, look: impl FnOnce(&mut ScriptStore) -> T) -> T {
        look(&mut lock(&self.scripts))
    }

    /// A number that changes when scripts that were seen may be forgotten.
    #[inline]
    pub(crate) fn script_epoch(&self) -> u64 {
        self.script_epoch.load(Ordering::Relaxed)
    }

    /// Remembers a script that came with EVAL.
    pub(crate) fn remember_script(&self, sha1: Sha1Text, body: &[u8]) {
        if self.scripts(|scripts| scripts.remember(sha1, body)) {
            self.script_epoch.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Adds or replaces the page of a party.
    pub(crate) fn add_page(&self, id: PartyId, party: Arc<Party>) {
        let mut pages = lock(&self.pages);
        pages.retain(|page| page.id != id);
        pages.push(Page {
            id,
            party,
            baseline: Vec::new(),
        });
        pages.sort_by_key(|page| page.id);
    }

    /// Looks at all pages.
    pub(crate) fn with_pages<T>(&self, look: impl FnOnce(&[Page]) -> T) -> T {
        look(&lock(&self.pages))
    }

    /// CONFIG RESETSTAT: sums count from here.
    pub(crate) fn reset_statistics(&self) {
        for page in lock(&self.pages).iter_mut() {
            let counters = page.party.counters();
            page.baseline = (0..counters.len())
                .map(|place| counters.get(place))
                .collect();
        }
        lock(&self.errors).clear();
    }

    /// Looks at the slow log, or changes it.
    pub(crate) fn slow_log<T>(&self, look: impl FnOnce(&mut SlowLog) -> T) -> T {
        look(&mut lock(&self.slow_log))
    }

    /// Counts an error reply by its first word. A client can make up words (DEBUG ERROR), so their
    /// number is bounded.
    pub(crate) fn count_error(&self, code: &str) {
        const CODES: usize = 128;
        let mut errors = lock(&self.errors);
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < CODES {
            errors.insert(code.to_owned(), 1);
        }
    }

    pub(crate) fn errors(&self) -> BTreeMap<String, u64> {
        lock(&self.errors).clone()
    }
}
