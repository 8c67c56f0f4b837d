//! What a mode is as far as it is a table: its phases and their guidance, and what the lifecycle that
//! all modes share may do with it.
//!
//! A constant in the mode's own `spec.rs`; what needs the state is a function, see
//! [`crate::rules::mode_rules`].

use kapi_core::id::GoalId;
use kapi_core::mode::Mode;

use crate::rules::decision_spec::DecisionSpec;
use crate::rules::flow::BaseRule;
use crate::rules::modes::Begin;
use crate::rules::role::RoleSpec;

/// A mode's table.
#[derive(Debug)]
pub struct ModeSpec {
    /// Which mode.
    pub mode: Mode,
    /// What one of its workflows is called: `interview`.
    pub noun: &'static str,
    /// What is denied to whoever asks another mode what only this one knows: `ask …`.
    pub asks: &'static str,
    /// What is denied to whoever asks it after its end: `go on with …`.
    pub goes_on: &'static str,
    /// Its phases, in their order.
    pub phases: &'static [&'static PhaseSpec],
    /// The roles in which agents are asked.
    pub roles: &'static [&'static RoleSpec],
    /// What its person is asked to decide.
    pub decisions: &'static [&'static DecisionSpec],
    /// The guidance documents that its phases name.
    pub skills: &'static [Skill],
    /// Whether it gives others their context or takes it.
    pub context: ContextRule,
    /// Whether it needs a repository.
    pub repository: RepositoryNeed,
    /// Where its workflows begin.
    pub base: BaseRule,
    /// Whether somebody else is asked to object and review.
    pub reviewer: ParticipantNeed,
    /// Whether somebody judges what it makes.
    pub judge: ParticipantNeed,
    /// Makes its beginning; says what is missing where there is not enough for one.
    pub open: fn(Opening) -> Result<Begin, &'static str>,
    /// How its goals are named.
    pub goals: GoalNames,
    /// Whether an integration may take its work over.
    pub integration: Integration,
}

/// One phase.
#[derive(Debug, PartialEq, Eq)]
pub struct PhaseSpec {
    /// Its name, as in `snapshot.json`.
    pub name: &'static str,
    /// The names of its parts; none where it has none.
    pub subphases: &'static [&'static str],
    /// The documents that an agent is given in it, in their order.
    pub guidance: &'static [&'static str],
    /// How far it has come in it.
    pub stage: WorkflowStage,
}

/// How far a workflow has come, whatever its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkflowStage {
    /// What a person is to approve is being made.
    Drafting,
    /// What was approved waits for another workflow to go on from it.
    Handover,
    /// What was approved is carried out.
    Carried,
}

/// What there is to begin with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opening {
    /// The commit of the project.
    pub commit: Option<String>,
    /// The workflow that gives the context.
    pub context: Option<GoalId>,
}

/// Where the context of a mode's workflows comes from and goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextRule {
    /// It gives what it found out to a workflow of another mode.
    Gives,
    /// It may begin with what another one found out.
    Takes,
    /// Neither.
    None,
}

/// Whether a mode needs a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepositoryNeed {
    /// It goes without one.
    Optional,
    /// It begins at a commit.
    Required,
}

/// Whether a party beside the agent has anything to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParticipantNeed {
    /// It is asked.
    Asked,
    /// There is nothing to ask it.
    NotAsked,
}

/// How the goals of a mode are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoalNames {
    /// It has no goals.
    None,
    /// Under the workflow, by its tasks.
    OfWorkflow,
}

/// Whether an integration may take a mode's work over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integration {
    /// There is nothing to take over.
    Never,
    /// Once it is complete.
    AfterCompletion,
}

/// A guidance document, part of the program.
#[derive(Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name, as the phases name it.
    pub name: &'static str,
    /// The whole text, front matter included.
    pub text: &'static str,
}
