//! Walking a whole dictionary that stays as it is, element by element.

use super::table::{self, Form, Table, WORDS};
use super::{Dictionary, Element, prefetch};

/// All elements, in order of hash prefix and home bucket. While one bucket is handed out, the
/// elements of the next one are fetched.
#[derive(Debug)]
pub struct Iter<'a> {
    dictionary: &'a Dictionary,
    /// The table that is being walked, and the header behind its family.
    table: &'a Table,
    next_index: usize,
    /// Bucket that is read next.
    number: usize,
    words: [u64; WORDS],
    /// Word that is handed out next.
    position: usize,
    left: usize,
}

impl Dictionary {
    /// Walks all elements.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        let mut iter = Iter {
            dictionary: self,
            table: &self.root,
            next_index: 0,
            number: 0,
            words: [0; WORDS],
            position: WORDS,
            left: self.len(),
        };
        if self.is_directory() {
            iter.next_table();
        }
        iter
    }
}

impl<'a> IntoIterator for &'a Dictionary {
    type Item = Element;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Iter<'_> {
    /// Goes on with the next table of the directory.
    fn next_table(&mut self) {
        let (first, members) = self.dictionary.family(self.next_index);
        // SAFETY: `family` names live headers, and the dictionary is borrowed.
        self.table = unsafe { self.dictionary.header(first).as_ref() };
        self.next_index = first + members;
        self.number = 0;
    }

    /// Reads the next bucket that is not empty; there is one.
    #[cold]
    fn next_bucket(&mut self) {
        loop {
            if self.table.form == Form::Single {
                if self.number == 0 && self.table.word != 0 {
                    self.words = [0; WORDS];
                    self.words[0] = self.table.word;
                    self.number = 1;
                    return;
                }
            } else if self.number < usize::from(self.table.buckets) {
                self.words = self.table.words(self.number);
                self.number += 1;
                if self.number < usize::from(self.table.buckets) {
                    for word in self.table.words(self.number) {
                        prefetch((word & !table::TAG_MASK) as *const u8);
                    }
                }
                if self.words[0] != 0 {
                    return;
                }
                continue;
            }
            self.next_table();
        }
    }
}

impl Iterator for Iter<'_> {
    type Item = Element;

    #[inline]
    fn next(&mut self) -> Option<Element> {
        if self.left == 0 {
            return None;
        }
        if self.position == WORDS || self.words[self.position] == 0 {
            self.next_bucket();
            self.position = 0;
        }
        let word = self.words[self.position];
        self.position += 1;
        self.left -= 1;
        Some(table::element_of(word))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}
