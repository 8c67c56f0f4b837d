//! Discovery on real directories.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{Discovery, discover, profiles};

/// Makes files; a name that ends with a slash is a directory.
#[expect(clippy::disallowed_methods, reason = "a fixture needs no durability")]
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let top = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = top.path().join(name);
        if name.ends_with('/') {
            fs::create_dir_all(&path).unwrap();
            continue;
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    top
}

fn found(discovery: &Discovery) -> Vec<String> {
    discovery
        .roots
        .iter()
        .map(|root| format!("{}: {}", root.path, root.profiles.join(" ")))
        .collect()
}

fn found_in(top: &Path, path: &str) -> Vec<String> {
    found(&discover(&top.join(path)).unwrap())
}

#[test]
fn the_table_that_comes_with_kapi_can_be_read() {
    assert_eq!(profiles().unwrap().all.len(), 34);
}

#[test]
fn a_monorepo_has_its_projects_and_their_members_are_none() {
    let top = tree(&[
        (".git/", ""),
        (
            "Cargo.toml",
            "[workspace]\nmembers=[\"crates/*\"]\nexclude=[\"fuzz\"]",
        ),
        ("crates/a/Cargo.toml", "[package]"),
        ("fuzz/Cargo.toml", "[package]"),
        (
            "probe/Cargo.toml",
            "[package]\n[workspace]\nmembers = [\"part\"]",
        ),
        ("probe/part/Cargo.toml", "[package]"),
        ("web/package.json", r#"{"workspaces":["packages/*"]}"#),
        ("web/pnpm-lock.yaml", ""),
        ("web/packages/one/pnpm-lock.yaml", ""),
        ("web/node_modules/x/pnpm-lock.yaml", ""),
        ("services/api/go.mod", ""),
        ("services/api/testdata/go.mod", ""),
        ("services/tool/pyproject.toml", ""),
        ("services/tool/docs/Makefile", "test:\n"),
        ("other/.git/", ""),
        ("other/go.mod", ""),
        (".hidden/go.mod", ""),
    ]);
    let all = [
        ": rust",
        "fuzz: rust",
        "probe: rust",
        "services/api: go",
        "services/tool: python",
        "web: node-pnpm",
    ];
    assert_eq!(found_in(top.path(), ""), all);
    // A member's project is its workspace.
    assert_eq!(found_in(top.path(), "crates/a"), all);
    assert_eq!(found_in(top.path(), "probe/part"), ["probe: rust"]);
    assert_eq!(found_in(top.path(), "web/packages/one"), ["web: node-pnpm"]);
    assert_eq!(found_in(top.path(), "services/api"), ["services/api: go"]);
    // Between the projects, the nearest above is meant.
    assert_eq!(found_in(top.path(), "services"), all);
    // What is passed over is looked at where a person stands in it, and a repository is its own.
    assert_eq!(
        found_in(top.path(), "services/api/testdata"),
        ["services/api/testdata: go"]
    );
    assert_eq!(found_in(top.path(), "other"), [": go"]);
    let near = discover(&top.path().join("crates/a")).unwrap();
    assert_eq!(near.top, top.path().canonicalize().unwrap());
    assert_eq!(near.notes, [""; 0]);
}

#[test]
fn outside_of_a_repository_nothing_above_is_looked_at() {
    let top = tree(&[("go.mod", ""), ("sub/a.txt", ""), ("sub/x/go.mod", "")]);
    assert_eq!(found_in(top.path(), "sub"), ["x: go"]);
    assert_eq!(found_in(top.path(), "sub/x"), [": go"]);
}

#[test]
fn odd_trees_neither_hang_nor_lead_elsewhere() {
    let outside = tree(&[("package.json", r#"{"scripts":{"test":"x"}}"#)]);
    let top = tree(&[(".git/", ""), ("package-lock.json", ""), ("x.txt", "")]);
    let at = |name: &str| top.path().join(name);
    symlink(outside.path().join("package.json"), at("package.json")).unwrap();
    symlink(top.path(), at("loop")).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        at("Makefile"),
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )
    .unwrap();
    let discovery = discover(top.path()).unwrap();
    assert_eq!(found(&discovery), [": make node-npm"]);
    let choices = format!("{:?}", discovery.roots[0].choices);
    // The link was not read, so its script is not known.
    assert!(choices.contains("package.json has no script"), "{choices}");
    let missing = discover(&at("nowhere")).unwrap_err();
    assert!(missing.message.contains("nowhere"), "{missing:?}");
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_goes_on() {
    let top = tree(&[
        (".git/", ""),
        ("package-lock.json", ""),
        ("package.json", "{"),
    ]);
    let discovery = discover(top.path()).unwrap();
    assert_eq!(found(&discovery), [": node-npm"]);
    assert_eq!(discovery.notes.len(), 1);
    assert!(discovery.notes[0].contains("package.json cannot be read"));
}

#[test]
fn what_a_build_leaves_out_is_told_whatever_the_notation() {
    let top = tree(&[
        (".git/", ""),
        ("java/settings.gradle", "include 'app'\n"),
        ("java/app/build.gradle", ""),
        ("java/gen/build.gradle", ""),
        ("native/CMakeLists.txt", "add_subdirectory(src)\n"),
        ("native/src/CMakeLists.txt", "add_subdirectory(${part})\n"),
        ("native/src/part/CMakeLists.txt", ""),
        ("native/demo/CMakeLists.txt", "project(demo)\n"),
        ("net/App.sln", "P = \"A\", \"A\\A.csproj\", \"{1}\"\n"),
        ("net/A/A.csproj", "<Project>"),
        ("net/B/B.csproj", "<Project>"),
        ("go/go.work", "use ./a\n"),
        ("go/a/go.mod", ""),
        ("go/b/go.mod", ""),
        ("py/pytest.ini", "[pytest]\ntestpaths = unit\n"),
        ("py/pyproject.toml", ""),
        ("py/unit/test_a.py", ""),
        ("py/slow/test_b.py", ""),
    ]);
    let discovery = discover(top.path()).unwrap();
    assert_eq!(
        found(&discovery),
        [
            "go/a: go",
            "java: gradle",
            "native: cmake",
            "net: dotnet",
            "net/B: dotnet",
            "py: python"
        ]
    );
    let told: Vec<&str> = discovery
        .notes
        .iter()
        .map(|note| note.split(": ").nth(1).unwrap())
        .collect();
    assert_eq!(told, ["native/demo", "java/gen", "py/slow", "go/b"]);
    // Who stands in one of them is told of that one.
    let near = discover(&top.path().join("java/app")).unwrap();
    assert_eq!(near.notes.len(), 1, "{:?}", near.notes);
}
