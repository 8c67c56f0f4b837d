//! Books against what the model server really served, over as many seeds as are wanted.
//!
//! Playing and judging are kapi-testkit's; here are only seeds, and what is said about them.

use std::time::Instant;

use anyhow::{Context as _, bail};
use kapi_testkit::books::play;

use crate::output::say;

/// Played when the words do not say.
const SEEDS: u64 = 300;

/// Plays the first `--seeds N` stories, or the one of `--seed N`.
///
/// # Errors
/// When the books of a seed are wrong, or the words cannot be read.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let number = |text: &str| text.parse::<u64>().context("read the number of a seed");
    let seeds = match words {
        [] => 0..SEEDS,
        ["--seeds", count] => 0..number(count)?,
        ["--seed", one] => number(one)?..number(one)?.saturating_add(1),
        _ => bail!("read the options: give `--seeds N` or `--seed N`"),
    };
    let began = Instant::now();
    let (mut calls, mut doubtful, mut unpriced, mut limited) = (0_u64, 0_u64, 0_u64, 0_u64);
    let count = seeds.end.saturating_sub(seeds.start);
    for seed in seeds {
        let again = || format!("show it again with `cargo xtask books --seed {seed}`");
        let tally = play(seed).with_context(again)?;
        calls += tally.served.calls;
        doubtful += tally.booked.doubt.calls;
        unpriced += tally.served.unpriced_calls;
        limited += u64::from(tally.is_limited);
    }
    say(&format!(
        "{count} runs with {calls} paid calls in {} s: the books are never below what was served, \
         and above it only by what they say is doubtful ({doubtful} calls); {unpriced} calls had no \
         price; {limited} runs met a limit, and none passed it by more than one answer.",
        began.elapsed().as_secs()
    ));
    Ok(())
}
