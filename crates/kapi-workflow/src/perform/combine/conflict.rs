//! What is done about a conflict before anybody is asked, and what is kept of it afterwards: rules that need
//! no judgement, resolutions that are remembered, and markers that were left.
//!
//! A remembered resolution is told and never taken.

use std::path::Path;

use kapi_check::perform::ecosystems;
use kapi_core::failure::Failure;
use kapi_git::changed_file::FileMode;
use kapi_git::id::CommitId;
use kapi_git::land::LandError;
use kapi_git::land::merge::{ConflictPath, ConflictSide};
use kapi_git::land::source::{
    SettledContent, SettledFile, SourceConflict, SourceOutcome, SourcePlan,
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

/// Returns the rules that hold where a person declares none.
pub(super) fn default_rules() -> Result<Vec<ConflictRule>, Failure> {
    Ok(defaults(ecosystems::table()?))
}

/// Returns why a conflict cannot be settled, and whether that may pass.
pub(super) fn lasting(error: &LandError) -> EffectRefusal {
    EffectRefusal {
        may_pass: error.may_pass(),
        ..EffectRefusal::lasting_error(error)
    }
}

/// A conflict as rules leave it.
pub(super) struct RuledConflict {
    /// Its paths, with the rule of each and how the same contents met before.
    pub(super) paths: Vec<ConflictedPath>,
    /// Those that rules settle; of files that tools write anew, what the tools begin with.
    pub(super) files: Vec<SettledFile>,
}

/// Settles what rules settle.
pub(super) fn ruled(
    at: &StepWorld<'_>,
    conflict: &SourceConflict,
    declared: &[ConflictRule],
) -> Result<RuledConflict, EffectRefusal> {
    let defaults = default_rules()?;
    let object = |side: &Option<ConflictSide>| side.as_ref().map(|side| side.object.clone());
    let (mut paths, mut files) = (Vec::new(), Vec::new());
    for found in &conflict.conflict.paths {
        let path = found.path.display().to_string();
        let rule = rule_for(&path, declared, &defaults);
        let settled = match rule {
            Some(rule) => by_way(at, found, &rule.way)?,
            None => None,
        };
        let rule = rule.filter(|_| settled.is_some());
        let regenerate = rule.and_then(|rule| match &rule.way {
            ConflictWay::Regenerate { run } => Some(run.clone()),
            ConflictWay::Union | ConflictWay::Ours | ConflictWay::Theirs => None,
        });
        files.extend(settled);
        paths.push(ConflictedPath {
            base: object(&found.base),
            ours: object(&found.ours),
            theirs: object(&found.theirs),
            by_rule: rule.map(|rule| rule.way.words()),
            regenerate,
            remembered: remembered(at, found)?,
            path,
        });
    }
    Ok(RuledConflict { paths, files })
}

/// Returns a file as a rule settles it; nothing where it cannot.
fn by_way(
    at: &StepWorld<'_>,
    conflict: &ConflictPath,
    way: &ConflictWay,
) -> Result<Option<SettledFile>, EffectRefusal> {
    match way {
        ConflictWay::Union => {
            let scratch = at.scratch.join("union");
            let union = at.repo.repository.union_of(conflict, &scratch);
            let union = union.map_err(|error| lasting(&error))?;
            let both = union.zip(conflict.ours.as_ref());
            Ok(both.map(|(bytes, ours)| SettledFile {
                path: conflict.path.clone(),
                content: Some(SettledContent {
                    mode: ours.mode,
                    bytes,
                }),
            }))
        }
        ConflictWay::Ours => version(at, conflict, conflict.ours.as_ref()),
        ConflictWay::Theirs => version(at, conflict, conflict.theirs.as_ref()),
        // What a side has no longer is no file that a tool brings into step.
        ConflictWay::Regenerate { .. } if conflict.theirs.is_none() => Ok(None),
        ConflictWay::Regenerate { .. } => {
            let version = version(at, conflict, conflict.ours.as_ref())?;
            Ok(version.filter(|file| file.content.is_some()))
        }
    }
}

/// Returns a file as one side has it, which may be that it is gone; nothing where it is no plain file of
/// this name there.
fn version(
    at: &StepWorld<'_>,
    conflict: &ConflictPath,
    side: Option<&ConflictSide>,
) -> Result<Option<SettledFile>, EffectRefusal> {
    let content = match side {
        None => None,
        Some(side) => {
            let is_file = matches!(side.mode, FileMode::Plain | FileMode::Executable);
            if !is_file || side.path != conflict.path {
                return Ok(None);
            }
            let bytes = at.repo.repository.blob(&side.object);
            let bytes = bytes.map_err(|error| failure::plain(&error))?;
            let mode = side.mode;
            Some(SettledContent { mode, bytes })
        }
    };
    Ok(Some(SettledFile {
        path: conflict.path.clone(),
        content,
    }))
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
