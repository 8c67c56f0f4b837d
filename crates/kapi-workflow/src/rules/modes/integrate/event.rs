//! The facts of an integration, as they stand in its log.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::id::GoalId;
use serde::{Deserialize, Serialize};

use crate::rules::effect::combine::{ConflictedPath, Coverage, Foresight, MergeMethod};
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::integrate::answer::{Resolution, RevisionCause};
use crate::rules::modes::integrate::conflict::Regeneration;
use crate::rules::modes::integrate::plan::MergePlan;
use crate::rules::modes::integrate::state::{Eviction, IntegrationReview, Statement};

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum IntegrateEvent {
    /// The sources were compared with one another and with the integration branch.
    SourcesInspected {
        /// What can be foreseen.
        foresight: Box<Foresight>,
    },
    /// Something is not as it was when the integration began.
    SourcesUnfit {
        /// What.
        reasons: Vec<String>,
    },
    /// A person said what a source was meant to do.
    Clarified {
        /// The source.
        source: GoalId,
        /// In their words.
        text: String,
    },
    /// A plan is proposed.
    PlanDrafted {
        /// By which agent; `None` where it follows from what was foreseen.
        by: Option<ReviewerIdentity>,
        /// The plan.
        plan: Box<MergePlan>,
    },
    /// A person lets everything begin anew, in another cycle.
    PlanReopened {
        /// What has to be different in the plan; `None` where only the world is.
        reason: Option<String>,
    },
    /// The workflow's branch and its worktree are there.
    BranchPrepared {
        /// The branch.
        branch: String,
        /// The worktree.
        worktree: String,
        /// The commit it begins with.
        base: String,
    },
    /// The checks were run on what the result begins with.
    BaselineRecorded {
        /// What they showed.
        report: Box<VerifyReport>,
    },
    /// A source is on the branch.
    SourceApplied {
        /// The source.
        source: GoalId,
        /// How it came.
        method: MergeMethod,
        /// The commit before.
        before: String,
        /// The commit after.
        after: String,
        /// That commit's tree.
        tree: String,
        /// The paths that did not fit and were settled by rules alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by_rule: Vec<String>,
    },
    /// A source does not fit.
    SourceConflicted {
        /// The source.
        source: GoalId,
        /// The commit that it does not fit on.
        before: String,
        /// The commit with the conflict in its files.
        at: String,
        /// What does not fit.
        paths: Vec<ConflictedPath>,
    },
    /// A resolution is proposed.
    ResolutionProposed {
        /// The source.
        source: GoalId,
        /// By whom.
        by: ReviewerIdentity,
        /// What they say of it.
        said: Resolution,
        /// The commit with the files.
        commit: String,
    },
    /// Tools wrote files of a conflict anew, or one of them failed.
    FilesRegenerated {
        /// What they did.
        regeneration: Regeneration,
    },
    /// The worktree is put back to where a conflict left it.
    WorktreeRestored {},
    /// A conflict is resolved, and its source is on the branch.
    ConflictResolved {
        /// The source.
        source: GoalId,
        /// How it came.
        method: MergeMethod,
        /// The commit after.
        after: String,
        /// That commit's tree.
        tree: String,
    },
    /// The result was verified.
    HeadVerified {
        /// What the checks showed.
        report: Box<VerifyReport>,
        /// Whether it holds, what fails without any source apart.
        holds: bool,
    },
    /// Sources were put on the integration branch's commit without the others.
    TrialMade {
        /// Which.
        sources: Vec<GoalId>,
        /// The commit; `None` where they do not fit.
        commit: Option<String>,
    },
    /// Sources without the others were verified.
    TrialVerified {
        /// Which.
        sources: Vec<GoalId>,
        /// What the checks showed.
        report: Box<VerifyReport>,
    },
    /// It was found who makes the head fail.
    CulpritsFound {
        /// The source, or the two that fail together only, the later one last.
        sources: Vec<GoalId>,
        /// The command and how it ended.
        evidence: String,
    },
    /// A source is left out.
    SourceEvicted {
        /// Which, and why.
        eviction: Eviction,
    },
    /// The result was traced to its sources.
    CoverageCounted {
        /// What was found.
        coverage: Box<Coverage>,
    },
    /// The result was reviewed.
    Reviewed {
        /// The review.
        review: IntegrationReview,
    },
    /// Somebody spoke for or against the result, or decided.
    ConsensusSaid {
        /// What.
        statement: Box<Statement>,
    },
    /// Something is done again.
    Returned {
        /// Where it comes from, which is where it is mended.
        cause: RevisionCause,
        /// Whose change it is about.
        source: Option<GoalId>,
        /// What is wrong.
        why: String,
        /// Commands that have to hold besides.
        checks: Vec<String>,
    },
    /// A resolution is made again, because the checks fail with it.
    ResolutionDiscarded {
        /// Whose conflict it was.
        source: GoalId,
        /// What failed.
        why: String,
    },
    /// Only a person's word begins another cycle.
    Stopped {
        /// Why.
        reason: String,
    },
    /// An agent's answer was not what was asked for.
    AnswerRefused {
        /// Who was asked, in which role.
        role: String,
        /// What was wrong.
        why: String,
    },
    /// Somebody else moved the integration branch.
    TargetMoved {
        /// Where it should have been.
        expected: String,
        /// Where it is.
        found: Option<String>,
    },
    /// The integration branch is at the result.
    TargetAdvanced {
        /// Where it was.
        from: String,
        /// Where it is.
        to: String,
        /// The checkout of it that was brought along.
        brought: Option<String>,
    },
    /// Every workflow whose work was taken over knows.
    SourcesMarked {},
}
