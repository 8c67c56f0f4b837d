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

/// Programs that come with a tool chain, not with a project's dependencies.
const TOOL_CHAINS: &[&str] = &[
    "node", "npm", "npx", "pnpm", "yarn", "bun", "corepack", "python", "python3", "uv", "cargo",
    "go", "java", "mvn", "ruby", "bundle", "php", "dotnet", "mix", "make", "cc", "gcc", "cmake",
];

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
pub fn missing(command: &str, output: &str, exit_code: i32) -> Option<Missing> {
    if exit_code == 0 {
        return None;
    }
    let plain = without_colours(end_of(output));
    let lines: Vec<&str> = plain.lines().collect();
    program(command, &lines, exit_code).or_else(|| said(&lines))
}

/// Finds the program that a shell did not find.
fn program(command: &str, lines: &[&str], exit_code: i32) -> Option<Missing> {
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
        remedy: remedy_of_program(command, name),
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

fn remedy_of_program(command: &str, name: &str) -> String {
    let base = name.rsplit('/').next().unwrap_or(name);
    if name.contains("node_modules/") {
        return installing(phrases::NPM);
    }
    if name.contains("venv/") {
        return "create the virtual environment in your checkout and start again.".to_owned();
    }
    if TOOL_CHAINS.contains(&base) {
        return format!(
            "install `{base}`; if it is already installed in your home, make sure it is on PATH \
             when you start Kapi, or add its directory with `read_only = [\"…\"]` under [sandbox]."
        );
    }
    if let Some(install) = phrases::install_of(command) {
        return installing(install);
    }
    match base {
        "vitest" | "jest" | "mocha" | "ava" | "tap" | "tsc" | "tsx" | "eslint" | "jasmine" => {
            "run `npm install` in your checkout and start again; call it through `npx` or a \
             package script."
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
        MissingThing::Dependency(_) | MissingThing::Command(_) => installing(phrase.install),
    };
    Missing {
        want,
        certainty: phrase.certainty,
        remedy,
    }
}

fn installing(install: &str) -> String {
    format!("{install} in your checkout and start again.")
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
mod tests;
