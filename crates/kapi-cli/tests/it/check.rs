//! `kapi check` with the built binary: what is found, run, skipped and told.
//!
//! The tool chains are real where this machine has them anyway; the sandboxes always are.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::environment::{Environment, write};
use crate::program::Output;

/// Where tools of the system are, and no other.
const SYSTEM_PATH: &str = "/usr/bin:/bin";

/// Makes a machine with an empty repository, and puts programs of the person's own first on PATH.
pub(crate) fn machine() -> Environment {
    let mut env = Environment::bare();
    let own = own_programs(&env);
    fs::create_dir_all(&own).unwrap();
    env.set("PATH", &format!("{}:{SYSTEM_PATH}", own.display()));
    env
}

/// Returns where the person's own programs are; a sandbox shows them.
pub(crate) fn own_programs(env: &Environment) -> PathBuf {
    env.home().join(".local/bin")
}

/// Writes a program.
pub(crate) fn program(path: &Path, script: &str) {
    write(path, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs `kapi check --json`.
pub(crate) fn check(env: &Environment, options: &[&str]) -> (Output, Value) {
    let output = env.kapi(&[&["check", "--json"], options].concat());
    let document = output.document();
    (output, document)
}

/// Returns `root verb provider status` of each check.
pub(crate) fn reported(document: &Value) -> Vec<String> {
    let checks = document["checks"].as_array().unwrap().iter();
    let word = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    checks
        .map(|check| {
            ["root", "verb", "provider", "status"]
                .map(|key| word(check, key))
                .join(" ")
        })
        .collect()
}

/// Returns the check of a root and a verb.
pub(crate) fn one<'a>(document: &'a Value, root: &str, verb: &str) -> &'a Value {
    let mut checks = document["checks"].as_array().unwrap().iter();
    checks
        .find(|check| check["root"] == root && check["verb"] == verb)
        .unwrap()
}

/// Lets a sandbox see the Rust that builds these tests.
fn show_rust(env: &mut Environment) {
    let cargo = PathBuf::from(std::env::var("CARGO").unwrap());
    let bin = fs::canonicalize(&cargo).unwrap();
    let bin = bin.parent().unwrap();
    if !bin.starts_with("/usr") {
        let libraries = bin.with_file_name("lib");
        env.configure(&format!(
            "[sandbox]\nread_only = [{bin:?}, {libraries:?}]\n"
        ));
    }
    env.set("PATH", &format!("{}:{SYSTEM_PATH}", bin.display()));
}

#[test]
fn a_rust_workspace_is_checked_as_one_and_nothing_is_written_back() {
    let mut env = machine();
    show_rust(&mut env);
    env.write(
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n",
    );
    let package = "[package]\nname = \"one\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    env.write("crates/one/Cargo.toml", package);
    let source = "/// Adds.\npub fn add(a: u8, b: u8) -> u8 {\n    a - b\n}\n\n#[test]\nfn adds() {\n    assert_eq!(add(2, 2), 4);\n}\n";
    env.write("crates/one/src/lib.rs", source);
    let options = ["--only", "compile,format,test", "--timeout", "10m"];
    let (output, document) = check(&env, &options);
    assert_eq!(output.code, 5, "{output:?}");
    let expected = [
        ". format rust passed",
        ". compile rust passed",
        ". test rust failed",
    ];
    assert_eq!(reported(&document), expected, "{document}");
    assert_eq!(document["ok"], false);
    let failed = one(&document, ".", "test");
    assert_eq!(failed["exit_code"], 101);
    assert_eq!(failed["command"], "cargo test --quiet --workspace");
    let said = failed["output"].as_str().unwrap();
    assert!(said.contains("left: 0"), "{said}");
    env.write("crates/one/src/lib.rs", &source.replace("a - b", "a + b"));
    let (output, document) = check(&env, &options);
    assert_eq!((output.code, &document["ok"]), (0, &json!(true)));
    assert!(!env.repository().join("target").exists());
    assert!(!env.repository().join("Cargo.lock").exists());
    assert_nothing_left(&env);
}

#[test]
fn projects_in_one_repository_are_checked_each_with_its_own_tools() {
    let env = machine();
    program(&own_programs(&env).join("npm"), "cat package.json");
    env.write("package-lock.json", "{}");
    env.write(
        "package.json",
        r#"{"workspaces":["packages/*"],"scripts":{"test":"node t.js"}}"#,
    );
    env.write("packages/a/package-lock.json", "{}");
    env.write("native/Makefile", "test:\n");
    env.write("py/pyproject.toml", "");
    env.write("py/tests/test_a.py", "def test(): pass\n");
    program(
        &env.repository().join("py/.venv/bin/pytest"),
        "[ \"$1\" = --version ] || exec python3 -m compileall -q tests",
    );
    let (output, document) = check(&env, &["--only", "test"]);
    assert_eq!(output.code, 0, "{output:?}");
    let expected = [". test node-npm passed", "py test python passed"];
    assert_eq!(reported(&document), expected, "{document}");
    let said = one(&document, ".", "test")["output"].as_str().unwrap();
    assert!(said.contains("workspaces"), "{said}");
    let roots = json!([
        {"path": ".", "profiles": ["node-npm"]},
        {"path": "py", "profiles": ["python"]},
    ]);
    assert_eq!(document["roots"], roots);
    // The nearest project of where one stands, and what is below it.
    let inside = env.kapi_in(
        &env.repository().join("py/tests"),
        &["check", "--only", "test", "--json"],
    );
    assert_eq!(reported(&inside.document()), ["py test python passed"]);
    let (_, named) = check(&env, &["--only", "test", "--path", "py"]);
    assert_eq!(reported(&named), ["py test python passed"]);
    let (_, member) = check(&env, &["--only", "test", "--path", "packages/a"]);
    assert_eq!(reported(&member), expected);
    assert!(!env.repository().join("py/tests/__pycache__").exists());
}

#[test]
fn real_node_and_make_run_what_the_project_says() {
    let env = machine();
    env.write("Makefile", "all:\n\t@echo made > made.txt; cat made.txt\n");
    env.write("package-lock.json", "{}");
    let script = "node -e 'console.log(6 * 7)' && test ! -e made.txt";
    let package = json!({"name": "x", "version": "1.0.0", "scripts": {"test": script}});
    env.write("package.json", &package.to_string());
    let (output, document) = check(&env, &["--only", "test,build"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(
        reported(&document),
        [". test node-npm passed", ". build make passed"]
    );
    assert_eq!(one(&document, ".", "test")["output"], "42\n");
    assert_eq!(one(&document, ".", "build")["output"], "made\n");
    assert!(!env.repository().join("made.txt").exists());
}

#[test]
fn tasks_of_mise_come_first_and_commands_go_through_it() {
    let env = machine();
    // As much of mise as is used: it says what it was asked.
    let mise = "\
case $1 in
exec) shift 2; IN_MISE=yes exec \"$@\" ;;
tasks) echo \"[{\\\"name\\\": \\\"test\\\", \\\"source\\\": \\\"$PWD/mise.toml\\\"},\"
  echo \"{\\\"name\\\": \\\"lint\\\", \\\"source\\\": \\\"/elsewhere/mise.toml\\\"}]\" ;;
run) echo \"task $2\" ;;
esac";
    let tools = own_programs(&env);
    program(&tools.join("mise"), mise);
    program(&tools.join("go"), "echo \"go $* $IN_MISE\"");
    program(&tools.join("gofmt"), "[ -n \"$IN_MISE\" ] && echo a.go");
    env.write("go.mod", "module x\n");
    env.write("mise.toml", "");
    let (output, document) = check(&env, &["--only", "typecheck,lint,format,test"]);
    assert_eq!(output.code, 5, "{output:?}");
    let expected = [
        ". typecheck go passed",
        ". lint go skipped",
        ". format go failed",
        ". test mise passed",
    ];
    assert_eq!(reported(&document), expected, "{document}");
    let typecheck = one(&document, ".", "typecheck");
    assert_eq!(typecheck["command"], "mise exec -- go vet ./...");
    assert_eq!(typecheck["output"], "go vet ./... yes\n");
    // More than one program is wrapped whole, so all of it is within mise.
    let format = one(&document, ".", "format");
    assert!(
        format["command"]
            .as_str()
            .unwrap()
            .starts_with("mise exec -- sh -c 'found=")
    );
    assert_eq!(format["output"], "not formatted:\na.go\n");
    assert_eq!(one(&document, ".", "test")["output"], "task test\n");
    // A mise that does not work is as good as none.
    program(&tools.join("mise"), "exit 1");
    let (output, document) = check(&env, &["--only", "test,typecheck"]);
    assert_eq!(
        reported(&document),
        [". typecheck go passed", ". test go passed"]
    );
    assert_eq!(
        one(&document, ".", "test")["command"],
        "go test -count=1 ./..."
    );
    assert!(
        output.stderr.contains("note: mise is installed"),
        "{output:?}"
    );
}

#[test]
fn a_missing_tool_is_skipped_with_its_reason_and_stops_nobody() {
    let mut env = machine();
    let elsewhere = env.root().join("elsewhere");
    program(&elsewhere.join("stylua"), "exit 0");
    let path = format!("{}:{SYSTEM_PATH}", elsewhere.display());
    env.set("PATH", &path);
    for name in [".luaurc", "selene.toml", "stylua.toml"] {
        env.write(name, "");
    }
    let (output, document) = check(&env, &[]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(document["ok"], Value::Null);
    assert_eq!(document["skipped"], 3);
    let reason = |verb| one(&document, ".", verb)["reason"].as_str().unwrap();
    assert_eq!(reason("lint"), "selene is not on PATH");
    assert!(reason("format").contains("to `read_only` under [sandbox]"));
    let human = env.kapi(&["check"]);
    assert_eq!(human.code, 0, "{human:?}");
    assert!(
        human.stdout.contains("\nNothing was checked: "),
        "{human:?}"
    );
    assert!(human.stdout.contains("selene is not on PATH"), "{human:?}");
    // Where the configuration shows it, it is used.
    env.configure(&format!("[sandbox]\nread_only = [{elsewhere:?}]\n"));
    let (_, document) = check(&env, &["--only", "format"]);
    assert_eq!(reported(&document), [". format luau passed"]);
}

#[test]
fn what_has_nothing_to_check_is_skipped() {
    let env = machine();
    env.write("requirements.txt", "mypy\n");
    let tools = own_programs(&env);
    program(
        &tools.join("pytest"),
        "[ \"$1\" = --version ] || { echo none; exit 5; }",
    );
    // A stand-in of a version manager is on PATH and does not work.
    program(&tools.join("mypy"), "echo 'not installed' >&2; exit 127");
    let (output, document) = check(&env, &["--only", "test,typecheck"]);
    assert_eq!(output.code, 0, "{output:?}");
    let expected = [". typecheck python skipped", ". test python skipped"];
    assert_eq!(reported(&document), expected);
    let reason = |verb| one(&document, ".", verb)["reason"].clone();
    assert_eq!(reason("test"), "pytest found no test");
    assert_eq!(
        reason("typecheck"),
        "`mypy --version` does not work in the sandbox: not installed"
    );
}

#[test]
fn tests_of_unittest_run_where_there_is_no_pytest() {
    let env = machine();
    program(&own_programs(&env).join("pytest"), "exit 127");
    let test = |text: &str| {
        env.write("tests/test_app.py", text);
        let (_, document) = check(&env, &["--only", "test"]);
        one(&document, ".", "test").clone()
    };
    env.write("app.py", "answer = 41\n");
    let case = "import unittest, app\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(app.answer, 42)\n";
    let failed = test(case);
    assert_eq!(failed["status"], "failed", "{failed:#}");
    assert!(
        failed["output"].to_string().contains("41 != 42"),
        "{failed:#}"
    );
    // What a test prints does not make it none.
    env.write("app.py", "answer = 41\nprint('Ran 0 tests')\n");
    assert_eq!(test(case)["status"], "failed");
    env.write("app.py", "answer = 42\n");
    let passed = test(case);
    assert_eq!(passed["status"], "passed", "{passed:#}");
    let nothing = test("def test_it():\n    assert False\n");
    assert_eq!(nothing["status"], "skipped", "{nothing:#}");
    let reason = "pytest does not work here, and unittest found no test";
    assert_eq!(nothing["reason"], reason);
}

#[test]
fn a_list_runs_nothing() {
    let env = machine();
    env.write("Makefile", "test:\n\t@touch ran\n");
    let (output, document) = check(&env, &["--list"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(
        reported(&document),
        [". test make ready", ". build make skipped"]
    );
    assert_eq!(document["ok"], Value::Null);
    let human = env.kapi(&["check", "--list"]);
    assert!(human.stdout.contains("make test\n"), "{human:?}");
    assert!(human.stdout.starts_with("run "), "{human:?}");
}

#[test]
fn people_see_what_failed_once_more_with_command_and_output() {
    let env = machine();
    let makefile = "test:\n\t@echo to-stdout; echo to-stderr >&2; exit 3\nbuild:\n\t@true\n";
    env.write("Makefile", makefile);
    let output = env.kapi(&["check"]);
    assert_eq!(output.code, 5, "{output:?}");
    let (lines, details) = output.stdout.split_once("\n\n").unwrap();
    assert_eq!(lines.lines().count(), 2, "one for each verb");
    assert!(lines.starts_with("FAILED   test "), "{lines}");
    assert!(lines.contains("\npassed   build "), "{lines}");
    let start = "test of .: exit code 2\n```sh\nmake test\n```\n```\nto-stdout\nto-stderr\n";
    assert!(details.starts_with(start), "{details}");
    assert!(
        details.contains("\n1 passed, 1 failed, 0 skipped in "),
        "{details}"
    );
}

#[test]
fn wrong_options_and_places_have_their_exit_codes() {
    let env = machine();
    for options in [
        &["--only", "deploy"][..],
        &["--jobs", "0"],
        &["--jobs", "x"],
        &["--timeout", "1w"],
        &["--sandbox", "none", "--network", "none"],
    ] {
        env.write("Makefile", "test:\n");
        let output = env.kapi(&[&["check"], options].concat());
        assert_eq!(output.code, 2, "{options:?}: {output:?}");
    }
    fs::remove_file(env.repository().join("Makefile")).unwrap();
    env.kapi(&["check"])
        .assert_error(6, &["no project", "hint: ", "Cargo.toml, "]);
    env.kapi(&["check", "--path", "nowhere"])
        .assert_error(6, &["nowhere"]);
    assert!(!env.home().join(".ilchul").exists(), "nothing was made");
}

/// Nothing of any check is left in the person's state.
pub(crate) fn assert_nothing_left(env: &Environment) {
    for project in fs::read_dir(env.home().join(".ilchul/checks")).unwrap() {
        let left = fs::read_dir(project.unwrap().path()).unwrap();
        let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["lock"]);
    }
    env.await_no_process();
}
