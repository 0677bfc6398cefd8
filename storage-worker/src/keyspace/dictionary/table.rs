//! One small table: its header, and the buckets behind it. See the dictionary for the layout.

use std::ptr::NonNull;

use shm::arena::{Arena, usable_size};

use super::{Element, prefetch};

/// Words in a bucket: one cache line.
pub(super) const WORDS: usize = 8;
const BUCKET_BYTES: usize = WORDS * size_of::<u64>();
/// A table of more buckets splits: 128 keep the longest rebuild at about 900 elements.
pub(super) const BUCKETS_MAX: usize = 128;
pub(super) const TAG_MASK: u64 = 0xffff << 48;
const TAG_SHIFT: u32 = 48;

/// What the header of a table means.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Form {
    /// `word` is the word of the only element, or 0.
    #[default]
    Single = 0,
    /// `word` is the address of `buckets` buckets.
    Buckets = 1,
    /// `word` is the address of a directory (only the root of a dictionary).
    Directory = 2,
}

/// Header of a table.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Table {
    pub word: u64,
    pub count: u32,
    pub buckets: u16,
    /// Leading bits of the hash that the elements share; of a directory: that address a header.
    pub depth: u8,
    pub form: Form,
}

/// The word of an element.
#[inline]
pub(super) fn word(hash: u64, element: Element) -> u64 {
    hash << TAG_SHIFT | address_of(element)
}

#[inline]
pub(super) fn address_of(element: Element) -> u64 {
    let address = element.as_ptr().expose_provenance() as u64;
    debug_assert!(address & TAG_MASK == 0);
    address
}

/// The memory that an address in a word or header names.
#[inline]
pub(super) fn pointer(address: u64) -> NonNull<u8> {
    let pointer: *mut u8 = std::ptr::with_exposed_provenance_mut(address as usize);
    debug_assert!(!pointer.is_null());
    // SAFETY: only called with addresses of live objects of the arena.
    unsafe { NonNull::new_unchecked(pointer) }
}

#[inline]
pub(super) fn element_of(word: u64) -> Element {
    pointer(word & !TAG_MASK)
}

#[inline]
fn tag_of(word: u64) -> usize {
    (word >> TAG_SHIFT) as usize
}

/// The bucket that a tag belongs to in a table of `buckets`.
#[inline]
pub(super) fn home(tag: usize, buckets: usize) -> usize {
    (tag * buckets) >> 16
}

/// Elements that a table of `buckets` may hold. 7 of 8: above, runs of full buckets get long.
#[inline]
fn room(buckets: usize) -> usize {
    if buckets == 1 {
        WORDS
    } else {
        buckets * (WORDS - 1)
    }
}

/// Buckets for `count` elements at a load of 0.7, so that the table can take about a quarter more.
pub(super) fn buckets_for(count: usize) -> usize {
    if count <= WORDS {
        1
    } else {
        (count * 10).div_ceil(WORDS * 7)
    }
}

/// Bit per word of the bucket whose tag is `tag`. An empty word looks like one with the tag 0.
#[inline]
fn hits(bucket: NonNull<u64>, tag: usize) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            __m128i, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_load_si128, _mm_movemask_ps,
            _mm_set1_epi64x, _mm_shuffle_ps, _mm_srli_epi64,
        };
        // Because: one word after the other is 50 instructions and took 8 ns longer per lookup.
        // SAFETY: a bucket has 8 words, aligned to 64 bytes; every x86-64 has these instructions.
        unsafe {
            let want = _mm_set1_epi64x(tag as i64);
            let pair = |number: usize| {
                let words = _mm_load_si128(bucket.as_ptr().cast::<__m128i>().add(number));
                let tags = _mm_srli_epi64::<{ TAG_SHIFT as i32 }>(words);
                // The upper halves are zero on both sides; the lower ones tell.
                _mm_castsi128_ps(_mm_cmpeq_epi32(tags, want))
            };
            let low = _mm_movemask_ps(_mm_shuffle_ps::<0b10_00_10_00>(pair(0), pair(1)));
            let high = _mm_movemask_ps(_mm_shuffle_ps::<0b10_00_10_00>(pair(2), pair(3)));
            (low | high << 4).cast_unsigned()
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // SAFETY: a bucket has 8 words.
        let words = unsafe { bucket.cast::<[u64; WORDS]>().read() };
        let hit = |(position, &word): (usize, &u64)| u32::from(tag_of(word) == tag) << position;
        words.iter().enumerate().map(hit).sum()
    }
}

impl Table {
    #[inline]
    fn bucket(&self, number: usize) -> NonNull<u64> {
        debug_assert!(self.form == Form::Buckets && number < usize::from(self.buckets));
        // SAFETY: the table has `buckets` buckets.
        unsafe { pointer(self.word).cast::<u64>().add(number * WORDS) }
    }

    /// A copy of the words of a bucket.
    #[inline]
    pub(super) fn words(&self, number: usize) -> [u64; WORDS] {
        // SAFETY: `bucket` names a live bucket of 8 words, aligned to its size.
        unsafe { self.bucket(number).cast::<[u64; WORDS]>().read() }
    }

    /// The same header for another member of the family (D3).
    pub(super) fn alike(&self) -> Table {
        Table { ..*self }
    }

    /// Whether two headers name the same table.
    pub(super) fn is_alike(&self, other: &Table) -> bool {
        (self.word, self.buckets, self.depth, self.form)
            == (other.word, other.buckets, other.depth, other.form)
    }

    #[inline]
    pub(super) fn prefetch_bucket(&self, hash: u64) {
        match self.form {
            Form::Single => prefetch((self.word & !TAG_MASK) as *const u8),
            _ => {
                let number = home(tag_of(hash << TAG_SHIFT), usize::from(self.buckets));
                prefetch(self.bucket(number).as_ptr().cast());
            }
        }
    }

    /// Fetches the first `lines` cache lines of the first element whose tag fits.
    #[inline]
    pub(super) fn prefetch_element(&self, hash: u64, lines: usize) {
        if self.form != Form::Buckets {
            return;
        }
        let tag = tag_of(hash << TAG_SHIFT);
        let bucket = self.bucket(home(tag, usize::from(self.buckets)));
        let hits = hits(bucket, tag);
        if hits != 0 {
            // SAFETY: the bucket has 8 words.
            let word = unsafe { bucket.add(hits.trailing_zeros() as usize).read() };
            let address = (word & !TAG_MASK) as *const u8;
            // Lines may lie past the object, or be nonsense if the word is empty: a hint never
            // faults.
            for line in 0..lines {
                prefetch(address.wrapping_add(line * 64));
            }
        }
    }

    /// The first element in the home bucket whose tag fits.
    #[inline]
    pub(super) fn likely(&self, hash: u64) -> Option<Element> {
        if self.form != Form::Buckets {
            return self.get_single(hash, |_| true);
        }
        let tag = tag_of(hash << TAG_SHIFT);
        let bucket = self.bucket(home(tag, usize::from(self.buckets)));
        let hits = hits(bucket, tag);
        if hits == 0 {
            return None;
        }
        // SAFETY: the bucket has 8 words.
        let word = unsafe { bucket.add(hits.trailing_zeros() as usize).read() };
        (word != 0).then(|| element_of(word))
    }

    #[inline]
    pub(super) fn find(
        &mut self,
        hash: u64,
        equals: impl FnMut(Element) -> bool,
    ) -> Option<NonNull<u64>> {
        if self.form == Form::Single {
            return self
                .get_single(hash, equals)
                .map(|_| NonNull::from(&mut self.word));
        }
        self.locate(hash, equals)
    }

    /// As `find`, for looking only.
    #[inline]
    pub(super) fn get(&self, hash: u64, equals: impl FnMut(Element) -> bool) -> Option<Element> {
        if self.form == Form::Single {
            return self.get_single(hash, equals);
        }
        // SAFETY: `locate` returns the place of a word.
        self.locate(hash, equals)
            .map(|place| element_of(unsafe { place.read() }))
    }

    #[inline]
    fn get_single(&self, hash: u64, mut equals: impl FnMut(Element) -> bool) -> Option<Element> {
        let tag = tag_of(hash << TAG_SHIFT);
        let hit = self.word != 0 && tag_of(self.word) == tag && equals(element_of(self.word));
        hit.then(|| element_of(self.word))
    }

    /// The place of a word in the buckets.
    #[inline]
    fn locate(&self, hash: u64, mut equals: impl FnMut(Element) -> bool) -> Option<NonNull<u64>> {
        let tag = tag_of(hash << TAG_SHIFT);
        let buckets = usize::from(self.buckets);
        let mut number = home(tag, buckets);
        for _ in 0..buckets {
            let bucket = self.bucket(number);
            let mut hits = hits(bucket, tag);
            while hits != 0 {
                let position = hits.trailing_zeros() as usize;
                // SAFETY: the bucket has 8 words.
                let (place, word) = unsafe { (bucket.add(position), bucket.add(position).read()) };
                if word != 0 && equals(element_of(word)) {
                    return Some(place);
                }
                hits &= hits - 1;
            }
            // SAFETY: as above.
            if unsafe { bucket.add(WORDS - 1).read() } == 0 {
                return None;
            }
            number = if number + 1 == buckets { 0 } else { number + 1 };
        }
        None
    }

    /// Puts a word into the first bucket with room from its home on. There is room.
    #[inline]
    fn place(&mut self, word: u64) {
        let buckets = usize::from(self.buckets);
        let mut number = home(tag_of(word), buckets);
        loop {
            let words = self.words(number);
            if let Some(position) = words.iter().position(|&word| word == 0) {
                // SAFETY: the bucket has 8 words.
                unsafe { self.bucket(number).add(position).write(word) }
                return;
            }
            number = if number + 1 == buckets { 0 } else { number + 1 };
        }
    }

    /// Adds a word; `false` if the table should split first (and may). The count is the caller's.
    #[inline]
    pub(super) fn insert(&mut self, word: u64, may_be_single: bool, may_split: bool) -> bool {
        match self.form {
            Form::Single if self.count == 0 && may_be_single => {
                self.word = word;
                return true;
            }
            Form::Single => {
                let first = std::mem::take(&mut self.word);
                self.allocate(1);
                if first != 0 {
                    self.place(first);
                }
            }
            _ => {
                let buckets = usize::from(self.buckets);
                if self.count as usize >= room(buckets) {
                    if buckets >= BUCKETS_MAX && may_split {
                        return false;
                    }
                    let more = buckets + (buckets / 4).max(1);
                    let most = if buckets >= BUCKETS_MAX {
                        more
                    } else {
                        BUCKETS_MAX
                    };
                    self.rebuild(more.min(most));
                }
            }
        }
        self.place(word);
        true
    }

    /// Takes at least `buckets` empty buckets, and as many as the size class has room for.
    pub(super) fn allocate(&mut self, buckets: usize) {
        let bytes = usable_size(buckets * BUCKET_BYTES);
        let fits = bytes / BUCKET_BYTES;
        let fits = if buckets <= BUCKETS_MAX {
            fits.min(BUCKETS_MAX)
        } else {
            fits
        };
        // A table that may not split can need more; 65535 buckets hold half a million elements that
        // agree in far more bits than others do, which a secret seed makes impossible.
        self.buckets = u16::try_from(fits).expect("a table has less than 65536 buckets");
        let memory = Arena.take(bytes);
        // SAFETY: `memory` has `bytes` bytes.
        unsafe { memory.write_bytes(0, bytes) };
        self.word = memory.as_ptr().expose_provenance() as u64;
        self.form = Form::Buckets;
    }

    /// Gives the buckets back; the header is empty afterwards, but keeps its depth.
    pub(super) fn release(&mut self) {
        if self.form == Form::Buckets {
            // SAFETY: taken by `allocate`, whose size has the class of this many buckets.
            unsafe { Arena.give(pointer(self.word), usize::from(self.buckets) * BUCKET_BYTES) }
        }
        self.word = 0;
        self.buckets = 0;
        self.count = 0;
        self.form = Form::Single;
    }

    /// Moves all words into `buckets` buckets.
    fn rebuild(&mut self, buckets: usize) {
        let mut bigger = Table {
            count: self.count,
            depth: self.depth,
            ..Table::default()
        };
        bigger.allocate(buckets);
        self.for_each_word(|word| bigger.place(word));
        self.release();
        *self = bigger;
    }

    /// Takes over all words of another table; `self` has buckets enough.
    pub(super) fn absorb(&mut self, other: &Table) {
        other.for_each_word(|word| self.place(word));
        self.count += other.count;
    }

    /// Adds a word to a table with room for it, and counts it.
    pub(super) fn place_counted(&mut self, word: u64) {
        self.place(word);
        self.count += 1;
    }

    #[inline]
    pub(super) fn for_each_word(&self, mut visit: impl FnMut(u64)) {
        if self.form == Form::Single {
            if self.word != 0 {
                visit(self.word);
            }
            return;
        }
        for number in 0..usize::from(self.buckets) {
            for word in self.words(number) {
                if word == 0 {
                    break;
                }
                visit(word);
            }
        }
    }

    pub(super) fn for_each(&self, visit: &mut impl FnMut(Element)) {
        self.for_each_word(|word| visit(element_of(word)));
    }

    /// Hands all elements to `free` and becomes empty.
    pub(super) fn drain(&mut self, free: &mut impl FnMut(Element)) {
        // The elements are scattered, so their lines are asked for some steps ahead.
        const AHEAD: usize = 16;
        let mut waiting = [0u64; AHEAD];
        let mut turn = 0;
        self.for_each_word(|word| {
            let earlier = std::mem::replace(&mut waiting[turn % AHEAD], word);
            prefetch((word & !TAG_MASK) as *const u8);
            turn += 1;
            if earlier != 0 {
                free(element_of(earlier));
            }
        });
        for word in waiting.into_iter().filter(|&word| word != 0) {
            free(element_of(word));
        }
        self.release();
    }

    /// Takes the word at `place` out and closes the gap (D1, D2).
    pub(super) fn remove(&mut self, place: NonNull<u64>) {
        self.count -= 1;
        if self.form == Form::Single {
            self.word = 0;
            return;
        }
        if self.count == 0 {
            self.release();
            return;
        }
        let offset = place.addr().get() - self.word as usize;
        self.close_gap(
            offset / BUCKET_BYTES,
            offset % BUCKET_BYTES / size_of::<u64>(),
        );
        let buckets = usize::from(self.buckets);
        // A quarter full: few enough to be worth it, far enough from growing again.
        if buckets > 1 && (self.count as usize) < buckets * WORDS / 4 {
            let fewer = buckets_for(self.count as usize);
            if usable_size(fewer * BUCKET_BYTES) < usable_size(buckets * BUCKET_BYTES) {
                self.rebuild(fewer);
            }
        }
    }

    /// Drops word `position` of bucket `gap`, then moves words of later buckets forward as long as
    /// one of them was there only because an earlier bucket was full.
    fn close_gap(&mut self, mut gap: usize, position: usize) {
        let buckets = usize::from(self.buckets);
        let mut was_full = self.drop_word(gap, position);
        let mut number = gap;
        while was_full {
            number = if number + 1 == buckets { 0 } else { number + 1 };
            if number == gap {
                return;
            }
            let words = self.words(number);
            let distance = |from: usize| (number + buckets - from) % buckets;
            let displaced = words.iter().position(|&word| {
                word != 0 && distance(home(tag_of(word), buckets)) >= distance(gap)
            });
            match displaced {
                Some(position) => {
                    let full = self.drop_word(number, position);
                    // SAFETY: the gap is the last word of its bucket: it was full, and is packed.
                    unsafe { self.bucket(gap).add(WORDS - 1).write(words[position]) };
                    gap = number;
                    was_full = full;
                }
                None => was_full = words[WORDS - 1] != 0,
            }
        }
    }

    /// Takes a word out of a bucket and keeps it packed; says whether the bucket was full.
    fn drop_word(&mut self, number: usize, position: usize) -> bool {
        let words = self.words(number);
        let last = words
            .iter()
            .rposition(|&word| word != 0)
            .unwrap_or(position);
        // SAFETY: the bucket has 8 words.
        unsafe {
            self.bucket(number).add(position).write(words[last]);
            self.bucket(number).add(last).write(0);
        }
        last == WORDS - 1
    }

    pub(super) fn random(&self, random: &mut impl FnMut() -> u64) -> Option<Element> {
        if self.count == 0 {
            return None;
        }
        if self.form == Form::Single {
            return Some(element_of(self.word));
        }
        let places = usize::from(self.buckets) * WORDS;
        // At least a quarter of the words is in use, or the table is tiny: about two tries.
        loop {
            let place = ((random() >> 32) as usize * places) >> 32;
            let word = self.words(place / WORDS)[place % WORDS];
            if word != 0 {
                return Some(element_of(word));
            }
        }
    }

    /// Calls `visit` with every element whose tag has the home `number` and is at least `tag`.
    pub(super) fn for_home(&self, number: usize, tag: usize, visit: &mut impl FnMut(Element)) {
        let buckets = usize::from(self.buckets);
        let mut at = number;
        for _ in 0..buckets {
            let words = self.words(at);
            for word in words.into_iter().take_while(|&word| word != 0) {
                if home(tag_of(word), buckets) == number && tag_of(word) >= tag {
                    visit(element_of(word));
                }
            }
            if words[WORDS - 1] == 0 {
                return;
            }
            at = if at + 1 == buckets { 0 } else { at + 1 };
        }
    }

    pub(super) fn table_bytes(&self) -> usize {
        match self.form {
            Form::Buckets => usable_size(usize::from(self.buckets) * BUCKET_BYTES),
            _ => 0,
        }
    }

    pub(super) fn check(
        &self,
        prefix: u64,
        depth: u8,
        hash_of: &impl Fn(Element) -> u64,
    ) -> Result<(), String> {
        let buckets = usize::from(self.buckets);
        if self.form == Form::Buckets && !Arena.contains(self.word, buckets * BUCKET_BYTES) {
            return Err("a table lies outside the arena".to_owned());
        }
        let mut count = 0;
        let mut wrong = None;
        self.for_each_word(|word| {
            count += 1;
            let address = word & !TAG_MASK;
            if !Arena.contains(address, 1) {
                wrong = Some(format!("an element at {address:#x} lies outside the arena"));
                return;
            }
            let hash = hash_of(element_of(word));
            if tag_of(word) != tag_of(hash << TAG_SHIFT) {
                wrong = Some(format!("the tag of the element at {address:#x} is wrong"));
            } else if depth > 0 && (hash ^ prefix) >> (64 - depth) != 0 {
                wrong = Some(format!(
                    "the element at {address:#x} is in the wrong table (D4)"
                ));
            }
        });
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        if count != self.count {
            return Err(format!(
                "a table counts {} elements and has {count}",
                self.count
            ));
        }
        if self.form == Form::Buckets {
            self.check_buckets()
        } else {
            Ok(())
        }
    }

    fn check_buckets(&self) -> Result<(), String> {
        let buckets = usize::from(self.buckets);
        for number in 0..buckets {
            let words = self.words(number);
            let packed = words.iter().take_while(|&&word| word != 0).count();
            if words[packed..].iter().any(|&word| word != 0) {
                return Err(format!("bucket {number} has a gap (D1)"));
            }
            for &word in &words[..packed] {
                let mut at = home(tag_of(word), buckets);
                while at != number {
                    if self.words(at)[WORDS - 1] == 0 {
                        return Err(format!("a word of bucket {number} cannot be found (D2)"));
                    }
                    at = (at + 1) % buckets;
                }
            }
        }
        Ok(())
    }
}
