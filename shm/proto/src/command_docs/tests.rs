//! COMMAND's replies, and the table of all rows as one golden text.

use super::*;
use crate::catalogue::{gateway, storage};
use expect_test::{expect, expect_file};
use std::fmt::Write;

fn reply(resp3: bool, write: impl Fn(&mut ReplyWriter<'_>)) -> String {
    let mut out = Vec::new();
    write(&mut ReplyWriter::to_vec(&mut out, resp3));
    String::from_utf8(out).unwrap().replace("\r\n", " ")
}

fn request<'a>(words: &'a [&'a str]) -> impl Fn(usize) -> &'a [u8] {
    |at| words[at].as_bytes()
}

fn keys(words: &str, flags: bool) -> String {
    let words: Vec<_> = ["COMMAND", "GETKEYS"]
        .into_iter()
        .chain(words.split(' '))
        .collect();
    reply(false, |writer| {
        if let Err(error) = getkeys(writer, words.len(), request(&words), flags) {
            writer.error(&error);
        }
    })
}

fn listed(words: &[&str]) -> String {
    reply(false, |writer| {
        if let Err(error) = list(writer, words.len(), request(words)) {
            writer.error(&error);
        }
    })
}

#[test]
fn info_has_the_shape_of_the_reference() {
    let words = ["COMMAND", "INFO", "GeT", "nosuch", "config|nosuch", "get|x"];
    expect![[r#"*4 *10 $3 get :2 ~2 +readonly +fast :1 :1 :1 ~3 +@read +@string +@fast ~0 ~1 %3 $5 flags ~2 +RO +access $12 begin_search %2 $4 type $5 index $4 spec %1 $5 index :1 $9 find_keys %2 $4 type $5 range $4 spec %3 $7 lastkey :0 $7 keystep :1 $5 limit :0 ~0 _ _ _ "#]]
        .assert_eq(&reply(true, |writer| infos(writer, words.len(), request(&words))));
}

#[test]
fn docs_have_the_shape_of_the_reference() {
    let words = ["COMMAND", "DOCS", "getset", "nosuch"];
    expect!["%1 $6 getset %8 $7 summary $51 Stores a string and returns the one that was there. $5 since $5 1.0.0 $5 group $6 string $10 complexity $4 O(1) $9 doc_flags ~1 +deprecated $16 deprecated_since $5 6.2.0 $11 replaced_by $16 `SET` with `GET` $9 arguments *2 %4 $4 name $3 key $4 type $3 key $12 display_text $3 key $14 key_spec_index :0 %3 $4 name $5 value $4 type $6 string $12 display_text $5 value "]
    .assert_eq(&reply(true, |writer| {
        docs(writer, words.len(), request(&words));
    }));
}

#[test]
fn keys_of_requests_are_those_of_the_reference() {
    for (words, want) in [
        ("get a", "*1 $1 a "),
        ("set a b get", "*1 $1 a "),
        ("mset a b c", "*2 $1 a $1 c "),
        ("object encoding x", "*1 $1 x "),
        ("bitop and d a b", "*3 $1 d $1 a $1 b "),
        ("lcs a b", "*2 $1 a $1 b "),
        (
            "get",
            "-ERR Invalid number of arguments specified for command ",
        ),
        ("ping", "-ERR The command has no key arguments "),
        ("config get x", "-ERR The command has no key arguments "),
        ("nosuch a", "-ERR Invalid command specified "),
        ("_export a", "-ERR Invalid command specified "),
    ] {
        assert_eq!(keys(words, false), want, "{words}");
    }
    for (words, want) in [
        ("set a b get", "*1 *2 $1 a *3 +RW +access +update "),
        ("set a b", "*1 *2 $1 a *2 +OW +update "),
        ("bitfield a get u8 0", "*1 *2 $1 a *2 +RO +access "),
        (
            "bitfield a set u8 0 1",
            "*1 *2 $1 a *3 +RW +access +update ",
        ),
        (
            "copy a b",
            "*2 *2 $1 a *2 +RO +access *2 $1 b *2 +OW +update ",
        ),
    ] {
        assert_eq!(keys(words, true), want, "{words}");
    }
}

#[test]
fn lists_are_filtered() {
    assert_eq!(
        listed(&["COMMAND", "LIST", "FILTERBY", "PATTERN", "*|GET"]),
        "*2 $10 config|get $11 slowlog|get "
    );
    assert_eq!(
        listed(&["COMMAND", "LIST", "FILTERBY", "MODULE", "x"]),
        "*0 "
    );
    assert_eq!(
        listed(&["COMMAND", "LIST", "FILTERBY", "ACLCAT", "nosuch"]),
        "*0 "
    );
    assert!(listed(&["COMMAND", "LIST", "filterby", "aclcat", "BITMAP"]).starts_with("*7 "));
    assert_eq!(
        listed(&["COMMAND", "LIST", "FILTERBY", "FOO", "x"]),
        "-ERR syntax error "
    );
    assert_eq!(
        listed(&["COMMAND", "LIST", "FILTERBY"]),
        "-ERR syntax error "
    );
}

/// One line per row. A change here is a change of what clients and other processes see: look at the
/// difference, then `UPDATE_EXPECT=1 cargo test -p proto`.
#[test]
fn the_table_of_all_rows() {
    let mut table = String::new();
    let mut line = |spec: &Spec| {
        let flags: Vec<_> = spec.flags.names().collect();
        let categories: Vec<_> = spec.categories.names().collect();
        let (first, last, step) = spec.keys.legacy_range();
        let _ = writeln!(
            table,
            "{:<24} {:>3} | {first} {last} {step} | {:<24} | {} | {} | {} {}",
            spec.name,
            spec.arity,
            format!("{:?}", spec.route),
            flags.join(" "),
            categories.join(" "),
            spec.details().docs.group.name(),
            spec.details().docs.since,
        );
    };
    gateway::SPECS.iter().for_each(&mut line);
    storage::SPECS.iter().for_each(&mut line);
    catalogue::containers::SPECS.iter().for_each(&mut line);
    expect_file!["golden_commands.txt"].assert_eq(&table);
}

/// Texts that clients can see; see the test above for how to accept a change.
#[test]
fn the_texts_of_all_errors() {
    let mut table = String::new();
    for (name, text) in CommandError::FIXED {
        let _ = writeln!(table, "{name:<22} {text}");
    }
    expect_file!["golden_errors.txt"].assert_eq(&table);
}
