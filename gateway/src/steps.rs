//! Commands over keys of several workers that the gateway does in steps.
//!
//! ```text
//!   RENAME a b    export a ─> import b, replacing ─> delete a
//!   RENAMENX a b  export a ─> import b, if absent ─> delete a
//!   COPY a b      export a ─> import b
//!   MSETNX        count existing keys ─> set, if none
//!   BITOP, LCS    fetch the strings ─> compute where the result belongs
//!   DEBUG DIGEST  ask all workers ─> join what they say of each database
//!   RANDOMKEY     one worker after the other until one has a key
//! ```
//!
//! They are not atomic yet: between two steps other clients see what is done so far. The key is never
//! lost: it exists at its new place before it is deleted at the old one. A step that has begun is
//! carried through even if the client goes away. With all keys on one worker none of this is used.

use std::collections::BTreeMap;

use proto::CommandError;
use proto::catalogue::{StepKind, StorageCommand};
use proto::counters::{DatabaseCounter, worker_page};
use proto::digest::Digest;
use proto::number::parse_i64;
use proto::slot::slot_of;

use crate::call::Call;
use crate::core::{Core, Flow, Ticket};
use crate::gather::{BadPart, Finish, Gather, array, bulk, integer, push_header, reply_len};
use crate::internal::{
    BITOP_STORE, DELETE, EXISTS, EXPORT, IMPORT, LCS, Request, SET_SEVERAL, STRINGS,
};

type Bytes = Vec<u8>;

/// What a command in steps does when the replies of a step have come.
#[derive(Debug)]
pub(crate) enum Steps {
    /// RENAME and RENAMENX: `from` is being exported.
    RenameExport {
        from: Bytes,
        to: Bytes,
        only_new: bool,
    },
    /// ... and imported as `to`.
    RenameImport { from: Bytes, only_new: bool },
    /// ... and deleted.
    RenameDelete { only_new: bool },
    /// COPY: the source is being exported.
    CopyExport {
        to: Bytes,
        database: u16,
        replace: bool,
    },
    /// MSETNX: existing keys are being counted.
    SetExists { pairs: Vec<Bytes> },
    /// ... and the pairs set.
    SetAll,
    /// BITOP: operands are being fetched; `order` says in which part each of them is.
    BitOpFetch {
        operation: Bytes,
        to: Bytes,
        order: Vec<u8>,
    },
    /// LCS: both strings are being fetched.
    LcsFetch { options: Vec<Bytes>, order: Vec<u8> },
    /// DEBUG DIGEST: all workers are being asked.
    Digest,
    /// FUNCTION LOAD, FUNCTION RESTORE: a worker looks whether the libraries can be loaded.
    Libraries(crate::commands::LibraryPolicy),
    /// SCRIPT LOAD: a worker looks whether it compiles.
    ScriptLoad { script: proto::registry::Script },
    /// The last step's reply is the client's.
    Pass,
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
    /// Begins a command whose keys live on several workers.
    pub(crate) fn start_steps(&mut self, call: &Call<'_>, kind: StepKind) -> Flow {
        let first = match kind {
            StepKind::Rename => Ok(self.rename(call, false)),
            StepKind::RenameNx => Ok(self.rename(call, true)),
            StepKind::Copy => self.copy(call),
            StepKind::MSetNx => Ok(self.set_all_new(call)),
            StepKind::BitOp => self.bit_operation(call),
            StepKind::Lcs => Ok(self.subsequence(call)),
        };
        match first {
            Ok((requests, steps)) => self.begin(call.index, requests, steps),
            Err(error) => self.error(call.index, &error),
        }
    }

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
            // The fetch does not know for whom it is.
            Some(error)
                if matches!(steps, Steps::LcsFetch { .. })
                    && error == error_reply(&CommandError::WrongType) =>
            {
                Ok(Then::Reply(error_reply(&CommandError::LcsStrings)))
            }
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
        let int = |value| Ok(Then::Reply(int_reply(value)));
        match steps {
            Steps::RenameExport { from, to, only_new } => {
                let Some((payload, expiry)) = exported(reply)? else {
                    return Ok(Then::Reply(error_reply(&CommandError::NoSuchKey)));
                };
                let import = self.import(to, payload, &expiry, None, !only_new);
                let next = Steps::RenameImport {
                    from: from.clone(),
                    only_new: *only_new,
                };
                Ok(Then::Step(vec![import], next))
            }
            Steps::RenameImport { from, only_new } => match integer(reply).ok_or(BadPart)? {
                0 => int(0),
                _ => {
                    let delete = self.request(DELETE, from, vec![from.clone()]);
                    Ok(Then::Step(
                        vec![delete],
                        Steps::RenameDelete {
                            only_new: *only_new,
                        },
                    ))
                }
            },
            Steps::RenameDelete { only_new: true } => int(1),
            Steps::RenameDelete { only_new: false } => Ok(Then::Reply(b"+OK\r\n".to_vec())),
            Steps::CopyExport {
                to,
                database,
                replace,
            } => match exported(reply)? {
                None => int(0),
                Some((payload, expiry)) => {
                    let import = self.import(to, payload, &expiry, Some(*database), *replace);
                    Ok(Then::Step(vec![import], Steps::Pass))
                }
            },
            Steps::SetExists { pairs } => {
                let counts: Option<Vec<i64>> = gather.parts().map(integer).collect();
                if counts.ok_or(BadPart)?.iter().any(|&count| count > 0) {
                    return int(0);
                }
                let (requests, _) = self.by_worker(SET_SEVERAL, pairs, 2);
                Ok(Then::Step(requests, Steps::SetAll))
            }
            Steps::SetAll => int(1),
            Steps::BitOpFetch {
                operation,
                to,
                order,
            } => {
                let mut arguments = vec![operation.clone(), to.clone()];
                arguments.extend(fetched(gather, order)?);
                Ok(Then::Step(
                    vec![self.request(BITOP_STORE, to, arguments)],
                    Steps::Pass,
                ))
            }
            Steps::LcsFetch { options, order } => {
                let mut arguments = options.clone();
                arguments.extend(fetched(gather, order)?);
                let mut request = self.request(LCS, b"", arguments);
                request.for_client = true;
                Ok(Then::Step(vec![request], Steps::Pass))
            }
            Steps::Digest => Ok(Then::Reply(joined_digest(gather)?)),
            Steps::Libraries(policy) => policy.after(reply),
            Steps::ScriptLoad { script } => Ok(add_script(script)),
            Steps::Pass => Ok(Then::Reply(reply.to_vec())),
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

    fn rename(&self, call: &Call<'_>, only_new: bool) -> (Vec<Request>, Steps) {
        let (from, to) = (call.arg(1).to_vec(), call.arg(2).to_vec());
        let export = self.request(EXPORT, &from, vec![from.clone()]);
        (vec![export], Steps::RenameExport { from, to, only_new })
    }

    fn copy(&self, call: &Call<'_>) -> Result<(Vec<Request>, Steps), CommandError> {
        let mut database = self
            .get(call.index)
            .map_or(0, |connection| connection.database);
        let mut replace = false;
        let mut at = 3;
        while at < call.len() {
            if call.is(at, "REPLACE") {
                replace = true;
                at += 1;
            } else if call.is(at, "DB") && at + 1 < call.len() {
                database = self.database_number(call.arg(at + 1))?;
                at += 2;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        let (from, to) = (call.arg(1), call.arg(2).to_vec());
        let export = self.request(EXPORT, from, vec![from.to_vec()]);
        Ok((
            vec![export],
            Steps::CopyExport {
                to,
                database,
                replace,
            },
        ))
    }

    fn set_all_new(&self, call: &Call<'_>) -> (Vec<Request>, Steps) {
        let pairs: Vec<Bytes> = call.args(1).map(<[u8]>::to_vec).collect();
        let keys: Vec<Bytes> = pairs.iter().step_by(2).cloned().collect();
        let (requests, _) = self.by_worker(EXISTS, &keys, 1);
        (requests, Steps::SetExists { pairs })
    }

    fn bit_operation(&self, call: &Call<'_>) -> Result<(Vec<Request>, Steps), CommandError> {
        const KNOWN: [&str; 4] = ["AND", "OR", "XOR", "NOT"];
        let Some(known) = KNOWN.iter().find(|name| call.is(1, name)) else {
            return Err(CommandError::Syntax);
        };
        let sources: Vec<Bytes> = call.args(3).map(<[u8]>::to_vec).collect();
        if *known == "NOT" && sources.len() != 1 {
            return Err(CommandError::BitopNot);
        }
        let (requests, order) = self.by_worker(STRINGS, &sources, 1);
        let (operation, to) = (call.arg(1).to_vec(), call.arg(2).to_vec());
        Ok((
            requests,
            Steps::BitOpFetch {
                operation,
                to,
                order,
            },
        ))
    }

    fn subsequence(&self, call: &Call<'_>) -> (Vec<Request>, Steps) {
        let keys = [call.arg(1).to_vec(), call.arg(2).to_vec()];
        let (requests, order) = self.by_worker(STRINGS, &keys, 1);
        let options = call.args(3).map(<[u8]>::to_vec).collect();
        (requests, Steps::LcsFetch { options, order })
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

    fn import(
        &self,
        to: &[u8],
        payload: &[u8],
        expiry: &[u8],
        database: Option<u16>,
        replace: bool,
    ) -> Request {
        let replace = if replace {
            b"1".to_vec()
        } else {
            b"0".to_vec()
        };
        let arguments = vec![to.to_vec(), payload.to_vec(), expiry.to_vec(), replace];
        Request {
            database,
            ..self.request(IMPORT, to, arguments)
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

/// Payload and expiry (as text) of an exported key; `None` if there was none.
fn exported(reply: &[u8]) -> Result<Option<(&[u8], Bytes)>, BadPart> {
    if matches!(reply, b"$-1\r\n" | b"*-1\r\n" | b"_\r\n") {
        return Ok(None);
    }
    let (_, count, elements) = array(reply).ok_or(BadPart)?;
    if count != 2 {
        return Err(BadPart);
    }
    let len = reply_len(elements).ok_or(BadPart)?;
    let payload = bulk(elements).flatten().ok_or(BadPart)?;
    let expiry = integer(elements.get(len..).ok_or(BadPart)?).ok_or(BadPart)?;
    Ok(Some((payload, expiry.to_string().into_bytes())))
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

/// Fetched strings in the order in which the client named their keys; nothing stands for empty.
fn fetched(gather: &Gather, order: &[u8]) -> Result<Vec<Bytes>, BadPart> {
    let mut rests = Vec::new();
    for part in gather.parts() {
        rests.push(array(part).ok_or(BadPart)?.2);
    }
    let mut strings = Vec::with_capacity(order.len());
    for &part in order {
        let rest = rests.get_mut(usize::from(part)).ok_or(BadPart)?;
        strings.push(bulk(rest).ok_or(BadPart)?.unwrap_or_default().to_vec());
        *rest = rest.get(reply_len(rest).ok_or(BadPart)?..).ok_or(BadPart)?;
    }
    Ok(strings)
}

/// The script compiles: all are to know it.
fn add_script(script: &proto::registry::Script) -> Then {
    let answer = format!("${}\r\n{}\r\n", script.sha1.len(), script.sha1);
    let request = runtime::Request::AddScript(script.clone());
    Then::Ask(request, answer.into_bytes())
}

fn int_reply(value: i64) -> Bytes {
    let mut reply = Vec::new();
    push_header(&mut reply, b':', value);
    reply
}

fn error_reply(error: &CommandError) -> Bytes {
    let mut reply = Vec::new();
    error.write_resp(&mut reply);
    reply
}
