//! The one glob matcher: KEYS, SCAN, CONFIG GET, COMMAND LIST, ACL, patterns of channels.
//!
//! ```text
//!   *       any bytes          ?   any one byte
//!   [abc]   one of them        [^abc]  none of them      [a-z]  a range, either way round
//!   \x      x itself, inside brackets too
//! ```
//!
//! What Redis does with strange patterns is kept, because it can be seen: `*` does not match an empty
//! text, a bracket that does not close ends with the pattern, a backslash at the end is itself,
//! ranges compare bytes as signed numbers, escaped bytes in brackets ignore `nocase`, and beyond
//! 1000 groups of stars nothing matches.
//!
//! Cost: every element but `*` takes exactly one byte, so it is enough to go back to the last star:
//! at most pattern times text steps, no recursion, no allocation.

use crate::limits::GLOB_STARS_MAX;

/// Whether all of `text` matches `pattern`; `nocase` ignores the case of ASCII letters.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where the pattern goes on behind the last star, and how far the star reaches in the text.
    let mut star: Option<(usize, usize)> = None;
    let mut stars = 0;
    loop {
        if p < pattern.len() && t < text.len() {
            if pattern[p] == b'*' {
                p += pattern[p..]
                    .iter()
                    .take_while(|&&byte| byte == b'*')
                    .count();
                if p == pattern.len() {
                    return true;
                }
                stars += 1;
                if stars > GLOB_STARS_MAX {
                    return false;
                }
                star = Some((p, t));
                continue;
            }
            if let Some(next) = element(pattern, p, text[t], nocase) {
                p = next;
                t += 1;
                if t == text.len() {
                    // Text is used up; more of it for an earlier star would leave even less.
                    return pattern[p..].iter().all(|&byte| byte == b'*');
                }
                continue;
            }
        } else if t == text.len() {
            return p == pattern.len();
        }
        match star {
            Some((behind, reach)) if reach + 1 < text.len() => {
                star = Some((behind, reach + 1));
                p = behind;
                t = reach + 1;
            }
            _ => return false,
        }
    }
}

/// Whether the element at `p`, not a star, matches `byte`; if so, where the next element is.
fn element(pattern: &[u8], p: usize, byte: u8, nocase: bool) -> Option<usize> {
    match pattern[p] {
        b'?' => Some(p + 1),
        b'[' => bracket(pattern, p + 1, byte, nocase),
        b'\\' if p + 1 < pattern.len() => same(pattern[p + 1], byte, nocase).then_some(p + 2),
        literal => same(literal, byte, nocase).then_some(p + 1),
    }
}

/// `at` is behind the opening bracket.
fn bracket(pattern: &[u8], mut at: usize, byte: u8, nocase: bool) -> Option<usize> {
    let negated = pattern.get(at) == Some(&b'^');
    at += usize::from(negated);
    let mut found = false;
    let next = loop {
        match pattern[at..] {
            [] => break at,
            [b'\\', escaped, ..] => {
                found |= escaped == byte;
                at += 2;
            }
            [b']', ..] => break at + 1,
            [low, b'-', high, ..] => {
                found |= in_range(low, high, byte, nocase);
                at += 3;
            }
            [literal, ..] => {
                found |= same(literal, byte, nocase);
                at += 1;
            }
        }
    };
    (found != negated).then_some(next)
}

/// Signed comparison; with `nocase` the ends are put in order first and lowered then, which leaves
/// some ranges of mixed case empty. Both as in Redis.
fn in_range(low: u8, high: u8, byte: u8, nocase: bool) -> bool {
    let (mut low, mut high, mut byte) = (low.cast_signed(), high.cast_signed(), byte);
    if low > high {
        std::mem::swap(&mut low, &mut high);
    }
    if nocase {
        let lower = |number: i8| number.cast_unsigned().to_ascii_lowercase().cast_signed();
        (low, high, byte) = (lower(low), lower(high), byte.to_ascii_lowercase());
    }
    (low..=high).contains(&byte.cast_signed())
}

fn same(a: u8, b: u8, nocase: bool) -> bool {
    if nocase {
        a.eq_ignore_ascii_case(&b)
    } else {
        a == b
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By the definition: a star tries every reach, the text never being empty for it.
    fn naive(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
        match (pattern, text) {
            ([], []) => true,
            ([], _) | (_, []) => false,
            ([b'*'], _) => true,
            ([b'*', rest @ ..], _) => {
                let rest = &rest[rest.iter().take_while(|&&byte| byte == b'*').count()..];
                rest.is_empty() || (0..text.len()).any(|from| naive(rest, &text[from..], nocase))
            }
            (_, [byte, more @ ..]) => element(pattern, 0, *byte, nocase).is_some_and(|next| {
                let rest = &pattern[next..];
                if more.is_empty() {
                    rest.iter().all(|&byte| byte == b'*')
                } else {
                    naive(rest, more, nocase)
                }
            }),
        }
    }

    #[test]
    fn the_ordinary() {
        for (pattern, text, want) in [
            ("h?llo", "hello", true),
            ("h*llo", "hllo", true),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hello", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hbllo", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("*", "anything", true),
            ("a*b*c", "a123b456c", true),
            ("a*b*c", "a123b456", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes(), false),
                want,
                "{pattern} {text}"
            );
        }
        assert!(matches(b"H[A-Z]LLO", b"hello", true));
        assert!(!matches(b"H", b"h", false));
    }

    #[test]
    fn the_strange() {
        assert!(!matches(b"*", b"", false));
        assert!(matches(b"", b"", false));
        assert!(matches(b"[^", b"x", false));
        assert!(matches(b"[a", b"a", false));
        assert!(!matches(b"[", b"[", false));
        assert!(matches(b"a\\", b"a\\", false));
        assert!(!matches(b"[]a]", b"a", false));
        assert!(matches(b"[\\]]", b"]", false));
        assert!(!matches(b"[\\A]", b"a", true));
        assert!(!matches(b"[\x7f-\x80]", b"\xff\xff", false));
        assert!(matches(b"[\xf0-\x01]", b"\xff", false));
        assert!(!matches(b"[Z-a]", b"z", true));
    }

    #[test]
    fn evil_patterns_end() {
        let text = vec![b'a'; 20_000];
        let pattern = [b"*a".repeat(900), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &text, false));
        assert!(matches(&b"*a".repeat(1000), &text, false));
        assert!(!matches(&b"*a".repeat(1001), &text, false));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn equals_the_naive_matcher(
            pattern in "[ab*?\\[\\]^\\-A\\\\]{0,10}", text in "[abA\\-]{0,8}", nocase in any::<bool>()
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(pattern, text, nocase), naive(pattern, text, nocase));
        }

        #[test]
        fn garbage_never_panics(
            pattern in proptest::collection::vec(any::<u8>(), 0..30),
            text in proptest::collection::vec(any::<u8>(), 0..30),
        ) {
            let _ = (matches(&pattern, &text, false), matches(&pattern, &text, true));
        }
    }
}
