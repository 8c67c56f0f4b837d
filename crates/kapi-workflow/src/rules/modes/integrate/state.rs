//! An integration as it stands.

use std::collections::BTreeMap;

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::id::GoalId;
use serde::{Deserialize, Serialize};

use crate::rules::batch::mechanical::ConflictRule;
use crate::rules::branch::{Branch, BranchType};
use crate::rules::effect::combine::{Coverage, CoverageFinding, Foresight, MergeMethod};
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::integrate::answer::{
    Attack, Defence, IntegrationFindings, LandingVerdict, RevisionCause, Ruling,
};
use crate::rules::modes::integrate::conflict::{OpenConflict, Regeneration, SettledConflict};
use crate::rules::modes::integrate::leave::IntegrateLeave;
use crate::rules::modes::integrate::plan::{Clarification, MergePlan, MergeStep};
use crate::rules::modes::integrate::source::Source;

/// The most attempts at consensus of one cycle.
pub const ATTEMPTS_MAX: u32 = 3;

/// An integration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Integrate {
    /// Where the integration branch was when the integration began.
    pub began: String,
    /// Where the integration branch was when it was last looked at.
    pub target: String,
    /// What is brought together, as it was found at the beginning.
    pub sources: Vec<Source>,
    /// What its person allowed at the beginning.
    pub leave: IntegrateLeave,
    /// The person's own rules for conflicts, the first that fits counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ConflictRule>,
    /// Where it stands.
    pub phase: IntegratePhase,
    /// The cycle, from 1; a person's word begins another one, and so does a branch that moved.
    pub cycle: u32,
    /// The attempt at consensus in this cycle, from 1.
    pub attempt: u32,
    /// Why another plan is wanted.
    pub wanted: Option<String>,
    /// What nobody can tell of a source.
    pub unclear: Option<Unclear>,
    /// What its person said of sources, oldest first.
    pub clarified: Vec<Clarification>,
    /// What was foreseen last.
    pub foresight: Option<Foresight>,
    /// The plan that is proposed or carried out.
    pub plan: Option<Box<MergePlan>>,
    /// The branch, once it is there.
    pub branch: Option<Branch>,
    /// The commit at which the branch was made.
    pub first: Option<String>,
    /// What the checks show on the integration branch as the plan found it.
    pub baseline: Option<VerifyReport>,
    /// What is on the branch, in the order in which it came.
    pub applied: Vec<AppliedSource>,
    /// What does not fit now.
    pub conflict: Option<OpenConflict>,
    /// Every conflict that was resolved, oldest first.
    pub resolutions: Vec<SettledConflict>,
    /// Every time tools wrote files anew, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regenerations: Vec<Regeneration>,
    /// Why resolutions of a source are made again, oldest first.
    pub redo: Vec<Redo>,
    /// Sources that were left out, oldest first.
    pub evicted: Vec<Eviction>,
    /// What the checks showed on the head.
    pub verified: Option<VerifyReport>,
    /// What was tried to find out who makes a head fail.
    pub trials: Vec<HeadTrial>,
    /// Commands that the consensus asked for besides the plan's.
    pub more_checks: Vec<String>,
    /// What of the sources is in the head.
    pub coverage: Option<Box<Coverage>>,
    /// Every review, oldest first.
    pub reviews: Vec<IntegrationReview>,
    /// What was said for and against, oldest first.
    pub statements: Vec<Statement>,
    /// Why the consensus waits for a person.
    pub stopped: Option<String>,
    /// Answers that were refused in a row, by role.
    pub refused: BTreeMap<String, Vec<String>>,
    /// How often each thing was done; parts of the names of effects.
    pub counts: BTreeMap<String, u32>,
    /// The step of the integration branch, once it was made.
    pub landed: Option<LandedStep>,
}

/// Where an integration stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntegratePhase {
    /// The sources are looked at.
    Inspect,
    /// Another plan is drafted.
    Draft,
    /// The checks are run on what the plan begins with.
    Baseline,
    /// The plan waits for its approval.
    Approval,
    /// The branch is made.
    Prepare,
    /// The sources come onto the branch.
    Apply,
    /// One of them does not fit.
    Conflict,
    /// The result is verified.
    Head,
    /// Whoever makes it fail is looked for.
    Bisect,
    /// It is traced and reviewed.
    Review,
    /// Somebody defends it.
    Thesis,
    /// Somebody attacks it.
    Antithesis,
    /// Somebody decides.
    Synthesis,
    /// The integration branch moves.
    Land,
}

/// What nobody can tell of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unclear {
    /// The source; `None` where it is about several.
    pub source: Option<GoalId>,
    /// What.
    pub question: String,
}

/// A source that is on the branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppliedSource {
    /// The source.
    pub source: GoalId,
    /// How it came.
    pub method: MergeMethod,
    /// The commit before.
    pub before: String,
    /// The commit after.
    pub after: String,
    /// That commit's tree.
    pub tree: String,
    /// The paths of a conflict that was resolved on the way.
    pub resolved: Vec<String>,
    /// Those of them that tools wrote anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generated: Vec<String>,
}

/// Why a resolution is made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redo {
    /// The source.
    pub source: GoalId,
    /// What was wrong with it.
    pub why: String,
}

/// A source that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Eviction {
    /// The source.
    pub source: GoalId,
    /// Why.
    pub why: String,
    /// The other one, where it fails only together with that.
    pub with: Option<GoalId>,
    /// What was seen, for its owner.
    pub evidence: String,
}

/// Sources that were put on the target without the others, to find out who makes a head fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadTrial {
    /// Which.
    pub sources: Vec<GoalId>,
    /// The commit; `None` where they do not fit.
    pub commit: Option<String>,
    /// What the checks showed, once they ran.
    pub report: Option<VerifyReport>,
}

/// A review of one head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegrationReview {
    /// By whom.
    pub by: ReviewerIdentity,
    /// The head.
    pub head: String,
    /// What they found.
    pub findings: IntegrationFindings,
}

/// What one said for or against one head in one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The cycle.
    pub cycle: u32,
    /// The attempt.
    pub attempt: u32,
    /// The head.
    pub head: String,
    /// By whom.
    pub by: ReviewerIdentity,
    /// What.
    pub said: Argument,
}

/// What was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Argument {
    /// For it.
    Thesis(Defence),
    /// Against it.
    Antithesis(Attack),
    /// What follows.
    Synthesis(Ruling),
}

/// A step of the integration branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LandedStep {
    /// Where it was.
    pub from: String,
    /// Where it is.
    pub to: String,
    /// The checkout of it that was brought along.
    pub brought: Option<String>,
}

impl Integrate {
    /// Returns the name of the branch.
    pub(super) fn branch_name(id: &GoalId) -> String {
        format!("{}/integrate-{}", BranchType::Chore.as_str(), id.slug())
    }

    /// Returns a source by its id.
    #[must_use]
    pub fn source(&self, id: &GoalId) -> Option<&Source> {
        self.sources.iter().find(|source| source.id == *id)
    }

    /// Returns the sources that were not evicted.
    #[must_use]
    pub fn left(&self) -> Vec<&Source> {
        let sources = self.sources.iter();
        sources
            .filter(|source| !self.is_evicted(&source.id))
            .collect()
    }

    /// Tells whether a source was evicted.
    #[must_use]
    pub fn is_evicted(&self, id: &GoalId) -> bool {
        self.evicted.iter().any(|evicted| evicted.source == *id)
    }

    /// Returns the steps of the plan that are still to be taken or were taken.
    #[must_use]
    pub fn steps(&self) -> Vec<&MergeStep> {
        let plan = self.plan.iter();
        let steps = plan.flat_map(|plan| &plan.steps);
        steps
            .filter(|step| !self.is_evicted(&step.source))
            .collect()
    }

    /// Returns the step that comes onto the branch next.
    #[must_use]
    pub fn next_step(&self) -> Option<&MergeStep> {
        self.steps().get(self.applied.len()).copied()
    }

    /// Returns the commit that the plan begins at.
    #[must_use]
    pub fn start(&self) -> &str {
        self.plan.as_ref().map_or(&self.target, |plan| &plan.target)
    }

    /// Returns the result so far: the commit with everything that fits.
    #[must_use]
    pub fn head(&self) -> &str {
        self.applied
            .last()
            .map_or_else(|| self.start(), |applied| &applied.after)
    }

    /// Returns every command that a plan verifies a result with.
    pub(super) fn checks(&self, always: &[String]) -> Vec<String> {
        let mut checks: Vec<String> = always.to_vec();
        let left = self.left();
        for check in left.iter().flat_map(|source| &source.checks) {
            if !checks.contains(&check.command) {
                checks.push(check.command.clone());
            }
        }
        checks
    }

    /// Returns the commands that have to hold where these sources are: what proved one of them holds
    /// only where it is, and what fails without any of them blames none.
    #[must_use]
    pub fn commands(&self, of: &[GoalId], always: &[String]) -> Vec<String> {
        let plan = self.plan.iter().flat_map(|plan| &plan.verify);
        let mut commands: Vec<String> = Vec::new();
        for command in always.iter().chain(plan).chain(&self.more_checks) {
            let mut owners = self.sources.iter().filter(|it| it.check(command).is_some());
            let is_ours = always.contains(command)
                || self.more_checks.contains(command)
                || owners.clone().next().is_none()
                || owners.any(|owner| of.contains(&owner.id));
            let is_wanted = is_ours && !self.is_excused(command, of);
            if is_wanted && !commands.contains(command) {
                commands.push(command.clone());
            }
        }
        commands
    }

    /// Tells whether a command fails on the integration branch as it is, though none of these sources
    /// is what makes it pass.
    #[must_use]
    pub fn is_excused(&self, command: &str, of: &[GoalId]) -> bool {
        let runs = self.baseline.iter().flat_map(|report| &report.runs);
        let fails = runs
            .filter(|run| !run.passed())
            .any(|run| run.command == command);
        let mut sources = self.sources.iter().filter(|it| of.contains(&it.id));
        fails && !sources.any(|it| it.check(command).is_some_and(|check| check.failed_before))
    }

    /// Tells whether it is known what the plan's checks show on the integration branch, and whether one
    /// of them could show there that a result holds.
    #[must_use]
    pub fn has_baseline(&self) -> bool {
        let is_of = |report: &&VerifyReport| report.commit == self.start();
        let Some(baseline) = self.baseline.as_ref().filter(is_of) else {
            return false;
        };
        let plan = self.plan.iter().flat_map(|plan| &plan.verify);
        let has_run = |command: &String| baseline.runs.iter().any(|it| it.command == *command);
        let all: Vec<GoalId> = self.steps().iter().map(|it| it.source.clone()).collect();
        plan.chain(&self.more_checks).all(has_run) && !self.commands(&all, &[]).is_empty()
    }

    /// Returns the sources that are on the branch.
    #[must_use]
    pub fn there(&self) -> Vec<GoalId> {
        self.applied.iter().map(|it| it.source.clone()).collect()
    }

    /// Returns the findings of the coverage, each with its number.
    pub fn findings(&self) -> impl Iterator<Item = (u32, &CoverageFinding)> {
        let findings = self.coverage.iter().flat_map(|it| &it.findings);
        (1_u32..).zip(findings)
    }

    /// Returns the review of the head, where there is one.
    #[must_use]
    pub fn review(&self) -> Option<&IntegrationReview> {
        let head = self.head();
        self.reviews.iter().rfind(|review| review.head == head)
    }

    /// Returns what was said of this head in this attempt.
    pub fn said(&self) -> impl Iterator<Item = &Statement> {
        let (cycle, attempt, head) = (self.cycle, self.attempt, self.head());
        self.statements.iter().filter(move |statement| {
            statement.cycle == cycle && statement.attempt == attempt && statement.head == head
        })
    }

    /// Returns what was said against this head in this attempt.
    #[must_use]
    pub fn attack(&self) -> Option<&Attack> {
        self.said().find_map(|statement| {
            if let Argument::Antithesis(attack) = &statement.said {
                Some(attack)
            } else {
                None
            }
        })
    }

    /// Tells whether this head was approved in this attempt.
    #[must_use]
    pub fn is_agreed(&self) -> bool {
        self.said().any(|statement| {
            matches!(&statement.said, Argument::Synthesis(ruling) if ruling.verdict == LandingVerdict::Approve)
        })
    }

    /// Returns the last time a conflict of a source was resolved and is still on the branch.
    #[must_use]
    pub fn resolution_of(&self, id: &GoalId) -> Option<&SettledConflict> {
        let applied = self.applied.iter().find(|applied| applied.source == *id)?;
        self.resolutions
            .iter()
            .rfind(|settled| settled.source == *id && settled.after == applied.after)
    }

    /// Returns how often something was done, and this time.
    pub(super) fn ordinal(&self, stage: &str) -> u32 {
        self.counts
            .get(stage)
            .copied()
            .unwrap_or(0)
            .saturating_add(1)
    }

    /// Returns where a cause leads back to, as things are: a resolution needs a conflict that was
    /// resolved.
    pub(super) fn narrowest(&self, cause: RevisionCause, source: Option<&GoalId>) -> RevisionCause {
        match cause {
            RevisionCause::Resolution
                if source.is_none_or(|id| self.resolution_of(id).is_none()) =>
            {
                RevisionCause::Scope
            }
            cause => cause,
        }
    }
}
