//! Random schedules of a person at work while agents work in launches, against the built program.
//!
//! What is done and what must hold is kapi-testkit's; here the program is built and the result is
//! printed.

use std::path::Path;

use anyhow::{Context as _, bail};
use kapi_testkit::launch_schedule;

use crate::corpora;
use crate::output::say;

/// How many schedules are performed unless the options say.
const SEEDS: u64 = 1_000;
/// After how many of them something is said.
const SAID_EVERY: u64 = 50;

/// Performs the first `--seeds N` schedules, or the one of `--seed N`.
///
/// # Errors
/// When the options cannot be read, the program cannot be built, or a commit is not its base and the
/// agent's own changes; the error has every step of the schedule.
pub(crate) fn run(root: &Path, options: &[&str]) -> anyhow::Result<()> {
    let number = |text: &str| {
        let number = text.parse::<u64>();
        number.with_context(|| format!("read {text:?} as a number"))
    };
    let (first, last) = match options {
        [] => (1, SEEDS),
        ["--seeds", n] => (1, number(n)?),
        ["--seed", n] => (number(n)?, number(n)?),
        _ => bail!("read the options: give `--seeds N`, `--seed N` or nothing"),
    };
    let kapi = corpora::built(root)?;
    let target = corpora::target_directory(root)?;
    for seed in first..=last {
        launch_schedule::run(&kapi, &target, seed)?;
        if seed % SAID_EVERY == 0 {
            say(&format!("{seed} schedules: every commit is as it must be"));
        }
    }
    say(&format!(
        "Every commit of schedules {first} to {last} is its base and the agent's own changes."
    ));
    Ok(())
}
