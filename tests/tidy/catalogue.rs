//! Every row of the command catalogue is played in a transcript, and every transcript can be read.

use std::collections::BTreeSet;

use harness::transcript::{Transcript, command_names};

use crate::{has_extension, read, tracked};

fn transcripts() -> Vec<(String, String)> {
    tracked()
        .iter()
        .filter(|file| has_extension(file, "resp"))
        .map(|file| (file.display().to_string(), read(file)))
        .collect()
}

#[test]
fn every_command_has_a_transcript() {
    let mut played = BTreeSet::new();
    for (file, text) in transcripts() {
        played.extend(command_names(&text).unwrap_or_else(|what| panic!("{file}: {what}")));
    }
    let missing: Vec<String> = proto::catalogue::all()
        .map(|spec| spec.name.replace('|', " ").to_uppercase())
        .filter(|name| !played.contains(name))
        .collect();
    assert!(missing.is_empty(), "no transcript plays {missing:?}");
}

#[test]
fn every_step_of_a_transcript_expects_something() {
    let mut offenders = Vec::new();
    for (file, text) in transcripts() {
        let transcript = Transcript::parse(&text).unwrap_or_else(|what| panic!("{file}: {what}"));
        let mut titles = BTreeSet::new();
        for case in &transcript.cases {
            if !titles.insert(&case.title) {
                offenders.push(format!(
                    "{file}:{} a second case {:?}",
                    case.line, case.title
                ));
            }
            for step in &case.steps {
                use harness::transcript::StepKind;
                let is_silent = matches!(step.kind, StepKind::Wait { .. } | StepKind::Close { .. });
                if !is_silent && step.replies.is_empty() {
                    offenders.push(format!("{file}:{} expects nothing", step.line));
                }
            }
        }
    }
    assert!(offenders.is_empty(), "{offenders:#?}");
}
