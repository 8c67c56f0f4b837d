//! Measuring a commit of the workflow's branch: the prover's checkouts, seals and sandboxes, with the
//! scripts that were approved.
//!
//! What a measurement means is not known here.

use kapi_check::perform::dependencies::Dependencies;
use kapi_check::perform::prover::{Prover, ProverSite};
use kapi_check::rules::measure::Measurement;
use kapi_check::rules::proof::downloads::Downloads;
use kapi_core::isolation::NetworkMode;
use kapi_core::usage::Usage;
use kapi_machine::watch::Watch;
use kapi_run::run_dir::RunDir;
use kapi_run::shell::Listener;
use kapi_run::workshop::Workshop;

use crate::perform::{Refused, WorkflowPlace, cancelled, clear, run_id, scratch, verify};
use crate::rules::effect::Effect;
use crate::rules::outcome::Outcome;

/// Measures.
pub(super) fn measure(
    place: &WorkflowPlace<'_>,
    effect: &Effect,
    wanted: &Measurement,
    watch: &Watch<'_>,
) -> Result<Outcome, Refused> {
    let branch = verify::branch(place, &effect.workflow)?;
    let world = (place.world)(&effect.workflow)?;
    let workshop = Workshop::open(&world.book, &world.place.project, watch.cancel)?;
    let scratch = scratch(&world, effect)?;
    let name = run_id(effect);
    let run_dir = RunDir::open(&world.place.runs, &name)?;
    let dependencies = Dependencies::of_goal(&world.book, &workshop.repository, &scratch)?;
    let prover = Prover {
        book: &world.book,
        workshop: &workshop,
        site: ProverSite {
            project: &world.place.project,
            stores: &world.place.stores,
            scratch: &scratch,
            hidden: None,
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
    Ok(measured?.map_or_else(cancelled, |measured| Outcome::Measured(Box::new(measured))))
}
