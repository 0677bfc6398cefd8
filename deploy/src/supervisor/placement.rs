//! Decides whether the parts of a system that is not bound to cores run side by side on one core or
//! are left to the kernel.
//!
//! Why: a request wakes the worker and its reply wakes the gateway. On one core a wake-up is a
//! switch; across cores it interrupts a core, often an idle one, and takes the second core away from
//! whoever sends the requests. Measured on 2 cores with one client process: side by side 50 waiting
//! connections got 15 to 20 % more requests per second and the highest even rate rose, while long
//! pipelines lost 8 % because they want two cores. So the parts share one core for as long as it is
//! enough for them.
//!
//! Rules, per window
//!   - apart, and together below `ROOM_FOR_ALL` of a core for some windows: share the idlest core;
//!   - sharing, and they fill the core while others are idle: part;
//!   - sharing, and somebody else fills the core while others are idle: move to the idlest one;
//!   - sharing, and they wait longer than they keep each other waiting: somebody else wants this
//!     core and there is no better one. Part, and try again only after twice the patience, or when
//!     the others leave a whole core again.
//!
//! Not here: reading the figures and moving threads (`sharing`).

/// Together they need less than this much of a core: they may share one.
const ROOM_FOR_ALL: f64 = 0.7;
/// Together they use this much of their core: it is full. What the kernel does for them in its own name
/// is not in it, so it is less than 1.
const FULL: f64 = 0.85;
/// Cores' worth of idle time elsewhere that make parting worth it when their core is full. A client
/// that is waiting for a full core leaves about half of another one idle.
const IDLE_FOR_TWO: f64 = 0.25;
/// Cores' worth of idle time elsewhere that make it worth it to go there.
const IDLE_ELSEWHERE: f64 = 0.4;
/// Idle time of the shared core below which nobody finds room there.
const NO_ROOM: f64 = 0.05;
/// Use by others, or waiting beyond what they do to each other, in cores' worth: the core has other
/// users.
const CROWDED: f64 = 0.2;
/// Windows of little load before they share.
const PATIENCE: u32 = 2;
/// The longest patience: about half a minute.
const PATIENCE_MAX: u32 = 128;
/// After so many windows of undisturbed sharing patience is as at the start.
const UNDISTURBED: u32 = 64;

/// What all parts together did within one window, in cores' worth of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// They ran.
    pub ran: f64,
    /// They were ready to run and had no core.
    pub waited: f64,
    /// Idle time of the core that they share; 0 while they share none.
    pub idle_here: f64,
    /// Idle time of the allowed cores that they do not share.
    pub idle_elsewhere: f64,
}

impl Window {
    /// What all others used would fit on one core less than there are.
    fn has_a_free_core(&self) -> bool {
        self.ran + self.idle_here + self.idle_elsewhere >= 1.0
    }

    /// Others fill the shared core.
    fn is_taken(&self) -> bool {
        self.idle_here < NO_ROOM && 1.0 - self.idle_here - self.ran > CROWDED
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// All onto the idlest core.
    Share,
    /// Wherever the kernel wants.
    Part,
}

/// The state between two windows.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    shares: bool,
    /// Windows in a row that spoke for sharing, or, while sharing, that were undisturbed.
    calm: u32,
    patience: u32,
}

impl Default for Placement {
    fn default() -> Self {
        Self {
            shares: false,
            calm: 0,
            patience: PATIENCE,
        }
    }
}

impl Placement {
    /// Takes what happened since the last call, and says what changes.
    pub fn window(&mut self, window: Window) -> Option<Move> {
        if self.shares {
            return self.still_together(window);
        }
        let calm = window.ran < ROOM_FOR_ALL;
        self.calm = if calm { self.calm + 1 } else { 0 };
        let patience = if window.has_a_free_core() {
            PATIENCE
        } else {
            self.patience
        };
        if self.calm < patience {
            return None;
        }
        self.shares = true;
        self.calm = 0;
        Some(Move::Share)
    }

    fn still_together(&mut self, window: Window) -> Option<Move> {
        let full = window.ran > FULL && window.idle_elsewhere > IDLE_FOR_TWO;
        if window.idle_elsewhere > IDLE_ELSEWHERE && window.is_taken() {
            self.calm = 0;
            return Some(Move::Share);
        }
        let crowded = window.waited > window.ran + CROWDED;
        if crowded || full {
            if crowded {
                self.patience = (self.patience * 2).min(PATIENCE_MAX);
            }
            self.shares = false;
            self.calm = 0;
            return Some(Move::Part);
        }
        self.calm += 1;
        if self.calm >= UNDISTURBED {
            self.calm = 0;
            self.patience = PATIENCE;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Window = Window {
        ran: 0.3,
        waited: 0.1,
        idle_here: 0.7,
        idle_elsewhere: 0.8,
    };

    fn sharing() -> Placement {
        let mut placement = Placement::default();
        while placement.window(CALM).is_none() {}
        assert!(placement.shares);
        placement
    }

    #[test]
    fn little_load_shares_a_core_and_much_load_parts() {
        let mut placement = sharing();
        assert_eq!(placement.window(CALM), None);
        let full = Window {
            ran: 0.97,
            idle_here: 0.0,
            ..CALM
        };
        assert_eq!(placement.window(full), Some(Move::Part));
        let much = Window { ran: 1.4, ..CALM };
        for _ in 0..100 {
            assert_eq!(placement.window(much), None);
        }
        assert_eq!(placement.window(CALM), None);
        assert_eq!(placement.window(CALM), Some(Move::Share));
    }

    #[test]
    fn a_full_core_is_kept_while_clients_need_the_others() {
        let mut placement = sharing();
        let full = Window {
            ran: 0.97,
            waited: 0.6,
            idle_here: 0.0,
            idle_elsewhere: 0.1,
        };
        for _ in 0..100 {
            assert_eq!(placement.window(full), None);
        }
        let waiting_clients = Window {
            ran: 0.9,
            idle_elsewhere: 0.3,
            ..full
        };
        assert_eq!(placement.window(waiting_clients), Some(Move::Part));
    }

    #[test]
    fn a_core_that_others_fill_is_left_for_an_idle_one() {
        let mut placement = sharing();
        let taken = Window {
            ran: 0.45,
            waited: 0.5,
            idle_here: 0.0,
            idle_elsewhere: 0.9,
        };
        assert_eq!(placement.window(taken), Some(Move::Share));
        assert_eq!(placement.window(CALM), None);
        assert_eq!(placement.window(taken), Some(Move::Share));
    }

    #[test]
    fn a_crowded_core_is_left_with_growing_patience() {
        let mut placement = sharing();
        let crowded = Window {
            ran: 0.3,
            waited: 0.9,
            idle_here: 0.0,
            idle_elsewhere: 0.2,
        };
        let tight = Window {
            waited: 0.1,
            ..crowded
        };
        let mut waits = Vec::new();
        for _ in 0..9 {
            assert_eq!(placement.window(crowded), Some(Move::Part));
            let mut count = 1;
            while placement.window(tight).is_none() {
                count += 1;
            }
            waits.push(count);
        }
        assert_eq!(waits, [4, 8, 16, 32, 64, 128, 128, 128, 128]);
        // Whoever crowded them has gone.
        assert_eq!(placement.window(crowded), Some(Move::Part));
        assert_eq!(placement.window(CALM), None);
        assert_eq!(placement.window(CALM), Some(Move::Share));
        for _ in 0..UNDISTURBED {
            assert_eq!(placement.window(CALM), None);
        }
        assert_eq!(placement.patience, PATIENCE);
    }
}
