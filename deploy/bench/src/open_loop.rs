//! Open loop: requests at a fixed rate, whatever the server does. Drives the core in `arrivals`
//! with sockets and a clock.
//!
//! Precision of sending: the thread sleeps in `epoll_wait` until a reply comes or a timer
//! descriptor fires at the next intended time. High-resolution timers make that exact to some
//! microseconds while the core is awake; waking an idle core of a virtual machine takes 20 to 60.
//! `spin` makes the thread poll instead of sleep when the next request is due within that time:
//! more exact, but it takes processor time, which matters where the server shares the cores; so it
//! is off by default. Either way the generator's own delay is measured (`lateness`) and part of
//! every latency, for all servers alike.
//!
//! Cost: per request one `write`, one `read`, one `timerfd_settime` and one or two `epoll_wait`.
//! Not here: the schedule and the counting (`arrivals`), closed loop (`closed_loop`).

use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::arrivals::{ArrivalCounts, ArrivalPlan, Arrivals, Spacing};
use crate::client::Target;
use crate::closed_loop::{Observer, own_cpu};
use crate::connection::{Connection, READ_BUFFER_BYTES, make_room_for};
use crate::error::BenchError;
use crate::random::Random;
use crate::tally::{Latencies, Tally};
use crate::workload::{Images, KeyOrder, Mix, Shape, Verdict};

/// A rate counts as sustained if at least this part of it is reached.
pub const SUSTAINED_PART: f64 = 0.97;

/// Requests sent before replies are looked at again, when the generator is behind its schedule.
const SENDS_PER_TURN: usize = 64;

const EVENTS_PER_WAIT: usize = 256;

/// Longest time that replies are waited for after the last intended request.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// Time between opening the connections and the first request.
const HEAD_START: Duration = Duration::from_millis(20);

/// Token of the timer; connections have their position.
const TIMER_TOKEN: u64 = u64::MAX;

/// An open-loop run.
#[derive(Debug, Clone)]
pub struct OpenLoop {
    /// What is sent.
    pub mix: Mix,
    /// Sizes and ranges of keys and values.
    pub shape: Shape,
    /// Requests per second.
    pub rate: f64,
    /// How they are spread over time.
    pub spacing: Spacing,
    /// Number of connections, over all threads.
    pub connections: usize,
    /// Requests in flight per connection at most.
    pub pipeline: usize,
    /// Generator threads.
    pub threads: usize,
    /// Unmeasured time before the interval, at the same rate.
    pub warm_up: Duration,
    /// Measured time.
    pub duration: Duration,
    /// Poll instead of sleeping if the next request is due within this time.
    pub spin: Duration,
    /// Seed of keys and arrival times.
    pub seed: u64,
}

/// What a rate led to.
#[derive(Debug, Clone)]
pub struct RateOutcome {
    /// Counts; its latencies run from the intended times.
    pub tally: Tally,
    /// Requests per second that were offered in the interval.
    pub offered: f64,
    /// Replies per second that came in the interval.
    pub reached: f64,
    /// Requests of the interval that got no reply, even in the time after it.
    pub unanswered: u64,
    /// The generator's own delay before sending on a free connection.
    pub lateness: Latencies,
    /// CPU time of this process in the interval.
    pub generator_cpu: Duration,
}

impl RateOutcome {
    /// Whether the server kept up with the rate.
    pub fn is_sustained(&self) -> bool {
        self.reached >= SUSTAINED_PART * self.offered && self.offered > 0.0
    }

    /// Adds a later part of the same run; rates become sums over the parts.
    pub(crate) fn add(&mut self, later: Self) {
        self.tally.add(later.tally);
        self.offered += later.offered;
        self.reached += later.reached;
        self.unanswered += later.unanswered;
        self.lateness.add(&later.lateness);
        self.generator_cpu += later.generator_cpu;
    }

    /// Microseconds of the generator's CPU time per request.
    pub fn generator_us_per_op(&self) -> f64 {
        self.generator_cpu.as_secs_f64() * 1e6 / self.tally.replies.max(1) as f64
    }
}

impl OpenLoop {
    /// Runs it against `target`.
    ///
    /// # Errors
    /// If a connection cannot be made or breaks, or the server sends garbage. Error replies are
    /// counted, not errors.
    pub fn run(
        &self,
        target: &Target,
        observer: &mut dyn Observer,
    ) -> Result<RateOutcome, BenchError> {
        self.shape.check()?;
        if !(self.rate.is_finite() && self.rate > 0.0 && self.connections > 0) {
            return Err(BenchError::Usage(
                "rate and connections must be above 0".into(),
            ));
        }
        make_room_for(self.connections)?;
        let threads = self.threads.clamp(1, self.connections);
        let mut generators = (0..threads)
            .map(|thread| Generator::open(self, target, thread, threads))
            .collect::<Result<Vec<_>, _>>()?;
        let start = Instant::now() + HEAD_START;
        for generator in &mut generators {
            generator.start = start;
        }
        thread::scope(|scope| {
            let handles: Vec<_> = generators
                .into_iter()
                .map(|generator| scope.spawn(move || generator.run()))
                .collect();
            sleep_until(start + self.warm_up);
            observer.begins();
            let cpu_before = own_cpu();
            let end = start + self.warm_up + self.duration;
            while Instant::now() < end && handles.iter().any(|handle| !handle.is_finished()) {
                let left = end.saturating_duration_since(Instant::now());
                observer.progress(1.0 - left.as_secs_f64() / self.duration.as_secs_f64());
                thread::sleep(left.min(Duration::from_millis(100)));
            }
            let generator_cpu = own_cpu().saturating_sub(cpu_before);
            observer.ends();
            observer.progress(1.0);
            let mut tally = Tally::default();
            let mut counts = ArrivalCounts::default();
            for handle in handles {
                let outcome = handle
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                let (one_tally, one_counts) = outcome?;
                tally.add(one_tally);
                counts.add(&one_counts);
            }
            tally.replies = counts.answered;
            tally.latencies = counts.latencies;
            Ok(RateOutcome {
                tally,
                offered: counts.offered as f64 / self.duration.as_secs_f64(),
                reached: counts.answered as f64 / self.duration.as_secs_f64(),
                unanswered: counts.unanswered,
                lateness: counts.lateness,
                generator_cpu,
            })
        })
    }
}

fn sleep_until(time: Instant) {
    thread::sleep(time.saturating_duration_since(Instant::now()));
}

/// A connection and which commands of its cycle come next, to send and to be answered.
#[derive(Debug)]
struct Lane {
    connection: Connection,
    send_image: usize,
    reply_image: usize,
}

/// One generator thread.
#[derive(Debug)]
struct Generator {
    epoll: Epoll,
    timer: TimerFd,
    /// Time that the timer is set to, so that it is not set twice.
    timer_at: Option<u64>,
    lanes: Vec<Lane>,
    images: Images,
    order: KeyOrder,
    arrivals: Arrivals,
    start: Instant,
    spin_ns: u64,
    give_up_ns: u64,
    tally: Tally,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Generator {
    fn open(
        plan: &OpenLoop,
        target: &Target,
        thread: usize,
        threads: usize,
    ) -> Result<Self, BenchError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|errno| BenchError::io("make an epoll descriptor", errno))?;
        let timer = TimerFd::new(
            ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )
        .map_err(|errno| BenchError::io("make a timer", errno))?;
        epoll
            .add(
                timer.as_fd(),
                EpollEvent::new(EpollFlags::EPOLLIN, TIMER_TOKEN),
            )
            .map_err(|errno| BenchError::io("watch a timer", errno))?;
        // One command per image: the rate speaks of commands, not of batches.
        let images = Images::new(&plan.mix, &plan.shape, 1);
        let lanes = (thread..plan.connections)
            .step_by(threads)
            .enumerate()
            .map(|(position, connection)| {
                let image = connection % images.len();
                Ok(Lane {
                    connection: Connection::open(target, &epoll, position as u64)?,
                    send_image: image,
                    reply_image: image,
                })
            })
            .collect::<Result<Vec<_>, BenchError>>()?;
        let rate = plan.rate / threads as f64;
        let seed = plan.seed.wrapping_add(thread as u64 * 0x1_0000_0001);
        let measure_from_ns = nanos(plan.warm_up);
        let measure_to_ns = nanos(plan.warm_up + plan.duration);
        Ok(Self {
            arrivals: Arrivals::new(&ArrivalPlan {
                spacing: plan.spacing,
                rate,
                // Threads take turns instead of sending at the same moments.
                offset_ns: 1e9 / plan.rate * thread as f64,
                lanes: lanes.len(),
                depth: plan.pipeline.max(1),
                measure_from_ns,
                measure_to_ns,
                seed,
            }),
            epoll,
            timer,
            timer_at: None,
            lanes,
            images,
            order: KeyOrder::Uniform(Random::new(seed)),
            start: Instant::now(),
            spin_ns: nanos(plan.spin),
            give_up_ns: measure_to_ns + nanos(DRAIN_MAX),
            tally: Tally::default(),
        })
    }

    fn now(&self) -> u64 {
        nanos(Instant::now().saturating_duration_since(self.start))
    }

    fn run(mut self) -> Result<(Tally, ArrivalCounts), BenchError> {
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        let mut events = vec![EpollEvent::empty(); EVENTS_PER_WAIT];
        sleep_until(self.start);
        loop {
            let now = self.now();
            for _ in 0..SENDS_PER_TURN {
                let Some(lane) = self.arrivals.take_due(now) else {
                    break;
                };
                self.send(lane)?;
            }
            if self.arrivals.is_done() || now > self.give_up_ns {
                break;
            }
            let timeout = self.time_to_wait()?;
            let count = match self.epoll.wait(&mut events, timeout) {
                Ok(count) => count,
                Err(Errno::EINTR) => 0,
                Err(errno) => return Err(BenchError::io("wait for replies", errno)),
            };
            for event in &events[..count] {
                if event.data() != TIMER_TOKEN {
                    let position = usize::try_from(event.data()).unwrap_or(usize::MAX);
                    self.serve(position, event.events(), &mut buffer)?;
                }
            }
        }
        self.tally.first_error = self
            .lanes
            .iter()
            .find_map(|lane| lane.connection.first_error());
        let now = self.now();
        Ok((self.tally, self.arrivals.finish(now)))
    }

    /// Sets the timer for the next intended request; none of it if that is due or close.
    fn time_to_wait(&mut self) -> Result<EpollTimeout, BenchError> {
        let timer_error = |errno| BenchError::io("set a timer", errno);
        let Some(due) = self.arrivals.next_due() else {
            if self.timer_at.take().is_some() {
                self.timer.unset().map_err(timer_error)?;
            }
            return Ok(EpollTimeout::from(20_u8));
        };
        let left = due.saturating_sub(self.now());
        if left <= self.spin_ns {
            return Ok(EpollTimeout::ZERO);
        }
        if self.timer_at != Some(due) {
            // Setting it anew also takes back that it has fired, so it is never read.
            let time = TimeSpec::from_duration(Duration::from_nanos(left));
            self.timer
                .set(Expiration::OneShot(time), TimerSetTimeFlags::empty())
                .map_err(timer_error)?;
            self.timer_at = Some(due);
        }
        Ok(EpollTimeout::NONE)
    }

    #[inline]
    fn send(&mut self, position: usize) -> Result<(), BenchError> {
        let lane = &mut self.lanes[position];
        let image = lane.send_image;
        lane.send_image = (image + 1) % self.images.len();
        let bytes = self.images.get_mut(image).patch(1, &mut self.order);
        lane.connection.send(bytes, &self.epoll)
    }

    fn serve(
        &mut self,
        position: usize,
        ready: EpollFlags,
        buffer: &mut [u8],
    ) -> Result<(), BenchError> {
        let Some(lane) = self.lanes.get_mut(position) else {
            return Ok(());
        };
        if ready.contains(EpollFlags::EPOLLOUT) {
            lane.connection.flush(&self.epoll)?;
        }
        if !ready.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR) {
            return Ok(());
        }
        let (images, tally) = (&self.images, &mut self.tally);
        let mut came = 0_usize;
        lane.connection.receive(buffer, |reply| {
            match images.get(lane.reply_image).expectation(0).judge(reply) {
                Verdict::Right => {}
                Verdict::Missed(nulls) => tally.misses += u64::from(nulls),
                Verdict::Error => tally.errors += 1,
                Verdict::Wrong => tally.wrong += 1,
            }
            lane.reply_image = (lane.reply_image + 1) % images.len();
            came += 1;
        })?;
        let now = self.now();
        for _ in 0..came {
            match self.arrivals.answered(position, now) {
                Some(true) => self.send(position)?,
                Some(false) => {}
                None => {
                    return Err(BenchError::Server("sent more replies than requests".into()));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closed_loop::Unobserved;
    use crate::responder::Responder;

    fn plan(rate: f64) -> OpenLoop {
        OpenLoop {
            mix: "PING".parse().unwrap(),
            shape: Shape {
                keys: 100,
                key_size: 12,
                value_size: 40,
                keys_per_command: 3,
            },
            rate,
            spacing: Spacing::Even,
            connections: 4,
            pipeline: 1,
            threads: 1,
            warm_up: Duration::from_millis(50),
            duration: Duration::from_millis(300),
            spin: Duration::ZERO,
            seed: 1,
        }
    }

    #[test]
    fn offers_the_rate_that_it_was_given() {
        let responder = Responder::start();
        for (threads, spin) in [(1, Duration::ZERO), (2, Duration::from_micros(50))] {
            let two = OpenLoop {
                threads,
                spin,
                ..plan(1_000.0)
            };
            let outcome = two.run(&responder.target(), &mut Unobserved).unwrap();
            assert!(
                (outcome.offered - 1_000.0).abs() < 10.0,
                "{}",
                outcome.offered
            );
            assert_eq!(outcome.unanswered, 0);
            assert_eq!(outcome.tally.complaint(), None);
            assert!(outcome.tally.latencies.count() >= 299);
        }
    }

    #[test]
    fn a_slow_server_does_not_sustain_and_shows_its_queue() {
        let responder = Responder::start();
        responder.delay(Duration::from_millis(20));
        // Four connections at 20 ms each can answer 200 per second.
        let outcome = plan(1_000.0)
            .run(&responder.target(), &mut Unobserved)
            .unwrap();
        assert!(!outcome.is_sustained(), "{}", outcome.reached);
        assert!(outcome.tally.latencies.at_us(0.9) > 60_000.0);
    }

    #[test]
    fn impossible_rates_are_refused() {
        let responder = Responder::start();
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = plan(rate)
                .run(&responder.target(), &mut Unobserved)
                .unwrap_err();
            assert!(matches!(error, BenchError::Usage(_)));
        }
    }
}
