//! The build in the simulator: the story of a rough one, what its agents answer, and which of its tasks
//! do not go well at once.
//!
//! Together they lead through every event of the mode.

use kapi_core::actor::Actor;
use kapi_core::id::{EffectId, GoalId, Slug};
use kapi_core::usage::Usage;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_goal::rules::state::GoalStatus;
use kapi_workflow::rules::branch::BranchType;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::context_begin::ContextBegin;
use kapi_workflow::rules::effect::{
    AgentQuestion, WorkflowAction, WorkflowEffect, WorkflowLanding,
};
use kapi_workflow::rules::evidence::{Weight, WorkflowEvidence};
use kapi_workflow::rules::limits::{GoalAccount, LimitRaises};
use kapi_workflow::rules::modes::ralph::answer::{Accounting, RalphAnswer};
use kapi_workflow::rules::modes::ralph::command::RalphCommand;
use kapi_workflow::rules::modes::ralph::event::RalphEvent;
use kapi_workflow::rules::modes::ralph::plan::{
    Alternative, Consensus, Criterion, Isolation, Objections, PlanObjection, PlanTask, RalphPlan,
    Synthesis,
};
use kapi_workflow::rules::modes::ralph::review::{FindingCategory, ReviewFinding, ReviewFindings};
use kapi_workflow::rules::modes::ralph::role::RalphRole;
use kapi_workflow::rules::modes::ralph::state::{Ralph, Stand, TaskState};
use kapi_workflow::rules::modes::{Begin, Body, ModeCommand};
use kapi_workflow::rules::outcome::WorkflowOutcome;
use kapi_workflow::rules::state::Workflow;

use crate::workflow_sim::modes::NoAnswer;
use crate::workflow_sim::outcomes::{goal_of, verified};
use crate::workflow_sim::script::{Deed, NextStep, WorkflowScript, by_person};

kinds! {
    KINDS, kind: RalphEvent as "Ralph::"
    [
        ThesisRecorded, AntithesisRecorded, SynthesisRecorded, ConsensusMissed, PlanProposed, BaseChecked,
        PlanReopened, BranchPrepared, TaskBegun, TaskRested, TaskLanded, TaskAlreadyDone,
        TaskConflicted, TaskSentBack, TaskGivenUp, TaskStrayed, StrayingAllowed, HeadVerified, FixPlanned, TaskRetried, ReviewAsked, Reviewed,
        AnswerRefused, Accounted,
    ]
}

/// The story: a build that nobody agrees about, that is sent back until a person looks, and that is
/// integrated in the end.
pub(super) const TALES: &[WorkflowScript] = &[WorkflowScript {
    name: "rough",
    end: WorkflowStatus::Integrated,
    next,
    deed,
}];

/// How the purpose of the rough build begins.
const ROUGH: &str = "Mend";

fn next(known: &[Workflow]) -> NextStep<'_> {
    match known.iter().find(|workflow| is_rough(workflow)) {
        None => NextStep::Start("Mend the store of sessions", begin(None)),
        Some(build) => NextStep::Drive(build),
    }
}

fn is_rough(workflow: &Workflow) -> bool {
    workflow.purpose.starts_with(ROUGH)
}

/// Returns how a build begins, alone or from an interview.
pub(super) fn begin(interview: Option<GoalId>) -> Begin {
    Begin::Ralph(ContextBegin {
        base: "0".repeat(40),
        interview,
        spec: None,
    })
}

fn deed(workflow: &Workflow) -> Option<Deed> {
    let Body::Ralph(ralph) = &workflow.body else {
        return None;
    };
    match workflow.status {
        WorkflowStatus::Completed => {
            let by = GoalId::new(900, Slug::from_sentence("integrate"));
            let command = WorkflowCommand::MarkIntegrated { by };
            Some(Deed::Command(Actor::Engine, command))
        }
        WorkflowStatus::Failed
        | WorkflowStatus::Abandoned
        | WorkflowStatus::Linked
        | WorkflowStatus::Integrated => None,
        WorkflowStatus::Active | WorkflowStatus::Blocked
            if !workflow.evidence.iter().any(is_note) =>
        {
            let run = "001-mend.t001-thesis-a1".to_owned();
            let command = WorkflowCommand::RecordEvidence(Box::new(note()));
            Some(Deed::Command(Actor::Agent { run }, command))
        }
        WorkflowStatus::Active => {
            let pending = workflow.pending.as_ref()?;
            Some(Deed::Approve(pending.sha256.clone()))
        }
        WorkflowStatus::Blocked => {
            let unseen = workflow.workers.first().filter(|w| w.terminal.is_none());
            if let Some(worker) = unseen {
                let command = WorkflowCommand::RefreshWorker {
                    worker: worker.id.clone(),
                    note: Some("It can be watched.".to_owned()),
                    terminal: Some("kapi:1".to_owned()),
                    isolated: None,
                };
                return Some(Deed::Command(Actor::Engine, command));
            }
            if workflow.raised.is_zero() {
                let more = LimitRaises {
                    tokens: 1_000,
                    usd_micros: 0,
                    wall_ms: 0,
                };
                return by_person(WorkflowCommand::RaiseLimits { more });
            }
            if workflow.goals.is_empty() {
                return Some(Deed::Command(Actor::Engine, goal_use()?));
            }
            let is_held = |state: &TaskState| state.strayed.is_some();
            by_person(match rested(ralph) {
                Some(_) if ralph.tasks.values().any(is_held) => {
                    WorkflowCommand::Mode(ModeCommand::Ralph(RalphCommand::AllowPaths))
                }
                Some(task) => {
                    WorkflowCommand::Mode(ModeCommand::Ralph(RalphCommand::Retry { task }))
                }
                None => WorkflowCommand::Unblock {},
            })
        }
    }
}

fn rested(ralph: &Ralph) -> Option<PlanTaskId> {
    let mut tasks = ralph.tasks.values();
    let rested = tasks.find(|state| matches!(state.stand, Stand::Rested { .. }));
    rested.map(|state| state.task.id.clone())
}

/// What a goal of the first task says of itself.
fn goal_use() -> Option<WorkflowCommand> {
    Some(WorkflowCommand::RecordGoalUse {
        goal: GoalId::new(111, Slug::from_sentence("work")),
        account: GoalAccount {
            task: PlanTaskId::parse("T-001").ok()?,
            attempt: 1,
            used: Usage {
                input_tokens: 7,
                output_tokens: 3,
                usd_micros: None,
                ..Usage::ZERO
            },
        },
    })
}

fn is_note(evidence: &WorkflowEvidence) -> bool {
    evidence.kind == "note"
}

fn note() -> WorkflowEvidence {
    WorkflowEvidence {
        weight: Weight::Narrative,
        kind: "note".to_owned(),
        summary: "The store was seen to lose a session.".to_owned(),
        reference: "file:notes.md".to_owned(),
        command: None,
        exit_code: None,
        role: None,
        verdict: None,
        phase: None,
        artifacts: Vec::new(),
        worker: None,
        verifier: None,
        at_ms: 0,
    }
}

/// Returns what an agent says: the first one nothing that can be read.
pub(super) fn reply(
    question: &AgentQuestion,
    workflow: &Workflow,
    ralph: &Ralph,
    _: usize,
) -> Result<RalphAnswer, NoAnswer> {
    if ralph.answers.is_empty() {
        return Err(NoAnswer::Unreadable("it is no plan"));
    }
    let Some(role) = RalphRole::of(question.role) else {
        return Err(NoAnswer::Unreadable("nobody is asked so"));
    };
    Ok(answer(role, is_rough(workflow), ralph))
}

/// Putting evidence to the criteria takes long.
pub(super) fn takes_long(question: &AgentQuestion, _: &Ralph) -> bool {
    question.role == RalphRole::Accountant.spec()
}

/// What the second task does not do well at once: its first goal rests unproved, what it made does not
/// fit, and its check fails on the first merged head. In the rough story the first one changes paths
/// beside its own.
pub(super) fn outcome(effect: &WorkflowEffect, workflow: &Workflow) -> Option<WorkflowOutcome> {
    let id = effect.id.as_str();
    if let WorkflowAction::Work(work) = &effect.action {
        if work.task.as_str() == "T-003" {
            // The others did its work, too.
            return Some(WorkflowOutcome::Rested {
                goal: goal_of(&effect.workflow, work),
                worktree: None,
                status: GoalStatus::Unverified,
                commit: Some(work.base.clone()),
                reason: Some("nothing needed to change".to_owned()),
            });
        }
        let is_second = work.task.as_str() == "T-002" && id.ends_with("a1");
        is_second.then(|| WorkflowOutcome::Rested {
            goal: goal_of(&effect.workflow, work),
            worktree: None,
            status: GoalStatus::Paused,
            commit: None,
            reason: Some("its turns are used up".to_owned()),
        })
    } else if let WorkflowAction::Land(landing) = &effect.action {
        let paths = vec!["src/store/mod.rs".to_owned()];
        if is_rough(workflow) && landing.task.as_str() == "T-001" && !landing.within.is_empty() {
            return Some(WorkflowOutcome::Strayed { paths });
        }
        let fits = fits(is_rough(workflow), landing, &effect.id);
        (!fits).then_some(WorkflowOutcome::Conflicted { paths })
    } else if let WorkflowAction::Verify(asked) = &effect.action {
        let is_asked = asked
            .commands
            .iter()
            .any(|command| command == "sh T-002.sh");
        let is_first = id.contains("verify-merged") && id.ends_with("a1");
        // Nothing of what is wanted is there before the work.
        let is_of_base = asked.commit == asked.base;
        (is_of_base || is_asked && is_first).then(|| verified(asked, 1))
    } else {
        None
    }
}

/// What the second task made on another commit does not fit the first time. In the rough story that
/// fits, and what it makes anew after it was sent back for another reason fits four times not.
fn fits(is_rough: bool, landing: &WorkflowLanding, effect: &EffectId) -> bool {
    let merged = landing.base != landing.head;
    let refused = match (is_rough, merged) {
        (false, true) => &["-a1"][..],
        (false, false) => &[],
        (true, _) => &["-a2", "-a3", "-a4", "-a5"],
    };
    let is_among = |tried: &&str| effect.as_str().ends_with(tried);
    landing.task.as_str() != "T-002" || !refused.iter().any(is_among)
}

/// Returns what landed, how often it was reviewed, and which criteria were accounted for.
pub(super) fn detail(ralph: &Ralph) -> Vec<String> {
    let landed = ralph.landed.iter().map(ToString::to_string);
    let reviews = format!("{} reviews", ralph.reviews.len());
    let accounted = ralph.account.iter().flat_map(|account| &account.acceptance);
    let accepted = accounted.map(|accepted| accepted.criterion.clone());
    landed.chain([reviews]).chain(accepted).collect()
}

fn answer(role: RalphRole, is_rough: bool, ralph: &Ralph) -> RalphAnswer {
    match role {
        RalphRole::Thesis => RalphAnswer::Thesis(plan(is_rough)),
        RalphRole::Antithesis => RalphAnswer::Antithesis(Objections {
            strongest: "It may be slow.".to_owned(),
            tension: "Safety or speed.".to_owned(),
            objections: vec![PlanObjection {
                text: "Nothing tests the end.".to_owned(),
                blocking: true,
            }],
        }),
        RalphRole::Synthesis => RalphAnswer::Synthesis(synthesis(is_rough, ralph)),
        RalphRole::Reviewer => RalphAnswer::Review(findings(is_rough, ralph)),
        RalphRole::Accountant => RalphAnswer::Account(Accounting {
            rationale: "Every check passed.".to_owned(),
            risks: vec!["The disk may lie.".to_owned()],
            follow_up: vec!["Watch it.".to_owned()],
        }),
    }
}

fn synthesis(is_rough: bool, ralph: &Ralph) -> Synthesis {
    let is_second = ralph.cycle > 1 || ralph.attempts.len() > 1;
    Synthesis {
        verdict: if is_second && !is_rough {
            Consensus::Consensus
        } else {
            Consensus::Revise
        },
        answers: vec!["Taken over.".to_owned()],
        dissent: Vec::new(),
        plan: plan(is_rough),
    }
}

fn findings(is_rough: bool, ralph: &Ralph) -> ReviewFindings {
    if is_rough || !ralph.reviews.is_empty() {
        return ReviewFindings {
            approve: true,
            summary: "Looked at all of it.".to_owned(),
            findings: Vec::new(),
            replan: None,
        };
    }
    ReviewFindings {
        approve: false,
        summary: "One thing is wrong.".to_owned(),
        findings: vec![ReviewFinding {
            category: FindingCategory::Correctness,
            must_fix: true,
            file: Some("src/store.rs".to_owned()),
            line: Some(7),
            title: "An empty session is lost".to_owned(),
            detail: "It is written as nothing.".to_owned(),
        }],
        replan: None,
    }
}

/// Two tasks beside each other, and in the longer story one after both.
fn plan(is_rough: bool) -> RalphPlan {
    let last = if is_rough {
        None
    } else {
        task("T-003", &["T-001", "T-002"], "src/load")
    };
    RalphPlan {
        summary: "Write it down first.".to_owned(),
        branch_type: BranchType::Feat,
        context: "There is a store.".to_owned(),
        options: vec![considered("log", None), considered("copy", Some("Slow."))],
        tasks: [
            task("T-001", &[], "src/log"),
            task("T-002", &[], "src/store"),
            last,
        ]
        .into_iter()
        .flatten()
        .collect(),
        criteria: vec![Criterion {
            id: "AC-1".to_owned(),
            text: "A session is there after a crash.".to_owned(),
            verify: Some("sh check.sh".to_owned()),
            exempt: None,
        }],
        excluded: vec!["Speed.".to_owned()],
        risks: vec!["Disks lie.".to_owned()],
        verify: vec!["sh all.sh".to_owned()],
    }
}

fn considered(name: &str, rejected: Option<&str>) -> Alternative {
    Alternative {
        name: name.to_owned(),
        summary: format!("A {name}."),
        rejected: rejected.map(str::to_owned),
    }
}

fn task(id: &str, after: &[&str], touches: &str) -> Option<PlanTask> {
    let ids = after.iter().filter_map(|id| PlanTaskId::parse(id).ok());
    Some(PlanTask {
        id: PlanTaskId::parse(id).ok()?,
        title: format!("Do {id}"),
        description: "As the plan says.".to_owned(),
        depends_on: ids.collect(),
        touches: vec![format!("{touches}/**")],
        isolation: Isolation::Own,
        verify: vec![format!("sh {id}.sh")],
        criteria: vec!["AC-1".to_owned()],
    })
}
