//! Sorting of a part: the elements that belong to some places, without the rest.
//!
//! Why not one of the standard library: where a comparison finds two elements equal, their order can be
//! seen by clients (GEOSEARCH with COUNT, SORT with LIMIT), so it has to come from the same sequence of
//! exchanges as in the reference: the quicksort of Bentley and McIlroy ("Engineering a Sort Function",
//! 1993), which goes on only with those of its parts that touch the wanted places.
//!
//! ```text
//!   one pass, with the pivot at 0:   [ = | <      ?      > | = ]
//!   then                             [ <     |   =   |     > ]
//! ```
//!
//! Cost: about n comparisons to find a few of n elements, n log n for all.

use std::cmp::Ordering;

/// Slices below this are sorted by insertion.
const SMALL: usize = 7;
/// From here on, the pivot is the median of three medians.
const LARGE: usize = 40;

/// Puts the elements that belong to the places `first ..= last` there, in order.
pub fn partial_sort<T>(
    mut items: &mut [T],
    compare: &mut impl FnMut(&T, &T) -> Ordering,
    mut first: usize,
    mut last: usize,
) {
    loop {
        let len = items.len();
        if len < SMALL {
            return insertion_sort(items, compare);
        }
        let pivot = choose_pivot(items, compare);
        items.swap(0, pivot);
        let (below, above) = partition(items, compare);
        if below > 1 && first < below {
            partial_sort(&mut items[..below], compare, first, last.min(below - 1));
        }
        let start = len - above;
        if above <= 1 || last < start {
            return;
        }
        items = &mut items[start..];
        first = first.saturating_sub(start);
        last -= start;
    }
}

fn insertion_sort<T>(items: &mut [T], compare: &mut impl FnMut(&T, &T) -> Ordering) {
    for from in 1..items.len() {
        let mut at = from;
        while at > 0 && compare(&items[at - 1], &items[at]).is_gt() {
            items.swap(at - 1, at);
            at -= 1;
        }
    }
}

fn choose_pivot<T>(items: &[T], compare: &mut impl FnMut(&T, &T) -> Ordering) -> usize {
    let len = items.len();
    let (mut low, mut middle, mut high) = (0, len / 2, len - 1);
    if len == SMALL {
        return middle;
    }
    if len > LARGE {
        let step = len / 8;
        low = median(items, compare, low, low + step, low + 2 * step);
        middle = median(items, compare, middle - step, middle, middle + step);
        high = median(items, compare, high - 2 * step, high - step, high);
    }
    median(items, compare, low, middle, high)
}

/// The place of the median of three.
fn median<T>(
    items: &[T],
    compare: &mut impl FnMut(&T, &T) -> Ordering,
    a: usize,
    b: usize,
    c: usize,
) -> usize {
    let mut is_less = |left: usize, right: usize| compare(&items[left], &items[right]).is_lt();
    if is_less(a, b) {
        if is_less(b, c) {
            b
        } else if is_less(a, c) {
            c
        } else {
            a
        }
    } else if compare(&items[b], &items[c]).is_gt() {
        b
    } else if compare(&items[a], &items[c]).is_lt() {
        a
    } else {
        c
    }
}

/// Brings the elements into three parts around the one at 0; returns how many are smaller and how many
/// are greater.
fn partition<T>(items: &mut [T], compare: &mut impl FnMut(&T, &T) -> Ordering) -> (usize, usize) {
    let len = items.len();
    // Equal ones stand in front of `equal_end` and from `equal_start` on; smaller ones before `low`,
    // greater ones from `high` on.
    let (mut equal_end, mut low, mut high, mut equal_start) = (1, 1, len, len);
    loop {
        while low < high {
            match compare(&items[low], &items[0]) {
                Ordering::Greater => break,
                Ordering::Equal => {
                    items.swap(equal_end, low);
                    equal_end += 1;
                }
                Ordering::Less => {}
            }
            low += 1;
        }
        while low < high {
            match compare(&items[high - 1], &items[0]) {
                Ordering::Less => break,
                Ordering::Equal => {
                    equal_start -= 1;
                    items.swap(high - 1, equal_start);
                }
                Ordering::Greater => {}
            }
            high -= 1;
        }
        if low >= high {
            break;
        }
        items.swap(low, high - 1);
        low += 1;
        high -= 1;
    }
    let (below, above) = (low - equal_end, equal_start - high);
    // The equal ones go to the middle, with as few exchanges as there are of the rarer ones.
    swap_ranges(items, 0, low, equal_end.min(below));
    swap_ranges(items, low, len, above.min(len - equal_start));
    (below, above)
}

/// Exchanges `count` elements from `at` on with the `count` elements before `end`.
fn swap_ranges<T>(items: &mut [T], at: usize, end: usize, count: usize) {
    for number in 0..count {
        items.swap(at + number, end - count + number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_wanted_places_are_as_in_a_full_sort(
            mut items in proptest::collection::vec(0u32..60, 0..400),
            first in 0usize..400,
            count in 1usize..400,
        ) {
            let mut sorted = items.clone();
            sorted.sort_unstable();
            let last = first + count - 1;
            partial_sort(&mut items, &mut u32::cmp, first, last);
            let end = sorted.len().min(last + 1);
            let start = first.min(end);
            prop_assert_eq!(&items[start..end], &sorted[start..end]);
            items.sort_unstable();
            prop_assert_eq!(items, sorted);
        }
    }
}
