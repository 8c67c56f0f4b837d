//! Having tools write files anew on a commit: the prover's checkout and sandboxes, and a commit of what they
//! wrote.
//!
//! Only the named files are taken over, whatever else a tool leaves. Which tool writes which file is not
//! known here.

use std::path::PathBuf;

use kapi_check::perform::dependencies::Dependencies;
use kapi_check::perform::prover::regenerate::{GeneratedContent, GeneratedFile, RegenerationPlan};
use kapi_check::perform::prover::{Prover, ProverSite, WorkToProve};
use kapi_check::rules::proof::downloads::Downloads;
use kapi_core::isolation::NetworkMode;
use kapi_git::changed_file::FileMode;
use kapi_git::land::source::{SettledContent, SettledFile};
use kapi_git::repository::range::CommitRange;
use kapi_machine::watch::EffectWatch;
use kapi_run::repository_session;
use kapi_run::run_dir::RunDir;
use kapi_run::shell::Listener;

use super::{StepWorld, conflict, range};
use crate::perform::EffectRefusal;
use crate::rules::effect::combine::{CombineReport, FileRegeneration, RegenerationRun};

/// Has the tools write the files; nothing where it was called off.
pub(super) fn regenerate(
    at: &StepWorld<'_>,
    wanted: &FileRegeneration,
    run: &str,
    watch: &EffectWatch<'_>,
) -> Result<Option<CombineReport>, EffectRefusal> {
    let location = &at.world.location;
    let repository = &at.repo.repository;
    let commit = repository_session::commit_id(&wanted.commit)?;
    let run_dir = RunDir::open(&location.runs, run)?;
    let dependencies = Dependencies::of_goal(&at.world.grants, repository, &at.scratch)?;
    let prover = Prover {
        grants: &at.world.grants,
        repo: &at.repo,
        site: ProverSite {
            project: &location.project,
            stores: &location.stores,
            scratch: &at.scratch,
            hidden: None,
            name: run,
            dependencies: &dependencies,
            level: wanted.sandbox,
            network: NetworkMode::None,
            downloads: &Downloads::within(wanted.network),
        },
        listener: Listener {
            watch,
            run_dir: &run_dir,
        },
    };
    let only = CommitRange::at(&commit);
    let work = WorkToProve::of(repository, &wanted.application.branch, only, &[])?;
    let files: Vec<GeneratedFile> = wanted
        .files
        .iter()
        .map(|it| GeneratedFile {
            path: PathBuf::from(&it.path),
            line: it.line.clone(),
        })
        .collect();
    let plan = RegenerationPlan {
        files: &files,
        timeout_ms: wanted.timeout_ms,
    };
    let Some(made) = prover.regenerate(&work, plan)? else {
        return Ok(None);
    };
    let runs = files.iter().zip(&made).map(|(file, made)| RegenerationRun {
        path: file.path.display().to_string(),
        run: made.run.clone(),
    });
    let runs: Vec<RegenerationRun> = runs.collect();
    let Some(settled) = settled(&files, &made) else {
        return Ok(Some(CombineReport::Regenerated { commit: None, runs }));
    };
    let (range, onto) = (
        range(&wanted.application.source)?,
        repository_session::commit_id(&wanted.application.onto)?,
    );
    let plan = at.plan(&wanted.application, &onto, &range);
    let with = repository.commit_with_files(&plan, &commit, &settled);
    let with = with.map_err(|error| conflict::lasting(&error))?;
    at.keep(
        &format!("regenerated-{}", wanted.application.source.id),
        &with,
    )?;
    Ok(Some(CombineReport::Regenerated {
        commit: Some(with.to_string()),
        runs,
    }))
}

/// Returns what the tools wrote; nothing where one of them failed.
fn settled(files: &[GeneratedFile], made: &[GeneratedContent]) -> Option<Vec<SettledFile>> {
    let settled = files.iter().enumerate().map(|(n, file)| {
        let bytes = made.get(n)?.bytes.clone()?;
        let mode = FileMode::Plain;
        Some(SettledFile {
            path: file.path.clone(),
            content: Some(SettledContent { mode, bytes }),
        })
    });
    settled.collect()
}
