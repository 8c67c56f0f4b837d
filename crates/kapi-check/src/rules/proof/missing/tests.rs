//! What outputs of package managers, runners and shells are read as.

use super::{Certainty, MissingThing, missing};

fn check(output: &str, exit_code: i32, want: &MissingThing, certainty: Certainty) {
    let found = missing("sh test.sh", output, exit_code).unwrap_or_else(|| panic!("{output}"));
    assert_eq!(
        (&found.want, found.certainty),
        (want, certainty),
        "{output}"
    );
    assert!(
        found.remedy.ends_with('.') && !found.remedy.contains("  "),
        "{}",
        found.remedy
    );
}

#[test]
fn a_program_that_is_not_there_is_named() {
    use Certainty::{Certain, Likely};
    let is = |output, code, name: &str, certainty| {
        check(
            output,
            code,
            &MissingThing::Command(name.to_owned()),
            certainty,
        );
    };
    is("sh: 1: pytest: not found", 127, "pytest", Certain);
    is(
        "/bin/sh: line 1: vitest: command not found\n",
        127,
        "vitest",
        Certain,
    );
    is("bash: line 3: go: command not found", 127, "go", Certain);
    is(
        "/bin/sh: 1: .venv/bin/pytest: not found",
        127,
        ".venv/bin/pytest",
        Certain,
    );
    is(
        "test.sh: 4: shellcheck: not found",
        127,
        "shellcheck",
        Certain,
    );
    is(
        "/usr/bin/env: ‘node’: No such file or directory",
        127,
        "node",
        Certain,
    );
    is("sh: 1: ./run: Permission denied", 126, "./run", Likely);
    is(
        "make: cc: No such file or directory\nmake: *** [all] Error 127",
        2,
        "cc",
        Likely,
    );
    is(
        "Error: spawn tsc ENOENT\n    at Process.onexit",
        1,
        "tsc",
        Likely,
    );
    is(
        "exec: \"gcc\": executable file not found in $PATH",
        1,
        "gcc",
        Likely,
    );
    is("something else", 127, "?", Likely);
}

#[test]
fn a_dependency_that_is_not_there_is_named() {
    use Certainty::{Certain, Likely};
    let is = |output, name: &str, certainty| {
        check(
            output,
            1,
            &MissingThing::Dependency(name.to_owned()),
            certainty,
        );
    };
    is(
        "Error: Cannot find module 'left-pad'\nRequire stack:",
        "left-pad",
        Likely,
    );
    is(
        "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'vitest' imported from /x",
        "vitest",
        Likely,
    );
    is(
        "\u{1b}[31mCannot find package '@scope/a' imported from x\u{1b}[0m",
        "@scope/a",
        Likely,
    );
    is(
        "ModuleNotFoundError: No module named 'yaml'",
        "yaml",
        Likely,
    );
    is(
        "/usr/bin/python3: No module named pytest",
        "pytest",
        Certain,
    );
    is(
        "error: no matching package named `unicode-width` found",
        "unicode-width",
        Certain,
    );
    is(
        "go: github.com/a/b@v1.2.0: module lookup disabled by GOPROXY=off",
        "",
        Certain,
    );
    is("npm error code ERESOLVE\nnpm error", "", Certain);
    is("npm error code ENOTCACHED", "", Certain);
    is(
        "ERROR: No matching distribution found for attrs>=3",
        "attrs>=3",
        Certain,
    );
    is(
        "Could not find gem 'rspec' in locally installed gems.",
        "rspec",
        Certain,
    );
}

#[test]
fn a_host_that_is_not_reachable_is_named() {
    use Certainty::{Certain, Likely};
    let is = |output, name: &str, certainty| {
        check(output, 1, &MissingThing::Host(name.to_owned()), certainty);
    };
    is(
        "npm error request to https://registry.example.org/x failed, reason: getaddrinfo EAI_AGAIN registry.example.org",
        "registry.example.org",
        Likely,
    );
    is(
        "curl: (6) Could not resolve host: api.example.org",
        "api.example.org",
        Likely,
    );
    is(
        "dial tcp: lookup proxy.example.org on 127.0.0.53:53: no such host",
        "proxy.example.org",
        Likely,
    );
    is(
        "fatal: unable to access 'https://git.example.org/a.git/': x",
        "git.example.org",
        Likely,
    );
    is(
        "NewConnectionError('<x>: Failed to establish a new connection: y')",
        "",
        Likely,
    );
    is(
        "Could not transfer artifact a:b:1 from/to central (https://repo.example.org/maven2): x",
        "repo.example.org",
        Certain,
    );
    is(
        "java.net.UnknownHostException: repo.example.org",
        "repo.example.org",
        Likely,
    );
}

#[test]
fn what_is_part_of_the_task_is_not_missing() {
    for (output, code) in [
        ("", 1),
        ("AssertionError: 1 != 2", 1),
        ("Error: Cannot find module './sum'", 1),
        ("Error: Cannot find module '/proj/src/sum.js'", 1),
        ("Error: Cannot find package '../x' imported from /y", 1),
        ("FAIL: user not found", 1),
        ("sh: 1: pytest: not found", 0),
        ("cat: answer.txt: No such file or directory", 1),
    ] {
        assert_eq!(missing("sh test.sh", output, code), None, "{output}");
    }
}

#[test]
fn a_program_of_a_package_script_comes_with_the_dependencies() {
    let remedy_of = |command, output| missing(command, output, 127).unwrap().remedy;
    for (command, install) in [
        ("npm test --silent", "npm install"),
        ("cd web && CI=1 npm run lint", "npm install"),
        ("pnpm test", "pnpm install"),
        ("yarn test", "yarn install"),
        ("bundle exec rake", "bundle install"),
    ] {
        let remedy = remedy_of(command, "sh: 1: evalmd: not found");
        assert_eq!(
            remedy,
            format!("run `{install}` in your checkout and start again.")
        );
    }
    let remedy = remedy_of("npm test", "sh: 1: npm: not found");
    assert!(remedy.starts_with("install `npm`"), "{remedy}");
    let remedy = remedy_of("sh test.sh", "sh: 1: evalmd: not found");
    assert!(remedy.starts_with("install `evalmd`"), "{remedy}");
}

#[test]
fn what_the_package_manager_says_comes_first() {
    let output = "Error: Cannot find module 'a'\nnpm error code ENOTCACHED\n";
    let found = missing("npm test", output, 1).unwrap();
    assert_eq!(found.certainty, Certainty::Certain);
    assert_eq!(found.to_string(), "dependencies are missing");
    assert_eq!(
        found.remedy,
        "run `npm install` in your checkout and start again."
    );
}
