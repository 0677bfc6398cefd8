//! One command as it was read: its arguments are slices of the buffer it was read into.

/// A command and the connection that sent it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    /// Place of the connection.
    pub(crate) index: u32,
    pub(crate) bytes: &'a [u8],
    /// Start and end of each argument in `bytes`, the name first.
    pub(crate) spans: &'a [(u32, u32)],
}

impl<'a> Call<'a> {
    /// Arguments, the name included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Argument `at`, the name being 0; empty if there is none.
    #[inline]
    pub(crate) fn arg(&self, at: usize) -> &'a [u8] {
        self.get(at).unwrap_or_default()
    }

    /// Argument `at`, if it was given.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&'a [u8]> {
        let &(start, end) = self.spans.get(at)?;
        self.bytes.get(start as usize..end as usize)
    }

    /// Arguments from `first` on.
    #[inline]
    pub(crate) fn args(&self, first: usize) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let Self { bytes, spans, .. } = *self;
        let rest = spans.get(first..).unwrap_or_default();
        rest.iter()
            .map(move |&(start, end)| bytes.get(start as usize..end as usize).unwrap_or_default())
    }

    /// Whether argument `at` is `word`, in any case.
    pub(crate) fn is(&self, at: usize, word: &str) -> bool {
        self.arg(at).eq_ignore_ascii_case(word.as_bytes())
    }
}
