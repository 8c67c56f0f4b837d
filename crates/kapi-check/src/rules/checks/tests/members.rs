//! Members of workspaces: whose checks are run with the top's, and what nobody takes in.

use super::{command, declaring, directory, ecosystems, profiles, roots_of, with_scripts};
use crate::rules::checks::directory::{Directory, MemberList, WorkspaceNotation};
use crate::rules::checks::stray::strays;
use crate::rules::checks::{CheckVerb, select};

/// What is told of directories to somebody at the top.
fn told(directories: &[Directory]) -> Vec<String> {
    let (profiles, ecosystems) = (profiles(), ecosystems());
    let roots = select::roots(&profiles, &ecosystems, directories);
    strays(&profiles, directories, &roots, "")
}

fn workspace(path: &str, text: &str, named: &[&str], excluded: &[&str]) -> Directory {
    let mut top = directory(path, &[("Cargo.toml", text)]);
    top.declared.push(MemberList {
        workspace: WorkspaceNotation::Cargo,
        members: vec!["**".to_owned()],
        named: named.iter().map(|&one| one.to_owned()).collect(),
        excluded: excluded.iter().map(|&one| one.to_owned()).collect(),
    });
    top
}

#[test]
fn a_package_that_cargo_refuses_to_work_in_is_told() {
    let mut top = workspace("", "[workspace]", &["./crates/*/"], &["fuzz"]);
    top.path_dependencies = vec!["tools/gen".to_owned()];
    let package = |path: &str| directory(path, &[("Cargo.toml", "")]);
    let directories = [
        top,
        package("crates/a"),
        package("crates/a/inner"),
        package("fuzz"),
        package("tools/gen"),
        package("extra"),
        workspace("apart", "[workspace]", &[], &[]),
    ];
    let told = told(&directories);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("Not checked: crates/a/inner, extra: neither a member"),
        "{told:?}"
    );
    assert_eq!(
        roots_of(&directories),
        [": rust", "apart: rust", "fuzz: rust"]
    );
}

#[test]
fn the_checks_of_a_cargo_workspace_are_those_of_all_its_members() {
    for (text, expected) in [
        ("[package]\n", "cargo test --quiet"),
        ("[package]\n[workspace]\n", "cargo test --quiet --workspace"),
        ("[workspace.package]\n", "cargo test --quiet --workspace"),
        (
            "[workspace]\ndefault-members = [\"a\"]\n",
            "cargo test --quiet",
        ),
    ] {
        let top = directory("", &[("Cargo.toml", text)]);
        let roots = select::roots(&profiles(), &ecosystems(), &[top]);
        assert_eq!(command(&roots[0], CheckVerb::Test), expected, "{text}");
    }
}

#[test]
fn scripts_of_members_are_run_where_the_top_has_none() {
    let placeholder = ("test", "echo \"Error: no test specified\" && exit 1");
    for (lock, expected) in [
        ("pnpm-lock.yaml", "pnpm --recursive --if-present run test"),
        (
            "package-lock.json",
            "npm run --silent test --workspaces --if-present",
        ),
        ("bun.lock", "bun run --filter '*' test"),
    ] {
        let top = |scripts: &[(&str, &str)]| {
            let top = directory("", &[(lock, ""), ("package.json", "")]);
            let top = with_scripts(top, scripts);
            declaring(top, WorkspaceNotation::Node, &["packages/*"])
        };
        let member = |scripts: &[(&str, &str)]| {
            with_scripts(directory("packages/a", &[("package.json", "")]), scripts)
        };
        let test = |top: Directory, member: Directory| {
            let roots = select::roots(&profiles(), &ecosystems(), &[top, member]);
            assert_eq!(roots.len(), 1, "{lock}");
            command(&roots[0], CheckVerb::Test)
        };
        assert_eq!(test(top(&[]), member(&[("test", "x")])), expected);
        assert_eq!(
            test(top(&[placeholder]), member(&[("test", "x")])),
            expected
        );
        let own = test(top(&[("test", "x")]), member(&[("test", "x")]));
        assert!(!own.is_empty() && own != expected, "{own}");
        let none = test(top(&[]), member(&[placeholder]));
        assert_ne!(none, expected, "{lock}");
    }
}

#[test]
fn packages_of_another_language_are_projects_where_they_have_checks() {
    let package = |path: &str, scripts: &[(&str, &str)]| {
        with_scripts(directory(path, &[("package.json", "")]), scripts)
    };
    let directories = [
        directory("", &[("Cargo.toml", "")]),
        package("npm", &[("postinstall", "x")]),
        package("web", &[("test", "vitest")]),
        package("web/examples/a", &[("lint", "x")]),
    ];
    assert_eq!(roots_of(&directories), [": rust", "web: node-npm"]);
    let told = told(&directories);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("Not checked: web/examples/a: a package.json with scripts"),
        "{told:?}"
    );
}

#[test]
fn only_a_few_packages_are_named() {
    let mut directories = vec![directory("", &[("package-lock.json", "")])];
    directories.extend((0..5).map(|n| {
        let path = format!("examples/{n}");
        with_scripts(directory(&path, &[("package.json", "")]), &[("test", "x")])
    }));
    let told = told(&directories);
    assert!(
        told[0].starts_with("Not checked: examples/0, examples/1, examples/2 and 2 more: "),
        "{told:?}"
    );
}
