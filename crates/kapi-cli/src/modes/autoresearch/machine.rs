//! Whether this machine can measure as a contract says: its processors, its counters, and the inputs that
//! no agent sees.
//!
//! Asked before anybody approves what could not be carried out. Knows no rule of a search.

use std::path::Path;

use kapi_check::perform::hidden;
use kapi_check::perform::prover::measure::kernel_counter;
use kapi_check::rules::measure::counter::Counter;
use kapi_core::hidden_checks::HiddenCheckSet;
use kapi_core::isolation::SandboxLevel;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_sandbox::benchmark;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::modes::ModeCommand;
use kapi_workflow::rules::modes::autoresearch::command::AutoresearchCommand;
use kapi_workflow::rules::modes::autoresearch::contract::Contract;

use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::modes::autoresearch::phrases;
use crate::workflow::located::LocatedWorkflow;

/// Takes over what is held back, and checks that the machine can measure in the search's isolation.
pub(super) fn ready(
    context: &Context,
    found: &LocatedWorkflow<'_>,
    contract: &Contract,
) -> Result<(), Error> {
    check(contract)?;
    let is_special = !contract.processors.is_empty() || kernel_counters(contract).next().is_some();
    if is_special && found.workflow.terms.sandbox == SandboxLevel::Podman {
        return Err(Error::new(
            Exit::Denied,
            "a container is not kept to processors, and what runs in it is not counted",
        )
        .with_hint("start the search with `--sandbox native`, or without both."));
    }
    if let Some(held_back) = &contract.held_back {
        let paths = context.location(&found.project, &found.key.id)?;
        hidden::keep(held_back, &paths.hidden).map_err(|failure| Error::world(&failure))?;
    }
    Ok(())
}

/// Refuses processors that are not there, and counters that this machine does not have.
pub(super) fn check(contract: &Contract) -> Result<(), Error> {
    if !contract.processors.is_empty() {
        let there = benchmark::processors().map_err(|error| {
            Error::new(
                Exit::Failed,
                format!("failed to find the processors: {error}"),
            )
        })?;
        let is_missing = |number: &&u32| !there.contains(number);
        if let Some(missing) = contract.processors.iter().find(is_missing) {
            let there: Vec<String> = there.iter().map(u32::to_string).collect();
            return Err(Error::new(
                Exit::Denied,
                format!("processor {missing} is not there to run the benchmark on"),
            )
            .with_hint(format!("this process may use {}.", there.join(", "))));
        }
    }
    for counter in kernel_counters(contract) {
        let Some(kernel) = kernel_counter(counter) else {
            continue;
        };
        benchmark::check_counter(kernel).map_err(|error| {
            let name = counter.name();
            let text = format!("{name} cannot be counted on this machine: {error}");
            Error::new(Exit::Denied, text).with_hint(advice(counter))
        })?;
    }
    Ok(())
}

/// Returns what is held back, which must not be among the files that the agent gets.
pub(super) fn held_back(context: &Context, dir: &Path) -> Result<HiddenCheckSet, Error> {
    let usage = |failure| Error {
        exit: Exit::Usage,
        ..Error::world(&failure)
    };
    let absolute = context.cwd.join(dir);
    let grants = context.grants(&Config::unconfigured());
    let survey = RepositorySurvey::of(&grants, &context.cwd).map_err(usage)?;
    let base = survey.base("HEAD").map_err(usage)?;
    let seen = survey.hidden_in_plain_sight(&base, &absolute);
    if let Some(path) = seen.map_err(usage)? {
        return Err(Error::usage(format!(
            "{} is in the repository, so the agent would see this held-back input",
            path.display()
        ))
        .with_hint("keep held-back inputs outside the files that git tracks."));
    }
    hidden::describe(&absolute).map_err(usage)
}

/// Puts inputs that no agent sees into the contract that waits for its approval.
pub(super) fn hold_back(
    context: &Context,
    found: &mut LocatedWorkflow<'_>,
    dir: &Path,
) -> Result<(), Error> {
    let search = phrases::of(&found.workflow).filter(|_| found.workflow.pending.is_some());
    let contract = search.and_then(|search| search.contract.clone());
    let Some(mut contract) = contract else {
        return Err(Error::new(
            Exit::Denied,
            "no contract waits for its approval, so no inputs can be held back",
        )
        .with_hint(
            "ask for another contract with --revise; when it is proposed, hold back its inputs.",
        ));
    };
    contract.held_back = Some(held_back(context, dir)?);
    let draft = AutoresearchCommand::Draft { contract };
    let command = WorkflowCommand::Mode(ModeCommand::Autoresearch(draft));
    found.submit(context, &command).map(drop)
}

fn kernel_counters(contract: &Contract) -> impl Iterator<Item = Counter> {
    let counters = contract.counters().into_iter();
    counters.filter(|counter| kernel_counter(*counter).is_some())
}

const fn advice(counter: Counter) -> &'static str {
    match counter {
        Counter::Instructions => {
            "virtual machines often have no such counter, and /proc/sys/kernel/perf_event_paranoid above \
             2 forbids it. Let the benchmark count them: `valgrind --tool=callgrind` prints what it collected \
             (Collected), which a line of benchmark.sh makes a METRIC."
        }
        Counter::CpuTime | Counter::PageFaults | Counter::WallTime => {
            "/proc/sys/kernel/perf_event_paranoid above 2 forbids it; its administrator can set 2."
        }
    }
}
