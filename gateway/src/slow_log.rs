//! The slow log: commands that took longer than `slowlog-log-slower-than`.
//!
//! A worker notices that a command was slow and says so in a frame behind its reply, with the time and
//! the arguments (shortened); the thread of the client adds who it was. All threads of the process
//! share the log. Commands of the gateway are in it as far as they are timed (`tally`), without the
//! passwords that they carry.
//!
//! Cost: nothing for commands that are not slow.

use std::collections::VecDeque;

use proto::catalogue::{CommandRef, GatewayCommand, Spec, flag};
use proto::resp::ReplyWriter;
use proto::slow_call::write_arguments;

use crate::call::Call;
use crate::clients::remote_address;
use crate::core::Core;
use crate::tally::Timed;

/// What the log shows where a password was.
const REDACTED: &[u8] = b"(redacted)";

/// One command.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    id: u64,
    unix_seconds: u64,
    micros: u64,
    /// RESP: an array of strings.
    arguments: Box<[u8]>,
    address: String,
    name: Box<[u8]>,
}

impl Entry {
    pub(crate) fn write(&self, reply: &mut ReplyWriter<'_>) {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        reply.array(6);
        reply.int(number(self.id));
        reply.int(number(self.unix_seconds));
        reply.int(number(self.micros));
        reply.raw(&self.arguments);
        reply.bulk(self.address.as_bytes());
        reply.bulk(&self.name);
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SlowLog {
    /// Newest first.
    entries: VecDeque<Entry>,
    next: u64,
}

impl SlowLog {
    /// Adds an entry and drops the oldest beyond `most`.
    fn add(&mut self, mut entry: Entry, most: usize) {
        entry.id = self.next;
        self.next += 1;
        self.entries.push_front(entry);
        self.entries.truncate(most);
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// The newest ones.
    pub(crate) fn latest(&self, count: usize) -> Vec<Entry> {
        self.entries.iter().take(count).cloned().collect()
    }
}

impl Core {
    /// A worker says that a command of `index` was slow; the client may be gone.
    pub(crate) fn note_slow(&mut self, index: u32, body: &[u8]) {
        if let Some((micros, arguments)) = body.split_first_chunk() {
            self.log_slow(index, u64::from_le_bytes(*micros), arguments);
        }
    }

    /// A command of the gateway was timed.
    #[cold]
    pub(crate) fn look_at_time(&mut self, call: &Call<'_>, spec: &Spec, timed: Timed) {
        let Ok(from) = u64::try_from(self.live.settings.slowlog_log_slower_than()) else {
            return;
        };
        let micros = u64::try_from(timed.elapsed().as_micros()).unwrap_or(u64::MAX);
        if micros < from || spec.flags.has(flag::SKIP_SLOWLOG) {
            return;
        }
        let mut arguments = Vec::new();
        let mut writer = ReplyWriter::to_vec(&mut arguments, false);
        let words = without_secrets(call, spec);
        write_arguments(&mut writer, words.len(), words.into_iter());
        self.log_slow(call.index, micros, &arguments);
    }

    /// With a threshold below what the gateway's own commands take, each of them is timed.
    pub(crate) fn choose_timing(&mut self) {
        const OWN_MICROS: i64 = 1000;
        let from = self.live.settings.slowlog_log_slower_than();
        self.tally.times_all = (0..OWN_MICROS).contains(&from);
    }

    fn log_slow(&mut self, index: u32, micros: u64, arguments: &[u8]) {
        let client = self.get(index);
        let address = client.map(|client| remote_address(&client.origin));
        let name = client.and_then(|client| client.names.as_ref());
        let entry = Entry {
            id: 0,
            unix_seconds: self.now.unix_micros / 1_000_000,
            micros,
            arguments: arguments.into(),
            address: address.unwrap_or_default(),
            name: name.map(|names| names.name.clone()).unwrap_or_default(),
        };
        let most = usize::try_from(self.live.settings.slowlog_max_len()).unwrap_or(usize::MAX);
        self.shared.slow_log(|log| log.add(entry, most));
    }
}

/// The arguments of a command of the gateway, with something else in the place of passwords and of
/// users' names before them.
fn without_secrets<'a>(call: &Call<'a>, spec: &Spec) -> Vec<&'a [u8]> {
    let mut words: Vec<&[u8]> = call.args(0).collect();
    match spec.command {
        CommandRef::Gateway(GatewayCommand::Auth) => {
            words.iter_mut().skip(1).for_each(|word| *word = REDACTED);
        }
        CommandRef::Gateway(GatewayCommand::Hello) => {
            for at in (2..call.len()).filter(|&at| call.is(at, "AUTH")) {
                let secrets = words.iter_mut().skip(at + 1).take(2);
                secrets.for_each(|word| *word = REDACTED);
            }
        }
        CommandRef::Gateway(GatewayCommand::ConfigSet) => {
            for at in (2..call.len()).step_by(2) {
                let row = proto::settings::find(&String::from_utf8_lossy(call.arg(at)));
                let is_secret = row.is_some_and(|row| row.setting.is_secret());
                if let Some(word) = words.get_mut(at + 1).filter(|_| is_secret) {
                    *word = REDACTED;
                }
            }
        }
        _ => {}
    }
    words
}
