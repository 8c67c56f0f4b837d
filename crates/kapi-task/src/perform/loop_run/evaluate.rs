//! Whether a run did well: each eval of the definition, then the verify commands.
//!
//! What an agent says of itself decides nothing but where an eval reads its words. Measured numbers
//! are kept for the next run.

use kapi_check::perform::prover::checkout;
use kapi_core::quote::tail;
use kapi_core::value::KernelValue;
use regex_lite::Regex;

use super::{Ended, LoopExecution, schema, skipped};
use crate::perform::ending::eval_failed;
use crate::perform::proof::{AttemptWork, TaskProver, end_of};
use crate::rules::definition::eval::{Eval, EvalCheck, Expect, Millionths, NumberBound};
use crate::rules::handoff::EvalResult;
use crate::rules::task::{End, FailureKind, PhaseStatus};

/// Bytes of what an eval found that are kept.
const DETAILS_BYTES_MAX: usize = 1_000;
/// Places of an output that are tried as the beginning of JSON.
const JSON_STARTS_MAX: usize = 64;

/// What an eval found.
pub(super) struct EvalFinding {
    pub(super) passed: bool,
    pub(super) details: String,
}

impl EvalFinding {
    pub(super) fn new(passed: bool, details: impl Into<String>) -> Self {
        Self {
            passed,
            details: details.into(),
        }
    }
}

impl LoopExecution<'_> {
    /// Evaluates the run; a blocking eval that does not pass is its end.
    pub(super) fn evaluate(&mut self) -> Result<Ended, End> {
        let Some(code) = self.exit_code() else {
            return Ok(skipped("the agent did not finish"));
        };
        let definition = &self.run.definition;
        let evals = definition.evals.clone();
        let is_of_code = |eval: &Eval| matches!(eval.check, EvalCheck::ExitCode { .. });
        let own_end = self.report.end.clone();
        if evals.iter().any(is_of_code) {
            // What an exit code means is the evals' to say.
            self.report.end = End::Completed;
        } else if self.has_failed() {
            return Ok(skipped("the agent failed"));
        }
        self.report.evals.clear();
        for eval in &evals {
            let found = self.check(eval, code)?;
            self.note(&eval.name, eval.blocking, &found);
            self.within_budget(&format!("eval {}", eval.name))?;
        }
        if !self.task.request.verify.is_empty() {
            let found = self.verify()?;
            self.note("verify", true, &found);
        }
        let codes = evals.iter().filter(|eval| is_of_code(eval));
        let codes: Vec<&str> = codes.map(|eval| eval.name.as_str()).collect();
        Ok(self.verdict(&codes, own_end))
    }

    /// Returns the agent's exit code, if it ended by itself.
    fn exit_code(&self) -> Option<i32> {
        match &self.report.end {
            End::Completed => Some(0),
            End::Failed(failure) if failure.kind == FailureKind::Agent => failure.exit_code,
            End::Failed(_) | End::Skipped { .. } | End::Cancelled => None,
        }
    }

    /// Ends the run once the budget of its task is spent; its work stays where it is.
    pub(super) fn within_budget(&self, what: &str) -> Result<(), End> {
        match self.allowance.spent_in(what) {
            Some(end) => Err(self.with_left(end)),
            None => Ok(()),
        }
    }

    pub(super) fn with_left(&self, mut end: End) -> End {
        if let End::Failed(failure) = &mut end {
            failure.message.push_str(&self.report.work.left());
        }
        end
    }

    fn note(&mut self, name: &str, blocking: bool, found: &EvalFinding) {
        let details = tail(found.details.trim(), DETAILS_BYTES_MAX);
        self.report.evals.push(EvalResult {
            name: name.to_owned(),
            passed: found.passed,
            blocking,
            details: (!details.is_empty()).then(|| details.to_owned()),
        });
    }

    /// Sums up; `codes` are the evals of the exit code, and `own_end` is how the agent ended.
    fn verdict(&mut self, codes: &[&str], own_end: End) -> Ended {
        let evals = &self.report.evals;
        let n_passed = evals.iter().filter(|eval| eval.passed).count();
        let detail = format!("{n_passed} of {} evals passed", evals.len());
        let failed = evals.iter().find(|eval| eval.blocking && !eval.passed);
        let Some(failed) = failed else {
            return (PhaseStatus::Ok, Some(detail));
        };
        let detail = format!("{detail}; {} did not pass", failed.name);
        if codes.contains(&failed.name.as_str()) && matches!(own_end, End::Failed(_)) {
            // The agent's own failure says more than that its code was not the right one.
            self.report.end = own_end;
            return (PhaseStatus::Error, Some(detail));
        }
        let details = failed.details.clone().unwrap_or_default();
        let left = self.report.work.left();
        let message = format!("eval {} did not pass: {details}{left}", failed.name);
        self.report.end = eval_failed(message);
        (PhaseStatus::Error, Some(detail))
    }

    fn check(&mut self, eval: &Eval, code: i32) -> Result<EvalFinding, End> {
        match &eval.check {
            EvalCheck::ExitCode { pass_condition } => Ok(EvalFinding::new(
                code == *pass_condition,
                format!("exit code {code}, expected {pass_condition}"),
            )),
            EvalCheck::Command { run, timeout_ms } => self.command(run, *timeout_ms),
            EvalCheck::Regex { pattern, expect } => Ok(self.regex(pattern, *expect)),
            EvalCheck::JsonSchema { schema } => Ok(self.json(schema)),
            EvalCheck::Judge { criteria, agent } => {
                self.judge(&eval.name, criteria, agent.as_deref())
            }
            EvalCheck::Metric {
                run,
                timeout_ms,
                better,
                bound,
            } => {
                let measured = match self.measure(run, *timeout_ms)? {
                    Ok(measured) => measured,
                    Err(found) => return Ok(found),
                };
                let last = self.last_measured(&eval.name);
                let passed = bound.is_met(*better, measured, last);
                self.report
                    .metrics
                    .insert(eval.name.clone(), measured.to_string());
                Ok(EvalFinding::new(passed, compared(measured, *bound, last)))
            }
        }
    }

    /// Proves the verify commands on what the run left.
    fn verify(&mut self) -> Result<EvalFinding, End> {
        let prover = TaskProver::open(self.performer, self.attempt());
        let proved = prover.and_then(|prover| {
            let left = AttemptWork::of(&self.report.work);
            let baseline = prover.baseline_of(&left)?;
            prover.prove(&left, baseline.as_ref())
        });
        match proved {
            Ok(proof) => {
                proof.record(&mut self.report.work);
                Ok(EvalFinding::new(true, ""))
            }
            Err(End::Cancelled) => Err(End::Cancelled),
            Err(End::Failed(failure)) if failure.kind == FailureKind::BudgetSpent => {
                Err(self.with_left(End::Failed(failure)))
            }
            Err(end) => Ok(EvalFinding::new(false, super::end_words(&end))),
        }
    }

    fn command(&self, command: &str, timeout_ms: u64) -> Result<EvalFinding, End> {
        Ok(match self.run_once(command, timeout_ms)? {
            Ok(ended) => {
                let details = format!("`{command}`: {}", end_of(&ended.run));
                EvalFinding::new(ended.run.passed() && ended.tampered.is_empty(), details)
            }
            Err(found) => found,
        })
    }

    /// Runs a command on a clean checkout; what cannot be run has not passed.
    fn run_once(
        &self,
        command: &str,
        timeout_ms: u64,
    ) -> Result<Result<checkout::LineResult, EvalFinding>, End> {
        let bounded = self.allowance.bounded(timeout_ms);
        let timeout_ms = bounded.map_err(|end| self.with_left(end))?;
        let prover = TaskProver::open(self.performer, self.attempt());
        let left = AttemptWork::of(&self.report.work);
        let ended = prover.and_then(|prover| prover.run_once(&left, command, timeout_ms));
        match ended {
            Ok(ended) => Ok(Ok(ended)),
            Err(End::Cancelled) => Err(End::Cancelled),
            Err(end) => Ok(Err(EvalFinding::new(false, super::end_words(&end)))),
        }
    }

    fn regex(&self, pattern: &str, expect: Expect) -> EvalFinding {
        let regex = match Regex::new(pattern) {
            Ok(regex) => regex,
            Err(error) => return EvalFinding::new(false, format!("read {pattern:?}: {error}")),
        };
        let is_match = regex.is_match(&self.report.output);
        match (expect, is_match) {
            (Expect::Match, true) | (Expect::NoMatch, false) => EvalFinding::new(true, ""),
            (Expect::Match, false) => EvalFinding::new(false, format!("nothing matches {pattern}")),
            (Expect::NoMatch, true) => {
                EvalFinding::new(false, format!("something matches {pattern}"))
            }
        }
    }

    fn json(&self, schema: &KernelValue) -> EvalFinding {
        let Some(value) = last_json(&self.report.output) else {
            return EvalFinding::new(false, "the output does not end with JSON");
        };
        match schema::check(schema, &value) {
            Ok(()) => EvalFinding::new(true, ""),
            Err(why) => EvalFinding::new(false, why),
        }
    }

    fn measure(
        &self,
        command: &str,
        timeout_ms: u64,
    ) -> Result<Result<Millionths, EvalFinding>, End> {
        let ended = match self.run_once(command, timeout_ms)? {
            Ok(ended) => ended,
            Err(found) => return Ok(Err(found)),
        };
        if !ended.run.passed() || !ended.tampered.is_empty() {
            return Ok(Err(EvalFinding::new(
                false,
                format!("`{command}`: {}", end_of(&ended.run)),
            )));
        }
        let line = ended
            .stdout
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty());
        let number = Millionths::parse(line.unwrap_or_default().trim());
        Ok(number.map_err(|error| EvalFinding::new(false, format!("failed to {error}"))))
    }

    fn last_measured(&self, eval: &str) -> Option<Millionths> {
        let text = self.known()?.metrics.get(eval)?;
        Millionths::parse(text).ok()
    }
}

fn compared(measured: Millionths, bound: NumberBound, last: Option<Millionths>) -> String {
    match (bound, last) {
        (NumberBound::AsGoodAs { value }, _) => format!("{measured}, expected {value}"),
        (NumberBound::NoWorseThanLast { .. }, None) => format!("{measured}, the first"),
        (NumberBound::NoWorseThanLast { tolerance }, Some(last)) => {
            format!("{measured} after {last}, with a tolerance of {tolerance}")
        }
    }
}

/// Returns the JSON that a text is, or ends in, in a fence or bare.
fn last_json(text: &str) -> Option<KernelValue> {
    let text = text.trim();
    let text = text.strip_suffix("```").unwrap_or(text).trim_end();
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let starts = text.char_indices().filter(|(at, c)| {
        let begins_line = *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n');
        begins_line && matches!(c, '{' | '[')
    });
    // The first from which everything to the end is one value is the whole of it.
    starts
        .take(JSON_STARTS_MAX)
        .find_map(|(at, _)| serde_json::from_str(text.get(at..)?).ok())
}

#[cfg(test)]
mod tests {
    use super::last_json;

    #[test]
    fn json_is_found_at_the_end_of_what_was_said() {
        for (text, expected) in [
            ("{\"a\":1}", Some("{\"a\":1}")),
            (
                "Here it is:\n```json\n{\"a\": [1]}\n```\n",
                Some("{\"a\":[1]}"),
            ),
            ("[\n{\n}\n]", Some("[{}]")),
            ("{\"a\":1}\nand that is all", None),
            ("nothing", None),
            ("12", Some("12")),
        ] {
            let found = last_json(text).map(|value| value.to_json());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
