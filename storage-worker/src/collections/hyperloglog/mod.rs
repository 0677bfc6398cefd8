//! HyperLogLogs: how many different elements were seen, from 12 KiB or less, within about 0.81 %.
//!
//! ```text
//!   | "HYLL" | representation u8 | unused 3 | cached count u64 | registers ...          |
//!                0 dense                        highest bit of   dense   16384 times 6 bits
//!                1 sparse                       its last byte:   sparse  runs of registers (`sparse`)
//!                                               not valid
//! ```
//!
//! The format is Redis', byte for byte: a HyperLogLog is a string, which GET returns and SET takes back,
//! so anybody may have made it up. Whoever reads one checks it.
//!
//! An element's hash says which register it goes to (14 bits) and the count that it offers: one more than
//! the zero bits that follow. A register keeps the largest count it was offered. The estimate is Ertl's
//! improved raw estimator over the histogram of counts.
//!
//! Cost: an element is one hash and one register where it is dense, and a walk over the runs where it is
//! sparse. An estimate walks over all registers, about 10 us.
//! Not here: the commands, and when a count is cached (`commands::hyperloglog`).

mod dense;
mod sparse;
#[cfg(test)]
mod tests;

use dense::{DENSE_BYTES, unpack};
use sparse::Run;

/// Registers: 2^14.
pub const REGISTERS: usize = 1 << 14;
/// Bits of the hash that choose the register.
const INDEX_BITS: u32 = 14;
/// Bits of the hash behind them.
const TAIL_BITS: u32 = 64 - INDEX_BITS;
/// Bytes in front of the registers.
const HEADER_BYTES: usize = 16;
const MAGIC: [u8; 4] = *b"HYLL";
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
/// The bytes of a HyperLogLog that has seen nothing.
pub const EMPTY: [u8; HEADER_BYTES + 2] = {
    let mut bytes = [0; HEADER_BYTES + 2];
    let mut at = 0;
    while at < MAGIC.len() {
        bytes[at] = MAGIC[at];
        at += 1;
    }
    bytes[4] = SPARSE;
    let [high, low] = sparse::long_zeros(REGISTERS);
    bytes[HEADER_BYTES] = high;
    bytes[HEADER_BYTES + 1] = low;
    bytes
};

/// The registers contradict their own form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// How the registers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Representation {
    /// 6 bits each.
    Dense,
    /// As runs.
    Sparse,
}

/// All registers, a byte each.
pub type Registers = [u8; REGISTERS];

/// How `bytes` write their registers; `None` if they are no HyperLogLog. A sparse one may still be
/// corrupt.
#[must_use]
pub fn representation(bytes: &[u8]) -> Option<Representation> {
    if bytes.len() < HEADER_BYTES || !bytes.starts_with(&MAGIC) {
        return None;
    }
    match bytes[4] {
        DENSE if bytes.len() == DENSE_BYTES => Some(Representation::Dense),
        SPARSE => Some(Representation::Sparse),
        _ => None,
    }
}

/// The count that is remembered from the last estimate, if nothing has changed since.
#[must_use]
pub fn cached(bytes: &[u8]) -> Option<u64> {
    let count = u64::from_le_bytes(*bytes.get(8..)?.first_chunk()?);
    (count >> 63 == 0).then_some(count)
}

/// Remembers an estimate.
pub fn set_cached(bytes: &mut [u8], count: u64) {
    if let Some(place) = bytes.get_mut(8..HEADER_BYTES) {
        place.copy_from_slice(&count.to_le_bytes());
    }
}

/// Forgets the estimate: a register has changed.
pub fn forget_cached(bytes: &mut [u8]) {
    if let Some(last) = bytes.get_mut(HEADER_BYTES - 1) {
        *last |= 1 << 7;
    }
}

/// The register of an element, and the count that it offers: 1 ..= 51.
#[must_use]
pub fn offer(element: &[u8]) -> (usize, u8) {
    let hash = murmur_hash(element);
    let index = hash as usize % REGISTERS;
    let tail = hash >> INDEX_BITS | 1 << TAIL_BITS;
    (index, tail.trailing_zeros() as u8 + 1)
}

/// Adds an element to a dense one; says whether a register has changed.
pub fn add_dense(bytes: &mut [u8], element: &[u8]) -> bool {
    let (index, count) = offer(element);
    dense::raise(&mut bytes[HEADER_BYTES..], index, count)
}

/// Raises a register to `count`; says whether that changed it. A sparse one that would take more than
/// `sparse_bytes_max` bytes, or a count above 32, becomes dense.
///
/// # Errors
/// The registers are corrupt; nothing has changed.
pub fn raise(
    bytes: &mut Vec<u8>,
    index: usize,
    count: u8,
    sparse_bytes_max: usize,
) -> Result<bool, Corrupt> {
    if bytes[4] == DENSE {
        return Ok(dense::raise(&mut bytes[HEADER_BYTES..], index, count));
    }
    match sparse::raise(bytes, index, count, sparse_bytes_max)? {
        Some(is_changed) => Ok(is_changed),
        None => {
            *bytes = to_dense(bytes)?;
            Ok(dense::raise(&mut bytes[HEADER_BYTES..], index, count))
        }
    }
}

/// The same in the dense form, with the cached count.
///
/// # Errors
/// The registers are corrupt.
pub fn to_dense(bytes: &[u8]) -> Result<Vec<u8>, Corrupt> {
    let mut registers = [0; REGISTERS];
    merge(bytes, &mut registers)?;
    let mut made = bytes[..HEADER_BYTES].to_vec();
    made[4] = DENSE;
    made.resize(DENSE_BYTES, 0);
    dense::pack(&registers, &mut made[HEADER_BYTES..]);
    Ok(made)
}

/// Writes registers over those of a dense one.
pub fn write_dense(bytes: &mut [u8], registers: &Registers) {
    dense::pack(registers, &mut bytes[HEADER_BYTES..]);
}

/// Raises each of `registers` to the register of `bytes`, where that is larger.
///
/// # Errors
/// The registers are corrupt.
pub fn merge(bytes: &[u8], registers: &mut Registers) -> Result<(), Corrupt> {
    if bytes[4] == DENSE {
        let mut at = 0;
        unpack(&bytes[HEADER_BYTES..], |count| {
            registers[at] = registers[at].max(count);
            at += 1;
        });
        return Ok(());
    }
    let mut at = 0;
    for run in sparse::runs(&bytes[HEADER_BYTES..]) {
        let Run { count, len } = run?;
        let reach = registers.get_mut(at..at + len).ok_or(Corrupt)?;
        if count > 0 {
            reach.iter_mut().for_each(|one| *one = (*one).max(count));
        }
        at += len;
    }
    if at == REGISTERS {
        Ok(())
    } else {
        Err(Corrupt)
    }
}

/// The estimated number of different elements.
///
/// # Errors
/// The registers are corrupt.
pub fn estimate(bytes: &[u8]) -> Result<u64, Corrupt> {
    let mut histogram = [0; 64];
    if bytes[4] == DENSE {
        unpack(&bytes[HEADER_BYTES..], |count| {
            histogram[usize::from(count)] += 1;
        });
    } else {
        let mut all = 0;
        for run in sparse::runs(&bytes[HEADER_BYTES..]) {
            let Run { count, len } = run?;
            histogram[usize::from(count)] += len as u32;
            all += len;
            if all > REGISTERS {
                return Err(Corrupt);
            }
        }
        if all != REGISTERS {
            return Err(Corrupt);
        }
    }
    Ok(estimate_of(&histogram))
}

/// The estimated number of different elements behind merged registers.
#[must_use]
pub fn estimate_registers(registers: &Registers) -> u64 {
    let mut histogram = [0; 64];
    for &count in registers {
        histogram[usize::from(count & 63)] += 1;
    }
    estimate_of(&histogram)
}

/// All registers, one after the other.
///
/// # Errors
/// The registers are corrupt.
pub fn registers(bytes: &[u8]) -> Result<Registers, Corrupt> {
    let mut registers = [0; REGISTERS];
    merge(bytes, &mut registers)?;
    Ok(registers)
}

/// The runs of a sparse one as text, as PFDEBUG DECODE shows them.
#[must_use]
pub fn decoded(bytes: &[u8]) -> String {
    sparse::decoded(&bytes[HEADER_BYTES..])
}

/// Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", algorithm 6.
fn estimate_of(histogram: &[u32; 64]) -> u64 {
    const ALPHA_INFINITE: f64 = 0.721_347_520_444_481_7;
    let all = REGISTERS as f64;
    let full = f64::from(histogram[TAIL_BITS as usize + 1]);
    let mut sum = all * tau((all - full) / all);
    for &registers in histogram[1..=TAIL_BITS as usize].iter().rev() {
        sum += f64::from(registers);
        sum *= 0.5;
    }
    sum += all * sigma(f64::from(histogram[0]) / all);
    (ALPHA_INFINITE * all * all / sum).round() as u64
}

/// Sums that converge are added up until the last term changes nothing.
#[expect(
    clippy::float_cmp,
    reason = "the loop ends when a sum stays exactly as it was"
)]
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let mut weight = 1.0;
    let mut sum = 1.0 - x;
    loop {
        x = x.sqrt();
        weight *= 0.5;
        let before = sum;
        sum -= (1.0 - x) * (1.0 - x) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}

#[expect(
    clippy::float_cmp,
    reason = "the loop ends when a sum stays exactly as it was"
)]
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let mut weight = 1.0;
    let mut sum = x;
    loop {
        x *= x;
        let before = sum;
        sum += x * weight;
        weight += weight;
        if sum == before {
            return sum;
        }
    }
}

/// MurmurHash64A (Austin Appleby, public domain), read in little endian, with the seed that makes the
/// registers comparable between servers.
fn murmur_hash(bytes: &[u8]) -> u64 {
    const SEED: u64 = 0xadc8_3b19;
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut mixed = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        mixed = (mixed ^ mixed >> 47).wrapping_mul(FACTOR);
        hash = (hash ^ mixed).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> 47).wrapping_mul(FACTOR);
    hash ^ hash >> 47
}
