//! Reads a transcript; the format is in the header of the folder.

use std::ops::Range;

use crate::words::{self, Word};

/// A file of cases.
#[derive(Debug)]
pub struct Transcript {
    /// The lines as they stand, for writing it again.
    pub lines: Vec<String>,
    /// Settings for all cases.
    pub settings: Vec<(String, String)>,
    /// Texts of warnings and errors that its cases cause.
    pub announced: Vec<String>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// One case.
#[derive(Debug, Default)]
pub struct Case {
    /// What it shows, as a sentence.
    pub title: String,
    /// The number of its first line.
    pub line: usize,
    /// Its tags, without those with settings.
    pub tags: Vec<String>,
    /// Settings of a server of its own.
    pub settings: Vec<(String, String)>,
    /// What happens.
    pub steps: Vec<Step>,
}

impl Case {
    /// Whether it has a tag.
    #[must_use]
    pub fn has(&self, tag: &str) -> bool {
        self.tags.iter().any(|known| known == tag)
    }

    /// Whether it wants a server of its own.
    #[must_use]
    pub fn wants_own_server(&self) -> bool {
        self.has("own") || !self.settings.is_empty()
    }
}

/// Something that happens in a case.
#[derive(Debug)]
pub struct Step {
    /// The number of its line.
    pub line: usize,
    /// What is done.
    pub kind: StepKind,
    /// Whether it is done again until the replies fit.
    pub eventually: bool,
    /// The replies that are expected.
    pub replies: Vec<Expected>,
    /// The lines that hold them, counted from 0.
    pub reply_lines: Range<usize>,
}

/// What is done in a step.
#[derive(Debug)]
pub enum StepKind {
    /// Commands in one write.
    Send {
        /// The connection.
        on: String,
        /// The commands, each as words.
        commands: Vec<Vec<Word>>,
    },
    /// Bytes as they are.
    Raw {
        /// The connection.
        on: String,
        /// The bytes.
        bytes: Vec<Word>,
    },
    /// Nothing is sent, replies are read.
    Read {
        /// The connection.
        on: String,
    },
    /// Time passes.
    Wait {
        /// How long.
        millis: u64,
    },
    /// A connection is closed.
    Close {
        /// The connection.
        on: String,
    },
}

/// The expected reply in the four circumstances; `None` means as in the one before.
#[derive(Debug, Default, Clone)]
pub struct Expected {
    /// `<`
    pub base: Option<String>,
    /// `<3`
    pub three: Option<String>,
    /// `<ours`
    pub ours: Option<String>,
    /// `<ours3`
    pub ours_three: Option<String>,
}

impl Expected {
    /// The pattern that holds.
    #[must_use]
    pub fn choose(&self, ours: bool, resp3: bool) -> Option<&str> {
        let own = match (ours, resp3) {
            (true, true) => self.ours_three.as_ref().or(self.ours.as_ref()),
            (true, false) => self.ours.as_ref(),
            (false, _) => None,
        };
        let theirs = if resp3 {
            self.three.as_ref().or(self.base.as_ref())
        } else {
            self.base.as_ref()
        };
        own.or(theirs).map(String::as_str)
    }

    fn field(&mut self, label: &str) -> Option<&mut Option<String>> {
        Some(match label {
            "" => &mut self.base,
            "3" => &mut self.three,
            "ours" => &mut self.ours,
            "ours3" => &mut self.ours_three,
            _ => return None,
        })
    }
}

impl Transcript {
    /// Reads it from its text.
    ///
    /// # Errors
    /// The number of a line, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Transcript, String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut reader = Reader::default();
        for (index, line) in lines.iter().enumerate() {
            reader
                .line(index, line)
                .map_err(|what| format!("line {}: {what}", index + 1))?;
        }
        Ok(Transcript {
            lines,
            settings: reader.settings,
            announced: reader.announced,
            cases: reader.cases,
        })
    }
}

#[derive(Default)]
struct Reader {
    settings: Vec<(String, String)>,
    announced: Vec<String>,
    cases: Vec<Case>,
    pipelined: Vec<Vec<Word>>,
    eventually: bool,
    /// The kind of the reply line that a continuation would go on with.
    open_label: Option<String>,
}

impl Reader {
    fn line(&mut self, index: usize, line: &str) -> Result<(), String> {
        if let Some(label) = self.open_label.clone() {
            if line.starts_with("  ") {
                return self.continuation(index, &label, line);
            }
            self.open_label = None;
        }
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix("@with ") {
            self.settings.push(setting(rest)?);
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix("@logs ") {
            self.announced.push(rest.to_owned());
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix("== ") {
            self.cases.push(case(rest, index + 1)?);
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix('<') {
            let (label, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            return self.reply(index, label, rest);
        }
        if let Some(rest) = line.strip_prefix("! ") {
            return self.action(index, rest);
        }
        let (name, rest) = line
            .split_once('>')
            .ok_or_else(|| format!("not understood: {line:?}"))?;
        let on = if name.is_empty() { "a" } else { name };
        if !on.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(format!("{on:?} is no name of a connection"));
        }
        if let Some(rest) = rest.strip_prefix('>') {
            self.pipelined.push(words::split(rest)?);
            return Ok(());
        }
        if let Some(rest) = rest.strip_prefix('!') {
            let bytes = words::split(rest)?;
            return self.step(
                index,
                StepKind::Raw {
                    on: on.into(),
                    bytes,
                },
            );
        }
        let mut commands = std::mem::take(&mut self.pipelined);
        commands.push(words::split(rest)?);
        self.step(
            index,
            StepKind::Send {
                on: on.into(),
                commands,
            },
        )
    }

    fn action(&mut self, index: usize, text: &str) -> Result<(), String> {
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        let on = if rest.is_empty() { "a" } else { rest };
        match verb {
            "eventually" => {
                self.eventually = true;
                Ok(())
            }
            "wait" => {
                let millis = rest
                    .parse()
                    .map_err(|_| format!("{rest:?} is no count of milliseconds"))?;
                self.step(index, StepKind::Wait { millis })
            }
            "read" => self.step(index, StepKind::Read { on: on.into() }),
            "close" => self.step(index, StepKind::Close { on: on.into() }),
            _ => Err(format!("not understood: {text:?}")),
        }
    }

    fn step(&mut self, index: usize, kind: StepKind) -> Result<(), String> {
        let case = self.cases.last_mut().ok_or("no case has begun")?;
        case.steps.push(Step {
            line: index + 1,
            kind,
            eventually: std::mem::take(&mut self.eventually),
            replies: Vec::new(),
            reply_lines: index + 1..index + 1,
        });
        Ok(())
    }

    fn last_step(&mut self) -> Result<&mut Step, String> {
        let case = self.cases.last_mut().ok_or("no case has begun")?;
        case.steps
            .last_mut()
            .ok_or_else(|| "a reply without a command".into())
    }

    fn reply(&mut self, index: usize, label: &str, text: &str) -> Result<(), String> {
        let step = self.last_step()?;
        step.reply_lines.end = index + 1;
        if label.is_empty()
            || step
                .replies
                .last_mut()
                .and_then(|last| last.field(label))
                .is_none_or(|field| field.is_some())
        {
            step.replies.push(Expected::default());
        }
        let field = step.replies.last_mut().and_then(|last| last.field(label));
        *field.ok_or_else(|| format!("not understood: <{label}"))? = Some(text.to_owned());
        self.open_label = Some(label.to_owned());
        Ok(())
    }

    fn continuation(&mut self, index: usize, label: &str, text: &str) -> Result<(), String> {
        let step = self.last_step()?;
        step.reply_lines.end = index + 1;
        if let Some(Some(reply)) = step.replies.last_mut().and_then(|last| last.field(label)) {
            reply.push('\n');
            reply.push_str(text);
        }
        Ok(())
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .trim()
        .split_once(' ')
        .ok_or("a setting needs a name and a value")?;
    let value = value.trim();
    let value = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(value);
    Ok((name.into(), value.into()))
}

fn case(header: &str, line: usize) -> Result<Case, String> {
    let mut case = Case {
        line,
        ..Case::default()
    };
    let mut rest = header.trim();
    while let Some(inner) = rest.strip_suffix(']') {
        let (before, tag) = inner.rsplit_once('[').ok_or("[ is missing")?;
        match tag.strip_prefix("with ") {
            Some(text) => case.settings.push(setting(text)?),
            None if KNOWN_TAGS.contains(&tag) => case.tags.push(tag.into()),
            None => return Err(format!("unknown tag {tag:?}")),
        }
        rest = before.trim_end();
    }
    case.title = rest.into();
    Ok(case)
}

const KNOWN_TAGS: [&str; 7] = [
    "plain",
    "resp2",
    "resp3",
    "redis",
    "ours",
    "one-worker",
    "own",
];

/// The command names in a transcript, upper case; for a command with two words or more also the first two.
///
/// # Errors
/// When the transcript cannot be read.
pub fn command_names(text: &str) -> Result<Vec<String>, String> {
    let transcript = Transcript::parse(text)?;
    let mut names = Vec::new();
    for step in transcript.cases.iter().flat_map(|case| &case.steps) {
        let StepKind::Send { commands, .. } = &step.kind else {
            continue;
        };
        for command in commands {
            let mut words = command.iter().map(|word| match word {
                Word::Bytes(bytes) => String::from_utf8_lossy(bytes).to_uppercase(),
                Word::Remembered(_) | Word::Clock { .. } => String::new(),
            });
            let Some(first) = words.next() else { continue };
            if let Some(second) = words.next() {
                names.push(format!("{first} {second}"));
            }
            names.push(first);
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# What it is.
== first  [plain] [with maxmemory 1mb]
> SET a b
< +OK
>> GET a
b> GET b
< \"b\"
< $-1
<3 _
! wait 5
>! \"PING\\r\\n\"
< *[
    +a
  ]
";

    #[test]
    fn a_transcript_is_cut_into_steps() {
        let transcript = Transcript::parse(TEXT).expect("a transcript");
        let case = &transcript.cases[0];
        assert_eq!(
            (case.title.as_str(), case.has("plain"), case.settings.len()),
            ("first", true, 1)
        );
        assert_eq!(case.steps.len(), 4);
        assert_eq!(case.steps[1].replies.len(), 2);
        assert_eq!(case.steps[1].replies[1].choose(false, true), Some("_"));
        assert_eq!(
            case.steps[3].replies[0].base.as_deref(),
            Some("*[\n    +a\n  ]")
        );
        assert_eq!(case.steps[3].reply_lines, 11..14);
    }

    #[test]
    fn names_have_one_and_two_words() {
        let names = command_names(TEXT).expect("a transcript");
        assert_eq!(names, ["GET", "GET A", "GET B", "SET", "SET A"]);
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        assert_eq!(
            Transcript::parse("\n> GET a").expect_err("no case"),
            "line 2: no case has begun"
        );
    }
}
