//! Tests of reading loop definitions.

mod catalog;
mod keys;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use kapi_core::value::KernelValue;

use super::{discover, parse};
use crate::rules::definition::eval::EvalCheck;
use crate::rules::definition::trigger::LoopTrigger;
use crate::rules::definition::{Definition, Learn, WorkspaceMode};
use crate::rules::task_terms::{Priority, Retry, TaskBudget};

const SPEC_EXAMPLE: &str = include_str!("../../../tests/fixtures/loops/example.md");

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::File::create(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

fn with(keys: &str) -> String {
    format!("---\nname: a\n{keys}\n---\nDo it.\n")
}

fn read(keys: &str) -> Definition {
    parse("a.md", &with(keys), Path::new("/nonexistent")).unwrap_or_else(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        panic!("{keys}\n{}", lines.join("\n"))
    })
}

fn faults(keys: &str) -> String {
    let faults = match parse("a.md", &with(keys), Path::new("/nonexistent")) {
        Ok(definition) => panic!("{keys} was read as {definition:?}"),
        Err(faults) => faults,
    };
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn the_example_of_the_specification_is_read_whole() {
    let read = parse("example.md", SPEC_EXAMPLE, Path::new("/nonexistent")).unwrap();
    assert_eq!(read.name.as_str(), "example-loop");
    assert_eq!(read.description, "What this loop does");
    assert_eq!(
        (read.agent.as_str(), read.backend.as_deref()),
        ("oracle", Some("pi"))
    );
    assert_eq!(
        (read.timeout_ms, read.max_concurrent, read.cooldown_ms),
        (120_000, 1, 300_000)
    );
    assert_eq!(read.retry.times, 2);
    let [eval] = read.evals.as_slice() else {
        panic!("one check: {:?}", read.evals)
    };
    assert_eq!(eval.check, EvalCheck::ExitCode { pass_condition: 0 });
    assert!(eval.blocking);
    let inputs = [("market", "ETH"), ("timeframe", "4H")];
    let inputs = inputs.map(|(name, value)| (name.to_owned(), KernelValue::Text(value.to_owned())));
    assert_eq!(read.inputs, BTreeMap::from(inputs));
    let budget = TaskBudget {
        tokens: Some(50_000),
        usd_micros: Some(500_000),
        time_ms: Some(120_000),
    };
    assert_eq!(read.budget, budget);
    assert!(
        read.body
            .starts_with("Analyze {market} on {timeframe} timeframe.")
    );
    assert!(read.body.ends_with("4. Confidence level (1-5)"));
    // The schedule beside `type: manual` waits for the day when it is needed, and must be one.
    assert_eq!(read.trigger, LoopTrigger::Manual);
    let wrong = SPEC_EXAMPLE.replace("0 15 * * 1-5", "0 25 * * 1-5");
    let faults = parse("e.md", &wrong, Path::new("/nonexistent")).unwrap_err();
    assert_eq!((faults.len(), faults[0].line), (1, 7));
    let cron = SPEC_EXAMPLE.replace("type: manual", "type: cron");
    let read = parse("e.md", &cron, Path::new("/nonexistent")).unwrap();
    assert!(matches!(read.trigger, LoopTrigger::Cron { .. }));
}

#[test]
fn what_is_not_said_is_as_the_specification_has_it() {
    let read = read("");
    assert_eq!((read.version, read.description.as_str()), (1, "Loop: a"));
    assert_eq!(
        (read.trigger, read.agent.as_str()),
        (LoopTrigger::Manual, "sisyphus")
    );
    assert_eq!((read.backend, read.model), (None, None));
    assert_eq!(
        (read.timeout_ms, read.max_concurrent, read.cooldown_ms),
        (120_000, 1, 0)
    );
    assert_eq!(read.retry, Retry::default());
    assert_eq!(
        (read.learn, read.priority),
        (Learn::OnFailure, Priority::Normal)
    );
    assert_eq!(
        (read.workspace, read.body.as_str()),
        (WorkspaceMode::Branch, "Do it.")
    );
    assert_eq!(
        (read.should_run, read.retrigger, read.verify),
        (None, None, vec![])
    );
    assert_eq!(read.evals.len(), 1);
}

/// One row for each rule: what is written, and the fault as a person sees it.
#[test]
fn what_is_wrong_is_named_with_its_line_and_what_to_do() {
    for (keys, expected) in [
        (
            "timout: 5",
            "a.md:3: `timout`: unknown key; did you mean `timeout`?",
        ),
        (
            "timeout: 90000",
            "a.md:3: `timeout`: 90000 is out of range; give 0 to 86400 seconds, or a duration such as 90s, 15m, 2h or 1d",
        ),
        (
            "\nmax_concurrent: 0",
            "a.md:4: `max_concurrent`: 0 is out of range; give a whole number from 1 to 32",
        ),
        (
            "max_retries: 17",
            "a.md:3: `max_retries`: 17 is out of range; give a whole number from 0 to 16",
        ),
        (
            "version: '1'",
            "a.md:3: `version`: it is text; give a whole number from 1 to 1000",
        ),
        (
            "backend: cursor",
            "a.md:3: `backend`: unknown value \"cursor\"; use pi, claude, codex, gemini",
        ),
        (
            "trigger:\n  type: corn",
            "a.md:4: `trigger.type`: unknown value \"corn\"; did you mean `cron`?",
        ),
        (
            "trigger:\n  type: cron",
            "a.md:3: `trigger`: it has no `schedule`; add `schedule`",
        ),
        (
            "trigger:\n  type: event",
            "a.md:3: `trigger`: an event has exactly one source; give one of `files`, \
             `git_ref`, `loop` and `webhook`",
        ),
        (
            "trigger:\n  type: event\n  files: ../secrets/*",
            "a.md:5: `trigger.files`: \"../secrets/*\" points outside the project; give globs relative to the project",
        ),
        (
            "trigger: {type: event, git_ref: main}",
            "a.md:3: `trigger.git_ref`: \"main\" is not a full ref name; write it as \
             refs/heads/main or refs/tags/*",
        ),
        (
            "eval:\n  - type: command\n  - type: judge\n    criteria: []",
            "a.md:4: `eval[0]`: it has no `run`; add `run`\n\
             a.md:6: `eval[1].criteria`: it has 0 entries; give 1 to 20",
        ),
        (
            "eval:\n  pass_condition: 10000",
            "a.md:4: `eval.pass_condition`: 10000 is out of range; give a whole number from -9999 to 9999",
        ),
        (
            "eval: {type: metric, run: x}",
            "a.md:3: `eval`: it must have exactly one bound; give one of `at_least`, `at_most` \
             and `compared_to: last`",
        ),
        (
            "eval: {type: metric, run: x, at_least: 1, better: lower}",
            "a.md:3: `eval`: `better` and the bound point in opposite directions; `at_least` means higher, `at_most` means lower",
        ),
        (
            "eval: {type: command, run: x, timeout: 0}",
            "a.md:3: `eval.timeout`: 0 is out of range; give 1 to 21600 seconds, or a duration such as 90s, 15m, 2h or 1d",
        ),
        (
            "eval: {type: json_schema, schema: ../x.json}",
            "a.md:3: `eval.schema`: it points outside the project; give a file in the project, \
             relative to its root",
        ),
        (
            "eval: {type: json_schema, schema: x.json}",
            "a.md:3: `eval.schema`: there is no file x.json; give a file in the project, \
             relative to its root",
        ),
        (
            "budget:\n  maxTokens: 1\n  max_tokens: 1",
            "a.md:5: `budget.max_tokens`: it duplicates another key of this table; keep one of them",
        ),
        (
            "budget: {maxCostUsd: 0}",
            "a.md:3: `budget.maxCostUsd`: 0 is out of range; give more than 0 US dollars, or omit it",
        ),
        (
            "budget: {maxCostUsd: 0.0000001}",
            "a.md:3: `budget.maxCostUsd`: \"0.0000001\" is not an amount of money; give US \
             dollars such as 5 or 0.25, with at most six decimals",
        ),
        (
            "inputs:\n  payload: 1",
            "a.md:4: `inputs.payload`: payload, trigger and last are reserved names; rename it",
        ),
        (
            "inputs: [1]",
            "a.md:3: `inputs`: it is a list; give a table of settings",
        ),
        (
            "learn: sometimes",
            "a.md:3: `learn`: unknown value \"sometimes\"; use never, on_failure, always",
        ),
        (
            "retrigger: {depth_max: 99}",
            "a.md:3: `retrigger.depth_max`: 99 is out of range; give a whole number from 1 to 16",
        ),
        (
            "verify: []",
            "a.md:3: `verify`: it has 0 entries; give 1 to 16",
        ),
        (
            "model: 5",
            "a.md:3: `model`: it is a whole number; give text (in quotes if it looks like a number)",
        ),
    ] {
        assert_eq!(faults(keys), expected, "{keys}");
    }
}

#[test]
fn schedules_zones_patterns_and_conditions_are_checked_when_they_are_written() {
    for (keys, location) in [
        (
            "trigger:\n  type: cron\n  schedule: '0 25 * * *'",
            "a.md:5: `trigger.schedule`: ",
        ),
        (
            "trigger:\n  type: cron\n  schedule: '0 0 31 2 *'",
            "a.md:5: `trigger.schedule`: ",
        ),
        (
            "trigger:\n  type: cron\n  schedule: '@daily'\n  zone: Mars/Base",
            "a.md:6: `trigger.zone`: ",
        ),
        (
            "eval: {type: regex, pattern: '(a'}",
            "a.md:3: `eval.pattern`: it is not a regular expression: ",
        ),
        ("should_run: 'inputs.a =='", "a.md:3: `should_run"),
        (
            "should_run:\n  all:\n    - expr: 'true'\n    - colour: red",
            "a.md:6: `should_run.all[1]",
        ),
    ] {
        let found = faults(keys);
        assert!(
            found.starts_with(location) && found.lines().count() == 1,
            "{keys}\n{found}"
        );
    }
}

#[test]
fn all_faults_of_a_file_are_seen_at_once_in_its_order() {
    let text = "---\nnane: a\ntimeout: x\nversion: 0\n---\n\nUse {this}\nand {{that}}.\n";
    let faults = parse("a.md", text, Path::new("/nonexistent")).unwrap_err();
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "a.md:1: the loop has no name; add `name`",
            "a.md:2: `nane`: unknown key; did you mean `name`?",
            "a.md:3: `timeout`: \"x\" is not a duration; give 0 to 86400 seconds, or a duration \
             such as 90s, 15m, 2h or 1d",
            "a.md:4: `version`: 0 is out of range; give a whole number from 1 to 1000",
            "a.md:7: unknown placeholder {this}; use one of payload.*, trigger.type, \
             trigger.source, last.summary, last.next_action, last.status, or write {{this}} for \
             the literal text",
        ]
    );
}

#[test]
fn a_file_that_is_no_definition_is_refused() {
    for (text, expected) in [
        (
            "",
            "a.md:1: missing front matter; start the file with a line of three dashes, the \
             settings, and another line of three dashes",
        ),
        (
            "---\nname: a\n",
            "a.md:1: the front matter is not closed; close it with a line of three dashes",
        ),
        (
            "---\nname: a\n---\n \n",
            "a.md:5: the body is empty; describe what the agent should do",
        ),
        (
            "---\nname: Not/Good\n---\nx",
            "a.md:2: `name`: \"Not/Good\" is not a loop name; it must be 1 to 64 characters \
             of a-z, 0-9, '.', '-' and '_', and start with a letter or digit",
        ),
        (
            "---\n- a\n---\nx",
            "a.md:1: it must be a table of settings, not a list; fix the YAML",
        ),
    ] {
        let faults = parse("a.md", text, Path::new("/nonexistent")).unwrap_err();
        assert_eq!(faults.first().unwrap().to_string(), expected, "{text:?}");
    }
    let twice = parse("a.md", "---\nname: a\nname: b\n---\nx", Path::new("/")).unwrap_err();
    assert_eq!(twice.first().unwrap().line, 3);
}

#[test]
fn a_schema_in_a_file_is_kept_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    put(
        root.path(),
        "schemas/a.json",
        r#"{"type": "object", "required": ["x"]}"#,
    );
    let keys = "---\nname: a\neval: {type: json_schema, schema: schemas/a.json}\n---\nx\n";
    put(root.path(), ".ilchul/loops/a.md", keys);
    let found = discover(root.path(), root.path());
    assert_eq!(found.faults, []);
    put(root.path(), "schemas/a.json", "true");
    let EvalCheck::JsonSchema { schema } = &found.definitions[0].evals[0].check else {
        panic!("a schema")
    };
    assert_eq!(schema.to_json(), r#"{"required":["x"],"type":"object"}"#);
    put(root.path(), "schemas/a.json", "{");
    let found = discover(root.path(), root.path());
    assert!(
        found.faults[0]
            .what
            .starts_with("schemas/a.json is not JSON")
    );
}

#[test]
fn a_file_cannot_grow_or_go_deep_when_it_is_read() {
    let doubled = |level: usize| {
        let above = vec![format!("*x{level}"); 10].join(", ");
        format!("  x{0}: &x{0} [{above}]\n", level + 1)
    };
    let levels: String = (0..8).map(doubled).collect();
    let bomb = format!("inputs:\n  x0: &x0 [a, a, a, a, a, a, a, a, a, a]\n{levels}");
    let deep = format!(
        "inputs: {{a: {}{}}}",
        "[".repeat(20_000),
        "]".repeat(20_000)
    );
    let nested = format!("should_run: {}", "{not: ".repeat(5_000));
    let many: String = (0..500).map(|number| format!("key{number}: 1\n")).collect();
    let long = format!("{}: 1", "k".repeat(500));
    for keys in [&bomb, &deep, &nested, &many, &long] {
        let found = faults(keys);
        assert!(found.len() < 20_000, "{} bytes of faults", found.len());
    }
    let reported = faults(&many);
    assert_eq!(reported.lines().count(), 51);
    let last = "a.md: there are more than 50 errors; fix those above first";
    assert_eq!(reported.lines().last(), Some(last));
}

mod properties {
    use std::path::Path;

    use proptest::prelude::{any, proptest};

    proptest! {
        /// Whatever a file holds, it is a definition or it has a fault that names it.
        #[test]
        fn no_file_is_too_strange(front in any::<String>(), body in any::<String>()) {
            let text = format!("---\n{front}\n---\n{body}");
            match super::parse("a.md", &text, Path::new("/nonexistent")) {
                Ok(definition) => assert_eq!(definition.source.file, "a.md"),
                Err(faults) => assert!(!faults.is_empty()),
            }
        }

        #[test]
        fn no_setting_is_too_strange(key in "(timeout|trigger|eval|budget|inputs|retrigger|should_run)", value in "[-a-z0-9{}:, \\[\\]'\"&*!|>%@]{0,40}") {
            let text = super::with(&format!("{key}: {value}"));
            if let Err(faults) = super::parse("a.md", &text, Path::new("/nonexistent")) {
                assert!(!faults.is_empty());
            }
        }
    }
}

#[test]
fn a_condition_that_names_no_time_zone_is_refused_when_it_is_written() {
    let found = faults("should_run:\n  time: {zone: Europe/Atlantis}");
    assert_eq!(
        found,
        "a.md:3: `should_run`: there is no time zone \"Europe/Atlantis\"; use a name such as \
         Europe/Berlin, UTC or local"
    );
    read("should_run:\n  time: {zone: Europe/Berlin}");
}

#[test]
fn each_key_has_its_line() {
    let lines = super::key_lines(&with("timeout: 5\nbudget:\n  maxTokens: 1\nlearn: never"));
    let found: Vec<(&str, usize)> = lines
        .iter()
        .map(|(key, line)| (key.as_str(), *line))
        .collect();
    assert_eq!(
        found,
        [("budget", 4), ("learn", 6), ("name", 2), ("timeout", 3)]
    );
    assert!(super::key_lines("no front matter").is_empty());
}
