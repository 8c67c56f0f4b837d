//! Recorded output of the real CLIs, parsed to whole values.

use std::fs;
use std::path::Path;

use kapi_agent::agent::AgentKind;
use kapi_core::agent_end::AgentEnd;
use kapi_core::usage::Usage;
use kapi_sys::process::ProcessEnd;

use crate::support::{Replayed, replay};

fn fixture(name: &str) -> Vec<u8> {
    fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(name),
    )
    .unwrap()
}

fn kind_of(name: &str) -> AgentKind {
    AgentKind::parse(name.split('.').next().unwrap()).unwrap()
}

/// The recordings by name and the exit code that was seen with each.
const RECORDINGS: &[(&str, i32)] = &[
    ("claude.json.resumed.json", 0),
    ("claude.stream-json.full-run.jsonl", 0),
    ("claude.stream-json.http-401.jsonl", 1),
    ("claude.stream-json.http-429-retried.jsonl", 0),
    ("claude.stream-json.max-budget.jsonl", 1),
    ("claude.stream-json.max-turns.jsonl", 1),
    ("claude.stream-json.partial-messages.jsonl", 0),
    ("claude.stream-json.sigint-during-tool.jsonl", 1),
    ("codex.exec-json.budget-reached.jsonl", 1),
    ("codex.exec-json.code-mode-run.jsonl", 0),
    ("codex.exec-json.full-run.jsonl", 0),
    ("codex.exec-json.http-401.jsonl", 1),
    ("codex.exec-json.http-429.jsonl", 1),
    ("codex.exec-json.truncated-stream-retried.jsonl", 0),
    ("gemini.stream-json.full-run.jsonl", 0),
    ("gemini.stream-json.http-401.jsonl", 145),
    ("gemini.stream-json.truncated-stream.jsonl", 1),
    ("gemini.stream-json.turn-limit.jsonl", 53),
    ("pi.mode-json.full-run.no-updates.jsonl", 0),
    ("pi.mode-json.http-401.jsonl", 0),
    ("pi.mode-json.http-429.jsonl", 0),
];

fn recorded(name: &str) -> Replayed {
    let (_, code) = RECORDINGS.iter().find(|(known, _)| *known == name).unwrap();
    replay(
        &kind_of(name),
        None,
        &fixture(name),
        ProcessEnd::Exited(*code),
    )
}

#[test]
fn every_recording_reads_as_it_went() {
    for (name, _) in RECORDINGS {
        insta::assert_debug_snapshot!(*name, recorded(name));
    }
}

#[test]
fn no_recording_is_left_out() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    let known: Vec<&str> = RECORDINGS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, known);
}

#[test]
fn usage_is_exact_with_sub_agents_caches_and_thinking() {
    let usage = |name| recorded(name).used();
    // 13 calls of 1200 + 40 + 300 in and 80 out, one of them by a sub-agent's model.
    let expected = Usage {
        input_tokens: 20_020,
        output_tokens: 1_040,
        usd_micros: Some(109_200),
        ..Usage::ZERO
    };
    assert_eq!(usage("claude.stream-json.full-run.jsonl"), expected);
    let expected = Usage {
        input_tokens: 9_000,
        output_tokens: 480,
        usd_micros: None,
        ..Usage::ZERO
    };
    assert_eq!(usage("codex.exec-json.full-run.jsonl"), expected);
    let expected = Usage {
        input_tokens: 12_000,
        output_tokens: 720,
        usd_micros: None,
        ..Usage::ZERO
    };
    assert_eq!(usage("gemini.stream-json.full-run.jsonl"), expected);
    // 8 calls of 1200 + 300 in and 80 out at 0.00139 dollars.
    let expected = Usage {
        input_tokens: 12_000,
        output_tokens: 640,
        usd_micros: Some(11_120),
        ..Usage::ZERO
    };
    assert_eq!(usage("pi.mode-json.full-run.no-updates.jsonl"), expected);
}

#[test]
fn the_terminal_event_outweighs_the_exit_code_and_the_signal() {
    for (name, _) in RECORDINGS
        .iter()
        .filter(|(name, _)| !name.contains("sigint"))
    {
        let ends: Vec<AgentEnd> = [
            ProcessEnd::Exited(0),
            ProcessEnd::Exited(9),
            ProcessEnd::Signaled(9),
            ProcessEnd::DeadlinePassed,
        ]
        .into_iter()
        .map(|end| replay(&kind_of(name), None, &fixture(name), end).run.end)
        .collect();
        assert!(ends.iter().all(|end| *end == ends[0]), "{name}: {ends:?}");
    }
}

#[test]
fn without_its_terminal_event_a_run_ends_as_its_process_did() {
    for name in [
        "claude.stream-json.full-run.jsonl",
        "codex.exec-json.full-run.jsonl",
        "gemini.stream-json.full-run.jsonl",
        "pi.mode-json.full-run.no-updates.jsonl",
    ] {
        let output = fixture(name);
        let text = String::from_utf8(output).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let cut_off = lines[..lines.len() - 1].join("\n");
        for (end, expected) in [
            (ProcessEnd::Exited(0), AgentEnd::Crashed { code: 0 }),
            (ProcessEnd::Exited(3), AgentEnd::Crashed { code: 3 }),
            (ProcessEnd::Signaled(9), AgentEnd::Crashed { code: 137 }),
            (ProcessEnd::DeadlinePassed, AgentEnd::DeadlinePassed),
            (ProcessEnd::IdlePassed, AgentEnd::IdlePassed),
            (ProcessEnd::Cancelled, AgentEnd::Crashed { code: 130 }),
        ] {
            let replayed = replay(&kind_of(name), None, cut_off.as_bytes(), end);
            assert_eq!(replayed.run.end, expected, "{name}");
            assert!(replayed.run.session.is_some(), "{name}");
        }
    }
}

#[test]
fn a_resumed_codex_thread_counts_only_what_is_new() {
    let name = "codex.exec-json.full-run.jsonl";
    let thread = "01a1ffc6-bcd2-73b1-9b1d-a31c9d196997";
    let first = recorded(name);
    assert_eq!(
        first.run.session.as_deref(),
        Some(&*format!("{thread}+9000/480"))
    );
    let resumed = |session: &str| {
        replay(
            &AgentKind::Codex,
            Some(session),
            &fixture(name),
            ProcessEnd::Exited(0),
        )
    };

    let second = resumed(&format!("{thread}+4000/100"));
    let expected = Usage {
        input_tokens: 5_000,
        output_tokens: 380,
        usd_micros: None,
        ..Usage::ZERO
    };
    assert_eq!(second.used(), expected);
    assert_eq!(
        second.run.session.as_deref(),
        Some(&*format!("{thread}+9000/480"))
    );
    // A crash before the turn's end resumes with what is known then.
    let announced = kapi_agent::stream::StreamEvent::Session(format!("{thread}+4000/100"));
    assert_eq!(second.events[0], announced);

    let another_thread = resumed("ffffffff-bcd2-73b1-9b1d-a31c9d196997+4000/100");
    assert_eq!(another_thread.used(), first.used());
    let begun_anew = resumed(&format!("{thread}+99000/100"));
    assert_eq!(begun_anew.used(), first.used());
}

#[test]
fn a_line_of_any_recording_may_be_lost_or_cut() {
    for (name, code) in RECORDINGS {
        let text = String::from_utf8(fixture(name)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let whole = recorded(name).run.end;
        for cap in [1, 17, 60, 200] {
            // Every line but the last is cut; the last still tells how it went, except where the
            // account of it stands in an earlier line.
            let mut output = Vec::new();
            for line in &lines[..lines.len() - 1] {
                output.extend(line.bytes().take(cap));
                output.push(b'\n');
            }
            output.extend(lines[lines.len() - 1].bytes());
            let cut = replay(&kind_of(name), None, &output, ProcessEnd::Exited(*code))
                .run
                .end;
            let is_reported_earlier = name.starts_with("pi.") || name.contains("sigint");
            if !is_reported_earlier {
                assert_eq!(cut, whole, "{name} at {cap}");
            }
        }
    }
}
