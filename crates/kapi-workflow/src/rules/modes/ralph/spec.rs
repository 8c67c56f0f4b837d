//! What Ralph is as far as it is a table.

use kapi_core::mode::Mode;

use crate::rules::context_begin::ContextBegin;
use crate::rules::decision_spec::{DecisionSpec, GrantedBy};
use crate::rules::flow::BaseRule;
use crate::rules::guidance::{CODE_REVIEW, CODE_SIMPLIFIER};
use crate::rules::mode_spec::{
    ContextRule, GoalNames, Integration, ModeSpec, Opening, ParticipantNeed, PhaseSpec,
    RepositoryNeed, Skill, WorkflowStage,
};
use crate::rules::modes::Begin;
use crate::rules::modes::ralph::role::RalphRole;
use crate::rules::modes::ralph::state::RalphPhase;
use crate::rules::pending::WorkflowDecision;

/// The table.
pub(crate) static SPEC: ModeSpec = ModeSpec {
    mode: Mode::Ralph,
    noun: "Ralph workflow",
    asks: "use a Ralph workflow",
    goes_on: "continue the build",
    phases: &[&PLAN, &RUN, &REVIEW, &CLOSEOUT],
    roles: &[
        RalphRole::Thesis.spec(),
        RalphRole::Antithesis.spec(),
        RalphRole::Synthesis.spec(),
        RalphRole::Reviewer.spec(),
        RalphRole::Accountant.spec(),
    ],
    decisions: &[APPROVE_PLAN.spec()],
    skills: &[RALPLAN, RALPH, CODE_REVIEW, CODE_SIMPLIFIER],
    context: ContextRule::Takes,
    repository: RepositoryNeed::Required,
    base: BaseRule::Head,
    reviewer: ParticipantNeed::Asked,
    judge: ParticipantNeed::Asked,
    open,
    goals: GoalNames::OfWorkflow,
    integration: Integration::AfterCompletion,
};

fn open(opening: Opening) -> Result<Begin, &'static str> {
    let base = opening.commit.ok_or("there is no commit to start from")?;
    Ok(Begin::Ralph(ContextBegin {
        base,
        interview: opening.context,
        spec: None,
    }))
}

/// Whether the plan may be carried out.
pub const APPROVE_PLAN: WorkflowDecision = WorkflowDecision::of(&DecisionSpec {
    name: "approve_ralph_plan",
    artifacts: &["plan.md"],
    inbox: "plan",
    gives: GrantedBy::Work,
    on_yes: "the plan becomes final; once the workflow runs, its tasks are built in separate \
        workspaces and land on the workflow's branch",
});

const RALPLAN: Skill = Skill {
    name: "ralplan",
    text: include_str!("../../../../../../skills/ralplan/SKILL.md"),
};
const RALPH: Skill = Skill {
    name: "ralph",
    text: include_str!("../../../../../../skills/ralph/SKILL.md"),
};

static PLAN: PhaseSpec = PhaseSpec {
    name: "plan",
    subphases: &["thesis", "antithesis", "synthesis", "approval"],
    guidance: &["ralplan"],
    stage: WorkflowStage::Drafting,
};
static RUN: PhaseSpec = PhaseSpec {
    name: "run",
    subphases: &[],
    guidance: &["ralph"],
    stage: WorkflowStage::Carried,
};
static REVIEW: PhaseSpec = PhaseSpec {
    name: "review",
    subphases: &[],
    guidance: &["code-review", "code-simplifier"],
    stage: WorkflowStage::Carried,
};
static CLOSEOUT: PhaseSpec = PhaseSpec {
    name: "closeout",
    subphases: &[],
    guidance: &["ralph"],
    stage: WorkflowStage::Carried,
};

impl RalphPhase {
    /// Returns the phase that it is or is a part of, and the part's name.
    pub(super) const fn spec(self) -> (&'static PhaseSpec, Option<&'static str>) {
        match self {
            Self::Thesis => (&PLAN, Some("thesis")),
            Self::Antithesis => (&PLAN, Some("antithesis")),
            Self::Synthesis => (&PLAN, Some("synthesis")),
            Self::Approval => (&PLAN, Some("approval")),
            Self::Run => (&RUN, None),
            Self::Review => (&REVIEW, None),
            Self::Closeout => (&CLOSEOUT, None),
        }
    }
}
