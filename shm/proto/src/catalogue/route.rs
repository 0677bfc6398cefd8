//! Where a command runs, and how the replies of several workers become one.

/// Where a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// In the gateway itself.
    Gateway,
    /// On the worker that owns the slot of its keys. Internal commands without keys: on the worker
    /// that the sender chooses.
    Owner,
    /// As `Together`; each key is an affair of its own, and the replies for keys of one owner are merged.
    Scatter(Merge),
    /// On the worker that owns all of its keys; if they live on several, one of them visits the others.
    Together,
    /// The same for a script, which runs on any worker if it has no keys.
    /// What it touches beside them is not known before it runs.
    Script,
    /// In the keyspaces of all workers; the replies are merged.
    Every(Merge),
    /// One worker after the other, as the cursor says (`SCAN`).
    Cursor,
    /// On one worker, chosen with a probability that follows its number of keys (`RANDOMKEY`).
    RandomWorker,
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
