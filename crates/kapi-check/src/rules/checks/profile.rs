//! The form of the table of profiles: what a kind of project is recognised by and how it is checked.
//!
//! The table itself is `profiles.toml`, where each key is explained. Reading it is the caller's
//! business: nothing here knows its notation.

use std::collections::BTreeSet;
use std::iter;

use serde::Deserialize;

use super::directory::{Directory, WorkspaceNotation};
use super::{CheckVerb, mise};

/// The table that comes with Kapi.
pub const TABLE: &str = include_str!("profiles.toml");

/// The whole table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckProfiles {
    /// In order of precedence.
    #[serde(rename = "profile")]
    pub all: Vec<CheckProfile>,
}

/// One kind of project.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckProfile {
    /// Its name.
    pub id: String,
    /// The name of its ecosystem.
    pub ecosystem: String,
    /// Files that make their directory a project.
    #[serde(default)]
    pub markers: Vec<String>,
    /// Files that do so only where no directory above is one.
    #[serde(default)]
    pub hints: Vec<String>,
    /// Files that do so only at the top of everything that is looked at.
    #[serde(default)]
    pub top: Vec<String>,
    /// Files in a directory of the top that make the top a project, if nothing else does.
    #[serde(default)]
    pub tests: Vec<String>,
    /// Files that do so where no directory above is a project of the same ecosystem, if the project has
    /// a script for a check.
    #[serde(default)]
    pub inner: Vec<String>,
    /// Files beside which a hint means nothing.
    #[serde(default)]
    pub unless: Vec<String>,
    /// What one of the marker files must say.
    pub content: Option<Mention>,
    /// Files that take projects further down in.
    #[serde(default)]
    pub covered_by: Vec<String>,
    /// Files that keep a project further down one of its own all the same.
    #[serde(default)]
    pub apart: Vec<String>,
    /// Whose member lists take projects further down in.
    pub workspace: Option<WorkspaceNotation>,
    /// Whether each member is a project of its own all the same.
    #[serde(default)]
    pub each: bool,
    /// What further down is told to be left out.
    #[serde(default)]
    pub outside: Vec<Outside>,
    typecheck: Option<CheckStep>,
    lint: Option<CheckStep>,
    format: Option<CheckStep>,
    compile: Option<CheckStep>,
    test: Option<CheckStep>,
    build: Option<CheckStep>,
}

/// What is told of a directory further down that is no project of its own and that no list names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outside {
    /// Files, one of which shows that the directory could have been named; none for one whose scripts
    /// are checks.
    #[serde(default)]
    pub has: Vec<String>,
    /// Whose lists they are.
    pub of: WorkspaceNotation,
    /// The only verb that passes it over, if it is only one.
    pub verb: Option<CheckVerb>,
    /// What it is and how it is taken in, as a fragment.
    pub why: String,
}

/// How one verb is checked, and when.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckStep {
    /// The shell line.
    pub run: String,
    /// One of these must be in the project.
    #[serde(default)]
    pub file: Vec<String>,
    /// What one of the project's files must say.
    pub mentions: Option<Mention>,
    /// The script that `package.json` must have.
    pub script: Option<String>,
    /// The script that a member of the workspace must have, and `package.json` itself not.
    pub members: Option<String>,
    /// One of these targets must be in the makefile.
    #[serde(default)]
    pub target: Vec<String>,
    /// Programs, and command lines that must succeed.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The exit code that means that there was nothing to check.
    pub nothing: Option<Nothing>,
    /// What is run where something that it needs is missing.
    pub otherwise: Option<Box<Self>>,
    /// Whether nobody misses it where the project does not ask for it.
    #[serde(default)]
    pub optional: bool,
    /// Why there is none, where the project asks for none of these, as a fragment.
    pub none: Option<String>,
    /// What comes before all this where the project asks for it.
    #[serde(default)]
    pub first: Vec<Self>,
    /// What comes after all that other kinds of projects provide.
    #[serde(default)]
    pub last: Vec<Self>,
}

/// A text that one of several files must hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mention {
    /// The files.
    #[serde(rename = "in")]
    pub files: Vec<String>,
    /// The texts, of which one is enough.
    pub any: Vec<String>,
}

/// An exit code that is no failure.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {
    /// The code.
    pub code: i32,
    /// What it means.
    pub means: String,
}

impl CheckProfile {
    /// Returns the names of the scripts that are checks.
    pub(super) fn scripts(&self) -> impl Iterator<Item = &str> {
        self.steps().filter_map(|step| step.script.as_deref())
    }

    /// Returns every step, those that come first and last among them.
    fn steps(&self) -> impl Iterator<Item = &CheckStep> {
        let steps = CheckVerb::ALL.iter().filter_map(|verb| self.step(*verb));
        steps.flat_map(|step| iter::once(step).chain(&step.first).chain(&step.last))
    }

    /// Tells whether a directory has files that make the top a project if nothing else does.
    pub(super) fn is_tested_by(&self, directory: &Directory) -> bool {
        let files = self.tests.iter().filter_map(|name| name.split_once('/'));
        let mut here = files.filter(|(below, _)| *below == directory.path);
        here.any(|(_, name)| directory.has(name))
    }

    /// Tells whether everything below a list of its workspace is no project of its own, named or not.
    pub(super) fn takes_all_in(&self) -> bool {
        let mut outside = self.outside.iter();
        outside.any(|one| Some(one.of) == self.workspace && !one.has.is_empty())
    }

    /// Returns how a verb is checked, if this kind of project knows it.
    #[must_use]
    pub const fn step(&self, verb: CheckVerb) -> Option<&CheckStep> {
        match verb {
            CheckVerb::Typecheck => self.typecheck.as_ref(),
            CheckVerb::Lint => self.lint.as_ref(),
            CheckVerb::Format => self.format.as_ref(),
            CheckVerb::Compile => self.compile.as_ref(),
            CheckVerb::Test => self.test.as_ref(),
            CheckVerb::Build => self.build.as_ref(),
        }
    }
}

impl CheckProfiles {
    /// Tells whether a directory can matter for selection.
    #[must_use]
    pub fn concerns(&self, directory: &Directory) -> bool {
        let is_named = |profile: &CheckProfile| {
            directory.has_any(&profile.markers)
                || directory.has_any(&profile.hints)
                || directory.has_any(&profile.inner)
                || profile.is_tested_by(directory)
                || directory.has_any(&profile.covered_by)
                || profile
                    .outside
                    .iter()
                    .any(|one| directory.has_any(&one.has))
                || lists(profile)
                    .iter()
                    .any(|one| one.files().iter().any(|name| directory.has(name)))
        };
        // What the top is may be told by what lies in it.
        directory.path.is_empty()
            || self.all.iter().any(is_named)
            || mise::FILES.iter().any(|name| directory.has(name))
    }

    /// Returns the names that make a directory a project, sorted.
    #[must_use]
    pub fn marks(&self) -> BTreeSet<&str> {
        let profiles = self.all.iter();
        let names = profiles.flat_map(|one| [&one.markers, &one.hints, &one.top]);
        let names = names.flatten().map(String::as_str);
        names.chain(mise::FILES).collect()
    }

    /// Returns the files whose text selection asks for, sorted.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        let steps = |profile: &CheckProfile| -> Vec<String> {
            let files = profile.steps().flat_map(|step| {
                let mentioned = step.mentions.iter().flat_map(|mention| &mention.files);
                let makefiles = profile.hints.iter().filter(|_| !step.target.is_empty());
                mentioned.chain(makefiles)
            });
            let content = profile.content.iter().flat_map(|mention| &mention.files);
            let listed = lists(profile)
                .into_iter()
                .flat_map(WorkspaceNotation::files);
            let listed = listed.map(|&name| name.to_owned());
            files.chain(content).cloned().chain(listed).collect()
        };
        let mut files: Vec<String> = self.all.iter().flat_map(steps).collect();
        files.sort();
        files.dedup();
        files
    }
}

/// Returns whose lists a kind of project looks at.
fn lists(profile: &CheckProfile) -> Vec<WorkspaceNotation> {
    let outside = profile.outside.iter().map(|one| one.of);
    profile.workspace.into_iter().chain(outside).collect()
}
