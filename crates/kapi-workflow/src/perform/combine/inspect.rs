//! Looking at sources before anything is decided: whether they are as they were, what was begun on what,
//! which pairs do not fit, which make the same change, and the order that follows.
//!
//! Only reads; what the trial merges write is thrown away.

use std::collections::BTreeSet;

use kapi_core::failure::Failure;
use kapi_core::id::GoalId;
use kapi_core::integration_branch::IntegrationBranch;
use kapi_git::id::CommitId;
use kapi_run::{failure, repository_session};

use super::conflict::default_rules;
use super::fit::{OwnedSource, found};
use super::{StepWorld, range};
use crate::perform::{EffectRefusal, WorkflowEnvironment};
use crate::rules::batch::SourceDependency;
use crate::rules::batch::mechanical::{ConflictRule, rule_for};
use crate::rules::batch::order::{ForeseenClash, OrderReason, SourceGraph, order};
use crate::rules::effect::combine::{
    CombineReport, CombinedSource, Foresight, OrderedSource, PairClash, RuledPath, SameChange,
};

/// What is looked at.
#[derive(Clone, Copy)]
pub(super) struct InspectionPlan<'a> {
    /// The sources.
    pub(super) sources: &'a [CombinedSource],
    /// A person's own rules for conflicts.
    pub(super) rules: &'a [ConflictRule],
}

pub(super) fn inspect(
    location: &WorkflowEnvironment<'_>,
    at: &StepWorld<'_>,
    plan: InspectionPlan<'_>,
) -> Result<CombineReport, EffectRefusal> {
    let sources = plan.sources;
    let repository = &at.repo.repository;
    let dev = IntegrationBranch::DEV;
    let target = repository.branch_tip(dev.as_str());
    let Some(target) = target.map_err(|error| failure::plain(&error))? else {
        let reason =
            format!("branch {dev} is gone: make it again with `git branch {dev} <commit>`");
        return Ok(CombineReport::Unfit {
            reasons: vec![reason],
        });
    };
    let owners: Vec<String> = sources
        .iter()
        .map(|source| Ok((location.world)(&source.id)?.location.ref_name))
        .collect::<Result<_, Failure>>()?;
    let owned: Vec<OwnedSource<'_>> = sources
        .iter()
        .zip(&owners)
        .map(|(source, owner)| OwnedSource { source, owner })
        .collect();
    let reasons = found(&at.repo, &target, &owned)?;
    if !reasons.is_empty() {
        return Ok(CombineReport::Unfit { reasons });
    }
    foreseen(at, &target, plan)
}

fn foreseen(
    at: &StepWorld<'_>,
    target: &CommitId,
    plan: InspectionPlan<'_>,
) -> Result<CombineReport, EffectRefusal> {
    let sources = plan.sources;
    let repository = &at.repo.repository;
    let commits: Vec<CommitId> = sources
        .iter()
        .map(|source| repository_session::commit_id(&source.commit))
        .collect::<Result<_, Failure>>()?;
    let mut dependencies = Vec::new();
    for (source, commit) in commits.iter().enumerate() {
        for (on, other) in commits.iter().enumerate().filter(|(on, _)| *on != source) {
            let builds = repository.is_ancestor(other, commit);
            if builds.map_err(|error| failure::plain(&error))? {
                dependencies.push(SourceDependency { source, on });
            }
        }
    }
    let mut all = vec![target.clone()];
    all.extend(commits);
    let clashes = repository.clashes(&all, &at.scratch.join("pairs"));
    let clashes = clashes.map_err(|error| EffectRefusal {
        may_pass: error.may_pass(),
        ..EffectRefusal::lasting_error(&error)
    })?;
    // The target stands first, so a source's place is one less.
    let among: Vec<ForeseenClash> = clashes
        .iter()
        .filter_map(|clash| {
            Some(ForeseenClash {
                one: clash.one.checked_sub(1)?,
                other: clash.other.checked_sub(1)?,
            })
        })
        .collect();
    let placed = order(&SourceGraph {
        n_sources: sources.len(),
        dependencies: &dependencies,
        clashes: &among,
    });
    let placed = placed.map_err(|error| EffectRefusal::lasting_error(&error))?;
    let name = |place: usize| sources.get(place).map(|source| source.id.clone());
    let names = |places: &BTreeSet<usize>| {
        let ids = places.iter().filter_map(|place| name(*place));
        ids.collect::<Vec<GoalId>>()
    };
    let ordered = placed.iter().filter_map(|placed| {
        let own = dependencies.iter().filter(|it| it.source == placed.source);
        Some(OrderedSource {
            source: name(placed.source)?,
            after: own.filter_map(|it| name(it.on)).collect(),
            why: reason(&placed.reason, &names),
        })
    });
    let pairs = clashes.iter().filter_map(|clash| {
        let place = |at: usize| at.checked_sub(1).and_then(name);
        Some(PairClash {
            one: place(clash.one),
            other: place(clash.other)?,
            paths: clash
                .paths
                .iter()
                .map(|it| it.display().to_string())
                .collect(),
        })
    });
    let pairs: Vec<PairClash> = pairs.collect();
    Ok(CombineReport::Inspected(Box::new(Foresight {
        target: target.to_string(),
        order: ordered.collect(),
        ruled: ruled(&pairs, plan.rules)?,
        clashes: pairs,
        duplicates: duplicates(at, sources)?,
    })))
}

/// Returns which of the paths that do not fit a rule settles.
fn ruled(clashes: &[PairClash], declared: &[ConflictRule]) -> Result<Vec<RuledPath>, Failure> {
    let defaults = default_rules()?;
    let paths: BTreeSet<&String> = clashes.iter().flat_map(|it| &it.paths).collect();
    let ruled = paths.into_iter().filter_map(|path| {
        let rule = rule_for(path, declared, &defaults)?.clone();
        let path = path.clone();
        Some(RuledPath { path, rule })
    });
    Ok(ruled.collect())
}

fn reason(reason: &OrderReason, names: &dyn Fn(&BTreeSet<usize>) -> Vec<GoalId>) -> String {
    let list = |places| {
        let ids: Vec<String> = names(places).iter().map(GoalId::to_string).collect();
        ids.join(", ")
    };
    match reason {
        OrderReason::Only => "nothing else is left".to_owned(),
        OrderReason::BuildsOn(places) => format!("it was begun on the work of {}", list(places)),
        OrderReason::FewestConflicts { with } if with.is_empty() => {
            "it conflicts with nothing that is still to come".to_owned()
        }
        OrderReason::FewestConflicts { with } => format!(
            "of what is still to come it conflicts with {} only",
            list(with)
        ),
        OrderReason::NamedFirst => {
            "no order of those left is better, and it was named first".to_owned()
        }
    }
}

fn duplicates(
    at: &StepWorld<'_>,
    sources: &[CombinedSource],
) -> Result<Vec<SameChange>, EffectRefusal> {
    let ranges = sources.iter().map(range).collect::<Result<Vec<_>, _>>()?;
    let same = at.repo.repository.same_changes(&ranges);
    let same = same.map_err(|error| failure::plain(&error))?;
    let mut duplicates = Vec::new();
    for change in &same {
        let Some((first, others)) = change.made_by.split_first() else {
            continue;
        };
        for other in others.iter().filter(|other| other.range != first.range) {
            let ids = [sources.get(first.range), sources.get(other.range)];
            if let [Some(one), Some(two)] = ids {
                duplicates.push(SameChange {
                    one: one.id.clone(),
                    other: two.id.clone(),
                    commit: first.commit.to_string(),
                });
            }
        }
    }
    Ok(duplicates)
}
