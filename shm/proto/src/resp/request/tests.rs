//! The parser against a naive model, against any split of the input, and against garbage.
//!
//! The model reads the whole input at once, by the letter of what Redis does, and knows nothing of
//! resuming. Errors and limits were compared with Redis 8.0.6 over a socket.

use super::*;
use proptest::prelude::*;

type Commands = Vec<Vec<Vec<u8>>>;
/// Arguments, and bytes that they took.
type Command = (Vec<Vec<u8>>, usize);

/// Feeds `input` in pieces that end at `cuts`, as a connection would: what is not consumed is given
/// again with more behind it.
fn parse_pieces(
    input: &[u8],
    cuts: &[usize],
    limits: ParseLimits,
) -> (Commands, Option<ProtocolError>) {
    let mut parser = RequestParser::new();
    let mut spans = Vec::new();
    let (mut commands, mut at) = (Vec::new(), 0);
    for end in cuts.iter().copied().chain([input.len()]) {
        loop {
            match parser.parse(&input[at..end.max(at)], &mut spans, limits) {
                Ok(Parsed::Complete { consumed }) => {
                    commands.push(cut(&input[at..], &spans));
                    at += consumed;
                }
                Ok(Parsed::Inline { consumed }) => {
                    commands.push(cut(parser.inline_bytes(), &spans));
                    at += consumed;
                }
                Ok(Parsed::Empty { consumed }) => at += consumed,
                Ok(Parsed::Incomplete) => break,
                Err(error) => return (commands, Some(error)),
            }
        }
    }
    (commands, None)
}

fn parse_all(input: &[u8]) -> (Commands, Option<ProtocolError>) {
    parse_pieces(input, &[], ParseLimits::default())
}

fn cut(bytes: &[u8], spans: &[(u32, u32)]) -> Vec<Vec<u8>> {
    spans
        .iter()
        .map(|&(start, end)| bytes[start as usize..end as usize].to_vec())
        .collect()
}

/// One command at the start of `input`: its arguments and its length. `Ok(None)`: not whole yet.
fn model(input: &[u8]) -> Result<Option<Command>, ProtocolError> {
    if input.first() != Some(&b'*') {
        let line = input
            .split(|&byte| byte == b'\n' || byte == 0)
            .next()
            .unwrap_or_default();
        if input.get(line.len()) != Some(&b'\n') {
            let too_big = input.len() > INLINE_BYTES_MAX;
            return if too_big {
                Err(ProtocolError::TooBigInline)
            } else {
                Ok(None)
            };
        }
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        split_words(text, &mut bytes, &mut spans).map_err(|_| ProtocolError::UnbalancedQuotes)?;
        return Ok(Some((cut(&bytes, &spans), line.len() + 1)));
    }
    let number = |at: usize| {
        let line: Vec<u8> = input[at..]
            .iter()
            .copied()
            .take_while(|&byte| byte != b'\r' && byte != 0)
            .collect();
        let whole = input.get(at + line.len()) == Some(&b'\r') && at + line.len() + 1 < input.len();
        (
            whole,
            parse_i64(line.get(1..).unwrap_or_default()),
            at + line.len() + 2,
            line.first().copied(),
        )
    };
    let (whole, count, mut at, _) = number(0);
    if !whole {
        return Ok(None);
    }
    let count = count
        .filter(|&n| n <= ARGUMENTS_MAX)
        .ok_or(ProtocolError::InvalidMultibulkLength)?;
    let mut arguments = Vec::new();
    for _ in 0..count {
        if at >= input.len() {
            return Ok(None);
        }
        let (whole, length, next, kind) = number(at);
        if !whole {
            return Ok(None);
        }
        if input[at] != b'$' {
            return Err(ProtocolError::ExpectedDollar(kind.unwrap_or(b'\r')));
        }
        let length = length
            .filter(|&n| (0..=512 * 1024 * 1024).contains(&n))
            .ok_or(ProtocolError::InvalidBulkLength)? as usize;
        if next + length + 2 > input.len() {
            return Ok(None);
        }
        arguments.push(input[next..next + length].to_vec());
        at = next + length + 2;
    }
    Ok(Some((arguments, at)))
}

fn model_all(input: &[u8]) -> (Commands, Option<ProtocolError>) {
    let (mut commands, mut at) = (Vec::new(), 0);
    while at < input.len() {
        match model(&input[at..]) {
            Ok(Some((arguments, length))) => {
                at += length;
                if !arguments.is_empty() {
                    commands.push(arguments);
                }
            }
            Ok(None) => break,
            Err(error) => return (commands, Some(error)),
        }
    }
    (commands, None)
}

fn encode(arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
    out
}

#[test]
fn multibulk_and_inline_follow_each_other() {
    let (commands, error) =
        parse_all(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n\r\n*0\r\n*-1\r\nPING 'a b'\r\n");
    assert_eq!(error, None);
    assert_eq!(
        commands,
        [
            vec![b"GET".to_vec(), b"k".to_vec()],
            vec![b"PING".to_vec(), b"a b".to_vec()]
        ]
    );
}

#[test]
fn errors_are_those_of_the_reference() {
    let long = vec![b'1'; INLINE_BYTES_MAX + 1];
    let digits = [b"*", &long[..]].concat();
    let bulk = [b"*1\r\n$", &long[..]].concat();
    for (input, want) in [
        (&b"*abc\r\n"[..], "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"*01\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*1\r\n:1\r\n", "expected '$', got ':'"),
        (b"*1\r\n\r\n", "expected '$', got ' '"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"GET \"a\r\n", "unbalanced quotes in request"),
        (&long, "too big inline request"),
        (&digits, "too big mbulk count string"),
        (&bulk, "too big bulk count string"),
    ] {
        let (_, error) = parse_all(input);
        let line = error.map(|error| String::from_utf8(error.line()).unwrap());
        assert_eq!(line, Some(format!("ERR Protocol error: {want}")));
    }
}

#[test]
fn strangers_may_send_little() {
    let limits = ParseLimits {
        authenticated: false,
        ..ParseLimits::default()
    };
    let parse = |input: &[u8]| parse_pieces(input, &[], limits).1;
    assert_eq!(parse(b"*10\r\n"), None);
    assert_eq!(
        parse(b"*11\r\n"),
        Some(ProtocolError::UnauthenticatedMultibulk)
    );
    assert_eq!(parse(b"*1\r\n$16384\r\n"), None);
    assert_eq!(
        parse(b"*1\r\n$16385\r\n"),
        Some(ProtocolError::UnauthenticatedBulk)
    );
}

#[test]
fn a_big_command_in_many_pieces_is_not_scanned_again() {
    let arguments: Vec<_> = (0..20_000).map(|n| n.to_string().into_bytes()).collect();
    let input = encode(&arguments);
    let mut parser = RequestParser::new();
    let mut spans = Vec::new();
    let mut last_offset = 0;
    for end in (1..input.len()).step_by(7) {
        let parsed = parser.parse(&input[..end], &mut spans, ParseLimits::default());
        assert_eq!(parsed, Ok(Parsed::Incomplete));
        assert!(parser.offset >= last_offset);
        last_offset = parser.offset;
    }
    let parsed = parser.parse(&input, &mut spans, ParseLimits::default());
    assert_eq!(
        parsed,
        Ok(Parsed::Complete {
            consumed: input.len()
        })
    );
    assert_eq!(cut(&input, &spans), arguments);
}

#[test]
fn announcing_arguments_costs_no_memory() {
    let mut parser = RequestParser::new();
    let mut spans = Vec::new();
    let parsed = parser.parse(b"*2147483647\r\n", &mut spans, ParseLimits::default());
    assert_eq!(parsed, Ok(Parsed::Incomplete));
    assert!(parser.saved.capacity() <= ARGUMENTS_RESERVED_MAX);
}

#[test]
fn a_big_argument_says_how_many_bytes_it_wants() {
    let mut parser = RequestParser::new();
    let (mut spans, limits) = (Vec::new(), ParseLimits::default());
    let parsed = parser.parse(b"*2\r\n$1\r\na\r\n$1000\r\nx", &mut spans, limits);
    assert_eq!(parsed, Ok(Parsed::Incomplete));
    assert_eq!(
        parser.wanted(),
        "*2\r\n$1\r\na\r\n$1000\r\n".len() + 1000 + 2
    );
}

#[test]
fn http_is_recognised() {
    assert!(is_cross_protocol_attack(b"POST") && is_cross_protocol_attack(b"Host:"));
    assert!(!is_cross_protocol_attack(b"GET"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn commands_come_out_as_they_went_in_however_they_are_split(
        commands in proptest::collection::vec(proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..30), 1..5), 1..5),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
    ) {
        let input: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(input.len())).collect();
        cuts.sort_unstable();
        prop_assert_eq!(parse_pieces(&input, &cuts, ParseLimits::default()), (commands, None));
    }

    #[test]
    fn garbage_is_read_as_the_model_reads_it_however_it_is_split(
        input in proptest::collection::vec(proptest::sample::select(
            b"**$$\r\n\r\n\r\n00112239-+ab\"'\\x \0".to_vec()), 0..40),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
    ) {
        let mut cuts: Vec<_> =
            cuts.iter().map(|cut| cut.index(input.len().max(1))).collect();
        cuts.sort_unstable();
        let want = model_all(&input);
        prop_assert_eq!(&parse_all(&input), &want);
        prop_assert_eq!(&parse_pieces(&input, &cuts, ParseLimits::default()), &want);
    }

    #[test]
    fn commands_with_a_few_changed_bytes_are_read_as_the_model_reads_them(
        arguments in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..12), 1..4),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(),
            proptest::sample::select(b"*$\r\n0129-a\0".to_vec())), 1..3),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..4),
    ) {
        let mut input = encode(&arguments).repeat(2);
        for (at, byte) in changes {
            let at = at.index(input.len());
            input[at] = byte;
        }
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(input.len())).collect();
        cuts.sort_unstable();
        let want = model_all(&input);
        prop_assert_eq!(&parse_pieces(&input, &cuts, ParseLimits::default()), &want);
    }
}
