//! Tests of reading trees into types: every kind of fault, all at once, each with its line.

use std::collections::BTreeMap;

use proptest::prelude::{any, proptest};
use serde::Deserialize;

use super::read;
use crate::fault::Faults;
use crate::scalar::{Millis, NumberText, RangedCount, TrimmedText, UsdMicros};
use crate::setting::{OneOrMany, Setting};
use crate::yaml;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    Low,
    High,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename = "by type or exit_code", rename_all = "snake_case")]
enum Check {
    ExitCode {
        #[serde(default)]
        code: i64,
    },
    Command(Command),
    Nothing,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Command {
    run: TrimmedText,
    timeout: Option<Millis<1, 60_000>>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename = "text is expr", rename_all = "snake_case")]
enum Condition {
    Expr(String),
    All(Vec<Self>),
    Not(Box<Self>),
}

#[derive(Debug, PartialEq, Deserialize)]
struct File {
    name: TrimmedText<8>,
    #[serde(alias = "tries")]
    retries: Option<Setting<RangedCount<1, 9>>>,
    level: Option<Level>,
    #[serde(default)]
    plain: Vec<String>,
    checks: Option<OneOrMany<Check, 1, 3>>,
    when: Option<Condition>,
    usd: Option<UsdMicros>,
    bound: Option<NumberText>,
    #[serde(default)]
    map: BTreeMap<String, RangedCount<0, 9>>,
    is_on: Option<bool>,
    port: Option<u16>,
}

fn parsed(text: &str) -> (Option<File>, Vec<String>) {
    let mut faults = Faults::of("f".to_owned());
    let node = yaml::parse(text, &mut faults);
    let file = node.and_then(|node| read(&node, &mut faults));
    let list = faults.into_list();
    (file, list.iter().map(ToString::to_string).collect())
}

fn whole(text: &str) -> File {
    let (file, faults) = parsed(text);
    assert_eq!(faults, [""; 0], "{text}");
    file.unwrap()
}

#[test]
fn every_kind_of_value_is_read() {
    let file = whole(
        "name: a\ntries: 3\nlevel: high\nplain: [x]\nchecks:\n  - type: command\n    run: make\n    \
         timeout: 2s\n  - code: 1\n  - type: nothing\nwhen: {all: [a, {not: b}]}\nusd: 0.5\n\
         bound: 1.25\nmap: {x: 1}\nis_on: true\nport: 80\n",
    );
    let retries = file.retries.unwrap();
    assert_eq!(
        (retries.value, retries.key.as_str()),
        (RangedCount(3), "tries")
    );
    assert_eq!(retries.line, 2);
    let checks = file.checks.unwrap().0;
    let command = Command {
        run: TrimmedText("make".to_owned()),
        timeout: Some(Millis(2_000)),
    };
    let expected = [
        Check::Command(command),
        Check::ExitCode { code: 1 },
        Check::Nothing,
    ];
    assert_eq!(checks, expected);
    let expr = |text: &str| Condition::Expr(text.to_owned());
    let not = Condition::Not(Box::new(expr("b")));
    assert_eq!(file.when, Some(Condition::All(vec![expr("a"), not])));
    assert_eq!(file.usd, Some(UsdMicros(500_000)));
    assert_eq!(file.bound, Some(NumberText("1.25".to_owned())));
    assert_eq!((file.is_on, file.port), (Some(true), Some(80)));
    let one = whole("name: a\nchecks: {type: command, run: x}\nlevel:\nport:\n");
    assert_eq!(one.checks.unwrap().0.len(), 1);
    assert_eq!((one.level, one.port), (None, None));
}

/// One row for each rule: what is written, and the faults as a person sees them.
const WRONG: &[(&str, &str)] = &[
    ("nmae: 1", "f:2: `nmae`: unknown key; did you mean `name`?"),
    (
        "tries: 12",
        "f:2: `tries`: 12 is out of range; give a whole number from 1 to 9",
    ),
    (
        "tries: x",
        "f:2: `tries`: it is text; give a whole number from 1 to 9",
    ),
    (
        "tries: [1]",
        "f:2: `tries`: it is a list; give a whole number from 1 to 9",
    ),
    (
        "level: hihg",
        "f:2: `level`: unknown value \"hihg\"; did you mean `high`?",
    ),
    (
        "level: 7",
        "f:2: `level`: it is a whole number; give one of low, high",
    ),
    ("plain: x", "f:2: `plain`: it is text; give a list"),
    (
        "plain: [a, 1]",
        "f:2: `plain[1]`: it is a whole number; give text (in quotes if it looks like a number)",
    ),
    ("checks: []", "f:2: `checks`: it has 0 entries; give 1 to 3"),
    (
        "checks: 1",
        "f:2: `checks`: it is a whole number; give a table of settings",
    ),
    (
        "checks:\n  type: comand",
        "f:3: `checks.type`: unknown value \"comand\"; did you mean `command`?",
    ),
    (
        "checks:\n  type: command",
        "f:2: `checks`: it has no `run`; add `run`",
    ),
    (
        "checks:\n  - run: x",
        "f:3: `checks[0].run`: unknown key; use one of code",
    ),
    (
        "checks: {type: nothing, run: x}",
        "f:2: `checks.run`: unknown key; remove it",
    ),
    (
        "checks:\n  type: command\n  run: ''",
        "f:4: `checks.run`: it is empty; give a short text, or remove the key",
    ),
    (
        "when:\n  all:\n    - colour: red",
        "f:4: `when.all[0].colour`: unknown key; use one of expr, all, not",
    ),
    (
        "when: {all: [], not: x}",
        "f:2: `when`: `all` and `not` are in one table; write each in a separate table",
    ),
    (
        "when: {}",
        "f:2: `when`: it is empty; write one of expr, all, not",
    ),
    (
        "when: [a]",
        "f:2: `when`: it is a list; give text, or a table with one of expr, all, not",
    ),
    (
        "usd: 0.0000001",
        "f:2: `usd`: \"0.0000001\" is not an amount of money; give US dollars such as 5 or \
         0.25, with at most six decimals",
    ),
    (
        "map: {x: 10}",
        "f:2: `map.x`: 10 is out of range; give a whole number from 0 to 9",
    ),
    ("is_on: yes", "f:2: `is_on`: it is text; give true or false"),
    (
        "tries: 1\nretries: 2",
        "f:3: `retries`: it duplicates another key of this table; keep one of them",
    ),
    (
        "port: 70000",
        "f:2: `port`: 70000 is out of range; give a whole number from 0 to 65535",
    ),
];

#[test]
fn what_is_wrong_is_named_with_its_line_and_what_to_do() {
    for (keys, expected) in WRONG {
        let (_, faults) = parsed(&format!("name: a\n{keys}\n"));
        assert_eq!(faults, [*expected], "{keys}");
    }
}

#[test]
fn every_fault_is_found_at_once_and_none_twice() {
    let (file, faults) = parsed(
        "nane: a\ntries: 0\nlevel: no\nchecks:\n  - type: command\n    run: 5\n  - type: what\n  - code: 1\n    a: 1\n    b: 2\nport: -1\n",
    );
    assert_eq!(file, None);
    assert_eq!(
        faults,
        [
            "f:1: `nane`: unknown key; did you mean `name`?",
            "f:1: it has no `name`; add `name`",
            "f:2: `tries`: 0 is out of range; give a whole number from 1 to 9",
            "f:3: `level`: unknown value \"no\"; use low, high",
            "f:6: `checks[0].run`: it is a whole number; give text (in quotes if it looks like a number)",
            "f:7: `checks[1].type`: unknown value \"what\"; use exit_code, command, nothing",
            "f:9: `checks[2].a`: unknown key; use one of code",
            "f:10: `checks[2].b`: unknown key; use one of code",
            "f:11: `port`: -1 is out of range; give a whole number from 0 to 65535",
        ]
    );
}

#[test]
fn a_required_key_with_a_fault_is_not_called_missing() {
    let (file, faults) = parsed("name: 5\n");
    assert_eq!(file, None);
    assert_eq!(faults.len(), 1, "{faults:?}");
}

proptest! {
    #[test]
    fn whatever_is_written_is_read_or_has_a_fault(
        key in "(name|tries|level|checks|when|map)",
        value in "[-a-z0-9{}:, \\[\\]'\"&*!|>%@]{0,40}",
        other in any::<String>(),
    ) {
        for text in [format!("name: a\n{key}: {value}"), other.clone()] {
            let (file, faults) = parsed(&text);
            assert!(file.is_some() || !faults.is_empty(), "{text}");
        }
    }
}
