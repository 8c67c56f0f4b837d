//! What looking on costs: the processor time of `kapi run` in a terminal of tmux, with its live view
//! and as lines, beside a program that is known to be frugal.
//!
//! The agent is scripted and uses a tool each second; its own time is not counted.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context as _, bail};

use super::BenchDirectory;
use super::comparison::measured;
use super::process_table::{self, Process};
use super::sample::Pair;
use super::table::{ComparisonTable, Quantity};
use crate::tool::ToolCommand;

/// How long each program is watched.
const WATCHED: Duration = Duration::from_secs(20);
/// How long it has to come to its work.
const SETTLING: Duration = Duration::from_secs(5);
/// The longest until a program has started.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);
/// Rounds that count.
const ROUNDS: usize = 5;
/// Tools that the agent uses: for longer than it is watched.
const N_TOOLS: usize = 60;
/// The kernel's ticks in a second, as `/proc` counts them on Linux.
const TICKS: f64 = 100.0;

/// Measures the live view of a goal.
pub(super) fn watching(location: &BenchDirectory) -> anyhow::Result<ComparisonTable> {
    let directory = location.scratch.join("screen");
    make_project(&directory)?;
    let script = directory.join("agent.yaml");
    let run = format!(
        "exec {} run 'look busy' --verify 'sh test.sh' --agent script:{} --judge none --yes",
        location.kapi.display(),
        script.display()
    );
    let (mut lines, mut top) = (Pair::default(), Pair::default());
    for _ in 0..ROUNDS {
        let view = cpu_seconds(&directory, &run, &[])?;
        lines.add_numbers(view, cpu_seconds(&directory, &run, &["KAPI_PLAIN=1"])?);
        let view = cpu_seconds(&directory, &run, &[])?;
        top.add_numbers(view, cpu_seconds(&directory, "exec top -d 1", &[])?);
    }
    let ours = "`kapi run`, live view";
    Ok(ComparisonTable {
        title: "Looking on",
        note: format!(
            "Processor time of the process itself in {} seconds, in a terminal of 200 columns, while an agent uses a tool each second: one per cent of a core is 200 ms. Everything that `kapi run` does is in both lines; the view costs the difference.",
            WATCHED.as_secs()
        ),
        quantity: Quantity::Time,
        rows: vec![
            measured(ours, "`kapi run`, lines", lines),
            measured(ours, "`top -d 1`", top),
        ],
    })
}

fn make_project(directory: &Path) -> anyhow::Result<()> {
    let project = directory.join("project");
    for path in [&project, &directory.join("home")] {
        fs::create_dir_all(path).with_context(|| format!("create {}", path.display()))?;
    }
    let steps = "      - bash: sleep 1; cat test.sh\n".repeat(N_TOOLS);
    let script = format!("turns:\n  - steps:\n{steps}");
    for (path, text) in [
        (directory.join("agent.yaml"), script.as_str()),
        (project.join("test.sh"), "exit 1\n"),
    ] {
        kapi_sys::disk::replace_durably(&kapi_sys::real_disk::RealDisk, &path, text.as_bytes())
            .with_context(|| format!("write {}", path.display()))?;
    }
    let git = |args: &[&str]| ToolCommand::new(&project, "git", args).run();
    git(&["init", "--quiet", "--initial-branch", "main"])?;
    git(&["add", "--all"])?;
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@localhost"];
    git(&[&identity[..], &["commit", "--quiet", "--message", "base"]].concat())
}

/// Runs a line in a terminal of its own, and returns the processor time that its program took while
/// it was watched.
fn cpu_seconds(directory: &Path, line: &str, vars: &[&str]) -> anyhow::Result<f64> {
    // A server that was told to end may still listen: the next one gets a socket of its own.
    let sockets = tempfile::tempdir_in(directory).context("make a directory for a socket")?;
    let socket = sockets.path().join("tmux").display().to_string();
    let project = directory.join("project");
    let pid_file = directory.join("pid");
    drop(fs::remove_file(&pid_file));
    let home = format!("HOME={}", directory.join("home").display());
    let line = format!("echo $$ > {}; {line}", pid_file.display());
    let begin = ["-u", "-f", "/dev/null", "-S", &socket, "new-session", "-d"];
    let size = ["-x", "200", "-y", "50", "-e", &home];
    let vars: Vec<&str> = vars.iter().flat_map(|var| ["-e", var]).collect();
    let words = [&begin[..], &size, &vars, &[&line]].concat();
    ToolCommand::new(&project, "tmux", &words).run()?;
    let watched = watch(&pid_file);
    let end = ["-S", &socket, "kill-server"];
    ToolCommand::new(&project, "tmux", &end).run()?;
    watched
}

fn watch(pid_file: &Path) -> anyhow::Result<f64> {
    let process = started(pid_file)?;
    thread::sleep(SETTLING);
    let before = process_table::cpu_ticks(&process)?;
    thread::sleep(WATCHED);
    let ticks = process_table::cpu_ticks(&process)?.saturating_sub(before);
    // A program that took less than a tick took no time that could be told.
    let ticks = u32::try_from(ticks.max(1)).context("count the ticks")?;
    Ok(f64::from(ticks) / TICKS)
}

fn started(pid_file: &Path) -> anyhow::Result<Process> {
    let began = Instant::now();
    loop {
        let pid = fs::read_to_string(pid_file).ok();
        let pid = pid.and_then(|text| text.trim().parse().ok());
        if let Some(process) = pid.and_then(process_table::find) {
            return Ok(process);
        }
        if began.elapsed() > PATIENCE {
            bail!("start a program in a terminal of tmux");
        }
        thread::sleep(PAUSE);
    }
}
