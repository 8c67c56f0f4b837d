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

use self::peer::PeerCost;
use super::BenchDirectory;
use super::comparison::{Side, measured, not_run};
use super::options::Extra;
use super::sample::Pair;
use super::table::{ComparisonTable, Quantity};
use crate::output::talk;
use crate::tool::ToolCommand;

/// Searches of ours, and as many of the peer's, by turns.
const TURNS: usize = 4;
/// Experiments of a search that count.
const ROUNDS: usize = 10;
/// Experiments before them.
const WARM_UP: usize = 2;

/// One experiment, in milliseconds.
struct ExperimentCost {
    /// From the agent's answer to the next question.
    whole: f64,
    /// The part of it in which scripts are run on clean checkouts.
    measured: f64,
    /// The part of it in which nothing is performed: decided, recorded and written down.
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
    let checkout = location
        .scratch
        .ancestors()
        .find(|path| path.join("Cargo.lock").exists());
    let checkout = checkout.context("find the checkout above the scratch directory")?;
    let mut rows = ROWS.map(|row| (row, Pair::default()));
    let mut missing = None;
    for turn in 0..TURNS {
        let ours = ours(location, turn)?;
        let scratch = location.scratch.join(format!("search-peer-{turn}"));
        match peer::experiments(checkout, &home, &scratch, WARM_UP + ROUNDS) {
            Ok(theirs) => rows.iter_mut().for_each(|(row, pair)| {
                for (ours, theirs) in ours.iter().zip(&theirs).skip(WARM_UP) {
                    pair.add_numbers((row.ours)(ours) / 1e3, (row.peer)(theirs) / 1e3);
                }
            }),
            Err(error) => missing = Some(format!("{error:#}")),
        }
    }
    let rows = rows.into_iter().map(|(row, pair)| match &missing {
        None => measured(row.name, &row.peer_name(), pair),
        Some(reason) => not_run(row.name, &row.peer_name(), reason, Side::Peer),
    });
    Ok(ComparisonTable {
        title: "An experiment",
        note: "What a search adds to an experiment whose benchmark and checks do nothing, without the agent's turn; \
               every second one is kept. Every record of ours is synced to the disk before it counts, scripts run \
               in fresh sandboxes on clean checkouts with a sealed input, and the worktree is proved to be what was \
               decided; pi-autoresearch runs the scripts in place, appends a line and calls git."
            .to_owned(),
        quantity: Quantity::Time,
        rows: rows.collect(),
    })
}

/// A part of an experiment in both.
#[derive(Clone, Copy)]
struct ExperimentPart {
    name: &'static str,
    ours: fn(&ExperimentCost) -> f64,
    /// What of pi-autoresearch it is compared with.
    of_peer: &'static str,
    peer: fn(&PeerCost) -> f64,
}

impl ExperimentPart {
    fn peer_name(self) -> String {
        format!("{} of {}", self.of_peer, peer::PACKAGE)
    }
}

const ROWS: [ExperimentPart; 4] = [
    ExperimentPart {
        name: "A whole experiment",
        ours: |cost| cost.whole,
        of_peer: "`run_experiment` and `log_experiment`",
        peer: PeerCost::whole,
    },
    ExperimentPart {
        name: "The part that measures: benchmark and checks, each on a clean checkout in a sandbox",
        ours: |cost| cost.measured,
        of_peer: "`run_experiment`",
        peer: |cost| cost.run,
    },
    ExperimentPart {
        name: "The rest: decide, record, keep or put back, prove it",
        ours: |cost| cost.whole - cost.measured,
        of_peer: "`log_experiment`",
        peer: |cost| cost.log,
    },
    ExperimentPart {
        name: "Of the rest, what decides and records",
        ours: |cost| cost.engine,
        of_peer: "`run_experiment` and `log_experiment`",
        peer: PeerCost::whole,
    },
];

/// Makes a whole search and returns what each of its experiments took.
fn ours(location: &BenchDirectory, turn: usize) -> anyhow::Result<Vec<ExperimentCost>> {
    let directory = location.scratch.join(format!("search-{turn}"));
    let home = directory.join("home");
    let repository = directory.join("repository");
    for made in [&home, &repository.join("src"), &repository.join("bench")] {
        fs::create_dir_all(made).with_context(|| format!("create {}", made.display()))?;
    }
    let write = |path: &Path, text: &str| replace_durably(&RealDisk, path, text.as_bytes());
    write(&repository.join("src/number"), "0\n")?;
    write(&repository.join("bench/input"), "1\n")?;
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
        "read n < src/number; echo METRIC n=$n",
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
    // The baseline is kept, too.
    let n_kept = text.matches("\"status\":\"keep\"").count();
    ensure!(
        n_kept == 1 + (WARM_UP + ROUNDS) / 2,
        "keep every second experiment: {n_kept} were kept"
    );
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
    let (mut performed, mut measured) = (0.0, 0.0);
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).context("read an event")?;
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let effect = event["data"]["effect"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let at = clock_ms(&text("at"))?;
        let is_proposal = effect.contains("researcher");
        let is_measurement = effect.contains("-measure");
        match text("type").as_str() {
            "effect_intended" if is_proposal => {
                if let Some(from) = answered.take() {
                    let whole: f64 = at - from;
                    costs.push(ExperimentCost {
                        whole,
                        measured,
                        engine: whole - performed,
                    });
                }
                (performed, measured) = (0.0, 0.0);
            }
            "effect_intended" => {
                begun.insert(effect, at);
            }
            "effect_ended" if is_proposal => answered = Some(at),
            "effect_ended" => {
                let took = begun.remove(&effect).map_or(0.0, |from| at - from);
                performed += took;
                measured += if is_measurement { took } else { 0.0 };
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
        assert!((found[0].measured - 100.0).abs() < 1e-6);
        assert!((found[0].engine - 40.0).abs() < 1e-6);
    }
}
