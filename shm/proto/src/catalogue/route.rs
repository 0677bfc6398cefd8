//! Where a command runs, and how the replies of several workers become one.

/// Where a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// In the gateway itself.
    Gateway,
    /// On the worker that owns the slot of its keys. Internal commands without keys: on the worker
    /// that the sender chooses.
    Owner,
    /// Split by key over the owners; the replies are merged. With all keys on one worker: `Owner`.
    Scatter(Merge),
    /// On the worker that owns all of its keys; refused if they live on several.
    Together,
    /// On the worker that owns all of its keys, on any if it has none; refused if they live on several.
    /// What it touches beside them is not known before it runs.
    Script,
    /// On every worker; the replies are merged.
    Every(Merge),
    /// One worker after the other, as the cursor says (`SCAN`).
    Cursor,
    /// On one worker, chosen with a probability that follows its number of keys (`RANDOMKEY`).
    RandomWorker,
    /// In steps that the gateway drives, unless all keys live on one worker: then `Owner`.
    Steps(StepKind),
}

/// How replies of several workers become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The sum of integers.
    Sum,
    /// Arrays, put back into the order of the request's keys.
    Zip,
    /// Arrays, one behind the other.
    Concat,
    /// `OK` if all say so, otherwise the first error.
    AllOk,
    /// The first reply that came.
    First,
}

/// Commands over keys of several workers that the gateway does in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// `RENAME`.
    Rename,
    /// `RENAMENX`.
    RenameNx,
    /// `COPY`.
    Copy,
    /// `MSETNX`.
    MSetNx,
    /// `BITOP`.
    BitOp,
    /// `LCS`.
    Lcs,
}
