//! Which experiments each rule keeps under recorded noise: the table of `docs/autoresearch.md`.
//!
//! The experiments are kapi-testkit's; here they are shown, and the noise is recorded.

mod record;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use kapi_sys::disk::replace_durably;
use kapi_sys::real_disk::RealDisk;
use kapi_testkit::keeping::series::NoiseSeries;
use kapi_testkit::keeping::{Policy, errors};

use crate::document::with_part;
use crate::output::talk;

/// What is written.
const DOCUMENT: &str = "docs/autoresearch.md";
/// The line after which it is.
const BEGIN: &str = "<!-- made by `cargo xtask keeping` -->\n";
/// Where the recorded series are.
const SERIES: &str = "xtask/corpus/noise";
/// Experiments under one noise and one rule.
const EXPERIMENTS: u32 = 1_000;
/// What the experiments are drawn by.
const SEED: u64 = 1;

/// Writes the table into the document, compares it (`--check`), or records the noise anew (`--record`).
///
/// # Errors
/// When a series or the document cannot be read or written, or the document is not current.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    match words {
        [] => {
            let text = document(root)?;
            replace_durably(&RealDisk, &root.join(DOCUMENT), text.as_bytes())?;
            talk(&format!("The table is in {DOCUMENT}."));
            Ok(())
        }
        ["--check"] => check(root),
        ["--record"] => record::record(root, &root.join(SERIES)),
        _ => bail!("read the options: give `--check`, `--record` or nothing"),
    }
}

fn check(root: &Path) -> anyhow::Result<()> {
    if document(root)? == read(root)? {
        return Ok(());
    }
    bail!("find {DOCUMENT} current: run `cargo xtask keeping` and commit it")
}

fn read(root: &Path) -> anyhow::Result<String> {
    fs::read_to_string(root.join(DOCUMENT)).with_context(|| format!("read {DOCUMENT}"))
}

/// Returns the document with its table made anew.
fn document(root: &Path) -> anyhow::Result<String> {
    let table = table(&series(root)?)?;
    with_part(&read(root)?, BEGIN, &table).with_context(|| format!("write {DOCUMENT}"))
}

/// Returns every recorded series, by the names of their files.
fn series(root: &Path) -> anyhow::Result<Vec<NoiseSeries>> {
    let directory = root.join(SERIES);
    let listed = fs::read_dir(&directory).with_context(|| format!("list {SERIES}"))?;
    let mut paths = Vec::new();
    for entry in listed {
        paths.push(entry.with_context(|| format!("list {SERIES}"))?.path());
    }
    paths.sort();
    let read = paths.iter().map(|path| {
        let text = fs::read_to_string(path);
        let text = text.with_context(|| format!("read {}", path.display()))?;
        NoiseSeries::parse(&text).with_context(|| format!("read {}", path.display()))
    });
    read.collect()
}

fn table(all: &[NoiseSeries]) -> anyhow::Result<String> {
    let mut text = String::from(
        "| recorded noise | median | scatters by | 1 run in 100 is above by | neighbours alike |\n\
         |---|---|---|---|---|\n",
    );
    for series in all {
        let shape = series.shape();
        writeln!(
            text,
            "| {} | {:.1} ms | {:.1} % | {:.0} % | {:.2} |",
            series.name,
            shape.median / 1_000.0,
            shape.scatter,
            shape.tail,
            shape.memory
        )?;
    }
    text.push_str(
        "\n| noise | rule | kept without a gain, % | gains missed, % | runs of the benchmark |\n\
         |---|---|---|---|---|\n",
    );
    for series in all {
        for (name, policy) in Policy::all() {
            let found = errors(series, policy, SEED, EXPERIMENTS);
            writeln!(
                text,
                "| {} | {name} | {} | {} | {:.1} |",
                series.name,
                found.without_gain.percent(),
                found.with_gain.percent(),
                found.samples
            )?;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::check;

    #[test]
    fn the_table_in_the_document_is_the_one_that_is_computed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        check(root).unwrap();
    }
}
