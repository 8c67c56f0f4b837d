//! What paths of real projects are, and which parts of a file steer.

use kapi_core::value::KernelValue;

use super::{
    Ecosystems, PathRole, Steering, differing_keys, put_back, steering_lines, with_lines_of,
};
use crate::rules::proof::ecosystem::TABLE;

fn ecosystems() -> Ecosystems {
    Ecosystems::from(&toml::from_str(TABLE).unwrap())
}

/// Compares the roles of a path in a project with some files; an empty text means none.
fn check(files: &[&str], expected: &[(&str, &str)]) {
    let ecosystems = ecosystems();
    for (path, roles) in expected {
        let present = ecosystems.of(files.iter().copied().chain([*path]));
        let found: Vec<String> = present
            .roles(path)
            .0
            .iter()
            .map(|role| {
                serde_json::to_value(role)
                    .unwrap()
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        assert_eq!(found.join(" "), *roles, "{path}");
    }
}

#[test]
fn python() {
    check(
        &["pyproject.toml", "src/pkg/a.py"],
        &[
            ("src/pkg/a.py", ""),
            ("src/pkg/random.py", ""),
            ("src/pkg/types.py", ""),
            ("tests/test_a.py", "test"),
            ("test_a.py", "test"),
            ("pkg/a_test.py", "test"),
            ("tests/data/x.json", "test"),
            ("conftest.py", "test steering"),
            ("pkg/conftest.py", "test steering"),
            ("pytest.ini", "steering"),
            ("pyproject.toml", "steering"),
            ("random.py", "shadow"),
            ("unittest.py", "shadow"),
            ("pytest/__init__.py", "shadow"),
            ("_pytest/runner.py", "shadow"),
            ("tests/random.py", "test shadow"),
            ("sitecustomize.py", "steering shadow"),
            ("evil.pth", "steering shadow"),
            ("uv.lock", "lock_file"),
            ("README.md", ""),
            ("docs/conf.py", ""),
            (".venv/lib/x.py", "dependency"),
        ],
    );
}

#[test]
fn what_no_test_run_reads_is_no_test() {
    check(
        &["package.json", "setup.py"],
        &[
            ("test/.eslintrc.yml", "steering"),
            ("packages/a/test/.eslintrc", "steering"),
            ("test/unit/.prettierrc", ""),
            ("tests/.editorconfig", ""),
            ("tests/.pylintrc", ""),
            ("spec/.rubocop.yml", ""),
            ("tests/README.md", ""),
            ("tests/README", ""),
            ("tests/CONTRIBUTING.md", ""),
            // What can steer a run, or is read by one.
            ("tests/README.rst", "test"),
            ("tests/README.txt", "test"),
            ("tests/usage.md", "test"),
            ("tests/fixtures/README.md", "test"),
            ("test/fixtures/.editorconfig", "test"),
            ("test/.gitattributes", "test steering"),
            ("test/.babelrc", "test steering"),
            ("test/.mocharc.yml", "test steering"),
            ("test/tsconfig.json", "test steering"),
            ("test/jest.config.js", "test steering"),
            ("tests/a.pyc", "test shadow"),
        ],
    );
}

#[test]
fn node() {
    check(
        &["package.json", "packages/a/package.json"],
        &[
            ("index.js", ""),
            ("lib/build.js", ""),
            ("packages/a/src/index.ts", ""),
            ("src/a.test.ts", "test"),
            ("packages/a/__tests__/x.tsx", "test"),
            ("test.js", "test"),
            ("package.json", "steering"),
            ("packages/a/package.json", "steering"),
            ("packages/a/vitest.config.ts", "steering"),
            (".npmrc", "steering credential"),
            ("node_modules/.bin/node", "shadow dependency"),
            ("package-lock.json", "lock_file"),
            ("dist/index.js", "output"),
            ("src/__snapshots__/a.snap", "test"),
        ],
    );
}

#[test]
fn others() {
    check(
        &[
            "Cargo.toml",
            "go.mod",
            "pom.xml",
            "Gemfile",
            "CMakeLists.txt",
            "mix.exs",
            "composer.json",
        ],
        &[
            ("src/lib.rs", ""),
            ("tests/it.rs", "test"),
            ("build.rs", "steering"),
            (".cargo/config.toml", "steering credential"),
            ("rust-toolchain.toml", "steering"),
            ("a/b_test.go", "test"),
            ("a/testdata/x.txt", "test"),
            ("go.mod", "steering"),
            ("src/main/java/A.java", ""),
            ("src/test/java/ATest.java", "test"),
            ("spec/a_spec.rb", "test"),
            ("Makefile", "steering"),
            ("GNUmakefile", "steering"),
            ("src/CMakeLists.txt", "steering"),
            ("lib/a.ex", ""),
            ("mix.exs", "steering"),
            ("t/a.t", "test"),
            ("x.bats", "test"),
            ("bin/node", "shadow output"),
            ("go.sum", "lock_file"),
        ],
    );
}

#[test]
fn without_a_marker_the_sources_say_what_is_there() {
    let ecosystems = ecosystems();
    assert_eq!(
        ecosystems.of(["calc.py", "test.sh"]).ids(),
        ["generic", "python", "shell", "tools"]
    );
    assert!(
        ecosystems
            .of(["calc.py"])
            .roles("unittest.py")
            .has(PathRole::Shadow)
    );
    assert!(ecosystems.of([]).roles("tests/a").has(PathRole::Test));
}

#[test]
fn a_large_tree_is_classified_quickly() {
    let files: Vec<String> = (0..5_000).map(|n| format!("a/b{n}/c/d{n}.py")).collect();
    let ecosystems = ecosystems();
    let present = ecosystems.of(files
        .iter()
        .map(String::as_str)
        .chain(["package.json", "Cargo.toml"]));
    assert!(files.iter().all(|file| present.roles(file).0.is_empty()));
}

fn json(text: &str) -> KernelValue {
    serde_json::from_str(text).unwrap()
}

fn keys_of(file: &str, old: &str, new: &str) -> Vec<String> {
    let ecosystems = ecosystems();
    let present = ecosystems.of([file]);
    let Some(Steering::Keys(keys)) = present.steering(file) else {
        panic!("{file} does not steer by keys");
    };
    differing_keys(keys, &json(old), &json(new))
}

#[test]
fn a_new_dependency_steers_nothing_and_a_script_does() {
    let package = |old, new| keys_of("package.json", old, new);
    let old = r#"{"version":"1","scripts":{"test":"jest","build":"tsc"},"devDependencies":{"jest":"29"}}"#;
    assert_eq!(
        package(
            old,
            r#"{"version":"2","scripts":{"test":"jest","build":"tsc"},"dependencies":{"ms":"2"},"devDependencies":{"jest":"29"}}"#
        ),
        [""; 0]
    );
    assert_eq!(
        package(
            old,
            r#"{"scripts":{"test":"true","build":"tsc"},"devDependencies":{"jest":"file:./fake","@jest/core":"1"}}"#
        ),
        [
            "devDependencies/@jest/core",
            "devDependencies/jest",
            "scripts"
        ]
    );
    let cargo = |old, new| keys_of("Cargo.toml", old, new);
    assert_eq!(
        cargo(
            r#"{"dependencies":{}}"#,
            r#"{"dependencies":{"serde":"1"},"dev-dependencies":{"x":"1"}}"#
        ),
        [""; 0]
    );
    assert_eq!(
        cargo(
            "{}",
            r#"{"lib":{"test":false},"dev-dependencies":{"proptest":{"path":"fake"}},"package":{"autotests":false}}"#
        ),
        [
            "dev-dependencies/proptest/path",
            "lib/test",
            "package/autotests"
        ]
    );
    let python = |old, new| keys_of("pyproject.toml", old, new);
    assert_eq!(
        python(
            r#"{"project":{"dependencies":[]}}"#,
            r#"{"project":{"dependencies":["x"]}}"#
        ),
        [""; 0]
    );
    assert_eq!(
        python(
            "{}",
            r#"{"tool":{"pytest":{"ini_options":{"addopts":"-x"}}}}"#
        ),
        ["tool/pytest"]
    );
}

#[test]
fn what_steers_is_put_back_and_the_rest_stays() {
    let ecosystems = ecosystems();
    let present = ecosystems.of(["package.json"]);
    let Some(Steering::Keys(keys)) = present.steering("package.json") else {
        panic!("package.json does not steer by keys");
    };
    let back = |old, new| put_back(keys, &json(old), &json(new)).to_json();
    assert_eq!(
        back(
            r#"{"scripts":{"test":"a"},"version":"1"}"#,
            r#"{"dependencies":{"x":"1"},"scripts":{"test":"b"},"version":"2"}"#
        ),
        r#"{"dependencies":{"x":"1"},"scripts":{"test":"a"},"version":"2"}"#
    );
    assert_eq!(back("{}", r#"{"jest":{},"name":"a"}"#), r#"{"name":"a"}"#);
    assert_eq!(
        back(r#"{"jest":{"a":1}}"#, r#"{"name":"a"}"#),
        r#"{"jest":{"a":1},"name":"a"}"#
    );
}

#[test]
fn some_lines_of_go_mod_steer() {
    let ecosystems = ecosystems();
    let present = ecosystems.of(["go.mod"]);
    let Some(Steering::Lines(lines)) = present.steering("go.mod") else {
        panic!("go.mod does not steer by lines");
    };
    let old = "module x\n\ngo 1.21\n\nrequire a.b/c v1.0.0\n";
    assert_eq!(steering_lines(lines, old), ["go 1.21"]);
    let new = "module x\n\n go 1.22\nreplace a.b/c => ./fake\n";
    assert_eq!(
        steering_lines(lines, new),
        ["go 1.22", "replace a.b/c => ./fake"]
    );
    assert_eq!(with_lines_of(lines, old, new), "go 1.21\nmodule x\n\n");
}
