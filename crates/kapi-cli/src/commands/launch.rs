//! `kapi launch`: one agent, once, in a workspace of its own; its exit code is passed on.
//!
//! Resolves what was asked for, hands it over, and shows what came of it.

pub(crate) mod view;
mod words;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use kapi_launch::context::{LaunchHandlers, never_stopped};
use kapi_launch::paths::SandboxId;
use kapi_launch::plan::{BranchPlan, Conduct, LaunchPlan, ModeChoice, Push};
use kapi_launch::result::LaunchResult;
use kapi_launch::{booked, preview};
use kapi_machine::watch::{Activity, unlimited};
use kapi_run::asking::check_agent;
use kapi_run::host_grants::HostGrants;
use kapi_run::spending::usage_meter::UsageLimits;
use kapi_status::file::timestamp;
use kapi_status::rules::mapping::Mapping;
use kapi_store::layout::project_key;
use kapi_sys::clock::Clock as _;

use crate::config::deliver::DeliverArgs;
use crate::config::notify::NotifyArgs;
use crate::context::Context;
use crate::delivering::others::{self, DeliverySite};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::live_view::facts::launch;
use crate::live_view::open_view::ViewSource;
use crate::live_view::state::News;
use crate::profile::flags::ProfileFlags;
use crate::profile::launch::{LaunchProfile, resolve};
use crate::profile::message::Values;
use crate::progress::news;
use crate::subject::launches::{directory, sandboxes};
use crate::ui::Format;
use crate::{amount, container, delivery, driving, help, live_view, notification};

/// The longest an agent may take when nothing else was said.
const DEADLINE_MS: u64 = 24 * 60 * 60 * 1000;
/// What a commit of an interactive launch is said to be when no task was given.
const INTERACTIVE: &str = "interactive work";
/// Bytes of a task that is read from a file.
const SPEC_BYTES_MAX: u64 = 1 << 20;

/// Options of `kapi launch`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Sandbox id: 1 to 64 letters, digits, '-' or '_'
    #[arg(required_unless_present = "explain")]
    id: Option<String>,
    /// Project directory
    #[arg(required_unless_present = "explain")]
    project: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) flags: ProfileFlags,
    /// The task
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// Read the task from this file
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Revision a new branch starts from [default: HEAD]
    #[arg(long, value_name = "REVISION", requires = "branch")]
    base_branch: Option<String>,
    /// Merge this revision into the branch first; the agent resolves conflicts
    #[arg(
        long,
        value_name = "REVISION",
        requires = "branch",
        conflicts_with = "keep_commits"
    )]
    merge: Option<String>,
    /// Name of the remote branch [default: same as --branch]
    #[arg(long, value_name = "NAME", requires = "branch")]
    remote_branch: Option<String>,
    /// Push even if the agent fails or is stopped
    #[arg(long, requires = "branch", conflicts_with = "no_push")]
    push_failed: bool,
    /// Token limit of the launch (500k, 2M)
    #[arg(long, value_name = "N", value_parser = amount::parse_count)]
    tokens: Option<u64>,
    /// Cost limit in US dollars; models of unknown price are refused
    #[arg(long, value_name = "USD", value_parser = amount::parse_usd_micros)]
    usd: Option<u64>,
    #[arg(help = help::with_default("Time limit of the agent (90s, 15m, 2h)", help::time(DEADLINE_MS)), long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    timeout: Option<u64>,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
    /// Show the effective settings and where each comes from, without starting anything
    #[arg(long)]
    pub(crate) explain: bool,
    #[command(flatten)]
    notify: NotifyArgs,
}

impl Args {
    /// Returns the project that is explained, where one is named: a single name is the project's.
    pub(crate) fn explained(&self) -> Option<PathBuf> {
        self.project
            .clone()
            .or_else(|| self.id.as_ref().map(PathBuf::from))
    }

    /// Returns the sandbox's id, as it was typed.
    fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }
}

/// Launches an agent.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("launch an agent")?;
    let project = directory(context, args.project.as_deref().unwrap_or(Path::new(".")))?;
    let profile = resolve(context, &project, &args.flags)?;
    for note in &profile.notes {
        context.ui.say(&format!("note: {note}"));
    }
    let plan = plan(context, args, project, &profile)?;
    let grants = grants(context, &profile)?;
    check_agent(&grants, &plan.agent.to_string(), plan.level)
        .map_err(|failure| Error::world(&failure))?;
    container::check(&grants, plan.level)?;
    let config = context.config(Some(&plan.project))?;
    let deliver = DeliverArgs {
        pr: args.flags.pr,
        pr_base: args.flags.pr_base.clone(),
        remote: plan.branch.as_ref().map(|branch| branch.remote.clone()),
        ..DeliverArgs::default()
    };
    let context = &context.with_notify(&args.notify).with_deliver(&deliver);
    delivery::check_flags(context, &config, &plan.project, &deliver)?;
    if args.dry_run {
        let preview = preview::preview(&grants, &plan).map_err(|error| Error::launch(&error))?;
        view::preview(context.ui, &plan, &preview);
        return Ok(Exit::Success);
    }
    let mapping = profile.mapping()?;
    let (launched, notes) = perform(context, &grants, &plan, &mapping)?;
    view::launched(context.ui, &plan, &launched, &notes);
    let site = DeliverySite {
        context,
        config: &config,
        root: &plan.project,
    };
    let delivered = others::of_launch(site, &plan, &launched);
    notification::of_launch(context, &config, &plan, &launched);
    delivered?;
    Ok(exit_of(&launched))
}

/// Runs the launch, with what happens shown.
fn perform(
    context: &Context,
    grants: &HostGrants,
    plan: &LaunchPlan,
    mapping: &Mapping,
) -> Result<(LaunchResult, Vec<String>), Error> {
    let interrupts = driving::interrupts()?;
    let notes = Mutex::new(Vec::new());
    let facts = launch::of_plan(plan);
    let notice = |activity: Activity| match news(&activity) {
        Some(news) => live_view::tell(&facts.id, news),
        None => {
            if let Activity::Note { text } = activity {
                context.ui.say(&format!("note: {text}"));
                let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
                notes.push(text);
            }
        }
    };
    let stage = LaunchHandlers {
        room: &unlimited,
        stopped: &never_stopped,
        clock: &context.clock,
        cancel: &interrupts.cancel(),
        notice: &notice,
        mapping,
    };
    let config = context.config(Some(&plan.project))?;
    let spending = context.spending(&plan.project, &config)?;
    let launch = || booked::launch(grants, &spending, plan, &stage);
    let source = ViewSource {
        subjects: &|| vec![facts.clone()],
        overview: None,
    };
    let launched = match plan.conduct {
        // The terminal is the agent's.
        Conduct::Interactive => launch(),
        Conduct::Headless => live_view::during(context, source, &interrupts, || {
            let phase = "working".to_owned();
            live_view::tell(&facts.id, News::Began { phase });
            launch()
        }),
    };
    let launched = launched.map_err(|error| Error::launch(&error))?;
    Ok((
        launched,
        notes.into_inner().unwrap_or_else(PoisonError::into_inner),
    ))
}

/// Returns what runs may use, as the profile has it.
fn grants(context: &Context, profile: &LaunchProfile) -> Result<HostGrants, Error> {
    let config = context.config(None)?;
    let mut grants = context.grants(&config);
    grants.grant = context.with_registries(profile.grant.clone());
    Ok(grants)
}

fn plan(
    context: &Context,
    args: &Args,
    project: PathBuf,
    profile: &LaunchProfile,
) -> Result<LaunchPlan, Error> {
    let id = SandboxId::parse(args.id()).map_err(|error| Error::launch(&error))?;
    let key = project_key(&project);
    let command = words::words(args, &project, &context.cwd);
    let conduct = if profile.is_interactive {
        Conduct::Interactive
    } else {
        Conduct::Headless
    };
    let prompt = prompt(context, args, conduct)?;
    let branch = args.flags.branch.as_ref().map(|name| BranchPlan {
        name: name.clone(),
        base: args.base_branch.clone(),
        remote: profile.remote.value.clone(),
        remote_name: args.remote_branch.clone().unwrap_or_else(|| name.clone()),
        push: match (profile.push.value, args.push_failed) {
            (true, false) => Push::Yes,
            (true, true) => Push::Always,
            (false, _) => Push::No,
        },
        merge: args.merge.clone(),
        keep_commits: profile.keep_commits.value && args.merge.is_none(),
    });
    if args.flags.push && branch.is_none() {
        return Err(Error::usage("there is no branch to push").with_hint("add `--branch <name>`."));
    }
    let values = Values {
        task: if prompt.trim().is_empty() {
            INTERACTIVE
        } else {
            &prompt
        },
        agent: profile.agent.value.name(),
        agent_id: id.as_str(),
        branch: args.flags.branch.as_deref().unwrap_or_default(),
        timestamp: &timestamp(context.clock.now_ms()),
    };
    Ok(LaunchPlan {
        location: sandboxes(context).location(&key, &id),
        project_name: project
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        project,
        commit_message: profile.commit_message(&values),
        agent: profile.agent.value.clone(),
        settings: profile.settings_for(&prompt),
        prompt,
        branch,
        mode: match (args.flags.worktree_mode, args.flags.overlay_mode) {
            (true, _) => ModeChoice::Worktree,
            (false, true) => ModeChoice::Overlay,
            (false, false) => ModeChoice::Auto,
        },
        level: profile.level.value,
        network: profile.network.value,
        conduct,
        deadline_ms: args.timeout.unwrap_or(DEADLINE_MS),
        limits: UsageLimits {
            tokens: args.tokens,
            usd_micros: args.usd,
        },
        command,
    })
}

/// Returns what the agent is told: the task, then the file.
fn prompt(context: &Context, args: &Args, conduct: Conduct) -> Result<String, Error> {
    let mut parts = Vec::new();
    parts.extend(args.task.clone());
    if let Some(spec) = &args.spec {
        parts.push(spec_text(&context.cwd.join(spec))?);
    }
    let mut prompt = parts.join("\n\n");
    if let (true, Some(revision), Some(branch)) =
        (prompt.trim().is_empty(), &args.merge, &args.flags.branch)
    {
        prompt = format!("Resolve the conflicts of merging {revision} into {branch}.");
    }
    if prompt.trim().is_empty() && conduct == Conduct::Headless {
        return Err(Error::usage("no task was given")
            .with_hint("add `--task \"<text>\"`, `--spec <file>` or `--interactive`."));
    }
    Ok(prompt)
}

fn spec_text(path: &Path) -> Result<String, Error> {
    let failed = |why: &str| {
        Error::usage(format!("{} cannot be used: {why}", path.display()))
            .with_hint("give a text file of at most 1 MiB.")
    };
    let found = fs::metadata(path).map_err(|error| failed(&error.to_string()))?;
    if !found.is_file() || found.len() > SPEC_BYTES_MAX {
        return Err(failed("it is not a file or is too large"));
    }
    fs::read_to_string(path).map_err(|error| failed(&error.to_string()))
}

/// Returns the exit code of a launch: the agent's own, unless it did well and Kapi did not.
fn exit_of(launched: &LaunchResult) -> Exit {
    passed_on(launched.exit_code)
}

/// Returns an exit code that is passed on.
pub(crate) fn passed_on(code: i32) -> Exit {
    match code {
        0 => Exit::Success,
        code => Exit::Agent(u8::try_from(code).unwrap_or(u8::MAX)),
    }
}

/// Tells whether results are for a program.
pub(crate) fn is_json(context: &Context) -> bool {
    context.ui.format == Format::Json
}
