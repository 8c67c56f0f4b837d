//! An integration as others see it: its sources, its plan, what was foreseen and found, what is covered, and
//! how it was decided.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_workflow::rules::batch::mechanical::ConflictRule;
use kapi_workflow::rules::branch::Branch;
use kapi_workflow::rules::effect::combine::{Coverage, PairClash};
use kapi_workflow::rules::modes::integrate::conflict::{Regeneration, SettledConflict};
use kapi_workflow::rules::modes::integrate::leave::IntegrateLeave;
use kapi_workflow::rules::modes::integrate::plan::MergePlan;
use kapi_workflow::rules::modes::integrate::state::{
    AppliedSource, Eviction, Integrate, IntegrationReview, LandedStep, Statement, Unclear,
};
use serde::Serialize;

/// An integration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IntegrateView {
    /// Where the integration branch was when it was last looked at.
    pub target: String,
    /// What its person allowed at the beginning.
    pub leave: IntegrateLeave,
    /// The person's own rules for conflicts, the first that fits counts.
    pub rules: Vec<ConflictRule>,
    /// What is brought together.
    pub sources: Vec<IntegratedSourceView>,
    /// The branch, once it is there.
    pub branch: Option<Branch>,
    /// The plan that is proposed or carried out.
    pub plan: Option<Box<MergePlan>>,
    /// Pairs that do not fit, as far as that was foreseen.
    pub clashes: Vec<PairClash>,
    /// What is on the branch, in the order in which it came.
    pub applied: Vec<AppliedSource>,
    /// Every conflict that was resolved, oldest first.
    pub resolutions: Vec<SettledConflict>,
    /// Every time tools wrote files anew, oldest first.
    pub regenerations: Vec<Regeneration>,
    /// What was left out, and why.
    pub evicted: Vec<Eviction>,
    /// Whether the checks hold on the result; null before they ran.
    pub holds: Option<bool>,
    /// What of the sources is in the result.
    pub coverage: Option<Box<Coverage>>,
    /// Every review, oldest first.
    pub reviews: Vec<IntegrationReview>,
    /// The cycle, from 1.
    pub cycle: u32,
    /// The attempt at consensus in it, from 1.
    pub attempt: u32,
    /// What was said for and against, oldest first.
    pub statements: Vec<Statement>,
    /// What nobody can tell of a source.
    pub unclear: Option<Unclear>,
    /// The step of the integration branch, once it was made.
    pub landed: Option<LandedStep>,
}

/// One source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IntegratedSourceView {
    /// Which workflow or goal.
    pub id: GoalId,
    /// The workflow's mode; null for a goal.
    pub mode: Option<&'static str>,
    /// What it is for.
    pub title: String,
    /// The branch that holds it.
    pub branch: String,
    /// The proved commit.
    pub commit: String,
    /// How many things it was meant to do.
    pub intents: usize,
}

impl IntegrateView {
    /// Shows an integration.
    #[must_use]
    pub fn of(state: &Integrate) -> Self {
        let sources = state.sources.iter().map(|source| IntegratedSourceView {
            id: source.id.clone(),
            mode: source.mode.map(Mode::as_str),
            title: source.title.clone(),
            branch: source.branch.clone(),
            commit: source.commit.clone(),
            intents: source.intents.len(),
        });
        let foresight = state.foresight.iter();
        Self {
            target: state.target.clone(),
            leave: state.leave,
            rules: state.rules.clone(),
            sources: sources.collect(),
            branch: state.branch.clone(),
            plan: state.plan.clone(),
            clashes: foresight.flat_map(|it| it.clashes.clone()).collect(),
            applied: state.applied.clone(),
            resolutions: state.resolutions.clone(),
            regenerations: state.regenerations.clone(),
            evicted: state.evicted.clone(),
            holds: state.verified.as_ref().map(VerifyReport::passed),
            coverage: state.coverage.clone(),
            reviews: state.reviews.clone(),
            cycle: state.cycle,
            attempt: state.attempt,
            statements: state.statements.clone(),
            unclear: state.unclear.clone(),
            landed: state.landed.clone(),
        }
    }
}
