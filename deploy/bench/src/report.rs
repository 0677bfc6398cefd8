//! Results as rows, and the ways to hand them out: an aligned table, CSV, JSON.
//!
//! One row type serves all subcommands, so that a script reads every CSV alike. Fields that a
//! measurement does not have are empty. Nothing here may hold a path of this machine
//! (`command_line::without_path` is applied where such texts come in).

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::closed_loop::Outcome;
use crate::error::BenchError;
use crate::open_loop::RateOutcome;

/// Where results go beside standard output.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputArgs {
    /// Write every single measurement as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write measurements, summary and descriptions of the servers as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw a chart
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// One measurement of one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sample {
    /// What was done, for example `GET P=30`.
    pub work: String,
    /// Name of the server.
    pub server: String,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Open loop: requests per second that were offered.
    pub offered: Option<f64>,
    /// Requests per second.
    pub requests_per_second: f64,
    /// Open loop: whether at least 97 % of the offered rate was reached.
    pub sustained: Option<bool>,
    /// Microseconds of CPU time per operation, all processes of the server.
    pub server_cpu_us: Option<f64>,
    /// Microseconds of CPU time per operation, the generator.
    pub generator_cpu_us: f64,
    /// Median latency in microseconds. Closed loop: per batch.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Longest.
    pub max_us: f64,
    /// Open loop: 99th percentile of the generator's own delay, contained in the latencies.
    pub lateness_p99_us: Option<f64>,
    /// Replies counted.
    pub replies: u64,
    /// Error replies.
    pub errors: u64,
    /// Values that were missing.
    pub misses: u64,
    /// Replies of a wrong type or size.
    pub wrong: u64,
}

impl Sample {
    /// The row of a closed-loop run.
    pub(crate) fn closed(work: &str, server: &str, repetition: u32, outcome: &Outcome) -> Self {
        Self {
            requests_per_second: outcome.requests_per_second(),
            generator_cpu_us: outcome.generator_us_per_op(),
            ..Self::of_tally(work, server, repetition, &outcome.tally)
        }
    }

    /// The row of an open-loop run.
    pub(crate) fn open(work: &str, server: &str, repetition: u32, outcome: &RateOutcome) -> Self {
        Self {
            offered: Some(outcome.offered),
            requests_per_second: outcome.reached,
            sustained: Some(outcome.is_sustained()),
            generator_cpu_us: outcome.generator_us_per_op(),
            lateness_p99_us: Some(outcome.lateness.at_us(0.99)),
            ..Self::of_tally(work, server, repetition, &outcome.tally)
        }
    }

    fn of_tally(work: &str, server: &str, repetition: u32, tally: &crate::tally::Tally) -> Self {
        let latencies = &tally.latencies;
        Self {
            work: work.to_owned(),
            server: server.to_owned(),
            repetition,
            p50_us: latencies.at_us(0.5),
            p90_us: latencies.at_us(0.9),
            p99_us: latencies.at_us(0.99),
            p999_us: latencies.at_us(0.999),
            max_us: latencies.max_us(),
            replies: tally.replies,
            errors: tally.errors,
            misses: tally.misses,
            wrong: tally.wrong,
            ..Self::default()
        }
    }
}

/// The samples as CSV with a header line.
pub(crate) fn csv(samples: &[Sample]) -> String {
    let mut out = String::from(
        "work,server,repetition,offered,requests_per_second,sustained,server_cpu_us,\
         generator_cpu_us,p50_us,p90_us,p99_us,p999_us,max_us,lateness_p99_us,replies,errors,\
         misses,wrong\n",
    );
    let optional =
        |number: Option<f64>| number.map_or_else(String::new, |number| format!("{number:.3}"));
    for sample in samples {
        let cells = [
            csv_text(&sample.work),
            csv_text(&sample.server),
            sample.repetition.to_string(),
            optional(sample.offered),
            format!("{:.1}", sample.requests_per_second),
            sample
                .sustained
                .map_or_else(String::new, |held| held.to_string()),
            optional(sample.server_cpu_us),
            format!("{:.3}", sample.generator_cpu_us),
            format!("{:.1}", sample.p50_us),
            format!("{:.1}", sample.p90_us),
            format!("{:.1}", sample.p99_us),
            format!("{:.1}", sample.p999_us),
            format!("{:.1}", sample.max_us),
            optional(sample.lateness_p99_us),
            sample.replies.to_string(),
            sample.errors.to_string(),
            sample.misses.to_string(),
            sample.wrong.to_string(),
        ];
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}

fn csv_text(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Writes a result file.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), BenchError> {
    fs::write(path, text).map_err(|error| BenchError::io("write a result file", error))
}

/// Writes `value` as JSON.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), BenchError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| BenchError::io("write JSON", std::io::Error::from(error)))?;
    write(path, &(text + "\n"))
}

/// A table for people: first column left, the others right.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self {
            rows: vec![headings.iter().map(|&heading| heading.to_owned()).collect()],
        }
    }

    /// Adds a row; missing cells are empty.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table as text.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, &width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                if column == 0 {
                    line.push_str(&format!("{cell:<width$}"));
                } else {
                    line.push_str(&format!("  {cell:>width$}"));
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
            if number == 0 {
                let total = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
                out.push_str(&"-".repeat(total));
                out.push('\n');
            }
        }
        out
    }
}

/// A rate for people: 1234567 as `1.235M`, 45600 as `45.6k`.
pub(crate) fn short(number: f64) -> String {
    match number {
        number if number >= 999_950.0 => format!("{:.3}M", number / 1e6),
        number if number >= 1_000.0 => format!("{:.1}k", number / 1e3),
        number => format!("{number:.0}"),
    }
}

/// A time in microseconds for people: three significant digits.
pub(crate) fn micros(us: f64) -> String {
    match us {
        us if us >= 100_000.0 => format!("{:.0} ms", us / 1e3),
        us if us >= 10_000.0 => format!("{:.1} ms", us / 1e3),
        us if us >= 1_000.0 => format!("{:.2} ms", us / 1e3),
        us if us >= 100.0 => format!("{us:.0} us"),
        us => format!("{us:.1} us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_has_as_many_cells_as_headings() {
        let sample = Sample {
            work: "SET:1,GET:10".into(),
            server: "a\"b".into(),
            ..Sample::default()
        };
        let text = csv(&[sample]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].split(',').count(), 18);
        assert!(
            lines[1].starts_with("\"SET:1,GET:10\",\"a\"\"b\",0,,0.0,,,"),
            "{}",
            lines[1]
        );
        assert_eq!(lines[1].split(',').count(), 19);
    }

    #[test]
    fn tables_are_aligned() {
        let mut table = Table::new(&["name", "x"]);
        table.row(vec!["a".into(), "100".into()]);
        assert_eq!(table.render(), "name    x\n---------\na     100\n");
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(short(1_234_567.0), "1.235M");
        assert_eq!(short(45_600.0), "45.6k");
        assert_eq!(short(999.0), "999");
        assert_eq!(micros(12.34), "12.3 us");
        assert_eq!(micros(1_234.0), "1.23 ms");
    }
}
