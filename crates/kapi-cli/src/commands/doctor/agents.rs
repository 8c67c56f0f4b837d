//! `kapi doctor --agents`: the agent programs of tasks and loops: found, logged in, and when asked, answering.
//!
//! Without `--probe` nothing is sent to anybody. What a program says of itself is shown, not
//! believed.

mod probe;

use kapi_agent::agent::AgentKind;
use kapi_agent::manifest::{Manifest, manifest};
use kapi_run::asking;
use serde::Serialize;

use crate::commands::doctor::agents::probe::{AgentProbe, probe};
use crate::commands::doctor::credentials::credentials;
use crate::commands::doctor::starts;
use crate::config::Config;
use crate::config::grant::LEVEL_DEFAULT;
use crate::context::Context;
use crate::driving;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, ProjectKernel};
use crate::ui::Format;

/// Which agent programs are looked at, and how.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct Args {
    /// Check which agent programs are installed and logged in
    ///
    /// Exits with 4 if no agent can be used, or if one named with --agent cannot.
    #[arg(long, conflicts_with_all = ["modes", "mend"])]
    pub(super) agents: bool,
    /// Ask each installed agent a one-word question; costs a few tokens
    #[arg(long, requires = "agents")]
    probe: bool,
    /// Check only this agent (repeatable)
    #[arg(long, value_name = "PROGRAM", value_parser = ["claude", "codex", "gemini", "pi"], requires = "agents")]
    agent: Vec<String>,
}

#[derive(Debug, Serialize)]
struct AgentsView {
    #[serde(rename = "type")]
    kind: &'static str,
    /// Whether a program can be used; with `--agent`, whether all can.
    ok: bool,
    backends: Vec<AgentProgram>,
}

/// One agent program.
#[derive(Debug, Serialize)]
struct AgentProgram {
    name: &'static str,
    /// What is looked for.
    command: String,
    found: bool,
    /// Whether it starts in the sandbox.
    starts: bool,
    /// What it says of its version, and where it is; why it does not start, if it does not.
    version: Option<String>,
    /// Whether it has a key or a log-in that it may use.
    logged_in: bool,
    /// Which.
    login: String,
    /// The profiles that work with it.
    profiles: Vec<String>,
    /// What came of asking it; `null` when it was not asked.
    probe: Option<AgentProbe>,
    hint: Option<String>,
}

impl AgentProgram {
    fn is_usable(&self) -> bool {
        self.starts && self.logged_in && self.probe.as_ref().is_none_or(|probe| probe.ok)
    }
}

/// Looks at the agent programs.
pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    if args.probe {
        context.require_human("have agents answer")?;
    }
    let interrupts = driving::interrupts()?;
    let config = context.config(kernel::root(context).ok().as_deref())?;
    let profiles = profiles(context, &config);
    let is_wanted = |agent: &&Manifest| {
        args.agent.is_empty() || args.agent.iter().any(|name| name == agent.name)
    };
    let mut backends = Vec::new();
    for agent in manifest().iter().filter(is_wanted) {
        let mut backend = look(context, &config, agent);
        let of_it = profiles.iter().filter(|(_, backend)| backend == agent.name);
        backend.profiles = of_it.map(|(name, _)| name.clone()).collect();
        if args.probe && backend.starts {
            context.ui.live(&format!("asking {}", agent.name));
            backend.probe = Some(probe(context, &config, agent, &interrupts)?);
            context.ui.clear_live();
        }
        backends.push(backend);
    }
    let ok = if args.agent.is_empty() {
        backends.iter().any(AgentProgram::is_usable)
    } else {
        backends.iter().all(AgentProgram::is_usable)
    };
    let view = AgentsView {
        kind: "health",
        ok,
        backends,
    };
    match context.ui.format {
        Format::Json => context.ui.json(&view),
        Format::Human => human(context, args, &view),
    }
    Ok(if ok { Exit::Success } else { Exit::Failed })
}

/// Returns the profiles of the project at hand with the programs that they name; none outside of a
/// project.
fn profiles(context: &Context, config: &Config) -> Vec<(String, String)> {
    let Ok(root) = kernel::root(context) else {
        return Vec::new();
    };
    let project = context.project(&root, "kapi doctor --agents");
    let (kernel, _) = ProjectKernel::lenient(context, &project, config);
    let level = config.level.unwrap_or(LEVEL_DEFAULT);
    let there = asking::default_agent(&context.grants(config), level);
    let otherwise = kernel.terms.default_backend.as_deref().or(there);
    let named = kernel.profiles.list.iter().map(|profile| {
        let backend = profile.backend.as_deref().or(otherwise);
        let kind = backend.and_then(|backend| AgentKind::parse(backend).ok());
        let name = kind.as_ref().map_or("", AgentKind::name);
        (profile.name.clone(), name.to_owned())
    });
    named.collect()
}

fn look(context: &Context, config: &Config, agent: &'static Manifest) -> AgentProgram {
    let settings = config.agents.get(agent.name);
    let command = settings.and_then(|settings| settings.command.clone());
    let command = command.unwrap_or_else(|| agent.binary.to_owned());
    let grants = context.grants(config);
    let login = credentials(context, config, agent);
    let mut program = AgentProgram {
        name: agent.name,
        found: grants.find_program(&command).is_some(),
        starts: false,
        version: None,
        command,
        logged_in: login.is_ready,
        login: login.detail,
        profiles: Vec::new(),
        probe: None,
        hint: login.hint,
    };
    if !program.found {
        program.hint = Some(format!("install it with `{}`.", agent.install));
        return program;
    }
    let level = config.level.unwrap_or(LEVEL_DEFAULT);
    match starts::started(context, &grants, agent, level) {
        Ok(start) => {
            program.starts = true;
            program.version = Some(format!("{} ({})", start.version, start.program.display()));
        }
        Err(failure) => {
            program.version = Some(format!("failed to {}", failure.message));
            program.hint = failure.hint.or(program.hint);
        }
    }
    program
}

fn human(context: &Context, args: &Args, view: &AgentsView) {
    let ui = context.ui;
    for backend in &view.backends {
        let mark = if backend.is_usable() {
            "ok     "
        } else {
            "FAILED "
        };
        let version = backend.version.clone();
        let version = version.unwrap_or_else(|| format!("{} not found", backend.command));
        ui.line(&format!("{mark}  {:<8} {version}", backend.name));
        ui.line(&format!("         login    {}", backend.login));
        if let Some(probe) = &backend.probe {
            ui.line(&format!("         answer   {}", probe.detail));
        }
        if !backend.profiles.is_empty() {
            ui.line(&format!(
                "         profiles {}",
                backend.profiles.join(", ")
            ));
        }
        if let Some(hint) = &backend.hint {
            ui.line(&format!("         hint: {hint}"));
        }
    }
    if !args.probe {
        ui.say("Nothing was sent; test them with `kapi doctor --agents --probe`.");
    }
}
