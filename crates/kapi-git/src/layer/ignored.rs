//! Which new files of a layer git is told to ignore, and by which rules files are converted.
//!
//! The rules are those of the tree as the agent saw it: its own, else the base's, else those that
//! lie untracked beside what they rule over. Git applies them; nothing here reads a pattern.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::direct::Conversion;
use super::staging::Staging;
use super::survey::{LayerPathKind, LayerSurvey};
use super::trees::Trees;
use crate::candidate::link;
use crate::owned_dir::DirError;
use crate::repository::Repository;
use crate::scratch::Scratch;

/// The largest file with rules that is obeyed.
const RULES_BYTES_MAX: u64 = 16 << 20;

/// The files with rules that git looks for in every directory.
pub(crate) const RULE_FILES: &[&str] = &[".gitignore", ".gitattributes"];

/// What the rules are taken from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IgnoreSources<'a> {
    pub(crate) survey: &'a LayerSurvey,
    pub(crate) trees: &'a Trees<'a>,
}

/// The rules that lie in a staging directory.
#[derive(Debug)]
pub(crate) struct StagedRules {
    /// Where.
    pub(crate) paths: BTreeSet<PathBuf>,
    /// Whether any of them says what to ignore.
    pub(crate) has_ignores: bool,
    /// What those about attributes may do to a file.
    pub(crate) conversion: Conversion,
}

impl StagedRules {
    fn note(&mut self, path: PathBuf, name: &str, text: &[u8]) {
        self.paths.insert(path);
        if name == ".gitignore" {
            self.has_ignores = true;
        } else {
            self.conversion = self.conversion.and(Conversion::of_attributes(text));
        }
    }
}

/// Puts the rules for these directories into the staging directory.
pub(crate) fn lay_out(
    sources: &IgnoreSources<'_>,
    dirs: &BTreeSet<PathBuf>,
    staging: &mut Staging,
) -> Result<StagedRules, DirError> {
    let mut laid = StagedRules {
        paths: BTreeSet::new(),
        has_ignores: false,
        conversion: Conversion::Nothing,
    };
    for dir in dirs {
        for name in RULE_FILES {
            let path = dir.join(name);
            if let Some(bytes) = rules(sources, dir, &path) {
                staging.put_bytes(&path, &bytes)?;
                laid.note(path, name, &bytes);
            }
        }
    }
    Ok(laid)
}

/// Returns what the rules of the repository as a whole may do to a file.
pub(crate) fn conversion(repository: &Repository, scratch: &Scratch<'_>) -> Conversion {
    let attributes = fs::read(scratch.index().with_file_name("info/attributes"));
    let of_repository = Conversion::of_attributes(&attributes.unwrap_or_default());
    let converts = |(key, value): &(String, String)| {
        key == "core.autocrlf" && !value.eq_ignore_ascii_case("false")
    };
    if repository.conversions().iter().any(converts) {
        of_repository.and(Conversion::LineEndings)
    } else {
        of_repository
    }
}

/// Tells whether the repository as a whole has rules about what to ignore.
pub(crate) fn has_excludes(scratch: &Scratch<'_>) -> bool {
    let text = fs::read(scratch.index().with_file_name("info/exclude")).unwrap_or_default();
    let mut lines = text.split(|&b| b == b'\n');
    lines.any(|line| !line.is_empty() && !line.starts_with(b"#"))
}

fn rules<'a>(sources: &IgnoreSources<'a>, dir: &Path, path: &Path) -> Option<Cow<'a, [u8]>> {
    let survey = sources.survey;
    match survey.what(path) {
        Some(LayerPathKind::File { bytes, .. }) if *bytes <= RULES_BYTES_MAX => {
            return read(survey.upper.file(path)).map(Cow::Owned);
        }
        // A link that no commit takes: git finds the rules of the commit in its place.
        Some(LayerPathKind::Link { target })
            if path.ends_with(".gitattributes") && link::leads_out(path, target) =>
        {
            let entry = sources.trees.entry(path);
            entry.filter(|entry| entry.is_file())?;
            return sources.trees.file(path).map(Cow::Borrowed);
        }
        // Git follows no link here either.
        Some(_) => return None,
        None if survey.hides(dir) => return None,
        None => {}
    }
    match sources.trees.entry(path) {
        Some(entry) if entry.is_file() => sources.trees.file(path).map(Cow::Borrowed),
        Some(_) => None,
        None => read(survey.lower.file(path)).map(Cow::Owned),
    }
}

fn read(file: io::Result<fs::File>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut limited = file.ok()?.take(RULES_BYTES_MAX + 1);
    limited.read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= RULES_BYTES_MAX).then_some(bytes)
}
