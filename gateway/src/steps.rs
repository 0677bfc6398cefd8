//! Commands that the gateway does in steps.
//!
//! ```text
//!   DEBUG DIGEST    ask all workers ─> join what they say of each database
//!   RANDOMKEY       one worker after the other until one has a key
//!   SCRIPT LOAD     a worker looks whether it compiles ─> the supervisor is asked
//! ```
//!
//! A step that has begun is carried through even if the client goes away.

use std::collections::BTreeMap;

use proto::CommandError;
use proto::catalogue::StorageCommand;
use proto::counters::{DatabaseCounter, worker_page};
use proto::digest::Digest;
use proto::number::parse_i64;
use proto::slot::slot_of;

use crate::call::Call;
use crate::core::{Core, Flow, Ticket};
use crate::gather::{BadPart, Finish, Gather, array, bulk, integer, reply_len};
use crate::internal::Request;

type Bytes = Vec<u8>;

/// What a command in steps does when the replies of a step have come.
#[derive(Debug)]
pub(crate) enum Steps {
    /// DEBUG DIGEST: all workers are being asked.
    Digest,
    /// FUNCTION LOAD, FUNCTION RESTORE: a worker looks whether the libraries can be loaded.
    Libraries(crate::commands::LibraryPolicy),
    /// SCRIPT LOAD: a worker looks whether it compiles.
    ScriptLoad { script: proto::registry::Script },
    /// RANDOMKEY: a worker is being asked; it and these others had none.
    Random {
        command: StorageCommand,
        untried: Vec<usize>,
    },
}

/// What comes after a step.
pub(crate) enum Then {
    Reply(Bytes),
    Step(Vec<Request>, Steps),
    /// The supervisor is asked; this is the reply if all is well.
    Ask(runtime::Request, Bytes),
}

impl Core {
    pub(crate) fn begin(&mut self, index: u32, requests: Vec<Request>, steps: Steps) -> Flow {
        // What has begun is carried through, so nothing before it may be called back.
        if let Some(wait) = self.wait_for_earlier(index) {
            return wait;
        }
        let gone = requests
            .iter()
            .find(|request| !self.lanes.is_usable(request.worker));
        if let Some(worker) = gone.map(|request| request.worker) {
            return self.unavailable(index, worker);
        }
        let ticket = self.answer_later(index);
        self.send_step(ticket, requests, Finish::Step(Box::new(steps)));
        Flow::Stop
    }

    /// RANDOMKEY over several workers, each chosen as likely as it has keys.
    pub(crate) fn random_key(&mut self, call: &Call<'_>, command: StorageCommand) -> Flow {
        let database = self
            .get(call.index)
            .map_or(0, |connection| connection.database);
        let keys = worker_page::database(database, DatabaseCounter::Keys);
        let weights: Vec<u64> = (0..self.lanes.workers())
            .map(|worker| self.lanes.counter_of(worker, keys))
            .collect();
        let total: u64 = weights.iter().sum();
        let mut ticket = if total == 0 { 0 } else { self.random() % total };
        let chosen = weights.iter().position(|&weight| {
            let here = ticket < weight;
            ticket = ticket.saturating_sub(weight);
            here
        });
        let chosen = chosen.unwrap_or(0);
        let untried = (0..weights.len())
            .filter(|&worker| worker != chosen)
            .collect();
        let request = Request {
            command,
            worker: chosen,
            slot: 0,
            database: None,
            for_client: true,
            arguments: Vec::new(),
        };
        self.begin(
            call.index,
            vec![request],
            Steps::Random { command, untried },
        )
    }

    /// The replies of a step have come: the next one, or the end.
    pub(crate) fn next_step(&mut self, ticket: Ticket, gather: Box<Gather>) {
        let Some(steps) = gather.steps() else { return };
        let then = match gather.error() {
            Some(error) => Ok(Then::Reply(error.to_vec())),
            None => self.after(steps, &gather),
        };
        match then {
            Ok(Then::Step(requests, steps)) => {
                let gone = requests
                    .iter()
                    .any(|request| !self.lanes.is_usable(request.worker));
                if gone {
                    let what = "the storage worker of this key";
                    return self
                        .end_steps(ticket, &error_reply(&CommandError::Unavailable { what }));
                }
                self.send_step(ticket, requests, Finish::Step(Box::new(steps)));
            }
            Ok(Then::Reply(reply)) => self.end_steps(ticket, &reply),
            Ok(Then::Ask(request, reply)) => {
                if !self.ask_supervisor_for(ticket, request, reply) {
                    self.end_steps(ticket, &error_reply(&CommandError::NoSupervisor));
                }
            }
            Err(BadPart) => {
                tracing::error!(
                    ?steps,
                    "a storage worker answered a step with something else"
                );
                self.end_steps(ticket, &error_reply(&CommandError::Internal));
            }
        }
    }

    fn end_steps(&mut self, ticket: Ticket, reply: &[u8]) {
        self.deliver(ticket, reply);
        if self
            .find_mut(ticket.who)
            .is_some_and(|connection| connection.facts.ghost)
        {
            self.lanes.settle_transfers(ticket.who, true);
            self.free_place(ticket.who.index);
        }
    }

    fn after(&self, steps: &Steps, gather: &Gather) -> Result<Then, BadPart> {
        let reply = gather.part(0);
        match steps {
            Steps::Digest => Ok(Then::Reply(joined_digest(gather)?)),
            Steps::Libraries(policy) => policy.after(reply),
            Steps::ScriptLoad { script } => Ok(add_script(script)),
            Steps::Random { command, untried } => {
                let mut untried = untried.clone();
                if bulk(reply).ok_or(BadPart)?.is_some() || untried.is_empty() {
                    return Ok(Then::Reply(reply.to_vec()));
                }
                let mut request = self.request(*command, b"", Vec::new());
                request.worker = untried.remove(0);
                request.for_client = true;
                Ok(Then::Step(
                    vec![request],
                    Steps::Random {
                        command: *command,
                        untried,
                    },
                ))
            }
        }
    }

    /// One request per worker for arguments of which every `step`th, the first included, is a key; and
    /// in which request each key went.
    pub(crate) fn by_worker(
        &self,
        command: StorageCommand,
        arguments: &[Bytes],
        step: usize,
    ) -> (Vec<Request>, Vec<u8>) {
        let mut requests: Vec<Request> = Vec::new();
        let mut order = Vec::new();
        for chunk in arguments.chunks(step) {
            let key = chunk.first().map(Vec::as_slice).unwrap_or_default();
            let worker = self.lanes.owner(slot_of(key));
            let place = requests.iter().position(|request| request.worker == worker);
            let place = place.unwrap_or_else(|| {
                requests.push(self.request(command, key, Vec::new()));
                requests.len() - 1
            });
            requests[place].arguments.extend_from_slice(chunk);
            order.push(u8::try_from(place).unwrap_or(u8::MAX));
        }
        (requests, order)
    }

    /// A request for the owner of `key`.
    fn request(&self, command: StorageCommand, key: &[u8], arguments: Vec<Bytes>) -> Request {
        let slot = slot_of(key);
        let worker = self.lanes.owner(slot);
        Request {
            command,
            worker,
            slot,
            database: None,
            for_client: false,
            arguments,
        }
    }

    /// The number of a database, as SELECT and COPY take it.
    pub(crate) fn database_number(&self, text: &[u8]) -> Result<u16, CommandError> {
        let number = parse_i64(text).ok_or(CommandError::NotAnInteger)?;
        if i32::try_from(number).is_err() {
            return Err(CommandError::NotInt32);
        }
        u16::try_from(number)
            .ok()
            .filter(|&number| number < self.live.databases)
            .ok_or(CommandError::DatabaseOutOfRange)
    }
}

/// The digest of the whole data set from the digests of databases, as a reply.
fn joined_digest(gather: &Gather) -> Result<Bytes, BadPart> {
    let mut databases: BTreeMap<i64, Digest> = BTreeMap::new();
    for part in gather.parts() {
        let (_, count, mut rest) = array(part).ok_or(BadPart)?;
        for _ in 0..count / 2 {
            let database = integer(rest).ok_or(BadPart)?;
            rest = rest.get(reply_len(rest).ok_or(BadPart)?..).ok_or(BadPart)?;
            let digest = bulk(rest).flatten().and_then(Digest::from_bytes);
            rest = rest.get(reply_len(rest).ok_or(BadPart)?..).ok_or(BadPart)?;
            let joined = databases.entry(database).or_default();
            joined.join(&digest.ok_or(BadPart)?);
        }
    }
    let mut all = Digest::default();
    for (database, digest) in databases {
        all.mix(&(database as u32).to_be_bytes());
        all.join(&digest);
    }
    Ok(format!("+{all}\r\n").into_bytes())
}

/// The script compiles: all are to know it.
fn add_script(script: &proto::registry::Script) -> Then {
    let answer = format!("${}\r\n{}\r\n", script.sha1.len(), script.sha1);
    let request = runtime::Request::AddScript(script.clone());
    Then::Ask(request, answer.into_bytes())
}

fn error_reply(error: &CommandError) -> Bytes {
    let mut reply = Vec::new();
    error.write_resp(&mut reply);
    reply
}
