//! What a command lacked that could not do its work: a program, a dependency, a host.
//!
//! Reads what runners and package managers print, and says how it is mended. A pure guess over
//! foreign text: it explains a failure and decides none, but where the shell itself says so.

mod phrases;

use std::fmt;

use phrases::{PHRASES, Phrase};

/// Bytes of an output that are looked at, from its end.
const LOOKED_AT_BYTES: usize = 64 << 10;
/// Bytes of a name that can be one.
const NAME_BYTES_MAX: usize = 200;

/// What was missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What it was.
    pub want: MissingThing,
    /// Whether it can be something else.
    pub certainty: Certainty,
    /// The line that mends it, as a sentence.
    pub remedy: String,
}

/// A thing that a command needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingThing {
    /// A program.
    Command(String),
    /// A package or module; empty where its name was not said.
    Dependency(String),
    /// A host of the network; empty where its name was not said.
    Host(String),
}

/// How sure it is that a command could not work at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// The shell or a package manager said so.
    Certain,
    /// A program of the project said so, which may be what the task is about.
    Likely,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.want {
            MissingThing::Command(name) => write!(f, "the program `{name}` is missing"),
            MissingThing::Dependency(name) if name.is_empty() => {
                f.write_str("dependencies are missing")
            }
            MissingThing::Dependency(name) => write!(f, "the dependency `{name}` is missing"),
            MissingThing::Host(name) if name.is_empty() => {
                f.write_str("the network is unreachable")
            }
            MissingThing::Host(name) => write!(f, "the host {name} is unreachable"),
        }
    }
}

/// Returns what a command that ended with a code lacked, if its output says so.
#[must_use]
pub fn missing(output: &str, exit_code: i32) -> Option<Missing> {
    if exit_code == 0 {
        return None;
    }
    let plain = without_colours(end_of(output));
    let lines: Vec<&str> = plain.lines().collect();
    program(&lines, exit_code).or_else(|| said(&lines))
}

/// Finds the program that a shell did not find.
fn program(lines: &[&str], exit_code: i32) -> Option<Missing> {
    let named = lines.iter().rev().find_map(|line| unfound_program(line));
    let name = match (named, exit_code) {
        (Some(name), _) => name,
        (None, 127) => {
            return Some(Missing {
                want: MissingThing::Command("?".to_owned()),
                certainty: Certainty::Likely,
                remedy: "a program that the command needs is not on PATH in the sandbox; run \
                    the command in your checkout to find out which, and install it."
                    .to_owned(),
            });
        }
        (None, _) => return None,
    };
    // A path of the project's own is what the work may still make.
    let is_installed =
        !name.contains('/') || name.contains("venv/") || name.contains("node_modules/");
    let certainty = match exit_code {
        126 | 127 if is_installed => Certainty::Certain,
        _ => Certainty::Likely,
    };
    Some(Missing {
        want: MissingThing::Command(name.to_owned()),
        certainty,
        remedy: remedy_of_program(name),
    })
}

/// Returns the program that a line says was not found.
fn unfound_program(line: &str) -> Option<&str> {
    let line = line.trim();
    let ends = [
        ": command not found",
        ": not found",
        ": No such file or directory",
        ": Permission denied",
        ": cannot execute: required file not found",
    ];
    if let Some(name) = after(line, "zsh: command not found: ") {
        return a_program(name);
    }
    if let Some(rest) = after(line, "spawn ")
        && let Some(name) = rest.strip_suffix(" ENOENT")
    {
        return a_program(name);
    }
    if let Some(name) = between(line, "exec: \"", "\": executable file not found") {
        return a_program(name);
    }
    if let Some(name) = between(line, "could not execute process `", " ") {
        return a_program(name.trim_end_matches('`'));
    }
    let starts = [
        "sh: ",
        "/bin/sh: ",
        "bash: ",
        "/bin/bash: ",
        "env: ",
        "/usr/bin/env: ",
        "make: ",
    ];
    let spoken = starts.iter().find_map(|start| line.strip_prefix(start));
    let spoken = spoken.or_else(|| script_line(line))?;
    let said = ends.iter().find_map(|end| spoken.strip_suffix(end))?;
    // `1: name` and `line 1: name`
    let name = said.rsplit(": ").next().unwrap_or(said);
    a_program(name.trim_matches(['‘', '’', '\'', '"', '`']))
}

/// Returns what a script's shell says after the script's name and the line's number.
fn script_line(line: &str) -> Option<&str> {
    let (script, rest) = line.split_once(": ")?;
    let (number, said) = rest.split_once(": ")?;
    let digits = number.strip_prefix("line ").unwrap_or(number);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !script.contains(' ')).then_some(said)
}

fn a_program(name: &str) -> Option<&str> {
    let is_name = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.contains(char::is_whitespace)
        && !name.ends_with(':');
    is_name.then_some(name)
}

fn remedy_of_program(name: &str) -> String {
    let base = name.rsplit('/').next().unwrap_or(name);
    if name.contains("node_modules/") {
        return "run `npm ci` in your checkout and start again.".to_owned();
    }
    if name.contains("venv/") {
        return "create the virtual environment in your checkout and start again.".to_owned();
    }
    match base {
        "node" | "npm" | "npx" | "pnpm" | "yarn" | "bun" | "corepack" | "python" | "python3"
        | "uv" | "cargo" | "go" | "java" | "mvn" | "ruby" | "bundle" | "php" | "dotnet" | "mix"
        | "make" | "cc" | "gcc" | "cmake" => format!(
            "install `{base}`; if it is already installed in your home, make sure it is on PATH \
             when you start Kapi, or add its directory with `read_only = [\"…\"]` under [sandbox]."
        ),
        "vitest" | "jest" | "mocha" | "ava" | "tap" | "tsc" | "tsx" | "eslint" | "jasmine" => {
            "run `npm ci` in your checkout and start again; call it through `npx` or a package script."
                .to_owned()
        }
        "pytest" | "tox" | "nox" | "coverage" | "mypy" | "ruff" => {
            "install it into the project's virtual environment and use its path in the command, \
             such as `.venv/bin/pytest`."
                .to_owned()
        }
        _ => format!(
            "install `{base}`, or add its directory with `read_only = [\"…\"]` under [sandbox]."
        ),
    }
}

/// Finds what one of the known phrases says.
fn said(lines: &[&str]) -> Option<Missing> {
    // What a package manager says is worth more than what came of it.
    let mut best: Option<(usize, Missing)> = None;
    for line in lines {
        let found = PHRASES.iter().enumerate().find_map(|(rank, phrase)| {
            let name = phrase.name_in(line)?;
            Some((rank, made(phrase, name)))
        });
        if let Some((rank, missing)) = found
            && best.as_ref().is_none_or(|(known, _)| rank < *known)
        {
            best = Some((rank, missing));
        }
    }
    best.map(|(_, missing)| missing)
}

fn made(phrase: &Phrase, name: &str) -> Missing {
    let want = match phrase.kind {
        phrases::PhraseKind::Host => MissingThing::Host(host_of(name).to_owned()),
        phrases::PhraseKind::Dependency => MissingThing::Dependency(name.to_owned()),
    };
    let remedy = match &want {
        MissingThing::Host(host) if host.is_empty() => {
            "checks have no network; install their downloads in your checkout first, or allow \
             them with `--verify-network` and `[network] allow`."
                .to_owned()
        }
        MissingThing::Host(host) => format!(
            "checks have no network; install their downloads in your checkout first, or allow \
             them with `--verify-network` and `allow = [\"{host}\"]` under [network]."
        ),
        MissingThing::Dependency(_) | MissingThing::Command(_) => {
            format!("{} in your checkout and start again.", phrase.install)
        }
    };
    Missing {
        want,
        certainty: phrase.certainty,
        remedy,
    }
}

/// Returns the host of an address, or of a host with a port.
fn host_of(text: &str) -> &str {
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !".-_".contains(c));
    let host = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
    let host = host.trim_matches('.');
    if host.contains('.') && !host.is_empty() {
        host
    } else {
        ""
    }
}

fn after<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    line.split_once(start).map(|(_, rest)| rest)
}

fn between<'a>(line: &'a str, start: &str, end: &str) -> Option<&'a str> {
    after(line, start)?.split_once(end).map(|(name, _)| name)
}

fn end_of(output: &str) -> &str {
    let mut from = output.len().saturating_sub(LOOKED_AT_BYTES);
    while !output.is_char_boundary(from) {
        from += 1;
    }
    output.get(from..).unwrap_or(output)
}

/// Takes the sequences out that colour a terminal.
fn without_colours(text: &str) -> String {
    let mut parts = text.split(['\u{1b}', '\u{fffd}']);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let after_sequence = part.strip_prefix('[').and_then(|rest| {
            let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
            rest.get(end + 1..)
        });
        plain.push_str(after_sequence.unwrap_or(part));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{Certainty, MissingThing, missing};

    fn check(output: &str, exit_code: i32, want: &MissingThing, certainty: Certainty) {
        let found = missing(output, exit_code).unwrap_or_else(|| panic!("{output}"));
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
            assert_eq!(missing(output, code), None, "{output}");
        }
    }

    #[test]
    fn what_the_package_manager_says_comes_first() {
        let output = "Error: Cannot find module 'a'\nnpm error code ENOTCACHED\n";
        let found = missing(output, 1).unwrap();
        assert_eq!(found.certainty, Certainty::Certain);
        assert_eq!(found.to_string(), "dependencies are missing");
        assert_eq!(
            found.remedy,
            "run `npm ci` in your checkout and start again."
        );
    }
}
