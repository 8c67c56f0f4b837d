//! The kernel under many real processes that are killed, at full size.
//!
//! Starting, killing and judging are kapi-testkit's; here the program is built and the numbers are
//! printed.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use kapi_fleet::address::Address;
use kapi_fleet::client::FleetSettings;
use kapi_task::record::store::KernelStore;
use kapi_testkit::cluster::Cluster;
use kapi_testkit::kernel_sim::storm::{
    ForeignStore, StormOptions, StormReport, storm, storm_elsewhere,
};
use kapi_testkit::kernel_sim::{KernelTally, crash_everywhere};

use crate::output::say;
use crate::soak;
use crate::tool::ToolCommand;

const PROGRAM: &str = "kapi-testkit-worker";
/// What is let loose when the words do not say.
const DEFAULT: StormOptions = StormOptions {
    tasks: 10_000,
    processes: 8,
    kill_every: Duration::from_secs(1),
    seed: 1,
    deadline: Duration::from_secs(1_800),
};
/// How a storm on a cluster is asked for.
const CLUSTER: &str = "--cluster";
/// How long a cluster is asked: one of its servers is killed.
const PATIENCE: Duration = Duration::from_secs(60);
/// After how many kills of workers one server of three is killed too, and when it is started again.
const SERVER_KILLED: u64 = 10;
const SERVER_STARTED: u64 = 40;
/// The most processes: no machine of a developer bears more at once.
const PROCESSES_MAX: u64 = 64;

/// Lets a storm loose: `--tasks N --processes P --kill-every MS --seed S`, on a cluster of three
/// servers of which one is killed when `--cluster` comes first; or `--crashes`, which lets the power
/// of a simulated disk fail at every operation instead; or `--minutes N --seed S`, which soaks the
/// whole program.
///
/// # Errors
/// When the words cannot be read, the program cannot be built, or a promise was broken.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    if words == ["--crashes"] {
        let tally = crash_everywhere(1, None).context("keep the kernel's promises")?;
        let KernelTally { cases, ops } = tally;
        say(&format!(
            "{cases} stories of {ops} disk operations: every promise kept."
        ));
        return Ok(());
    }
    match words {
        [soak::WITHIN, words @ ..] => return soak::within(root, words),
        [soak::MINUTES, ..] => return soak::run(root, words),
        _ => {}
    }
    let is_cluster = words.first() == Some(&CLUSTER);
    let options = read(words.get(usize::from(is_cluster)..).unwrap_or_default())?;
    let build = [
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--package",
        "kapi-testkit",
    ];
    ToolCommand::new(root, "cargo", &[&build[..], &["--bin", PROGRAM]].concat()).run()?;
    let target = ToolCommand::new(
        root,
        "cargo",
        &["metadata", "--format-version=1", "--no-deps"],
    )
    .read()?;
    let target: serde_json::Value =
        serde_json::from_str(&target).context("read what `cargo metadata` printed")?;
    let target = target["target_directory"]
        .as_str()
        .context("find the target directory")?;
    // Beside what was built: a directory in memory would make every sync free.
    let location = Path::new(target).join(format!("storm-{}", std::process::id()));
    std::fs::create_dir(&location).with_context(|| format!("create {}", location.display()))?;
    let program = Path::new(target).join("release").join(PROGRAM);
    let stormed = if is_cluster {
        on_cluster(&program, &location, &options)
    } else {
        storm(&program, &location, &options).map_err(anyhow::Error::from)
    };
    let stormed = stormed.with_context(|| {
        format!(
            "keep the promises; what is left lies in {}",
            location.display()
        )
    })?;
    std::fs::remove_dir_all(&location).with_context(|| format!("remove {}", location.display()))?;
    say(&shown(&options, &stormed));
    Ok(())
}

/// Lets a storm loose on three servers; one of them is killed, and comes back.
fn on_cluster(
    program: &Path,
    location: &Path,
    options: &StormOptions,
) -> anyhow::Result<StormReport> {
    let mut cluster = Cluster::start(3, location).context("start three servers")?;
    let address = cluster.address();
    let store = KernelStore::Fleet {
        settings: FleetSettings {
            address: Address::parse(&address).context("read the servers' address")?,
            authorities: None,
            replicas: 3,
            patience: PATIENCE,
        },
        project: "storm".to_owned(),
    };
    let mut failed = None;
    let mut killed = |kills: u64| {
        let done = match kills {
            SERVER_KILLED => cluster.wait_until_healthy().and_then(|()| cluster.kill(0)),
            SERVER_STARTED => cluster.restart(0),
            _ => Ok(()),
        };
        failed = failed.take().or(done.err());
    };
    let elsewhere = ForeignStore {
        store: &store,
        address: &address,
        killed: &mut killed,
    };
    let stormed = storm_elsewhere(program, location, options, elsewhere)?;
    match failed {
        Some(error) => Err(error).context("kill a server and start it again"),
        None => Ok(stormed),
    }
}

fn read(words: &[&str]) -> anyhow::Result<StormOptions> {
    let mut options = DEFAULT;
    for pair in words.chunks(2) {
        let [option, number] = pair else {
            bail!("read the option {:?}: it needs a number", pair.concat());
        };
        let number: u64 = number
            .parse()
            .with_context(|| format!("read {number:?} as a number"))?;
        match *option {
            "--tasks" => options.tasks = number,
            "--processes" => options.processes = number,
            "--kill-every" => options.kill_every = Duration::from_millis(number),
            "--seed" => options.seed = number,
            _ => bail!(
                "read the option {option:?}: give `--tasks`, `--processes`, `--kill-every` or `--seed`"
            ),
        }
    }
    ensure!(
        options.tasks > 0 && (1..=PROCESSES_MAX).contains(&options.processes),
        "read the options: there is at least one task, and 1 to {PROCESSES_MAX} processes"
    );
    ensure!(
        options.kill_every >= Duration::from_millis(50),
        "read the options: a kill every 50 ms is the most"
    );
    Ok(options)
}

fn shown(options: &StormOptions, stormed: &StormReport) -> String {
    let seconds = stormed.took.as_secs_f64();
    let judged = &stormed.judged;
    let rate = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX)) / seconds;
    let (median, late, longest) = judged.submit_micros;
    let mut text = format!(
        "{} tasks by {} processes in {seconds:.1} s: every promise kept.\n\
         {:.0} tasks/s, {:.0} records/s; a submit takes {:.1} ms (median), {:.1} ms (99 %), {:.1} ms (longest)\n\
         {} kills; attempts lost after the launch {}, before it {}; performed once more {}\n\
         group          waited on average    longest",
        options.tasks,
        options.processes,
        rate(options.tasks),
        rate(judged.records),
        millis(median),
        millis(late),
        millis(longest),
        stormed.kills,
        judged.lost.0,
        judged.lost.1,
        judged.repeated,
    );
    for (group, (mean, most)) in &judged.waited_ms {
        text.push_str(&row(group, *mean, *most));
    }
    text
}

fn row(group: &str, mean_ms: u64, longest_ms: u64) -> String {
    format!("\n{group:<14} {mean_ms:>14} ms {longest_ms:>7} ms")
}

fn millis(micros: u64) -> f64 {
    f64::from(u32::try_from(micros).unwrap_or(u32::MAX)) / 1_000.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{DEFAULT, StormOptions, read};

    #[test]
    fn options_stand_in_any_order_and_what_is_not_said_stays() {
        let options = read(&["--seed", "9", "--tasks", "300", "--kill-every", "200"]).unwrap();
        let expected = StormOptions {
            seed: 9,
            tasks: 300,
            kill_every: Duration::from_millis(200),
            ..DEFAULT
        };
        assert_eq!(options, expected);
        assert_eq!(read(&[]).unwrap(), DEFAULT);
    }

    #[test]
    fn words_that_mean_nothing_are_refused() {
        for words in [
            &["--tasks"][..],
            &["--tasks", "many"],
            &["--tasks", "0"],
            &["--processes", "65"],
            &["--kill-every", "1"],
            &["--wind", "3"],
        ] {
            let error = read(words).unwrap_err().to_string();
            assert!(error.starts_with("read "), "{words:?}: {error}");
        }
    }
}
