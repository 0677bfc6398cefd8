//! The progress bar on standard error; invisible when that is not a terminal.

use indicatif::{ProgressBar, ProgressStyle};

use crate::closed_loop::Observer;

/// Steps of a bar per measurement: finer than a terminal can show.
const STEPS: u64 = 200;

/// A bar over a known number of measurements.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    done: u64,
}

impl Progress {
    /// A bar for so many measurements.
    pub(crate) fn new(measurements: u64) -> Self {
        let bar = ProgressBar::new(measurements * STEPS);
        let style =
            ProgressStyle::with_template("{bar:30} {percent:>3}% {elapsed} left {eta}  {msg}");
        bar.set_style(style.expect("the template is a constant that indicatif accepts"));
        Self { bar, done: 0 }
    }

    /// Names what runs now.
    pub(crate) fn step(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    /// One measurement is complete.
    pub(crate) fn complete(&mut self) {
        self.done += 1;
        self.bar.set_position(self.done * STEPS);
    }

    /// More measurements than thought (a search does not know beforehand).
    pub(crate) fn expect_more(&self, measurements: u64) {
        self.bar.inc_length(measurements * STEPS);
    }

    /// Prints a line above the bar.
    pub(crate) fn line(&self, line: &str) {
        self.bar.suspend(|| println!("{line}"));
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Progress {
    fn progress(&mut self, part: f64) {
        self.bar
            .set_position(self.done * STEPS + (part * STEPS as f64) as u64);
    }
}
