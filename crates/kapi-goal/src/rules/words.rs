//! Where a goal stands, in the words a person reads: reason and next commands.
//!
//! The same words appear in the terminal, in JSON and in the snapshot.

use kapi_check::rules::proof::assess::Grade;
use kapi_check::rules::proof::verify_report::first_failure;
use kapi_core::agent_end::{AgentEnd, ProviderFailureKind};
use kapi_core::quote::visible_line;
use kapi_core::text::{agent_name, counted, limit_key, limit_text, shortened, time_words};
use kapi_core::verdict::JudgeAnswer;

use crate::rules::budget::BudgetLimit;
use crate::rules::event::Stop;
use crate::rules::state::{Goal, GoalStatus};
use crate::rules::wait::{FileState, GoalWait, WaitFor};

/// Characters of an agent's last words that are shown.
const LAST_WORDS_CHARS_MAX: usize = 200;

/// Returns one sentence on why the goal stands where it does; nothing while it is simply going on.
#[must_use]
pub fn reason(goal: &Goal) -> Option<String> {
    match goal.status {
        GoalStatus::Setup => Some("the contract is being drafted".to_owned()),
        GoalStatus::Proposed => Some("the contract needs approval".to_owned()),
        GoalStatus::Waiting => goal.wait.as_ref().map(waiting_reason),
        GoalStatus::Active => None,
        GoalStatus::Done | GoalStatus::Unverified => Some(done_reason(goal)),
        GoalStatus::Blocked
        | GoalStatus::Stalled
        | GoalStatus::Paused
        | GoalStatus::Impossible
        | GoalStatus::Cancelled => goal.stop.as_ref().map(|stop| stop_reason(goal, stop)),
    }
}

fn waiting_reason(wait: &GoalWait) -> String {
    let why = wait
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(": {reason}"));
    format!("parked until {}{why}", wait_words(&wait.until))
}

/// Returns what a goal waits for, as it reads after "until".
#[must_use]
pub fn wait_words(until: &WaitFor) -> String {
    match until {
        WaitFor::Time { at_ms } => time_words(*at_ms),
        WaitFor::File { path, until } => match until {
            FileState::Exists => format!("the file {path} exists"),
            FileState::Gone => format!("the file {path} is deleted"),
            FileState::Changed => format!("the file {path} has changed"),
        },
        WaitFor::Process { pid, .. } => format!("process {pid} has exited"),
        WaitFor::Command { command, .. } => format!("`{command}` exits 0"),
        WaitFor::Approval { what } => format!("you approve {what:?}"),
        WaitFor::Judge { judge, at_ms } => format!(
            "Kapi asks the judge {} again, {}",
            agent_name(judge),
            time_words(*at_ms)
        ),
        WaitFor::Quota { provider, at_ms } => {
            format!("the quota of {provider} resets, {}", time_words(*at_ms))
        }
    }
}

fn done_reason(goal: &Goal) -> String {
    let proof = if goal.status == GoalStatus::Unverified {
        unproved_reason(goal)
    } else {
        let count = goal.verify.as_ref().map_or(0, |report| report.runs.len());
        let checks = counted(count, "check");
        let base = match goal.grade() {
            Some(Grade::RedToGreen) => ", and failed on the base",
            Some(Grade::KeptGreen) => ", as on the base",
            Some(Grade::OwnTests) => ", and its new tests fail without it",
            Some(Grade::BaseUnknown) | None => "",
        };
        format!("{checks} passed on a clean checkout of the commit{base}")
    };
    let is_unchanged = goal
        .candidate
        .as_ref()
        .is_some_and(|work| work.files_changed == 0);
    let proof = if is_unchanged {
        format!("nothing needed to change: {proof}")
    } else {
        proof
    };
    match goal
        .judge
        .as_ref()
        .map(|run| (judge_name(goal, &run.by), &run.answer))
    {
        None => format!("{proof}; no judge"),
        Some((by, JudgeAnswer::Verdict { reason, .. })) => {
            format!("{proof}; judge {by}: {reason}")
        }
        Some((by, JudgeAnswer::Malformed { .. } | JudgeAnswer::Unavailable(_))) => {
            format!("{proof}; judge {by} was unavailable, which the contract allows")
        }
    }
}

fn unproved_reason(goal: &Goal) -> String {
    match goal.grade() {
        Some(Grade::KeptGreen) => "the checks already passed on the base and still pass, so \
            nothing proves the work"
            .to_owned(),
        Some(Grade::OwnTests) => "the checks already passed on the base; the only tests that \
            fail without the work are the agent's own"
            .to_owned(),
        Some(Grade::RedToGreen | Grade::BaseUnknown) | None => {
            "accepted without a verify command".to_owned()
        }
    }
}

/// Returns the name of a judge for a line of text; one that is the executor itself is named as such.
#[must_use]
pub fn judge_name(goal: &Goal, by: &str) -> String {
    let name = agent_name(by);
    if by == goal.contract.agent {
        format!("{name} (same model)")
    } else {
        name
    }
}

/// Says that nothing is left of a limit.
#[must_use]
pub fn used_up(limit: BudgetLimit) -> String {
    format!("the {limit} budget is used up")
}

fn stop_reason(goal: &Goal, stop: &Stop) -> String {
    match stop {
        Stop::BudgetUsedUp {
            limit: BudgetLimit::Turns,
        } => {
            let often = match goal.crashed.count {
                0 | 1 => String::new(),
                turns if turns == goal.spent.turns => format!("in each of the {turns} turns, "),
                turns => format!("in each of the last {turns} turns, "),
            };
            let crashed = crashed(goal);
            let detail = crashed.map_or_else(String::new, |text| format!(": {often}{text}"));
            format!("{}{detail}", used_up(BudgetLimit::Turns))
        }
        Stop::BudgetUsedUp { limit } => used_up(*limit),
        Stop::Interrupted => "interrupted".to_owned(),
        Stop::CapReached { cap } => format!("the spending cap is reached: {cap}"),
        Stop::CleanEnd { nudges } => format!(
            "the plan is finished, but the agent has not claimed the goal after {nudges} reminders"
        ),
        Stop::SpinGuard => {
            let nothing = "spin guard: the agent used no tools and changed nothing";
            match has_timed_out(goal) {
                true => format!("{nothing} before the time of its turn was up"),
                false => format!("{nothing} in its turn"),
            }
        }
        Stop::ConsentNeeded { pattern, command } => format!(
            "approval is needed first ({pattern}), and the agent did nothing else: {command}"
        ),
        Stop::ChecksCannotRun {
            command, reason, ..
        } => format!("`{command}` cannot run in the sandbox: {reason}"),
        Stop::NotDrafted { message } if message.is_empty() => {
            "the agent drafted no contract".to_owned()
        }
        Stop::NotDrafted { message } => format!("the agent drafted no contract: {message}"),
        Stop::NoProgress { turns } => {
            let failing = goal.verify.as_ref().and_then(first_failure);
            let detail = crashed(goal)
                .or(failing)
                .map_or_else(String::new, |text| format!(": {text}"));
            format!("no progress: {turns} turns ended with the same tree and verdict{detail}")
        }
        Stop::SameFailure { turns } => {
            let failing = goal.verify.as_ref().and_then(first_failure);
            let detail = failing.map_or_else(String::new, |text| format!(": {text}"));
            format!(
                "no progress: {turns} turns changed files, but the checks fail in the same way{detail}"
            )
        }
        Stop::AgentBlocked { reason } => format!("the agent is blocked: {reason}"),
        Stop::JudgeBlocked { reason } => format!("the judge needs your help: {reason}"),
        Stop::Impossible { reason } => format!("the judge considers it impossible: {reason}"),
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
        } => match race_lost_to(goal, reason) {
            Some(lane) => format!("lost the race to lane {lane}"),
            None => format!("cancelled by the user: {reason}"),
        },
        Stop::Cancelled { reason: None } => "cancelled by the user".to_owned(),
    }
}

/// Returns the lane that won, where a lane was stopped because of that.
fn race_lost_to<'a>(goal: &Goal, reason: &'a str) -> Option<&'a str> {
    goal.contract.race.as_ref()?;
    let lane = reason.strip_prefix("lane ")?.strip_suffix(" won")?;
    lane.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some(lane)
}

/// Returns how the agent's program ended its last turn, where it did so badly, and the last it said.
fn crashed(goal: &Goal) -> Option<String> {
    let end = crash(goal.agent_end.as_ref()?)?;
    let mut lines = goal.crashed.last_words.lines().rev();
    let last = lines.find(|line| !line.trim().is_empty());
    let last = last.map(|line| shortened(&visible_line(line), LAST_WORDS_CHARS_MAX));
    Some(last.map_or_else(
        || end.clone(),
        |words| format!("{end}; its last words: {words}"),
    ))
}

/// Tells whether a limit on time ended the agent's last turn.
const fn has_timed_out(goal: &Goal) -> bool {
    matches!(
        goal.agent_end,
        Some(AgentEnd::DeadlinePassed | AgentEnd::IdlePassed)
    )
}

/// Returns where to read what an agent said that broke off.
fn crash_hint(goal: &Goal) -> Option<String> {
    let reference = goal.id.reference();
    (!goal.crashed.is_none())
        .then(|| format!("read what the agent did with `kapi log {reference}`, then resume."))
}

fn crash(end: &AgentEnd) -> Option<String> {
    match end {
        AgentEnd::Crashed { code } => Some(format!(
            "the agent exited with {code} before ending its turn"
        )),
        AgentEnd::OutOfResources { resource, limit } => Some(format!(
            "the agent hit its limit of {} (`[sandbox] {}`)",
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

/// Returns what to do about the reason, where there is something to do.
#[must_use]
pub fn hint(goal: &Goal) -> Option<String> {
    match goal.stop.as_ref()? {
        Stop::WorldFailed { failure } => failure.hint.clone(),
        Stop::ProviderUnavailable { failure } => Some(provider_hint(goal, failure.kind)),
        Stop::JudgeUnavailable { .. } => Some(format!(
            "resume to ask the judge again, or name another judge for the same commit with \
             `kapi goal judge {} JUDGE`.",
            goal.id.reference()
        )),
        Stop::SameFailure { .. } => Some(
            "tell the agent what is wrong with `kapi say`, then resume; a coarse check may \
             need a larger `--stall-after`."
                .to_owned(),
        ),
        Stop::NoProgress { .. } => match goal.agent_end.as_ref()? {
            AgentEnd::OutOfResources { resource, .. } => Some(format!(
                "raise `{}` under [sandbox] in your configuration, then resume.",
                limit_key(resource)
            )),
            AgentEnd::Crashed { .. } => crash_hint(goal),
            AgentEnd::Finished
            | AgentEnd::Refused
            | AgentEnd::LimitReached
            | AgentEnd::DeadlinePassed
            | AgentEnd::IdlePassed
            | AgentEnd::Provider(_) => None,
        },
        Stop::BudgetUsedUp {
            limit: BudgetLimit::Turns,
        } => crash_hint(goal),
        Stop::CapReached { .. } => {
            Some("resume when the cap has room again, or raise it; see `kapi spend`.".to_owned())
        }
        Stop::ConsentNeeded { pattern, .. } => Some(format!(
            "allow it with `kapi goal allow {} {pattern:?}`, or resume without it.",
            goal.id.reference()
        )),
        Stop::AgentBlocked { .. } => Some(format!(
            "answer with `kapi say {} \"…\"`, then resume.",
            goal.id.reference()
        )),
        Stop::CleanEnd { .. } => Some(
            "review the work; tell the agent what is missing with `kapi say`, then resume."
                .to_owned(),
        ),
        Stop::ChecksCannotRun { remedy, .. } => Some(format!("{remedy} Then resume.")),
        Stop::NotDrafted { .. } => Some(
            "resume to ask again, or give the whole contract with the options of `kapi run`."
                .to_owned(),
        ),
        Stop::SpinGuard if has_timed_out(goal) => Some(
            "resume to try again; a new goal can give its turns more time (`--turn-timeout`)."
                .to_owned(),
        ),
        Stop::SpinGuard => {
            Some("describe in more detail what you want with `kapi say`, then resume.".to_owned())
        }
        Stop::BudgetUsedUp { .. }
        | Stop::Interrupted
        | Stop::JudgeBlocked { .. }
        | Stop::Impossible { .. }
        | Stop::Cancelled { .. } => None,
    }
}

fn provider_hint(goal: &Goal, kind: ProviderFailureKind) -> String {
    match kind {
        ProviderFailureKind::Unauthorized => format!(
            "check the key of `{}`: `api_key_env` or `login` in the configuration.",
            goal.contract.agent
        ),
        ProviderFailureKind::BadRequest => {
            "check `model` and `base_url` in the configuration.".to_owned()
        }
        ProviderFailureKind::Unreachable => {
            "check the network, or `base_url` in the configuration.".to_owned()
        }
        ProviderFailureKind::RateLimited => "resume when the provider's limit resets.".to_owned(),
        ProviderFailureKind::ServerError
        | ProviderFailureKind::TruncatedStream
        | ProviderFailureKind::EmptyAnswer => "resume later.".to_owned(),
    }
}

/// Returns what a person can type next, most useful first.
#[must_use]
pub fn next_commands(goal: &Goal) -> Vec<String> {
    let index = goal.id.reference();
    let show = format!("kapi show {index}");
    match goal.status {
        GoalStatus::Proposed => {
            vec![
                format!("kapi goal approve {index}"),
                format!("kapi cancel {index}"),
            ]
        }
        // It goes on where its session is.
        GoalStatus::Setup | GoalStatus::Active if goal.contract.is_session() => {
            vec![show, format!("kapi cancel {index}")]
        }
        GoalStatus::Setup | GoalStatus::Active => {
            vec![
                format!("kapi resume {index}"),
                format!("kapi cancel {index}"),
            ]
        }
        GoalStatus::Waiting => waiting_commands(goal, &index),
        GoalStatus::Paused => match &goal.stop {
            Some(Stop::BudgetUsedUp { limit }) => {
                vec![format!("kapi resume {index} {}", limit.option()), show]
            }
            Some(_) | None => vec![format!("kapi resume {index}"), show],
        },
        GoalStatus::Blocked | GoalStatus::Stalled => {
            let resume = format!("kapi resume {index}");
            let cancel = format!("kapi cancel {index}");
            if goal.lacks_a_judge() {
                return vec![show, resume, judge_command(&index), cancel];
            }
            vec![show, resume, cancel]
        }
        GoalStatus::Impossible | GoalStatus::Cancelled => vec![show],
        // The person's files hold the work, and there is no branch.
        GoalStatus::Unverified | GoalStatus::Done if goal.contract.is_session() => {
            vec![format!("kapi diff {index}")]
        }
        GoalStatus::Unverified | GoalStatus::Done => {
            vec![
                format!("kapi diff {index}"),
                format!("git merge {}", goal.contract.branch),
            ]
        }
    }
}

fn waiting_commands(goal: &Goal, index: &str) -> Vec<String> {
    match goal.wait.as_ref().map(|wait| &wait.until) {
        Some(WaitFor::Approval { what }) => vec![
            format!("kapi goal allow {index} {what:?}"),
            format!("kapi pause {index}"),
        ],
        Some(WaitFor::Judge { .. }) => vec![
            "kapi up".to_owned(),
            format!("kapi resume {index}"),
            judge_command(index),
        ],
        Some(_) | None => vec!["kapi up".to_owned(), format!("kapi resume {index}")],
    }
}

/// Returns the command that lets another judge judge a goal.
fn judge_command(index: &str) -> String {
    format!("kapi goal judge {index} JUDGE")
}

#[cfg(test)]
mod tests {
    use kapi_core::text::{limit_key, limit_met, limit_text, time_words};

    #[test]
    fn times_are_dates_of_the_calendar() {
        for (at_ms, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (1_795_321_799_999, "2026-11-22 04:29:59 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(time_words(at_ms), text);
        }
    }

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
            "a program in the sandbox reached the limit of 300 MiB of memory and was stopped; \
             raise it with `[sandbox] memory`"
        );
        assert_eq!(
            limit_met("processes", "64"),
            "a program in the sandbox reached the limit of 64 processes and could not start any \
             more; raise it with `[sandbox] processes`"
        );
    }
}
