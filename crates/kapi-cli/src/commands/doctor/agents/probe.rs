//! Asking one agent program for one word, in a sandbox of its own that is removed afterwards.
//!
//! The same launch as every other, in an empty directory: what answers here answers in a task.

use std::fs;
use std::path::PathBuf;

use kapi_agent::agent::AgentKind;
use kapi_agent::manifest::Manifest;
use kapi_launch::context::{LaunchHandlers, never_stopped};
use kapi_launch::error::LaunchError;
use kapi_launch::paths::SandboxId;
use kapi_launch::plan::{Conduct, LaunchPlan, ModeChoice};
use kapi_launch::result::LaunchResult;
use kapi_launch::{merge, run};
use kapi_machine::watch::{Activity, unlimited};
use kapi_run::spending::usage_meter::UsageLimits;
use kapi_status::rules::mapping::Mapping;
use kapi_store::layout::project_key;
use kapi_sys::clock::{Clock as _, monotonic_ms};
use kapi_sys::signal::Interrupts;
use serde::Serialize;

use crate::amount;
use crate::commands::task::short;
use crate::config::Config;
use crate::config::grant::LEVEL_DEFAULT;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::subject::launches::sandboxes;

/// What is asked.
const QUESTION: &str = "Answer with the one word ok. Use no tool and change nothing.";
/// The longest it may take, in milliseconds.
const DEADLINE_MS: u64 = 60_000;

/// What came of asking.
#[derive(Debug, Serialize)]
pub(super) struct AgentProbe {
    /// Whether it answered.
    pub(super) ok: bool,
    /// The answer, or why there is none.
    pub(super) detail: String,
    /// How long it took.
    pub(super) duration_ms: u64,
}

/// Asks a program.
pub(super) fn probe(
    context: &Context,
    config: &Config,
    agent: &Manifest,
    interrupts: &Interrupts,
) -> Result<AgentProbe, Error> {
    let name = format!(
        "kapi-health-{}-{}",
        std::process::id(),
        context.clock.now_ms()
    );
    let dir = std::env::temp_dir().join(name);
    let failed = |error: std::io::Error| {
        Error::new(
            Exit::Failed,
            format!("failed to make {}: {error}", dir.display()),
        )
    };
    fs::create_dir(&dir).map_err(failed)?;
    let dir = fs::canonicalize(&dir).map_err(failed)?;
    let asked = plan(context, config, agent, dir.clone())
        .and_then(|plan| ask(context, config, &plan, interrupts));
    fs::remove_dir_all(&dir).map_err(|error| {
        Error::new(
            Exit::Failed,
            format!("failed to remove {}: {error}", dir.display()),
        )
    })?;
    asked
}

fn ask(
    context: &Context,
    config: &Config,
    plan: &LaunchPlan,
    interrupts: &Interrupts,
) -> Result<AgentProbe, Error> {
    let grants = context.grants(config);
    let mapping = Mapping::built_in();
    let stage = LaunchHandlers {
        room: &unlimited,
        stopped: &never_stopped,
        clock: &context.clock,
        cancel: &interrupts.cancel(),
        notice: &|_: Activity| {},
        mapping: &mapping,
    };
    let began_ms = monotonic_ms();
    let launched = run::launch(&grants, plan, &stage);
    let duration_ms = monotonic_ms().saturating_sub(began_ms);
    let (ok, detail) = outcome(&launched, duration_ms);
    if plan.location.record().is_file() {
        merge::discard(&grants, &plan.location, context.clock.now_ms())
            .map_err(|error| Error::launch(&error))?;
    }
    Ok(AgentProbe {
        ok,
        detail,
        duration_ms,
    })
}

fn outcome(launched: &Result<LaunchResult, LaunchError>, duration_ms: u64) -> (bool, String) {
    match launched {
        Ok(launched) if launched.exit_code == 0 && !launched.message.trim().is_empty() => {
            let tokens = amount::tokens(launched.usage.tokens());
            let took = amount::duration(duration_ms);
            let said = short(&launched.message);
            (true, format!("{said:?} in {took}, {tokens} tokens"))
        }
        Ok(launched) => {
            let error = launched.error.as_ref().map(|error| error.message.clone());
            let said = error.unwrap_or_else(|| short(&launched.message));
            (false, format!("exit {}: {said}", launched.exit_code))
        }
        Err(error) => (false, format!("failed to {}", error.message)),
    }
}

fn plan(
    context: &Context,
    config: &Config,
    agent: &Manifest,
    dir: PathBuf,
) -> Result<LaunchPlan, Error> {
    let level = config.level.unwrap_or(LEVEL_DEFAULT);
    let id = SandboxId::parse(&format!("health-{}", agent.name));
    let id = id.map_err(|error| Error::launch(&error))?;
    let kind = AgentKind::parse(agent.name).map_err(|error| Error::failed(&error))?;
    Ok(LaunchPlan {
        location: sandboxes(context).location(&project_key(&dir), &id),
        project_name: "health".to_owned(),
        settings: config.agents.get(agent.name).cloned().unwrap_or_default(),
        agent: kind,
        prompt: QUESTION.to_owned(),
        branch: None,
        mode: ModeChoice::Overlay,
        level,
        network: config.network(None, level)?,
        conduct: Conduct::Headless,
        commit_message: String::new(),
        deadline_ms: DEADLINE_MS,
        limits: UsageLimits::default(),
        command: Vec::new(),
        project: dir,
    })
}
