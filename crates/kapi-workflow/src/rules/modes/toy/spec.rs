//! What a toy is as far as it is a table.

use kapi_core::mode::Mode;

use crate::rules::decision_spec::{DecisionSpec, Gives};
use crate::rules::flow::BaseRule;
use crate::rules::mode_spec::{
    ContextRule, GoalNames, Integration, ModeSpec, Opening, Party, PhaseSpec, Repository, Stage,
};
use crate::rules::modes::Begin;
use crate::rules::modes::toy::begin::ToyBegin;
use crate::rules::pending::Decision;
use crate::rules::role::{AskedOf, Reads, RoleSpec};

/// The table.
pub(crate) static SPEC: ModeSpec = ModeSpec {
    mode: Mode::Toy,
    noun: "toy",
    asks: "ask something of a toy",
    goes_on: "go on with the toy",
    phases: &[&DESCRIBE, &CARRY],
    roles: &[&WEIGHER],
    decisions: &[APPROVE_TOY.spec()],
    skills: &[],
    context: ContextRule::None,
    repository: Repository::Required,
    base: BaseRule::Dev,
    reviewer: Party::NotAsked,
    judge: Party::NotAsked,
    open,
    goals: GoalNames::OfWorkflow,
    integration: Integration::Never,
};

fn open(opening: Opening) -> Result<Begin, &'static str> {
    let base = opening.commit.ok_or("there is no commit to start from")?;
    Ok(Begin::Toy(ToyBegin { base }))
}

/// Whether the scale is as its person wants it.
pub const APPROVE_TOY: Decision = Decision::of(&DecisionSpec {
    name: "approve_toy",
    artifacts: &["toy.md", "toy.sh"],
    inbox: "toy",
    gives: Gives::Work,
    on_yes: "the scale is built and carried",
});

/// The one who describes the scale.
pub static WEIGHER: RoleSpec = RoleSpec {
    mode: Mode::Toy,
    name: "weigher",
    by: AskedOf::Agent,
    reads: Reads::Commit,
    asked: "for a scale",
};

/// The scale is described and approved.
pub(super) static DESCRIBE: PhaseSpec = PhaseSpec {
    name: "describe",
    subphases: &["asking", "approval"],
    guidance: &[],
    stage: Stage::Drafting,
};
/// It is built and carried.
pub(super) static CARRY: PhaseSpec = PhaseSpec {
    name: "carry",
    subphases: &[],
    guidance: &[],
    stage: Stage::Carried,
};
