//! What nobody checks: packages, modules and tests that a list further up does not name and that are no
//! projects of their own; and projects for which no command was found.
//!
//! Only told, never run: whether such a directory matters is known to its project.

use super::directory::{Directory, WorkspaceNotation};
use super::profile::{CheckProfile, CheckProfiles, Outside};
use super::{CheckChoice, CheckDisposition, CheckVerb, PlannedCheck, ProjectRoot, select, words};

/// Directories that a sentence names.
const NAMED_MAX: usize = 3;

/// What selection was given, and the projects that it found.
#[derive(Debug, Clone, Copy)]
pub struct SelectedRoots<'a> {
    /// The table.
    pub profiles: &'a CheckProfiles,
    /// What lies in the directories.
    pub directories: &'a [Directory],
    /// The projects among them.
    pub roots: &'a [ProjectRoot],
}

/// Returns a sentence for each kind of thing within a path that is not checked.
#[must_use]
pub fn strays(selected: &SelectedRoots<'_>, within: &str) -> Vec<String> {
    let all: Vec<&Directory> = selected.directories.iter().collect();
    let is_root = |path: &str| selected.roots.iter().any(|root| root.path == path);
    let candidates: Vec<&Directory> = selected
        .directories
        .iter()
        .filter(|directory| !directory.path.is_empty() && !is_root(&directory.path))
        .filter(|directory| select::is_within(&directory.path, within))
        .collect();
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for profile in &selected.profiles.all {
        for outside in &profile.outside {
            let kind = StrayKind {
                selected,
                all: &all,
                profile,
                outside,
            };
            let left_out = candidates.iter().filter(|one| kind.is_left_out(one));
            left_out.for_each(|one| tell(&mut told, &outside.why, &one.path));
        }
    }
    told.iter()
        .map(|(why, paths)| format!("Not checked: {}: {why}.", listed(paths)))
        .collect()
}

/// Returns sentences that name the projects for which none of the planned checks is run, with why.
#[must_use]
pub fn uncovered(roots: &[ProjectRoot], planned: &[PlannedCheck]) -> Vec<String> {
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for root in roots {
        let own = planned.iter().filter(|one| one.check.root == root.path);
        let mut reasons: Vec<&str> = Vec::new();
        let mut is_run = false;
        for one in own {
            match &one.disposition {
                CheckDisposition::Run => is_run = true,
                CheckDisposition::Skip { reason } => reasons.push(reason),
            }
        }
        if is_run {
            continue;
        }
        let none = || format!("Kapi knows none for {}", root.profiles.join(", "));
        let why = reasons
            .first()
            .map_or_else(none, |reason| (*reason).to_owned());
        tell(&mut told, &why, words::named(&root.path));
    }
    told.iter()
        .map(|(why, paths)| format!("No command covers {}: {why}.", listed(paths)))
        .collect()
}

/// A kind of thing that can be left out, among everything.
struct StrayKind<'a> {
    selected: &'a SelectedRoots<'a>,
    all: &'a [&'a Directory],
    profile: &'a CheckProfile,
    outside: &'a Outside,
}

impl StrayKind<'_> {
    /// Tells whether a directory is one that a list could name, and none does.
    fn is_left_out(&self, directory: &Directory) -> bool {
        let of = self.outside.of;
        let is_part = if self.outside.has.is_empty() {
            self.has_scripts(directory)
        } else {
            directory.has_any(&self.outside.has) && self.has_list(directory)
        };
        let is_dependency = || {
            let mut others = self.all.iter();
            others.any(|other| other.path_dependencies.contains(&directory.path))
        };
        is_part
            && !select::is_declared(of, directory, self.all)
            && !(of == WorkspaceNotation::Cargo && is_dependency())
    }

    fn has_scripts(&self, directory: &Directory) -> bool {
        let free = select::free(self.selected.profiles, directory, self.all);
        free.iter().any(|one| one.id == self.profile.id)
            && select::is_inner(self.profile, directory)
    }

    /// Tells whether a directory above has a list in which a directory could be.
    fn has_list(&self, directory: &Directory) -> bool {
        let of = self.outside.of;
        self.all.iter().any(|list| {
            list.is_workspace(of)
                && list.relative(&directory.path).is_some()
                && !list.excludes(of, &directory.path)
                && !self.is_between(list, directory)
                && self.passes_over(list)
        })
    }

    /// Tells whether another project of the ecosystem lies below a list and holds a directory.
    fn is_between(&self, list: &Directory, directory: &Directory) -> bool {
        self.own().any(|root| {
            list.relative(&root.path).is_some() && select::is_within(&directory.path, &root.path)
        })
    }

    /// Tells whether what the list is for is run where it lies.
    fn passes_over(&self, list: &Directory) -> bool {
        let Some(verb) = self.outside.verb else {
            return true;
        };
        let choices = self.own().filter(|root| root.path == list.path);
        let mut choices = choices.flat_map(|root| &root.choices);
        choices.any(|choice| provides(choice, verb, &self.profile.id))
    }

    /// Returns the projects of the ecosystem.
    fn own(&self) -> impl Iterator<Item = &ProjectRoot> {
        let roots = self.selected.roots.iter();
        roots.filter(|root| select::is_of(self.selected.profiles, root, self.profile))
    }
}

fn provides(choice: &CheckChoice, verb: CheckVerb, profile: &str) -> bool {
    match choice {
        CheckChoice::Check(check) => check.verb == verb && check.provider == profile,
        CheckChoice::Declined { .. } => false,
    }
}

/// Adds a path to those that are told for one reason.
fn tell(told: &mut Vec<(String, Vec<String>)>, why: &str, path: &str) {
    match told.iter_mut().find(|(known, _)| known == why) {
        Some((_, paths)) if paths.iter().any(|known| known == path) => {}
        Some((_, paths)) => paths.push(path.to_owned()),
        None => told.push((why.to_owned(), vec![path.to_owned()])),
    }
}

fn listed(paths: &[String]) -> String {
    let shown = paths
        .iter()
        .take(NAMED_MAX)
        .cloned()
        .collect::<Vec<String>>()
        .join(", ");
    match paths.len().saturating_sub(NAMED_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
