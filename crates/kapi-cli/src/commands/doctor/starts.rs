//! Agents and verify commands as the doctor tries them: really started, in the real sandbox.
//!
//! What is called ok here works: the program ran inside, and its provider took the key.

use kapi_agent::manifest::{Manifest, manifest};
use kapi_check::perform::checks;
use kapi_check::perform::checks::{CheckEvent, CheckObserver};
use kapi_core::failure::Failure;
use kapi_core::isolation::SandboxLevel;
use kapi_run::agent_start::{self, AgentStart, ProviderGreeting, StartSite};
use kapi_run::host_grants::HostGrants;
use kapi_run::private_scratch::PrivateScratch;
use kapi_store::layout::HomeLayout;
use kapi_sys::cancel::Cancel;

use super::DoctorCheck;
use super::credentials::credentials;
use crate::commands::check;
use crate::config::Config;
use crate::config::grant::LEVEL_DEFAULT;
use crate::context::Context;
use crate::error::Error;
use crate::kernel;

/// Tries every built-in agent.
pub(super) fn agents(context: &Context, config: &Config) -> Vec<DoctorCheck> {
    let checks = manifest().iter().map(|agent| {
        context.ui.live(&format!("starting {}", agent.name));
        let check = agent_check(context, config, agent);
        context.ui.clear_live();
        check
    });
    checks.collect()
}

fn agent_check(context: &Context, config: &Config, agent: &Manifest) -> DoctorCheck {
    let grants = context.grants(config);
    let command = config.agents.get(agent.name);
    let command = command.and_then(|settings| settings.command.as_deref());
    let command = command.unwrap_or(agent.binary);
    let mut check = DoctorCheck {
        name: format!("agent: {}", agent.name),
        ok: false,
        required: false,
        installed: true,
        detail: String::new(),
        hint: None,
    };
    if grants.find_program(command).is_none() {
        check.installed = false;
        check.detail = format!("{command} not found");
        check.hint = Some(format!("install it with `{}`.", agent.install));
        return check;
    }
    let level = config.level.unwrap_or(LEVEL_DEFAULT);
    let failed = |mut check: DoctorCheck, before: &str, failure: Failure| {
        check.detail = format!("{before}failed to {}", failure.message);
        check.hint = failure.hint;
        check
    };
    let start = match started(context, &grants, agent, level) {
        Ok(start) => start,
        Err(failure) => return failed(check, "", failure),
    };
    let version = format!("{} ({})", start.version, start.program.display());
    let login = credentials(context, config, agent);
    if !login.is_ready {
        check.detail = format!("{version}; {}", login.detail);
        check.hint = login.hint;
        return check;
    }
    match agent_start::greet(&grants, agent, &Cancel::new()) {
        Err(failure) => failed(check, &format!("{version}; {}; ", login.detail), failure),
        Ok(greeting) => {
            check.ok = true;
            let said = greeting_words(&greeting, agent);
            check.detail = format!("{version}; starts in the sandbox; {}; {said}", login.detail);
            check
        }
    }
}

fn greeting_words(greeting: &ProviderGreeting, agent: &Manifest) -> String {
    match greeting {
        ProviderGreeting::Accepted { server } => format!("{server} accepts it"),
        ProviderGreeting::NoList { server } => format!("{server} answers"),
        ProviderGreeting::Login => format!(
            "only an answer shows whether it is still valid: `kapi doctor --agents --probe --agent {}`",
            agent.name
        ),
    }
}

/// Starts an agent in a directory of Kapi's own.
pub(crate) fn started(
    context: &Context,
    grants: &HostGrants,
    agent: &Manifest,
    level: SandboxLevel,
) -> Result<AgentStart, Failure> {
    let state = HomeLayout::new(&context.home);
    let all = state.state_dir().join("checks").join("agents");
    let scratch = PrivateScratch::open(&all, &all.join("nothing"), "kapi doctor")?;
    let site = StartSite {
        level,
        scratch: scratch.path(),
        cancel: &Cancel::new(),
    };
    agent_start::start(grants, agent, site)
}

/// Looks in the sandbox for the programs of the verify commands that the configuration names.
pub(super) fn verify_commands(
    context: &Context,
    config: &Config,
) -> Result<Vec<DoctorCheck>, Error> {
    let lines: Vec<String> = [&config.person_goal, &config.project_goal]
        .into_iter()
        .flat_map(|table| table.verify.clone().unwrap_or_default())
        .collect();
    let Ok(root) = kernel::root(context) else {
        return Ok(Vec::new());
    };
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let discovery = checks::discover(&root).map_err(|failure| Error::world(&failure))?;
    let (grants, setting) = check::setting(context, &check::Args::default(), &discovery)?;
    let cancel = Cancel::new();
    let observer = CheckObserver {
        cancel: &cancel,
        notice: &|_: CheckEvent<'_>| {},
    };
    let missing = checks::missing_programs(&grants, &discovery, &setting, &observer, &lines);
    let missing = missing.map_err(|failure| Error::world(&failure))?;
    let checks = lines.iter().map(|line| {
        let programs = kapi_check::rules::checks::program::programs_of(line);
        let why = programs.iter().find_map(|program| missing.get(program));
        DoctorCheck {
            name: format!("verify: {line}"),
            ok: why.is_none(),
            required: false,
            installed: true,
            detail: match why {
                Some(why) => why.clone(),
                None if programs.is_empty() => "run by the shell".to_owned(),
                None => format!("{} found in the sandbox", programs.join(", ")),
            },
            hint: why.map(|_| {
                "install it, show it to the sandbox with `read_only` under [sandbox], or change \
                 the command under [goal] `verify`."
                    .to_owned()
            }),
        }
    });
    Ok(checks.collect())
}
