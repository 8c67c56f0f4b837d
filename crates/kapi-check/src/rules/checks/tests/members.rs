//! Members of workspaces: whose checks are run with the top's, and what nobody takes in.

use super::{command, declaring, directory, ecosystems, profiles, roots_of, with_scripts};
use crate::rules::checks::directory::{Directory, MemberList, WorkspaceNotation};
use crate::rules::checks::settle::{RootProbes, settle};
use crate::rules::checks::stray::{SelectedRoots, strays, uncovered};
use crate::rules::checks::{CheckVerb, PlannedCheck, select};

/// What is told of directories to somebody at the top.
fn told(directories: &[Directory]) -> Vec<String> {
    let (profiles, ecosystems) = (profiles(), ecosystems());
    let roots = select::roots(&profiles, &ecosystems, directories);
    let selected = SelectedRoots {
        profiles: &profiles,
        directories,
        roots: &roots,
    };
    strays(&selected, "")
}

/// What is told, as the paths that stand before the reason.
fn told_paths(directories: &[Directory]) -> Vec<String> {
    let told = told(directories);
    let paths = told.iter().map(|one| {
        let named = one.strip_prefix("Not checked: ").unwrap();
        named.split(": ").next().unwrap().to_owned()
    });
    paths.collect()
}

fn workspace(path: &str, text: &str, members: &[&str], excluded: &[&str]) -> Directory {
    let mut top = directory(path, &[("Cargo.toml", text)]);
    top.declared.push(MemberList {
        workspace: WorkspaceNotation::Cargo,
        members: members.iter().map(|&one| one.to_owned()).collect(),
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

/// A notation, its list, and what lies in each directory: what is a project, and what is told.
struct Listed {
    workspace: WorkspaceNotation,
    members: &'static [&'static str],
    top: &'static [&'static str],
    below: &'static [(&'static str, &'static str)],
    roots: &'static [&'static str],
    told: &'static [&'static str],
}

/// What a file must say to be one of .NET.
const CONTENT: &str = "<Project Path=\"A.csproj\">";

/// Where the tool works in a project that no list names, it is one of its own; where the tool refuses,
/// or nobody knows, it is told.
const LISTED: &[Listed] = &[
    Listed {
        workspace: WorkspaceNotation::Gradle,
        members: &["buildSrc", "app", "../sibling"],
        top: &["settings.gradle"],
        below: &[
            ("app", "build.gradle"),
            ("buildSrc", "build.gradle.kts"),
            ("tools/gen", "build.gradle.kts"),
            ("logic", "settings.gradle"),
        ],
        roots: &[": gradle", "logic: gradle"],
        told: &["tools/gen"],
    },
    Listed {
        workspace: WorkspaceNotation::Solution,
        members: &["src/A"],
        top: &["App.sln"],
        below: &[("src/A", "A.csproj"), ("tools/B", "B.csproj")],
        roots: &[": dotnet", "tools/B: dotnet"],
        told: &[],
    },
    Listed {
        workspace: WorkspaceNotation::Cmake,
        members: &["src", "/**/tests"],
        top: &["CMakeLists.txt"],
        below: &[
            ("src", "CMakeLists.txt"),
            ("a/tests", "CMakeLists.txt"),
            ("examples", "CMakeLists.txt"),
        ],
        roots: &[": cmake"],
        told: &["examples"],
    },
    Listed {
        workspace: WorkspaceNotation::Meson,
        members: &["subprojects/*", "src"],
        top: &["meson.build"],
        below: &[
            ("src", "meson.build"),
            ("subprojects/x", "meson.build"),
            ("demo", "meson.build"),
        ],
        roots: &[": meson"],
        told: &["demo"],
    },
    Listed {
        workspace: WorkspaceNotation::Go,
        members: &["./api", "./web"],
        top: &["go.work"],
        below: &[("api", "go.mod"), ("web", "go.mod"), ("old", "go.mod")],
        roots: &["api: go", "web: go"],
        told: &["old"],
    },
    Listed {
        workspace: WorkspaceNotation::Rebar,
        members: &["apps/*"],
        top: &["rebar.config"],
        below: &[("apps/a", "rebar.config"), ("tool", "rebar.config")],
        roots: &[": erlang", "tool: erlang"],
        told: &[],
    },
    Listed {
        workspace: WorkspaceNotation::Maven,
        members: &["core"],
        top: &["pom.xml"],
        below: &[("core", "pom.xml"), ("extra", "pom.xml")],
        roots: &[": maven", "extra: maven"],
        told: &[],
    },
    Listed {
        workspace: WorkspaceNotation::Pytest,
        members: &["tests", "tests/**"],
        top: &["pyproject.toml"],
        below: &[
            ("tests", "test_a.py"),
            ("tests/deep", "test_b.py"),
            ("integration", "test_c.py"),
            ("src/x", "x_test.py"),
            ("src/y", "y.py"),
        ],
        roots: &[": python"],
        told: &["integration, src/x"],
    },
];

#[test]
fn what_no_list_names_is_a_project_of_its_own_or_told() {
    for case in LISTED {
        let file = |name: &&'static str| (*name, CONTENT);
        let top: Vec<(&str, &str)> = case.top.iter().map(file).collect();
        let mut directories = vec![declaring(directory("", &top), case.workspace, case.members)];
        let below = case.below.iter();
        directories.extend(below.map(|(path, name)| {
            let below = directory(path, &[(name, CONTENT)]);
            let has_list = case.workspace.files().contains(name) || case.workspace.is_in_members();
            if has_list {
                declaring(below, case.workspace, &[])
            } else {
                below
            }
        }));
        let what = case.workspace;
        assert_eq!(roots_of(&directories), case.roots, "{what:?}");
        assert_eq!(told_paths(&directories), case.told, "{what:?}");
    }
}

#[test]
fn without_a_list_nothing_is_left_out() {
    let tests = |path: &str| directory(path, &[("test_a.py", "")]);
    let top = || directory("", &[("pyproject.toml", "")]);
    assert_eq!(told(&[top(), tests("more")]), [""; 0]);
    // The project between has tests of its own, and a makefile's say what they are.
    let listing = |files: &[(&str, &str)]| {
        declaring(directory("", files), WorkspaceNotation::Pytest, &["tests"])
    };
    let nested = [
        listing(&[("pyproject.toml", "")]),
        directory("libs/a", &[("setup.py", "")]),
        tests("libs/a/tests"),
    ];
    assert_eq!(told(&nested), [""; 0]);
    let made = [
        listing(&[("pyproject.toml", ""), ("Makefile", "test:\n")]),
        tests("more"),
    ];
    assert_eq!(told(&made), [""; 0]);
}

#[test]
fn a_module_beside_the_one_that_lists_it_is_a_member() {
    let parent = declaring(
        directory("parent", &[("pom.xml", "")]),
        WorkspaceNotation::Maven,
        &["../core"],
    );
    let found = roots_of(&[
        parent,
        directory("core", &[("pom.xml", "")]),
        directory("other", &[("pom.xml", "")]),
    ]);
    assert_eq!(found, ["other: maven", "parent: maven"]);
}

#[test]
fn projects_that_no_command_covers_are_named_with_why() {
    let (profiles, ecosystems) = (profiles(), ecosystems());
    let directories = [
        directory("", &[("Cargo.toml", "")]),
        directory("luau", &[("luau.toml", "")]),
        directory("web", &[("package-lock.json", "")]),
        directory("site", &[("package-lock.json", "")]),
    ];
    let roots = select::roots(&profiles, &ecosystems, &directories);
    let of_test = |one: &PlannedCheck| one.check.verb == CheckVerb::Test;
    let planned: Vec<PlannedCheck> = roots
        .iter()
        .flat_map(|root| settle(root, &RootProbes::default()))
        .filter(of_test)
        .collect();
    assert_eq!(
        uncovered(&roots, &planned),
        [
            "No command covers luau: Kapi knows none for luau.",
            "No command covers site, web: package.json has no script \"test\"."
        ]
    );
}
