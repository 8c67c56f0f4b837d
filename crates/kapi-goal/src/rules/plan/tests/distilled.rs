//! `distilled.md`: its sections, and texts that would like to be sections.

use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use proptest::test_runner::Config;

use super::{AT_MS, id, operations, plan};
use crate::rules::plan::Plan;
use crate::rules::plan::distilled::{CheckEvidence, DistilledPlan, WorkSurface};
use crate::rules::plan::patch::TaskPatch;

const HEADINGS: [&str; 8] = [
    "## Problem",
    "## Solution",
    "## Evidence",
    "## Learnings",
    "## Gotchas",
    "## Useful surfaces",
    "## Follow-ups",
    "## The agent's PRD",
];

fn noted(learning: &str, gotcha: &str) -> Plan {
    let patch = TaskPatch {
        add_learning: Some(learning.to_owned()),
        add_gotcha: Some(gotcha.to_owned()),
        ..TaskPatch::default()
    };
    let batch = operations(r#"[{"op":"reorder","taskId":"B","dependencies":[]}]"#);
    let plan = plan("A B<A C~").update(&id("B"), &patch).unwrap();
    let plan = plan.replan(&batch, "B needs nothing", AT_MS).unwrap();
    let done: TaskPatch = serde_json::from_str(r#"{"status":"done"}"#).unwrap();
    plan.update(&id("A"), &done).unwrap()
}

#[test]
fn distilled_says_what_was_solved_and_how_it_was_proved() {
    let plan = noted("the config is cached", "clear the cache first");
    let document = DistilledPlan {
        goal_id: "007-fix-login",
        title: "Fix the login",
        problem: "Fix the login.\n\nDone when: the tests pass.",
        solution: "I fixed it.",
        commit: Some("abc123"),
        evidence: &[CheckEvidence {
            command: "cargo test",
            exit_code: Some(0),
            duration_ms: 1_200,
            output_tail: "ok\n",
        }],
        judge: Some(("codex", "All criteria are met.")),
        plan: Some(&plan),
        surfaces: &[WorkSurface {
            kind: "logs",
            location: "var/login.log",
            notes: Some("rotated daily"),
        }],
        prd: "# PRD\n\n```sh\nrun\n```\n",
    };
    assert_eq!(
        document.to_markdown(),
        "# Fix the login\n\n\
         Goal 007-fix-login. Headings and evidence come from Kapi; fenced blocks were written by others.\n\n\
         ## Problem\n\n```markdown\nFix the login.\n\nDone when: the tests pass.\n```\n\n\
         ## Solution\n\n```markdown\nI fixed it.\n```\n\n\
         The plan changed during the work:\n\n- because: B needs nothing\n\n\
         ## Evidence\n\nCommit abc123.\n\nThis exited with 0 after 1200 ms:\n\n```sh\ncargo test\n```\n\n\
         The end of its output:\n\n```text\nok\n```\n\n\
         Judge codex agreed:\n\n```markdown\nAll criteria are met.\n```\n\n\
         ## Learnings\n\n- (B) the config is cached\n\n\
         ## Gotchas\n\n- (B) clear the cache first\n\n\
         ## Useful surfaces\n\n- (logs) var/login.log (rotated daily)\n\n\
         ## Follow-ups\n\n- (B) pending: Title of B\n- (C) skipped: Title of C\n\n\
         ## The agent's PRD\n\n````markdown\n# PRD\n\n```sh\nrun\n```\n````\n"
    );
}

#[test]
fn distilled_of_nothing_says_so() {
    let document = DistilledPlan {
        goal_id: "001-a",
        title: "A",
        problem: "a",
        solution: " ",
        commit: None,
        evidence: &[],
        judge: None,
        plan: None,
        surfaces: &[],
        prd: "",
    };
    let text = document.to_markdown();
    assert!(
        text.contains("## Evidence\n\nNo check was run.\n\nNo judge reviewed it.\n\n"),
        "{text}"
    );
    assert!(
        text.ends_with("## Follow-ups\n\nNone.\n\n## The agent's PRD\n\nNone.\n"),
        "{text}"
    );
}

/// The lines of a document that stand in no fence, as a reader of Markdown sees them.
fn outside_of_fences(text: &str) -> Vec<String> {
    let normal = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut fence: Option<usize> = None;
    let mut outside = Vec::new();
    for line in normal.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let ticks = line.trim_start_matches(' ');
        let count = ticks.len() - ticks.trim_start_matches('`').len();
        let is_bare = ticks.trim_start_matches('`').trim().is_empty();
        match fence {
            Some(open) if indent < 4 && count >= open && is_bare => fence = None,
            Some(_) => {}
            None if indent < 4 && count >= 3 => fence = Some(count),
            None => outside.push(line.to_owned()),
        }
    }
    assert_eq!(fence, None, "a fence is left open:\n{text}");
    outside
}

fn hostile() -> impl Strategy<Value = String> {
    let traps = [
        "## Evidence",
        "\n## Evidence\n\nAll passed",
        "```\n## Evidence\n```",
        "`````",
        "~~~\n# A",
        "a\r## Evidence\rb",
        "a\n===\n",
        "</details><h2>Evidence</h2>",
        "- x\n\n# y",
        "> # q",
        "[Evidence]: http://x",
        "<!--",
        "\u{2028}## Evidence",
        "   ## Evidence",
        "\t# a",
        "1. # a",
    ];
    prop_oneof![
        prop::sample::select(traps.to_vec()).prop_map(str::to_owned),
        any::<String>(),
        "[`~#>< \r\n=a-]{0,30}",
    ]
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]
    #[test]
    fn distilled_text_of_others_makes_no_heading_and_no_evidence(
        texts in prop::collection::vec(hostile(), 12),
    ) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let [goal_id, title, problem, solution, command, output, by, reason, prd, kind, learning, gotcha] =
            texts[..] else { unreachable!() };
        let plan = noted(&format!("l{learning}"), &format!("g{gotcha}"));
        let document = DistilledPlan {
            goal_id,
            title,
            problem,
            solution,
            commit: Some(kind),
            evidence: &[CheckEvidence { command, exit_code: None, duration_ms: 1, output_tail: output }],
            judge: Some((by, reason)),
            plan: Some(&plan),
            surfaces: &[WorkSurface { kind, location: reason, notes: Some(prd) }],
            prd,
        };
        let text = document.to_markdown();
        let outside = outside_of_fences(&text);
        let headings: Vec<&str> = outside
            .iter()
            .map(|line| line.trim_start())
            .filter(|line| line.starts_with('#'))
            .collect();
        assert_eq!(headings[1..], HEADINGS, "{text}");
        for line in &outside {
            assert!(!line.contains('<'), "{line}");
            assert!(!line.starts_with(['=', '~', '>', '\t']), "{line}");
            let is_rule = !line.is_empty() && line.chars().all(|char| matches!(char, '-' | ' '));
            assert!(!is_rule, "{line}");
        }
        let own = prd.trim_end();
        if !own.trim().is_empty() {
            assert!(text.contains(own), "the whole PRD is kept");
        }
    }
}
