//! When requests are meant to be sent, and what becomes of them: the clockless core of the open
//! loop.
//!
//! Why intended times: a generator that waits for a slow reply before it sends the next request
//! asks less of the server exactly while the server is slow, and so leaves the bad times out of its
//! statistics ("coordinated omission"). Here the schedule is fixed beforehand. A request whose
//! connection is still busy waits in a queue of that connection, and its latency counts from the
//! time it was meant to be sent, as a user would see it.
//!
//! ```text
//!   schedule --due--> lane (round robin) --free--> in flight --reply--> latency = reply - intended
//!                          \--busy--> waiting --a reply came--> in flight
//! ```
//!
//! Invariants
//!   A1  every intended request is in exactly one place: schedule, waiting, in flight, or counted.
//!   A2  requests of a lane are sent and answered in the order of their intended times.
//!   A3  the schedule does not depend on anything the server does.
//!
//! Times are nanoseconds since the start of the run; nothing here reads a clock.
//! Cost: a few nanoseconds per request; 8 bytes per request that waits.

use std::collections::VecDeque;

use crate::random::Random;
use crate::tally::Latencies;

/// How requests are spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Spacing {
    /// The same time between any two
    Even,
    /// Independent users: random times with the given mean (a Poisson process)
    Poisson,
}

/// Intended times, one after another.
#[derive(Debug)]
struct Schedule {
    spacing: Spacing,
    interval_ns: f64,
    /// First intended time.
    offset_ns: f64,
    issued: u64,
    /// Poisson only: sum of the gaps so far.
    elapsed_ns: f64,
    end_ns: u64,
    random: Random,
}

impl Schedule {
    /// The next intended time; `None` once it would be at or after the end.
    fn next(&self) -> Option<u64> {
        let since = match self.spacing {
            // Multiplied, not added up, so that no rounding error accumulates.
            Spacing::Even => self.issued as f64 * self.interval_ns,
            Spacing::Poisson => self.elapsed_ns,
        };
        let time = (self.offset_ns + since) as u64;
        (time < self.end_ns).then_some(time)
    }

    fn advance(&mut self) {
        self.issued += 1;
        if self.spacing == Spacing::Poisson {
            self.elapsed_ns -= self.interval_ns * (1.0 - self.random.unit()).ln();
        }
    }
}

#[derive(Debug, Default)]
struct Lane {
    /// Intended times of requests that wait for the connection.
    waiting: VecDeque<u64>,
    /// Intended times of requests that were sent.
    in_flight: VecDeque<u64>,
}

/// What an open-loop run (or one thread of it) looks like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrivalPlan {
    pub(crate) spacing: Spacing,
    /// Requests per second over all lanes of this core.
    pub(crate) rate: f64,
    /// Time of the first request.
    pub(crate) offset_ns: f64,
    pub(crate) lanes: usize,
    /// Requests in flight per lane at most.
    pub(crate) depth: usize,
    /// The measured interval: requests intended in it count.
    pub(crate) measure_from_ns: u64,
    pub(crate) measure_to_ns: u64,
    pub(crate) seed: u64,
}

/// What was counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct ArrivalCounts {
    /// Requests intended in the interval.
    pub(crate) offered: u64,
    /// Replies that came in the interval.
    pub(crate) answered: u64,
    /// Requests intended in the interval that never got a reply.
    pub(crate) unanswered: u64,
    /// From the intended time to the reply.
    pub(crate) latencies: Latencies,
    /// From the intended time to sending, where the connection was free: the generator's own
    /// delay.
    pub(crate) lateness: Latencies,
}

impl ArrivalCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.answered += other.answered;
        self.unanswered += other.unanswered;
        self.latencies.add(&other.latencies);
        self.lateness.add(&other.lateness);
    }
}

/// The core of one generator thread.
#[derive(Debug)]
pub(crate) struct Arrivals {
    schedule: Schedule,
    lanes: Vec<Lane>,
    next_lane: usize,
    depth: usize,
    measured: std::ops::Range<u64>,
    counts: ArrivalCounts,
    /// Requests waiting or in flight.
    open: usize,
}

impl Arrivals {
    pub(crate) fn new(plan: &ArrivalPlan) -> Self {
        Self {
            schedule: Schedule {
                spacing: plan.spacing,
                interval_ns: 1e9 / plan.rate,
                offset_ns: plan.offset_ns,
                issued: 0,
                elapsed_ns: 0.0,
                end_ns: plan.measure_to_ns,
                random: Random::new(plan.seed),
            },
            lanes: (0..plan.lanes).map(|_| Lane::default()).collect(),
            next_lane: 0,
            depth: plan.depth,
            measured: plan.measure_from_ns..plan.measure_to_ns,
            counts: ArrivalCounts::default(),
            open: 0,
        }
    }

    /// When the next request is due; `None` once the schedule has ended.
    #[inline]
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.schedule.next()
    }

    /// Takes a request that is due at `now_ns` and whose lane is free: it must be sent at once.
    /// Requests for busy lanes are queued on the way. `None` if nothing (more) is due.
    #[inline]
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<usize> {
        while let Some(intended) = self.schedule.next().filter(|&time| time <= now_ns) {
            self.schedule.advance();
            let position = self.next_lane;
            self.next_lane = (self.next_lane + 1) % self.lanes.len();
            self.open += 1;
            let is_measured = self.measured.contains(&intended);
            self.counts.offered += u64::from(is_measured);
            let lane = &mut self.lanes[position];
            if lane.in_flight.len() < self.depth {
                lane.in_flight.push_back(intended);
                if is_measured {
                    self.counts.lateness.record(now_ns - intended);
                }
                return Some(position);
            }
            lane.waiting.push_back(intended);
        }
        None
    }

    /// Counts a reply on `position`. `Some(true)` if a waiting request must be sent there now;
    /// `None` if no request was in flight, which only a faulty server can cause.
    #[inline]
    pub(crate) fn answered(&mut self, position: usize, now_ns: u64) -> Option<bool> {
        let lane = &mut self.lanes[position];
        let intended = lane.in_flight.pop_front()?;
        self.open -= 1;
        if self.measured.contains(&intended) {
            self.counts
                .latencies
                .record(now_ns.saturating_sub(intended));
        }
        self.counts.answered += u64::from(self.measured.contains(&now_ns));
        let next = lane.waiting.pop_front();
        lane.in_flight.extend(next);
        Some(next.is_some())
    }

    /// Whether every request has been answered and none is to come.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.open == 0 && self.next_due().is_none()
    }

    /// Ends the run at `now_ns`: what is still open counts with the time that it has waited so far,
    /// which is less than the truth but far better than leaving it out.
    pub(crate) fn finish(mut self, now_ns: u64) -> ArrivalCounts {
        for intended in self
            .lanes
            .iter()
            .flat_map(|lane| lane.waiting.iter().chain(&lane.in_flight))
        {
            if self.measured.contains(intended) {
                self.counts.unanswered += 1;
                self.counts
                    .latencies
                    .record(now_ns.saturating_sub(*intended));
            }
        }
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// 1,000 requests per second for 100 ms, the first 20 ms unmeasured.
    fn plan(lanes: usize) -> ArrivalPlan {
        ArrivalPlan {
            spacing: Spacing::Even,
            rate: 1_000.0,
            offset_ns: 0.0,
            lanes,
            depth: 1,
            measure_from_ns: 20 * MS,
            measure_to_ns: 100 * MS,
            seed: 1,
        }
    }

    /// Runs a core against a server that works on one request at a time, for `service_ns` each, and
    /// does nothing in `pause`; a fake clock jumps from event to event.
    fn simulate(plan: &ArrivalPlan, service_ns: u64, pause: std::ops::Range<u64>) -> ArrivalCounts {
        let mut core = Arrivals::new(plan);
        let mut replies: VecDeque<(u64, usize)> = VecDeque::new();
        let mut free_at = 0;
        let mut now = 0;
        loop {
            let mut sent = Vec::new();
            while let Some(lane) = core.take_due(now) {
                sent.push(lane);
            }
            while replies.front().is_some_and(|&(time, _)| time <= now) {
                let (_, lane) = replies.pop_front().unwrap();
                if core.answered(lane, now).unwrap() {
                    sent.push(lane);
                }
            }
            for lane in sent {
                let mut start = now.max(free_at);
                if pause.contains(&start) {
                    start = pause.end;
                }
                free_at = start + service_ns;
                replies.push_back((free_at, lane));
            }
            if core.is_done() {
                return core.finish(now);
            }
            let due = core.next_due().into_iter();
            now = due
                .chain(replies.front().map(|&(time, _)| time))
                .min()
                .unwrap()
                .max(now);
        }
    }

    #[test]
    fn a_fast_server_shows_its_service_time() {
        let counts = simulate(&plan(4), 100_000, 0..0);
        assert_eq!((counts.offered, counts.unanswered), (80, 0));
        assert_eq!(counts.latencies.count(), 80);
        assert!((counts.latencies.at_us(0.99) - 100.0).abs() < 1.0);
        assert!(counts.lateness.max_us() < 1.0);
    }

    #[test]
    fn a_pause_is_seen_by_every_request_that_it_delays() {
        // 40 ms of 80 are a pause: half of the requests wait, on average half of the pause. A
        // closed loop of 4 connections would count just 4 slow requests.
        let counts = simulate(&plan(4), 100_000, 40 * MS..80 * MS);
        assert_eq!((counts.offered, counts.unanswered), (80, 0));
        assert!(
            counts.latencies.at_us(0.75) > 15_000.0,
            "{}",
            counts.latencies.at_us(0.75)
        );
        assert!((counts.latencies.max_us() - 40_100.0).abs() < 100.0);
    }

    #[test]
    fn an_overloaded_server_reaches_less_than_is_offered() {
        // 2 ms each: half of the rate.
        let counts = simulate(&plan(4), 2 * MS, 0..0);
        assert_eq!(counts.offered, 80);
        assert!((35..=45).contains(&counts.answered), "{}", counts.answered);
        assert!(counts.latencies.max_us() > 90_000.0);
    }

    #[test]
    fn what_never_comes_counts_with_its_waiting_time() {
        let mut core = Arrivals::new(&plan(1));
        while let Some(time) = core.next_due() {
            core.take_due(time);
        }
        let counts = core.finish(120 * MS);
        assert_eq!(
            (counts.offered, counts.unanswered, counts.answered),
            (80, 80, 0)
        );
        assert!((counts.latencies.max_us() - 100_000.0).abs() < 200.0);
        assert!(counts.latencies.at_us(0.01) > 20_000.0);
    }

    #[test]
    fn lateness_is_the_generators_own() {
        let mut core = Arrivals::new(&plan(100));
        while core.take_due(30 * MS + 500_000).is_some() {}
        let counts = core.finish(31 * MS);
        assert_eq!(counts.lateness.count(), 11);
        assert!((counts.lateness.max_us() - 10_500.0).abs() < 20.0);
    }

    #[test]
    fn poisson_arrivals_have_the_right_mean_and_are_reproducible() {
        let run = || {
            let long = ArrivalPlan {
                spacing: Spacing::Poisson,
                measure_to_ns: 10_000 * MS,
                lanes: 50_000,
                ..plan(1)
            };
            let mut core = Arrivals::new(&long);
            let mut times = Vec::new();
            while let Some(time) = core.next_due() {
                core.take_due(time);
                times.push(time);
            }
            times
        };
        let times = run();
        assert!((9_600..10_400).contains(&times.len()), "{}", times.len());
        assert!(times.is_sorted());
        assert_eq!(times, run());
    }

    #[test]
    fn a_reply_without_a_request_is_noticed() {
        assert_eq!(Arrivals::new(&plan(1)).answered(0, 5), None);
    }
}
