//! `kapi task run`: submit a task, and work on it here unless somebody else already does.

use std::io::Read as _;

use kapi_agent::manifest::manifest;
use kapi_task::record::door::{KeyAsk, TaskAsk};
use kapi_task::record::profile_file::AgentProfile;
use kapi_task::rules::definition::BACKOFF_MS_MAX_DEFAULT;
use kapi_task::rules::request::{Origin, RETRIES_MAX};
use kapi_task::rules::task_terms::{Priority, Retry, TaskBudget};

use crate::amount;
use crate::commands::task::submitted::{Where, follow_up};
use crate::context::Context;
use crate::contract::flags::CheckFlags;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, Kernel, failed};

/// Characters of a prompt's first line that describe a task that nobody described.
const DESCRIPTION_CHARS_MAX: usize = 80;
/// The most bytes of a prompt that are read from standard input.
const PROMPT_BYTES_MAX: u64 = 1 << 20;

/// Options of `kapi task run`.
///
/// Exit codes: 0 completed, 2 wrong options, 3 denied, 5 failed or cancelled, 7 over capacity, 130
/// interrupted (the task waits in the queue).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What the agent is told; `-` reads it from standard input
    prompt: String,
    /// What it is, in one line; the prompt's first line without it
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The profile: what the agent is told it is, may use and remembers
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// The agent instead of the profile's: claude, codex, gemini, pi, 'command:SHELL' or
    /// 'script:FILE.yaml'
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// The model instead of the profile's
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The longest an attempt may take, such as 90s or 15m; 0 for no limit
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<u64>,
    /// Tokens that an attempt may use, such as 500k
    #[arg(long, value_name = "N", value_parser = amount::parse_count)]
    tokens: Option<u64>,
    /// US dollars that an attempt may cost
    #[arg(long, value_name = "AMOUNT", value_parser = amount::parse_usd_micros)]
    usd: Option<u64>,
    /// Wall clock that an attempt may use; as --timeout, and the shorter one counts
    #[arg(long, value_name = "DURATION", value_parser = amount::parse_duration_ms)]
    time: Option<u64>,
    /// How urgent it is
    #[arg(long, value_name = "PRIORITY", value_parser = ["low", "normal", "high"])]
    priority: Option<String>,
    /// What makes it the same as another; without it agent, description, prompt and project do
    #[arg(long, value_name = "KEY", conflicts_with = "again")]
    key: Option<String>,
    /// Run it even if the same was asked a short while ago
    #[arg(long)]
    again: bool,
    /// How often a failed attempt is tried again
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(RETRIES_MAX)))]
    retries: u32,
    /// The pause before the first retry; each further one is twice as long
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = amount::parse_duration_ms)]
    backoff: u64,
    /// A shell command that must pass on a clean checkout of the work; may be given more than once
    #[arg(long, value_name = "COMMAND")]
    verify: Vec<String>,
    /// Files the agent must not change, as git pathspecs with glob rules ('tests/**')
    #[arg(long, value_name = "GLOB")]
    protect: Vec<String>,
    #[command(flatten)]
    checks: CheckFlags,
    /// Whose lessons it is told, besides the agent's
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Leave it to whoever works on the queue
    #[arg(short, long)]
    detach: bool,
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
    kernel::with(context, "kapi task run", |kernel| {
        submit(kernel, args, &prompt)
    })
}

/// Refuses the name of a profile where an agent is to be named.
fn require_agent(kernel: &Kernel<'_>, agent: &str) -> Result<(), Error> {
    let is_program = agent.contains(':') || manifest().iter().any(|known| known.name == agent);
    if is_program || kernel.profiles.find(agent).is_err() {
        return Ok(());
    }
    Err(Error::usage(format!("{agent:?} is a profile and no agent"))
        .with_hint(format!("name it with `--profile {agent}`.")))
}

fn submit(kernel: &Kernel<'_>, args: &Args, prompt: &str) -> Result<Exit, Error> {
    let profile = kernel.profile(args.profile.as_deref())?;
    if let Some(agent) = &args.agent {
        require_agent(kernel, agent)?;
    }
    kernel.prepare()?;
    let mut queue = kernel.queue()?;
    let (origin, depth) = kernel.asker(&queue);
    let mut ask = ask(kernel, args, prompt, profile, origin);
    ask.depth = depth;
    let actor = &kernel.context.actor;
    let answer = kernel.at_door(|door| door.submit_task(&mut queue, actor, ask));
    let answer = answer.map_err(|error| failed(&error))?;
    let place = if args.detach {
        Where::Elsewhere
    } else {
        Where::Here
    };
    follow_up(kernel, queue, &answer, place)
}

fn ask<'p>(
    kernel: &Kernel<'_>,
    args: &Args,
    prompt: &str,
    profile: &'p AgentProfile,
    origin: Origin,
) -> TaskAsk<'p> {
    let described = args.description.clone();
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
        verify: args.verify.clone(),
        protect: args.protect.clone(),
        checks: args.checks.policy(),
        origin,
        depth: 0,
        retry_of: None,
    }
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
