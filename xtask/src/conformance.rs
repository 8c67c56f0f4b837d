//! The conformance maps: which test, or which decision, answers each sentence of a specification.
//!
//! A map is kept by hand beside the page that is made of it. Whether a test really shows what
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
use self::sources::ConformanceSources;
use crate::output::say;

/// The specifications that are answered sentence by sentence.
const SPECIFICATIONS: [Specification; 4] = [
    Specification {
        file: "until-done",
        name: "pi-until-done",
        version: "pi-until-done 0.2.2",
    },
    Specification {
        file: "creampi",
        name: "oh-my-creampi",
        version: "the build specification of oh-my-creampi v2",
    },
    Specification {
        file: "kapi",
        name: "Kapi's durable modes",
        version: "the goal document of Kapi",
    },
    Specification {
        file: "kapsis",
        name: "Kapsis",
        version: "the architecture of Kapsis",
    },
];

/// One specification.
#[derive(Debug, Clone, Copy)]
struct Specification {
    /// What its map and its page are called.
    file: &'static str,
    /// Its name.
    name: &'static str,
    /// Which version of it.
    version: &'static str,
}

impl Specification {
    fn map(self) -> String {
        format!("docs/conformance/{}.map.toml", self.file)
    }

    fn page(self) -> String {
        format!("docs/conformance/{}.md", self.file)
    }
}

/// Writes the pages, or only compares them when `--check` is asked for.
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

/// Checks that every row has an answer that exists, and that the pages say what the maps say.
///
/// # Errors
/// When one of them does not hold, naming every place.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let sources = ConformanceSources::load(root)?;
    for specification in SPECIFICATIONS {
        let (page, counts) = make(root, specification, &sources)?;
        let path = root.join(specification.page());
        let written =
            fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        if written != page {
            let (page, map) = (specification.page(), specification.map());
            bail!("keep {page} as {map} says\nhint: run `cargo xtask conformance`");
        }
        say(&counts);
    }
    Ok(())
}

fn write(root: &Path) -> anyhow::Result<()> {
    let sources = ConformanceSources::load(root)?;
    for specification in SPECIFICATIONS {
        let (page, counts) = make(root, specification, &sources)?;
        let path = root.join(specification.page());
        replace_durably(&RealDisk, &path, page.as_bytes())?;
        say(&counts);
    }
    Ok(())
}

/// Returns a specification's page and its counts in one line.
fn make(
    root: &Path,
    specification: Specification,
    sources: &ConformanceSources,
) -> anyhow::Result<(String, String)> {
    let name = specification.map();
    let path = root.join(&name);
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let map = Map::parse(&text).with_context(|| format!("read {name}"))?;
    let faults = map.faults(sources);
    if !faults.is_empty() {
        bail!(
            "keep {name} right in {} place(s):\n  {}",
            faults.len(),
            faults.join("\n  ")
        );
    }
    let counts = map.counts();
    let line = format!(
        "{}: {} rows: {} with a test, {} by decision, {} open.",
        specification.name,
        counts.rows(),
        counts.tested,
        counts.decided,
        counts.open
    );
    Ok((page::render(specification, &map, sources), line))
}
