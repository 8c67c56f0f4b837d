//! Which experiments each rule keeps under noise, printed.
//!
//! The experiments are kapi-testkit's; here they are only shown.

use anyhow::{Context as _, bail};
use kapi_testkit::keeping::{Noise, Policy, errors, percent};

use crate::output::say;

/// Experiments under one noise and one rule.
const EXPERIMENTS: u32 = 1_000;

/// Prints the table of `--seed N` (default 1).
///
/// # Errors
/// When the options cannot be read.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let seed: u64 = match words {
        [] => 1,
        ["--seed", number] => number
            .parse()
            .with_context(|| format!("read {number:?} as a number"))?,
        _ => bail!("read the options: give `--seed N` or nothing"),
    };
    say("| noise | rule | kept without a gain, % | gains missed, % | runs of the benchmark |");
    say("|---|---|---|---|---|");
    for noise in Noise::ALL {
        for (name, policy) in Policy::all() {
            let found = errors(noise, policy, seed, EXPERIMENTS);
            say(&format!(
                "| {} | {name} | {} | {} | {:.1} |",
                noise.name(),
                percent(found.kept.0, found.kept.1),
                percent(found.missed.0, found.missed.1),
                found.samples
            ));
        }
    }
    Ok(())
}
