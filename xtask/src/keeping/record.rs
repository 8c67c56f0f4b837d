//! Recording how small real programs scatter on the machine at hand, one run after the other.
//!
//! What else the machine does meanwhile is part of it: alone, beside a neighbour that works by turns, and
//! beside one that works more and more.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::Context as _;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;

use crate::output::talk;
use crate::tool::{RepeatedTool, ToolCommand};

/// Runs of each series.
const RUNS: u32 = 500;
/// Runs after which a neighbour that works by turns rests, and works again.
const TURN: u32 = 25;
/// How long a neighbour works and rests together, in microseconds.
const SLICE_US: u64 = 20_000;
/// A neighbour's work in hundredths of all the time; more than all is its end.
const FULL: u32 = 100;
const ENDED: u32 = FULL + 1;

/// A loop over memory, as a small program in Rust has one.
const LOOP: &str = "fn main() {\n    let mut table = vec![1_u64; 1 << 18];\n    let mut at = 7_usize;\n    \
    for n in 0..3_000_000_u64 {\n        at = (at * 1_103_515_245 + 12_345) % table.len();\n        \
    if let Some(cell) = table.get_mut(at) {\n            *cell = cell.wrapping_mul(31) ^ n;\n        \
    }\n    }\n    println!(\"{}\", table.iter().fold(0_u64, |sum, it| sum ^ it));\n}\n";
/// Text that is split, counted and sorted, as a script does.
const SCRIPT: &str = "const words = [];\nfor (let n = 0; n < 40000; n += 1) {\n  words.push('w' + \
    ((n * 7919) % 10007));\n}\nconst counts = new Map();\nfor (const word of words) {\n  \
    counts.set(word, (counts.get(word) || 0) + 1);\n}\nconsole.log([...counts].sort()[0]);\n";

/// What else the machine does.
#[derive(Debug, Clone, Copy)]
enum Neighbour {
    Nobody,
    ByTurns,
    MoreAndMore,
}

/// A program that is run again and again.
struct Recording<'a> {
    file: &'a str,
    name: &'a str,
    program: &'a str,
    args: &'a [&'a str],
    beside: Neighbour,
}

/// Records every series into the directory.
///
/// # Errors
/// When a program cannot be built or run, or a file cannot be written.
pub(super) fn record(root: &Path, to: &Path) -> anyhow::Result<()> {
    let scratch = root.join("target/keeping");
    fs::create_dir_all(&scratch).with_context(|| format!("create {}", scratch.display()))?;
    RealDisk.write(&scratch.join("loop.rs"), LOOP.as_bytes())?;
    RealDisk.write(&scratch.join("words.js"), SCRIPT.as_bytes())?;
    let lines: String = (0..60_000_u32)
        .map(|n| format!("{:08x}\n", n.wrapping_mul(2_654_435_761)))
        .collect();
    RealDisk.write(&scratch.join("lines"), lines.as_bytes())?;
    let build = ["-O", "--edition=2024", "loop.rs"];
    ToolCommand::new(&scratch, "rustc", &build).run()?;
    let built = scratch.join("loop");
    let built = built.to_string_lossy();
    let all = [
        Recording {
            file: "1-sort.txt",
            name: "sort of a file",
            program: "sort",
            args: &["lines"],
            beside: Neighbour::Nobody,
        },
        Recording {
            file: "2-node.txt",
            name: "node script, a neighbour works by turns",
            program: "node",
            args: &["words.js"],
            beside: Neighbour::ByTurns,
        },
        Recording {
            file: "3-loop.txt",
            name: "Rust loop, a neighbour works more and more",
            program: &built,
            args: &[],
            beside: Neighbour::MoreAndMore,
        },
    ];
    for one in &all {
        talk(&format!("Recording: {} …", one.name));
        let times = times(&scratch, one)?;
        let text: String = times
            .iter()
            .map(|time| format!("{}\n", time.as_micros()))
            .collect();
        let head = format!(
            "# {}\n# Microseconds of {RUNS} runs one after the other, each from start to end of the \
             process.\n# Recorded with `cargo xtask keeping --record`.\n",
            one.name
        );
        RealDisk.write(&to.join(one.file), format!("{head}{text}").as_bytes())?;
    }
    Ok(())
}

fn times(directory: &Path, one: &Recording<'_>) -> anyhow::Result<Vec<Duration>> {
    let load = AtomicU32::new(0);
    let mut program = RepeatedTool::new(ToolCommand::new(directory, one.program, one.args));
    let n_neighbours = thread::available_parallelism()?.get();
    thread::scope(|scope| {
        for _ in 0..n_neighbours {
            scope.spawn(|| work(&load));
        }
        let mut times = Vec::new();
        for run in 0..RUNS {
            load.store(wanted(one.beside, run), Ordering::Relaxed);
            match program.time() {
                Ok(time) => times.push(time),
                Err(error) => {
                    load.store(ENDED, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        load.store(ENDED, Ordering::Relaxed);
        Ok(times)
    })
}

const fn wanted(beside: Neighbour, run: u32) -> u32 {
    match beside {
        Neighbour::Nobody => 0,
        Neighbour::ByTurns if (run / TURN).is_multiple_of(2) => 0,
        Neighbour::ByTurns => FULL,
        Neighbour::MoreAndMore => run * FULL / RUNS,
    }
}

/// Works as large a part of the time as is wanted, until it is ended.
fn work(load: &AtomicU32) {
    loop {
        let load = load.load(Ordering::Relaxed);
        if load == ENDED {
            return;
        }
        let busy = Duration::from_micros(SLICE_US * u64::from(load) / u64::from(FULL));
        let began = Instant::now();
        while began.elapsed() < busy {
            std::hint::spin_loop();
        }
        thread::sleep(Duration::from_micros(SLICE_US).saturating_sub(busy));
    }
}
