//! `kapi check`: the project's own checks, each in a sandbox, on the working tree as it is.
//!
//! What is checked and how is found out below; here a person says which part, and is told.

mod view;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread;

use kapi_check::perform::checks;
use kapi_check::perform::checks::{CheckEvent, CheckObserver, CheckRunSettings, Discovery};
use kapi_check::rules::checks::report::ChecksReport;
use kapi_check::rules::checks::{CheckVerb, PlannedCheck};
use kapi_core::isolation::SandboxLevel;
use kapi_run::host_grants::HostGrants;
use kapi_store::layout::{HomeLayout, project_key};

use crate::config::grant::{CHECK_NETWORK_DEFAULT, LEVEL_DEFAULT};
use crate::context::Context;
use crate::contract::flags::{Network, Sandbox};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::profile::flags;
use crate::{amount, container, driving, help};

/// How many checks are under way at once when the system does not say how many processors it has.
const JOBS_UNKNOWN: usize = 2;
/// How many may be under way at most.
const JOBS_MAX: usize = 64;

/// The files that most projects have one of.
const USUAL_MARKS: [&str; 6] = [
    "Cargo.toml",
    "Makefile",
    "go.mod",
    "package.json",
    "pom.xml",
    "pyproject.toml",
];

/// Options of `kapi check`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Args {
    /// Run only these checks: typecheck, lint, format, compile, test, build
    #[arg(long, value_name = "VERB,…", value_delimiter = ',', value_parser = verb)]
    only: Vec<CheckVerb>,
    /// List what would run or be skipped, without running it
    #[arg(long)]
    list: bool,
    /// Number of parallel checks [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = jobs)]
    jobs: Option<usize>,
    /// Directory in which to look for the project [default: current directory]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Raise each check's time limit to at least this (90s, 15m)
    #[arg(long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    timeout: Option<u64>,
    #[arg(help = help::with_default("Isolation level; with 'none', checks write into the project", LEVEL_DEFAULT), long, value_name = "LEVEL", value_enum)]
    sandbox: Option<Sandbox>,
    #[arg(help = help::with_default("Network access", CHECK_NETWORK_DEFAULT), long, value_name = "MODE", value_enum)]
    network: Option<Network>,
}

fn verb(text: &str) -> Result<CheckVerb, String> {
    let known = || CheckVerb::ALL.map(CheckVerb::name).join(", ");
    CheckVerb::parse(text).ok_or_else(|| format!("it is one of: {}", known()))
}

fn jobs(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number
        .filter(|jobs| (1..=JOBS_MAX).contains(jobs))
        .ok_or_else(|| format!("it is a number from 1 to {JOBS_MAX}"))
}

/// Finds the checks and runs them.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let directory = match &args.path {
        Some(path) => context.cwd.join(path),
        None => context.cwd.clone(),
    };
    if !directory.is_dir() {
        let text = format!("there is no directory {}", directory.display());
        return Err(Error::new(Exit::NotFound, text));
    }
    let discovery = checks::discover(&directory).map_err(|failure| Error::world(&failure))?;
    if discovery.roots.is_empty() {
        let text = format!("Kapi found no project in {}", directory.display());
        let marks = checks::marks().map_err(|failure| Error::world(&failure))?;
        let hint = format!(
            "name the directory of a project with `--path`: one that has {} or another of the {} files \
             that Kapi knows projects by.",
            USUAL_MARKS.join(", "),
            marks.len()
        );
        return Err(Error::new(Exit::NotFound, text).with_hint(hint));
    }
    let (grants, setting) = setting(context, args, &discovery)?;
    for note in &discovery.notes {
        context.ui.say(&format!("note: {note}"));
    }
    if setting.level == SandboxLevel::None {
        let text = "note: without isolation, the checks can write into the project.";
        context.ui.say(text);
    }
    let interrupts = driving::interrupts()?;
    let cancel = interrupts.cancel();
    let ui = context.ui;
    let notice = |event: CheckEvent<'_>| match event {
        CheckEvent::Began(check) => ui.live(&format!("{} {}", check.verb, check.command)),
        CheckEvent::Ended(_) => {}
        CheckEvent::Note(text) => {
            ui.clear_live();
            ui.say(&format!("note: {text}"));
        }
    };
    let reported = CheckObserver {
        cancel: &cancel,
        notice: &notice,
    };
    let planned = checks::prepare(&grants, &discovery, &setting, &reported);
    let planned = planned.map_err(|failure| Error::world(&failure))?;
    if interrupts.is_raised() {
        return Ok(interrupted(context));
    }
    if args.list {
        view::list(ui, &discovery, &planned);
        return Ok(Exit::Success);
    }
    let report = checks::run(&grants, &discovery, &planned, &setting, &reported);
    ui.clear_live();
    let report = report.map_err(|failure| Error::world(&failure))?;
    view::report(ui, &discovery, &report);
    Ok(if interrupts.is_raised() {
        interrupted(context)
    } else {
        exit_of(&report, &planned)
    })
}

/// Resolves what the options and the configuration say.
pub(crate) fn setting(
    context: &Context,
    args: &Args,
    discovery: &Discovery,
) -> Result<(HostGrants, CheckRunSettings), Error> {
    let config = context.config(context.project_root().ok().as_deref())?;
    let level = args.sandbox.map(flags::level).or(config.level);
    let level = level.unwrap_or(LEVEL_DEFAULT);
    let network = match (args.network, level) {
        (Some(network), _) => Some(network.into()),
        (None, SandboxLevel::None) => None,
        (None, SandboxLevel::Native | SandboxLevel::Podman) => Some(CHECK_NETWORK_DEFAULT),
    };
    let grants = context.grants(&config);
    container::check(&grants, level)?;
    let state = HomeLayout::new(&context.home);
    let processors = thread::available_parallelism();
    Ok((
        grants,
        CheckRunSettings {
            scratch: state
                .state_dir()
                .join("checks")
                .join(project_key(&discovery.top)),
            level,
            network: config.network(network, level)?,
            jobs: args
                .jobs
                .unwrap_or_else(|| processors.map_or(JOBS_UNKNOWN, usize::from)),
            only: args.only.iter().copied().collect::<BTreeSet<CheckVerb>>(),
            timeout_ms_min: args.timeout.unwrap_or_default(),
        },
    ))
}

fn interrupted(context: &Context) -> Exit {
    context
        .ui
        .say("Interrupted; running checks were stopped, and nothing was written.");
    Exit::Interrupted
}

/// A skipped check stops nobody, even if all are.
fn exit_of(report: &ChecksReport, planned: &[PlannedCheck]) -> Exit {
    debug_assert_eq!(report.checks.len(), planned.len());
    if report.counts().failed > 0 {
        Exit::NotDone
    } else {
        Exit::Success
    }
}
