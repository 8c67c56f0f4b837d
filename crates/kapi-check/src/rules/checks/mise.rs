//! Routing command lines through mise, with the shell in mind.
//!
//! mise runs one program: a line that is more than that is handed whole to a shell of its own. A line
//! that goes through mise already is left exactly as it is.

use kapi_core::quote::shell_word;

/// How a check that is a task of mise is named.
pub const PROVIDER: &str = "mise";
/// Files that show that a directory has tasks or tools of mise.
pub(super) const FILES: [&str; 4] = ["mise.toml", ".mise.toml", "mise", ".mise"];
/// What stands before a routed program.
const ROUTE: &str = "mise exec -- ";
/// Words that only a shell understands at the beginning of a line.
pub(super) const SHELL_WORDS: &[&str] = &[
    ".", ":", "alias", "bg", "builtin", "case", "cd", "command", "declare", "eval", "exec", "exit",
    "export", "fg", "for", "function", "getopts", "hash", "if", "jobs", "let", "local", "popd",
    "pushd", "read", "readonly", "return", "set", "shift", "shopt", "source", "time", "times",
    "trap", "type", "typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
];

/// Tells whether a line goes through mise already.
#[must_use]
pub fn is_routed(line: &str) -> bool {
    let line = line.trim_start();
    let (word, rest) = line.split_at_checked(4).unwrap_or((line, ""));
    word.eq_ignore_ascii_case("mise") && rest.chars().next().is_none_or(char::is_whitespace)
}

/// Returns a line that does the same with the tools that mise has for the directory.
///
/// An empty line stays empty.
#[must_use]
pub fn route(line: &str) -> String {
    if line.trim().is_empty() || is_routed(line) {
        return line.to_owned();
    }
    let line = line.trim();
    if is_one_program(line) {
        format!("{ROUTE}{line}")
    } else {
        format!("{ROUTE}sh -c {}", shell_word(line))
    }
}

/// Tells whether a line is a program with plain words, which need no shell.
fn is_one_program(line: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " \t_-./:=@%+,".contains(c);
    let first = line.split_whitespace().next().unwrap_or_default();
    line.chars().all(is_plain) && !first.contains('=') && !SHELL_WORDS.contains(&first)
}

#[cfg(test)]
mod tests {
    use super::{is_routed, route};

    #[test]
    fn a_program_is_routed_as_it_is() {
        assert_eq!(route("bun test"), "mise exec -- bun test");
        let line = "cargo clippy --quiet --all-targets -- -D warnings";
        assert_eq!(route(line), format!("mise exec -- {line}"));
        assert_eq!(
            route("dotnet build -p:X=1"),
            "mise exec -- dotnet build -p:X=1"
        );
    }

    #[test]
    fn more_than_a_program_is_wrapped_whole() {
        for line in [
            "a && b", "a; b", "a | b", "a || b", "a > out", "a *.c", "a $HOME", "a `b`", "(a)",
            "! a", "~/bin/a", "a \"b\"", "A=1 b", "cd sub", "if true", "exit 1", "a\nb", "a &",
            "a # b", "a \\b",
        ] {
            assert_eq!(route(line), format!("mise exec -- sh -c '{line}'"));
        }
        assert_eq!(
            route("echo 'a b'"),
            r"mise exec -- sh -c 'echo '\''a b'\'''"
        );
    }

    #[test]
    fn what_goes_through_mise_already_is_untouched() {
        for line in [
            "mise run test",
            "  MISE exec -- x",
            "mise\ttasks",
            "mise run a && b",
            "mise",
        ] {
            assert!(is_routed(line), "{line}");
            assert_eq!(route(line), line);
        }
        for line in ["", "   "] {
            assert_eq!(route(line), line);
        }
        for line in ["miser x", "misé x", "mise-en-place", "x mise", "mis"] {
            assert!(!is_routed(line), "{line}");
            assert!(route(line).starts_with("mise exec -- "));
        }
    }
}
