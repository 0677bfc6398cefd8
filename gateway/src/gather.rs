//! Collects the replies of one command that several workers (or one worker, in steps) answer.
//!
//! A command whose keys live on several workers is split into numbered parts; each part's reply comes
//! back with its number (from 1: part 0 marks an ordinary reply). When all are there, they are joined
//! as the command's row says, and the result takes the command's place in the order of replies.
//!
//! Joining works on RESP bytes: nothing is decoded but the frames of arrays. An error in any part is
//! the whole reply; it is the first one in the order of workers.
//!
//! Cost: parts are copied into one buffer of the gather, then into the result.

use proto::catalogue::Merge;

use crate::running::Unit;
use crate::scan::Scan;
use crate::steps::Steps;

/// What happens when all parts are there.
#[derive(Debug)]
pub(crate) enum Finish {
    /// The parts are joined. For `Merge::Zip`, `order` holds the part (from 0) of each key.
    Join { merge: Merge, order: Vec<u8> },
    /// One part: a page of SCAN, which may go on with the next worker.
    Cursor(Box<Scan>),
    /// The command goes on with its next step.
    Step(Box<Steps>),
    /// One part: the replies of a transaction, among which those of the gateway have their places.
    Unit(Box<Unit>),
    /// The reply is of no interest (CLIENT REPLY OFF).
    Drop,
}

/// What a worker sent is not what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadPart;

#[derive(Debug, Default)]
struct Part {
    /// Place in the gather's bytes; unused while `own` holds the part.
    offset: usize,
    len: usize,
    /// A part that came in pieces.
    own: Vec<u8>,
    complete: bool,
}

/// Replies to the parts of one command.
#[derive(Debug)]
pub(crate) struct Gather {
    pub(crate) sequence: u32,
    pub(crate) muted: bool,
    missing: usize,
    parts: Vec<Part>,
    bytes: Vec<u8>,
    pub(crate) finish: Finish,
}

impl Gather {
    pub(crate) fn new(sequence: u32, muted: bool, parts: usize, finish: Finish) -> Self {
        Self {
            sequence,
            muted,
            missing: parts,
            parts: std::iter::repeat_with(Part::default).take(parts).collect(),
            bytes: Vec::new(),
            finish,
        }
    }

    /// Takes a piece of part `number` (from 1); `last` if it completes the part. True when all parts
    /// are complete.
    pub(crate) fn take(
        &mut self,
        number: u16,
        whole: bool,
        last: bool,
        bytes: &[u8],
    ) -> Result<bool, BadPart> {
        let index = usize::from(number).checked_sub(1).ok_or(BadPart)?;
        let part = self.parts.get_mut(index).ok_or(BadPart)?;
        if part.complete {
            return Err(BadPart);
        }
        if whole {
            part.offset = self.bytes.len();
            part.len = bytes.len();
            self.bytes.extend_from_slice(bytes);
        } else {
            part.own.extend_from_slice(bytes);
        }
        if last {
            part.complete = true;
            self.missing -= 1;
        }
        Ok(self.missing == 0)
    }

    /// Drops what has come of part `number`, which comes again from its beginning.
    pub(crate) fn forget(&mut self, number: u16) {
        let index = usize::from(number).checked_sub(1);
        let part = index.and_then(|index| self.parts.get_mut(index));
        if let Some(part) = part.filter(|part| !part.complete) {
            part.own.clear();
        }
    }

    /// Bytes of the parts that have come.
    pub(crate) fn held(&self) -> usize {
        let own = self.parts.iter().map(|part| part.own.len());
        self.bytes.len() + own.sum::<usize>()
    }

    /// Whether the command under way must be carried through.
    pub(crate) fn is_step(&self) -> bool {
        matches!(self.finish, Finish::Step(_))
    }

    /// The step that these replies belong to.
    pub(crate) fn steps(&self) -> Option<&Steps> {
        match &self.finish {
            Finish::Step(steps) => Some(steps),
            Finish::Join { .. } | Finish::Cursor(_) | Finish::Unit(_) | Finish::Drop => None,
        }
    }

    /// Reply of part `index` (from 0).
    pub(crate) fn part(&self, index: usize) -> &[u8] {
        let Some(part) = self.parts.get(index) else {
            return &[];
        };
        if part.own.is_empty() {
            self.bytes
                .get(part.offset..part.offset + part.len)
                .unwrap_or_default()
        } else {
            &part.own
        }
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.parts.len()).map(|index| self.part(index))
    }

    /// The first part that is an error.
    pub(crate) fn error(&self) -> Option<&[u8]> {
        self.parts().find(|part| part.first() == Some(&b'-'))
    }

    /// The parts' replies joined into `out`.
    pub(crate) fn join(
        &self,
        merge: Merge,
        order: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), BadPart> {
        if let Some(error) = self.error() {
            out.extend_from_slice(error);
            return Ok(());
        }
        match merge {
            Merge::Sum => {
                let mut sum = 0i64;
                for part in self.parts() {
                    sum = sum.wrapping_add(integer(part).ok_or(BadPart)?);
                }
                push_header(out, b':', sum);
                Ok(())
            }
            Merge::Zip => self.zip(order, out),
            Merge::Concat => self.concat(out),
            Merge::AllOk | Merge::First => {
                out.extend_from_slice(self.part(0));
                Ok(())
            }
        }
    }

    /// Elements of the parts' arrays in the order of the keys that asked for them.
    fn zip(&self, order: &[u8], out: &mut Vec<u8>) -> Result<(), BadPart> {
        let mut rests = Vec::with_capacity(self.parts.len());
        for part in self.parts() {
            rests.push(array(part).ok_or(BadPart)?.2);
        }
        push_header(out, b'*', i64::try_from(order.len()).map_err(|_| BadPart)?);
        for &part in order {
            let rest = rests.get_mut(usize::from(part)).ok_or(BadPart)?;
            let len = reply_len(rest).ok_or(BadPart)?;
            let (element, behind) = rest.split_at(len);
            out.extend_from_slice(element);
            *rest = behind;
        }
        Ok(())
    }

    /// One array of all parts' elements.
    fn concat(&self, out: &mut Vec<u8>) -> Result<(), BadPart> {
        let mut total = 0i64;
        let mut kind = b'*';
        for part in self.parts() {
            let (sort, count, _) = array(part).ok_or(BadPart)?;
            kind = sort;
            total += count;
        }
        push_header(out, kind, total);
        for part in self.parts() {
            out.extend_from_slice(array(part).ok_or(BadPart)?.2);
        }
        Ok(())
    }
}

/// Appends a type byte, a number and the end of the line.
pub(crate) fn push_header(out: &mut Vec<u8>, kind: u8, value: i64) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The line after the type byte, and what follows it.
fn line(reply: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = reply.windows(2).position(|pair| pair == b"\r\n")?;
    Some((reply.get(1..end)?, reply.get(end + 2..)?))
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The value of an integer reply.
pub(crate) fn integer(reply: &[u8]) -> Option<i64> {
    if reply.first() != Some(&b':') {
        return None;
    }
    number(line(reply)?.0)
}

/// The bytes of a bulk reply; `None` in it if it is a null.
#[expect(clippy::option_option, reason = "malformed, absent, present")]
pub(crate) fn bulk(reply: &[u8]) -> Option<Option<&[u8]>> {
    let (text, rest) = line(reply)?;
    match reply.first()? {
        b'_' => Some(None),
        b'$' | b'*' if text == b"-1" => Some(None),
        b'$' => Some(Some(rest.get(..usize::try_from(number(text)?).ok()?)?)),
        _ => None,
    }
}

/// Type byte, number of elements and elements of an array-like reply.
pub(crate) fn array(reply: &[u8]) -> Option<(u8, i64, &[u8])> {
    let kind = *reply.first()?;
    if !matches!(kind, b'*' | b'~' | b'>') {
        return None;
    }
    let (text, rest) = line(reply)?;
    let count = number(text)?;
    (count >= 0).then_some((kind, count, rest))
}

/// Length of the reply at the start of `bytes`, nested ones included.
pub(crate) fn reply_len(bytes: &[u8]) -> Option<usize> {
    let mut open = 1u64;
    let mut at = 0;
    while open > 0 {
        let rest = bytes.get(at..)?;
        let (text, _) = line(rest)?;
        let head = text.len() + 3;
        open -= 1;
        at += head;
        match rest.first()? {
            b'$' | b'=' | b'!' => {
                let len = number(text)?;
                if len >= 0 {
                    at += usize::try_from(len).ok()? + 2;
                }
            }
            b'*' | b'~' | b'>' => open += u64::try_from(number(text)?.max(0)).ok()?,
            b'%' => open += 2 * u64::try_from(number(text)?.max(0)).ok()?,
            _ => {}
        }
    }
    (at <= bytes.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(parts: &[&[u8]]) -> Gather {
        let mut gather = Gather::new(1, false, parts.len(), Finish::Drop);
        for (index, part) in parts.iter().enumerate().rev() {
            let number = u16::try_from(index + 1).unwrap();
            let (first, second) = part.split_at(part.len() / 2);
            if index % 2 == 0 {
                gather.take(number, true, true, part).unwrap();
            } else {
                assert_eq!(gather.take(number, false, false, first), Ok(false));
                gather.take(number, false, true, second).unwrap();
            }
        }
        assert_eq!(gather.missing, 0);
        gather
    }

    fn joined(merge: Merge, order: &[u8], parts: &[&[u8]]) -> String {
        let mut out = Vec::new();
        gather(parts).join(merge, order, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn parts_are_joined_as_the_row_says() {
        assert_eq!(joined(Merge::Sum, &[], &[b":2\r\n", b":40\r\n"]), ":42\r\n");
        assert_eq!(
            joined(Merge::AllOk, &[], &[b"+OK\r\n", b"+OK\r\n"]),
            "+OK\r\n"
        );
        assert_eq!(
            joined(Merge::AllOk, &[], &[b"+OK\r\n", b"-OOM x\r\n"]),
            "-OOM x\r\n"
        );
        assert_eq!(
            joined(
                Merge::Concat,
                &[],
                &[b"*1\r\n$1\r\na\r\n", b"*0\r\n", b"*1\r\n:1\r\n"]
            ),
            "*2\r\n$1\r\na\r\n:1\r\n"
        );
        assert_eq!(
            joined(
                Merge::Zip,
                &[1, 0, 1],
                &[
                    b"*1\r\n$1\r\na\r\n",
                    b"*2\r\n$-1\r\n*2\r\n+x\r\n%1\r\n:1\r\n_\r\n"
                ]
            ),
            "*3\r\n$-1\r\n$1\r\na\r\n*2\r\n+x\r\n%1\r\n:1\r\n_\r\n"
        );
    }

    #[test]
    fn a_part_that_was_not_asked_for_is_refused() {
        let mut gather = Gather::new(1, false, 2, Finish::Drop);
        assert_eq!(gather.take(0, true, true, b":1\r\n"), Err(BadPart));
        assert_eq!(gather.take(3, true, true, b":1\r\n"), Err(BadPart));
        assert_eq!(gather.take(1, true, true, b":1\r\n"), Ok(false));
        assert_eq!(gather.take(1, true, true, b":1\r\n"), Err(BadPart));
        assert_eq!(gather.take(2, true, true, b"*1\r\n"), Ok(true));
        assert_eq!(gather.join(Merge::Sum, &[], &mut Vec::new()), Err(BadPart));
    }

    #[test]
    fn replies_are_measured_whole() {
        for reply in [
            "+OK\r\n",
            "$3\r\na\r\n\r\n",
            "$-1\r\n",
            "*2\r\n*-1\r\n:1\r\n",
            "%1\r\n+a\r\n,1.5\r\n",
        ] {
            let mut bytes = reply.as_bytes().to_vec();
            bytes.extend_from_slice(b"+next\r\n");
            assert_eq!(reply_len(&bytes), Some(reply.len()), "{reply:?}");
        }
        assert_eq!(reply_len(b"$5\r\nab\r\n"), None);
        assert_eq!(reply_len(b"*1000000\r\n"), None);
        assert_eq!(bulk(b"$2\r\nab\r\n"), Some(Some(&b"ab"[..])));
        assert_eq!(bulk(b"_\r\n"), Some(None));
        assert_eq!(bulk(b"$9\r\nab\r\n"), None);
    }
}
