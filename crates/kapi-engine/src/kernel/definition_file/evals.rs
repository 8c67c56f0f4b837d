//! The `eval` key of a definition: one check, or a list of them.
//!
//! Carries none of them out. A schema in a file is read at once, so that no run can change what it
//! is held to.

use std::path::{Component, Path};

use kapi_core::kernel::definition::EVALS_MAX;
use kapi_core::kernel::definition::eval::{
    Better, Bound, COMMAND_MS_DEFAULT, COMMAND_MS_MAX, CRITERIA_MAX, Check, EXIT_CODE_MAX, Eval,
    Expect, Millionths, PATTERN_BYTES_MAX,
};
use kapi_core::kernel::value::Value;

use kapi_settings::fault::Faults;
use crate::kernel::definition_file::read::Files;
use crate::kernel::definition_file::table::{Said, Table};
use kapi_settings::node::Value as Yaml;

/// The kinds of check.
#[derive(Debug, Clone, Copy)]
enum Kind {
    ExitCode,
    Command,
    Regex,
    JsonSchema,
    Judge,
    Metric,
}

const KINDS: &[(&str, Kind)] = &[
    ("exit_code", Kind::ExitCode),
    ("command", Kind::Command),
    ("regex", Kind::Regex),
    ("json_schema", Kind::JsonSchema),
    ("judge", Kind::Judge),
    ("metric", Kind::Metric),
];

/// Returns what a definition that says nothing is held to: exit code 0.
pub(super) fn assumed() -> Vec<Eval> {
    vec![Eval {
        name: "exit_code".to_owned(),
        blocking: true,
        check: Check::ExitCode { pass_condition: 0 },
    }]
}

/// Reads one check, or a list of them.
pub(super) fn read(said: &Said<'_>, files: Files<'_>, faults: &mut Faults) -> Option<Vec<Eval>> {
    let mut evals: Vec<Eval> = Vec::new();
    let mut is_whole = true;
    for item in said.items(EVALS_MAX, faults)? {
        let Some(mut eval) = one(&item, files, faults) else {
            is_whole = false;
            continue;
        };
        let is_taken = |name: &str| evals.iter().any(|eval| eval.name == name);
        if eval.name.is_empty() {
            let kind = eval.check.kind();
            let numbered = (2..).map(|number| format!("{kind}-{number}"));
            let names = std::iter::once(kind.to_owned()).chain(numbered);
            eval.name = names.take(EVALS_MAX + 1).find(|name| !is_taken(name))?;
        } else if is_taken(&eval.name) {
            let what = format!("there is a check {:?} above", eval.name);
            item.refuse(faults, what, "give each a name of its own");
        }
        evals.push(eval);
    }
    is_whole.then_some(evals)
}

/// Reads one check; its name is empty when it has none.
fn one(said: &Said<'_>, files: Files<'_>, faults: &mut Faults) -> Option<Eval> {
    let mut table = said.table(faults)?;
    let kind = match table.take("type") {
        Some(said) => said.word(KINDS, faults)?,
        None => Kind::ExitCode,
    };
    let name = match table.take("name") {
        Some(said) => said.text(faults)?.to_owned(),
        None => String::new(),
    };
    let blocking = match table.take("blocking") {
        Some(said) => said.truth(faults)?,
        None => true,
    };
    let check = match kind {
        Kind::ExitCode => exit_code(&mut table, faults),
        Kind::Command => command(said, &mut table, faults),
        Kind::Regex => regex(said, &mut table, faults),
        Kind::JsonSchema => json_schema(said, &mut table, files, faults),
        Kind::Judge => judge(said, &mut table, faults),
        Kind::Metric => metric(said, &mut table, faults),
    };
    table.finish(faults);
    Some(Eval {
        name,
        blocking,
        check: check?,
    })
}

fn exit_code(table: &mut Table<'_>, faults: &mut Faults) -> Option<Check> {
    let max = i64::from(EXIT_CODE_MAX);
    let pass_condition = match table.take("pass_condition") {
        Some(said) => i32::try_from(said.whole(-max, max, faults)?).ok()?,
        None => 0,
    };
    Some(Check::ExitCode { pass_condition })
}

fn command(said: &Said<'_>, table: &mut Table<'_>, faults: &mut Faults) -> Option<Check> {
    let timeout_ms = timeout(table, faults);
    let run = run(said, table, faults)?;
    Some(Check::Command {
        run,
        timeout_ms: timeout_ms?,
    })
}

fn run(said: &Said<'_>, table: &mut Table<'_>, faults: &mut Faults) -> Option<String> {
    let run = required(said, table.take("run"), "run", faults)?;
    run.text(faults).map(str::to_owned)
}

fn timeout(table: &mut Table<'_>, faults: &mut Faults) -> Option<u64> {
    let Some(said) = table.take("timeout") else {
        return Some(COMMAND_MS_DEFAULT);
    };
    match said.duration_ms(COMMAND_MS_MAX, faults)? {
        0 => {
            let what = "a check without a limit could hold its loop for ever".to_owned();
            said.refuse(faults, what, "give 1 second or more");
            None
        }
        timeout_ms => Some(timeout_ms),
    }
}

fn regex(said: &Said<'_>, table: &mut Table<'_>, faults: &mut Faults) -> Option<Check> {
    // The only thing it can be matched with so far; other words are refused.
    if let Some(on) = table.take("on") {
        on.word(&[("output", ())], faults)?;
    }
    let expect = match table.take("expect") {
        Some(said) => {
            let words = [("match", Expect::Match), ("no_match", Expect::NoMatch)];
            said.word(&words, faults)?
        }
        None => Expect::Match,
    };
    let pattern = required(said, table.take("pattern"), "pattern", faults)?;
    let text = pattern.text(faults)?;
    if text.len() > PATTERN_BYTES_MAX {
        let what = format!("it is longer than {PATTERN_BYTES_MAX} bytes");
        pattern.refuse(faults, what, "shorten it");
        return None;
    }
    if let Err(error) = regex_lite::Regex::new(text) {
        let what = format!("it is no regular expression: {error}");
        pattern.refuse(
            faults,
            what,
            "correct it; a backslash needs single quotes in YAML",
        );
        return None;
    }
    Some(Check::Regex {
        pattern: text.to_owned(),
        expect,
    })
}

fn json_schema(
    said: &Said<'_>,
    table: &mut Table<'_>,
    files: Files<'_>,
    faults: &mut Faults,
) -> Option<Check> {
    let schema = required(said, table.take("schema"), "schema", faults)?;
    let value = match &schema.node.value {
        Yaml::Text(path) => schema_file(&schema, path.trim(), files, faults)?,
        _ => schema.value(faults)?,
    };
    if !matches!(value, Value::Map(_) | Value::Bool(_)) {
        let what = "it is no JSON schema".to_owned();
        schema.refuse(
            faults,
            what,
            "give a table, or the path of a JSON file with one",
        );
        return None;
    }
    Some(Check::JsonSchema { schema: value })
}

fn schema_file(
    said: &Said<'_>,
    path: &str,
    files: Files<'_>,
    faults: &mut Faults,
) -> Option<Value> {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let path = Path::new(path);
    if !path.components().all(is_plain) {
        let what = "it leads out of the project".to_owned();
        said.refuse(
            faults,
            what,
            "name a file of the project, relative to its root",
        );
        return None;
    }
    let text = match files(path) {
        Ok(Some(text)) => text,
        Ok(None) => {
            let what = format!("there is no file {}", path.display());
            said.refuse(
                faults,
                what,
                "name a file of the project, relative to its root",
            );
            return None;
        }
        Err(error) => {
            said.refuse(faults, error.to_string(), error.remedy());
            return None;
        }
    };
    match serde_json::from_str(&text) {
        Ok(value) => Some(value),
        Err(error) => {
            let what = format!("{} is no JSON: {error}", path.display());
            said.refuse(faults, what, "correct the file");
            None
        }
    }
}

fn judge(said: &Said<'_>, table: &mut Table<'_>, faults: &mut Faults) -> Option<Check> {
    let agent = match table.take("agent") {
        Some(said) => Some(said.text(faults)?.trim_start_matches('@').to_owned()),
        None => None,
    };
    let criteria = required(said, table.take("criteria"), "criteria", faults)?;
    Some(Check::Judge {
        criteria: criteria.texts(CRITERIA_MAX, faults)?,
        agent,
    })
}

fn metric(said: &Said<'_>, table: &mut Table<'_>, faults: &mut Faults) -> Option<Check> {
    let timeout_ms = timeout(table, faults);
    let run = run(said, table, faults);
    let words = [("higher", Better::Higher), ("lower", Better::Lower)];
    let better = match table.take("better") {
        Some(said) => Some(said.word(&words, faults)?),
        None => None,
    };
    let at_least = table.take("at_least");
    let at_most = table.take("at_most");
    let last = table.take("compared_to");
    let tolerance = table.take("tolerance");
    let (implied, bound) = match (at_least, at_most, last) {
        (Some(said), None, None) => (Better::Higher, as_good_as(&said, faults)?),
        (None, Some(said), None) => (Better::Lower, as_good_as(&said, faults)?),
        (None, None, Some(last)) => {
            last.word(&[("last", ())], faults)?;
            let Some(better) = better else {
                let what = "it does not say which direction is better".to_owned();
                said.refuse(faults, what, "add `better: higher` or `better: lower`");
                return None;
            };
            let tolerance = match tolerance.as_ref() {
                Some(said) => said.number(faults)?,
                None => Millionths(0),
            };
            (better, Bound::NoWorseThanLast { tolerance })
        }
        (_, _, _) => {
            let what = "it must have one bound".to_owned();
            said.refuse(
                faults,
                what,
                "give one of `at_least`, `at_most` and `compared_to: last`",
            );
            return None;
        }
    };
    if better.is_some_and(|better| better != implied) {
        let what = "`better` and the bound point in opposite directions".to_owned();
        said.refuse(
            faults,
            what,
            "`at_least` means higher, `at_most` means lower",
        );
        return None;
    }
    if let (Some(said), Bound::AsGoodAs { .. }) = (tolerance, bound) {
        let what = "only a comparison with the last run has one".to_owned();
        said.refuse(faults, what, "leave it out");
    }
    Some(Check::Metric {
        run: run?,
        timeout_ms: timeout_ms?,
        better: implied,
        bound,
    })
}

fn as_good_as(said: &Said<'_>, faults: &mut Faults) -> Option<Bound> {
    let value = said.number(faults)?;
    Some(Bound::AsGoodAs { value })
}

/// Returns a setting that must be there.
pub(super) fn required<'a>(
    table: &Said<'_>,
    said: Option<Said<'a>>,
    name: &str,
    faults: &mut Faults,
) -> Option<Said<'a>> {
    if said.is_none() {
        table.refuse(
            faults,
            format!("it has no `{name}`"),
            &format!("add `{name}`"),
        );
    }
    said
}
