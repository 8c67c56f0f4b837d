//! The `eval` key of a definition: one check, or a list of them.
//!
//! Carries none of them out. A schema in a file is read at once, so that no run can change what it
//! is held to.

use std::path::{Component, Path};

use kapi_core::value::KernelValue;
use kapi_settings::fault::Faults;
use kapi_settings::scalar::{Millis, NumberText, TrimmedText, Whole};
use kapi_settings::setting::{OneOrMany, Setting};
use serde::Deserialize;

use super::directory::Files;
use crate::rules::definition::EVALS_MAX;
use crate::rules::definition::eval::{
    Better, COMMAND_MS_DEFAULT, COMMAND_MS_MAX, CRITERIA_MAX, EXIT_CODE_MAX, Eval, EvalCheck,
    Expect, Millionths, NumberBound, PATTERN_BYTES_MAX,
};

const EXIT_CODE_LEAST: i64 = -(EXIT_CODE_MAX as i64);
const EXIT_CODE_MOST: i64 = EXIT_CODE_MAX as i64;

/// A command without a limit could hold its loop for ever.
type Timeout = Option<Millis<1, COMMAND_MS_MAX>>;

/// One check, as it is written.
#[derive(Deserialize)]
#[serde(rename = "by type or exit_code", rename_all = "snake_case")]
pub(super) enum EvalForm {
    ExitCode(ExitCodeForm),
    Command(EvalCommandForm),
    Regex(RegexForm),
    JsonSchema(SchemaForm),
    Judge(EvalJudgeForm),
    Metric(MetricForm),
}

#[derive(Deserialize)]
pub(super) struct ExitCodeForm {
    name: Option<TrimmedText>,
    blocking: Option<bool>,
    pass_condition: Option<Whole<EXIT_CODE_LEAST, EXIT_CODE_MOST>>,
}

#[derive(Deserialize)]
pub(super) struct EvalCommandForm {
    name: Option<TrimmedText>,
    blocking: Option<bool>,
    run: TrimmedText,
    timeout: Timeout,
}

#[derive(Deserialize)]
pub(super) struct RegexForm {
    name: Option<TrimmedText>,
    blocking: Option<bool>,
    #[expect(dead_code, reason = "only one kind of match is supported")]
    on: Option<OnForm>,
    expect: Option<Expect>,
    pattern: Setting<TrimmedText<PATTERN_BYTES_MAX>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum OnForm {
    Output,
}

#[derive(Deserialize)]
pub(super) struct SchemaForm {
    name: Option<TrimmedText>,
    blocking: Option<bool>,
    schema: Setting<KernelValue>,
}

#[derive(Deserialize)]
pub(super) struct EvalJudgeForm {
    name: Option<TrimmedText>,
    blocking: Option<bool>,
    agent: Option<TrimmedText>,
    criteria: OneOrMany<TrimmedText, 1, CRITERIA_MAX>,
}

#[derive(Deserialize)]
pub(super) struct MetricForm {
    name: Option<TrimmedText>,
    blocking: Option<bool>,
    run: TrimmedText,
    timeout: Timeout,
    better: Option<Better>,
    at_least: Option<Setting<NumberText>>,
    at_most: Option<Setting<NumberText>>,
    compared_to: Option<ComparedForm>,
    tolerance: Option<Setting<NumberText>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ComparedForm {
    Last,
}

/// Returns what a definition that says nothing is held to: exit code 0.
pub(super) fn assumed() -> Vec<Eval> {
    vec![Eval {
        name: "exit_code".to_owned(),
        blocking: true,
        check: EvalCheck::ExitCode { pass_condition: 0 },
    }]
}

/// Reads the checks.
pub(super) fn evals(
    forms: Vec<Setting<EvalForm>>,
    files: Files<'_>,
    faults: &mut Faults,
) -> Vec<Eval> {
    let mut evals: Vec<Eval> = Vec::new();
    for form in forms {
        let location = form.with(());
        let Some(mut eval) = eval(form, files, faults) else {
            continue;
        };
        let is_taken = |name: &str| evals.iter().any(|eval| eval.name == name);
        if eval.name.is_empty() {
            let kind = eval.check.kind();
            let numbered = (2..).map(|number| format!("{kind}-{number}"));
            let names = std::iter::once(kind.to_owned()).chain(numbered);
            let free = names.take(EVALS_MAX + 1).find(|name| !is_taken(name));
            eval.name = free.unwrap_or_default();
        } else if is_taken(&eval.name) {
            let what = format!("the check {:?} is already defined above", eval.name);
            faults.at(&location, what, "give each a unique name");
        }
        evals.push(eval);
    }
    evals
}

/// Reads one check; its name is empty when it has none.
fn eval(form: Setting<EvalForm>, files: Files<'_>, faults: &mut Faults) -> Option<Eval> {
    let location = form.with(());
    let (name, blocking, check) = match form.value {
        EvalForm::ExitCode(form) => {
            let code = form.pass_condition.map_or(0, |code| code.0);
            let pass_condition = i32::try_from(code).ok()?;
            let check = EvalCheck::ExitCode { pass_condition };
            (form.name, form.blocking, Some(check))
        }
        EvalForm::Command(form) => {
            let check = EvalCheck::Command {
                run: form.run.0,
                timeout_ms: timeout_ms(form.timeout),
            };
            (form.name, form.blocking, Some(check))
        }
        EvalForm::Regex(form) => {
            let check = EvalCheck::Regex {
                pattern: pattern(form.pattern, faults)?,
                expect: form.expect.unwrap_or(Expect::Match),
            };
            (form.name, form.blocking, Some(check))
        }
        EvalForm::JsonSchema(form) => {
            let schema = schema(&form.schema, files, faults);
            let check = schema.map(|schema| EvalCheck::JsonSchema { schema });
            (form.name, form.blocking, check)
        }
        EvalForm::Judge(form) => {
            let agent = form
                .agent
                .map(|agent| agent.0.trim_start_matches('@').to_owned());
            let criteria = form.criteria.0.into_iter().map(|word| word.0).collect();
            (
                form.name,
                form.blocking,
                Some(EvalCheck::Judge { criteria, agent }),
            )
        }
        EvalForm::Metric(form) => {
            let bound = bound(&form, &location, faults);
            let check = bound.map(|(better, bound)| EvalCheck::Metric {
                run: form.run.0,
                timeout_ms: timeout_ms(form.timeout),
                better,
                bound,
            });
            (form.name, form.blocking, check)
        }
    };
    Some(Eval {
        name: name.map(|name| name.0).unwrap_or_default(),
        blocking: blocking.unwrap_or(true),
        check: check?,
    })
}

fn timeout_ms(timeout: Timeout) -> u64 {
    timeout.map_or(COMMAND_MS_DEFAULT, |timeout| timeout.0)
}

fn pattern(said: Setting<TrimmedText<PATTERN_BYTES_MAX>>, faults: &mut Faults) -> Option<String> {
    match regex_lite::Regex::new(&said.value.0) {
        Ok(_) => Some(said.value.0),
        Err(error) => {
            let what = format!("it is not a regular expression: {error}");
            let remedy = "fix it; in YAML, put a backslash in single quotes";
            faults.at(&said, what, remedy);
            None
        }
    }
}

fn schema(
    said: &Setting<KernelValue>,
    files: Files<'_>,
    faults: &mut Faults,
) -> Option<KernelValue> {
    let value = match &said.value {
        KernelValue::Text(path) => schema_file(said, path.trim(), files, faults)?,
        _ => said.value.clone(),
    };
    if !matches!(value, KernelValue::Map(_) | KernelValue::Bool(_)) {
        let remedy = "give a table, or the path of a JSON file with one";
        faults.at(said, "it is not a JSON schema", remedy);
        return None;
    }
    Some(value)
}

fn schema_file(
    said: &Setting<KernelValue>,
    path: &str,
    files: Files<'_>,
    faults: &mut Faults,
) -> Option<KernelValue> {
    const REMEDY: &str = "give a file in the project, relative to its root";
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let path = Path::new(path);
    if !path.components().all(is_plain) {
        faults.at(said, "it points outside the project", REMEDY);
        return None;
    }
    let text = match files(path) {
        Ok(Some(text)) => text,
        Ok(None) => {
            faults.at(said, format!("there is no file {}", path.display()), REMEDY);
            return None;
        }
        Err(error) => {
            faults.at(said, error.to_string(), error.remedy());
            return None;
        }
    };
    match serde_json::from_str(&text) {
        Ok(value) => Some(value),
        Err(error) => {
            let what = format!("{} is not JSON: {error}", path.display());
            faults.at(said, what, "correct the file");
            None
        }
    }
}

fn bound(
    form: &MetricForm,
    location: &Setting<()>,
    faults: &mut Faults,
) -> Option<(Better, NumberBound)> {
    let bounds = (&form.at_least, &form.at_most, &form.compared_to);
    let (implied, bound) = match bounds {
        (Some(said), None, None) => (Better::Higher, as_good_as(said, faults)?),
        (None, Some(said), None) => (Better::Lower, as_good_as(said, faults)?),
        (None, None, Some(ComparedForm::Last)) => {
            let Some(better) = form.better else {
                let what = "it does not define which direction is better";
                faults.at(location, what, "add `better: higher` or `better: lower`");
                return None;
            };
            let tolerance = form.tolerance.as_ref();
            let tolerance = tolerance.map_or(Some(Millionths(0)), |said| number(said, faults))?;
            (better, NumberBound::NoWorseThanLast { tolerance })
        }
        (_, _, _) => {
            let remedy = "give one of `at_least`, `at_most` and `compared_to: last`";
            faults.at(location, "it must have exactly one bound", remedy);
            return None;
        }
    };
    if form.better.is_some_and(|better| better != implied) {
        let what = "`better` and the bound point in opposite directions";
        faults.at(
            location,
            what,
            "`at_least` means higher, `at_most` means lower",
        );
        return None;
    }
    if let (Some(said), NumberBound::AsGoodAs { .. }) = (&form.tolerance, bound) {
        let what = "only a comparison with the last run can have one";
        faults.at(said, what, "remove it");
    }
    Some((implied, bound))
}

fn as_good_as(said: &Setting<NumberText>, faults: &mut Faults) -> Option<NumberBound> {
    number(said, faults).map(|value| NumberBound::AsGoodAs { value })
}

fn number(said: &Setting<NumberText>, faults: &mut Faults) -> Option<Millionths> {
    let parsed = Millionths::parse(&said.value.0);
    if parsed.is_err() {
        let what = format!("{} cannot be stored exactly", said.value.0);
        faults.at(said, what, "give a number with up to six decimals");
    }
    parsed.ok()
}
