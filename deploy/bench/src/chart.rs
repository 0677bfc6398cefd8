//! An SVG chart of samples: bars per work and server for closed loops, latency over rate for open
//! loops.
//!
//! One panel per unit that must not share an axis: requests per second, and below it the server's
//! CPU time per operation (closed loop) or p99 (open loop). Repetitions are shown by their median.

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::error::BenchError;
use crate::report::{Sample, short};

const WIDTH: u32 = 1_100;
const PANEL_HEIGHT: u32 = 360;

/// Colours of the servers in order, told apart by most colour-blind people too.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(86, 180, 233),
    RGBColor(204, 121, 167),
];

/// Something drawn: a value per (work, server).
struct Panel<'a> {
    title: &'a str,
    value: fn(&Sample) -> Option<f64>,
}

/// Draws all samples; the kinds of panel follow from what there is.
pub(crate) fn draw(samples: &[Sample]) -> Result<String, BenchError> {
    let closed: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.offered.is_none())
        .collect();
    let open: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.offered.is_some())
        .collect();
    let bars = [
        Panel {
            title: "requests per second",
            value: |sample| Some(sample.requests_per_second),
        },
        Panel {
            title: "server CPU per operation (us)",
            value: |sample| sample.server_cpu_us,
        },
    ];
    let bars: Vec<&Panel<'_>> = bars
        .iter()
        .filter(|panel| closed.iter().any(|sample| (panel.value)(sample).is_some()))
        .collect();
    let lines = [
        Panel {
            title: "p50 (us) over rate, sustained only",
            value: |sample| Some(sample.p50_us),
        },
        Panel {
            title: "p99 (us) over rate, sustained only",
            value: |sample| Some(sample.p99_us),
        },
    ];
    let works = distinct(open.iter().map(|sample| series(&sample.work)));
    let panels = bars.len() + lines.len() * works.len();
    let mut out = String::new();
    {
        let height = PANEL_HEIGHT * u32::try_from(panels.max(1)).unwrap_or(1);
        let root = SVGBackend::with_string(&mut out, (WIDTH, height)).into_drawing_area();
        let error = |error: &dyn std::fmt::Display| BenchError::Usage(format!("chart: {error}"));
        root.fill(&WHITE).map_err(|cause| error(&cause))?;
        let areas = root.split_evenly((panels.max(1), 1));
        let mut areas = areas.iter();
        for (panel, area) in bars.iter().zip(areas.by_ref()) {
            bar_panel(area, panel, &closed).map_err(|cause| error(&cause))?;
        }
        for work in works {
            let of_work: Vec<&Sample> = open
                .iter()
                .copied()
                .filter(|sample| series(&sample.work) == work)
                .collect();
            for (panel, area) in lines.iter().zip(areas.by_ref()) {
                line_panel(area, work, panel, &of_work).map_err(|cause| error(&cause))?;
            }
        }
        root.present().map_err(|cause| error(&cause))?;
    }
    Ok(out)
}

/// Name of a work without the rate at its end: all rates of a series are one curve.
fn series(work: &str) -> &str {
    match work.rsplit_once(' ') {
        Some((name, rate)) if rate.ends_with("/s") => name,
        _ => work,
    }
}

/// Distinct texts in order of appearance.
fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn colour(position: usize) -> RGBColor {
    COLOURS[position % COLOURS.len()]
}

fn bar_panel(area: &Area<'_>, panel: &Panel<'_>, samples: &[&Sample]) -> Drawn {
    let works = distinct(samples.iter().map(|sample| sample.work.as_str()));
    let servers = distinct(samples.iter().map(|sample| sample.server.as_str()));
    let value = |work: &str, server: &str| {
        let of_both = samples
            .iter()
            .filter(|sample| sample.work == work && sample.server == server);
        median(of_both.filter_map(|sample| (panel.value)(sample)).collect())
    };
    let highest = works
        .iter()
        .flat_map(|work| servers.iter().filter_map(|server| value(work, server)))
        .fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(panel.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..works.len() as f64, 0.0..(highest * 1.12).max(1e-9))?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_label_formatter(&|number| axis_label(*number))
        .draw()?;
    let bar = 0.8 / servers.len() as f64;
    for (position, server) in servers.iter().enumerate() {
        let style = colour(position).filled();
        let boxes = works.iter().enumerate().filter_map(|(place, work)| {
            let left = place as f64 + 0.1 + bar * position as f64;
            Some(Rectangle::new(
                [(left, 0.0), (left + bar * 0.92, value(work, server)?)],
                style,
            ))
        });
        chart
            .draw_series(boxes)?
            .label(*server)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], style));
    }
    let (columns, _) = area.dim_in_pixel();
    let step = (f64::from(columns) - 88.0) / works.len().max(1) as f64;
    for (place, work) in works.iter().enumerate() {
        // 76 pixels: margin and labels on the left of the plot.
        let x = 76 + ((place as f64 + 0.5) * step) as i32 - work.len() as i32 * 3;
        area.draw(&Text::new(
            (*work).to_owned(),
            (x, PANEL_HEIGHT as i32 - 40),
            ("sans-serif", 13),
        ))?;
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}

fn axis_label(number: f64) -> String {
    if number >= 1_000.0 {
        short(number)
    } else {
        format!("{number:.2}")
    }
}

fn line_panel(area: &Area<'_>, work: &str, panel: &Panel<'_>, samples: &[&Sample]) -> Drawn {
    let servers = distinct(samples.iter().map(|sample| sample.server.as_str()));
    let points = |server: &str| {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let held = samples
            .iter()
            .filter(|sample| sample.server == server && sample.sustained == Some(true));
        let mut rates: Vec<f64> = held.clone().filter_map(|sample| sample.offered).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        for rate in rates {
            let values = held.clone().filter(|sample| sample.offered == Some(rate));
            let middle = median(values.filter_map(|sample| (panel.value)(sample)).collect());
            points.extend(middle.map(|value| (rate, value)));
        }
        points
    };
    let all: Vec<(f64, f64)> = servers.iter().flat_map(|server| points(server)).collect();
    let right = all.iter().map(|point| point.0).fold(1.0, f64::max);
    let top = all.iter().map(|point| point.1).fold(1.0, f64::max);
    let bottom = all.iter().map(|point| point.1).fold(top, f64::min).max(1.0);
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{work}: {}", panel.title), ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..right * 1.05, (bottom * 0.7..top * 1.4).log_scale())?;
    chart
        .configure_mesh()
        .x_label_formatter(&|number| short(*number))
        .y_label_formatter(&|number| axis_label(*number))
        .draw()?;
    for (position, server) in servers.iter().enumerate() {
        let style = colour(position).stroke_width(2);
        chart
            .draw_series(LineSeries::new(points(server), style).point_size(3))?
            .label(*server)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 12, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(work: &str, server: &str, offered: Option<f64>) -> Sample {
        Sample {
            work: work.into(),
            server: server.into(),
            offered,
            sustained: offered.map(|_| true),
            requests_per_second: 1_000.0,
            server_cpu_us: Some(2.0),
            p50_us: 30.0,
            p99_us: 90.0,
            ..Sample::default()
        }
    }

    #[test]
    fn draws_every_server_and_work() {
        let samples = [
            sample("GET", "ours", None),
            sample("SET", "theirs", None),
            sample("GET c=48 10.0k/s", "ours", Some(10_000.0)),
            sample("GET c=48 20.0k/s", "ours", Some(20_000.0)),
        ];
        let text = draw(&samples).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        assert_eq!(
            text.matches("GET c=48").count(),
            2,
            "one panel each for p50 and p99"
        );
        for word in [
            "ours",
            "theirs",
            "SET",
            "GET c=48",
            "requests per second",
            "p99",
        ] {
            assert!(text.contains(word), "{word}");
        }
    }

    #[test]
    fn draws_even_nothing() {
        assert!(draw(&[]).unwrap().contains("</svg>"));
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
    }
}
