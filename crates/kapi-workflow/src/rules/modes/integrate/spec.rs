//! What Integrate is as far as it is a table.

use kapi_core::mode::Mode;

use crate::rules::decision_spec::{DecisionSpec, GrantedBy};
use crate::rules::flow::BaseRule;
use crate::rules::guidance::{CODE_REVIEW, CODE_SIMPLIFIER};
use crate::rules::mode_spec::{
    ContextRule, GoalNames, Integration, ModeSpec, Opening, ParticipantNeed, PhaseSpec,
    RepositoryNeed, Skill, WorkflowStage,
};
use crate::rules::modes::Begin;
use crate::rules::modes::integrate::begin::IntegrateBegin;
use crate::rules::modes::integrate::leave::IntegrateLeave;
use crate::rules::modes::integrate::role::IntegrateRole;
use crate::rules::modes::integrate::source::Source;
use crate::rules::modes::integrate::state::IntegratePhase;
use crate::rules::pending::WorkflowDecision;

/// The table.
pub(crate) static SPEC: ModeSpec = ModeSpec {
    mode: Mode::Integrate,
    noun: "integration",
    asks: "ask something of an integration",
    goes_on: "continue the integration",
    phases: &[&INSPECT, &PLAN, &MERGE, &VERIFY, &REVIEW, &CONSENSUS, &LAND],
    roles: &[
        IntegrateRole::Planner.spec(),
        IntegrateRole::Resolver.spec(),
        IntegrateRole::Reviewer.spec(),
        IntegrateRole::Thesis.spec(),
        IntegrateRole::Antithesis.spec(),
        IntegrateRole::Synthesis.spec(),
    ],
    decisions: &[APPROVE_PLAN.spec()],
    skills: &[
        INTEGRATION,
        INTEGRATION_REVIEW,
        CODE_REVIEW,
        CODE_SIMPLIFIER,
        CONSENSUS_SKILL,
    ],
    context: ContextRule::None,
    repository: RepositoryNeed::Required,
    base: BaseRule::Dev,
    reviewer: ParticipantNeed::Asked,
    judge: ParticipantNeed::NotAsked,
    open,
    goals: GoalNames::None,
    integration: Integration::Never,
};

/// Its own command collects sources; whoever only looks whether a workflow begins has the commit alone.
fn open(opening: Opening) -> Result<Begin, &'static str> {
    let target = opening.commit.ok_or("there is no commit to start from")?;
    Ok(Begin::Integrate(IntegrateBegin {
        sources: vec![Source::of_commit(&target)],
        target,
        leave: IntegrateLeave::default(),
        rules: Vec::new(),
    }))
}

/// Whether the plan may be carried out.
pub const APPROVE_PLAN: WorkflowDecision = WorkflowDecision::of(&DecisionSpec {
    name: "approve_merge_plan",
    artifacts: &["merge-plan.md"],
    inbox: "merge plan",
    gives: GrantedBy::Work,
    on_yes: "the sources are brought together on a branch of the workflow, verified and reviewed, and \
             dev moves to the result once the consensus approves it",
});

const INTEGRATION: Skill = Skill {
    name: "integration",
    text: include_str!("../../../../../../skills/integration/SKILL.md"),
};
const INTEGRATION_REVIEW: Skill = Skill {
    name: "integration-review",
    text: include_str!("../../../../../../skills/integration-review/SKILL.md"),
};
const CONSENSUS_SKILL: Skill = Skill {
    name: "integration-consensus",
    text: include_str!("../../../../../../skills/integration-consensus/SKILL.md"),
};

static INSPECT: PhaseSpec = PhaseSpec {
    name: "inspect",
    subphases: &[],
    guidance: &["integration"],
    stage: WorkflowStage::Drafting,
};
static PLAN: PhaseSpec = PhaseSpec {
    name: "plan",
    subphases: &["draft", "baseline", "approval"],
    guidance: &["integration"],
    stage: WorkflowStage::Drafting,
};
static MERGE: PhaseSpec = PhaseSpec {
    name: "merge",
    subphases: &["prepare", "apply", "conflict"],
    guidance: &["integration"],
    stage: WorkflowStage::Carried,
};
static VERIFY: PhaseSpec = PhaseSpec {
    name: "verify",
    subphases: &["head", "bisect"],
    guidance: &["integration"],
    stage: WorkflowStage::Carried,
};
static REVIEW: PhaseSpec = PhaseSpec {
    name: "review",
    subphases: &[],
    guidance: &["integration-review", "code-review", "code-simplifier"],
    stage: WorkflowStage::Carried,
};
static CONSENSUS: PhaseSpec = PhaseSpec {
    name: "consensus",
    subphases: &["thesis", "antithesis", "synthesis"],
    guidance: &["integration-consensus"],
    stage: WorkflowStage::Carried,
};
static LAND: PhaseSpec = PhaseSpec {
    name: "land",
    subphases: &[],
    guidance: &["integration"],
    stage: WorkflowStage::Carried,
};

impl IntegratePhase {
    /// Returns the phase that it is or is a part of, and the part's name.
    pub(in crate::rules::modes::integrate) const fn spec(
        self,
    ) -> (&'static PhaseSpec, Option<&'static str>) {
        match self {
            Self::Inspect => (&INSPECT, None),
            Self::Draft => (&PLAN, Some("draft")),
            Self::Baseline => (&PLAN, Some("baseline")),
            Self::Approval => (&PLAN, Some("approval")),
            Self::Prepare => (&MERGE, Some("prepare")),
            Self::Apply => (&MERGE, Some("apply")),
            Self::Conflict => (&MERGE, Some("conflict")),
            Self::Head => (&VERIFY, Some("head")),
            Self::Bisect => (&VERIFY, Some("bisect")),
            Self::Review => (&REVIEW, None),
            Self::Thesis => (&CONSENSUS, Some("thesis")),
            Self::Antithesis => (&CONSENSUS, Some("antithesis")),
            Self::Synthesis => (&CONSENSUS, Some("synthesis")),
            Self::Land => (&LAND, None),
        }
    }
}
