//! The crash simulator, for longer than a test may take.
//!
//! Simulating and judging are kapi-testkit's; here are only seeds, and what is said about them.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, bail};
use kapi_testkit::launch_sim;
use kapi_testkit::launch_sim::LaunchTally;
use kapi_testkit::sim::{Effort, SimOptions, SimTally, simulate};
use kapi_testkit::workflow_sim::kinds::every_kind;
use kapi_testkit::workflow_sim::{FailureModes, WorkflowTally, crash_everywhere};

use crate::output::say;
use crate::tool::ToolCommand;

/// What can be asked for.
const OPTIONS: &str = "`--seeds N`, `--seed N`, `--pairs N`, `--workflows N` or `--launches N`";
/// Every crash that comes first, each followed by one more during the recovery.
const FIRST: SimOptions = SimOptions {
    effort: Effort::EveryFirst,
    mistake: None,
};
/// Every crash that comes first, each followed by every other one.
const PAIRS: SimOptions = SimOptions {
    effort: Effort::EveryPair(1),
    mistake: None,
};

/// Simulates what the words ask for: `--seeds N`, `--seed N`, `--pairs N` for a seed with every pair
/// of crashes, or `--workflows N` and `--launches N` for workflows and launches that are cut off at one
/// disk operation in N.
///
/// # Errors
/// When an oracle complains, naming the seed; or when the words cannot be read.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let (option, number) = match words {
        [option, number] => (*option, *number),
        _ => bail!("read the options: give {OPTIONS}"),
    };
    let number: u64 = number
        .parse()
        .with_context(|| format!("read {number:?} as a number"))?;
    if option == "--workflows" {
        return workflows(root, number);
    }
    if option == "--launches" {
        return launches(root, number);
    }
    let (seeds, options, again) = match option {
        "--seeds" => (0..number, FIRST, "--seed"),
        "--seed" => (number..number.saturating_add(1), FIRST, option),
        "--pairs" => (number..number.saturating_add(1), PAIRS, option),
        _ => bail!("read the option {option:?}: give {OPTIONS}"),
    };
    if cfg!(debug_assertions) {
        return released(root, words);
    }
    let started = Instant::now();
    let mut total = SimTally::default();
    for seed in seeds {
        let tally = simulate(seed, &options).with_context(|| {
            format!("keep the promises under seed {seed}; show it again with `cargo xtask sim {again} {seed}`")
        })?;
        total.cases += tally.cases;
        total.crashes += tally.crashes;
    }
    let SimTally { cases, crashes, .. } = total;
    if cases == 0 {
        bail!("simulate anything: {option} {number} makes no case");
    }
    let seconds = started.elapsed().as_secs_f64();
    say(&format!(
        "{cases} cases with {crashes} crashes in {seconds:.1} s: every promise kept."
    ));
    Ok(())
}

/// Lets the power fail under an interview, the build that comes of it and a rough one, in each of four
/// ways.
fn workflows(root: &Path, one_in: u64) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return released(root, &["--workflows", &one_in.to_string()]);
    }
    let started = Instant::now();
    let tally = crash_everywhere(one_in, FailureModes::All, None).context("keep the promises")?;
    let seconds = started.elapsed().as_secs_f64();
    let WorkflowTally {
        cases,
        crashes,
        ops,
        kinds,
    } = tally;
    say(&format!(
        "{cases} cases with {crashes} crashes of stories of {ops} operations in {seconds:.1} s: every \
         promise kept. The stories have {} of {} kinds of events: {}.",
        kinds.len(),
        every_kind().len(),
        kinds.into_iter().collect::<Vec<_>>().join(", ")
    ));
    Ok(())
}

/// Lets the power fail under the launches of a sandbox, in each of four ways.
fn launches(root: &Path, one_in: u64) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return released(root, &["--launches", &one_in.to_string()]);
    }
    let started = Instant::now();
    let tally = launch_sim::crash_everywhere(one_in, None).context("keep the promises")?;
    let seconds = started.elapsed().as_secs_f64();
    let LaunchTally {
        cases,
        crashes,
        ops,
        kinds,
    } = tally;
    say(&format!(
        "{cases} cases with {crashes} crashes of a story of {ops} operations in {seconds:.1} s: every \
         promise kept. The story has {} of {} kinds of events.",
        kinds.len(),
        launch_sim::KINDS.len(),
    ));
    Ok(())
}

/// Runs this again, built as the product is: it takes long.
fn released(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let args = [
        "run",
        "--release",
        "--locked",
        "--quiet",
        "--package",
        "xtask",
        "--",
        "sim",
    ];
    ToolCommand::new(root, "cargo", &[&args[..], words].concat()).run()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::run;

    #[test]
    fn words_that_mean_nothing_are_refused() {
        for words in [
            &[][..],
            &["--seeds"],
            &["--seeds", "many"],
            &["--week", "3"],
        ] {
            let error = run(Path::new("/nonexistent"), words)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("read "), "{words:?}: {error}");
        }
    }
}
