//! Side-by-side measurements: each of our programs beside a peer, by turns, in one run.
//!
//! Only ratios from one run are claimed. A peer that cannot be run has its line in the table and
//! says why; it is never left out.

mod comparison;
mod crowd;
mod document;
mod ground;
mod invocation;
mod kernel;
mod launch;
mod launcher;
mod machine;
mod month;
mod options;
mod part;
mod pi;
mod process_table;
mod program;
mod proxy;
mod sample;
mod sandbox;
mod screen;
mod search;
mod storage;
mod table;
mod tree;
mod walls;
mod workflows;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, bail};
use kapi_sys::disk::replace_durably;
use kapi_sys::real_disk::RealDisk;

use self::options::{BenchOptions, Group};
use self::table::{ComparisonTable, Gap};
use crate::output::{say, talk};
use crate::{dist, peers};

const DOCUMENT: &str = "docs/performance.md";

/// Where measuring happens.
#[derive(Debug)]
struct BenchDirectory {
    /// A directory of our own on the disk that builds use, empty at the start.
    scratch: PathBuf,
    /// The program under test.
    kapi: PathBuf,
    /// This program, for what is measured in a process of its own.
    program: PathBuf,
}

/// Measures what the options ask for and prints the tables; where it is asked for, each group goes
/// into the document as soon as it is measured.
///
/// # Errors
/// When one of our own programs cannot be run, once everything else is measured and printed; a missing
/// peer is a line in the table instead.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    match words {
        [kernel::crew::MEMBER, words @ ..] => return kernel::member::run(words),
        [part::PART, words @ ..] => return part::run(words),
        [walls::WALLS, words @ ..] => return walls::run(words),
        _ => {}
    }
    let options = BenchOptions::parse(words)?;
    if cfg!(debug_assertions) {
        // What is measured inside this process must be built like the product.
        return dist::run(root, "xtask", &[&["bench"], words].concat());
    }
    peers::ensure(root, peers::FOR_BENCH)?;
    let location = prepare(root)?;
    let origin = machine::origin(root)?;
    let (mut tables, mut failed) = (Vec::new(), Vec::new());
    for group in &options.groups {
        // A run takes an hour: what fails at its end must not take the rest with it.
        let measured = match measure(&location, *group, &options) {
            Ok(measured) => measured,
            Err(error) => {
                talk(&format!("{group:?} failed: {error:#}"));
                failed.push(format!("{group:?}"));
                continue;
            }
        };
        let sections = document::sections(&measured, &origin)?;
        if options.is_written {
            write_sections(root, &sections, document::Others::Stay)?;
        }
        tables.extend(measured);
    }
    let sections = document::sections(&tables, &origin)?;
    say(&document::alone(&sections));
    if !failed.is_empty() {
        bail!("measure {}: what went wrong is above", failed.join(", "));
    }
    if options.is_written {
        let others = if options.is_whole() {
            document::Others::Go
        } else {
            document::Others::Stay
        };
        write_sections(root, &sections, others)?;
        talk(&format!("The tables are in {DOCUMENT}."));
    }
    report_gaps(&tables)
}

/// Puts sections into the document.
fn write_sections(
    root: &Path,
    sections: &[document::Section],
    others: document::Others,
) -> anyhow::Result<()> {
    let path = root.join(DOCUMENT);
    let before = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let text = document::with(&before, sections, others);
    replace_durably(&RealDisk, &path, text.as_bytes())?;
    Ok(())
}

fn measure(
    location: &BenchDirectory,
    group: Group,
    options: &BenchOptions,
) -> anyhow::Result<Vec<ComparisonTable>> {
    talk(&format!("Measuring: {group:?} …"));
    Ok(match group {
        Group::Sandbox => vec![sandbox::alone(location)?],
        Group::Crowd => vec![crowd::at_once(location)?, crowd::memory(location)?],
        Group::Tree => tree::compare(location, &options.trees)?,
        Group::Integrate => vec![tree::integrate::compare(location, &options.trees)?],
        Group::Hook => vec![program::hooks(location)?],
        Group::Proxy => vec![proxy::compare(location)?],
        Group::Launch => vec![launch::levels(location)?],
        Group::Command => vec![program::commands(location)?],
        Group::Storage => vec![storage::appends(location)?, storage::loads(location)?],
        Group::Kernel => kernel::tables(location, &options.extras)?,
        Group::Workflow => vec![workflows::status(location)?],
        Group::Month => vec![month::commands(location)?],
        Group::Screen => vec![screen::watching(location)?],
        Group::Search => vec![search::experiments(location, &options.extras)?],
        Group::Pi => pi::package(location, &options.extras)?,
    })
}

fn prepare(root: &Path) -> anyhow::Result<BenchDirectory> {
    let kapi = dist::build(root)?;
    let target = dist::target_directory(root)?;
    let scratch = target.join("bench");
    ground::release_leftover(&scratch);
    if scratch.exists() {
        fs::remove_dir_all(&scratch).with_context(|| format!("clear {}", scratch.display()))?;
    }
    fs::create_dir_all(&scratch).with_context(|| format!("create {}", scratch.display()))?;
    let program = env::current_exe().context("find this program")?;
    Ok(BenchDirectory {
        scratch,
        kapi,
        program,
    })
}

/// Says once more, at the end, what could not be measured.
fn report_gaps(tables: &[ComparisonTable]) -> anyhow::Result<()> {
    // By name: one program stands beside several peers.
    let gaps: BTreeMap<&str, &Gap> = tables
        .iter()
        .flat_map(ComparisonTable::gaps)
        .map(|gap| (gap.name.as_str(), gap))
        .collect();
    for (name, gap) in &gaps {
        talk(&format!("warning: {name} could not be run: {}", gap.reason));
    }
    let ours: Vec<&str> = gaps
        .iter()
        .filter(|(_, gap)| gap.is_ours)
        .map(|(name, _)| *name)
        .collect();
    if ours.is_empty() {
        return Ok(());
    }
    bail!("measure {}", ours.join(", "))
}
