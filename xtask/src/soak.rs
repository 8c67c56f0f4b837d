//! The soak: a busy machine that is disturbed for minutes, on a small disk of its own.
//!
//! What is done and what must hold is kapi-testkit's; here are the disk, in a mount namespace that
//! goes with it, and what is said.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use kapi_sys::process;
use kapi_testkit::soak::{MemoryGrowth, SoakOptions, SoakReport, soak};

use crate::corpora;
use crate::output::{say, talk};
use crate::tool::ToolCommand;

/// How a soak is asked for, and how this program is started again where the disk may be mounted.
pub(crate) const MINUTES: &str = "--minutes";
pub(crate) const WITHIN: &str = "--within";
/// The size of the disk.
const DISK: &str = "size=1g";
/// The part that the memory of a supervisor may grow by from the middle of its life to the end, and how
/// much it may in any case, in KiB.
const GROWTH_PERCENT_MAX: u64 = 20;
const GROWTH_KIB_MAX: u64 = 8 * 1_024;

/// Keeps a machine busy for `--minutes N`, with `--seed S`.
///
/// # Errors
/// When the words cannot be read, the program cannot be built, or something does not hold; what is
/// left is kept then.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let (minutes, seed) = match words {
        [MINUTES, minutes] => (*minutes, "1"),
        [MINUTES, minutes, "--seed", seed] => (*minutes, *seed),
        _ => bail!("read the options: give `--minutes N`, or `--minutes N --seed S`"),
    };
    for number in [minutes, seed] {
        let number: Result<u64, _> = number.parse();
        number.with_context(|| format!("read {words:?} as numbers"))?;
    }
    let kapi = corpora::built(root)?;
    let target = corpora::target_directory(root)?;
    let location = target.join(format!("soak-{}", std::process::id()));
    fs::create_dir(&location).with_context(|| format!("create {}", location.display()))?;
    let own = process::current_exe().context("find this program")?;
    let args = [
        "--user",
        "--map-root-user",
        "--mount",
        "--",
        &own.display().to_string(),
        "storm",
        WITHIN,
        &kapi.display().to_string(),
        &location.display().to_string(),
        minutes,
        seed,
    ];
    ToolCommand::new(root, "unshare", &args).run()?;
    fs::remove_dir_all(&location).with_context(|| format!("remove {}", location.display()))
}

/// Does it, where the disk may be mounted.
///
/// # Errors
/// As for the whole.
pub(crate) fn within(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let [kapi, location, minutes, seed] = words else {
        bail!("read the options: `{WITHIN}` is of this program alone");
    };
    let disk = Path::new(location).join("disk");
    fs::create_dir(&disk).with_context(|| format!("create {}", disk.display()))?;
    let at = disk.display().to_string();
    let mount = ["-t", "tmpfs", "-o", DISK, "none", &at];
    ToolCommand::new(root, "mount", &mount).run()?;
    let minutes: u64 = minutes.parse().context("read the minutes")?;
    let options = SoakOptions {
        lasts: Duration::from_secs(minutes * 60),
        seed: seed.parse().context("read the seed")?,
    };
    match soak(Path::new(kapi), &disk, &options, &mut talk) {
        Ok(report) => {
            say(&shown(minutes, &report));
            flat(&report)
        }
        Err(failure) => {
            let left = Path::new(location).join("left");
            let copy = ["-a", &at, &left.display().to_string()];
            ToolCommand::new(root, "cp", &copy).run()?;
            for step in &failure.steps {
                talk(step);
            }
            Err(failure).with_context(|| format!("keep the promises; {} has all", left.display()))
        }
    }
}

/// Checks that a supervisor does not hold more and more memory.
fn flat(report: &SoakReport) -> anyhow::Result<()> {
    let Some(memory) = report.memory_kib else {
        return Ok(());
    };
    let more = memory.late.saturating_sub(memory.middle);
    if more > GROWTH_KIB_MAX && more * 100 > memory.middle * GROWTH_PERCENT_MAX {
        bail!("keep memory flat: {}", held(memory));
    }
    Ok(())
}

fn held(memory: MemoryGrowth) -> String {
    let MemoryGrowth {
        early,
        middle,
        late,
        seconds,
    } = memory;
    format!(
        "a supervisor held {early} KiB early in its {seconds} s, {middle} KiB in the middle and {late} KiB \
         late"
    )
}

fn shown(minutes: u64, report: &SoakReport) -> String {
    let list = |pairs: Vec<String>| pairs.join(", ");
    let accepted = report.accepted.iter();
    let accepted = list(accepted.map(|(what, n)| format!("{n} {what}")).collect());
    let ended = report.ended.iter();
    let ended = list(ended.map(|(what, n)| format!("{what} {n}")).collect());
    let disturbed = report.disturbed.iter();
    let disturbed = list(disturbed.map(|(what, n)| format!("{what} {n}")).collect());
    let memory = report
        .memory_kib
        .map(|memory| format!("\n{}", held(memory)));
    format!(
        "{minutes} minutes: nothing lost, nothing left.\naccepted: {accepted}\nended: {ended}\n\
         disturbed: {disturbed}\nended {} s after the last disturbance, judged in {} s\n\
         {} KiB on the disk{}",
        report.ending.as_secs(),
        report.judging.as_secs(),
        report.bytes / 1_024,
        memory.unwrap_or_default()
    )
}
