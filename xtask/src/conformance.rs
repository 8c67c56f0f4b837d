//! The conformance map: which test, or which decision, answers each sentence of pi-until-done.
//!
//! The map is kept by hand beside the page that is made of it. Whether a test really shows what
//! its row says is for review: here it is only certain that the test exists.

mod map;
mod page;
mod sources;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use kapi_sys::disk::replace_durably;
use kapi_sys::real_disk::RealDisk;

use self::map::Map;
use self::sources::Sources;
use crate::output::say;

const MAP: &str = "docs/conformance/until-done.map.toml";
const PAGE: &str = "docs/conformance/until-done.md";

/// Writes the page, or only compares it when `--check` is asked for.
///
/// # Errors
/// When the map is wrong, the page is stale, or a file cannot be read or written.
pub(crate) fn run(root: &Path, options: &[&str]) -> anyhow::Result<()> {
    match options {
        [] => write(root),
        ["--check"] => check(root),
        _ => bail!("read the options: `conformance` takes `--check` and nothing else"),
    }
}

/// Checks that every row has an answer that exists, and that the page says what the map says.
///
/// # Errors
/// When one of them does not hold, naming every place.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let (page, counts) = make(root)?;
    let path = root.join(PAGE);
    let written = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    if written != page {
        bail!("keep {PAGE} as {MAP} says\nhint: run `cargo xtask conformance`");
    }
    say(&counts);
    Ok(())
}

fn write(root: &Path) -> anyhow::Result<()> {
    let (page, counts) = make(root)?;
    let path = root.join(PAGE);
    replace_durably(&RealDisk, &path, page.as_bytes())?;
    say(&counts);
    Ok(())
}

/// Returns the page and its counts in one line.
fn make(root: &Path) -> anyhow::Result<(String, String)> {
    let path = root.join(MAP);
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let map = Map::parse(&text).with_context(|| format!("read {MAP}"))?;
    let sources = Sources::load(root)?;
    let faults = map.faults(&sources);
    if !faults.is_empty() {
        bail!(
            "keep {MAP} right in {} place(s):\n  {}",
            faults.len(),
            faults.join("\n  ")
        );
    }
    let counts = map.counts();
    let line = format!(
        "{} rows: {} with a test, {} by decision, {} open.",
        counts.rows(),
        counts.tested,
        counts.decided,
        counts.open
    );
    Ok((page::render(&map, &sources), line))
}
