//! The settings of the whole system: typed values, CONFIG GET and SET, files and command lines.
//!
//! Why one crate knows them all: the supervisor reads the file, the gateway answers CONFIG, every
//! process acts on some of them; they all parse, check and print from the same table.
//!
//! ```text
//!   sirocco.conf ─► file::parse ─┐
//!   --name value ─► command_line ┼─► Settings ─► registry (name, text) ─► Settings in each process
//!   CONFIG SET ───► set_many ────┘                                        typed accessors
//! ```
//!
//! Invariants
//!   S1  a `Settings` holds one value for every row, of the row's kind and within its bounds.
//!   S2  a failed change leaves the settings as they were.
//!
//! Cost: an accessor is an array access; a change clones about 200 values (rare).
//! Not here: who owns the truth (supervisor, registry), effects of a change (each process).

pub mod bytes;
mod choices;
mod command_line;
mod file;
mod kind;
mod rewrite;
mod special;
mod table;
pub mod words;

#[cfg(test)]
mod tests;

pub use choices::{
    AclPubsubDefault, AppendFsync, ClusterEndpoint, LogLevel, MaxmemoryPolicy, OomScoreAdj, Pin,
    PropagationErrorBehavior, Protected, ReplDisklessLoad, SHUTDOWN_NOW, SHUTDOWN_WORDS,
    SanitizeDumpPayload, Supervised, SyslogFacility, TlsAuthClients,
};
pub use command_line::{CommandLine, parse as parse_command_line};
pub use file::{Problem, Source, apply as apply_files};
pub use kind::{Kind, SettingError, Value, parse_memory};
pub use rewrite::{lines_of, rewrite};
pub use special::{
    CLIENT_CLASSES, EVENT_ALL, EVENT_KEY_MISS, EVENT_KEYEVENT, EVENT_KEYSPACE, EVENT_NEW_KEY,
    OutputLimit, SavePoint,
};
pub use table::{Change, Effect, Row, Setting, TABLE};

use crate::glob;
use hashbrown::HashMap;
use std::fmt;
use std::sync::LazyLock;

/// Names and aliases, lower case, to rows.
static BY_NAME: LazyLock<HashMap<&'static str, &'static Row>> = LazyLock::new(|| {
    let names = TABLE.iter().flat_map(|row| {
        std::iter::once(row.name)
            .chain(row.aliases.iter().copied())
            .map(move |name| (name, row))
    });
    names.collect()
});

/// Finds a row by a name or alias, whatever its case.
pub fn find(name: &str) -> Option<&'static Row> {
    match BY_NAME.get(name) {
        Some(row) => Some(row),
        None => BY_NAME.get(name.to_ascii_lowercase().as_str()).copied(),
    }
}

impl Setting {
    /// The row of this setting.
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Whether its value is a password, or says whose: no log may show it.
    pub fn is_secret(self) -> bool {
        matches!(
            self,
            Self::Requirepass
                | Self::Masteruser
                | Self::Masterauth
                | Self::TlsKeyFilePass
                | Self::TlsClientKeyFilePass
        )
    }
}

/// A value for every setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    values: Vec<Value>,
}

impl Default for Settings {
    fn default() -> Self {
        static DEFAULTS: LazyLock<Settings> = LazyLock::new(|| Settings {
            values: TABLE.iter().map(|row| row.default_value()).collect(),
        });
        DEFAULTS.clone()
    }
}

impl Row {
    /// The value a setting has when nobody sets it.
    pub fn default_value(&self) -> Value {
        let words: Vec<&str> = if self.kind.takes_several_words() && !self.default.is_empty() {
            self.default.split(' ').collect()
        } else {
            vec![self.default]
        };
        self.kind
            .parse(&words, None)
            .expect("T2: every default parses")
    }
}

/// Why CONFIG SET did nothing. `Display` is the error reply without its first word `ERR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigSetError {
    /// No setting has that name.
    Unknown(String),
    /// A setting refused its value.
    Refused {
        /// The name as the client gave it.
        name: String,
        /// The reason.
        reason: SettingError,
    },
}

impl fmt::Display for ConfigSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                write!(
                    f,
                    "Unknown option or number of arguments for CONFIG SET - '{name}'"
                )
            }
            Self::Refused { name, reason } => {
                write!(
                    f,
                    "CONFIG SET failed (possibly related to argument '{name}') - {reason}"
                )
            }
        }
    }
}

impl Settings {
    /// The value of a setting; the typed accessors (`maxmemory()`, ...) are built on it.
    pub fn value(&self, setting: Setting) -> &Value {
        &self.values[setting as usize]
    }

    /// Whether writes are to be refused without replicas, of which there are none.
    pub fn asks_for_replicas(&self) -> bool {
        self.min_replicas_to_write() > 0 && self.min_replicas_max_lag() > 0
    }

    /// The value as CONFIG GET shows it, by name or alias.
    pub fn get(&self, name: &str) -> Option<String> {
        find(name).map(|row| self.print(row.setting))
    }

    /// The value of a setting as CONFIG GET shows it.
    pub fn print(&self, setting: Setting) -> String {
        setting.row().kind.print(self.value(setting))
    }

    /// The value as a text that gives it back completely. It differs from [`Self::print`] where
    /// Redis' CONFIG GET leaves something out.
    pub fn complete_text(&self, setting: Setting) -> String {
        match (setting.row().kind, self.value(setting)) {
            (Kind::Events, Value::Bits(bits)) => special::print_all_events(*bits),
            _ => self.print(setting),
        }
    }

    /// Whether a setting has its default value.
    pub fn is_default(&self, setting: Setting) -> bool {
        *self.value(setting) == setting.row().default_value()
    }

    /// Sets one value from the words of a line; S2 holds on errors. Does not ask when a setting
    /// may change: that is a question of who asks.
    ///
    /// # Errors
    /// The reason, if the kind refuses the words or this version lacks what they ask for.
    pub fn set_words(&mut self, setting: Setting, words: &[&str]) -> Result<(), SettingError> {
        let row = setting.row();
        let value = row.kind.parse(words, Some(self.value(setting)))?;
        if row.effect == Effect::Missing && value != row.default_value() {
            return Err(SettingError::Missing);
        }
        self.values[setting as usize] = value;
        Ok(())
    }

    /// Sets one value from one text, as CONFIG SET and the registry give it.
    ///
    /// # Errors
    /// As [`Self::set_words`].
    pub fn set_text(&mut self, setting: Setting, text: &str) -> Result<(), SettingError> {
        if !setting.row().kind.takes_several_words() {
            return self.set_words(setting, &[text]);
        }
        // Redis cuts at every single space here and knows no quotes.
        let words: Vec<&str> = match text {
            "" => Vec::new(),
            _ => text.split(' ').collect(),
        };
        self.set_words(setting, &words)
    }

    /// CONFIG SET: all pairs or none. `local` says whether the client is on this host (some
    /// settings may be opened to those only). Returns the settings that were named.
    ///
    /// # Errors
    /// The first problem: names are all looked at before any value, as in Redis.
    pub fn set_many(
        &mut self,
        pairs: &[(String, String)],
        local: bool,
    ) -> Result<Vec<Setting>, ConfigSetError> {
        let refuse = |name: &String, reason| ConfigSetError::Refused {
            name: name.clone(),
            reason,
        };
        let protected = match self.enable_protected_configs() {
            Protected::No => true,
            Protected::Yes => false,
            Protected::Local => !local,
        };
        let mut named = Vec::with_capacity(pairs.len());
        for (name, _) in pairs {
            let row = find(name).ok_or_else(|| ConfigSetError::Unknown(name.clone()))?;
            match row.change {
                Change::Start => return Err(refuse(name, SettingError::Immutable)),
                Change::Protected if protected => {
                    return Err(refuse(name, SettingError::Protected));
                }
                _ if named.contains(&row.setting) => {
                    return Err(refuse(name, SettingError::Duplicate));
                }
                _ => named.push(row.setting),
            }
        }
        let mut changed = self.clone();
        for (setting, (name, text)) in named.iter().zip(pairs) {
            changed
                .set_text(*setting, text)
                .map_err(|reason| refuse(name, reason))?;
        }
        *self = changed;
        Ok(named)
    }

    /// CONFIG GET: names and values that match any of the patterns, each name once, aliases
    /// included. A pattern without wildcards is echoed as the client wrote it.
    pub fn matching(&self, patterns: &[&str]) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = Vec::new();
        let mut seen: Vec<&'static str> = Vec::new();
        for pattern in patterns {
            if !pattern.contains(['*', '?', '[']) {
                let lower = pattern.to_ascii_lowercase();
                if let Some((name, row)) = BY_NAME.get_key_value(lower.as_str())
                    && !seen.contains(name)
                {
                    seen.push(name);
                    found.push(((*pattern).to_string(), self.print(row.setting)));
                }
                continue;
            }
            for row in TABLE {
                for name in std::iter::once(row.name).chain(row.aliases.iter().copied()) {
                    if !seen.contains(&name)
                        && glob::matches(pattern.as_bytes(), name.as_bytes(), true)
                    {
                        seen.push(name);
                        found.push((name.to_string(), self.print(row.setting)));
                    }
                }
            }
        }
        found
    }

    /// Names and values that differ from the defaults: what the registry carries.
    pub fn changed(&self) -> Vec<(String, String)> {
        let rows = TABLE.iter().filter(|row| !self.is_default(row.setting));
        rows.map(|row| (row.name.to_string(), self.complete_text(row.setting)))
            .collect()
    }

    /// The settings that [`Self::changed`] described.
    ///
    /// # Errors
    /// The name and reason of a pair that does not fit, which means another version wrote it.
    pub fn from_changed(pairs: &[(String, String)]) -> Result<Self, ConfigSetError> {
        let mut settings = Self::default();
        for (name, text) in pairs {
            let row = find(name).ok_or_else(|| ConfigSetError::Unknown(name.clone()))?;
            settings
                .set_text(row.setting, text)
                .map_err(|reason| ConfigSetError::Refused {
                    name: name.clone(),
                    reason,
                })?;
        }
        Ok(settings)
    }
}
