//! What one experiment of a search costs besides the agent and the benchmark, beside pi-autoresearch.
//!
//! Read from the times in the log of a real search, whose agent is scripted and whose benchmark prints a
//! number: from an agent's answer to the next question.

mod peer;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use kapi_sys::disk::replace_durably;
use kapi_sys::real_disk::RealDisk;
use serde_json::Value;

use super::BenchDirectory;
use super::comparison::{Side, measured, not_run};
use super::options::Extra;
use super::sample::Pair;
use super::table::{ComparisonTable, Quantity};
use crate::output::talk;
use crate::tool::ToolCommand;

/// Experiments that count.
const ROUNDS: usize = 20;
/// Experiments before them.
const WARM_UP: usize = 3;

/// One experiment, in milliseconds.
struct ExperimentCost {
    /// From the agent's answer to the next question.
    whole: f64,
    /// The part of it in which nothing was performed: decided, recorded and written down.
    engine: f64,
}

/// Measures experiments of both.
pub(super) fn experiments(
    location: &BenchDirectory,
    extras: &[Extra],
) -> anyhow::Result<ComparisonTable> {
    let home = location
        .scratch
        .with_file_name("bench-peers")
        .join("pi-autoresearch");
    if extras.contains(&Extra::PiAutoresearch)
        && let Err(error) = peer::install(&home)
    {
        talk(&format!("warning: failed to {error:#}"));
    }
    let ours = ours(location)?;
    let checkout = location
        .scratch
        .ancestors()
        .find(|path| path.join("Cargo.lock").exists());
    let checkout = checkout.context("find the checkout above the scratch directory")?;
    let scratch = location.scratch.join("search-peer");
    let theirs = peer::experiments(checkout, &home, &scratch, WARM_UP + ROUNDS);
    let whole =
        "An experiment: two clean checkouts with a sandbox each, decision, proof of what is there";
    let engine = "The part of it that decides and records";
    let peer = format!("`run_experiment` and `log_experiment` of {}", peer::PACKAGE);
    let rows = match theirs {
        Ok(theirs) => {
            let (mut first, mut second) = (Pair::default(), Pair::default());
            for (ours, theirs) in ours.iter().zip(&theirs).skip(WARM_UP) {
                first.add_numbers(ours.whole / 1e3, theirs / 1e3);
                second.add_numbers(ours.engine / 1e3, theirs / 1e3);
            }
            vec![
                measured(whole, &peer, first),
                measured(engine, &peer, second),
            ]
        }
        Err(error) => {
            let reason = format!("{error:#}");
            vec![
                not_run(whole, &peer, &reason, Side::Peer),
                not_run(engine, &peer, &reason, Side::Peer),
            ]
        }
    };
    Ok(ComparisonTable {
        title: "An experiment",
        note: "What a search adds to an experiment whose benchmark and checks do nothing, without the agent's turn. \
               Every record of ours is synced to the disk before it counts, scripts run in fresh sandboxes on \
               clean checkouts, and the worktree is proved to be what was decided; pi-autoresearch runs the script \
               in place, appends a line and calls git. It was wanted that ours is at most a tenth."
            .to_owned(),
        quantity: Quantity::Time,
        rows,
    })
}

/// Makes a whole search and returns what each of its experiments took.
fn ours(location: &BenchDirectory) -> anyhow::Result<Vec<ExperimentCost>> {
    let directory = location.scratch.join("search");
    let home = directory.join("home");
    let repository = directory.join("repository");
    for made in [&home, &repository.join("src")] {
        fs::create_dir_all(made).with_context(|| format!("create {}", made.display()))?;
    }
    let write = |path: &Path, text: &str| replace_durably(&RealDisk, path, text.as_bytes());
    write(&repository.join("src/number"), "0\n")?;
    let script = directory.join("researcher.yaml");
    write(&script, &researcher(WARM_UP + ROUNDS))?;
    let tool = |program: &str, args: &[&str]| {
        ToolCommand::new(&repository, program, args)
            .env("HOME", &home)
            .env("KAPI_SESSION", "bench")
            .without_stdout()
    };
    let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
    tool("git", &["init", "--quiet", "--initial-branch=main"]).run()?;
    tool("git", &["add", "--all"]).run()?;
    let commit = [&identity[..], &["commit", "--quiet", "--message=base"]].concat();
    tool("git", &commit).run()?;
    let kapi = location.kapi.to_string_lossy();
    let agent = format!("script:{}", script.display());
    let n_runs = (WARM_UP + ROUNDS).to_string();
    let start = [
        "autoresearch",
        "count",
        "--unlinked",
        "--no-drive",
        "--agent",
        &agent,
        "--metric",
        "n",
        "--direction",
        "higher",
        "--benchmark",
        "echo METRIC n=$(cat src/number)",
        "--checks",
        "true",
        "--scope",
        "src",
        "--off-limits",
        "bench",
        "--runs",
        &n_runs,
        "--failures",
        &n_runs,
    ];
    tool(&kapi, &start).run()?;
    tool(&kapi, &["autoresearch", "approve", "1", "--yes"]).run()?;
    tool(&kapi, &["autoresearch", "resume", "1"]).run()?;
    let log = repository.join(".ilchul/workflows/autoresearch/001-count/events.jsonl");
    let text = fs::read_to_string(&log).with_context(|| format!("read {}", log.display()))?;
    costs(&text)
}

/// Returns a script of an agent that keeps and loses by turns.
fn researcher(n: usize) -> String {
    let steps = (1..=n).map(|number| {
        let value = if number.is_multiple_of(2) { number } else { 0 };
        format!(
            "    - steps:\n        - write: {{path: src/number, content: \"{value}\\n#{number}\\n\"}}\n        \
             - answer: {{hypothesis: more, description: number {number}}}\n"
        )
    });
    format!(
        "turns: []\nroles:\n  researcher:\n{}",
        steps.collect::<String>()
    )
}

/// Reads what each experiment took from the times of the log.
fn costs(log: &str) -> anyhow::Result<Vec<ExperimentCost>> {
    let mut begun: BTreeMap<String, f64> = BTreeMap::new();
    let mut costs = Vec::new();
    let mut answered = None;
    let mut performed = 0.0;
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).context("read an event")?;
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let effect = event["data"]["effect"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let at = clock_ms(&text("at"))?;
        let is_proposal = effect.contains("researcher");
        match text("type").as_str() {
            "effect_intended" if is_proposal => {
                if let Some(from) = answered.take() {
                    let whole: f64 = at - from;
                    costs.push(ExperimentCost {
                        whole,
                        engine: whole - performed,
                    });
                }
                performed = 0.0;
            }
            "effect_intended" => {
                begun.insert(effect, at);
            }
            "effect_ended" if is_proposal => answered = Some(at),
            "effect_ended" => {
                if let Some(from) = begun.remove(&effect) {
                    performed += at - from;
                }
            }
            _ => {}
        }
    }
    ensure!(!costs.is_empty(), "find experiments in the log");
    Ok(costs)
}

/// Returns the milliseconds of the day of `2026-11-26T03:10:11.123Z`; a search over midnight is measured
/// again.
fn clock_ms(at: &str) -> anyhow::Result<f64> {
    let time = at
        .split_once('T')
        .map(|(_, time)| time.trim_end_matches('Z'));
    let mut parts = time.unwrap_or_default().split(':').map(str::parse::<f64>);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Ok(hours)), Some(Ok(minutes)), Some(Ok(seconds))) => {
            Ok(((hours * 60.0 + minutes) * 60.0 + seconds) * 1e3)
        }
        _ => bail!("read {at:?} as a time"),
    }
}

#[cfg(test)]
mod tests {
    use super::costs;

    fn line(at: &str, kind: &str, effect: &str) -> String {
        format!(
            "{{\"at\":\"2026-11-26T03:00:{at}Z\",\"type\":\"{kind}\",\"data\":{{\"effect\":\"{effect}\"}}}}\n"
        )
    }

    #[test]
    fn an_experiment_is_from_an_answer_to_the_next_question() {
        let log = [
            line("01.000", "effect_intended", "t001-researcher-a1"),
            line("02.000", "effect_ended", "t001-researcher-a1"),
            line("02.010", "effect_intended", "t001-measure-a2"),
            line("02.110", "effect_ended", "t001-measure-a2"),
            line("02.130", "effect_intended", "t001-keep-a1"),
            line("02.150", "effect_ended", "t001-keep-a1"),
            line("02.160", "effect_intended", "t001-researcher-a2"),
        ]
        .concat();
        let found = costs(&log).unwrap();
        assert_eq!(found.len(), 1);
        assert!((found[0].whole - 160.0).abs() < 1e-6);
        assert!((found[0].engine - 40.0).abs() < 1e-6);
    }
}
