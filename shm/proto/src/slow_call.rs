//! What is kept of a slow command: how its arguments are shortened for the slow log.
//!
//! The first 31 arguments or all 32, and 128 bytes of each, with a word on what was left out; so an
//! entry has a bounded size whatever a client sent.

use crate::resp::ReplyWriter;

/// Arguments of an entry.
const ARGUMENTS_MAX: usize = 32;
/// Bytes of an argument.
const BYTES_MAX: usize = 128;

/// Writes `count` arguments, the name included, as an array of strings.
pub fn write_arguments<'a>(
    reply: &mut ReplyWriter<'_>,
    count: usize,
    arguments: impl Iterator<Item = &'a [u8]>,
) {
    let is_whole = count <= ARGUMENTS_MAX;
    let shown = if is_whole { count } else { ARGUMENTS_MAX - 1 };
    reply.array(count.min(ARGUMENTS_MAX));
    for argument in arguments.take(shown) {
        match argument.split_at_checked(BYTES_MAX) {
            Some((kept, rest)) if !rest.is_empty() => {
                let note = format!("... ({} more bytes)", rest.len());
                reply.bulk(&[kept, note.as_bytes()].concat());
            }
            _ => reply.bulk(argument),
        }
    }
    if !is_whole {
        reply.bulk(format!("... ({} more arguments)", count - shown).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(arguments: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut reply = ReplyWriter::to_vec(&mut out, false);
        write_arguments(&mut reply, arguments.len(), arguments.iter().copied());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn long_ones_are_cut() {
        let long = [b'x'; 130];
        let text = written(&[b"get", &long[..128], &long]);
        let kept = "x".repeat(128);
        assert_eq!(
            text,
            format!("*3\r\n$3\r\nget\r\n$128\r\n{kept}\r\n$146\r\n{kept}... (2 more bytes)\r\n")
        );
    }

    #[test]
    fn many_are_counted() {
        let words: Vec<&[u8]> = vec![b"a"; 32];
        assert!(written(&words).ends_with("$1\r\na\r\n"));
        let words: Vec<&[u8]> = vec![b"a"; 40];
        let text = written(&words);
        assert!(text.starts_with("*32\r\n"));
        assert!(text.ends_with("$1\r\na\r\n$22\r\n... (9 more arguments)\r\n"));
    }
}
