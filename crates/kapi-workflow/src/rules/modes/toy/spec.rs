//! What a toy is as far as it is a table.

use kapi_core::mode::Mode;

use crate::rules::decision_spec::{DecisionSpec, GrantedBy};
use crate::rules::flow::BaseRule;
use crate::rules::mode_spec::{
    ContextRule, GoalNames, Integration, ModeSpec, Opening, ParticipantNeed, PhaseSpec,
    RepositoryNeed, WorkflowStage,
};
use crate::rules::modes::Begin;
use crate::rules::modes::toy::begin::ToyBegin;
use crate::rules::pending::WorkflowDecision;
use crate::rules::role::{AskedOf, Reads, Recall, RoleSpec};

/// The table.
pub(crate) static SPEC: ModeSpec = ModeSpec {
    mode: Mode::Toy,
    noun: "toy",
    asks: "ask something of a toy",
    goes_on: "continue the toy",
    phases: &[&DESCRIBE, &CARRY],
    roles: &[&WEIGHER],
    decisions: &[APPROVE_TOY.spec()],
    skills: &[],
    context: ContextRule::None,
    repository: RepositoryNeed::Required,
    base: BaseRule::Dev,
    reviewer: ParticipantNeed::NotAsked,
    judge: ParticipantNeed::NotAsked,
    open,
    goals: GoalNames::OfWorkflow,
    integration: Integration::Never,
};

fn open(opening: Opening) -> Result<Begin, &'static str> {
    let base = opening.commit.ok_or("there is no commit to start from")?;
    Ok(Begin::Toy(ToyBegin { base }))
}

/// Whether the scale is as its person wants it.
pub const APPROVE_TOY: WorkflowDecision = WorkflowDecision::of(&DecisionSpec {
    name: "approve_toy",
    artifacts: &["toy.md", "toy.sh"],
    inbox: "toy",
    gives: GrantedBy::Work,
    on_yes: "the scale is built and carried",
});

/// The one who describes the scale.
pub static WEIGHER: RoleSpec = RoleSpec {
    mode: Mode::Toy,
    name: "weigher",
    by: AskedOf::Agent,
    reads: Reads::Commit,
    recalls: Recall::Nothing,
    asked: "for a scale",
};

/// The scale is described and approved.
pub(super) static DESCRIBE: PhaseSpec = PhaseSpec {
    name: "describe",
    subphases: &["asking", "approval"],
    guidance: &[],
    stage: WorkflowStage::Drafting,
};
/// It is built and carried.
pub(super) static CARRY: PhaseSpec = PhaseSpec {
    name: "carry",
    subphases: &[],
    guidance: &[],
    stage: WorkflowStage::Carried,
};
