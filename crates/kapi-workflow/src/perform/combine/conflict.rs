//! What is done about a conflict before anybody is asked, and what is kept of it afterwards: rules that need
//! no judgement, resolutions that are remembered, and markers that were left.
//!
//! A remembered resolution is told and never taken.

use std::path::Path;

use kapi_check::perform::ecosystems;
use kapi_core::failure::Failure;
use kapi_git::changed_file::FileMode;
use kapi_git::id::CommitId;
use kapi_git::land::merge::{ConflictPath, ConflictSide};
use kapi_git::land::source::{
    SettlePlan, SettledContent, SettledFile, SourceConflict, SourceOutcome, SourcePlan,
};
use kapi_git::rescue::Signature;
use kapi_git::resolutions::Resolution;
use kapi_run::failure;

use super::StepWorld;
use crate::perform::EffectRefusal;
use crate::rules::batch::mechanical::{ConflictRule, ConflictWay, defaults, rule_for};
use crate::rules::effect::combine::{ConflictedPath, RememberedChoice};

/// The most bytes of a file whose resolution is remembered.
const REMEMBERED_BYTES_MAX: usize = 1 << 20;
/// The most bytes of a remembered file that are told.
const TOLD_BYTES_MAX: usize = 16 * 1024;

fn rules() -> Result<Vec<ConflictRule>, Failure> {
    Ok(defaults(ecosystems::table()?))
}

/// Returns the paths of a conflict, with the rule of each and how the same contents met before.
pub(super) fn paths(
    at: &StepWorld<'_>,
    conflict: &SourceConflict,
) -> Result<Vec<ConflictedPath>, Failure> {
    let rules = rules()?;
    let object = |side: &Option<ConflictSide>| side.as_ref().map(|side| side.object.clone());
    let mut paths = Vec::new();
    for found in &conflict.conflict.paths {
        let path = found.path.display().to_string();
        let rule = rule_for(&path, &[], &rules).map(|rule| match &rule.way {
            ConflictWay::Union => "take the entries of both sides".to_owned(),
            ConflictWay::Regenerate { run } => format!(
                "take the branch's version and run `{run}` in the file's directory, which brings it into \
                 step"
            ),
        });
        paths.push(ConflictedPath {
            base: object(&found.base),
            ours: object(&found.ours),
            theirs: object(&found.theirs),
            by_rule: rule,
            remembered: remembered(at, found)?,
            path,
        });
    }
    Ok(paths)
}

fn remembered(
    at: &StepWorld<'_>,
    conflict: &ConflictPath,
) -> Result<Option<RememberedChoice>, Failure> {
    let found = at.repo.repository.remembered_resolution(conflict);
    let found = found.map_err(|error| failure::plain(&error))?;
    Ok(found.map(|found| {
        let text = found.content.as_ref().map_or_else(String::new, |content| {
            let shown = content
                .bytes
                .get(..TOLD_BYTES_MAX)
                .unwrap_or(&content.bytes);
            String::from_utf8_lossy(shown).into_owned()
        });
        RememberedChoice {
            commit: found.commit.to_string(),
            rationale: found.rationale.trim().to_owned(),
            text,
        }
    }))
}

/// Returns the commit of a conflict all of whose paths take the entries of both sides; nothing where any
/// needs more.
pub(super) fn settled_by_rule(
    at: &StepWorld<'_>,
    plan: &SourcePlan<'_>,
    conflict: &SourceConflict,
) -> Result<Option<CommitId>, EffectRefusal> {
    let rules = rules()?;
    let mut files = Vec::new();
    for found in &conflict.conflict.paths {
        let path = found.path.display().to_string();
        let is_union =
            rule_for(&path, &[], &rules).is_some_and(|rule| rule.way == ConflictWay::Union);
        if !is_union {
            return Ok(None);
        }
        let scratch = at.scratch.join("union");
        let union = at.repo.repository.union_of(found, &scratch);
        let union = union.map_err(|error| EffectRefusal {
            may_pass: error.may_pass(),
            ..EffectRefusal::lasting_error(&error)
        })?;
        let (Some(bytes), Some(ours)) = (union, &found.ours) else {
            return Ok(None);
        };
        files.push(SettledFile {
            path: found.path.clone(),
            content: Some(SettledContent {
                mode: ours.mode,
                bytes,
            }),
        });
    }
    let settled = at.repo.repository.settle(&SettlePlan {
        source: *plan,
        conflict,
        files: &files,
    });
    settled.map(Some).map_err(|error| EffectRefusal {
        may_pass: error.may_pass(),
        ..EffectRefusal::lasting_error(&error)
    })
}

/// Returns the files in which a conflict marker is left that neither side has.
pub(super) fn markers_left(
    at: &StepWorld<'_>,
    sides: [&CommitId; 2],
    files: &CommitId,
) -> Result<Vec<String>, Failure> {
    let left = at
        .repo
        .repository
        .leftover_markers(&sides.map(Clone::clone), files);
    let left = left.map_err(|error| failure::plain(&error))?;
    let mut paths: Vec<String> = left
        .iter()
        .map(|it| it.path.display().to_string())
        .collect();
    paths.dedup();
    Ok(paths)
}

/// Keeps how each path of a conflict was resolved, under what met there.
pub(super) fn remember(
    at: &StepWorld<'_>,
    plan: &SourcePlan<'_>,
    files: &CommitId,
    rationale: &str,
) -> Result<(), EffectRefusal> {
    let repository = &at.repo.repository;
    let lasting = |error: &kapi_git::land::LandError| EffectRefusal {
        may_pass: error.may_pass(),
        ..EffectRefusal::lasting_error(error)
    };
    let SourceOutcome::Conflicted(conflict) = repository
        .apply_source(plan)
        .map_err(|error| lasting(&error))?
    else {
        return Ok(());
    };
    for found in &conflict.conflict.paths {
        let content = content(at, files, &found.path)?;
        let resolution = Resolution {
            conflict: found,
            content: content.as_ref(),
            rationale,
        };
        let signature = Signature {
            author: plan.author,
            at_unix_seconds: plan.at_unix_seconds,
        };
        let scratch = at.scratch.join("remember");
        let kept = repository.remember_resolution(&resolution, signature, &scratch);
        kept.map_err(|error| lasting(&error))?;
    }
    Ok(())
}

fn content(
    at: &StepWorld<'_>,
    commit: &CommitId,
    path: &Path,
) -> Result<Option<SettledContent>, Failure> {
    let found = at
        .repo
        .repository
        .file_at(commit, path, REMEMBERED_BYTES_MAX);
    let found = found.map_err(|error| failure::plain(&error))?;
    Ok(found.map(|bytes| SettledContent {
        mode: FileMode::Plain,
        bytes,
    }))
}
