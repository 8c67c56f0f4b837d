//! The crash simulator, for longer than a test may take.
//!
//! Simulating and judging are kapi-testkit's; here are only seeds, and what is said about them.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, bail};
use kapi_testkit::sim::{Effort, Options, Tally, simulate};

use crate::output::say;
use crate::tool::Tool;

/// Every crash that comes first, each followed by one more during the recovery.
const FIRST: Options = Options {
    effort: Effort::EveryFirst,
    mistake: None,
};
/// Every crash that comes first, each followed by every other one.
const PAIRS: Options = Options {
    effort: Effort::EveryPair(1),
    mistake: None,
};

/// Simulates what the words ask for: `--seeds N`, `--seed N`, or `--pairs N` for a seed with
/// every pair of crashes.
///
/// # Errors
/// When an oracle complains, naming the seed; or when the words cannot be read.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let (option, number) = match words {
        [option, number] => (*option, *number),
        _ => bail!("read the options: give `--seeds N`, `--seed N` or `--pairs N`"),
    };
    let number: u64 = number
        .parse()
        .with_context(|| format!("read {number:?} as a number"))?;
    let (seeds, options, again) = match option {
        "--seeds" => (0..number, FIRST, "--seed"),
        "--seed" => (number..number.saturating_add(1), FIRST, option),
        "--pairs" => (number..number.saturating_add(1), PAIRS, option),
        _ => bail!("read the option {option:?}: give `--seeds N`, `--seed N` or `--pairs N`"),
    };
    if cfg!(debug_assertions) {
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
        return Tool::new(root, "cargo", &[&args[..], words].concat()).run();
    }
    let started = Instant::now();
    let mut total = Tally::default();
    for seed in seeds {
        let tally = simulate(seed, &options).with_context(|| {
            format!("keep the promises under seed {seed}; show it again with `cargo xtask sim {again} {seed}`")
        })?;
        total.cases += tally.cases;
        total.crashes += tally.crashes;
    }
    let Tally { cases, crashes, .. } = total;
    if cases == 0 {
        bail!("simulate anything: {option} {number} makes no case");
    }
    let seconds = started.elapsed().as_secs_f64();
    say(&format!(
        "{cases} cases with {crashes} crashes in {seconds:.1} s: every promise kept."
    ));
    Ok(())
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
