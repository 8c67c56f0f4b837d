//! What a path of a project is to a proof: a test, what steers a run, what shadows a runner.
//!
//! Decided by the path alone, with the table of ecosystems. Knows no disk; directories have no role.

use std::collections::{BTreeMap, BTreeSet};

use kapi_core::glob::Glob;
use kapi_core::value::KernelValue;
use serde::{Deserialize, Serialize};

use super::ecosystem::{EcosystemTable, ProjectEcosystem};

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathRole {
    /// A test, or what tests read.
    Test,
    /// It steers a run, as a whole or by some of its keys.
    Steering,
    /// It stands before a runner or before a module that a runner uses.
    Shadow,
    /// It lies where dependencies are installed.
    Dependency,
    /// It lies where output is built.
    Output,
    /// It says which dependencies are installed.
    LockFile,
    /// It holds secrets, by its name.
    Credential,
}

/// All that a path is; nothing for most.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Roles(pub BTreeSet<PathRole>);

impl Roles {
    /// Tells whether the path has a role.
    #[must_use]
    pub fn has(&self, role: PathRole) -> bool {
        self.0.contains(&role)
    }
}

/// The table, ready to be asked.
#[derive(Debug, Clone)]
pub struct Ecosystems {
    all: Vec<RoleRules>,
}

#[derive(Debug, Clone)]
struct RoleRules {
    id: String,
    always: bool,
    markers: Patterns,
    sources: Patterns,
    tests: Patterns,
    not_tests: Patterns,
    steering: Patterns,
    keys: Vec<(Patterns, Vec<Glob>)>,
    lines: Vec<(Patterns, Vec<Glob>)>,
    shadows: Patterns,
    dependencies: Patterns,
    output: Patterns,
    locks: Patterns,
    credentials: Patterns,
}

/// Patterns of the table: at any depth, or at the top of a project.
#[derive(Debug, Clone)]
struct Patterns {
    anywhere: Vec<Glob>,
    at_top: Vec<Glob>,
}

impl Patterns {
    fn new<'a>(texts: impl IntoIterator<Item = &'a String>) -> Self {
        let mut patterns = Self {
            anywhere: Vec::new(),
            at_top: Vec::new(),
        };
        for text in texts {
            match text.strip_prefix('/') {
                Some(at_top) => patterns.at_top.push(Glob::new(at_top)),
                None => patterns.anywhere.push(Glob::new(&format!("**/{text}"))),
            }
        }
        patterns
    }

    fn has_file(&self, names: &[&str], below_tops: &[&[&str]]) -> bool {
        let at_top = |below: &&[&str]| self.at_top.iter().any(|glob| glob.matches_names(below));
        self.anywhere.iter().any(|glob| glob.matches_names(names)) || below_tops.iter().any(at_top)
    }

    fn has_directory_of(&self, names: &[&str]) -> bool {
        self.anywhere.iter().any(|glob| glob.covers_names(names))
    }
}

impl From<&ProjectEcosystem> for RoleRules {
    fn from(one: &ProjectEcosystem) -> Self {
        let keys = one.steering_keys.iter().map(|rule| {
            let keys = rule.keys.iter().map(|key| Glob::new(key)).collect();
            (Patterns::new([&rule.file]), keys)
        });
        let lines = one.steering_lines.iter().map(|rule| {
            // A line is one name: its slashes are none of a path.
            let lines = rule
                .lines
                .iter()
                .map(|line| Glob::new(&line.replace('/', "\\")));
            (Patterns::new([&rule.file]), lines.collect())
        });
        Self {
            id: one.id.clone(),
            always: one.always,
            markers: Patterns::new(&one.markers),
            sources: Patterns::new(&one.sources),
            tests: Patterns::new(&one.tests),
            not_tests: Patterns::new(&one.not_tests),
            steering: Patterns::new(&one.steering),
            keys: keys.collect(),
            lines: lines.collect(),
            shadows: Patterns::new(&one.shadows),
            dependencies: Patterns::new(&one.dependencies),
            output: Patterns::new(&one.output),
            locks: Patterns::new(one.prepare.iter().map(|prepare| &prepare.lock)),
            credentials: Patterns::new(&one.credentials),
        }
    }
}

impl From<&EcosystemTable> for Ecosystems {
    fn from(table: &EcosystemTable) -> Self {
        Self {
            all: table.all.iter().map(RoleRules::from).collect(),
        }
    }
}

impl Ecosystems {
    /// Returns what a project is of, by the paths of its files relative to its top. Give it the base's
    /// and the change's together, so that a change cannot make an ecosystem go away.
    pub fn of<'p>(&self, files: impl IntoIterator<Item = &'p str>) -> Present<'_> {
        let mut tops: BTreeMap<usize, BTreeSet<Vec<String>>> = BTreeMap::new();
        for (n, rules) in self.all.iter().enumerate() {
            if rules.always {
                tops.entry(n).or_default().insert(Vec::new());
            }
        }
        for file in files {
            let names: Vec<&str> = file.split('/').collect();
            self.add_file(&names, &mut tops);
        }
        let found = tops
            .into_iter()
            .filter_map(|(n, tops)| Some((self.all.get(n)?, tops)));
        Present {
            found: found.collect(),
        }
    }

    fn add_file(&self, names: &[&str], tops: &mut BTreeMap<usize, BTreeSet<Vec<String>>>) {
        let (_, directory) = names.split_last().unwrap_or((&"", &[]));
        for (n, rules) in self.all.iter().enumerate() {
            if rules.markers.has_file(names, &[]) {
                let top = directory.iter().map(|name| (*name).to_owned()).collect();
                tops.entry(n).or_default().extend([Vec::new(), top]);
            } else if !tops.contains_key(&n) && rules.sources.has_file(names, &[]) {
                tops.entry(n).or_default().insert(Vec::new());
            }
        }
    }
}

/// The ecosystems of one project.
#[derive(Debug, Clone)]
pub struct Present<'e> {
    /// Each with the directories that are projects of it, taken apart at their slashes.
    found: Vec<(&'e RoleRules, BTreeSet<Vec<String>>)>,
}

/// How a file steers a run.
#[derive(Debug, Clone, Copy)]
pub enum Steering<'e> {
    /// As a whole.
    Whole,
    /// By some of its keys.
    Keys(&'e [Glob]),
    /// By some of its lines.
    Lines(&'e [Glob]),
}

impl<'e> Present<'e> {
    /// Returns the names of the ecosystems.
    #[must_use]
    pub fn ids(&self) -> Vec<&'e str> {
        self.found
            .iter()
            .map(|(rules, _)| rules.id.as_str())
            .collect()
    }

    /// Returns what a file is, by its path relative to the top.
    #[must_use]
    pub fn roles(&self, path: &str) -> Roles {
        let names: Vec<&str> = path.split('/').collect();
        let mut roles = Roles::default();
        let mut is_no_test = false;
        for (rules, tops) in &self.found {
            let below: Vec<&[&str]> = tops.iter().filter_map(|top| below(&names, top)).collect();
            is_no_test |= rules.not_tests.has_file(&names, &below);
            let steers = || {
                let mut keyed = rules.keys.iter().chain(&rules.lines);
                rules.steering.has_file(&names, &below)
                    || keyed.any(|(file, _)| file.has_file(&names, &below))
            };
            let found = [
                (PathRole::Test, rules.tests.has_file(&names, &below)),
                (PathRole::Steering, steers()),
                (PathRole::Shadow, rules.shadows.has_file(&names, &below)),
                (
                    PathRole::Dependency,
                    rules.dependencies.has_directory_of(&names),
                ),
                (PathRole::Output, rules.output.has_directory_of(&names)),
                (PathRole::LockFile, rules.locks.has_file(&names, &below)),
                (
                    PathRole::Credential,
                    rules.credentials.has_file(&names, &below),
                ),
            ];
            let found = found.into_iter().filter(|(_, is_so)| *is_so);
            roles.0.extend(found.map(|(role, _)| role));
        }
        if is_no_test {
            roles.0.remove(&PathRole::Test);
        }
        roles
    }

    /// Returns how a file steers a run; `None` if it does not.
    #[must_use]
    pub fn steering(&self, path: &str) -> Option<Steering<'e>> {
        let names: Vec<&str> = path.split('/').collect();
        let mut partly = None;
        for (rules, tops) in &self.found {
            let below: Vec<&[&str]> = tops.iter().filter_map(|top| below(&names, top)).collect();
            if rules.steering.has_file(&names, &below) {
                return Some(Steering::Whole);
            }
            let rule_of = |rules: &'e [(Patterns, Vec<Glob>)]| {
                let found = rules.iter().find(|(file, _)| file.has_file(&names, &below));
                found.map(|(_, globs)| globs.as_slice())
            };
            partly = partly
                .or_else(|| rule_of(&rules.keys).map(Steering::Keys))
                .or_else(|| rule_of(&rules.lines).map(Steering::Lines));
        }
        partly
    }
}

/// Returns a path below a top, if it lies there.
fn below<'n, 'p>(names: &'n [&'p str], top: &[String]) -> Option<&'n [&'p str]> {
    let (above, below) = names.split_at_checked(top.len())?;
    (above.iter().zip(top).all(|(name, other)| name == other)).then_some(below)
}

/// Returns the steering keys in which two versions of a file differ, each as a `/`-separated path.
#[must_use]
pub fn differing_keys(keys: &[Glob], old: &KernelValue, new: &KernelValue) -> Vec<String> {
    let mut found = Vec::new();
    compare(
        keys,
        &mut Vec::new(),
        Sides {
            old: Some(old),
            new: Some(new),
        },
        &mut found,
    );
    found
}

#[derive(Clone, Copy)]
struct Sides<'v> {
    old: Option<&'v KernelValue>,
    new: Option<&'v KernelValue>,
}

fn compare<'v>(keys: &[Glob], path: &mut Vec<&'v str>, sides: Sides<'v>, found: &mut Vec<String>) {
    if sides.old == sides.new {
        return;
    }
    // A key may hold slashes, as the names of packages do.
    let whole = path.join("/");
    let names: Vec<&str> = whole.split('/').collect();
    if !path.is_empty() && keys.iter().any(|key| key.matches_names(&names)) {
        found.push(whole);
        return;
    }
    let children = |value: Option<&'v KernelValue>| match value {
        Some(KernelValue::Map(entries)) => Some(entries),
        Some(_) | None => None,
    };
    let (old, new) = (children(sides.old), children(sides.new));
    let names: BTreeSet<&'v String> = old
        .into_iter()
        .chain(new)
        .flat_map(BTreeMap::keys)
        .collect();
    for name in names {
        path.push(name);
        let sides = Sides {
            old: old.and_then(|entries| entries.get(name)),
            new: new.and_then(|entries| entries.get(name)),
        };
        compare(keys, path, sides, found);
        path.pop();
    }
}

/// Returns the new version of a file with its steering keys as they were in the old one.
#[must_use]
pub fn put_back(keys: &[Glob], old: &KernelValue, new: &KernelValue) -> KernelValue {
    restored(keys, &mut Vec::new(), Some(old), Some(new)).unwrap_or_default()
}

fn restored<'v>(
    keys: &[Glob],
    path: &mut Vec<&'v str>,
    old: Option<&'v KernelValue>,
    new: Option<&'v KernelValue>,
) -> Option<KernelValue> {
    let whole = path.join("/");
    let names: Vec<&str> = whole.split('/').collect();
    if !path.is_empty() && keys.iter().any(|key| key.matches_names(&names)) {
        return old.cloned();
    }
    let children = |value: Option<&'v KernelValue>| match value {
        Some(KernelValue::Map(entries)) => Some(entries),
        Some(_) | None => None,
    };
    let (old_entries, new_entries) = (children(old), children(new));
    if new_entries.is_none() && (new.is_some() || old_entries.is_none()) {
        return new.cloned();
    }
    let both = old_entries.into_iter().chain(new_entries);
    let names: BTreeSet<&'v String> = both.flat_map(BTreeMap::keys).collect();
    let mut entries = BTreeMap::new();
    for name in names {
        path.push(name);
        let old = old_entries.and_then(|entries| entries.get(name));
        let new = new_entries.and_then(|entries| entries.get(name));
        let value = restored(keys, path, old, new);
        path.pop();
        if let Some(value) = value {
            entries.insert(name.clone(), value);
        }
    }
    (new.is_some() || !entries.is_empty()).then_some(KernelValue::Map(entries))
}

/// Returns the lines of a file that steer a run, without blanks around.
#[must_use]
pub fn steering_lines<'t>(lines: &[Glob], text: &'t str) -> Vec<&'t str> {
    let found = text.lines().map(str::trim);
    found.filter(|line| is_steering(lines, line)).collect()
}

/// Returns the new text without its steering lines, and the old one's before it.
#[must_use]
pub fn with_lines_of(lines: &[Glob], old: &str, new: &str) -> String {
    let kept = old.lines().filter(|line| is_steering(lines, line));
    let rest = new.lines().filter(|line| !is_steering(lines, line));
    kept.chain(rest).map(|line| format!("{line}\n")).collect()
}

fn is_steering(lines: &[Glob], line: &str) -> bool {
    // A line is one name: its slashes are none of a path.
    let name = line.trim().replace('/', "\\");
    lines
        .iter()
        .any(|glob| glob.matches_names(&[name.as_str()]))
}

#[cfg(test)]
mod tests;
