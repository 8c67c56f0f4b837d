//! One line for each event of a workflow that a person should see while it happens.
//!
//! Bookkeeping has no line. Text from agents is shortened to its first line.

use kapi_core::goal::outcome::VerifyReport;
use kapi_core::goal::state::Status;
use kapi_core::goal::words::{agent_name, first_failure};
use kapi_core::id::GoalId;
use kapi_core::plan::task::TaskId;
use kapi_core::workflow::event::Event;
use kapi_core::workflow::identity::Identity;
use kapi_core::workflow::interview::event::InterviewEvent;
use kapi_core::workflow::limits::Raised;
use kapi_core::workflow::modes::ModeEvent;
use kapi_core::workflow::pending::Means;
use kapi_core::workflow::ralph::event::RalphEvent;
use kapi_core::workflow::ralph::plan::{Consensus, Plan};
use kapi_core::workflow::ralph::review::{Category, Review};

use crate::amount;
use crate::contract::short;
use crate::event_words::first_line;
use crate::workflow::words;

/// Returns an event in words; `None` for what is only bookkeeping.
pub(crate) fn describe(event: &Event) -> Option<String> {
    Some(match event {
        Event::Started { id, by, .. } => format!("workflow {id} was started by {by}"),
        Event::DecisionAsked { pending } => format!(
            "{} waits for you, with hash {}",
            pending.decision.artifact(),
            short(&pending.sha256)
        ),
        Event::Approved { approval } => format!(
            "{} approved {} {}{}",
            approval.by,
            approval.decision.artifact(),
            means(approval.means),
            if approval.accepted.is_empty() {
                ""
            } else {
                ", and accepted its risks"
            }
        ),
        Event::Revised { text, .. } => format!("to be changed: {}", first_line(text)),
        Event::Blocked { reason, unblock } => {
            format!("blocked: {}; {}", first_line(reason), first_line(unblock))
        }
        Event::Unblocked {} => "it goes on".to_owned(),
        Event::LimitsRaised { more, by, .. } => format!("{by} allowed more: {}", raised(more)),
        Event::Abandoned { reason } => format!("given up: {}", first_line(reason)),
        Event::Failed { reason } => format!("failed: {}", first_line(reason)),
        Event::Completed {} => "completed".to_owned(),
        Event::Integrated { by, .. } => format!("integrated by {by}"),
        Event::EffectEnded {
            effect,
            failed: Some(why),
            ..
        } => format!("{effect} failed: {}", first_line(why)),
        Event::EvidenceRecorded { .. }
        | Event::WorkerPrepared { .. }
        | Event::WorkerDispatched { .. }
        | Event::WorkerRefreshed { .. }
        | Event::WorkerClosed { .. }
        | Event::EffectIntended { .. }
        | Event::EffectUsed { .. }
        | Event::GoalUsed { .. }
        | Event::RunRecorded { .. }
        | Event::EffectEnded { failed: None, .. } => return None,
        Event::Mode(ModeEvent::Interview(event)) => interview(event),
        Event::Mode(ModeEvent::Ralph(event)) => return ralph(event),
    })
}

fn interview(event: &InterviewEvent) -> String {
    match event {
        InterviewEvent::QuestionAsked {
            round, question, ..
        } => {
            format!("question {round}: {}", first_line(&question.text))
        }
        InterviewEvent::GoalRestated { goal, .. } => {
            format!("the goal, said back: {}", first_line(goal))
        }
        InterviewEvent::FactFound {
            question, answer, ..
        } => format!(
            "looked up: {} {} ({})",
            first_line(&question.text),
            first_line(&answer.text),
            answer.refs.join(", ")
        ),
        InterviewEvent::AnswerRecorded { round, answer } => format!(
            "answer {round} ({}): {}",
            words::provenance(answer.provenance),
            first_line(&answer.text)
        ),
        InterviewEvent::Remarked { text, .. } => format!("said: {}", first_line(text)),
        InterviewEvent::GoalConfirmed { goal, .. } => {
            format!("the goal is confirmed: {}", first_line(goal))
        }
        InterviewEvent::QuestionDeferred { round, .. } => {
            format!("question {round} is left for later")
        }
        InterviewEvent::QuestionWithdrawn { round, .. } => {
            format!("question {round} is taken back")
        }
        InterviewEvent::ScoreRecorded { score } => format!("clarity: {}", score.words()),
        InterviewEvent::ContradictionNamed { contradiction } => format!(
            "answers {} do not fit together: {}",
            words::numbers(&contradiction.rounds),
            first_line(&contradiction.text)
        ),
        InterviewEvent::EnoughSaid {} => "it is enough: a draft comes next".to_owned(),
        InterviewEvent::StepRefused { why } => {
            format!("the interviewer is asked again: {}", first_line(why))
        }
        InterviewEvent::SpecDrafted { spec } => {
            format!("a spec was drafted: {}", first_line(&spec.goal))
        }
        InterviewEvent::Branched { mode, workflow, .. } => {
            format!("it goes on as {mode} {workflow}")
        }
        InterviewEvent::Reopened { reason } => {
            format!("the interview goes on: {}", first_line(reason))
        }
    }
}

fn ralph(event: &RalphEvent) -> Option<String> {
    Some(match event {
        RalphEvent::ThesisRecorded {
            attempt, by, plan, ..
        } => format!("attempt {attempt}: {} proposes {}", who(by), tasks(plan)),
        RalphEvent::AntithesisRecorded { by, objections, .. } => {
            format!("{} objects: {}", who(by), first_line(&objections.strongest))
        }
        RalphEvent::SynthesisRecorded { by, synthesis, .. } => match synthesis.verdict {
            Consensus::Consensus => {
                format!("{} finds consensus on {}", who(by), tasks(&synthesis.plan))
            }
            Consensus::Revise => format!("{} asks for another plan", who(by)),
        },
        RalphEvent::ConsensusMissed { cycle } => {
            format!("no consensus in cycle {cycle}; the last plan is shown with the dissent")
        }
        RalphEvent::PlanProposed { plan, .. } => format!("a plan is proposed: {}", tasks(plan)),
        RalphEvent::PlanReopened { reason, .. } => {
            format!("planning begins anew: {}", first_line(reason))
        }
        RalphEvent::BranchPrepared {
            branch, worktree, ..
        } => format!("branch {branch}, worktree {worktree}"),
        RalphEvent::TaskBegun { task, attempt, .. } if *attempt > 1 => {
            format!("{task} is done again, try {attempt}")
        }
        RalphEvent::TaskBegun { task, .. } => format!("{task} begins"),
        RalphEvent::TaskRested {
            task,
            goal,
            status,
            commit,
            reason,
            ..
        } => rested((task, goal), *status, commit.as_deref(), reason.as_deref()),
        RalphEvent::TaskLanded {
            task, head, merged, ..
        } => format!(
            "{task} landed{}: the branch is at {}",
            if *merged { ", merged" } else { "" },
            short(head)
        ),
        RalphEvent::TaskConflicted { task, paths } => format!(
            "{task} does not fit what landed, in {}; it is done again",
            paths.join(", ")
        ),
        RalphEvent::TaskSentBack { task, because } => {
            format!("{task} goes back to its owner: {}", first_line(because))
        }
        RalphEvent::TaskGivenUp { task, reason } => {
            format!("{task} is given up: {}", first_line(reason))
        }
        RalphEvent::HeadVerified { commit, report } => verified(commit, report),
        RalphEvent::FixPlanned { task, because } => format!(
            "{} is added: {} ({})",
            task.id,
            first_line(&task.title),
            first_line(because)
        ),
        RalphEvent::TaskRetried { task } => format!("{task} goes on"),
        RalphEvent::Reviewed { review } => reviewed(review),
        RalphEvent::AnswerRefused { role, why } => {
            format!("the {role} is asked again: {}", first_line(why))
        }
        RalphEvent::Accounted { acceptance, .. } => match acceptance.len() {
            1 => "one criterion has its evidence".to_owned(),
            n_criteria => format!("{n_criteria} criteria have their evidence"),
        },
        RalphEvent::ReviewAsked { .. } => return None,
    })
}

fn rested(
    (task, goal): (&TaskId, &GoalId),
    status: Status,
    commit: Option<&str>,
    reason: Option<&str>,
) -> String {
    match (commit, reason) {
        (Some(commit), _) => format!("{task} is proved by goal {goal}: commit {}", short(commit)),
        (None, Some(reason)) => format!("{task}: goal {goal} is {status}, {}", first_line(reason)),
        (None, None) => format!("{task}: goal {goal} is {status}"),
    }
}

/// Returns how an approval was given, in words.
pub(crate) const fn means(means: Means) -> &'static str {
    match means {
        Means::Terminal => "at a terminal",
        Means::YesFlag => "with --yes",
        Means::NamedHash => "by its hash",
        Means::InAdvance => "in advance",
    }
}

/// Returns what a finding is about, in words.
pub(crate) const fn category(category: Category) -> &'static str {
    match category {
        Category::Correctness => "correctness",
        Category::Regression => "regression",
        Category::MissingTest => "missing test",
        Category::ArtifactAlignment => "not as planned",
        Category::VerificationGap => "not verified",
        Category::Simplification => "could be simpler",
    }
}

fn raised(more: &Raised) -> String {
    let tokens = (more.tokens > 0).then(|| format!("{} tokens", amount::tokens(more.tokens)));
    let usd = (more.usd_micros > 0).then(|| amount::usd(more.usd_micros));
    let parts: Vec<String> = tokens.into_iter().chain(usd).collect();
    parts.join(" and ")
}

fn who(by: &Identity) -> String {
    agent_name(&by.agent)
}

fn tasks(plan: &Plan) -> String {
    let n_tasks = plan.tasks.len();
    let noun = if n_tasks == 1 { "task" } else { "tasks" };
    format!("{n_tasks} {noun}: {}", first_line(&plan.summary))
}

fn verified(commit: &str, report: &VerifyReport) -> String {
    match first_failure(report) {
        None => format!("the whole is verified at {}", short(commit)),
        Some(failure) => format!("the whole fails at {}: {failure}", short(commit)),
    }
}

fn reviewed(review: &Review) -> String {
    let must = review
        .findings
        .findings
        .iter()
        .filter(|finding| finding.must_fix);
    let n_must = must.count();
    let by = who(&review.by);
    if let Some(reason) = &review.findings.replan {
        return format!("{by} says that the plan is wrong: {}", first_line(reason));
    }
    match (review.findings.approve, n_must) {
        (true, 0) => format!("{by} approves {}", short(&review.commit)),
        (_, 1) => format!("{by} found one thing to mend"),
        (_, n_must) => format!("{by} found {n_must} things to mend"),
    }
}
