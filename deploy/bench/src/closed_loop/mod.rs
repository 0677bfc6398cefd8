//! Closed loop: every connection keeps one batch of commands in flight and sends the next one as
//! soon as the last reply of the previous one is there. Measures how much a server can do.
//!
//! ```text
//!   caller's thread:   open -> warm-up ........ measured interval ........ stop -> sum up
//!                                    |  phase  |                          |
//!   generator threads:    epoll_wait -> read, count replies -> patch, write -> epoll_wait ...
//! ```
//!
//! The caller's thread only sleeps and samples; it decides the phases and reads each thread's
//! counter of replies (one writer each, so plain stores are enough). Because the interval is cut
//! out of a run that goes on before and after it, neither ramp-up nor draining is measured.
//!
//! Cost: one clock reading per batch; at P=30 about 0.3 us of CPU per command, most of it the
//! kernel's work for the sockets.
//! Not here: what is sent (`workload`), fixed rates (`open_loop`).

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::client::Target;
use crate::connection::{Connection, READ_BUFFER_BYTES, make_room_for};
use crate::error::BenchError;
use crate::random::Random;
use crate::tally::Tally;
use crate::workload::{Images, KeyOrder, Mix, Shape, Verdict};

/// Events taken per `epoll_wait`.
const EVENTS_PER_WAIT: usize = 256;

/// Longest time that replies still in flight are waited for after the end.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// How often the caller's thread looks at progress.
const TICK: Duration = Duration::from_millis(100);

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// After this much measured time.
    Time(Duration),
    /// After this many commands.
    Requests(u64),
}

/// A closed-loop run.
#[derive(Debug, Clone)]
pub struct ClosedLoop {
    /// What is sent.
    pub mix: Mix,
    /// Sizes and ranges of keys and values.
    pub shape: Shape,
    /// Commands in flight per connection.
    pub pipeline: usize,
    /// Number of connections, over all threads.
    pub connections: usize,
    /// Generator threads.
    pub threads: usize,
    /// Unmeasured time before the interval.
    pub warm_up: Duration,
    /// When it ends.
    pub extent: Extent,
    /// Seed of the random keys.
    pub seed: u64,
    /// Every key once and in order, starting at 0, instead of random ones. One thread only.
    pub ascending: bool,
}

/// What a run found.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Counts and latencies.
    pub tally: Tally,
    /// Length of the measured interval.
    pub elapsed: Duration,
    /// CPU time of this process in the interval.
    pub generator_cpu: Duration,
}

impl Outcome {
    /// Commands per second.
    pub fn requests_per_second(&self) -> f64 {
        self.tally.replies as f64 / self.elapsed.as_secs_f64()
    }

    /// Microseconds of the generator's CPU time per command.
    pub fn generator_us_per_op(&self) -> f64 {
        self.generator_cpu.as_secs_f64() * 1e6 / self.tally.replies.max(1) as f64
    }
}

/// Told about the borders of the measured interval; runs on the caller's thread.
pub trait Observer {
    /// The interval begins now.
    fn begins(&mut self) {}
    /// It ends now.
    fn ends(&mut self) {}
    /// Part of the whole run that is done, 0 to 1.
    fn progress(&mut self, _part: f64) {}
}

/// Observes nothing.
#[derive(Debug)]
pub struct Unobserved;

impl Observer for Unobserved {}

const PHASE_WARM_UP: u8 = 0;
const PHASE_MEASURE: u8 = 1;
const PHASE_STOP: u8 = 2;

/// What caller and generator threads share.
#[derive(Debug)]
struct Shared {
    phase: AtomicU8,
    /// Replies so far per thread, each on a cache line of its own.
    replies: Vec<Counter>,
    /// Threads that have sent their share and got their replies.
    finished: AtomicU64,
    /// Some thread has met an error: the run ends early.
    failed: AtomicBool,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

impl Shared {
    fn replies(&self) -> u64 {
        self.replies
            .iter()
            .map(|counter| counter.0.load(Ordering::Relaxed))
            .sum()
    }

    fn is_over(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
            || self.finished.load(Ordering::Relaxed) == self.replies.len() as u64
    }
}

impl ClosedLoop {
    /// Runs it against `target`.
    ///
    /// # Errors
    /// If a connection cannot be made or breaks, or the server sends garbage. Error replies are
    /// counted, not errors.
    pub fn run(&self, target: &Target, observer: &mut dyn Observer) -> Result<Outcome, BenchError> {
        self.shape.check()?;
        make_room_for(self.connections)?;
        let threads = self.threads.clamp(1, self.connections.max(1));
        let generators = (0..threads)
            .map(|thread| Generator::open(self, target, thread, threads))
            .collect::<Result<Vec<_>, _>>()?;
        let shared = Shared {
            phase: AtomicU8::new(PHASE_WARM_UP),
            replies: (0..threads).map(|_| Counter::default()).collect(),
            finished: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        };
        thread::scope(|scope| {
            let handles: Vec<_> = generators
                .into_iter()
                .zip(&shared.replies)
                .map(|(generator, counter)| {
                    let shared = &shared;
                    scope.spawn(move || {
                        let outcome = generator.run(shared, &counter.0);
                        if outcome.is_err() {
                            shared.failed.store(true, Ordering::Relaxed);
                        }
                        shared.finished.fetch_add(1, Ordering::Relaxed);
                        outcome
                    })
                })
                .collect();
            let (replies, elapsed, generator_cpu) = self.watch(&shared, observer);
            shared.phase.store(PHASE_STOP, Ordering::Relaxed);
            let mut tally = Tally::default();
            for handle in handles {
                tally.add(
                    handle
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
                );
            }
            tally.replies = replies;
            Ok(Outcome {
                tally,
                elapsed,
                generator_cpu,
            })
        })
    }

    /// Walks through the phases; gives replies, length and own CPU time of the interval.
    fn watch(&self, shared: &Shared, observer: &mut dyn Observer) -> (u64, Duration, Duration) {
        let by_count = match self.extent {
            Extent::Requests(count) => Some(count),
            Extent::Time(_) => None,
        };
        if by_count.is_none() {
            let warm = Instant::now();
            while warm.elapsed() < self.warm_up && !shared.is_over() {
                thread::sleep(TICK.min(self.warm_up.saturating_sub(warm.elapsed())));
            }
        }
        observer.begins();
        let cpu_before = own_cpu();
        let begin = Instant::now();
        // A run by count measures everything from its first reply on.
        let replies_before = by_count.map_or_else(|| shared.replies(), |_| 0);
        shared.phase.store(PHASE_MEASURE, Ordering::Relaxed);
        while !shared.is_over() {
            let (part, left) = match self.extent {
                Extent::Time(length) => {
                    let spent = begin.elapsed();
                    if spent >= length {
                        break;
                    }
                    (spent.as_secs_f64() / length.as_secs_f64(), length - spent)
                }
                Extent::Requests(count) => (
                    shared.replies() as f64 / count.max(1) as f64,
                    Duration::from_millis(2),
                ),
            };
            observer.progress(part.min(1.0));
            thread::sleep(TICK.min(left));
        }
        let elapsed = begin.elapsed();
        let replies = shared.replies() - replies_before;
        let cpu = own_cpu().saturating_sub(cpu_before);
        observer.ends();
        observer.progress(1.0);
        (replies, elapsed, cpu)
    }
}

/// CPU time of this process so far, user and system.
pub(crate) fn own_cpu() -> Duration {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    getrusage(UsageWho::RUSAGE_SELF).map_or(Duration::ZERO, |usage| {
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    })
}

/// A connection and where it stands in its batch.
#[derive(Debug)]
struct Lane {
    connection: Connection,
    /// Which image its current batch is.
    image: usize,
    /// Commands of the current batch, and how many of them are answered.
    batch: usize,
    answered: usize,
    sent_at: Instant,
}

/// One generator thread.
#[derive(Debug)]
struct Generator {
    epoll: Epoll,
    lanes: Vec<Lane>,
    images: Images,
    order: KeyOrder,
    pipeline: usize,
    /// Commands that may still be sent.
    left: u64,
    /// Lanes with a batch in flight.
    busy: usize,
    tally: Tally,
}

impl Generator {
    fn open(
        plan: &ClosedLoop,
        target: &Target,
        thread: usize,
        threads: usize,
    ) -> Result<Self, BenchError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|errno| BenchError::io("make an epoll descriptor", errno))?;
        let images = Images::new(&plan.mix, &plan.shape, plan.pipeline.max(1));
        let lanes = (thread..plan.connections)
            .step_by(threads)
            .enumerate()
            .map(|(position, connection)| {
                Ok(Lane {
                    connection: Connection::open(target, &epoll, position as u64)?,
                    image: connection % images.len(),
                    batch: 0,
                    answered: 0,
                    sent_at: Instant::now(),
                })
            })
            .collect::<Result<Vec<_>, BenchError>>()?;
        let random = Random::new(plan.seed.wrapping_add(thread as u64 * 0x1_0000_0001));
        Ok(Self {
            epoll,
            lanes,
            images,
            order: if plan.ascending {
                KeyOrder::Ascending {
                    next: 0,
                    elements: random,
                }
            } else {
                KeyOrder::Uniform(random)
            },
            pipeline: plan.pipeline.max(1),
            left: match plan.extent {
                Extent::Time(_) => u64::MAX,
                Extent::Requests(count) => {
                    let (thread, threads) = (thread as u64, threads as u64);
                    count / threads + u64::from(thread < count % threads)
                }
            },
            busy: 0,
            tally: Tally::default(),
        })
    }

    fn run(mut self, shared: &Shared, replies: &AtomicU64) -> Result<Tally, BenchError> {
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        let mut events = vec![EpollEvent::empty(); EVENTS_PER_WAIT];
        let mut counted = 0;
        let mut drain_until = None;
        for position in 0..self.lanes.len() {
            self.next_batch(position, Instant::now())?;
        }
        while self.busy > 0 {
            let count = match self.epoll.wait(&mut events, EpollTimeout::from(100_u8)) {
                Ok(count) => count,
                Err(nix::errno::Errno::EINTR) => 0,
                Err(errno) => return Err(BenchError::io("wait for replies", errno)),
            };
            let phase = shared.phase.load(Ordering::Relaxed);
            for event in &events[..count] {
                let position = usize::try_from(event.data()).unwrap_or(usize::MAX);
                counted += self.serve(position, event.events(), phase, &mut buffer)?;
            }
            replies.store(counted, Ordering::Relaxed);
            if phase == PHASE_STOP {
                let until = *drain_until.get_or_insert_with(|| Instant::now() + DRAIN_MAX);
                if Instant::now() > until {
                    break;
                }
            }
        }
        self.tally.first_error = self
            .lanes
            .iter()
            .find_map(|lane| lane.connection.first_error());
        Ok(self.tally)
    }

    /// Serves one ready socket; gives the number of replies that came.
    #[inline]
    fn serve(
        &mut self,
        position: usize,
        ready: EpollFlags,
        phase: u8,
        buffer: &mut [u8],
    ) -> Result<u64, BenchError> {
        let Some(lane) = self.lanes.get_mut(position) else {
            return Ok(0);
        };
        if ready.contains(EpollFlags::EPOLLOUT) {
            lane.connection.flush(&self.epoll)?;
        }
        if !ready.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR) {
            return Ok(0);
        }
        let image = self.images.get(lane.image);
        let tally = &mut self.tally;
        let before = lane.answered;
        lane.connection.receive(buffer, |reply| {
            if lane.answered < lane.batch {
                match image.expectation(lane.answered).judge(reply) {
                    Verdict::Right => {}
                    Verdict::Missed(nulls) => tally.misses += u64::from(nulls),
                    Verdict::Error => tally.errors += 1,
                    Verdict::Wrong => tally.wrong += 1,
                }
            }
            lane.answered += 1;
        })?;
        let came = (lane.answered - before) as u64;
        if lane.answered > lane.batch {
            return Err(BenchError::Server(
                "sent more replies than it got requests".into(),
            ));
        }
        if lane.answered == lane.batch && lane.batch > 0 {
            let now = Instant::now();
            if phase == PHASE_MEASURE {
                let nanos = now.duration_since(lane.sent_at).as_nanos();
                tally
                    .latencies
                    .record(u64::try_from(nanos).unwrap_or(u64::MAX));
            }
            lane.image = (lane.image + 1) % self.images.len();
            lane.batch = 0;
            self.busy -= 1;
            if phase != PHASE_STOP {
                self.next_batch(position, now)?;
            }
        }
        Ok(came)
    }

    /// Sends the next batch of a lane, if there is still something to send.
    #[inline]
    fn next_batch(&mut self, position: usize, now: Instant) -> Result<(), BenchError> {
        let batch = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(self.pipeline);
        if batch == 0 {
            return Ok(());
        }
        self.left -= batch as u64;
        self.busy += 1;
        let lane = &mut self.lanes[position];
        lane.batch = batch;
        lane.answered = 0;
        lane.sent_at = now;
        let bytes = self
            .images
            .get_mut(lane.image)
            .patch(batch, &mut self.order);
        lane.connection.send(bytes, &self.epoll)
    }
}

#[cfg(test)]
mod tests;
