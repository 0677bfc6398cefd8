//! One line format for the logs of all processes.
//!
//! ```text
//!   2026-11-30T13:22:21.944Z  4711 storage-worker.0 WARN  arena not trusted, starting empty slot=7
//!   time (UTC)                pid  process          level text and fields
//! ```
//!
//! Why lines on standard output: the supervisor opens `logfile` once and every child inherits it,
//! so rotation, redirection and service managers see one stream. A line is written with one call,
//! so lines of several processes do not mix.
//!
//! Cost: a disabled level is one relaxed load per call site. Not here: when to log (style: where an
//! error is consumed, never where it passes by).

use proto::settings::LogLevel;
use std::fmt;
use std::io::Write;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;

static LEVEL: OnceLock<reload::Handle<LevelFilter, tracing_subscriber::Registry>> = OnceLock::new();

/// Starts logging for this process under a name. Later calls do nothing.
pub fn start(process: &str) {
    let (filter, handle) = reload::Layer::new(LevelFilter::INFO);
    let lines = Lines {
        process: process.to_string(),
        pid: std::process::id(),
    };
    let subscriber = tracing_subscriber::registry().with(filter).with(lines);
    if tracing::subscriber::set_global_default(subscriber).is_ok() {
        // The handle is set once because the subscriber is.
        let _ = LEVEL.set(handle);
    }
}

/// Sets how much is logged, from now on.
pub fn set_level(level: LogLevel) {
    let filter = match level {
        LogLevel::Debug | LogLevel::Verbose => LevelFilter::DEBUG,
        LogLevel::Notice => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Nothing => LevelFilter::OFF,
    };
    if let Some(handle) = LEVEL.get() {
        // Fails only when the subscriber is gone, which does not happen before the process is.
        let _ = handle.reload(filter);
    }
}

/// Writes events as lines to standard output.
struct Lines {
    process: String,
    pid: u32,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let line = format!(
            "{} {:>6} {} {:<5} {}{}\n",
            utc(now.as_secs(), now.subsec_millis()),
            self.pid,
            self.process,
            event.metadata().level(),
            fields.text,
            fields.rest,
        );
        // A log that cannot be written must not stop the server.
        let _ = std::io::stdout().write_all(line.as_bytes());
    }
}

#[derive(Default)]
struct Fields {
    text: String,
    rest: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.text = format!("{value:?}");
        } else {
            self.rest.push_str(&format!(" {}={value:?}", field.name()));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.text = value.to_string();
        } else {
            self.rest.push_str(&format!(" {}={value:?}", field.name()));
        }
    }
}

/// Date and time in UTC from seconds since 1970 (proleptic Gregorian calendar, years from 1970).
fn utc(seconds: u64, millis: u32) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Count from 1 March of year 0, so that a leap day is the last day of its year.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn times_are_printed_as_dates() {
        assert_eq!(utc(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(utc(951_782_399, 5), "2000-02-28T23:59:59.005Z");
        assert_eq!(utc(951_782_400, 0), "2000-02-29T00:00:00.000Z");
        assert_eq!(utc(1_796_044_941, 944), "2026-11-30T13:22:21.944Z");
        assert_eq!(utc(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
    }
}
