//! `kapi prove`: the same proof for anybody's change, before it is merged or in CI.
//!
//! No goal, no agent and no state: the change is a commit, a branch or a range.

mod junit;
pub(crate) mod markdown;
mod view;

use std::path::{Path, PathBuf};

use kapi_check::perform::checks::{CheckObserver, CheckRunSettings, Discovery};
use kapi_check::perform::prove::{ChangeProof, ProofRequest};
use kapi_check::perform::{checks, prove};
use kapi_check::rules::checks::{CheckDisposition, CheckVerb, PlannedCheck, stray};
use kapi_check::rules::proof::conclusion::ProofStatus;
use kapi_check::rules::proof::downloads::Downloads;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_gateway::egress::rule::EgressRule;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_machine::watch::{Activity, EffectWatch, unlimited};
use kapi_run::host_grants::HostGrants;
use kapi_spend::rules::day::Day;
use kapi_store::layout::{HomeLayout, project_key};
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::Clock as _;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;

use crate::config::Config;
use crate::config::grant::{CHECK_NETWORK_DEFAULT, LEVEL_DEFAULT};
use crate::context::Context;
use crate::contract::flags::{CheckFlags, ISOLATION, Network, PROOF, Sandbox, shell_command};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::profile::flags;
use crate::subdirectory::{Subdirectory, run_in};
use crate::ui::Ui;
use crate::{amount, command_line, container, driving, help};

/// Milliseconds one verify command may take when nothing else was said.
const TIMEOUT_MS: u64 = 30 * 60 * 1_000;

/// Headings of the options, besides those that `kapi run` has too.
const JUDGE: &str = "Judge";
const REPORT: &str = "Reports";

/// Options of `kapi prove`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Commit, branch or range 'A..B' to verify
    #[arg(value_name = "CHANGE", default_value = "HEAD")]
    change: String,
    /// Revision to compare with [default: merge base with the default branch]
    #[arg(long, value_name = "REVISION")]
    base: Option<String>,
    /// Command that must pass (repeatable) [default: the project's own tests]
    #[arg(help_heading = PROOF, long, value_name = "COMMAND", value_parser = shell_command)]
    verify: Vec<String>,
    /// Files that must not differ from the base (repeatable)
    #[arg(help_heading = PROOF, long, value_name = "GLOB")]
    protect: Vec<String>,
    /// Directory of extra checks, copied over the change for a second run
    #[arg(help_heading = PROOF, long, value_name = "DIR")]
    hidden: Option<PathBuf>,
    #[command(flatten)]
    checks: CheckFlags,
    /// Also ask a judge: an agent or provider/model
    #[arg(help_heading = JUDGE, long, value_name = "JUDGE")]
    judge: Option<String>,
    /// Purpose of the change, for the judge [default: the commit message]
    #[arg(help_heading = JUDGE, long, value_name = "TEXT")]
    intent: Option<String>,
    #[arg(help_heading = PROOF, help = help::with_default("Time limit of each command (90s, 15m)", help::time(TIMEOUT_MS)), long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    timeout: Option<u64>,
    #[arg(help_heading = ISOLATION, help = help::with_default("Isolation level", LEVEL_DEFAULT), long, value_name = "LEVEL", value_enum)]
    sandbox: Option<Sandbox>,
    #[arg(help_heading = ISOLATION, help = help::with_default("Network access of commands", CHECK_NETWORK_DEFAULT), long, value_name = "MODE", value_enum)]
    network: Option<Network>,
    /// Allow dependencies to be installed from this host, once (repeatable)
    #[arg(help_heading = ISOLATION, long, value_name = "HOST", value_parser = registry)]
    registry: Vec<String>,
    /// Also write the result as Markdown, for a pull request
    #[arg(help_heading = REPORT, long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Also write the result as JUnit XML
    #[arg(help_heading = REPORT, long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl Args {
    /// Returns the revisions that are named, both ends of a range among them.
    fn revisions(&self) -> impl Iterator<Item = &str> {
        let ends = self.change.split("..").filter(|end| !end.is_empty());
        ends.chain(self.base.as_deref())
    }
}

/// Commands that prove work on a project, and what they leave out.
#[derive(Debug)]
pub(crate) struct ProposedCommands {
    /// Shell lines, run at the top of the project.
    pub(crate) commands: Vec<String>,
    /// Projects and parts of projects that no command looks at, as sentences.
    pub(crate) notes: Vec<String>,
}

impl ProposedCommands {
    /// Returns the checks that can be run.
    pub(crate) fn of(discovery: &Discovery, planned: &[PlannedCheck]) -> Self {
        let mut notes = discovery.notes.clone();
        notes.extend(stray::uncovered(&discovery.roots, planned));
        Self {
            commands: planned.iter().filter_map(command).collect(),
            notes,
        }
    }

    /// Tells a person what is left out.
    pub(crate) fn say_notes(&self, ui: Ui) {
        for note in &self.notes {
            ui.say(&format!("note: {note}"));
        }
    }
}

/// Proves the change and says what it came to.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let Some(proof) = proof_of(context, args)? else {
        context.ui.say("Interrupted; nothing was written.");
        return Ok(Exit::Interrupted);
    };
    view::show(context.ui, &proof);
    write(context, args.markdown.as_deref(), || markdown::text(&proof))?;
    write(context, args.junit.as_deref(), || junit::text(&proof))?;
    Ok(exit_of(&proof))
}

/// Returns the commands by which the project of the working directory tests itself.
pub(crate) fn own_tests(context: &Context, root: &Path) -> Result<Vec<String>, Error> {
    let config = context.config(Some(root))?;
    let level = config.level.unwrap_or(LEVEL_DEFAULT);
    let network = config.network(Some(CHECK_NETWORK_DEFAULT), level)?;
    Ok(proposed(context, root, level, network)?.commands)
}

/// Proves the change; nothing where it was called off.
fn proof_of(context: &Context, args: &Args) -> Result<Option<ChangeProof>, Error> {
    let survey = RepositorySurvey::of(&context.grants(&Config::unconfigured()), &context.cwd);
    let survey = survey.map_err(|failure| Error::world(&failure))?;
    for revision in args.revisions() {
        survey
            .base(revision)
            .map_err(|failure| Error::world(&failure))?;
    }
    let root = survey.root();
    let config = context.config(Some(&root))?;
    let level = args.sandbox.map(flags::level).or(config.level);
    let level = level.unwrap_or(LEVEL_DEFAULT);
    let grants = context.grants(&config);
    container::check(&grants, level)?;
    let network = match (args.network, level) {
        (Some(network), _) => Some(network.into()),
        (None, SandboxLevel::None) => None,
        (None, SandboxLevel::Native | SandboxLevel::Podman) => Some(CHECK_NETWORK_DEFAULT),
    };
    let network = config.network(network, level)?;
    let interrupts = driving::interrupts()?;
    let cancel = interrupts.cancel();
    let ui = context.ui;
    let here = Subdirectory::of(&context.cwd, &root);
    let chosen = if args.verify.is_empty() {
        let proposed = proposed(context, &root, level, network)?;
        for command in &proposed.commands {
            ui.say(&format!(
                "verify: {command}  (the project's own; override it with `--verify`)"
            ));
        }
        proposed
    } else {
        ProposedCommands {
            commands: here.commands(&args.verify),
            notes: Vec::new(),
        }
    };
    let state = HomeLayout::new(&context.home);
    let mut request = ProofRequest {
        target: args.change.clone(),
        base: args.base.clone(),
        verify: chosen.commands,
        not_covered: chosen.notes,
        protect: here.patterns(&args.protect),
        hidden: args.hidden.as_ref().map(|dir| context.cwd.join(dir)),
        policy: args.checks.policy(),
        timeout_ms: args.timeout.unwrap_or(TIMEOUT_MS),
        level,
        network,
        downloads: Downloads {
            network: downloads(args, network),
            registries: args.registry.clone(),
        },
        judge: args.judge.clone(),
        intent: args.intent.clone(),
        scratch: state.state_dir().join("proofs").join(project_key(&root)),
        stores: state.stores_dir(),
        today: Day::of_ms(context.clock.now_ms()),
        project: root,
    };
    prove_or_ask(ui, &grants, &mut request, &cancel)
}

/// Returns what can be reached where dependencies are installed: registries, unless a person said that
/// nothing can.
const fn downloads(args: &Args, network: NetworkMode) -> NetworkMode {
    match network {
        NetworkMode::None if args.network.is_none() => NetworkMode::Filtered,
        NetworkMode::None => NetworkMode::None,
        NetworkMode::Filtered => NetworkMode::Filtered,
        NetworkMode::Open => NetworkMode::Open,
    }
}

/// Proves the change, and once more with each registry that the person allows meanwhile.
fn prove_or_ask(
    ui: Ui,
    grants: &HostGrants,
    request: &mut ProofRequest,
    cancel: &Cancel,
) -> Result<Option<ChangeProof>, Error> {
    let notice = |activity: Activity| match activity {
        Activity::Verifying { command } => ui.live(&format!("running {command}")),
        Activity::Note { text } => {
            ui.clear_live();
            ui.say(&format!("note: {text}"));
        }
        _ => {}
    };
    let watch = EffectWatch {
        cancel,
        notice: &notice,
        room: &unlimited,
    };
    loop {
        let proved = prove::prove(grants, request, &watch);
        ui.clear_live();
        let proof = proved.map_err(|failure| Error::world(&failure))?;
        match proof.as_ref().and_then(|proof| allowed_now(ui, proof)) {
            Some(hosts) => request.downloads.registries.extend(hosts),
            None => return Ok(proof),
        }
    }
}

/// Asks a person at the keyboard for hosts that were refused while dependencies were installed.
fn allowed_now(ui: Ui, proof: &ChangeProof) -> Option<Vec<String>> {
    let lacking = proof.lacking().filter(|it| !it.refused.is_empty())?;
    if !ui.is_at_keyboard() {
        return None;
    }
    ui.say(&lacking.why);
    let hosts = lacking.refused.join(", ");
    let answer = ui.confirm(&format!("Install from {hosts} this time?"))?;
    answer.then(|| lacking.refused.clone())
}

/// Reads a host that may be reached, with or without a port.
fn registry(text: &str) -> Result<String, String> {
    let rule = EgressRule::parse(text).map_err(|error| error.problem.to_string());
    rule.map(|_| text.to_owned())
}

fn exit_of(proof: &ChangeProof) -> Exit {
    match proof.conclusion.state {
        ProofStatus::Proved => Exit::Success,
        ProofStatus::Unverified | ProofStatus::Refused => Exit::NotDone,
        ProofStatus::CannotRun => Exit::Failed,
    }
}

fn write(context: &Context, to: Option<&Path>, text: impl FnOnce() -> String) -> Result<(), Error> {
    let Some(to) = to else { return Ok(()) };
    let written = RealDisk.write(&context.cwd.join(to), text().as_bytes());
    written.map_err(|error| Error::failed(&error))
}

/// Returns the commands by which the project tests itself, and what they leave out.
fn proposed(
    context: &Context,
    root: &Path,
    level: SandboxLevel,
    network: NetworkMode,
) -> Result<ProposedCommands, Error> {
    let discovery = checks::discover(root).map_err(|failure| Error::world(&failure))?;
    let config = context.config(Some(root))?;
    let setting = CheckRunSettings {
        scratch: HomeLayout::new(&context.home)
            .state_dir()
            .join("checks")
            .join(project_key(root)),
        level,
        network,
        jobs: 1,
        only: [CheckVerb::Test].into(),
        timeout_ms_min: 0,
    };
    let interrupts = driving::interrupts()?;
    let cancel = interrupts.cancel();
    let reported = CheckObserver {
        cancel: &cancel,
        notice: &|_| {},
    };
    let planned = checks::prepare(&context.grants(&config), &discovery, &setting, &reported);
    let planned = planned.map_err(|failure| Error::world(&failure))?;
    let proposed = ProposedCommands::of(&discovery, &planned);
    if proposed.commands.is_empty() {
        return Err(
            Error::usage("Kapi found no test command for this project").with_hint(format!(
                "name a command that proves the change: `{}`; `kapi check --list` shows what \
                 Kapi found.",
                command_line::with(&["--verify", "<command>"])
            )),
        );
    }
    Ok(proposed)
}

/// Returns the line that runs a check from the top of the project; `None` of one that is skipped.
fn command(planned: &PlannedCheck) -> Option<String> {
    if planned.disposition != CheckDisposition::Run {
        return None;
    }
    let check = &planned.check;
    Some(run_in(&check.root, &check.command))
}
