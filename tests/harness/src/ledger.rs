//! Remembers every write that was acknowledged, and checks that none is lost.
//!
//! Why: "nothing acknowledged is lost" can only be tested by somebody who wrote down what was acknowledged. A
//! writer owns its keys, so for each key the ledger knows the value that was acknowledged last and, at most, one
//! that was sent and got an error or no answer: that one may or may not have happened.
//!
//! ```text
//!   SET w3:17 "41"  -> +OK      acknowledged 41          only 41 may be read
//!   SET w3:17 "42"  -> -ERR     uncertain 42             41 or 42 may be read
//!   SET w3:17 "43"  -> +OK      acknowledged 43          only 43 may be read
//! ```

use std::collections::HashMap;

use crate::client::{Client, PATIENCE, ReadError, encode_command};
use crate::reply::Reply;

/// What one writer knows.
#[derive(Debug, Default)]
pub struct Ledger {
    acknowledged: HashMap<String, String>,
    uncertain: HashMap<String, Vec<String>>,
    errors: Vec<String>,
}

impl Ledger {
    /// Writes `values` of the keys with the given prefix in one pipeline and notes the replies.
    ///
    /// # Errors
    /// When the connection fails; the commands without a reply are uncertain.
    pub fn write_batch(
        &mut self,
        client: &mut Client,
        pairs: &[(String, String)],
    ) -> Result<(), ReadError> {
        let mut bytes = Vec::new();
        for (key, value) in pairs {
            encode_command(&["SET", key, value], &mut bytes);
        }
        let mut failed = client.send_raw(&bytes).err().map(ReadError::Io);
        for (key, value) in pairs {
            let reply = match failed {
                Some(_) => None,
                None => client
                    .read(PATIENCE)
                    .map_err(|error| failed = Some(error))
                    .ok(),
            };
            self.note(key, value, reply.as_ref());
        }
        failed.map_or(Ok(()), Err)
    }

    fn note(&mut self, key: &str, value: &str, reply: Option<&Reply>) {
        match reply {
            Some(Reply::Simple(text)) if text == b"OK" => {
                self.acknowledged.insert(key.to_owned(), value.to_owned());
                self.uncertain.remove(key);
            }
            other => {
                if let Some(reply) = other {
                    self.errors.push(reply.render());
                }
                self.uncertain
                    .entry(key.to_owned())
                    .or_default()
                    .push(value.to_owned());
            }
        }
    }

    /// The error replies so far.
    #[must_use]
    pub fn errors(&self) -> &[String] {
        &self.errors
    }

    /// How many keys have an acknowledged value.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.acknowledged.len()
    }

    /// Reads every key and compares.
    ///
    /// # Panics
    /// With the first keys whose value is not one that may be read.
    #[track_caller]
    pub fn check(&self, client: &mut Client) {
        let mut wrong = Vec::new();
        let keys: Vec<&String> = self.acknowledged.keys().collect();
        for batch in keys.chunks(200) {
            let mut bytes = Vec::new();
            for key in batch {
                encode_command(&["GET", key], &mut bytes);
            }
            client.send_raw(&bytes).expect("the connection is open");
            for key in batch {
                let reply = client.read(PATIENCE).expect("a reply to GET");
                let got = reply.text().map(|_| reply.text_lossy());
                let may_be = self
                    .uncertain
                    .get(*key)
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                let fits = got.as_ref().is_some_and(|got| {
                    self.acknowledged.get(*key) == Some(got) || may_be.contains(got)
                });
                if !fits {
                    wrong.push(format!(
                        "{key}: acknowledged {:?}, read {}",
                        self.acknowledged[*key],
                        reply.render()
                    ));
                }
            }
        }
        assert!(
            wrong.is_empty(),
            "{} of {} keys are wrong: {:#?}",
            wrong.len(),
            self.acknowledged.len(),
            &wrong[..wrong.len().min(8)]
        );
    }
}
