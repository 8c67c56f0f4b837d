//! Which commands prove work in this project: what it defines itself, run on its last commit by the
//! prover.
//!
//! Only what passes is proposed; what does not is told with how it ended.

use std::path::Path;

use kapi_check::perform::checks::CheckObserver;
use kapi_check::perform::prove::ProofRequest;
use kapi_check::perform::{checks, prove};
use kapi_check::rules::checks::{CheckVerb, PlannedCheck};
use kapi_check::rules::proof::downloads::Downloads;
use kapi_check::rules::proof::obstacle::obstacle_of;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_check::rules::proof::verify_report;
use kapi_core::isolation::NetworkMode;
use kapi_machine::watch::{Activity, EffectWatch, unlimited};
use kapi_spend::rules::day::Day;
use kapi_store::layout::{HomeLayout, project_key};
use kapi_sys::clock::Clock as _;
use serde::Serialize;

use super::ci;
use crate::commands::check;
use crate::commands::prove::ProposedCommands;
use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::{amount, driving};

/// Milliseconds that one command may take here.
const TIMEOUT_MS: u64 = 5 * 60 * 1_000;
/// What mends a command that runs no test.
const NO_TEST: &str = "it proves nothing until there is a test that it runs.";
/// How many commands are tried.
const COMMANDS_MAX: usize = 8;
/// The checks that are proposed where the project has them.
const PROPOSED: &[CheckVerb] = &[
    CheckVerb::Test,
    CheckVerb::Typecheck,
    CheckVerb::Lint,
    CheckVerb::Format,
];

/// A command that was tried.
#[derive(Debug, Clone, Serialize)]
pub(super) struct TriedCommand {
    pub(super) command: String,
    /// Whether it passed, and so can prove something.
    pub(super) passed: bool,
    /// How it ended.
    pub(super) detail: String,
    /// What mends it, where it cannot do its work here.
    pub(super) hint: Option<String>,
    /// It ended well without a test.
    #[serde(skip)]
    ran_no_test: bool,
}

impl TriedCommand {
    pub(super) fn words(&self) -> String {
        let mark = match (self.passed, self.ran_no_test) {
            (true, _) => "ok    ",
            (false, true) => "EMPTY ",
            (false, false) => "FAILED",
        };
        format!("{mark} {}  ({})", self.command, self.detail)
    }
}

/// Returns the commands that passed.
pub(super) fn passing(tried: &[TriedCommand]) -> Vec<String> {
    let passed = tried.iter().filter(|one| one.passed);
    passed.map(|one| one.command.clone()).collect()
}

/// Finds the project's commands and runs each on its last commit.
pub(super) fn tried(
    context: &Context,
    config: &Config,
    root: &Path,
) -> Result<Vec<TriedCommand>, Error> {
    let found = found(context, root)?;
    found.say_notes(context.ui);
    if found.commands.is_empty() {
        return Ok(Vec::new());
    }
    let commands = found.commands;
    let interrupts = driving::interrupts()?;
    let cancel = interrupts.cancel();
    let ui = context.ui;
    let notice = |activity: Activity| {
        if let Activity::Verifying { command } = activity {
            ui.live(&format!("running {command}"));
        }
    };
    let watch = EffectWatch {
        cancel: &cancel,
        notice: &notice,
        room: &unlimited,
    };
    let request = request(context, config, root, commands)?;
    let ran = prove::run_on(&context.grants(config), &request, &watch);
    ui.clear_live();
    let Some(report) = ran.map_err(|failure| Error::world(&failure))? else {
        return Err(Error::new(
            Exit::Interrupted,
            "interrupted; nothing was written",
        ));
    };
    let tried = report.runs.iter().map(|run| {
        let took = amount::duration(run.duration_ms);
        let last = run
            .output_tail
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty());
        let ran_no_test = run.passed() && run.ran_no_test();
        let obstacle = || obstacle_of(run).map(|it| format!("{}: {}", it.reason, it.remedy));
        TriedCommand {
            command: run.command.clone(),
            passed: run.passed() && !ran_no_test,
            detail: match (run.passed(), last) {
                (true, _) if ran_no_test => "it ran no test".to_owned(),
                (true, _) | (false, None) => took,
                (false, Some(line)) => {
                    format!("{}: {}", verify_report::run_end(run), line.trim())
                }
            },
            hint: if ran_no_test {
                Some(NO_TEST.to_owned())
            } else {
                obstacle()
            },
            ran_no_test,
        }
    });
    Ok(tried.collect())
}

fn request(
    context: &Context,
    config: &Config,
    root: &Path,
    commands: Vec<String>,
) -> Result<ProofRequest, Error> {
    let discovery = checks::discover(root).map_err(|failure| Error::world(&failure))?;
    let (_, setting) = check::setting(context, &check::Args::default(), &discovery)?;
    let state = HomeLayout::new(&context.home);
    Ok(ProofRequest {
        project: root.to_path_buf(),
        target: "HEAD".to_owned(),
        base: None,
        verify: commands,
        protect: Vec::new(),
        hidden: None,
        policy: CheckPolicy::default(),
        timeout_ms: TIMEOUT_MS,
        level: setting.level,
        network: config.network(Some(setting.network), setting.level)?,
        downloads: Downloads {
            network: NetworkMode::None,
            registries: Vec::new(),
        },
        judge: None,
        intent: None,
        not_covered: Vec::new(),
        scratch: state.state_dir().join("proofs").join(project_key(root)),
        stores: state.stores_dir(),
        today: Day::of_ms(context.clock.now_ms()),
    })
}

/// Returns the commands that the project defines: its checks, then what its CI runs besides.
fn found(context: &Context, root: &Path) -> Result<ProposedCommands, Error> {
    let mut discovery = checks::discover(root).map_err(|failure| Error::world(&failure))?;
    let (grants, setting) = check::setting(context, &check::Args::default(), &discovery)?;
    let interrupts = driving::interrupts()?;
    let cancel = interrupts.cancel();
    let reported = CheckObserver {
        cancel: &cancel,
        notice: &|_| {},
    };
    let planned = checks::prepare(&grants, &discovery, &setting, &reported);
    let planned = planned.map_err(|failure| Error::world(&failure))?;
    let of_ci = ci::commands(root);
    if !of_ci.is_empty() {
        // They run at the top, so that is not left out.
        discovery.roots.retain(|project| !project.path.is_empty());
    }
    let of_verbs = |verbs: &[CheckVerb]| -> Vec<PlannedCheck> {
        let of_verb = |verb| planned.iter().filter(move |one| one.check.verb == verb);
        verbs.iter().copied().flat_map(of_verb).cloned().collect()
    };
    let mut found = ProposedCommands::of(&discovery, &of_verbs(PROPOSED));
    if found.commands.is_empty() {
        let builds = ProposedCommands::of(&discovery, &of_verbs(&[CheckVerb::Build]));
        found = if builds.commands.is_empty() {
            found
        } else {
            builds
        };
    }
    for command in of_ci {
        let is_known = |known: &String| without_quiet(known) == without_quiet(&command);
        if !found.commands.iter().any(is_known) {
            found.commands.push(command);
        }
    }
    if found.commands.len() > COMMANDS_MAX {
        let n_commands = found.commands.len();
        found.notes.push(format!(
            "Only the first {COMMANDS_MAX} of {n_commands} commands are tried."
        ));
        found.commands.truncate(COMMANDS_MAX);
    }
    Ok(found)
}

/// Returns the words of a line but for those that only make it say less.
fn without_quiet(line: &str) -> Vec<&str> {
    let words = line.split_whitespace();
    words
        .filter(|word| !matches!(*word, "--silent" | "--quiet" | "-q" | "-s"))
        .collect()
}
