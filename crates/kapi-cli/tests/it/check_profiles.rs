//! Every profile of the table, run with stand-ins for its tools: each is found, started in the
//! sandbox, and given the right words.
//!
//! A stand-in prints its name and its words, so that what was run shows in the check's output.

mod cases;

use std::fs;
use std::os::unix::fs::symlink;

use self::cases::{CASES, Case, PROGRAMS};
use crate::check::{check, machine, one, own_programs, program, reported};
use crate::environment::{Environment, for_each};

fn shown(case: &Case) -> Environment {
    let env = machine();
    for (name, text) in case.files {
        env.write(name, text);
    }
    env
}

#[test]
fn every_profile_runs_its_commands_with_the_tools_it_finds() {
    assert_eq!(CASES.len(), 34);
    for_each(CASES, |case| {
        let env = shown(case);
        let tools = own_programs(&env);
        let stand_in = tools.join("stand-in");
        program(&stand_in, "echo \"${0##*/} $*\" | sed 's/ $//'");
        for name in PROGRAMS {
            symlink(&stand_in, tools.join(name)).unwrap();
        }
        program(&tools.join("gofmt"), "true");
        for name in ["tsc", "biome"] {
            program(&env.repository().join("node_modules/.bin").join(name), "");
        }
        let vendored = env.repository().join("vendor/bin");
        fs::create_dir_all(&vendored).unwrap();
        for name in ["phpstan", "phpcs", "php-cs-fixer"] {
            symlink(&stand_in, vendored.join(name)).unwrap();
        }
        if case.profile == "autotools" {
            program(&env.repository().join("configure"), "");
        }
        let (output, document) = check(&env, &[]);
        assert_eq!(output.code, 0, "{}: {output:?}", case.profile);
        let expected: Vec<String> = case
            .said
            .iter()
            .map(|(verb, _)| format!(". {verb} {} passed", case.profile))
            .collect();
        assert_eq!(reported(&document), expected, "{document}");
        for (verb, said) in case.said {
            let output = one(&document, ".", verb)["output"].as_str().unwrap();
            let is_more = case.profile == "cmake" && *verb == "format";
            let is_right = if is_more {
                output.starts_with(said) && output.contains("./a.h")
            } else {
                output.trim_end() == *said
            };
            assert!(is_right, "{} {verb}: {output}", case.profile);
            assert!(!output.contains("build/x.cpp"), "{output}");
        }
    });
}

#[test]
fn every_profile_is_skipped_without_its_tools() {
    for_each(CASES, |case| {
        let mut env = shown(case);
        env.set("PATH", "/nonexistent");
        let (output, document) = check(&env, &[]);
        assert_eq!(output.code, 0, "{}: {output:?}", case.profile);
        assert_eq!(document["skipped"], case.said.len(), "{document}");
        for (verb, _) in case.said {
            let found = one(&document, ".", verb);
            assert_eq!(found["provider"], case.profile, "{found}");
            let reason = found["reason"].as_str().unwrap();
            assert!(reason.ends_with(" is not on PATH"), "{reason}");
        }
    });
}

#[test]
fn a_formatter_that_finds_something_fails_whatever_it_exits_with() {
    let env = machine();
    env.write("go.mod", "");
    let gofmt = own_programs(&env).join("gofmt");
    for (script, status) in [
        ("echo a.go", "failed"),
        ("echo 'syntax error' >&2; exit 2", "failed"),
        ("true", "passed"),
    ] {
        fs::remove_file(&gofmt).ok();
        program(&gofmt, script);
        let (_, document) = check(&env, &["--only", "format"]);
        assert_eq!(
            reported(&document),
            [format!(". format go {status}")],
            "{document}"
        );
    }
}
