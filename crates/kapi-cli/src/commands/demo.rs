//! `kapi demo`: the main job on a made-up repository, with nothing needed but git.
//!
//! The agent and the judge are scripted and say so; the repository, the sandbox, the checks, the
//! refusals and the proof are the real ones, made by the same code as `kapi run`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kapi_core::quote::shell_word;
use kapi_sys::clock::{Clock as _, SystemClock};
use kapi_sys::disk;
use kapi_sys::process::{self, ProcessEnd, ProcessLimits, Program};
use kapi_sys::real_disk::RealDisk;

use crate::config::deliver::DeliverArgs;
use crate::config::notify::NotifyArgs;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::run_line;

const ADD: &str = include_str!("../demo/add.sh");
const TEST: &str = include_str!("../demo/test.sh");
const AGENT: &str = include_str!("../demo/agent.yaml");
const JUDGE: &str = include_str!("../demo/judge.yaml");

/// The longest one git command of the demo may take.
const GIT_DEADLINE: Duration = Duration::from_secs(30);

/// Options of `kapi demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory to create for the demo; must not exist
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Shows the main job.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("start a goal")?;
    let root = match &args.dir {
        Some(dir) => context.cwd.join(dir),
        None => unused_dir(),
    };
    let repository = root.join("sums");
    let home = root.join("home");
    furnish(context, &root, &repository, &home)?;
    let ui = context.ui;
    ui.say("The agent and the judge of this demo are scripted. Everything else is real: the");
    ui.say("repository, the sandbox, the checks, the refusals, the proof and the commit.");
    ui.say(&format!("Everything is in {}.", root.display()));
    ui.say("");
    ui.say("add.sh should add but subtracts, so test.sh fails. The agent will first claim that it");
    ui.say("is done, then change the test, and only then fix the bug:");
    ui.say("");
    ui.say(
        "  kapi run \"make the tests pass\" --verify \"sh test.sh\" --agent script:agent.yaml \\",
    );
    ui.say("    --judge script:judge.yaml --type fix --yes");
    ui.say("");
    let exit = run_there(context, &root, &repository, &home)?;
    ui.say("");
    ui.say("Look around:");
    let typed = |path: &Path| shell_word(&path.display().to_string());
    ui.say(&format!(
        "  cd {} && git log --oneline --all",
        typed(&repository)
    ));
    ui.say(&format!(
        "  cd {} && HOME={} {} show 1",
        typed(&repository),
        typed(&home),
        own_name(context)
    ));
    ui.say(&format!("  rm -rf {}", typed(&root)));
    Ok(exit)
}

/// Returns how this program is typed: whoever tries it with `cargo run` has none on `PATH`.
fn own_name(context: &Context) -> String {
    let is_on_path = process::find_in_path(OsStr::new("kapi"), &path_of(context)).is_some();
    if is_on_path {
        "kapi".to_owned()
    } else {
        shell_word(&context.self_exe.display().to_string())
    }
}

fn path_of(context: &Context) -> OsString {
    let path = context.env.get(OsStr::new("PATH"));
    path.cloned().unwrap_or_default()
}

fn run_there(
    context: &Context,
    root: &Path,
    repository: &Path,
    home: &Path,
) -> Result<Exit, Error> {
    let agent = format!("script:{}", root.join("agent.yaml").display());
    let judge = format!("script:{}", root.join("judge.yaml").display());
    let line = [
        "kapi",
        "run",
        "make the tests pass",
        "--verify",
        "sh test.sh",
        "--agent",
        &agent,
        "--judge",
        &judge,
        "--type",
        "fix",
        "--yes",
    ];
    let there = Context {
        ui: context.ui,
        env: context.env.clone(),
        cwd: repository.to_path_buf(),
        home: home.to_path_buf(),
        self_exe: context.self_exe.clone(),
        actor: context.actor.clone(),
        disk: RealDisk,
        clock: SystemClock,
        config_path: home.join("config.toml"),
        store: None,
        notify: NotifyArgs::default(),
        deliver: DeliverArgs::default(),
        registries: Arc::default(),
    };
    run_line(&there, line)
}

fn unused_dir() -> PathBuf {
    let name = format!("kapi-demo-{}-{}", std::process::id(), SystemClock.now_ms());
    std::env::temp_dir().join(name)
}

fn furnish(context: &Context, root: &Path, repository: &Path, home: &Path) -> Result<(), Error> {
    if root.exists() {
        return Err(Error::usage(format!("{} exists already", root.display()))
            .with_hint("name a directory that does not exist with `--dir`."));
    }
    let git_binary = process::find_in_path(OsStr::new("git"), &path_of(context));
    let git_binary = git_binary.ok_or_else(|| {
        Error::new(Exit::Failed, "failed to find git on PATH")
            .with_hint("install git 2.34 or newer.")
    })?;
    for dir in [repository, home] {
        fs::create_dir_all(dir).map_err(|error| {
            Error::new(
                Exit::Failed,
                format!("failed to create {}: {error}", dir.display()),
            )
        })?;
    }
    let files = [
        (repository.join("add.sh"), ADD),
        (repository.join("test.sh"), TEST),
        (root.join("agent.yaml"), AGENT),
        (root.join("judge.yaml"), JUDGE),
    ];
    for (path, content) in files {
        disk::replace_durably(&RealDisk, &path, content.as_bytes())
            .map_err(|error| Error::failed(&error))?;
    }
    let git = |args: &[&str]| git(context, &git_binary, repository, args);
    git(&["init", "--quiet", "--initial-branch", "main"])?;
    git(&["add", "add.sh", "test.sh"])?;
    git(&["commit", "--quiet", "--message", "feat: sums, with a bug"])
}

fn git(context: &Context, binary: &Path, repository: &Path, args: &[&str]) -> Result<(), Error> {
    let identity = [
        ("PATH", path_of(context).to_string_lossy().into_owned()),
        ("HOME", repository.display().to_string()),
        ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
        ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
        ("GIT_AUTHOR_NAME", "Kapi demo".to_owned()),
        ("GIT_AUTHOR_EMAIL", "demo@localhost".to_owned()),
        ("GIT_COMMITTER_NAME", "Kapi demo".to_owned()),
        ("GIT_COMMITTER_EMAIL", "demo@localhost".to_owned()),
    ];
    let env: BTreeMap<OsString, OsString> = identity
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let program = Program {
        path: binary.to_path_buf(),
        args: args.iter().map(OsString::from).collect(),
        env,
        cwd: repository.to_path_buf(),
        stdin: Vec::new(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: GIT_DEADLINE,
            idle: None,
            tail_bytes_max: 4096,
            line_bytes_max: 4096,
        },
    };
    let finished = process::run_quiet(program).map_err(|error| Error::failed(&error))?;
    if finished.end == ProcessEnd::Exited(0) {
        Ok(())
    } else {
        let stderr = finished.stderr.text();
        Err(Error::new(
            Exit::Failed,
            format!("failed to run git {}: {stderr}", args.join(" ")),
        ))
    }
}
