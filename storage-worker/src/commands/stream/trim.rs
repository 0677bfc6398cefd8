//! What XADD and XTRIM are told about old entries, and XTRIM.

use super::{id, value};
use crate::collections::stream::{NodeLimits, Trim};
use crate::commands::prelude::*;

/// Nodes that an approximate trim removes at most, unless LIMIT says otherwise.
const NODES_MAX: u64 = 100;
/// Entries that it removes at most where nodes have no limit.
const ENTRIES_WITHOUT_LIMIT: u64 = 10_000;
/// Entries that it removes at most in any case.
const ENTRIES_MAX: u64 = 1_000_000;

/// Up to where to trim, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trimming {
    by: Trim,
    is_exact: bool,
    limit: u64,
}

impl Trimming {
    /// Trims; returns how many entries went.
    pub(super) fn apply(&self, log: &mut crate::collections::stream::Log) -> u64 {
        log.trim(self.by, self.is_exact, self.limit)
    }
}

/// The options in front of the id of XADD, and those of XTRIM.
#[derive(Debug, Default)]
pub(super) struct Options {
    by: Option<Trim>,
    is_approximate: bool,
    limit: Option<u64>,
    /// NOMKSTREAM.
    pub(super) needs_stream: bool,
}

impl Options {
    /// Reads options from argument 2 on, up to the first word that is none (XADD); returns its place.
    /// XTRIM has nothing but options.
    pub(super) fn read(&mut self, args: Args<'_>, is_xadd: bool) -> Result<usize, CommandError> {
        let mut at = 2;
        while at < args.len() {
            let word = args.get(at);
            let more = args.len() - 1 - at;
            if is_xadd && word == b"*" {
                break;
            }
            if word.eq_ignore_ascii_case(b"MAXLEN") && more > 0 {
                at = self.read_strategy(args, at, |text| {
                    let most = u64::try_from(integer(text)?);
                    Ok(Trim::MaxLen(most.map_err(|_| CommandError::TrimMaxLen)?))
                })?;
            } else if word.eq_ignore_ascii_case(b"MINID") && more > 0 {
                at = self.read_strategy(args, at, |text| Ok(Trim::MinId(id::exact(text)?)))?;
            } else if word.eq_ignore_ascii_case(b"LIMIT") && more > 0 {
                let limit = u64::try_from(integer(args.get(at + 1))?);
                self.limit = Some(limit.map_err(|_| CommandError::TrimLimit)?);
                at += 2;
            } else if is_xadd && word.eq_ignore_ascii_case(b"NOMKSTREAM") {
                self.needs_stream = true;
                at += 1;
            } else if is_xadd {
                break;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(at)
    }

    /// Reads what follows MAXLEN or MINID at `at`; returns the place behind it.
    fn read_strategy(
        &mut self,
        args: Args<'_>,
        at: usize,
        threshold: impl FnOnce(&[u8]) -> Result<Trim, CommandError>,
    ) -> Result<usize, CommandError> {
        if self.by.is_some() {
            return Err(CommandError::TrimStrategies);
        }
        let has_more = at + 2 < args.len();
        let operator = Some(args.get(at + 1)).filter(|_| has_more);
        self.is_approximate = operator == Some(b"~");
        let at = at + 1 + usize::from(self.is_approximate || operator == Some(b"="));
        self.by = Some(threshold(args.get(at))?);
        Ok(at + 1)
    }

    /// What they mean together.
    pub(super) fn finish(
        &self,
        is_xadd: bool,
        limits: NodeLimits,
    ) -> Result<Option<Trimming>, CommandError> {
        let Some(by) = self.by else {
            return match self.limit {
                Some(1..) => Err(CommandError::TrimLimitAlone),
                _ if !is_xadd => Err(CommandError::TrimMissing),
                Some(0) => Err(CommandError::TrimLimitExact),
                None => Ok(None),
            };
        };
        if self.limit.is_some() && !self.is_approximate {
            return Err(CommandError::TrimLimitExact);
        }
        let by_nodes = match limits.entries.saturating_mul(NODES_MAX) {
            0 => ENTRIES_WITHOUT_LIMIT,
            entries => entries.min(ENTRIES_MAX),
        };
        let limit = match self.limit {
            Some(limit) => limit,
            None if self.is_approximate => by_nodes,
            None => 0,
        };
        Ok(Some(Trimming {
            by,
            is_exact: !self.is_approximate,
            limit,
        }))
    }
}

/// XTRIM key MAXLEN | MINID [= | ~] threshold [LIMIT count]
pub(crate) fn xtrim(ctx: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let mut options = Options::default();
    options.read(args, false)?;
    let trimming = options.finish(false, value::node_limits(ctx.settings))?;
    let key = ctx.first_key(args);
    let stream = value::find_mut(ctx.keyspace, &key, ctx.now)?;
    let trimmed = match (stream, trimming) {
        (Some(stream), Some(trimming)) => trimming.apply(&mut stream.log),
        _ => 0,
    };
    ctx.changed(trimmed);
    ctx.reply.count(trimmed as usize);
    Ok(())
}
