//! Commands that are nothing but the first word of others. They have a row of their own since
//! COMMAND shows them and since their arity decides what `CONFIG` alone answers; nothing runs them.

use super::arguments::NONE;
use super::flags::flag::CONTAINER;
use super::keys::none;
use super::route::Route::Gateway;
use super::spec::{CommandRef, Details, Docs, Group, Row, Spec, docs, row};

const fn container(name: &'static str, documentation: Docs) -> Row {
    row(name, -2, CONTAINER, none(), Gateway, documentation)
}

const fn depends(group: Group, since: &'static str) -> Docs {
    docs(group, since, "Depends on subcommand.", NONE)
}

const ROWS: &[(Row, &str)] = &[
    (
        container("client", depends(Group::Connection, "2.4.0")),
        "Commands about connections.",
    ),
    (
        container("cluster", depends(Group::Cluster, "3.0.0")),
        "Commands about slots.",
    ),
    (
        container("config", depends(Group::Server, "2.0.0")),
        "Commands about settings.",
    ),
    (
        container("function", depends(Group::Scripting, "7.0.0")),
        "Commands about functions.",
    ),
    (
        container("memory", depends(Group::Server, "4.0.0")),
        "Commands about the use of memory.",
    ),
    (
        container("object", depends(Group::Generic, "2.2.3")),
        "Commands about how a value is kept.",
    ),
    (
        container("pubsub", depends(Group::PubSub, "2.8.0").categories(0)),
        "Commands about channels and who listens.",
    ),
    (
        container("script", depends(Group::Scripting, "2.6.0")),
        "Commands about scripts that are known.",
    ),
    (
        container("slowlog", depends(Group::Server, "2.2.12")),
        "Commands about commands that were slow.",
    ),
    (
        container("xgroup", depends(Group::Stream, "5.0.0")),
        "Commands about groups of consumers.",
    ),
    (
        container("xinfo", depends(Group::Stream, "5.0.0")),
        "Commands that describe streams.",
    ),
];

/// Columns that routing looks at.
pub static SPECS: [Spec; ROWS.len()] = {
    let mut specs = [ROWS[0].0.spec(CommandRef::Container(0)); ROWS.len()];
    let mut at = 0;
    while at < ROWS.len() {
        specs[at] = ROWS[at].0.spec(CommandRef::Container(at as u16));
        at += 1;
    }
    specs
};

/// Columns of the documentation.
pub static DETAILS: [Details; ROWS.len()] = {
    let mut details = [ROWS[0].0.details(ROWS[0].1); ROWS.len()];
    let mut at = 0;
    while at < ROWS.len() {
        details[at] = ROWS[at].0.details(ROWS[at].1);
        at += 1;
    }
    details
};
