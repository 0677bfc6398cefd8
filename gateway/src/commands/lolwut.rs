//! LOLWUT: a picture that is different each time.
//!
//! The sirocco carries sand over dunes: one-dimensional value noise gives the crests, the wind gives the
//! dots. Nothing depends on it.

use std::fmt::Write as _;

const WIDTH: usize = 66;
const HEIGHT: usize = 12;

/// Draws dunes from a seed; ends with the version, as Redis does.
pub(super) fn draw(seed: u64) -> String {
    let mut state = seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / f64::from(1u32 << 24)
    };
    // Heights at a few places, joined smoothly.
    let knots: Vec<f64> = (0..8).map(|_| random()).collect();
    let mut rows = vec![vec![' '; WIDTH]; HEIGHT];
    for column in 0..WIDTH {
        let at = column as f64 / WIDTH as f64 * (knots.len() - 1) as f64;
        let (left, part) = (at.floor() as usize, at.fract());
        let smooth = part * part * (3.0 - 2.0 * part);
        let right = knots.get(left + 1).copied().unwrap_or_default();
        let height = knots[left] + (right - knots[left]) * smooth;
        let crest = HEIGHT - 3 - (height * (HEIGHT - 5) as f64) as usize;
        for (line, row) in rows.iter_mut().enumerate() {
            row[column] = match line.cmp(&crest) {
                std::cmp::Ordering::Less if random() < 0.04 => '·',
                std::cmp::Ordering::Less => ' ',
                std::cmp::Ordering::Equal => '~',
                std::cmp::Ordering::Greater if random() < 0.12 => '˙',
                std::cmp::Ordering::Greater => '░',
            };
        }
    }
    let mut picture = String::new();
    for row in rows {
        picture.extend(row);
        picture.push('\n');
    }
    let _ = write!(
        picture,
        "\nSand on the wind. Redis ver. {} (Sirocco {})\n",
        crate::info::REDIS_VERSION,
        env!("CARGO_PKG_VERSION")
    );
    picture
}
