//! The supervisor's decisions, as stories.

mod leases;

use super::*;
use runtime::message::{FromChild, Request, ShutdownHow};

/// A system with one gateway of two threads and some workers, driven by hand.
struct Story {
    core: Core,
    now: Millis,
    log: Vec<Action>,
}

impl Story {
    fn new(workers: u32) -> Self {
        let place = |role, index, parties| Place {
            role,
            index,
            first_party: index,
            parties,
            cpus: vec![None; parties as usize],
        };
        let mut places = vec![place(Role::Gateway, 0, 2)];
        places.extend((0..workers).map(|index| place(Role::StorageWorker, index, 1)));
        let checks = Checks {
            clients_max: 1000,
            directory: |path| {
                if path == "/ok" {
                    Ok(())
                } else {
                    Err("No such".to_string())
                }
            },
        };
        let core = Core::new(places, Settings::default(), 1, checks);
        Self {
            core,
            now: 0,
            log: Vec::new(),
        }
    }

    /// A system in which everybody serves.
    fn serving(workers: u32) -> Self {
        let mut story = Self::new(workers);
        story.event(Event::Tick);
        for process in 0..=workers as usize {
            story.run(process);
        }
        assert_eq!(story.take(|action| *action == Action::AllReady), 1);
        story.log.clear();
        story
    }

    fn event(&mut self, event: Event) -> &mut Self {
        let actions = self.core.handle(self.now, event);
        self.log.extend(actions);
        self
    }

    fn at(&mut self, now: Millis) -> &mut Self {
        self.now = now;
        self.event(Event::Tick)
    }

    fn generation(&self, process: usize) -> u64 {
        self.core.processes()[process].generation
    }

    fn say(&mut self, process: usize, message: FromChild) -> &mut Self {
        let generation = self.generation(process);
        self.event(Event::Message {
            process,
            generation,
            message,
        })
    }

    fn run(&mut self, process: usize) -> &mut Self {
        let generation = self.generation(process);
        self.event(Event::Started {
            process,
            generation,
            pid: 100 + process as u32,
        });
        self.say(process, FromChild::Ready)
    }

    fn die(&mut self, process: usize, death: Death) -> &mut Self {
        let generation = self.generation(process);
        self.event(Event::Died {
            process,
            generation,
            death,
        })
    }

    /// Counts and removes the actions so far; other actions stay.
    fn take(&mut self, is_it: impl Fn(&Action) -> bool) -> usize {
        let before = self.log.len();
        self.log.retain(|action| !is_it(action));
        before - self.log.len()
    }

    fn started(&mut self) -> Vec<(usize, u32, ArenaState)> {
        let starts = self.log.iter().filter_map(|action| match action {
            Action::Start {
                process,
                deaths_in_a_row,
                arena,
                ..
            } => Some((*process, *deaths_in_a_row, *arena)),
            _ => None,
        });
        let starts = starts.collect();
        self.log.clear();
        starts
    }

    fn replies(&mut self) -> Vec<(usize, u64, Result<String, String>)> {
        let replies = self.log.iter().filter_map(|action| match action {
            Action::Send {
                process,
                message: ToChild::Reply { request, result },
            } => Some((*process, *request, result.clone())),
            _ => None,
        });
        let replies = replies.collect();
        self.log.clear();
        replies
    }

    fn drains(&mut self) -> Vec<(usize, u64)> {
        let drains = self.log.iter().filter_map(|action| match action {
            Action::Send {
                process,
                message: ToChild::Drain { within_ms },
            } => Some((*process, *within_ms)),
            _ => None,
        });
        let drains = drains.collect();
        self.log.clear();
        drains
    }

    fn set(&mut self, request: u64, name: &str, text: &str) -> &mut Self {
        let pairs = vec![(name.to_string(), text.to_string())];
        self.say(
            0,
            FromChild::Request {
                request,
                body: Request::SetSettings { pairs, local: true },
            },
        )
    }
}

fn crash() -> Death {
    Death {
        text: "signal 11 (SIGSEGV)".to_string(),
        ..Death::default()
    }
}

fn kill() -> Death {
    Death {
        text: "signal 9 (SIGKILL)".to_string(),
        by_kill: true,
        ..Death::default()
    }
}

fn clean() -> Death {
    Death {
        text: "exit code 0".to_string(),
        clean: true,
        ..Death::default()
    }
}

#[test]
fn everything_starts_at_once_and_is_reported_ready_once() {
    let mut story = Story::new(2);
    story.event(Event::Tick);
    assert_eq!(
        story.take(|action| matches!(action, Action::RenewLinks { process: 0 })),
        1
    );
    let fresh = ArenaState::Fresh;
    assert_eq!(
        story.started(),
        [(0, 0, fresh), (1, 0, fresh), (2, 0, fresh)]
    );
    story.run(0).run(1);
    assert_eq!(story.take(|action| *action == Action::AllReady), 0);
    story.run(2);
    assert_eq!(story.take(|action| *action == Action::AllReady), 1);
    assert_eq!(story.core.next_deadline(), None);
}

#[test]
fn a_killed_worker_is_replaced_at_once_with_its_arena_and_the_gateway_is_told() {
    let mut story = Story::serving(2);
    story.at(5_000).die(1, kill());
    let state = PeerState::Restarting;
    let party = PartyId::storage_worker(0);
    let told = |state| Action::Send {
        process: 0,
        message: ToChild::PeerState {
            party,
            generation: 1,
            state,
        },
    };
    assert_eq!(story.take(|action| *action == told(state)), 1);
    assert_eq!(story.take(|action| matches!(action, Action::AlarmAll)), 1);
    assert_eq!(
        story.take(|action| matches!(action, Action::RenewLinks { .. })),
        0
    );
    assert_eq!(story.started(), [(1, 0, ArenaState::Kept)]);
    story.run(1);
    let state = PeerState::Ready { fresh: false };
    let ready = ToChild::PeerState {
        party,
        generation: 2,
        state,
    };
    assert_eq!(
        story.take(|action| *action
            == Action::Send {
                process: 0,
                message: ready.clone()
            }),
        1
    );
    assert_eq!(story.core.processes()[1].restarts, 1);
}

#[test]
fn events_of_an_older_generation_change_nothing() {
    let mut story = Story::serving(1);
    story.die(1, kill()).run(1);
    story.log.clear();
    story.event(Event::Died {
        process: 1,
        generation: 1,
        death: crash(),
    });
    assert_eq!(story.started(), []);
    story.event(Event::Message {
        process: 1,
        generation: 1,
        message: FromChild::Ready,
    });
    assert!(story.log.is_empty());
}

#[test]
fn a_death_inside_a_write_gives_a_fresh_arena_loudly() {
    let mut story = Story::serving(1);
    story.at(5_000).die(
        1,
        Death {
            arena_untrusted: true,
            ..kill()
        },
    );
    assert_eq!(
        story.take(|action| *action == Action::FreshArena { process: 1 }),
        1
    );
    let loud = |action: &Action| matches!(action, Action::Log { level, .. } if *level == tracing::Level::ERROR);
    assert_eq!(story.take(loud), 1);
    assert_eq!(story.started(), [(1, 0, ArenaState::Fresh)]);
    story.run(1);
    let fresh = |action: &Action| {
        matches!(
            action,
            Action::Send {
                message: ToChild::PeerState {
                    state: PeerState::Ready { fresh: true },
                    ..
                },
                ..
            }
        )
    };
    assert_eq!(story.take(fresh), 1);
    // The next one finds what its predecessor stored.
    story.at(10_000).die(1, kill());
    assert_eq!(story.started(), [(1, 0, ArenaState::Kept)]);
}

#[test]
fn a_worker_that_refuses_its_arena_is_killed_and_gets_another() {
    let mut story = Story::serving(1);
    story.die(1, kill());
    story.say(
        1,
        FromChild::ArenaUntrusted {
            reason: "bad magic".to_string(),
        },
    );
    assert_eq!(
        story.take(|action| *action == Action::Kill { process: 1 }),
        1
    );
    story.die(1, kill());
    assert_eq!(
        story.take(|action| *action == Action::FreshArena { process: 1 }),
        1
    );
}

#[test]
fn a_part_that_keeps_dying_waits_longer_and_longer_until_it_has_been_quiet() {
    let mut story = Story::serving(1);
    story.at(10_000);
    let mut waits = Vec::new();
    for _ in 0..9 {
        story.die(1, crash());
        let due = story.core.next_deadline().unwrap_or(story.now);
        waits.push(due - story.now);
        story.at(due).run(1);
        story.log.clear();
    }
    assert_eq!(waits, [0, 0, 20, 100, 500, 2_000, 5_000, 10_000, 10_000]);
    story.at(story.now + 2_000).die(1, crash());
    assert_eq!(story.started().len(), 1);
    // Being killed from outside, however often, is not the part's fault.
    for _ in 0..50 {
        let later = story.now + 100;
        story.run(1).at(later).die(1, kill());
        assert_eq!(story.started().len(), 1);
    }
    // Unless somebody kills every successor at once.
    for _ in 0..5 {
        let due = story.core.next_deadline().unwrap_or(story.now);
        story.at(due).run(1).die(1, kill());
    }
    assert_eq!(story.core.next_deadline(), Some(story.now + 2_000));
}

#[test]
fn a_part_that_cannot_start_at_all_ends_the_system() {
    let mut story = Story::new(1);
    story.event(Event::Tick);
    story.run(0);
    for _ in 0..FIRST_START_DEATHS_MAX {
        let due = story.core.next_deadline().unwrap_or(story.now);
        story.at(due).die(
            1,
            Death {
                text: "exit code 1".to_string(),
                ..Death::default()
            },
        );
    }
    assert_eq!(
        story.take(|action| *action == Action::Kill { process: 0 }),
        1
    );
    assert_eq!(story.take(|action| *action == Action::Exit { code: 1 }), 1);
}

#[test]
fn a_dead_gateway_gets_new_links_and_workers_drop_the_old_ones() {
    let mut story = Story::serving(2);
    story.at(5_000).die(0, kill());
    let detach = |action: &Action| {
        matches!(
            action,
            Action::Send {
                message: ToChild::DetachLink { .. },
                ..
            }
        )
    };
    assert_eq!(story.take(detach), 4);
    assert_eq!(
        story.take(|action| matches!(action, Action::RenewLinks { process: 0 })),
        1
    );
    assert_eq!(story.started(), [(0, 0, ArenaState::Kept)]);
}

#[test]
fn a_damaged_link_is_made_anew_and_a_worker_that_damages_it_again_is_replaced() {
    let mut story = Story::serving(2);
    let broken = |generation| FromChild::LinkBroken {
        link: link_id(1, 0),
        generation,
    };
    let renewal = |generation| {
        move |action: &Action| {
            let wanted = Action::RenewLink {
                thread: 1,
                worker: 0,
                generation,
            };
            *action == wanted
        }
    };
    let killed = |action: &Action| *action == Action::Kill { process: 1 };
    // Both ends may say so, and what they say may be late.
    story.at(1_000).say(0, broken(1)).say(1, broken(1));
    assert_eq!(story.take(renewal(1)), 1);
    assert_eq!(story.take(killed), 0);
    story.at(60_000).say(0, broken(2));
    assert_eq!((story.take(renewal(2)), story.take(killed)), (1, 0));
    story.at(65_000).say(0, broken(3));
    assert_eq!((story.take(renewal(3)), story.take(killed)), (1, 1));
    // No such worker.
    let link = link_id(1, 7);
    let unknown = FromChild::LinkBroken {
        link,
        generation: 1,
    };
    story.log.clear();
    story.say(0, unknown);
    assert!(story.log.is_empty());
}

#[test]
fn a_stopped_process_is_killed_after_its_time_but_not_when_it_goes_on() {
    let mut story = Story::serving(1);
    story.at(1_000).event(Event::Stopped {
        process: 1,
        stopped: true,
    });
    assert_eq!(story.core.next_deadline(), Some(6_000));
    story.at(4_000).event(Event::Stopped {
        process: 1,
        stopped: false,
    });
    assert_eq!(story.core.next_deadline(), None);
    story.at(5_000).event(Event::Stopped {
        process: 1,
        stopped: true,
    });
    story.event(Event::Stopped {
        process: 1,
        stopped: true,
    });
    story.at(9_999);
    assert_eq!(
        story.take(|action| matches!(action, Action::Kill { .. })),
        0
    );
    story.at(10_000);
    assert_eq!(
        story.take(|action| *action == Action::Kill { process: 1 }),
        1
    );
}

#[test]
fn config_set_is_answered_when_every_live_process_has_seen_it() {
    let mut story = Story::serving(2);
    story.set(7, "maxmemory", "1mb");
    assert_eq!(
        story.take(|action| *action == Action::Publish { version: 2 }),
        1
    );
    assert_eq!(story.replies(), []);
    story.say(0, FromChild::RegistrySeen { version: 2 });
    story.say(1, FromChild::RegistrySeen { version: 2 });
    assert_eq!(story.replies(), []);
    story.die(2, kill());
    assert_eq!(story.core.settings().maxmemory(), 1 << 20);
    // The dead one no longer counts; its successor reads the new version at its start.
    assert_eq!(story.replies(), [(0, 7, Ok("OK".to_string()))]);
    // Two at once, confirmed together.
    story.run(2).set(8, "hz", "20").set(9, "hz", "30");
    for process in 0..3 {
        story.say(process, FromChild::RegistrySeen { version: 4 });
    }
    assert_eq!(
        story.replies(),
        [(0, 8, Ok("OK".to_string())), (0, 9, Ok("OK".to_string()))]
    );
}

#[test]
fn config_set_is_refused_with_the_texts_of_the_settings() {
    let mut story = Story::serving(1);
    story
        .set(1, "maxclients", "5000")
        .set(2, "nosuch", "1")
        .set(3, "port", "1");
    let errors: Vec<String> = story
        .replies()
        .into_iter()
        .map(|(_, _, result)| result.unwrap_err())
        .collect();
    assert_eq!(
        errors,
        [
            "CONFIG SET failed (possibly related to argument 'maxclients') - The operating system \
             is not able to handle the specified number of clients, try with 1000",
            "Unknown option or number of arguments for CONFIG SET - 'nosuch'",
            "CONFIG SET failed (possibly related to argument 'port') - can't set immutable config",
        ]
    );
}

#[test]
fn shutdown_drains_gateways_first_then_workers() {
    let mut story = Story::serving(2);
    story.at(1_000).event(Event::Signal { now: false });
    assert_eq!(story.drains(), [(0, 10_000)]);
    story.at(2_000).die(0, clean());
    assert_eq!(story.drains(), [(1, 9_000), (2, 9_000)]);
    story.die(1, clean());
    assert_eq!(
        story.take(|action| matches!(action, Action::Exit { .. })),
        0
    );
    story.die(2, clean());
    assert_eq!(story.take(|action| *action == Action::Exit { code: 0 }), 1);
    assert_eq!(story.started(), []);
}

#[test]
fn a_second_signal_hurries_and_late_parts_are_killed() {
    let mut story = Story::serving(1);
    story
        .at(1_000)
        .event(Event::Signal { now: false })
        .event(Event::Signal { now: false });
    assert_eq!(story.drains(), [(0, 10_000), (0, HURRY_MS)]);
    story.at(1_000 + HURRY_MS);
    assert_eq!(
        story.take(|action| *action == Action::Kill { process: 0 }),
        1
    );
    story.die(0, kill());
    assert_eq!(story.drains(), [(1, HURRY_MS)]);
    story.at(story.now + HURRY_MS);
    assert_eq!(
        story.take(|action| *action == Action::Kill { process: 1 }),
        1
    );
    story.die(1, kill());
    assert_eq!(story.take(|action| *action == Action::Exit { code: 0 }), 1);
}

#[test]
fn a_worker_that_dies_while_gateways_drain_still_gets_a_successor() {
    let mut story = Story::serving(1);
    story.at(1_000).event(Event::Signal { now: false });
    story.die(1, kill());
    assert_eq!(story.started(), [(1, 0, ArenaState::Kept)]);
    story.run(1).die(0, clean());
    assert_eq!(story.drains(), [(1, 10_000)]);
    story.die(1, clean());
    assert_eq!(story.take(|action| *action == Action::Exit { code: 0 }), 1);
}

#[test]
fn shutdown_with_save_is_refused_unless_forced() {
    let mut story = Story::serving(1);
    let ask = |save, force| FromChild::Request {
        request: 3,
        body: Request::Shutdown(ShutdownHow {
            save,
            force,
            ..ShutdownHow::default()
        }),
    };
    story.say(0, ask(Some(true), false));
    let refused = "Errors trying to SHUTDOWN. Check logs.".to_string();
    assert_eq!(story.replies(), [(0, 3, Err(refused))]);
    assert!(!story.core.is_draining());
    story.say(0, ask(Some(true), true));
    assert!(story.core.is_draining());
}
