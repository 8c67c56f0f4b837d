//! Removes what is left of containers: only ever what carries our label, found by it and by nothing
//! else.
//!
//! Does not know why something was left.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kapi_sys::process::{ProcessEnd, ProcessLimits, Program, run_quiet};

use super::error::PodmanError;
use super::host::PodmanHost;
use super::monitor;
use super::options::{PodmanOptions, Volume};

/// The label of every container of ours.
pub(super) const MANAGED: &str = "kapi.managed=true";
/// The label with the name of a container's directory.
pub(super) const RUN_DIRECTORY: &str = "kapi.room";

/// How long one podman command may take.
const COMMAND_DEADLINE: Duration = Duration::from_secs(60);
/// How long the removal of one container may take.
const REMOVAL_MS: u64 = 20_000;
/// Bytes of a podman command's output that are kept.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// Returns the name of a layer's volume.
pub(super) fn layer_volume(directory: &str, index: usize) -> String {
    format!("kapi-layer-{directory}-{index}")
}

/// Kills and removes the container of a directory, if there is one.
///
/// Asks until podman knows of none and nobody is left of its making: one that was being made when its
/// maker died may still appear while it is asked.
pub(super) fn remove_container(
    host: &PodmanHost,
    directory: &str,
    sandbox: &str,
    is_deserted: &dyn Fn() -> bool,
) -> Result<(), PodmanError> {
    let started = Instant::now();
    let label = format!("label={RUN_DIRECTORY}={directory}");
    let managed = format!("label={MANAGED}");
    let question = [
        "ps",
        "--all",
        "--quiet",
        "--no-trunc",
        "--filter",
        &label,
        "--filter",
        &managed,
    ];
    let mut seen = BTreeSet::new();
    loop {
        let answer = ask(host, "ps", &question)?;
        let ids: Vec<&str> = answer.split_whitespace().collect();
        seen.extend(ids.iter().map(|id| (*id).to_owned()));
        seen.iter().for_each(|id| monitor::end(host, id));
        if ids.is_empty() && !is_deserted() {
            // Podman forgot it while it was being made; only the name is left to know it by.
            monitor::end(host, &format!("kapi-{sandbox}"));
        }
        if ids.is_empty() && is_deserted() {
            return Ok(());
        }
        for id in &ids {
            // It may go away by itself at the same moment; the next question tells.
            match ask(
                host,
                "rm",
                &["rm", "--force", "--time", "0", "--volumes", id],
            ) {
                Ok(_) | Err(PodmanError::Said { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        if started.elapsed() > Duration::from_millis(REMOVAL_MS) {
            return Err(PodmanError::Remains {
                name: seen.into_iter().collect::<Vec<_>>().join(" "),
                waited_ms: REMOVAL_MS,
            });
        }
    }
}

/// Removes what podman set aside for a container of this name and never came to list.
///
/// It bears no label yet, so it is known by the name alone, and only while podman lists no container
/// of that name.
pub(super) fn remove_unlisted(host: &PodmanHost, name: &str) -> Result<(), PodmanError> {
    let filter = format!("name=^kapi-{name}$");
    let question = ["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter];
    if !ask(host, "ps", &question)?.trim().is_empty() {
        return Ok(());
    }
    let wide = ask(host, "ps", &[&question[..], &["--external"]].concat())?;
    for id in wide.split_whitespace() {
        ask(host, "rm", &["rm", "--force", "--time", "0", id])?;
    }
    Ok(())
}

/// Removes the volumes that held the layers of a directory; what was written stays in the upper directory.
pub(super) fn remove_layers(host: &PodmanHost, directory: &str) -> Result<(), PodmanError> {
    let begin = layer_volume(directory, 0);
    let begin = begin.trim_end_matches('0');
    let names = ask(host, "volume ls", &["volume", "ls", "--quiet"])?;
    let ours: Vec<&str> = names
        .split_whitespace()
        .filter(|name| name.starts_with(begin))
        .collect();
    if ours.is_empty() {
        return Ok(());
    }
    let mut args = vec!["volume", "rm", "--force"];
    args.extend(ours);
    ask(host, "volume rm", &args).map(|_| ())
}

/// Removes layer volumes whose names are known.
pub(super) fn remove_known_layers(host: &PodmanHost, names: &[String]) -> Result<(), PodmanError> {
    if names.is_empty() {
        return Ok(());
    }
    let mut args = vec!["volume", "rm", "--force"];
    args.extend(names.iter().map(String::as_str));
    ask(host, "volume rm", &args).map(|_| ())
}

/// Removes named volumes with what they hold; one that does not exist is as good as removed.
pub fn remove_volumes(options: &PodmanOptions) -> Result<(), PodmanError> {
    options.check()?;
    let host = PodmanHost::observe()?;
    let known = ask(&host, "volume ls", &["volume", "ls", "--quiet"])?;
    let known: Vec<&str> = known.split_whitespace().collect();
    let mut args = vec!["volume", "rm"];
    let names = options
        .volumes
        .iter()
        .map(|Volume { name, .. }| name.as_str());
    args.extend(names.filter(|name| known.contains(name)));
    if args.len() == 2 {
        return Ok(());
    }
    ask(&host, "volume rm", &args).map(|_| ())
}

/// Runs a short podman command and returns what it printed.
pub(super) fn ask(
    host: &PodmanHost,
    command: &'static str,
    args: &[&str],
) -> Result<String, PodmanError> {
    let program = podman(
        host,
        &[],
        args.iter().map(OsString::from).collect(),
        COMMAND_DEADLINE,
    );
    let finished = run_quiet(program).map_err(|source| PodmanError::Run {
        command,
        source: Box::new(source),
    })?;
    if finished.end == ProcessEnd::Exited(0) {
        return Ok(finished.stdout.text());
    }
    let output = finished.stderr.text();
    let output = if output.trim().is_empty() {
        format!("{:?}", finished.end)
    } else {
        output.trim().to_owned()
    };
    Err(PodmanError::Said { command, output })
}

/// Returns a podman command as a program.
pub(super) fn podman(
    host: &PodmanHost,
    stdin: &[u8],
    args: Vec<OsString>,
    deadline: Duration,
) -> Program {
    let env: BTreeMap<OsString, OsString> = host.env.clone();
    Program {
        path: host.podman.clone(),
        args,
        env,
        cwd: PathBuf::from("/"),
        stdin: stdin.to_vec(),
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline,
            idle: None,
            tail_bytes_max: OUTPUT_BYTES_MAX,
            line_bytes_max: OUTPUT_BYTES_MAX,
        },
    }
}
