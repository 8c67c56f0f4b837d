//! From facts to a verdict, with one reason for each leaf.
//!
//! Three values: what is not known stays not known through `not`, so that a missing answer never
//! makes anything hold.

use kapi_core::pattern;
use kapi_core::text::{counted, short_id};

use crate::rules::condition::expression::{Expression, ExpressionContext};
use crate::rules::condition::{
    Condition, ConditionQuestion, ConditionResult, ConditionVerdict, Facts, FileIs, GitIs,
    ProbeAnswer, Reason, RunResult,
};

/// Paths that a reason names.
const PATHS_SHOWN: usize = 3;

/// Decides a condition.
pub(super) fn verdict(
    condition: &Condition,
    context: &ExpressionContext,
    facts: &Facts,
) -> ConditionVerdict {
    let mut reasons = Vec::new();
    let held = held(condition, context, facts, &mut reasons);
    ConditionVerdict {
        holds: held == ConditionResult::Yes,
        reasons,
    }
}

fn held(
    condition: &Condition,
    context: &ExpressionContext,
    facts: &Facts,
    reasons: &mut Vec<Reason>,
) -> ConditionResult {
    match condition {
        Condition::All { of } => {
            // All are looked at, so that all reasons are shown.
            let mut each = |inner| held(inner, context, facts, reasons);
            let found: Vec<ConditionResult> = of.iter().map(&mut each).collect();
            first_of(
                &found,
                [
                    ConditionResult::No,
                    ConditionResult::Unknown,
                    ConditionResult::Yes,
                ],
            )
        }
        Condition::Any { of } => {
            let mut each = |inner| held(inner, context, facts, reasons);
            let found: Vec<ConditionResult> = of.iter().map(&mut each).collect();
            first_of(
                &found,
                [
                    ConditionResult::Yes,
                    ConditionResult::Unknown,
                    ConditionResult::No,
                ],
            )
        }
        Condition::Not { of } => match held(of, context, facts, reasons) {
            ConditionResult::Yes => ConditionResult::No,
            ConditionResult::No => ConditionResult::Yes,
            ConditionResult::Unknown => ConditionResult::Unknown,
        },
        Condition::Expr { expr } => {
            let reason = expression(expr, context);
            let held = reason.held;
            reasons.push(reason);
            held
        }
        Condition::File { .. }
        | Condition::Command { .. }
        | Condition::Git { .. }
        | Condition::Time { .. }
        | Condition::LastResult { .. }
        | Condition::Changed { .. } => {
            let reason = fact(condition, facts);
            let held = reason.held;
            reasons.push(reason);
            held
        }
    }
}

/// Returns the first of these that was found; nothing at all is not known.
fn first_of(found: &[ConditionResult], order: [ConditionResult; 3]) -> ConditionResult {
    let first = order.into_iter().find(|held| found.contains(held));
    first.unwrap_or(ConditionResult::Unknown)
}

fn expression(expr: &Expression, context: &ExpressionContext) -> Reason {
    let (held, found) = if expr.holds(context) {
        (ConditionResult::Yes, "condition passed")
    } else {
        (ConditionResult::No, "condition evaluated to false")
    };
    Reason {
        asked: expr.to_string(),
        found: found.to_owned(),
        held,
    }
}

/// Returns what a leaf has the world look up; none for an expression.
pub(super) fn question(leaf: &Condition) -> Option<ConditionQuestion> {
    Some(match leaf {
        Condition::All { .. } | Condition::Any { .. } | Condition::Not { .. } => return None,
        Condition::Expr { .. } => return None,
        Condition::File { glob, is } => match is {
            FileIs::Exists | FileIs::Gone => ConditionQuestion::Files { glob: glob.clone() },
            FileIs::Changed => ConditionQuestion::FilesChanged { glob: glob.clone() },
        },
        Condition::Command { run, timeout_ms } => ConditionQuestion::Command {
            run: run.clone(),
            timeout_ms: *timeout_ms,
        },
        Condition::Git { is } => match is {
            GitIs::Branch { .. } => ConditionQuestion::Branch,
            GitIs::Clean | GitIs::Dirty => ConditionQuestion::Uncommitted,
            GitIs::AheadOf { reference } => ConditionQuestion::AheadOf {
                reference: reference.clone(),
            },
            GitIs::RefChanged { reference } => ConditionQuestion::RefChanged {
                reference: reference.clone(),
            },
        },
        Condition::Time { window } => ConditionQuestion::LocalTime {
            zone: window.zone.clone(),
        },
        Condition::LastResult { loop_name, .. } => ConditionQuestion::LastResult {
            loop_name: loop_name.clone(),
        },
        Condition::Changed { globs } => ConditionQuestion::Changed {
            globs: globs.clone(),
        },
    })
}

fn fact(leaf: &Condition, facts: &Facts) -> Reason {
    let answer = question(leaf).and_then(|question| facts.get(&question));
    let judged = match answer {
        None => Err("it was not checked".to_owned()),
        Some(ProbeAnswer::Unknown { why }) => Err(why.clone()),
        Some(answer) => judge(leaf, answer)
            .ok_or_else(|| "the recorded value belongs to another question".to_owned()),
    };
    let (held, found) = match judged {
        Ok((true, found)) => (ConditionResult::Yes, found),
        Ok((false, found)) => (ConditionResult::No, found),
        Err(why) => (ConditionResult::Unknown, why),
    };
    Reason {
        asked: asked(leaf),
        found,
        held,
    }
}

/// Tells whether an answer makes a leaf hold, and what was found; none if it is no answer to it.
fn judge(leaf: &Condition, answer: &ProbeAnswer) -> Option<(bool, String)> {
    match (leaf, answer) {
        (Condition::File { is, .. }, ProbeAnswer::Files { count }) => {
            let found = counted(*count, "file");
            match is {
                FileIs::Exists => Some((*count > 0, found)),
                FileIs::Gone => Some((*count == 0, found)),
                FileIs::Changed => None,
            }
        }
        (
            Condition::File {
                is: FileIs::Changed,
                ..
            }
            | Condition::Changed { .. },
            ProbeAnswer::Changed { paths },
        ) => Some((!paths.is_empty(), listed(paths))),
        (
            Condition::File {
                is: FileIs::Changed,
                ..
            }
            | Condition::Changed { .. }
            | Condition::Git {
                is: GitIs::RefChanged { .. },
            },
            ProbeAnswer::NoRunBefore,
        ) => Some((true, "there was no earlier run".to_owned())),
        (Condition::Command { .. }, ProbeAnswer::Exit { code }) => {
            Some((*code == 0, format!("exit code {code}")))
        }
        (Condition::Command { timeout_ms, .. }, ProbeAnswer::TimedOut) => Some((
            false,
            format!("was still running after {} s", timeout_ms / 1_000),
        )),
        (Condition::Git { is }, answer) => git(is, answer),
        (Condition::Time { window }, ProbeAnswer::LocalTime(time)) => {
            Some((window.holds(*time), format!("it is {time}")))
        }
        (Condition::LastResult { is, .. }, ProbeAnswer::Result(result)) => {
            Some((is.contains(result), format!("it was {result}")))
        }
        _ => None,
    }
}

fn git(is: &GitIs, answer: &ProbeAnswer) -> Option<(bool, String)> {
    match (is, answer) {
        (GitIs::Branch { name }, ProbeAnswer::Branch { name: Some(found) }) => {
            Some((pattern::is_path(name, found), format!("on {found}")))
        }
        (GitIs::Branch { .. }, ProbeAnswer::Branch { name: None }) => {
            Some((false, "not on a branch".to_owned()))
        }
        (GitIs::Clean, ProbeAnswer::Uncommitted { count }) => {
            Some((*count == 0, counted(*count, "changed path")))
        }
        (GitIs::Dirty, ProbeAnswer::Uncommitted { count }) => {
            Some((*count > 0, counted(*count, "changed path")))
        }
        (GitIs::AheadOf { .. }, ProbeAnswer::Ahead { commits }) => Some((
            *commits > 0,
            format!("{} ahead", counted(*commits, "commit")),
        )),
        (GitIs::RefChanged { .. }, ProbeAnswer::Moved { before, now }) => {
            let was = before.as_deref().map_or("nowhere", short_id);
            let is = now.as_deref().map_or("nowhere", short_id);
            let found = format!("was {was}, is {is}");
            Some((before != now, found))
        }
        _ => None,
    }
}

/// Says what a leaf asks.
fn asked(leaf: &Condition) -> String {
    match leaf {
        Condition::All { .. } => "all".to_owned(),
        Condition::Any { .. } => "any".to_owned(),
        Condition::Not { .. } => "not".to_owned(),
        Condition::Expr { expr } => expr.to_string(),
        Condition::File { glob, is } => match is {
            FileIs::Exists => format!("file {glob} exists"),
            FileIs::Gone => format!("file {glob} is gone"),
            FileIs::Changed => format!("file {glob} changed since the last run"),
        },
        Condition::Command { run, .. } => format!("command `{run}`"),
        Condition::Git { is } => match is {
            GitIs::Branch { name } => format!("git branch {name}"),
            GitIs::Clean => "git clean".to_owned(),
            GitIs::Dirty => "git dirty".to_owned(),
            GitIs::AheadOf { reference } => format!("git ahead of {reference}"),
            GitIs::RefChanged { reference } => format!("git ref {reference} changed"),
        },
        Condition::Time { window } => format!("time {window}"),
        Condition::LastResult { loop_name, is } => {
            let whose = loop_name
                .as_ref()
                .map_or(String::new(), |name| format!(" of {name}"));
            let wanted: Vec<String> = is.iter().map(RunResult::to_string).collect();
            format!("last result{whose} {}", wanted.join(" or "))
        }
        Condition::Changed { globs } => {
            format!("{} changed since the last run's commit", globs.join(", "))
        }
    }
}

fn listed(paths: &[String]) -> String {
    if paths.is_empty() {
        return "nothing changed".to_owned();
    }
    let shown: Vec<&str> = paths.iter().take(PATHS_SHOWN).map(String::as_str).collect();
    let more = if paths.len() > shown.len() {
        format!(" and {} more", paths.len() - shown.len())
    } else {
        String::new()
    };
    format!("{}{more} changed", shown.join(", "))
}
