//! What Autoresearch is as far as it is a table.

use kapi_core::mode::Mode;

use crate::rules::context_begin::ContextBegin;
use crate::rules::decision_spec::{DecisionSpec, GrantedBy};
use crate::rules::flow::BaseRule;
use crate::rules::mode_spec::{
    ContextRule, GoalNames, Integration, ModeSpec, Opening, ParticipantNeed, PhaseSpec,
    RepositoryNeed, Skill, WorkflowStage,
};
use crate::rules::modes::Begin;
use crate::rules::modes::autoresearch::role::AutoresearchRole;
use crate::rules::modes::autoresearch::state::{Autoresearch, AutoresearchPhase};
use crate::rules::pending::WorkflowDecision;

/// The table.
pub(crate) static SPEC: ModeSpec = ModeSpec {
    mode: Mode::Autoresearch,
    noun: "search",
    asks: "ask something of a search",
    goes_on: "continue the search",
    phases: &[&CONTRACT, &RUN, &FINALIZE],
    roles: &[
        AutoresearchRole::Drafter.spec(),
        AutoresearchRole::Researcher.spec(),
    ],
    decisions: &[APPROVE_CONTRACT.spec()],
    skills: &[CONTRACT_SKILL, LOOP_SKILL, FINALIZE_SKILL],
    context: ContextRule::Takes,
    repository: RepositoryNeed::Required,
    base: BaseRule::Head,
    reviewer: ParticipantNeed::NotAsked,
    judge: ParticipantNeed::NotAsked,
    open,
    goals: GoalNames::None,
    integration: Integration::AfterCompletion,
};

fn open(opening: Opening) -> Result<Begin, &'static str> {
    let base = opening.commit.ok_or("there is no commit to start from")?;
    Ok(Begin::Autoresearch(ContextBegin {
        base,
        interview: opening.context,
        spec: None,
    }))
}

/// Whether experiments may be made within this contract.
pub const APPROVE_CONTRACT: WorkflowDecision = WorkflowDecision::of(&DecisionSpec {
    name: "approve_experiment_contract",
    artifacts: &["contract.md", "benchmark.sh", "checks.sh"],
    inbox: "experiment contract",
    gives: GrantedBy::Work,
    on_yes: "contract, benchmark and checks are fixed, and an agent changes files in scope on the \
             workflow's own branch, measured and kept or put back by Kapi, once the workflow runs",
});

const CONTRACT_SKILL: Skill = Skill {
    name: "autoresearch-contract",
    text: include_str!("../../../../../../skills/autoresearch-contract/SKILL.md"),
};
const LOOP_SKILL: Skill = Skill {
    name: "autoresearch",
    text: include_str!("../../../../../../skills/autoresearch/SKILL.md"),
};
const FINALIZE_SKILL: Skill = Skill {
    name: "autoresearch-finalize",
    text: include_str!("../../../../../../skills/autoresearch-finalize/SKILL.md"),
};

static CONTRACT: PhaseSpec = PhaseSpec {
    name: "contract",
    subphases: &["draft", "approval"],
    guidance: &["autoresearch-contract"],
    stage: WorkflowStage::Drafting,
};
static RUN: PhaseSpec = PhaseSpec {
    name: "run",
    subphases: &["baseline", "propose", "measure", "decide"],
    guidance: &["autoresearch"],
    stage: WorkflowStage::Carried,
};
static FINALIZE: PhaseSpec = PhaseSpec {
    name: "finalize",
    subphases: &["verify", "split"],
    guidance: &["autoresearch-finalize"],
    stage: WorkflowStage::Carried,
};

impl Autoresearch {
    /// Returns the phase that it is in, and the part's name.
    pub(super) const fn location(&self) -> (&'static PhaseSpec, Option<&'static str>) {
        match (self.phase, self.settling) {
            (AutoresearchPhase::Draft, _) => (&CONTRACT, Some("draft")),
            (AutoresearchPhase::Approval, _) => (&CONTRACT, Some("approval")),
            (AutoresearchPhase::Baseline, _) => (&RUN, Some("baseline")),
            (AutoresearchPhase::Propose | AutoresearchPhase::Measure, Some(_)) => {
                (&RUN, Some("decide"))
            }
            (AutoresearchPhase::Propose, None) => (&RUN, Some("propose")),
            (AutoresearchPhase::Measure, None) => (&RUN, Some("measure")),
            (AutoresearchPhase::Verify, _) => (&FINALIZE, Some("verify")),
            (AutoresearchPhase::Split, _) => (&FINALIZE, Some("split")),
        }
    }
}
