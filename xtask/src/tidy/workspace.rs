//! Rules about the workspace as a whole: lints, dependencies, traits, changelog.
//!
//! Directions of dependency are not here; they are checked against what Cargo declares.

use super::TidyFault;
use super::tree::{SourceTree, TextFile};

/// The most packages in Cargo.lock, our own included. Raise it with a reason in the commit.
const PACKAGES_MAX: usize = 232;

/// Every trait of ours, and what real implementations make it worth having.
const SEAMS: &[(&str, &str)] = &[
    (
        "Disk",
        "the real disk, and the simulated one that loses power",
    ),
    ("Clock", "the machine's clock, and one that is stepped"),
    (
        "World",
        "the real world, and the simulated one that survives crashes",
    ),
    (
        "RunService",
        "who starts a run answers its agent's tools: a goal's caller, and the tests' that refuses",
    ),
    (
        "Machine",
        "goals, workflows, tasks, the ledger, preferences: each a stream of events and its fold",
    ),
    (
        "CrashScenario",
        "what the crash simulation cuts off: a goal, workflows, a queue of tasks",
    ),
    (
        "ModeRules",
        "every durable mode: its part of a workflow decides, folds and plans",
    ),
];

/// A crate without the workspace's lints is a crate without rules.
pub(super) fn every_crate_takes_the_lints(tree: &SourceTree) -> Vec<TidyFault> {
    let is_crate = |file: &&TextFile| {
        let in_crates = file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml");
        (in_crates && file.path.matches('/').count() == 2) || file.path == "xtask/Cargo.toml"
    };
    let has_lints = |file: &&TextFile| file.text.contains("[lints]\nworkspace = true\n");
    let fault = |file: &TextFile| TidyFault {
        path: file.path.clone(),
        line: 0,
        message: "take the lints: `[lints]` and `workspace = true`".to_owned(),
    };
    tree.files
        .iter()
        .filter(is_crate)
        .filter(|file| !has_lints(file))
        .map(fault)
        .collect()
}

/// Every package is code that somebody must trust.
pub(super) fn dependencies_stay_few(tree: &SourceTree) -> Vec<TidyFault> {
    let Some(lock) = tree.file("Cargo.lock") else {
        return vec![whole_file(
            "Cargo.lock",
            "commit it: the binary is built from it",
        )];
    };
    let packages = lock
        .text
        .lines()
        .filter(|line| *line == "[[package]]")
        .count();
    if packages <= PACKAGES_MAX {
        return Vec::new();
    }
    let message = format!("{packages} packages are more than {PACKAGES_MAX}: drop one, or argue");
    vec![whole_file("Cargo.lock", &message)]
}

/// A trait is a seam, and a seam is a decision.
pub(super) fn traits_are_the_named_seams(tree: &SourceTree) -> Vec<TidyFault> {
    let mut faults = Vec::new();
    for file in tree.rust() {
        if !file.path.starts_with("crates/") || file.is_test() {
            continue;
        }
        for (line, text) in file.numbered() {
            let Some(name) = trait_name(text) else {
                continue;
            };
            if SEAMS.iter().any(|(seam, _)| *seam == name) {
                continue;
            }
            let message =
                format!("trait {name} is not one of the seams: a new one needs a design note");
            faults.push(TidyFault {
                path: file.path.clone(),
                line,
                message,
            });
        }
    }
    faults
}

/// Returns the name of the trait that this line declares.
fn trait_name(line: &str) -> Option<&str> {
    let line = line.trim();
    let line = ["pub(crate) ", "pub(super) ", "pub ", "unsafe "]
        .iter()
        .fold(line, |rest, prefix| {
            rest.strip_prefix(prefix).unwrap_or(rest)
        });
    let name = line.strip_prefix("trait ")?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .filter(|name| !name.is_empty())
}

/// The changelog always has a place for the next line.
pub(super) fn changelog_is_open(tree: &SourceTree) -> Vec<TidyFault> {
    let is_open = tree
        .file("CHANGELOG.md")
        .is_some_and(|file| file.text.lines().any(|line| line == "## [Unreleased]"));
    if is_open {
        return Vec::new();
    }
    vec![whole_file(
        "CHANGELOG.md",
        "keep a section `## [Unreleased]`",
    )]
}

fn whole_file(path: &str, message: &str) -> TidyFault {
    TidyFault {
        path: path.to_owned(),
        line: 0,
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::faults;
    use super::{
        changelog_is_open, dependencies_stay_few, every_crate_takes_the_lints,
        traits_are_the_named_seams,
    };

    #[test]
    fn crates_without_lints_are_found() {
        let files = [
            ("Cargo.toml", "[workspace]\n"),
            (
                "crates/a/Cargo.toml",
                "[package]\n\n[lints]\nworkspace = true\n",
            ),
            ("crates/b/Cargo.toml", "[package]\n"),
            ("crates/b/tests/fixtures/Cargo.toml", "[package]\n"),
        ];
        assert_eq!(
            faults(every_crate_takes_the_lints, &files),
            ["crates/b/Cargo.toml: take the lints: `[lints]` and `workspace = true`"]
        );
    }

    #[test]
    fn one_package_too_many_is_found() {
        let fits = "[[package]]\nname = \"a\"\n".repeat(232);
        let over = format!("{fits}[[package]]\n");
        assert_eq!(
            faults(dependencies_stay_few, &[("Cargo.lock", &fits)]),
            [""; 0]
        );
        assert_eq!(
            faults(dependencies_stay_few, &[("Cargo.lock", &over)]),
            ["Cargo.lock: 233 packages are more than 232: drop one, or argue"]
        );
        assert_eq!(
            faults(dependencies_stay_few, &[]),
            ["Cargo.lock: commit it: the binary is built from it"]
        );
    }

    #[test]
    fn another_trait_is_found() {
        let files = [
            (
                "crates/a/src/a.rs",
                "pub trait Disk: Send {\n}\n/// a trait of water\n",
            ),
            (
                "crates/a/src/b.rs",
                "\npub(crate) unsafe trait Spanner<T> {\n",
            ),
            ("crates/a/tests/it/c.rs", "trait Fixture {\n"),
            ("xtask/src/d.rs", "trait Local {\n"),
        ];
        assert_eq!(
            faults(traits_are_the_named_seams, &files),
            [
                "crates/a/src/b.rs:2: trait Spanner is not one of the seams: a new one needs a design note"
            ]
        );
    }

    #[test]
    fn a_closed_changelog_is_found() {
        let open = "# Changelog\n\n## [Unreleased]\n";
        assert_eq!(
            faults(changelog_is_open, &[("CHANGELOG.md", open)]),
            [""; 0]
        );
        let closed = "# Changelog\n\n## [0.1.0]\n";
        let expected = ["CHANGELOG.md: keep a section `## [Unreleased]`"];
        assert_eq!(
            faults(changelog_is_open, &[("CHANGELOG.md", closed)]),
            expected
        );
    }
}
