//! One line for each event, as `kapi log` and live progress print it.
//!
//! Text from agents and commands is shortened to its first line here.

use kapi_check::rules::proof::verify_report::{VerifyReport, first_failure};
use kapi_core::agent_end::{AgentEnd, AgentRun, Claim, ProviderFailure};
use kapi_core::text::{agent_name, counted, limit_key, limit_text, short_id};
use kapi_core::verdict::{JudgeAnswer, JudgeRun};
use kapi_goal::rules::budget::Raise;
use kapi_goal::rules::consent::RefusedCommand;
use kapi_goal::rules::event::{ApprovalMeans, GoalEvent, TurnVerdict};
use kapi_goal::rules::journey::TurnDeclaration;
use kapi_goal::rules::outcome::GoalCandidate;
use kapi_goal::rules::plan::delta::PlanDelta;
use kapi_goal::rules::plan::task::{PlanTaskId, TaskPhase};
use kapi_goal::rules::words;

use crate::amount;

/// Returns an event in words.
pub(crate) fn describe(event: &GoalEvent) -> String {
    match event {
        GoalEvent::GoalCreated {
            id, contract_hash, ..
        } => {
            let hash = short_id(contract_hash);
            format!("goal {id} created; contract hash {hash}")
        }
        GoalEvent::ContractApproved { means, .. } => approved(*means).to_owned(),
        GoalEvent::EffectIntended { effect, .. } => format!("started {effect}"),
        GoalEvent::EffectProgressed { usage, .. } => {
            format!("used {} more tokens", amount::tokens(usage.tokens()))
        }
        GoalEvent::RunRecorded { effect, files } => {
            format!("hashed {} of {effect}", counted(files.len(), "file"))
        }
        GoalEvent::WorkspaceCreated { path, .. } => format!("worktree created at {path}"),
        GoalEvent::AgentEnded { run, .. } => agent_ended(run),
        GoalEvent::ProviderFailed {
            failure,
            retry_at_ms,
            ..
        } => provider_failed(failure, *retry_at_ms),
        GoalEvent::WaitEnded => "the wait is over".to_owned(),
        GoalEvent::CandidateCommitted { candidate, .. } => committed(candidate),
        GoalEvent::BaselineEnded { report, .. } => baseline(report),
        GoalEvent::VerifyEnded { report, .. } => verified(report),
        GoalEvent::JudgeEnded { run, .. } | GoalEvent::JudgeFailed { run, .. } => judged(run),
        GoalEvent::TurnEnded { turn, verdict } => turn_ended(*turn, *verdict),
        GoalEvent::GoalDone {
            commit, verified, ..
        } => done(short_id(commit), *verified),
        GoalEvent::GoalStopped { stop } => format!("stopped: {}", stop.status()),
        GoalEvent::EffectCancelled { effect, .. } => format!("{effect} ended without a result"),
        GoalEvent::GoalResumed => "resumed by the user".to_owned(),
        GoalEvent::ContractDrafted { contract_hash, .. } => {
            let hash = short_id(contract_hash);
            format!("contract drafted; hash {hash}")
        }
        GoalEvent::SetupEnded { run, .. } => agent_ended(run),
        GoalEvent::GoalReopened { reason } => {
            let reason = first_line(reason);
            format!("result rejected by the user: {reason}")
        }
        GoalEvent::TurnsSet { turns } => format!("turn limit set to {turns} by the user"),
        GoalEvent::JudgeChanged { judge } => {
            format!("judge changed to {} by the user", agent_name(judge))
        }
        GoalEvent::PersonSaid { text } => format!("message from the user: {}", first_line(text)),
        GoalEvent::ConsentAsked { asked } => refused(asked),
        GoalEvent::ConsentGiven { what } => format!("the user allowed {what:?}"),
        GoalEvent::SideQuestionAnswered { question, .. } => {
            format!("side question: {}", first_line(question))
        }
        GoalEvent::PlanMade { delta } => {
            format!("the agent planned {}", counted(delta.written.len(), "task"))
        }
        GoalEvent::Replanned { delta } => replanned(delta),
        GoalEvent::TaskUpdated { id, delta } => task_updated(id, delta),
        GoalEvent::ProgressNoted { note, phase, .. } => noted(note, *phase),
        GoalEvent::TurnDeclared { declared: what } => declared(what),
        GoalEvent::JourneyDistilled { .. } => "the agent summarized what it learned".to_owned(),
        GoalEvent::DistillSkipped => "Kapi writes the final summary itself".to_owned(),
        GoalEvent::DistillEnded { .. } => "the agent's final summary is finished".to_owned(),
        GoalEvent::GoalParked { wait } => {
            format!("parked until {}", words::wait_words(&wait.until))
        }
        GoalEvent::GoalWoken { why, .. } => format!("resumed: {why}"),
        GoalEvent::BudgetRaised { raise } => raised(raise),
    }
}

/// Says what the commands showed before anything was done.
fn baseline(report: &VerifyReport) -> String {
    let n_failed = report.runs.iter().filter(|run| !run.passed()).count();
    match (n_failed, report.runs.len()) {
        (0, 1) => "on the base: the check already passes".to_owned(),
        (0, n) => format!("on the base: all {n} checks already pass"),
        (1, 1) => "on the base: the check fails, as expected".to_owned(),
        (failed, n) => format!("on the base: {failed} of {n} checks fail, as expected"),
    }
}

fn done(commit: &str, is_verified: bool) -> String {
    if is_verified {
        format!("done: the branch points at the proved commit {commit}")
    } else {
        format!("done (unverified): the branch points at commit {commit}")
    }
}

fn replanned(delta: &PlanDelta) -> String {
    let reason = delta.replan.as_ref().map_or("", |replan| &replan.reason);
    format!("the agent changed its plan: {}", first_line(reason))
}

fn task_updated(id: &PlanTaskId, delta: &PlanDelta) -> String {
    let task = delta.written.iter().find(|task| task.id == *id);
    let status = task.map_or("unchanged", |task| task.status.as_str());
    format!("task {id}: {status}")
}

fn refused(asked: &RefusedCommand) -> String {
    let command = first_line(&asked.command);
    format!(
        "refused until the user allows {:?}: {command}",
        asked.pattern
    )
}

fn noted(note: &str, phase: Option<TaskPhase>) -> String {
    let phase = phase.map_or_else(String::new, |it| format!(" ({})", it.as_str()));
    format!("progress{phase}: {}", first_line(note))
}

fn declared(declared: &TurnDeclaration) -> String {
    match declared {
        TurnDeclaration::Complete { .. } => "the agent claims the goal is complete".to_owned(),
        TurnDeclaration::Blocked { question, .. } => {
            format!("the agent asks: {}", first_line(question))
        }
        TurnDeclaration::Wait { until, .. } => {
            format!("the agent asks to wait until {}", words::wait_words(until))
        }
    }
}

/// Returns the first line of a text, shortened.
pub(crate) fn first_line(text: &str) -> String {
    const CHARS_MAX: usize = 160;
    let line = text.trim().lines().next().unwrap_or_default();
    if line.chars().count() > CHARS_MAX {
        let cut: String = line.chars().take(CHARS_MAX).collect();
        format!("{cut}…")
    } else {
        line.to_owned()
    }
}

const fn approved(means: ApprovalMeans) -> &'static str {
    match means {
        ApprovalMeans::Terminal => "the contract was approved at a terminal",
        ApprovalMeans::YesFlag => "the contract was approved with --yes",
        ApprovalMeans::NamedHash => "the contract was approved by its hash",
        ApprovalMeans::Autopilot => "the contract was approved by the autopilot preference",
        ApprovalMeans::Plan => "the contract was approved with its workflow's plan",
        ApprovalMeans::Client => "the contract was approved in an agent client's dialog",
    }
}

fn provider_failed(failure: &ProviderFailure, retry_at_ms: Option<i64>) -> String {
    let then = if retry_at_ms.is_some() {
        "; retrying"
    } else {
        ""
    };
    let (kind, message) = (failure.kind.words(), first_line(&failure.message));
    format!("the agent's provider failed ({kind}): {message}{then}")
}

fn turn_ended(turn: u32, verdict: TurnVerdict) -> String {
    let why = match verdict {
        TurnVerdict::Tampered => "protected files were changed",
        TurnVerdict::VerifyFailed => "the checks fail",
        TurnVerdict::HiddenFailed => "the hidden checks fail",
        TurnVerdict::TestsVanished => "fewer tests ran than on the base",
        TurnVerdict::TestsChanged => "existing tests were changed",
        TurnVerdict::SteeringChanged => "the checks pass only with the changed test setup",
        TurnVerdict::CodeFlagged => "the checks pass, but the pass looks faked",
        TurnVerdict::JudgeContinue => "the judge is not satisfied",
        TurnVerdict::AgentFailed => "the agent failed before its turn ended",
        TurnVerdict::AgentBlocked => "the agent is blocked",
        TurnVerdict::NothingDone => "nothing changed",
        TurnVerdict::PlanOpen => "the plan has unfinished tasks",
        TurnVerdict::Unclaimed => "the plan is finished, but the agent did not claim the goal",
        TurnVerdict::Waiting => "it must wait",
        TurnVerdict::PersonSpoke => "the user sent a message",
        TurnVerdict::Unfinished => "the agent has not claimed the goal",
    };
    format!("turn {turn} is not done: {why}")
}

fn raised(raise: &Raise) -> String {
    let mut parts = Vec::new();
    if raise.turns > 0 {
        parts.push(counted(raise.turns, "turn"));
    }
    if raise.tokens > 0 {
        parts.push(format!("{} tokens", amount::tokens(raise.tokens)));
    }
    if raise.usd_micros > 0 {
        parts.push(amount::usd(raise.usd_micros));
    }
    if raise.wall_ms > 0 {
        parts.push(amount::duration(raise.wall_ms));
    }
    format!("budget raised by {} by the user", parts.join(", "))
}

fn agent_ended(run: &AgentRun) -> String {
    let how = match &run.end {
        AgentEnd::Finished => "ended its turn".to_owned(),
        AgentEnd::Refused => "got a refusal from its model".to_owned(),
        AgentEnd::LimitReached => "stopped at its own limit".to_owned(),
        AgentEnd::Crashed { code } => format!("exited with {code} before ending its turn"),
        AgentEnd::OutOfResources { resource, limit } => {
            let (limit, key) = (limit_text(resource, limit), limit_key(resource));
            format!("failed at its limit of {limit}; raise it with `[sandbox] {key}`")
        }
        AgentEnd::DeadlinePassed => "was killed at the turn's time limit".to_owned(),
        AgentEnd::IdlePassed => "was killed after a long silence".to_owned(),
        AgentEnd::Provider(failure) => {
            format!("could not start its turn: {}", failure.kind.words())
        }
    };
    let claim = match &run.claim {
        Some(Claim::Done) => " and claims to be done",
        Some(Claim::Blocked { .. }) => " and reports that it is blocked",
        None => "",
    };
    let message = first_line(&run.message);
    let message = if message.is_empty() {
        message
    } else {
        format!(": {message}")
    };
    format!("the agent {how}{claim}{message}")
}

fn committed(candidate: &GoalCandidate) -> String {
    let left_out = if candidate.left_out.is_empty() {
        String::new()
    } else {
        format!("; left out: {}", candidate.left_out.join(", "))
    };
    let noun = if candidate.files_changed == 1 {
        "file differs"
    } else {
        "files differ"
    };
    format!(
        "recorded the work as candidate {}: {} {noun} from the base{left_out}",
        short_id(&candidate.commit),
        candidate.files_changed
    )
}

fn verified(report: &VerifyReport) -> String {
    match first_failure(report) {
        Some(failure) => format!("verify failed: {failure}"),
        None => {
            let count = report.runs.len();
            let noun = if count == 1 {
                "check passes"
            } else {
                "checks pass"
            };
            format!("verify: {count} {noun} on tree {}", short_id(&report.tree))
        }
    }
}

fn judged(run: &JudgeRun) -> String {
    match &run.answer {
        JudgeAnswer::Verdict { verdict, reason } => {
            format!(
                "judge {}: {}: {}",
                agent_name(&run.by),
                verdict.as_str(),
                first_line(reason)
            )
        }
        JudgeAnswer::Malformed { text } => {
            format!(
                "judge {}: no verdict in {:?}",
                agent_name(&run.by),
                first_line(text)
            )
        }
        JudgeAnswer::Unavailable(failure) => {
            format!(
                "judge {}: unavailable: {}",
                agent_name(&run.by),
                first_line(&failure.message)
            )
        }
    }
}
