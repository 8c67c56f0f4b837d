//! `kapi doctor`: what this machine can do, and how to mend what it cannot.
//!
//! Every step of the sandbox is really tried.

mod agents;
pub(crate) mod credentials;
mod modes;
pub(crate) mod starts;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use kapi_core::failure::chain;
use kapi_sandbox::probe::{self, LevelSupport};
use kapi_sandbox::spec::IsolationLevel;
use kapi_store::layout::HomeLayout;
use kapi_sys::process::{self, ProcessEnd, ProcessLimits, Program};
use serde::Serialize;

use crate::container::{NO_IMAGE, image_hint};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel;
use crate::ui::Format;

/// The longest a program may take to print its version.
const VERSION_DEADLINE: Duration = Duration::from_secs(20);

/// The check of the container level as a whole.
const PODMAN: &str = "sandbox podman";

/// Options of `kapi doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Check the durable modes and the records of every workflow here
    #[arg(long)]
    modes: bool,
    /// Rebuild missing or outdated workflow records from the logs
    #[arg(long, requires = "modes")]
    mend: bool,
    #[command(flatten)]
    agents: agents::Args,
}

#[derive(Debug, Serialize)]
struct DoctorView {
    ok: bool,
    checks: Vec<DoctorCheck>,
}

#[derive(Debug, Serialize)]
struct DoctorCheck {
    name: String,
    ok: bool,
    /// Whether `kapi run` cannot work without it.
    required: bool,
    /// Whether it is here and set up at all: what is not is missing, and nothing else is wrong with it.
    installed: bool,
    detail: String,
    hint: Option<String>,
}

/// Looks at the machine.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    if args.modes {
        return modes::run(context, modes::RepairChoice::of(args.mend));
    }
    if args.agents.agents {
        return agents::run(context, &args.agents);
    }
    let config = context.config(kernel::root(context).ok().as_deref())?;
    let mut checks = vec![git(context)];
    let has_image = !config.grant.podman.image.is_empty();
    checks.extend(sandbox(context, has_image));
    checks.extend(starts::agents(context, &config));
    checks.extend(starts::verify_commands(context, &config)?);
    checks.push(configuration(context, &config.sources));
    let ok = checks.iter().all(|check| check.ok || !check.required);
    match context.ui.format {
        Format::Json => context.ui.json(&DoctorView { ok, checks }),
        Format::Human => human(context, &checks),
    }
    Ok(if ok { Exit::Success } else { Exit::Failed })
}

fn human(context: &Context, checks: &[DoctorCheck]) {
    for check in checks {
        let mark = match (check.ok, check.required || check.installed) {
            (true, _) => "ok     ",
            (false, true) => "FAILED ",
            (false, false) => "missing",
        };
        context
            .ui
            .line(&format!("{mark}  {:<24} {}", check.name, check.detail));
        if let Some(hint) = &check.hint {
            context.ui.line(&format!("         hint: {hint}"));
        }
    }
}

fn git(context: &Context) -> DoctorCheck {
    let path = context.env.get(OsStr::new("PATH"));
    let path = path.and_then(|path| process::find_in_path(OsStr::new("git"), path));
    let found = path.map(|path| version(context, &path, &["--version"]));
    let hint = found
        .is_none()
        .then(|| "install git 2.34 or newer.".to_owned());
    DoctorCheck {
        name: "git".to_owned(),
        ok: found.is_some(),
        required: true,
        installed: found.is_some(),
        detail: found.unwrap_or_else(|| "not found on PATH".to_owned()),
        hint,
    }
}

/// Checks each level of isolation: whether it works, what it lacks here and how to mend that.
fn sandbox(context: &Context, has_image: bool) -> Vec<DoctorCheck> {
    let sandboxes = HomeLayout::new(&context.home).state_dir().join("sandboxes");
    let report = match probe::levels(&context.self_exe, &sandboxes, &context.env) {
        Ok(report) => report,
        Err(error) => {
            return vec![DoctorCheck {
                name: "sandbox native".to_owned(),
                ok: false,
                required: true,
                installed: false,
                detail: format!("failed to {}", chain(&error)),
                hint: error.hint().map(str::to_owned),
            }];
        }
    };
    let mut checks: Vec<DoctorCheck> = report.levels.iter().flat_map(level).collect();
    let podman = checks.iter_mut().find(|check| check.name == PODMAN);
    if let Some(check) = podman.filter(|check| check.ok && !has_image) {
        check.ok = false;
        check.installed = false;
        check.detail = format!("{NO_IMAGE}; with one: {}", check.detail);
        check.hint = Some(image_hint());
    }
    checks.extend(report.facts.into_iter().map(|fact| DoctorCheck {
        name: fact.name.to_owned(),
        ok: true,
        required: false,
        installed: true,
        detail: fact.value,
        hint: None,
    }));
    checks
}

fn level(support: &LevelSupport) -> Vec<DoctorCheck> {
    let (name, is_default) = match support.level {
        IsolationLevel::Native => ("native", true),
        IsolationLevel::Podman => ("podman", false),
        IsolationLevel::None => ("none", false),
    };
    let mut checks = vec![DoctorCheck {
        name: format!("sandbox {name}"),
        ok: support.works,
        required: is_default,
        installed: true,
        detail: support.gives.join("; "),
        hint: None,
    }];
    checks.extend(support.missing.iter().map(|missing| {
        let why = missing
            .source
            .as_ref()
            .map(|source| format!(": {source}"))
            .unwrap_or_default();
        DoctorCheck {
            name: format!("  {name}: {}", missing.what),
            ok: false,
            required: is_default && missing.is_necessary,
            installed: false,
            detail: format!("{} on {}{why}", missing.call, missing.target),
            hint: missing.hint.clone(),
        }
    }));
    checks
}

fn configuration(context: &Context, sources: &[std::path::PathBuf]) -> DoctorCheck {
    let read: Vec<String> = sources
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let detail = if read.is_empty() {
        format!("none; {} does not exist", context.config_path.display())
    } else {
        read.join(", ")
    };
    DoctorCheck {
        name: "configuration".to_owned(),
        ok: true,
        required: false,
        installed: true,
        detail,
        hint: None,
    }
}

/// Returns the first line a program prints about its version.
pub(super) fn version(context: &Context, path: &Path, args: &[&str]) -> String {
    let names = ["PATH", "HOME", "LANG"];
    let env: BTreeMap<OsString, OsString> = names
        .iter()
        .filter_map(|name| {
            Some((
                OsString::from(name),
                context.env.get(OsStr::new(name))?.clone(),
            ))
        })
        .collect();
    let program = Program {
        path: path.to_path_buf(),
        args: args.iter().map(OsString::from).collect(),
        env,
        cwd: std::path::PathBuf::from("/"),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: VERSION_DEADLINE,
            idle: None,
            tail_bytes_max: 4096,
            line_bytes_max: 4096,
        },
    };
    match process::run_quiet(program) {
        Ok(finished) if finished.end == ProcessEnd::Exited(0) => {
            let text = finished.stdout.text();
            format!(
                "{} ({})",
                text.lines().next().unwrap_or_default().trim(),
                path.display()
            )
        }
        Ok(finished) => format!("{} ended with {:?}", path.display(), finished.end),
        Err(error) => format!("failed to {}", chain(&error)),
    }
}
