//! The first line of a script.
//!
//! Knows the forms the kernel and `env` take; does not know where interpreters are.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::SandboxError;

/// The kernel reads no more of a first line than this.
const LINE_BYTES_MAX: u64 = 256;

/// What runs a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interpreter {
    /// The program at this path.
    At(PathBuf),
    /// The program that `env` finds under this name.
    Named(OsString),
}

impl fmt::Display for Interpreter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(path) => write!(out, "{}", path.display()),
            Self::Named(name) => write!(out, "{}", name.display()),
        }
    }
}

/// Returns what runs a file; `None` if it is no script.
pub(super) fn interpreter(program: &Path) -> Result<Option<Interpreter>, SandboxError> {
    let failed = |source| SandboxError::ReadProgram {
        path: program.to_path_buf(),
        source,
    };
    let file = File::open(program).map_err(failed)?;
    let mut line = Vec::new();
    BufReader::new(file.take(LINE_BYTES_MAX))
        .read_until(b'\n', &mut line)
        .map_err(failed)?;
    Ok(parse(&line))
}

fn parse(line: &[u8]) -> Option<Interpreter> {
    let words = line.strip_prefix(b"#!")?;
    let mut words = words
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let path = Path::new(OsStr::from_bytes(words.next()?));
    if path.file_name() != Some(OsStr::new("env")) {
        return Some(Interpreter::At(path.to_path_buf()));
    }
    // Options and assignments come before the name; `-S` may be glued to it.
    let words = words.map(|word| word.strip_prefix(b"-S").unwrap_or(word));
    let name = words
        .into_iter()
        .find(|word| !word.is_empty() && !word.starts_with(b"-") && !word.contains(&b'='))?;
    let name = Path::new(OsStr::from_bytes(name));
    Some(if name.is_absolute() {
        Interpreter::At(name.to_path_buf())
    } else {
        Interpreter::Named(name.as_os_str().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::{Interpreter, parse};

    fn check(line: &str, expected: &str) {
        let found = parse(line.as_bytes()).map_or_else(
            || "no script".to_owned(),
            |found| match found {
                Interpreter::At(path) => format!("at {}", path.display()),
                Interpreter::Named(name) => format!("named {}", name.display()),
            },
        );
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn first_lines_are_read_as_the_kernel_and_env_do() {
        check("#!/bin/sh\n", "at /bin/sh");
        check("#! /usr/bin/python3 -u\r\n", "at /usr/bin/python3");
        check("#!/usr/bin/env node\n", "named node");
        check("#!/usr/bin/env -S node --flag\n", "named node");
        check("#!/usr/bin/env -Snode --flag\n", "named node");
        check("#!/usr/bin/env -i A=b bash\n", "named bash");
        check("#!/usr/bin/env /opt/x/node\n", "at /opt/x/node");
        check("#!/usr/bin/env\n", "no script");
        check("\u{7f}ELF", "no script");
        check("", "no script");
    }
}
