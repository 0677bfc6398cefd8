//! Deaths of workers that hold leases.

use super::*;

/// What is done about leases, arenas and processes, in order. Worker 0 is the process at position 1.
fn about_arenas(story: &mut Story) -> Vec<Action> {
    let is_it = |action: &Action| {
        matches!(
            action,
            Action::FreshArena { .. }
                | Action::Forget { .. }
                | Action::Kill { .. }
                | Action::Start { .. }
        )
    };
    let seen = story.log.iter().filter(|action| is_it(action)).cloned();
    let seen = seen.collect();
    story.log.clear();
    seen
}

fn forget(dead: u32, leases: &[u32]) -> Action {
    let leases = leases.to_vec();
    Action::Forget { dead, leases }
}

fn start(process: usize, generation: u64, arena: ArenaState) -> Action {
    Action::Start {
        process,
        generation,
        deaths_in_a_row: 0,
        arena,
    }
}

fn tearing(torn: &[u32]) -> Death {
    Death {
        torn: torn.to_vec(),
        ..kill()
    }
}

fn untrusted() -> Death {
    Death {
        arena_untrusted: true,
        ..kill()
    }
}

fn errors(story: &Story) -> Vec<&str> {
    let errors = story.log.iter().filter_map(|action| match action {
        Action::Log { level, text } if *level == tracing::Level::ERROR => Some(text.as_str()),
        _ => None,
    });
    errors.collect()
}

#[test]
fn a_dead_worker_holds_and_wants_nothing_before_its_successor_starts() {
    let mut story = Story::serving(3);
    story.at(5_000).die(1, kill());
    assert_eq!(
        about_arenas(&mut story),
        [forget(0, &[0, 1, 2]), start(1, 2, ArenaState::Kept)]
    );
}

#[test]
fn a_dead_gateway_has_no_leases() {
    let mut story = Story::serving(1);
    story.at(5_000).die(0, kill());
    assert_eq!(about_arenas(&mut story), [start(0, 2, ArenaState::Kept)]);
}

#[test]
fn a_new_arena_comes_before_the_lease_of_the_old_one_is_freed() {
    let mut story = Story::serving(2);
    story.at(5_000).die(1, untrusted());
    assert_eq!(
        about_arenas(&mut story),
        [
            Action::FreshArena { process: 1 },
            forget(0, &[0, 1]),
            start(1, 2, ArenaState::Fresh)
        ]
    );
}

#[test]
fn a_visitor_that_dies_inside_a_change_takes_the_owner_with_it() {
    let mut story = Story::serving(3);
    story.at(5_000).die(1, tearing(&[2]));
    assert_eq!(
        errors(&story),
        ["storage-worker 0 died while it changed the arena of storage-worker 2, which is killed"]
    );
    assert_eq!(
        about_arenas(&mut story),
        [
            forget(0, &[0, 1]),
            Action::Kill { process: 3 },
            start(1, 2, ArenaState::Kept)
        ]
    );
    story.run(1);
    story.log.clear();
    // The successor of the visitor is alive: what counts is who tore the arena.
    story.die(3, kill());
    assert_eq!(
        errors(&story),
        [
            "storage-worker 2: its arena was torn by storage-worker 0: ALL KEYS OF THIS WORKER ARE \
             LOST, its successor starts empty"
        ]
    );
    assert_eq!(
        about_arenas(&mut story),
        [
            Action::FreshArena { process: 3 },
            forget(0, &[2]),
            forget(2, &[0, 1, 2]),
            start(3, 2, ArenaState::Fresh)
        ]
    );
    story.run(3);
    story.log.clear();
    story.at(10_000).die(3, kill());
    assert_eq!(
        about_arenas(&mut story),
        [forget(2, &[0, 1, 2]), start(3, 3, ArenaState::Kept)]
    );
}

#[test]
fn the_arena_of_an_owner_that_is_down_is_made_anew_at_once() {
    let mut story = Story::serving(2);
    story.at(10_000);
    for _ in 0..3 {
        story.die(2, crash());
        if story.core.processes()[2].is_alive() {
            story.run(2);
        }
    }
    assert!(!story.core.processes()[2].is_alive(), "its successor waits");
    story.log.clear();
    story.die(1, tearing(&[1]));
    assert_eq!(
        about_arenas(&mut story),
        [
            forget(0, &[0]),
            Action::FreshArena { process: 2 },
            forget(0, &[1]),
            start(1, 2, ArenaState::Kept)
        ]
    );
    story.at(20_000);
    let started = about_arenas(&mut story);
    assert!(matches!(
        started[..],
        [Action::Start {
            process: 2,
            arena: ArenaState::Fresh,
            ..
        }]
    ));
}

#[test]
fn leases_are_freed_in_a_shutdown_too() {
    let mut story = Story::serving(2);
    story.event(Event::Signal { now: false });
    story.die(0, clean());
    story.log.clear();
    story.die(1, clean());
    assert_eq!(about_arenas(&mut story), [forget(0, &[0, 1])]);
}
