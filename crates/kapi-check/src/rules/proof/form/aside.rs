//! Lines of a test that say nothing of what it expects: which modules it imports, and what a compiler
//! or a linter is told.

use super::super::language::Language;

/// What a linter of Rust is told by.
const LINTS_OF_RUST: [&str; 6] = ["allow", "expect", "warn", "deny", "forbid", "rustfmt"];

/// Tells whether a statement that begins with this line, given by its words and signs, is nothing else
/// than an import or an instruction to a compiler or a linter.
pub(super) fn is_aside(line: &[String], language: Language) -> bool {
    let words: Vec<&str> = line.iter().map(String::as_str).collect();
    // Of two statements in a line, the second may be any.
    let words = match words.as_slice() {
        [words @ .., ";"] => words,
        words => words,
    };
    if words.contains(&";") {
        return false;
    }
    match (language, words) {
        (Language::Python, [_, "import" | "from", ..])
        | (Language::Script, ["\"use strict"])
        | (Language::Rust, ["use", ..] | ["pub", "use", ..] | ["extern", "crate", ..])
        | (Language::Go, ["import", ..])
        | (Language::C, ["#", "include", ..])
        | (Language::Ruby, ["require" | "require_relative", ..])
        | (Language::Php, ["use", ..] | ["declare", "(", "strict_types", ..])
        | (Language::Perl, ["use" | "no", "strict" | "warnings" | "utf8", ..]) => true,
        (Language::Script, ["import", next, ..]) => !["(", "."].contains(next),
        (
            Language::Script,
            [
                "var" | "let" | "const" | ",",
                ..,
                "=",
                "require",
                "(",
                _,
                ")",
            ],
        ) => true,
        (Language::Rust, ["#", "[", lint, .., "]"] | ["#", "!", "[", lint, .., "]"]) => {
            LINTS_OF_RUST.contains(lint)
        }
        (Language::Jvm, ["import", ..] | ["@", "SuppressWarnings" | "Suppress", "(", .., ")"]) => {
            true
        }
        (Language::Jvm, ["using", next, ..]) => !["(", "var"].contains(next),
        (
            Language::Lua,
            ["local", .., "=", "require", _] | ["local", .., "=", "require", "(", _, ")"],
        ) => true,
        _ => false,
    }
}
