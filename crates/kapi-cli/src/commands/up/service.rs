//! A file that lets the system run `kapi up` for this project; only when asked.
//!
//! The file is shown before it is written, and the system is told of it only with `--enable`.

mod unit;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_store::layout::project_key;
use kapi_sys::disk::{create_dir_durably, replace_durably};
use kapi_sys::process::{self, ProcessEnd, ProcessLimits, Program};
use serde_json::json;

use crate::commands::up::service::unit::{ServiceKind, Unit};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel;
use crate::ui::Format;

/// How long the system's own tool may take.
const TOOL_MAX: Duration = Duration::from_secs(60);
/// Output of it that is kept.
const TOOL_BYTES_MAX: usize = 64 * 1024;

/// What to do with the service that runs `kapi up`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Run as a service")]
#[group(skip)]
pub(super) struct Args {
    /// Show and install a systemd unit or launchd plist for this project
    #[arg(long, group = "unit")]
    install: bool,
    /// Remove the unit or plist
    #[arg(long, group = "unit")]
    uninstall: bool,
    /// Show the unit or plist, and whether it is installed
    #[arg(long, group = "unit")]
    show_unit: bool,
    /// Service manager [default: this machine's]
    #[arg(long, value_name = "KIND", value_enum, requires = "unit")]
    kind: Option<ServiceKind>,
    /// Also start the service now and at every login
    #[arg(long, requires = "install")]
    enable: bool,
    /// Stop the service first
    #[arg(long, requires = "uninstall")]
    disable: bool,
    /// Skip the confirmation
    #[arg(short, long, requires = "install")]
    yes: bool,
}

impl Args {
    /// Tells whether anything is to be done with the file.
    pub(super) const fn is_asked(&self) -> bool {
        self.install || self.uninstall || self.show_unit
    }
}

/// Does it.
pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("install Kapi as a service")?;
    let location = UnitPath::new(context, args.kind.unwrap_or_else(ServiceKind::usual))?;
    if args.install {
        install(context, &location, args)
    } else if args.uninstall {
        uninstall(context, &location, args.disable)
    } else {
        show(context, &location)
    }
}

/// The file and where it goes.
struct UnitPath {
    unit: Unit,
    path: PathBuf,
    text: String,
    /// What is there now.
    found: Option<String>,
}

impl UnitPath {
    fn new(context: &Context, kind: ServiceKind) -> Result<Self, Error> {
        let root = kernel::root(context)?;
        let project = context.project(&root, "kapi up");
        let root = project.layout.root().to_path_buf();
        let name = |name: &str| context.env.get(OsStr::new(name)).cloned();
        let kept = ["PATH", "XDG_CONFIG_HOME"];
        let variables = kept
            .into_iter()
            .filter_map(|variable| Some((variable.to_owned(), name(variable)?)));
        let unit = Unit {
            kind,
            name: project_key(&root),
            program: context.self_exe.clone(),
            root,
            variables: variables.collect(),
            logs: context.home.join(".ilchul").join("logs"),
        };
        let text = unit.text().map_err(Error::usage)?;
        let config = context.config_path.parent().and_then(Path::parent);
        let config = config.unwrap_or(&context.home);
        let path = match kind {
            ServiceKind::Systemd => config.join("systemd/user").join(unit.file_name()),
            ServiceKind::Launchd => context
                .home
                .join("Library/LaunchAgents")
                .join(unit.file_name()),
        };
        let found = context.disk_text(&path)?;
        Ok(Self {
            unit,
            path,
            text,
            found,
        })
    }

    /// Refuses a file that somebody else wrote.
    fn require_ours(&self) -> Result<(), Error> {
        match &self.found {
            Some(text) if !Unit::is_ours(text) => {
                let text = format!("{} was not written by Kapi", self.path.display());
                Err(Error::new(Exit::Denied, text).with_hint("move it away first."))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Context {
    fn disk_text(&self, path: &Path) -> Result<Option<String>, Error> {
        use kapi_sys::disk::Disk as _;
        let bytes = self
            .disk
            .read(path, 0)
            .map_err(|error| Error::failed(&error))?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }
}

fn install(context: &Context, location: &UnitPath, args: &Args) -> Result<Exit, Error> {
    location.require_ours()?;
    if context.ui.format == Format::Human {
        context.ui.line(&format!("{}:", location.path.display()));
        context.ui.line("");
        context.ui.page(location.text.trim_end());
        context.ui.line("");
    }
    let is_there = location.found.as_deref() == Some(location.text.as_str());
    if !args.yes && !is_there {
        match context.ui.confirm("Write this file?") {
            Some(true) => {}
            Some(false) => return Err(Error::new(Exit::Denied, "the file was not written")),
            None => {
                return Err(Error::usage("there is no terminal to show the file on")
                    .with_hint("review it with `kapi up --show-unit`, then add `--yes`."));
            }
        }
    }
    if !is_there {
        let dir = location.path.parent().unwrap_or(&context.home);
        let failed = |error| Error::failed(&error);
        for dir in [dir, location.unit.logs.as_path()] {
            create_dir_durably(&context.disk, Path::new("/"), dir).map_err(failed)?;
        }
        replace_durably(&context.disk, &location.path, location.text.as_bytes()).map_err(failed)?;
    }
    if args.enable {
        for command in location.unit.enabling(&location.path) {
            tell_system(context, &command)?;
        }
    }
    match context.ui.format {
        Format::Json => context.ui.json(&json!({
            "type": "service_installed", "path": location.path, "text": location.text,
            "written": !is_there, "enabled": args.enable,
        })),
        Format::Human if args.enable => context.ui.line("It is installed and runs."),
        Format::Human => {
            context
                .ui
                .line("It is installed but not running. To start it:");
            for command in location.unit.enabling(&location.path) {
                context.ui.line(&format!("  {}", command.join(" ")));
            }
        }
    }
    Ok(Exit::Success)
}

fn uninstall(context: &Context, location: &UnitPath, disable: bool) -> Result<Exit, Error> {
    location.require_ours()?;
    if location.found.is_none() {
        let text = format!("{} does not exist", location.path.display());
        return Err(Error::new(Exit::NotFound, text));
    }
    if disable {
        for command in location.unit.disabling(&location.path) {
            tell_system(context, &command)?;
        }
    }
    std::fs::remove_file(&location.path).map_err(|error| {
        let text = format!("failed to remove {}: {error}", location.path.display());
        Error::new(Exit::Failed, text)
    })?;
    match context.ui.format {
        Format::Json => context.ui.json(&json!({
            "type": "service_uninstalled", "path": location.path, "disabled": disable,
        })),
        Format::Human => {
            context
                .ui
                .line(&format!("Removed {}.", location.path.display()));
            if !disable {
                context.ui.line("If it is running, stop it with:");
                for command in location.unit.disabling(&location.path) {
                    context.ui.line(&format!("  {}", command.join(" ")));
                }
            }
        }
    }
    Ok(Exit::Success)
}

fn show(context: &Context, location: &UnitPath) -> Result<Exit, Error> {
    location.require_ours()?;
    let state = match location.found.as_deref() {
        None => "not installed",
        Some(text) if text == location.text => "installed",
        Some(_) => "installed by another version of Kapi",
    };
    match context.ui.format {
        Format::Json => context.ui.json(&json!({
            "path": location.path, "text": location.text, "state": state,
            "installed": location.found.is_some(),
        })),
        Format::Human => {
            context
                .ui
                .say(&format!("{}: {state}", location.path.display()));
            context.ui.page(location.text.trim_end());
        }
    }
    Ok(Exit::Success)
}

/// Runs the system's own tool.
fn tell_system(context: &Context, command: &[String]) -> Result<(), Error> {
    let shown = command.join(" ");
    let failed = |why: String| Error::new(Exit::Failed, format!("failed to run `{shown}`: {why}"));
    let (name, args) = command
        .split_first()
        .ok_or_else(|| failed("it is empty".to_owned()))?;
    let path = context
        .env
        .get(OsStr::new("PATH"))
        .cloned()
        .unwrap_or_default();
    let program = process::find_in_path(OsStr::new(name), &path);
    let finished = process::run_quiet(Program {
        path: program.ok_or_else(|| failed("it is not on PATH".to_owned()))?,
        args: args.iter().map(OsString::from).collect(),
        env: context.env.clone().into_iter().collect::<BTreeMap<_, _>>(),
        cwd: context.home.clone(),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: TOOL_MAX,
            idle: None,
            tail_bytes_max: TOOL_BYTES_MAX,
            line_bytes_max: TOOL_BYTES_MAX,
        },
    })
    .map_err(|error| failed(error.to_string()))?;
    match finished.end {
        ProcessEnd::Exited(0) => Ok(()),
        _ => Err(failed(finished.stderr.text().trim().to_owned())),
    }
}
