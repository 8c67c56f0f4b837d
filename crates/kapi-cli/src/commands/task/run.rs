//! `kapi task run`: submit a task, and work on it here unless somebody else already does.

use std::io::Read as _;

use kapi_agent::manifest::manifest;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_task::record::admission::{KeyAsk, TaskAsk};
use kapi_task::record::profile_file::{Access, AgentProfile};
use kapi_task::rules::definition::BACKOFF_MS_MAX_DEFAULT;
use kapi_task::rules::request::{RETRIES_MAX, TaskOrigin};
use kapi_task::rules::task_terms::{Priority, Retry, TaskBudget};

use crate::commands::task::submitted::{TaskExecutor, follow_up};
use crate::config::deliver::DeliverArgs;
use crate::config::notify::NotifyArgs;
use crate::context::Context;
use crate::contract::flags::{CheckFlags, shell_command};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, ProjectKernel, failed};
use crate::subdirectory::Subdirectory;
use crate::{amount, delivery};

/// Characters of a prompt's first line that describe a task that nobody described.
const DESCRIPTION_CHARS_MAX: usize = 80;
/// The most bytes of a prompt that are read from standard input.
const PROMPT_BYTES_MAX: u64 = 1 << 20;

/// Submit a task and run it
///
/// Exit codes: 0 completed, 2 usage error, 3 denied, 5 failed or cancelled, 7 over capacity, 130
/// interrupted (the task stays in the queue).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The agent's prompt; '-' reads it from standard input
    prompt: String,
    /// One-line description [default: the prompt's first line]
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Agent profile: its role, tools and memory
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Agent: claude, codex, gemini, pi, 'acp:COMMAND', 'command:SHELL' or 'script:FILE.yaml'
    /// [default: the profile's]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Model [default: the profile's]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Time limit of the agent, per attempt (90s, 15m); 0 means no limit
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    timeout: Option<u64>,
    /// Token limit per attempt (500k)
    #[arg(long, value_name = "N", value_parser = amount::parse_count)]
    tokens: Option<u64>,
    /// Cost limit per attempt in US dollars
    #[arg(long, value_name = "USD", value_parser = amount::parse_usd_micros)]
    usd: Option<u64>,
    /// Time limit of everything an attempt does, its checks and judges included
    #[arg(long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    time: Option<u64>,
    /// Priority
    #[arg(long, value_name = "PRIORITY", value_parser = ["low", "normal", "high"])]
    priority: Option<String>,
    /// Idempotency key [default: derived from everything that is asked]
    #[arg(long, value_name = "KEY", conflicts_with = "again")]
    key: Option<String>,
    /// Run even if an identical request was made recently
    #[arg(long)]
    again: bool,
    /// Number of retries after a failed attempt
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(RETRIES_MAX)))]
    retries: u32,
    /// Pause before the first retry; doubles with each further one
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = amount::parse_duration_ms)]
    backoff: u64,
    /// Shell command that must exit 0 in a clean checkout (repeatable)
    #[arg(long, value_name = "COMMAND", value_parser = shell_command)]
    verify: Vec<String>,
    /// Files the agent must not change, such as 'tests/**' (repeatable)
    #[arg(long, value_name = "GLOB")]
    protect: Vec<String>,
    #[command(flatten)]
    checks: CheckFlags,
    /// Keep the agent's own commits and messages, instead of one commit of its work
    #[arg(help_heading = None::<&str>, long)]
    keep_commits: bool,
    /// Branch, tag or commit to start from [default: the checked-out commit]
    #[arg(help_heading = None::<&str>, long, value_name = "REVISION")]
    base: Option<String>,
    /// Also give the agent the lessons of this domain
    #[arg(help_heading = None::<&str>, long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Queue the task for another worker and return at once
    #[arg(help_heading = None::<&str>, short, long, conflicts_with_all = ["on_done", "on_waiting", "push", "pr"])]
    detach: bool,
    #[command(flatten)]
    deliver: DeliverArgs,
    #[command(flatten)]
    notify: NotifyArgs,
}

/// Reads a timeout, where 0 is none.
fn timeout(text: &str) -> Result<u64, String> {
    if text.trim() == "0" {
        return Ok(0);
    }
    amount::parse_duration_ms(text)
}

/// Submits a task and works on it.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let prompt = prompt(&args.prompt)?;
    let context = &context
        .with_notify(&args.notify)
        .with_deliver(&args.deliver);
    kernel::with_here(context, "kapi task run", |kernel| {
        let root = kernel.project.layout.root();
        delivery::check_flags(context, kernel.config, root, &args.deliver)?;
        submit(kernel, args, &prompt)
    })
}

/// Refuses the name of a profile where an agent is to be named.
fn require_agent(kernel: &ProjectKernel<'_>, agent: &str) -> Result<(), Error> {
    let is_program = agent.contains(':') || manifest().iter().any(|known| known.name == agent);
    if is_program || kernel.profiles.find(agent).is_err() {
        return Ok(());
    }
    Err(
        Error::usage(format!("{agent:?} is a profile, not an agent"))
            .with_hint(format!("name it with `--profile {agent}`.")),
    )
}

fn submit(kernel: &ProjectKernel<'_>, args: &Args, prompt: &str) -> Result<Exit, Error> {
    let profile = kernel.profile(args.profile.as_deref())?;
    if profile.access == Access::Write {
        // Without a project there is nowhere for changes to go.
        kernel::root(kernel.context)?;
    }
    if let Some(agent) = &args.agent {
        require_agent(kernel, agent)?;
    }
    kernel.prepare()?;
    let mut queue = kernel.queue()?;
    let (origin, depth) = kernel.asker(&queue);
    let mut ask = ask(kernel, args, prompt, profile, origin);
    ask.base = base(kernel, args.base.as_deref())?;
    kernel.check_limits(ask.backend.as_ref(), profile, &ask.budget)?;
    ask.depth = depth;
    let actor = &kernel.context.actor;
    let answer = kernel.at_admission(|admission| admission.submit_task(&mut queue, actor, ask));
    let answer = answer.map_err(|error| failed(&error))?;
    let location = if args.detach {
        TaskExecutor::Elsewhere
    } else {
        TaskExecutor::Here
    };
    follow_up(kernel, queue, &answer, location)
}

fn ask<'p>(
    kernel: &ProjectKernel<'_>,
    args: &Args,
    prompt: &str,
    profile: &'p AgentProfile,
    origin: TaskOrigin,
) -> TaskAsk<'p> {
    let described = args.description.clone();
    let here = Subdirectory::of(&kernel.context.cwd, kernel.project.layout.root());
    let key = match (&args.key, args.again) {
        (Some(key), _) => KeyAsk::Given(key.clone()),
        (None, true) => KeyAsk::None,
        (None, false) => KeyAsk::Derived,
    };
    let retry = match args.retries {
        0 => Retry::default(),
        times => Retry {
            times,
            backoff_ms: args.backoff,
            backoff_ms_max: BACKOFF_MS_MAX_DEFAULT.max(args.backoff),
        },
    };
    TaskAsk {
        description: described.unwrap_or_else(|| first_line(prompt)),
        prompt: prompt.to_owned(),
        profile,
        backend: args.agent.clone(),
        model: args.model.clone(),
        timeout_ms: args.timeout,
        budget: TaskBudget {
            tokens: args.tokens,
            usd_micros: args.usd,
            time_ms: args.time,
        },
        domain: args.domain.clone(),
        priority: match args.priority.as_deref() {
            Some("low") => Priority::Low,
            Some("high") => Priority::High,
            Some(_) => Priority::Normal,
            None => kernel.priority(&profile.name),
        },
        key,
        retry,
        verify: here.commands(&args.verify),
        protect: here.patterns(&args.protect),
        checks: args.checks.policy(),
        keep_commits: args.keep_commits,
        base: None,
        origin,
        depth: 0,
        retry_of: None,
    }
}

/// Returns the commit that is named, as it is now.
fn base(kernel: &ProjectKernel<'_>, named: Option<&str>) -> Result<Option<String>, Error> {
    let Some(named) = named else {
        return Ok(None);
    };
    let grants = kernel.context.grants(kernel.config);
    let survey = RepositorySurvey::of(&grants, kernel.project.layout.root());
    let survey = survey.map_err(|failure| Error::world(&failure))?;
    let commit = survey.base(named).map_err(|failure| Error {
        exit: Exit::Usage,
        ..Error::world(&failure)
    })?;
    Ok(Some(commit.commit))
}

fn prompt(text: &str) -> Result<String, Error> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut read = String::new();
    std::io::stdin()
        .lock()
        .take(PROMPT_BYTES_MAX)
        .read_to_string(&mut read)
        .map_err(|error| {
            Error::new(
                Exit::Failed,
                format!("failed to read standard input: {error}"),
            )
        })?;
    Ok(read)
}

fn first_line(prompt: &str) -> String {
    let line = prompt.trim().lines().next().unwrap_or_default();
    line.chars().take(DESCRIPTION_CHARS_MAX).collect()
}
