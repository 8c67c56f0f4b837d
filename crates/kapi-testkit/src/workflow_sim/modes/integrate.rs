//! The story of an integration: a source that is not fit at first, one that does not fit and then makes the
//! checks fail, a consensus that sends it back, asks its person and blocks it, and a dev that somebody
//! moves.
//!
//! What git finds and what agents say are functions of the integration as it stands.

use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};
use kapi_core::id::GoalId;
use kapi_core::usage::Usage;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_workflow::rules::branch::Branch;
use kapi_workflow::rules::changed::LandedPaths;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::effect::combine::{
    CombineReport, CombineStep, CombinedSource, ConflictedPath, Coverage, CoverageFault,
    CoverageFinding, FileRegeneration, Foresight, OrderedSource, RegenerationRun,
    SourceApplication,
};
use kapi_workflow::rules::effect::{AgentQuestion, WorkflowAction, WorkflowEffect};
use kapi_workflow::rules::identity::ReviewerIdentity;
use kapi_workflow::rules::modes::integrate::answer::{
    Attack, Defence, IntegrateAnswer, IntegrationFindings, IntegrationObjection, JustifiedFinding,
    LandingVerdict, Resolution, RevisionCause, Ruling,
};
use kapi_workflow::rules::modes::integrate::begin::IntegrateBegin;
use kapi_workflow::rules::modes::integrate::command::IntegrateCommand;
use kapi_workflow::rules::modes::integrate::event::IntegrateEvent;
use kapi_workflow::rules::modes::integrate::leave::IntegrateLeave;
use kapi_workflow::rules::modes::integrate::plan::{MergeStep, ProposedPlan};
use kapi_workflow::rules::modes::integrate::role::IntegrateRole;
use kapi_workflow::rules::modes::integrate::source::{Source, SourceCheck, SourceIntent};
use kapi_workflow::rules::modes::integrate::state::Integrate;
use kapi_workflow::rules::modes::{Begin, Body, ModeAnswer, ModeCommand};
use kapi_workflow::rules::outcome::{
    ProposalReport, ProposedCommit, RestorationReport, WorkflowOutcome,
};
use kapi_workflow::rules::state::Workflow;

use crate::workflow_sim::modes::NoAnswer;
use crate::workflow_sim::outcomes::{oid, verified};
use crate::workflow_sim::script::{Deed, NextStep, WorkflowScript, by_person};
use crate::workflow_sim::world::USED;

/// The sources; the last one does not fit, and does not hold either.
const SOURCES: [&str; 3] = ["801-first", "802-second", "803-third"];

kinds! {
    KINDS, kind: IntegrateEvent as "Integrate::"
    [
        SourcesInspected, SourcesUnfit, Clarified, PlanDrafted, PlanReopened, BranchPrepared,
        BaselineRecorded, SourceApplied, SourceConflicted, ResolutionProposed, WorktreeRestored,
        ConflictResolved, HeadVerified, TrialMade, TrialVerified, CulpritsFound, SourceEvicted,
        FilesRegenerated, CoverageCounted, Reviewed, ConsensusSaid, Returned, ResolutionDiscarded, Stopped,
        AnswerRefused, TargetMoved, TargetAdvanced, SourcesMarked,
    ]
}

/// The story: an integration in which everything happens once.
pub(super) const TALES: &[WorkflowScript] = &[WorkflowScript {
    name: "integration",
    end: WorkflowStatus::Completed,
    next,
    deed,
}];

fn next(known: &[Workflow]) -> NextStep<'_> {
    let is_ours = |workflow: &&Workflow| matches!(workflow.body, Body::Integrate(_));
    match known.iter().find(is_ours) {
        None => NextStep::Start("Integrate first, second, third", begin()),
        Some(integration) => NextStep::Drive(integration),
    }
}

fn begin() -> Begin {
    Begin::Integrate(IntegrateBegin {
        target: oid(&["dev"]),
        sources: SOURCES.iter().filter_map(|name| source(name)).collect(),
        leave: IntegrateLeave {
            evicts: true,
            brings_checkout: false,
        },
        rules: Vec::new(),
    })
}

fn source(name: &str) -> Option<Source> {
    Some(Source {
        id: GoalId::parse(name).ok()?,
        mode: None,
        title: format!("Do {name}"),
        branch: format!("feat/{name}"),
        base: oid(&["dev"]),
        commit: oid(&["proved", name]),
        intents: vec![SourceIntent {
            name: "contract".to_owned(),
            text: format!("What {name} is for"),
        }],
        excluded: Vec::new(),
        checks: vec![SourceCheck {
            command: format!("sh {name}.sh"),
            failed_before: true,
        }],
        evidence: Vec::new(),
    })
}

fn deed(workflow: &Workflow) -> Option<Deed> {
    let Body::Integrate(state) = &workflow.body else {
        return None;
    };
    match workflow.status {
        WorkflowStatus::Blocked => {
            if let Some(source) = state.unclear.as_ref().and_then(|it| it.source.clone()) {
                let text = "It is for speed.".to_owned();
                let command = IntegrateCommand::Clarify { source, text };
                return by_person(WorkflowCommand::Mode(ModeCommand::Integrate(command)));
            }
            return by_person(WorkflowCommand::Unblock {});
        }
        WorkflowStatus::Active => {}
        WorkflowStatus::Completed
        | WorkflowStatus::Failed
        | WorkflowStatus::Abandoned
        | WorkflowStatus::Linked
        | WorkflowStatus::Integrated => return None,
    }
    let pending = workflow.pending.as_ref()?;
    Some(Deed::Approve(pending.sha256.clone()))
}

fn times(state: &Integrate, stage: &str) -> u32 {
    state.counts.get(stage).copied().unwrap_or(0)
}

/// The second review takes long.
pub(super) fn takes_long(question: &AgentQuestion, state: &Integrate) -> bool {
    question.role.name == "reviewer" && times(state, "reviewer") == 1
}

/// Returns what an agent says; nobody can read the first review.
pub(super) fn reply(
    question: &AgentQuestion,
    _: &Workflow,
    state: &Integrate,
    _: usize,
) -> Result<IntegrateAnswer, NoAnswer> {
    let n = times(state, question.role.name);
    match IntegrateRole::of(question.role) {
        Some(IntegrateRole::Planner) => Ok(IntegrateAnswer::Plan(plan(state))),
        Some(IntegrateRole::Reviewer) if n == 0 => Err(NoAnswer::Unreadable("it is no review")),
        Some(IntegrateRole::Reviewer) => Ok(IntegrateAnswer::Review(review(state))),
        Some(IntegrateRole::Thesis) => Ok(IntegrateAnswer::Thesis(Defence {
            defence: "Everything is in it.".to_owned(),
            points: Vec::new(),
        })),
        Some(IntegrateRole::Antithesis) => Ok(IntegrateAnswer::Antithesis(Attack {
            strongest: "Nothing runs both.".to_owned(),
            objections: vec![IntegrationObjection {
                cause: RevisionCause::Verification,
                text: "Nothing runs both.".to_owned(),
                blocking: n == 0,
            }],
        })),
        Some(IntegrateRole::Synthesis) => Ok(IntegrateAnswer::Synthesis(ruling(state, n))),
        Some(IntegrateRole::Resolver) | None => Err(NoAnswer::Away),
    }
}

fn plan(state: &Integrate) -> ProposedPlan {
    let plan = state.plan.iter().flat_map(|plan| &plan.steps);
    let steps: Vec<MergeStep> = plan
        .filter(|step| !state.is_evicted(&step.source))
        .cloned()
        .collect();
    ProposedPlan {
        steps,
        left_out: Vec::new(),
        verify: vec!["sh both.sh".to_owned()],
        rationale: "As before, and both are run.".to_owned(),
    }
}

fn review(state: &Integrate) -> IntegrationFindings {
    IntegrationFindings {
        summary: "Every hunk was read.".to_owned(),
        justified: state
            .findings()
            .map(|(finding, _)| JustifiedFinding {
                finding,
                why: "Both need it.".to_owned(),
            })
            .collect(),
        problems: Vec::new(),
    }
}

/// The first two send it back, the third blocks it, the rest let it land.
fn ruling(state: &Integrate, n: u32) -> Ruling {
    let (verdict, cause) = match n {
        0 => (LandingVerdict::Revise, Some(RevisionCause::Verification)),
        1 => (LandingVerdict::Revise, Some(RevisionCause::Intent)),
        2 => (LandingVerdict::Block, None),
        _ => (LandingVerdict::Approve, None),
    };
    Ruling {
        verdict,
        cause,
        source: state.sources.first().map(|it| it.id.clone()),
        why: format!("Ruling {n}."),
        answers: vec!["It is so.".to_owned()],
        checks: Vec::new(),
    }
}

/// Returns what its own verbs come to, and where a shared one goes wrong.
pub(super) fn outcome(effect: &WorkflowEffect, workflow: &Workflow) -> Option<WorkflowOutcome> {
    let Body::Integrate(state) = &workflow.body else {
        return None;
    };
    match &effect.action {
        WorkflowAction::Combine(step) => {
            let report = combined(state, step);
            Some(WorkflowOutcome::Combined(Box::new(report)))
        }
        WorkflowAction::Propose(proposal) => {
            let run = format!("{}.{}", effect.workflow, effect.id);
            Some(resolve(state, &proposal.question.agent, &run))
        }
        WorkflowAction::Restore(wanted) => Some(WorkflowOutcome::Restored(RestorationReport {
            commit: wanted.head.clone(),
            tree: oid(&["tree", &wanted.head]),
            n_removed: 1,
        })),
        WorkflowAction::Verify(asked) if is_bad(state, &asked.commit) => Some(verified(asked, 1)),
        WorkflowAction::Advance(step) if times(state, "advance") == 0 => {
            let found = Some(oid(&["moved", &step.from]));
            Some(WorkflowOutcome::Moved { found })
        }
        _ => None,
    }
}

/// Whatever has the last source fails.
fn is_bad(state: &Integrate, commit: &str) -> bool {
    let is_last = |id: &GoalId| id.to_string() == SOURCES[2];
    let applied = state
        .applied
        .iter()
        .any(|it| is_last(&it.source) && it.after == commit);
    let tried = state
        .trials
        .iter()
        .any(|trial| trial.commit.as_deref() == Some(commit) && trial.sources.iter().any(is_last));
    applied || tried
}

fn combined(state: &Integrate, step: &CombineStep) -> CombineReport {
    match step {
        CombineStep::Inspect { .. } if times(state, "inspect") == 0 => CombineReport::Unfit {
            reasons: vec![format!("{} was moved", SOURCES[0])],
        },
        CombineStep::Inspect { sources, .. } => inspected(state, sources),
        CombineStep::Apply(asked) if asked.source.id.to_string() == SOURCES[2] => {
            CombineReport::Conflicted {
                at: oid(&["conflict", &asked.onto]),
                paths: vec![
                    ConflictedPath {
                        path: "src/shared.rs".to_owned(),
                        base: Some(oid(&["base"])),
                        ours: Some(oid(&["ours"])),
                        theirs: Some(oid(&["theirs"])),
                        by_rule: None,
                        regenerate: None,
                        remembered: None,
                    },
                    lock(),
                ],
            }
        }
        CombineStep::Regenerate(asked) => regenerated(state, asked),
        CombineStep::Apply(asked) => applied(asked, &[]),
        CombineStep::Settle {
            application,
            resolution,
            ..
        } => applied(application, &[resolution]),
        CombineStep::Try { onto, sources, .. } => {
            let names: Vec<String> = sources.iter().map(|it| it.id.to_string()).collect();
            CombineReport::Tried {
                commit: Some(oid(&["try", onto, &names.join(" ")])),
            }
        }
        CombineStep::Trace { head, .. } => CombineReport::Traced(Box::new(Coverage {
            head: head.clone(),
            n_hunks: 4,
            n_traced: 3,
            findings: vec![CoverageFinding {
                kind: CoverageFault::Unexpected,
                source: None,
                path: "src/shared.rs".to_owned(),
                line: 3,
                what: "an import".to_owned(),
            }],
            ..Coverage::default()
        })),
        CombineStep::Mark { .. } => CombineReport::Marked,
    }
}

/// A lock file that does not fit either.
fn lock() -> ConflictedPath {
    ConflictedPath {
        path: "deps.lock".to_owned(),
        base: Some(oid(&["lock"])),
        ours: Some(oid(&["our lock"])),
        theirs: Some(oid(&["their lock"])),
        by_rule: Some("a tool writes it".to_owned()),
        regenerate: Some("sh lock.sh".to_owned()),
        remembered: None,
    }
}

/// The tool fails at first.
fn regenerated(state: &Integrate, asked: &FileRegeneration) -> CombineReport {
    let holds = times(state, "regenerate") > 0;
    let runs = asked.files.iter().map(|file| RegenerationRun {
        path: file.path.clone(),
        run: VerifyRun {
            command: file.line.clone(),
            checks: Checks::Visible,
            exit_code: Some(i32::from(!holds)),
            timed_out: false,
            duration_ms: 7,
            output_tail: String::new(),
            output_bytes: 0,
            tally: None,
        },
    });
    CombineReport::Regenerated {
        commit: holds.then(|| oid(&["regenerated", &asked.commit])),
        runs: runs.collect(),
    }
}

/// Somebody has moved dev once it should have moved.
fn inspected(state: &Integrate, sources: &[CombinedSource]) -> CombineReport {
    let target = if times(state, "advance") == 0 {
        state.target.clone()
    } else {
        oid(&["moved", &oid(&["dev"])])
    };
    let order = sources.iter().map(|source| OrderedSource {
        source: source.id.clone(),
        after: Vec::new(),
        why: "it was named first".to_owned(),
    });
    CombineReport::Inspected(Box::new(Foresight {
        target,
        order: order.collect(),
        ..Foresight::default()
    }))
}

fn applied(asked: &SourceApplication, with: &[&String]) -> CombineReport {
    let mut parts = vec![asked.onto.as_str(), asked.source.commit.as_str()];
    parts.extend(with.iter().map(|it| it.as_str()));
    let head = oid(&parts);
    CombineReport::Applied {
        tree: oid(&["tree", &head]),
        head,
        by_rule: Vec::new(),
    }
}

/// Nobody can read what the first resolver says.
fn resolve(state: &Integrate, agent: &str, run: &str) -> WorkflowOutcome {
    let by = ReviewerIdentity {
        agent: agent.to_owned(),
        run: run.to_owned(),
    };
    if times(state, "resolver") == 0 {
        return WorkflowOutcome::Unreadable {
            by,
            why: "there is no block of JSON".to_owned(),
            usage: Usage::default(),
        };
    }
    let commit = oid(&["resolution", run]);
    WorkflowOutcome::Proposed(Box::new(ProposalReport {
        by,
        answer: ModeAnswer::Integrate(IntegrateAnswer::Resolution(Resolution {
            options: vec!["Keep both".to_owned()],
            choice: "Keep both".to_owned(),
            rationale: "Both are wanted.".to_owned(),
            unresolvable: false,
        })),
        candidate: Some(ProposedCommit {
            tree: oid(&["tree", &commit]),
            commit,
            changed: LandedPaths::of(vec!["src/shared.rs".to_owned()]),
            left_out: Vec::new(),
        }),
        usage: USED,
    }))
}

/// Returns what must be equal however often the power failed: where dev and the branch are, what is on the
/// branch, and what was decided.
pub(super) fn detail(state: &Integrate) -> Vec<String> {
    let landed = state
        .landed
        .iter()
        .map(|it| format!("{} {}", it.from, it.to));
    let branch = state.branch.iter().map(|Branch { head, .. }| head.clone());
    let applied = state
        .applied
        .iter()
        .map(|it| format!("{} {}", it.source, it.after));
    let evicted = state
        .evicted
        .iter()
        .map(|it| format!("{} {}", it.source, it.why));
    let said = state.statements.iter().map(|it| format!("{:?}", it.said));
    landed
        .chain(branch)
        .chain(applied)
        .chain(evicted)
        .chain(said)
        .collect()
}
