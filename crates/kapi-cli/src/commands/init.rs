//! `kapi init`: from nothing to a configuration that works, with everything in it tried.
//!
//! What is open is proposed, and asked at a terminal; `--yes` takes the proposals. Without either,
//! everything that is open is told at once, with the command that closes it.

mod agents;
mod answers;
mod ci;
mod file;
mod verify;

use std::path::PathBuf;

use kapi_core::isolation::SandboxLevel;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_goal::rules::contract::TURNS_DEFAULT;
use kapi_store::layout::ProjectLayout;
use serde::Serialize;

use crate::command_line;
use crate::commands::init::agents::{AgentAccess, FoundAgents};
use crate::commands::init::answers::{InitAnswers, InitLimits};
use crate::commands::init::verify::TriedCommand;
use crate::config::Config;
use crate::config::grant::LEVEL_DEFAULT;
use crate::context::Context;
use crate::contract::flags;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// The limit of a goal's time that is proposed.
const WALL_DEFAULT: &str = "2h";
/// What stands for the task in the line that starts the first goal.
const NEXT: &str = "kapi run \"<what you want done>\"";

/// Options of `kapi init`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Args {
    /// Agent: claude, codex, gemini or pi
    #[arg(long, value_name = "AGENT", value_parser = ["claude", "codex", "gemini", "pi"])]
    agent: Option<String>,
    /// Lend your own login (a subscription) to the agent's runs
    #[arg(long)]
    login: bool,
    /// Command that must pass in a clean checkout (repeatable) [default: the project's own]
    #[arg(long, value_name = "COMMAND", value_parser = flags::shell_command)]
    verify: Vec<String>,
    /// Judge: another agent, provider/model, 'same' or 'none'
    #[arg(long, value_name = "JUDGE")]
    judge: Option<String>,
    /// Maximum number of turns of a goal
    #[arg(long, value_name = "N")]
    turns: Option<u32>,
    /// Wall-clock limit of a goal (90s, 15m, 2h)
    #[arg(long, value_name = "TIME", value_parser = answers::duration)]
    wall: Option<String>,
    /// Cost limit of a goal in US dollars
    #[arg(long, value_name = "USD", value_parser = answers::usd)]
    usd: Option<f64>,
    /// Accept every proposal without asking
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, Serialize)]
struct InitView {
    #[serde(rename = "type")]
    kind: &'static str,
    agent: String,
    judge: String,
    verify: Vec<String>,
    /// The commands that were tried, and what came of each.
    tried: Vec<TriedCommand>,
    /// The files that were written.
    files: Vec<PathBuf>,
    /// The line that starts the first goal.
    next: &'static str,
}

/// What is open, with what is proposed for it.
struct Proposals {
    agents: FoundAgents,
    tried: Vec<TriedCommand>,
}

/// Sets Kapi up for this user and this project.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("set Kapi up")?;
    let outside = context.grants(&Config::unconfigured());
    let survey = RepositorySurvey::of(&outside, &context.cwd);
    let survey = survey.map_err(|failure| Error::world(&failure))?;
    survey
        .base("HEAD")
        .map_err(|failure| Error::world(&failure))?;
    let root = survey.root();
    let config = context.config(Some(&root))?;
    let level = config.level.unwrap_or(LEVEL_DEFAULT);
    let proposals = Proposals {
        agents: agents::find(context, &config, level)?,
        tried: if args.verify.is_empty() && config.goal.verify.is_none() {
            verify::tried(context, &config, &root)?
        } else {
            Vec::new()
        },
    };
    say_tried(context, &proposals.tried);
    let answers = if args.yes || !context.ui.is_at_keyboard() {
        proposed(args, &config, &proposals)
    } else {
        answers::asked(context, &proposals, given(args, &config, &proposals))?
    };
    if !args.yes && !context.ui.is_at_keyboard() {
        refuse_open(args, &config, &answers)?;
    }
    check(context, &config, &answers, level)?;
    let person = file::person_keys(&answers);
    let project = file::project_keys(&answers);
    let project_path = ProjectLayout::new(root.clone())
        .state_dir()
        .join("config.toml");
    context
        .project(&root, "kapi init")
        .prepare()
        .map_err(|error| Error::engine(&error, ""))?;
    let mut files = Vec::new();
    for (path, keys, head) in [
        (&context.config_path, person, file::PERSON_HEAD),
        (&project_path, project, file::PROJECT_HEAD),
    ] {
        if file::write(context, path, &keys, head)? {
            files.push(path.clone());
        }
    }
    // What was written is read as every command will read it.
    context.config(Some(&root))?;
    show(context, answers, proposals.tried, files);
    Ok(Exit::Success)
}

/// Offers to set Kapi up before a first run at a terminal; what is named on the command line needs
/// no configuration.
pub(crate) fn offer(context: &Context, run: &flags::Args) -> Result<(), Error> {
    let is_said = run.agent.is_some()
        || run.contract.is_some()
        || run.race.is_race()
        || context.variable("KAPI_AGENT").is_some();
    if is_said || context.config_path.exists() || !context.ui.is_at_keyboard() {
        return Ok(());
    }
    context.ui.say("Kapi is not configured yet.");
    let question = "Set it up now (`kapi init`)? It tries what is installed and writes two files.";
    if context.ui.confirm(question) == Some(true) {
        self::run(context, &Args::default())?;
    }
    Ok(())
}

/// Returns what flags and files say already; what is open is `None`.
fn given(args: &Args, config: &Config, proposals: &Proposals) -> InitAnswers {
    let verify = (!args.verify.is_empty()).then(|| args.verify.clone());
    let limits = InitLimits {
        turns: args.turns.or(config.goal.turns),
        wall: args.wall.clone().or_else(|| config.goal.wall.clone()),
        usd: args.usd.or(config.goal.usd),
    };
    let agent = args.agent.clone().or_else(|| config.goal.agent.clone());
    let only = proposals.agents.only().map(str::to_owned);
    InitAnswers {
        agent: agent.or(only),
        login: args.login.then_some(true),
        verify: verify.or_else(|| config.goal.verify.clone()),
        judge: args.judge.clone().or_else(|| config.judge().cloned()),
        limits: (limits.turns.is_some() || limits.wall.is_some() || limits.usd.is_some())
            .then_some(limits),
    }
}

/// Returns the same with every proposal taken.
fn proposed(args: &Args, config: &Config, proposals: &Proposals) -> InitAnswers {
    let mut answers = given(args, config, proposals);
    let agent = answers
        .agent
        .get_or_insert_with(|| proposals.agents.first().to_owned())
        .clone();
    let needs_login = proposals.agents.access(&agent) == Some(AgentAccess::Login);
    answers.login.get_or_insert(needs_login);
    answers
        .judge
        .get_or_insert_with(|| proposals.agents.judge_of(&agent));
    answers
        .verify
        .get_or_insert_with(|| verify::passing(&proposals.tried));
    answers.limits.get_or_insert_with(InitLimits::usual);
    answers
}

/// Refuses to choose what nobody chose: everything that is open, at once, with the command that
/// takes what is proposed.
fn refuse_open(args: &Args, config: &Config, proposed: &InitAnswers) -> Result<(), Error> {
    let mut open: Vec<&str> = Vec::new();
    let mut options: Vec<String> = Vec::new();
    let mut add = |what: &'static str, words: &[&str]| {
        open.push(what);
        options.extend(words.iter().map(|&word| word.to_owned()));
    };
    if args.agent.is_none() && config.goal.agent.is_none() {
        add("the agent", &["--agent", proposed.agent()]);
    }
    if !args.login && proposed.login == Some(true) {
        add("whether its runs get your login", &["--login"]);
    }
    if args.verify.is_empty() && config.goal.verify.is_none() {
        add("the verify commands", &[]);
        let commands = proposed.verify.iter().flatten();
        for command in commands {
            add("", &["--verify", command]);
        }
        if proposed.verify.iter().flatten().next().is_none() {
            add("", &["--verify", "<command>"]);
        }
    }
    if args.judge.is_none() && config.judge().is_none() {
        add("the judge", &["--judge", proposed.judge()]);
    }
    let is_limited = args.turns.is_some() || args.wall.is_some() || args.usd.is_some();
    if !is_limited && config.goal.turns.is_none() && config.goal.wall.is_none() {
        let turns = TURNS_DEFAULT.to_string();
        add("the limits", &["--turns", &turns, "--wall", WALL_DEFAULT]);
    }
    open.retain(|what| !what.is_empty());
    if open.is_empty() {
        return Ok(());
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    Err(Error::usage(format!(
        "{} {} open, and there is no terminal to ask on: {}",
        open.len(),
        if open.len() == 1 {
            "choice is"
        } else {
            "choices are"
        },
        open.join(", ")
    ))
    .with_hint(format!(
        "answer everything with options: `{}`; or accept what Kapi proposes: `{}`.",
        command_line::with(&options),
        command_line::with(&["--yes"])
    )))
}

/// Refuses what could not work: an agent that does not start, a login that is not there.
fn check(
    context: &Context,
    config: &Config,
    answers: &InitAnswers,
    level: SandboxLevel,
) -> Result<(), Error> {
    let mut after = config.clone();
    if answers.login == Some(true) {
        let settings = after.agents.entry(answers.agent().to_owned()).or_default();
        settings.login = true;
    }
    agents::check(context, &after, answers.agent(), level)?;
    agents::check_judge(context, &after, answers.judge(), level)
}

fn say_tried(context: &Context, tried: &[TriedCommand]) {
    if tried.is_empty() {
        return;
    }
    context
        .ui
        .say("What the project defines, run on its last commit in the sandbox:");
    for one in tried {
        context.ui.say(&format!("  {}", one.words()));
        if let Some(hint) = &one.hint {
            context.ui.say(&format!("         hint: {hint}"));
        }
    }
    if tried.iter().any(|one| !one.passed && one.hint.is_none()) {
        context.ui.say(
            "  One that fails now is a good proof of the task that mends it: \
             `kapi run … --verify \"<command>\"`.",
        );
    }
}

fn show(context: &Context, answers: InitAnswers, tried: Vec<TriedCommand>, files: Vec<PathBuf>) {
    if context.ui.format == Format::Json {
        return context.ui.json(&InitView {
            kind: "init",
            agent: answers.agent().to_owned(),
            judge: answers.judge().to_owned(),
            verify: answers.verify.unwrap_or_default(),
            tried,
            files,
            next: NEXT,
        });
    }
    for path in &files {
        context.ui.say(&format!("Wrote {}.", path.display()));
    }
    if files.is_empty() {
        context
            .ui
            .say("The configuration says all of this already; nothing was written.");
    }
    if answers.verify.is_none_or(|commands| commands.is_empty()) {
        context
            .ui
            .say("note: no verify command is configured; name one for each task with `--verify`.");
    }
    context.ui.say("Start with:");
    context.ui.line(NEXT);
}
