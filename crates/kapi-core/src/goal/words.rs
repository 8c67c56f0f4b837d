//! Where a goal stands, in the words a person reads: reason and next commands.
//!
//! The same words appear in the terminal, in JSON and in the snapshot.

use crate::goal::event::Stop;
use crate::goal::outcome::{AgentEnd, JudgeAnswer, ProviderFailureKind, VerifyReport};
use crate::goal::state::{Goal, Status};

/// Returns one sentence on why the goal stands where it does; nothing while it is simply going on.
#[must_use]
pub fn reason(goal: &Goal) -> Option<String> {
    match goal.status {
        Status::Proposed => Some("its contract waits for approval".to_owned()),
        Status::Active => None,
        Status::Done | Status::Unverified => Some(done_reason(goal)),
        Status::Blocked
        | Status::Stalled
        | Status::Paused
        | Status::Impossible
        | Status::Cancelled => goal.stop.as_ref().map(|stop| stop_reason(goal, stop)),
    }
}

fn done_reason(goal: &Goal) -> String {
    let proof = if goal.status == Status::Unverified {
        "accepted without a verify command".to_owned()
    } else {
        let count = goal.verify.as_ref().map_or(0, |report| report.runs.len());
        let noun = if count == 1 { "check" } else { "checks" };
        format!("{count} {noun} passed on a clean checkout of the commit")
    };
    let is_unchanged = goal
        .candidate
        .as_ref()
        .is_some_and(|work| work.files_changed == 0);
    let proof = if is_unchanged {
        format!("nothing had to be changed: {proof}")
    } else {
        proof
    };
    match goal
        .judge
        .as_ref()
        .map(|run| (agent_name(&run.by), &run.answer))
    {
        None => format!("{proof}; no judge"),
        Some((by, JudgeAnswer::Verdict { reason, .. })) => {
            format!("{proof}; judge {by}: {reason}")
        }
        Some((by, JudgeAnswer::Malformed { .. } | JudgeAnswer::Unavailable(_))) => {
            format!("{proof}; judge {by} was unavailable and the contract lets that pass")
        }
    }
}

/// Returns an agent's name for a line of text: a script by its file, a command by its beginning.
#[must_use]
pub fn agent_name(reference: &str) -> String {
    const CHARS_MAX: usize = 60;
    let short = match reference.strip_prefix("script:") {
        Some(path) => format!("script:{}", path.rsplit('/').next().unwrap_or(path)),
        None => reference.lines().next().unwrap_or_default().to_owned(),
    };
    if short.chars().count() > CHARS_MAX {
        let cut: String = short.chars().take(CHARS_MAX).collect();
        format!("{cut}…")
    } else {
        short
    }
}

fn stop_reason(goal: &Goal, stop: &Stop) -> String {
    match stop {
        Stop::BudgetUsedUp { limit } => format!("the {limit} budget is used up"),
        Stop::Interrupted => "interrupted by a person".to_owned(),
        Stop::NoProgress { turns } => {
            let failing = goal.verify.as_ref().and_then(first_failure);
            let crashed = goal.agent_end.as_ref().and_then(crash);
            let detail = crashed
                .or(failing)
                .map_or_else(String::new, |text| format!(": {text}"));
            format!(
                "no progress: {turns} turns ended in the same tree with the same verdict{detail}"
            )
        }
        Stop::AgentBlocked { reason } => format!("the agent says it is blocked: {reason}"),
        Stop::JudgeBlocked { reason } => format!("the judge says a person is needed: {reason}"),
        Stop::Impossible { reason } => format!("the judge says it is impossible: {reason}"),
        Stop::JudgeUnavailable { reason } => format!("no verdict from the judge: {reason}"),
        Stop::ProviderUnavailable { failure } => {
            format!(
                "the agent's provider failed ({}): {}",
                failure.kind.words(),
                failure.message
            )
        }
        Stop::WorldFailed { failure } => format!("failed to {}", failure.message),
        Stop::Cancelled {
            reason: Some(reason),
        } => format!("cancelled by a person: {reason}"),
        Stop::Cancelled { reason: None } => "cancelled by a person".to_owned(),
    }
}

fn crash(end: &AgentEnd) -> Option<String> {
    match end {
        AgentEnd::Crashed { code } => {
            Some(format!("the agent exited {code} without ending its turn"))
        }
        AgentEnd::OutOfResources { resource, limit } => Some(format!(
            "the agent's run failed at its limit of {} (`[sandbox] {}`)",
            limit_text(resource, limit),
            limit_key(resource)
        )),
        AgentEnd::Finished
        | AgentEnd::Refused
        | AgentEnd::LimitReached
        | AgentEnd::DeadlinePassed
        | AgentEnd::IdlePassed
        | AgentEnd::Provider(_) => None,
    }
}

/// Returns a limit of the machine as one amount: `300 MiB of memory`, `64 processes`.
#[must_use]
pub fn limit_text(resource: &str, limit: &str) -> String {
    match (resource, limit) {
        ("processes", "1") => "1 process".to_owned(),
        ("processes", _) => format!("{limit} processes"),
        ("disk", _) => format!("{limit} on disk"),
        ("file size", _) => format!("{limit} for one file"),
        (_, _) => format!("{limit} of {resource}"),
    }
}

/// Returns the key under `[sandbox]` in the configuration that sets a limit of the machine.
#[must_use]
pub fn limit_key(resource: &str) -> &str {
    match resource {
        "file size" => "file_size",
        same => same,
    }
}

/// Returns a sentence on a limit that something in an agent's run met while the run went on.
#[must_use]
pub fn limit_met(resource: &str, limit: &str) -> String {
    let what_then = match resource {
        "processes" => "could start no more",
        _ => "was ended",
    };
    format!(
        "a program inside met the limit of {} and {what_then}; raise it with `[sandbox] {}`",
        limit_text(resource, limit),
        limit_key(resource)
    )
}

/// Returns what made a verification fail, in a few words.
#[must_use]
pub fn first_failure(report: &VerifyReport) -> Option<String> {
    if let Some(path) = report.tampered.first() {
        return Some(format!("protected file {path} was changed"));
    }
    let run = report.runs.iter().find(|run| !run.passed())?;
    let end = match (run.timed_out, run.exit_code) {
        (true, _) => "was killed at its time limit".to_owned(),
        (false, Some(code)) => format!("exited {code}"),
        (false, None) => "was killed".to_owned(),
    };
    Some(format!("`{}` {end}", run.command))
}

/// Returns what to do about the reason, where there is something to do.
#[must_use]
pub fn hint(goal: &Goal) -> Option<String> {
    match goal.stop.as_ref()? {
        Stop::WorldFailed { failure } => failure.hint.clone(),
        Stop::ProviderUnavailable { failure } => match failure.kind {
            ProviderFailureKind::Unauthorized => Some(format!(
                "check the key of `{}`: `api_key_env` or `login` in the configuration.",
                goal.contract.agent
            )),
            ProviderFailureKind::BadRequest => {
                Some("check `model` and `base_url` in the configuration.".to_owned())
            }
            ProviderFailureKind::Unreachable => {
                Some("check the network, or `base_url` in the configuration.".to_owned())
            }
            ProviderFailureKind::RateLimited => {
                Some("resume when the provider's limit is reset.".to_owned())
            }
            ProviderFailureKind::ServerError
            | ProviderFailureKind::TruncatedStream
            | ProviderFailureKind::EmptyAnswer => Some("resume later.".to_owned()),
        },
        Stop::JudgeUnavailable { .. } => Some(
            "resume asks the judge again; a new goal can name another judge with `--judge`."
                .to_owned(),
        ),
        Stop::NoProgress { .. } => match goal.agent_end.as_ref()? {
            AgentEnd::OutOfResources { resource, .. } => Some(format!(
                "raise `{}` under [sandbox] in your configuration, then resume.",
                limit_key(resource)
            )),
            AgentEnd::Finished
            | AgentEnd::Refused
            | AgentEnd::LimitReached
            | AgentEnd::Crashed { .. }
            | AgentEnd::DeadlinePassed
            | AgentEnd::IdlePassed
            | AgentEnd::Provider(_) => None,
        },
        Stop::BudgetUsedUp { .. }
        | Stop::Interrupted
        | Stop::AgentBlocked { .. }
        | Stop::JudgeBlocked { .. }
        | Stop::Impossible { .. }
        | Stop::Cancelled { .. } => None,
    }
}

/// Returns what a person can type next, most useful first.
#[must_use]
pub fn next_commands(goal: &Goal) -> Vec<String> {
    let index = format!("{:03}", goal.id.index());
    let show = format!("kapi show {index}");
    match goal.status {
        Status::Proposed | Status::Active => {
            vec![
                format!("kapi resume {index}"),
                format!("kapi cancel {index}"),
            ]
        }
        Status::Paused => match &goal.stop {
            Some(Stop::BudgetUsedUp { limit }) => vec![
                format!(
                    "kapi budget {index} {} && kapi resume {index}",
                    limit.option()
                ),
                show,
            ],
            Some(_) | None => vec![format!("kapi resume {index}"), show],
        },
        Status::Blocked | Status::Stalled => {
            vec![
                show,
                format!("kapi resume {index}"),
                format!("kapi cancel {index}"),
            ]
        }
        Status::Impossible | Status::Cancelled => vec![show],
        Status::Unverified | Status::Done => {
            vec![
                format!("kapi diff {index}"),
                format!("git merge {}", goal.contract.branch),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{limit_key, limit_met, limit_text};

    #[test]
    fn limits_read_as_amounts_and_name_their_key() {
        for (resource, limit, text, key) in [
            ("memory", "300 MiB", "300 MiB of memory", "memory"),
            ("processes", "64", "64 processes", "processes"),
            ("processes", "1", "1 process", "processes"),
            ("disk", "2 GiB", "2 GiB on disk", "disk"),
            ("file size", "1 MiB", "1 MiB for one file", "file_size"),
        ] {
            assert_eq!(limit_text(resource, limit), text);
            assert_eq!(limit_key(resource), key);
        }
        assert_eq!(
            limit_met("memory", "300 MiB"),
            "a program inside met the limit of 300 MiB of memory and was ended; raise it with \
             `[sandbox] memory`"
        );
        assert_eq!(
            limit_met("processes", "64"),
            "a program inside met the limit of 64 processes and could start no more; raise it with \
             `[sandbox] processes`"
        );
    }
}
