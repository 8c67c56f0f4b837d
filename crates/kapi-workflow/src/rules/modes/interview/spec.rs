//! What an interview is as far as it is a table.

use kapi_core::mode::Mode;

use crate::rules::decision_spec::{DecisionSpec, GrantedBy};
use crate::rules::flow::BaseRule;
use crate::rules::mode_spec::{
    ContextRule, GoalNames, Integration, ModeSpec, Opening, ParticipantNeed, PhaseSpec,
    RepositoryNeed, Skill, WorkflowStage,
};
use crate::rules::modes::Begin;
use crate::rules::modes::interview::begin::InterviewBegin;
use crate::rules::modes::interview::state::InterviewPhase;
use crate::rules::pending::WorkflowDecision;
use crate::rules::role::{AskedOf, Reads, Recall, RoleSpec};

/// The table.
pub(crate) static SPEC: ModeSpec = ModeSpec {
    mode: Mode::DeepInterview,
    noun: "interview",
    asks: "use an interview",
    goes_on: "continue the interview",
    phases: &[&INTERVIEW, &DRAFTED, &BRANCH, &LINKED],
    roles: &[&INTERVIEWER],
    decisions: &[APPROVE_SPEC.spec()],
    skills: &[Skill {
        name: "deep-interview",
        text: include_str!("../../../../../../skills/deep-interview/SKILL.md"),
    }],
    context: ContextRule::Gives,
    repository: RepositoryNeed::Optional,
    base: BaseRule::Head,
    reviewer: ParticipantNeed::NotAsked,
    judge: ParticipantNeed::NotAsked,
    open,
    goals: GoalNames::None,
    integration: Integration::Never,
};

fn open(opening: Opening) -> Result<Begin, &'static str> {
    Ok(Begin::Interview(InterviewBegin {
        commit: opening.commit,
    }))
}

/// Whether the spec says what its person wants.
pub const APPROVE_SPEC: WorkflowDecision = WorkflowDecision::of(&DecisionSpec {
    name: "approve_interview_spec",
    artifacts: &["spec.md"],
    inbox: "spec",
    gives: GrantedBy::Nothing,
    on_yes: "the spec becomes final and `kapi ralph` can start from it; nothing runs yet",
});

/// The one who interviews.
pub static INTERVIEWER: RoleSpec = RoleSpec {
    mode: Mode::DeepInterview,
    name: "interviewer",
    by: AskedOf::Agent,
    reads: Reads::Commit,
    recalls: Recall::Conversation,
    asked: "what to ask next",
};

static INTERVIEW: PhaseSpec = PhaseSpec {
    name: "interview",
    subphases: &["asking", "awaiting", "restating"],
    guidance: &["deep-interview"],
    stage: WorkflowStage::Drafting,
};
static DRAFTED: PhaseSpec = PhaseSpec {
    name: "spec",
    subphases: &[],
    guidance: &["deep-interview"],
    stage: WorkflowStage::Drafting,
};
static BRANCH: PhaseSpec = PhaseSpec {
    name: "branch",
    subphases: &[],
    guidance: &[],
    stage: WorkflowStage::Handover,
};
static LINKED: PhaseSpec = PhaseSpec {
    name: "linked",
    subphases: &[],
    guidance: &[],
    stage: WorkflowStage::Carried,
};

impl InterviewPhase {
    /// Returns the phase that it is or is a part of, and the part's name.
    pub(super) const fn spec(self) -> (&'static PhaseSpec, Option<&'static str>) {
        match self {
            Self::Asking => (&INTERVIEW, Some("asking")),
            Self::Awaiting => (&INTERVIEW, Some("awaiting")),
            Self::Restating => (&INTERVIEW, Some("restating")),
            Self::Spec => (&DRAFTED, None),
            Self::Branch => (&BRANCH, None),
            Self::Linked => (&LINKED, None),
        }
    }
}
