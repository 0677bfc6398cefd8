//! Plays a transcript to a server and compares.
//!
//! Every case starts with empty databases and new connections; in RESP3 each connection begins with HELLO 3. All
//! cases of a file are played before the failures are reported, so that one run shows all of them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::bless;
use super::parse::{Case, Step, StepKind, Transcript};
use crate::client::{Client, PATIENCE, ReadError, encode_command};
use crate::pattern::{Memory, Pattern, first_difference};
use crate::reply::Reply;
use crate::server::{Kind, Server, Setup};
use crate::words::Word;

/// How long "no reply" must last.
const QUIET: Duration = Duration::from_millis(60);
/// How long replies of unknown number may take while they are recorded.
const RECORDING: Duration = Duration::from_millis(250);

/// RESP2 or RESP3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// What a connection speaks at first.
    Resp2,
    /// After HELLO 3.
    Resp3,
}

/// What came instead of, or as, an expected reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A reply.
    Reply(Reply),
    /// The connection was closed.
    Closed,
    /// Nothing came.
    Nothing,
}

impl Outcome {
    /// The way it stands in a transcript.
    #[must_use]
    pub fn render(&self) -> String {
        match self {
            Outcome::Reply(reply) => reply.render(),
            Outcome::Closed => "closed".into(),
            Outcome::Nothing => "nothing".into(),
        }
    }

    fn fits(&self, pattern: &Pattern, memory: &mut Memory) -> bool {
        match (self, pattern) {
            (Outcome::Closed, Pattern::Closed) | (Outcome::Nothing, Pattern::Nothing) => true,
            (Outcome::Reply(reply), _) => pattern.fits(reply, memory),
            _ => false,
        }
    }
}

/// Where a case is played.
#[derive(Debug)]
pub struct World<'a> {
    /// The server.
    pub server: &'a Server,
    /// The protocol.
    pub protocol: Protocol,
    /// Whether what came is written into the file.
    pub recording: bool,
}

/// Whether this run writes the expected replies: asked for, and a real Redis answers.
fn is_recording(kind: &Kind) -> bool {
    std::env::var("UPDATE_EXPECT").is_ok_and(|value| value == "1") && !kind.is_ours()
}

/// Plays all cases of a transcript file, named from the root of the workspace, to a server of its own.
///
/// # Panics
/// With all differences, when there are any.
pub fn check_file(file: &str, kind: &Kind) {
    let path = crate::workspace().join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let transcript = Transcript::parse(&text).unwrap_or_else(|what| panic!("{file}: {what}"));
    let start = |own: &[(String, String)]| {
        let mut setup = Setup::new(kind.clone());
        for (name, value) in transcript.settings.iter().chain(own) {
            setup = setup.with(name, value);
        }
        for text in &transcript.announced {
            setup = setup.announcing(text);
        }
        setup.start()
    };
    let shared = start(&[]);
    let recording = is_recording(kind);
    let mut records = bless::Records::default();
    let mut failures = String::new();
    for case in transcript.cases.iter().filter(|case| applies(case, kind)) {
        for protocol in protocols(case) {
            let own = case.wants_own_server().then(|| start(&case.settings));
            let server = own.as_ref().unwrap_or(&shared);
            let world = World {
                server,
                protocol,
                recording,
            };
            if let Err(what) = play(case, &world, &mut records) {
                let _ = write!(
                    failures,
                    "\n{file}:{} {:?} ({protocol:?})\n{what}",
                    case.line, case.title
                );
            }
        }
    }
    if recording {
        let text = bless::rewrite(&transcript, &records);
        std::fs::write(&path, text).expect("the transcript can be written");
    }
    assert!(failures.is_empty(), "{kind:?}{failures}");
}

fn applies(case: &Case, kind: &Kind) -> bool {
    match kind {
        Kind::Redis { .. } => !case.has("ours"),
        Kind::Sirocco { workers, .. } => {
            !case.has("redis") && (*workers == 1 || !case.has("one-worker"))
        }
    }
}

fn protocols(case: &Case) -> Vec<Protocol> {
    if case.has("plain") || case.has("resp2") {
        vec![Protocol::Resp2]
    } else if case.has("resp3") {
        vec![Protocol::Resp3]
    } else {
        vec![Protocol::Resp2, Protocol::Resp3]
    }
}

fn play(case: &Case, world: &World<'_>, records: &mut bless::Records) -> Result<(), String> {
    if !case.wants_own_server() {
        let mut admin = world.server.connect();
        admin.run("FLUSHALL");
    }
    let mut player = Player {
        world,
        case,
        clients: HashMap::new(),
        memory: Memory::new(),
        failures: String::new(),
    };
    for step in &case.steps {
        if let Err(what) = player.step(step, records) {
            let _ = writeln!(player.failures, "  line {}: {what}", step.line);
            break;
        }
    }
    for (name, client) in &mut player.clients {
        let rest = client.leftover();
        if !rest.is_empty() && !world.recording {
            let rest = crate::reply::quote(&rest);
            let _ = writeln!(
                player.failures,
                "  at the end connection {name} has received more: {rest}"
            );
        }
    }
    if player.failures.is_empty() {
        Ok(())
    } else {
        Err(player.failures)
    }
}

struct Player<'a> {
    world: &'a World<'a>,
    case: &'a Case,
    clients: HashMap<String, Client>,
    memory: Memory,
    failures: String,
}

impl Player<'_> {
    fn client(&mut self, name: &str) -> &mut Client {
        let world = self.world;
        let hello = world.protocol == Protocol::Resp3 && !self.case.has("plain");
        self.clients.entry(name.to_owned()).or_insert_with(|| {
            let mut client = world.server.connect();
            if hello {
                client.run("HELLO 3");
            }
            client
        })
    }

    fn step(&mut self, step: &Step, records: &mut bless::Records) -> Result<(), String> {
        let start = Instant::now();
        loop {
            let remembered = self.memory.clone();
            let outcomes = self.act(step)?;
            let difference = self.compare(step, &outcomes)?;
            match difference {
                Some(_) if step.eventually && start.elapsed() < PATIENCE => {
                    self.memory = remembered;
                    crate::pause(Duration::from_millis(10));
                }
                _ if self.world.recording => {
                    self.memory = remembered;
                    records.add(step, self.world.protocol, outcomes, &mut self.memory);
                    return Ok(());
                }
                Some(text) => {
                    self.failures.push_str(&text);
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
    }

    fn act(&mut self, step: &Step) -> Result<Vec<Outcome>, String> {
        let (on, bytes, count) = match &step.kind {
            StepKind::Wait { millis } => {
                crate::pause(Duration::from_millis(*millis));
                return Ok(Vec::new());
            }
            StepKind::Close { on } => {
                self.clients.remove(on);
                return Ok(Vec::new());
            }
            StepKind::Read { on } => (on, Vec::new(), None),
            StepKind::Raw { on, bytes } => (on, self.words(bytes)?.concat(), None),
            StepKind::Send { on, commands } => {
                let mut bytes = Vec::new();
                for command in commands {
                    encode_command(&self.words(command)?, &mut bytes);
                }
                (on, bytes, Some(commands.len()))
            }
        };
        let world = self.world;
        let client = self.client(on);
        if !bytes.is_empty() {
            // A server that refuses may close while it is still written to: what it said counts.
            let _ = client.send_raw(&bytes);
        }
        Ok(if world.recording {
            record(client, count)
        } else {
            expect(client, step, world)?
        })
    }

    fn words(&self, words: &[Word]) -> Result<Vec<Vec<u8>>, String> {
        words.iter().map(|word| word.bytes(&self.memory)).collect()
    }

    fn compare(&mut self, step: &Step, outcomes: &[Outcome]) -> Result<Option<String>, String> {
        let mut text = String::new();
        for (expected, got) in step.replies.iter().zip(outcomes) {
            let wanted = match chosen(expected, self.world) {
                Err(_) if self.world.recording => continue,
                other => other?,
            };
            let pattern = Pattern::parse(wanted)?;
            if !got.fits(&pattern, &mut self.memory) {
                let _ = writeln!(
                    text,
                    "  line {}: {}",
                    step.line,
                    differ(wanted, &pattern, got)
                );
            }
        }
        Ok((!text.is_empty()).then_some(text))
    }
}

/// Both sides, or for long replies the first place where they differ.
fn differ(wanted: &str, pattern: &Pattern, got: &Outcome) -> String {
    let text = got.render();
    if let Outcome::Reply(reply) = got
        && wanted.len().max(text.len()) > 300
        && let Some(place) = first_difference(pattern, reply)
    {
        return format!("\n    {place}");
    }
    format!("\n    wanted {wanted}\n    got    {text}")
}

fn chosen<'a>(expected: &'a super::Expected, world: &World<'_>) -> Result<&'a str, String> {
    let ours = world.server.kind().is_ours();
    let three = world.protocol == Protocol::Resp3;
    expected
        .choose(ours, three)
        .ok_or_else(|| "no reply is written down for this protocol".into())
}

/// Reads as many replies as are expected.
fn expect(client: &mut Client, step: &Step, world: &World<'_>) -> Result<Vec<Outcome>, String> {
    if step.replies.is_empty() {
        return Err(
            "no reply is written down (UPDATE_EXPECT=1 records those of a real Redis)".into(),
        );
    }
    let mut outcomes = Vec::new();
    for expected in &step.replies {
        let patience = if chosen(expected, world)? == "nothing" {
            QUIET
        } else {
            PATIENCE
        };
        outcomes.push(receive(client, patience)?);
    }
    Ok(outcomes)
}

/// Reads as many replies as were asked for, or as come.
fn record(client: &mut Client, count: Option<usize>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    loop {
        if count.is_some_and(|count| outcomes.len() == count) {
            return outcomes;
        }
        let patience = if count.is_some() {
            RECORDING * 12
        } else {
            RECORDING
        };
        match receive(client, patience).unwrap_or(Outcome::Nothing) {
            Outcome::Nothing if count.is_none() && !outcomes.is_empty() => return outcomes,
            last @ (Outcome::Nothing | Outcome::Closed) => {
                outcomes.push(last);
                return outcomes;
            }
            reply @ Outcome::Reply(_) => outcomes.push(reply),
        }
    }
}

fn receive(client: &mut Client, patience: Duration) -> Result<Outcome, String> {
    match client.read(patience) {
        Ok(reply) => Ok(Outcome::Reply(reply)),
        Err(ReadError::Closed) => Ok(Outcome::Closed),
        Err(ReadError::Timeout) => Ok(Outcome::Nothing),
        Err(error) => Err(error.to_string()),
    }
}
