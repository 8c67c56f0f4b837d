//! Which directories are projects, and which of them a person means.

use super::super::directory::WorkspaceNotation;
use super::super::select;
use super::{declaring, directory, ecosystems, profiles, roots_of};

#[test]
fn members_of_a_workspace_are_no_projects_of_their_own() {
    let cargo = |path, members: &[&str]| {
        declaring(
            directory(path, &[("Cargo.toml", "")]),
            WorkspaceNotation::Cargo,
            members,
        )
    };
    let mut top = cargo("", &["crates/*"]);
    top.declared[0].excluded = vec!["fuzz".to_owned()];
    let found = roots_of(&[
        top,
        directory("crates/a", &[("Cargo.toml", "")]),
        directory("fuzz", &[("Cargo.toml", "")]),
        cargo("other", &["b"]),
        directory("other/b", &[("Cargo.toml", "")]),
    ]);
    // A workspace that lies in another is one of its own: Cargo has no workspace as a member.
    assert_eq!(found, [": rust", "fuzz: rust", "other: rust"]);
    let node = declaring(
        directory("", &[("package-lock.json", "")]),
        WorkspaceNotation::Node,
        &["packages/*"],
    );
    let found = roots_of(&[
        node,
        directory("packages/a", &[("package-lock.json", "")]),
        directory("packages/b", &[("package.json", ""), ("yarn.lock", "")]),
        directory("site", &[("pnpm-lock.yaml", "")]),
        directory("tool", &[("package.json", "")]),
    ]);
    assert_eq!(found, [": node-npm", "site: node-pnpm"]);
    let uv = declaring(
        directory("", &[("pyproject.toml", ""), ("uv.lock", "")]),
        WorkspaceNotation::Uv,
        &["libs/*"],
    );
    let found = roots_of(&[
        uv,
        directory("libs/a", &[("pyproject.toml", "")]),
        directory("scripts", &[("pyproject.toml", "")]),
    ]);
    assert_eq!(found, [": python-uv python", "scripts: python"]);
}

#[test]
fn nested_projects_are_roots_unless_something_above_builds_them() {
    let found = roots_of(&[
        directory("", &[("go.mod", "")]),
        directory("tools", &[("go.mod", "")]),
        directory("web", &[("yarn.lock", ""), ("package.json", "")]),
    ]);
    assert_eq!(found, [": go", "tools: go", "web: node-yarn"]);
    let found = roots_of(&[
        declaring(
            directory("", &[("CMakeLists.txt", "")]),
            WorkspaceNotation::Cmake,
            &["src"],
        ),
        directory("src", &[("CMakeLists.txt", "")]),
        directory("py", &[("CMakeLists.txt", ""), ("pyproject.toml", "")]),
    ]);
    assert_eq!(found, [": cmake", "py: python"]);
    let found = roots_of(&[
        declaring(
            directory("", &[("App.sln", "A.csproj")]),
            WorkspaceNotation::Solution,
            &["src/A"],
        ),
        directory("src/A", &[("A.csproj", "<Project>")]),
        declaring(
            directory("j", &[("settings.gradle", ""), ("build.gradle", "")]),
            WorkspaceNotation::Gradle,
            &["sub"],
        ),
        directory("j/sub", &[("build.gradle", "")]),
        directory(
            "j/apart",
            &[("settings.gradle", ""), ("build.gradle", "kotlin(\"jvm\")")],
        ),
    ]);
    assert_eq!(
        found,
        [": dotnet", "j: gradle", "j/apart: kotlin-gradle gradle"]
    );
    let maven = declaring(
        directory("", &[("pom.xml", "")]),
        WorkspaceNotation::Maven,
        &["core"],
    );
    let found = roots_of(&[
        maven,
        directory("core", &[("pom.xml", "")]),
        directory("extra", &[("pom.xml", "")]),
    ]);
    assert_eq!(found, [": maven", "extra: maven"]);
}

#[test]
fn a_hint_makes_a_project_only_where_none_is_above() {
    let hints = [
        ("Makefile", ""),
        ("requirements.txt", ""),
        ("mise.toml", ""),
    ];
    let found = roots_of(&[
        directory("", &[("Cargo.toml", "")]),
        directory("docs", &hints),
    ]);
    assert_eq!(found, [": rust"]);
    let found = roots_of(&[directory("", &[]), directory("docs", &hints)]);
    assert_eq!(found, ["docs: make python"]);
    assert_eq!(roots_of(&[directory("", &[(".mise.toml", "")])]), [": "]);
    assert_eq!(roots_of(&[directory("", &[("README.md", "")])]), [""; 0]);
}

#[test]
fn a_person_means_the_nearest_project_and_what_is_below() {
    let roots = select::roots(
        &profiles(),
        &ecosystems(),
        &[
            directory("", &[("go.mod", "")]),
            directory("a", &[("go.mod", "")]),
            directory("a/b", &[("go.mod", "")]),
            directory("ab", &[("go.mod", "")]),
        ],
    );
    let around = |path| -> Vec<String> {
        let meant = select::around(&roots, path);
        meant.into_iter().map(|root| root.path).collect()
    };
    assert_eq!(around(""), ["", "a", "a/b", "ab"]);
    assert_eq!(around("a"), ["a", "a/b"]);
    assert_eq!(around("a/src/deep"), ["a", "a/b"]);
    assert_eq!(around("a/b"), ["a/b"]);
    assert_eq!(around("docs"), ["", "a", "a/b", "ab"]);
    assert_eq!(around("a/b/main.go"), ["a/b"]);
    assert_eq!(around("abc/main.go"), ["", "a", "a/b", "ab"]);
    let nested = select::roots(
        &profiles(),
        &ecosystems(),
        &[directory("x", &[("go.mod", "")])],
    );
    assert_eq!(select::around(&nested, "y").len(), 1);
}
