//! The toy mode as a change of the whole program: what a new mode touches, counted and tried.
//!
//! `xtask/corpus/toy-mode` holds the change; a tidy rule counts it at every gate. Tried is it on a copy of
//! the tree, because a mode that only tests have must not be in the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;
use serde::Deserialize;

use crate::output::say;
use crate::tool::ToolCommand;

/// Where the change stands.
pub(crate) const CORPUS: &str = "xtask/corpus/toy-mode";
/// The most files that are there already and may be changed.
pub(crate) const FILES_MAX: usize = 8;
/// How the mode's name is written, as the toy and as the mode that is made of it.
const NAMES: [(&str, &str); 3] = [("toy", "scales"), ("Toy", "Scales"), ("TOY", "SCALES")];

/// What is run on the copy, each as the words after `cargo`.
const TRIED: [&[&str]; 4] = [
    &["test", "--locked", "-p", "kapi-workflow", "--lib", "scales"],
    &["test", "--locked", "-p", "kapi-wire", "--lib", "modes"],
    &[
        "test",
        "--locked",
        "-p",
        "kapi-testkit",
        "--test",
        "machines",
        "workflow_crash::no_power",
    ],
    &[
        "run", "--locked", "-p", "kapi-cli", "--", "scales", "--help",
    ],
];

/// The change.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToyMode {
    /// The folder of the toy's rules.
    from: String,
    /// New files.
    file: Vec<NewFile>,
    /// Lines in files that are there.
    insert: Vec<Insert>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewFile {
    new: String,
    #[serde(rename = "place")]
    location: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Insert {
    file: String,
    after: String,
    text: String,
}

impl ToyMode {
    /// Reads the change.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        toml::from_str(text).context("read the toy mode's inserts")
    }

    /// Returns the files that are there already and are changed.
    pub(crate) fn touched(&self) -> BTreeSet<&str> {
        self.insert
            .iter()
            .map(|insert| insert.file.as_str())
            .collect()
    }

    /// Returns how many lines are put in.
    pub(crate) fn n_lines(&self) -> usize {
        let lines = self.insert.iter().map(|insert| insert.text.trim().lines());
        lines.map(Iterator::count).sum()
    }

    /// Returns every file of the change with its text, given what is there.
    ///
    /// # Errors
    /// When a line to put something after is not there, or more than once; when a new file is there
    /// already and is not made of the toy, or lies where no mode's own files do.
    pub(crate) fn applied(
        &self,
        files: &BTreeMap<String, String>,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let mut made = BTreeMap::new();
        for (path, text) in files {
            let rest = path.strip_prefix(&self.from);
            if rest.is_some_and(|rest| rest.starts_with(['/', '.'])) {
                made.insert(renamed(path), renamed(text));
            }
        }
        if made.is_empty() {
            bail!("find the toy in {}", self.from);
        }
        for file in &self.file {
            let NewFile { new, location } = file;
            let is_own = location.contains("/modes/scales") || location.contains("/perform/");
            if files.contains_key(location) || !is_own {
                bail!("make {location}: it is no new file of the mode's own");
            }
            let text = files.get(&format!("{CORPUS}/new/{new}"));
            let text = text.with_context(|| format!("find {new} of the toy mode"))?;
            made.insert(location.clone(), text.clone());
        }
        let mut changed = BTreeMap::new();
        for insert in &self.insert {
            let (path, after) = (&insert.file, &insert.after);
            let text = changed.get(path).or_else(|| files.get(path));
            let text = text.with_context(|| format!("find {path}"))?;
            let put_in = put_in(text, insert).with_context(|| format!("{path}: {after:?}"))?;
            changed.insert(path.clone(), put_in);
        }
        made.append(&mut changed);
        Ok(made)
    }
}

/// Returns a text with lines after the one line that begins so.
fn put_in(text: &str, insert: &Insert) -> anyhow::Result<String> {
    let is_there = |line: &&str| line.starts_with(&insert.after);
    let n_there = text.lines().filter(is_there).count();
    if n_there != 1 {
        bail!("{n_there} lines begin so; one must");
    }
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        lines.push(line);
        if is_there(&line) {
            lines.extend(insert.text.trim_matches('\n').lines());
        }
    }
    Ok(lines.join("\n") + "\n")
}

fn renamed(text: &str) -> String {
    let names = NAMES.iter();
    names.fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Makes the change on a copy of the tree and tries it: rules and golden lines, the view and the Pi
/// package, the simulator's story of it, and its command.
///
/// # Errors
/// When the change does not fit the tree, or something does not hold with it.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let listed = ToolCommand::new(
        root,
        "git",
        &["ls-files", "-z", "-c", "-o", "--exclude-standard"],
    );
    let listed = listed.read()?;
    let copy = root.join("target/toy-mode/tree");
    if copy.exists() {
        fs::remove_dir_all(&copy).context("remove the copy of before")?;
    }
    let mut files = BTreeMap::new();
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        let Ok(bytes) = fs::read(root.join(path)) else {
            // Deleted, and not yet committed.
            continue;
        };
        write(&copy.join(path), &bytes)?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.insert(path.to_owned(), text);
        }
    }
    let text = files.get(&format!("{CORPUS}/inserts.toml"));
    let mode = ToyMode::parse(text.context("find the toy mode")?)?;
    for (path, text) in mode.applied(&files)? {
        write(&copy.join(path), text.as_bytes())?;
    }
    let builds = root.join("target/toy-mode/build");
    for words in TRIED {
        say(&format!("cargo {}", words.join(" ")));
        let tool = ToolCommand::new(&copy, "cargo", words);
        tool.env("CARGO_TARGET_DIR", &builds).run()?;
    }
    say(&format!(
        "toy mode: {} existing files, {} lines, and it works.",
        mode.touched().len(),
        mode.n_lines()
    ));
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let writing = || format!("write {}", path.display());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(writing)?;
    }
    RealDisk.write(path, bytes).with_context(writing)
}
