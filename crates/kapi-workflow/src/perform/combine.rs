//! Bringing the work of several together, step by step, by plumbing alone.
//!
//! Which source comes next, and what follows from a conflict, is not known here. What a history may lose is
//! kept under a ref of ours first.

pub mod fit;

mod conflict;
mod inspect;
mod regenerate;
mod trace;

use kapi_core::actor::Actor;
use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_core::usage::Usage;
use kapi_core::workflow_key::WorkflowKey;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_git::author::Author;
use kapi_git::combine::ResolvedMerge;
use kapi_git::id::{CommitId, RefPart};
use kapi_git::land::LandError;
use kapi_git::land::source::{ApplyMethod, SettlePlan, SourceConflict, SourceOutcome, SourcePlan};
use kapi_git::publish::PublishError;
use kapi_git::repository::range::CommitRange;
use kapi_goal::perform::real::RealWorld;
use kapi_machine::watch::EffectWatch;
use kapi_run::repository_session::RepositorySession;
use kapi_run::{failure, repository_session};

use crate::perform::combine::inspect::InspectionPlan;
use crate::perform::{EffectRefusal, WorkflowEnvironment, cancelled, clear, run_id, scratch};
use crate::record::run_name::effect_name;
use crate::record::workflows::Workflows;
use crate::rules::command::WorkflowCommand;
use crate::rules::effect::WorkflowEffect;
use crate::rules::effect::combine::{
    CombineReport, CombineStep, CombinedSource, ConflictedPath, MarkedWorkflow, MergeMethod,
    SourceApplication,
};
use crate::rules::outcome::WorkflowOutcome;

/// The most commits that one source may bring.
const COMMITS_MAX: u32 = 10_000;

/// Where a step is taken.
struct StepWorld<'a> {
    world: RealWorld<'a>,
    repo: RepositorySession,
    owner: RefPart,
    author: Author,
    scratch: std::path::PathBuf,
}

/// Takes one step.
pub(super) fn combine(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    step: &CombineStep,
    watch: &EffectWatch<'_>,
) -> Result<WorkflowOutcome, EffectRefusal> {
    let world = (location.world)(&effect.workflow)?;
    let repo = RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?;
    let at = StepWorld {
        owner: repository_session::ref_part(&world.location.ref_name)?,
        author: repository_session::person(&repo.repository, &world.grants),
        scratch: scratch(&world, effect)?,
        world,
        repo,
    };
    let report = match step {
        CombineStep::Inspect { sources, rules } => {
            inspect::inspect(location, &at, InspectionPlan { sources, rules })
        }
        CombineStep::Apply(asked) => apply(&at, asked),
        CombineStep::Regenerate(wanted) => {
            let run = run_id(effect);
            match regenerate::regenerate(&at, wanted, &run, watch) {
                Ok(None) => {
                    clear(&at.scratch);
                    return Ok(cancelled(Usage::default()));
                }
                Ok(Some(report)) => Ok(report),
                Err(refused) => Err(refused),
            }
        }
        CombineStep::Settle {
            application,
            resolution,
            rationale,
        } => settle(&at, application, resolution, rationale),
        CombineStep::Try {
            onto,
            sources,
            at_s,
        } => tried(&at, effect, onto, sources, *at_s),
        CombineStep::Trace { base, head, steps } => trace::trace(&at, base, head, steps),
        CombineStep::Mark { workflows } => mark(location, &effect.workflow, workflows),
    };
    clear(&at.scratch);
    Ok(WorkflowOutcome::Combined(Box::new(report?)))
}

impl StepWorld<'_> {
    fn keep(&self, name: &str, commit: &CommitId) -> Result<(), Failure> {
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let name = repository_session::ref_part(&name)?;
        let kept = self.repo.repository.hold_commit(&self.owner, &name, commit);
        kept.map_err(|error| failure::plain(&error))
    }

    fn plan<'a>(
        &'a self,
        asked: &'a SourceApplication,
        onto: &'a CommitId,
        range: &'a CommitRange,
    ) -> SourcePlan<'a> {
        SourcePlan {
            head: onto,
            source: range,
            method: method(asked.method),
            commits_max: COMMITS_MAX,
            message: &asked.message,
            author: &self.author,
            at_unix_seconds: asked.at_s,
            scratch: &self.scratch,
        }
    }

    /// Puts the workflow's branch and its worktree at a commit.
    fn put(&self, asked: &SourceApplication, to: &CommitId) -> Result<(), EffectRefusal> {
        let from = repository_session::commit_id(&asked.at)?;
        let location = &self.world.location;
        let workspace = self
            .repo
            .workspace(location, &asked.branch, &asked.first, &asked.at)?;
        let moved = self.repo.repository.publish_branch(&workspace, &from, to);
        moved.map_err(|error| branch_moved(&error))?;
        let restored = self.repo.repository.restore_workspace(&workspace, to);
        restored.map_err(|error| failure::plain(&error))?;
        Ok(())
    }
}

fn range(source: &CombinedSource) -> Result<CommitRange, Failure> {
    Ok(CommitRange {
        base: repository_session::commit_id(&source.base)?,
        commit: repository_session::commit_id(&source.commit)?,
    })
}

const fn method(method: MergeMethod) -> ApplyMethod {
    match method {
        MergeMethod::Merge => ApplyMethod::Merge,
        MergeMethod::Rebase => ApplyMethod::Rebase,
        MergeMethod::CherryPick => ApplyMethod::CherryPick,
    }
}

/// Puts a source on a commit, and the branch there.
fn apply(at: &StepWorld<'_>, asked: &SourceApplication) -> Result<CombineReport, EffectRefusal> {
    let (range, onto) = (
        range(&asked.source)?,
        repository_session::commit_id(&asked.onto)?,
    );
    let plan = at.plan(asked, &onto, &range);
    at.keep(&format!("source-{}", asked.source.id), &range.commit)?;
    let outcome = match at.repo.repository.apply_source(&plan) {
        Ok(outcome) => outcome,
        Err(error @ LandError::HasMerge { .. }) => {
            let why = format!("{} by {}: {error}", asked.source.id, asked.method.as_str());
            return Ok(CombineReport::MethodUnfit { why });
        }
        Err(error) => {
            return Err(EffectRefusal {
                may_pass: error.may_pass(),
                ..EffectRefusal::lasting_error(&error)
            });
        }
    };
    match outcome {
        SourceOutcome::Applied(applied) => there(at, asked, &applied.head, Vec::new()),
        SourceOutcome::Conflicted(conflict) => conflicted(at, asked, &plan, &conflict),
    }
}

fn conflicted(
    at: &StepWorld<'_>,
    asked: &SourceApplication,
    plan: &SourcePlan<'_>,
    found: &SourceConflict,
) -> Result<CombineReport, EffectRefusal> {
    let conflict::RuledConflict { paths, files } = conflict::ruled(at, found, &asked.rules)?;
    if asked.method != MergeMethod::Merge {
        let names: Vec<&str> = paths.iter().map(|it| it.path.as_str()).collect();
        let (id, by) = (&asked.source.id, asked.method.as_str());
        let names = names.join(", ");
        return Ok(CombineReport::MethodUnfit {
            why: format!("{id} conflicts by {by} in {names}; only by merge can that be resolved"),
        });
    }
    let settlement = SettlePlan {
        source: *plan,
        conflict: found,
        files: &files,
    };
    let is_settled = |it: &ConflictedPath| it.by_rule.is_some() && it.regenerate.is_none();
    if paths.iter().all(is_settled) {
        let head = at.repo.repository.settle(&settlement);
        let head = head.map_err(|error| conflict::lasting(&error))?;
        return there(at, asked, &head, paths);
    }
    let commit = at.repo.repository.conflict_commit(&settlement);
    let commit = commit.map_err(|error| conflict::lasting(&error))?;
    at.keep(&format!("conflict-{}", asked.source.id), &commit)?;
    at.put(asked, &commit)?;
    Ok(CombineReport::Conflicted {
        at: commit.to_string(),
        paths,
    })
}

/// Keeps a result, and puts the branch there.
fn there(
    at: &StepWorld<'_>,
    asked: &SourceApplication,
    head: &CommitId,
    by_rule: Vec<ConflictedPath>,
) -> Result<CombineReport, EffectRefusal> {
    let tree = at.repo.repository.tree_of(head);
    let tree = tree.map_err(|error| failure::plain(&error))?;
    at.keep(&format!("with-{}", asked.source.id), head)?;
    at.put(asked, head)?;
    Ok(CombineReport::Applied {
        head: head.to_string(),
        tree: tree.to_string(),
        by_rule,
    })
}

/// Makes a resolution the merge that it was meant to be, remembers it, and puts the branch there.
fn settle(
    at: &StepWorld<'_>,
    asked: &SourceApplication,
    resolution: &str,
    rationale: &str,
) -> Result<CombineReport, EffectRefusal> {
    let files = repository_session::commit_id(resolution)?;
    let (onto, range) = (
        repository_session::commit_id(&asked.onto)?,
        range(&asked.source)?,
    );
    let left = conflict::markers_left(at, [&onto, &range.commit], &files)?;
    if !left.is_empty() {
        return Ok(CombineReport::MarkersLeft { paths: left });
    }
    let merge = at.repo.repository.resolved_merge(&ResolvedMerge {
        head: &onto,
        source: &range.commit,
        files: &files,
        message: &asked.message,
        author: &at.author,
        at_unix_seconds: asked.at_s,
    });
    let merge = merge.map_err(|error| failure::plain(&error))?;
    let plan = at.plan(asked, &onto, &range);
    conflict::remember(at, &plan, &files, rationale)?;
    there(at, asked, &merge, Vec::new())
}

/// Puts sources together without moving any branch.
fn tried(
    at: &StepWorld<'_>,
    effect: &WorkflowEffect,
    onto: &str,
    sources: &[CombinedSource],
    at_s: i64,
) -> Result<CombineReport, EffectRefusal> {
    let mut head = repository_session::commit_id(onto)?;
    for source in sources {
        let range = range(source)?;
        let plan = SourcePlan {
            head: &head,
            source: &range,
            method: ApplyMethod::Merge,
            commits_max: COMMITS_MAX,
            message: "A part of an integration, to see whether it holds\n",
            author: &at.author,
            at_unix_seconds: at_s,
            scratch: &at.scratch,
        };
        let outcome = at.repo.repository.apply_source(&plan);
        head = match outcome.map_err(|error| EffectRefusal {
            may_pass: error.may_pass(),
            ..EffectRefusal::lasting_error(&error)
        })? {
            SourceOutcome::Applied(applied) => applied.head,
            SourceOutcome::Conflicted(_) => return Ok(CombineReport::Tried { commit: None }),
        };
    }
    at.keep(&format!("try-{}", effect_name(&effect.id)), &head)?;
    Ok(CombineReport::Tried {
        commit: Some(head.to_string()),
    })
}

/// Records in each workflow that its work was taken over; one that knows is left alone.
fn mark(
    location: &WorkflowEnvironment<'_>,
    by: &GoalId,
    workflows: &[MarkedWorkflow],
) -> Result<CombineReport, EffectRefusal> {
    let records = Workflows::of(location.project);
    for marked in workflows {
        let key = WorkflowKey {
            mode: marked.mode,
            id: marked.id.clone(),
        };
        let found = records.workflow(&key);
        let found = found.map_err(|error| EffectRefusal::lasting_error(&error))?;
        if found.status == WorkflowStatus::Integrated {
            continue;
        }
        let command = WorkflowCommand::MarkIntegrated { by: by.clone() };
        let submitted = records.submit_workflow(&key, &Actor::Engine, &command);
        submitted.map_err(|error| EffectRefusal::lasting_error(&error))?;
    }
    Ok(CombineReport::Marked)
}

/// A branch that somebody moved is theirs to put back; everything else may pass.
fn branch_moved(error: &PublishError) -> EffectRefusal {
    let hint = match error {
        PublishError::BranchMoved {
            branch, expected, ..
        } => Some(format!(
            "keep what was put there under another name, put the branch back with `git update-ref \
             refs/heads/{branch} {expected}`, then resume."
        )),
        _ => None,
    };
    let mut refused = EffectRefusal::lasting_error(error);
    refused.may_pass = hint.is_none();
    refused.failure.hint = hint.or(refused.failure.hint);
    refused
}
