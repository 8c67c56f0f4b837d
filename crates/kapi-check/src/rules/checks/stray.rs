//! Packages that nobody checks: below a workspace which does not take them in, and no projects of their
//! own.
//!
//! Only told, never run: whether such a package is one at all is known to its project.

use super::directory::{Directory, WorkspaceNotation};
use super::profile::CheckProfiles;
use super::{ProjectRoot, select};

/// Packages that a sentence names.
const NAMED_MAX: usize = 3;

/// Returns a sentence for each kind of package within a path that is not checked.
#[must_use]
pub fn strays(
    profiles: &CheckProfiles,
    directories: &[Directory],
    roots: &[ProjectRoot],
    within: &str,
) -> Vec<String> {
    let all: Vec<&Directory> = directories.iter().collect();
    let is_root = |path: &str| roots.iter().any(|root| root.path == path);
    let candidates: Vec<&Directory> = directories
        .iter()
        .filter(|directory| !directory.path.is_empty() && !is_root(&directory.path))
        .filter(|directory| select::is_within(&directory.path, within))
        .collect();
    let cargo = candidates.iter().filter(|one| is_outside(one, &all));
    let node = candidates.iter().filter(|one| {
        let free = select::free(profiles, one, &all);
        free.iter().any(|profile| select::is_inner(profile, one))
    });
    let cargo: Vec<String> = cargo.map(|one| one.path.clone()).collect();
    let node: Vec<String> = node.map(|one| one.path.clone()).collect();
    let told = [
        (
            cargo,
            "neither a member of the Cargo workspace above nor excluded, so Cargo refuses to work \
             there; add it to `members` or `exclude`",
        ),
        (
            node,
            "a package.json with scripts, but without a lock file and in no workspace; install its \
             dependencies there, or add it to `workspaces`",
        ),
    ];
    told.iter()
        .filter(|(paths, _)| !paths.is_empty())
        .map(|(paths, why)| format!("Not checked: {}: {why}.", listed(paths)))
        .collect()
}

/// Tells whether a package lies below a Cargo workspace that neither takes it in nor leaves it out.
fn is_outside(package: &Directory, all: &[&Directory]) -> bool {
    const CARGO: WorkspaceNotation = WorkspaceNotation::Cargo;
    if !package.has("Cargo.toml") || package.is_workspace(CARGO) {
        return false;
    }
    let above = all
        .iter()
        .filter(|other| other.is_workspace(CARGO) && other.relative(&package.path).is_some());
    let Some(workspace) = above.max_by_key(|other| other.path.len()) else {
        return false;
    };
    let is_dependency = || {
        let mut members = all.iter();
        members.any(|other| other.path_dependencies.contains(&package.path))
    };
    workspace.declares(CARGO, &package.path)
        && !workspace.names(CARGO, &package.path)
        && !is_dependency()
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
