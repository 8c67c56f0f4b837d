//! Measuring a commit of the workflow's branch: the prover's checkouts, seals and sandboxes, with the
//! scripts that were approved.
//!
//! What a measurement means is not known here.

use kapi_check::perform::dependencies::Dependencies;
use kapi_check::perform::prover::{Prover, ProverSite, UnseenChecks};
use kapi_check::rules::measure::Measurement;
use kapi_check::rules::proof::downloads::Downloads;
use kapi_core::isolation::NetworkMode;
use kapi_core::usage::Usage;
use kapi_machine::watch::EffectWatch;
use kapi_run::repository_session::RepositorySession;
use kapi_run::run_dir::RunDir;
use kapi_run::shell::Listener;

use crate::perform::{
    EffectRefusal, WorkflowEnvironment, cancelled, clear, run_id, scratch, verify,
};
use crate::rules::effect::WorkflowEffect;
use crate::rules::outcome::WorkflowOutcome;

/// Measures.
pub(super) fn measure(
    location: &WorkflowEnvironment<'_>,
    effect: &WorkflowEffect,
    wanted: &Measurement,
    watch: &EffectWatch<'_>,
) -> Result<WorkflowOutcome, EffectRefusal> {
    let branch = verify::branch(location, &effect.workflow)?;
    let world = (location.world)(&effect.workflow)?;
    let repo = RepositorySession::open(&world.grants, &world.location.project, watch.cancel)?;
    let scratch = scratch(&world, effect)?;
    let name = run_id(effect);
    let run_dir = RunDir::open(&world.location.runs, &name)?;
    let held_back = wanted.held_back.as_ref();
    let dependencies = Dependencies::of_goal(&world.grants, &repo.repository, &scratch)?;
    let prover = Prover {
        grants: &world.grants,
        repo: &repo,
        site: ProverSite {
            project: &world.location.project,
            stores: &world.location.stores,
            scratch: &scratch,
            hidden: held_back.map(|approved| UnseenChecks::Kept {
                approved,
                at: &world.location.hidden,
            }),
            name: &name,
            dependencies: &dependencies,
            level: wanted.sandbox,
            network: NetworkMode::None,
            downloads: &Downloads::within(NetworkMode::None),
        },
        listener: Listener {
            watch,
            run_dir: &run_dir,
        },
    };
    let measured = prover.measure(&branch, wanted);
    clear(&scratch);
    let cancelled = || cancelled(Usage::default());
    Ok(measured?.map_or_else(cancelled, |measured| {
        WorkflowOutcome::Measured(Box::new(measured))
    }))
}
