//! The parser against a naive model, against any split of the input, and against garbage.

use super::*;

fn parse_all(input: &[u8], limits: ParseLimits) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
    let mut parser = RequestParser::new();
    let mut spans = Vec::new();
    let (mut commands, mut at) = (Vec::new(), 0);
    loop {
        match parser.parse(&input[at..], &mut spans, limits) {
            Ok(Parsed::Complete { consumed }) => {
                commands.push(cut(&input[at..], &spans));
                at += consumed;
            }
            Ok(Parsed::Inline { consumed }) => {
                commands.push(cut(parser.inline_bytes(), &spans));
                at += consumed;
            }
            Ok(Parsed::Empty { consumed }) => at += consumed,
            Ok(Parsed::Incomplete) => return (commands, None),
            Err(error) => return (commands, Some(error)),
        }
    }
}

fn cut(bytes: &[u8], spans: &[(u32, u32)]) -> Vec<Vec<u8>> {
    spans
        .iter()
        .map(|&(start, end)| bytes[start as usize..end as usize].to_vec())
        .collect()
}

#[test]
fn a_get() {
    let (commands, error) = parse_all(
        b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n",
        ParseLimits::default(),
    );
    assert_eq!(error, None);
    assert_eq!(
        commands,
        [vec![b"GET".to_vec(), b"k".to_vec()], vec![b"PING".to_vec()]]
    );
}
