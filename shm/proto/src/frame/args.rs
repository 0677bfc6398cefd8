//! The arguments of a request frame, read in place.
//!
//! The body is checked once, completely, when [`Args`] is made; afterwards every access is an index
//! into a list of spans that the caller lends, so that nothing is allocated per command.

use super::FrameError;

/// Arguments of one command. Index 0 is the command's name, which is not sent and reads as empty.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    bytes: &'a [u8],
    /// `(start, end)` of argv[1..] in `bytes`.
    spans: &'a [(u32, u32)],
}

impl<'a> Args<'a> {
    /// Reads `argc - 1` arguments from a frame's body. `spans` is scratch memory to be kept and lent
    /// again; its old content is dropped.
    ///
    /// # Errors
    /// `Arguments` if one of them reaches beyond `bytes` or bytes are left over.
    #[inline]
    pub fn new(
        bytes: &'a [u8],
        argc: u32,
        spans: &'a mut Vec<(u32, u32)>,
    ) -> Result<Self, FrameError> {
        spans.clear();
        let mut at = 0usize;
        for _ in 1..argc {
            let length = match bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
                Some(length) => u32::from_le_bytes(*length) as usize,
                None => return Err(FrameError::Arguments { argc }),
            };
            let start = at + 4;
            let end = start + length;
            if end > bytes.len() {
                return Err(FrameError::Arguments { argc });
            }
            spans.push((start as u32, end as u32));
            at = end;
        }
        if at != bytes.len() || argc == 0 {
            return Err(FrameError::Arguments { argc });
        }
        Ok(Self { bytes, spans })
    }

    /// Arguments that lie at `spans` (start and end, without the name) of `bytes`. A span beyond the bytes
    /// reads as empty.
    #[inline]
    #[must_use]
    pub fn from_spans(bytes: &'a [u8], spans: &'a [(u32, u32)]) -> Self {
        let is_whole = |&(start, end): &(u32, u32)| start <= end && end as usize <= bytes.len();
        let whole = spans.iter().take_while(|span| is_whole(span)).count();
        Self {
            bytes,
            spans: &spans[..whole],
        }
    }

    /// Where arguments `from` to `to` (not included) lie: the bytes and their spans.
    #[inline]
    #[must_use]
    pub fn spans(&self, from: usize, to: usize) -> (&'a [u8], &'a [(u32, u32)]) {
        let limit = |at: usize| at.saturating_sub(1).min(self.spans.len());
        (
            self.bytes,
            &self.spans[limit(from)..limit(to).max(limit(from))],
        )
    }

    /// Number of arguments, the name included: at least 1.
    #[inline]
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "argv always holds the name")]
    pub fn len(&self) -> usize {
        self.spans.len() + 1
    }

    /// Argument `at`; empty for 0 (the name) and beyond the last one.
    #[inline]
    #[must_use]
    pub fn get(&self, at: usize) -> &'a [u8] {
        match self.spans.get(at.wrapping_sub(1)) {
            Some(&(start, end)) => &self.bytes[start as usize..end as usize],
            None => &[],
        }
    }

    /// Arguments from `at` on; `iter_from(1)` is all of them without the name.
    #[inline]
    pub fn iter_from(
        &self,
        at: usize,
    ) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let bytes = self.bytes;
        let first = at.saturating_sub(1).min(self.spans.len());
        self.spans[first..]
            .iter()
            .map(move |&(start, end)| &bytes[start as usize..end as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(arguments: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for argument in arguments {
            bytes.extend_from_slice(&(argument.len() as u32).to_le_bytes());
            bytes.extend_from_slice(argument);
        }
        bytes
    }

    #[test]
    fn arguments_are_counted_from_the_name() {
        let bytes = body(&[b"k", b"", b"value"]);
        let mut spans = Vec::new();
        let args = Args::new(&bytes, 4, &mut spans).unwrap();
        assert_eq!(args.len(), 4);
        assert_eq!(args.get(0), b"");
        assert_eq!(args.get(1), b"k");
        assert_eq!(args.get(3), b"value");
        assert_eq!(args.get(4), b"");
        assert_eq!(
            args.iter_from(2).collect::<Vec<_>>(),
            [b"".as_slice(), b"value"]
        );
        assert_eq!(args.iter_from(9).len(), 0);
    }

    #[test]
    fn a_count_that_does_not_fit_is_refused() {
        let bytes = body(&[b"k", b"value"]);
        let mut spans = Vec::new();
        for argc in [0, 1, 2, 4, u32::MAX] {
            assert_eq!(
                Args::new(&bytes, argc, &mut spans).err(),
                Some(FrameError::Arguments { argc })
            );
        }
        assert!(Args::new(&bytes[..bytes.len() - 1], 3, &mut spans).is_err());
        assert_eq!(Args::new(&[], 1, &mut spans).unwrap().len(), 1);
    }
}
