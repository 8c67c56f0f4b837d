//! The population of executors under three sets of rules, printed.
//!
//! Who works, and what it comes to, is kapi-testkit's; here it is only shown.

use anyhow::{Context as _, bail, ensure};
use kapi_testkit::converge::{ConvergenceRules, converge};

use crate::output::say;

/// Executors in one population.
const EXECUTORS: u32 = 1_000;

const PREAMBLE: &str = "\
Each executor works at one goal of one to six pieces, for 20 turns at most. In a quarter of the
goals the checks miss the last piece, so that only a judge can see that it is missing.
  false done    accepted though a piece is missing
  honest lost   could have got there and was not accepted
  wasted        turns after the last one that brought work or was accepted (the first always counts)
The judge of quoted evidence believes a plausible lie in 50 % of cases and one that tells it what to
answer in 90 %; 3 % of its answers cannot be parsed and pass. Ours sees the change and the checks
that Kapi ran; 3 % of its answers cannot be parsed either, and are asked again.
";

/// Prints the table of `--seeds N` populations (default 1).
///
/// # Errors
/// When the options cannot be read, or when our own rules accept a false done or lose an honest
/// executor.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let seeds: u64 = match words {
        [] => 1,
        ["--seeds", number] => number
            .parse()
            .with_context(|| format!("read {number:?} as a number"))?,
        _ => bail!("read the options: give `--seeds N` or nothing"),
    };
    say(PREAMBLE);
    for seed in 1..=seeds {
        let table = converge(seed, EXECUTORS)?;
        say(&format!("seed {seed}\n{table}"));
        let ours = table.total(ConvergenceRules::Kapi);
        ensure!(
            ours.false_done == 0 && ours.honest_lost == 0,
            "converge: seed {seed} has {} false done and {} honest lost",
            ours.false_done,
            ours.honest_lost
        );
    }
    Ok(())
}
