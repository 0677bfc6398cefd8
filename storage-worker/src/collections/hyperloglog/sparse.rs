//! Registers as runs of equal ones.
//!
//! ```text
//!   00xxxxxx            x+1 registers are 0         (1 ..= 64)
//!   01xxxxxx yyyyyyyy   xy+1 registers are 0        (1 ..= 16384)
//!   1vvvvvxx            x+1 registers are v+1       (1 ..= 4 registers, counts 1 ..= 32)
//! ```
//!
//! Where a register is raised, its run is cut in up to three, and neighbours that became equal are joined
//! over the next few runs: by the same rules as in Redis, so that the bytes are the same.

use std::fmt::Write as _;

use super::{Corrupt, HEADER_BYTES, REGISTERS, forget_cached};

const SHORT_ZEROS_MAX: usize = 64;
const EQUAL_MAX: usize = 4;
const COUNT_MAX: u8 = 32;
/// Runs that are looked at for joining, from the one before the change on.
const JOINED_OVER: usize = 5;

/// A run of equal registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// What each of them holds.
    pub(super) count: u8,
    /// How many they are.
    pub(super) len: usize,
}

/// A long run of zeros.
pub(super) const fn long_zeros(len: usize) -> [u8; 2] {
    [0x40 | ((len - 1) >> 8) as u8, (len - 1) as u8]
}

const fn equal(count: u8, len: usize) -> u8 {
    0x80 | (count - 1) << 2 | (len - 1) as u8
}

/// The run at the start of `bytes`, and its bytes.
fn first(bytes: &[u8]) -> Result<(Run, usize), Corrupt> {
    let &[head, ..] = bytes else {
        return Err(Corrupt);
    };
    let run = |count, len| Run { count, len };
    match head >> 6 {
        0 => Ok((run(0, usize::from(head) + 1), 1)),
        1 => {
            let low = usize::from(*bytes.get(1).ok_or(Corrupt)?);
            Ok((run(0, (usize::from(head & 0x3f) << 8 | low) + 1), 2))
        }
        _ => {
            let count = (head >> 2 & 0x1f) + 1;
            Ok((run(count, usize::from(head & 3) + 1), 1))
        }
    }
}

/// All runs.
pub(super) fn runs(mut bytes: &[u8]) -> impl Iterator<Item = Result<Run, Corrupt>> + '_ {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        match first(bytes) {
            Ok((run, taken)) => {
                bytes = &bytes[taken..];
                Some(Ok(run))
            }
            Err(corrupt) => {
                bytes = &[];
                Some(Err(corrupt))
            }
        }
    })
}

/// Raises a register; says whether that changed it. `None`, with nothing changed, if it must become dense
/// for that.
pub(super) fn raise(
    bytes: &mut Vec<u8>,
    index: usize,
    count: u8,
    bytes_max: usize,
) -> Result<Option<bool>, Corrupt> {
    if count > COUNT_MAX {
        return Ok(None);
    }
    let (mut at, mut before, mut start) = (HEADER_BYTES, None, 0);
    let (run, taken) = loop {
        let (run, taken) = first(&bytes[at..])?;
        if index < start + run.len {
            break (run, taken);
        }
        before = Some(at);
        at += taken;
        start += run.len;
    };
    if start + run.len > REGISTERS {
        return Err(Corrupt);
    }
    if run.count >= count {
        return Ok(Some(false));
    }
    if run.len == 1 && taken == 1 {
        bytes[at] = equal(count, 1);
    } else {
        let mut cut = Vec::with_capacity(5);
        push(&mut cut, run.count, index - start);
        push(&mut cut, count, 1);
        push(&mut cut, run.count, start + run.len - 1 - index);
        if cut.len() > taken && bytes.len() + cut.len() - taken > bytes_max {
            return Ok(None);
        }
        bytes.splice(at..at + taken, cut);
    }
    join(bytes, before.unwrap_or(HEADER_BYTES));
    forget_cached(bytes);
    Ok(Some(true))
}

fn push(out: &mut Vec<u8>, count: u8, len: usize) {
    match (count, len) {
        (_, 0) => {}
        (0, ..=SHORT_ZEROS_MAX) => out.push((len - 1) as u8),
        (0, _) => out.extend_from_slice(&long_zeros(len)),
        _ => out.push(equal(count, len)),
    }
}

/// Joins neighbours that hold the same count, from the run at `at` on.
fn join(bytes: &mut Vec<u8>, mut at: usize) {
    let is_equal = |byte: u8| byte & 0x80 != 0;
    for _ in 0..JOINED_OVER {
        let Some(&head) = bytes.get(at) else {
            return;
        };
        if !is_equal(head) {
            at += if head & 0x40 == 0 { 1 } else { 2 };
            continue;
        }
        if let Some(&next) = bytes.get(at + 1)
            && is_equal(next)
            && head >> 2 == next >> 2
        {
            let len = usize::from(head & 3) + usize::from(next & 3) + 2;
            if len <= EQUAL_MAX {
                bytes[at + 1] = next & !3 | (len - 1) as u8;
                bytes.remove(at);
                continue;
            }
        }
        at += 1;
    }
}

/// The runs as text: `z:` and `Z:` for short and long zeros, `v:count,len` for others.
pub(super) fn decoded(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    while let Ok((Run { count, len }, taken)) = first(bytes) {
        let separator = if text.is_empty() { "" } else { " " };
        let _ = match (count, taken) {
            (0, 1) => write!(text, "{separator}z:{len}"),
            (0, _) => write!(text, "{separator}Z:{len}"),
            _ => write!(text, "{separator}v:{count},{len}"),
        };
        bytes = &bytes[taken..];
    }
    text
}
