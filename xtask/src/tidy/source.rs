//! Rules about single source files: header, length, leftovers, names, tests that are compiled.
//!
//! Words that are forbidden are spelled in pieces here, so that this file keeps its own rules.

use super::TidyFault;
use super::tree::{SourceTree, TextFile};

/// A header has at least one line and at most this many.
const HEADER_LINES_MAX: usize = 8;
/// The longest file, not counting the tests at its end.
const LINES_MAX: usize = 500;
/// The longest file of tests that is not among the sources.
const TEST_LINES_MAX: usize = 800;

/// Words that mean unfinished work, and the files they are looked for in.
const LEFTOVERS: &[(&str, SourceLocation, &str)] = &[
    (
        concat!("FIX", "ME"),
        SourceLocation::AnyText,
        "finish it, or write down what is missing",
    ),
    (
        concat!("to", "do!("),
        SourceLocation::Rust,
        "write the body",
    ),
    (
        concat!("unimple", "mented!("),
        SourceLocation::Rust,
        "write the body",
    ),
    (
        concat!("#[ign", "ore"),
        SourceLocation::Rust,
        "a test runs, or it does not exist",
    ),
    (
        concat!("should_", "panic"),
        SourceLocation::Rust,
        "return an error and compare it",
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceLocation {
    Rust,
    AnyText,
}

/// Every Rust file starts with a few `//!` lines.
pub(super) fn every_file_says_what_it_is(tree: &SourceTree) -> Vec<TidyFault> {
    let fault = |file: &TextFile| {
        let lines = file
            .text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .count();
        let message = match lines {
            0 => "start with a `//!` header: what this is, what it deliberately does not know",
            1..=HEADER_LINES_MAX => return None,
            _ => "shorten the `//!` header to two to six lines",
        };
        Some(TidyFault {
            path: file.path.clone(),
            line: 1,
            message: message.to_owned(),
        })
    };
    tree.rust().filter_map(fault).collect()
}

/// A file that outgrows its noun is two nouns.
pub(super) fn files_stay_short(tree: &SourceTree) -> Vec<TidyFault> {
    let fault = |file: &TextFile| {
        let is_apart = file.is_test() && !file.path.contains("/src/");
        let max = if is_apart { TEST_LINES_MAX } else { LINES_MAX };
        let lines = lines_without_tests(&file.text);
        let message = format!("{lines} lines are more than {max}: split it by noun");
        (lines > max).then(|| TidyFault {
            path: file.path.clone(),
            line: 0,
            message,
        })
    };
    tree.rust().filter_map(fault).collect()
}

/// Counts the lines before the module of tests that ends a file.
fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let is_start = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod tests {");
    lines.windows(2).position(is_start).unwrap_or(lines.len())
}

/// An example in documentation is text: nothing runs it, so it must not look as if something did.
pub(super) fn examples_are_text(tree: &SourceTree) -> Vec<TidyFault> {
    let fence = |line: &str| {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or(line.strip_prefix("//!"))?;
        comment.trim_start().strip_prefix("```").map(str::to_owned)
    };
    let mut faults = Vec::new();
    for file in tree.rust() {
        let fences = file.numbered();
        let fences = fences.filter_map(|(line, text)| Some((line, fence(text)?)));
        // Every other one ends an example.
        let begun = fences.step_by(2).filter(|(_, kind)| kind != "text");
        faults.extend(begun.map(|(line, _)| TidyFault {
            path: file.path.clone(),
            line,
            message: "begin it with ```text, and assert what it shows in a test".to_owned(),
        }));
    }
    faults
}

/// No unfinished work, and no test that does not run.
pub(super) fn nothing_is_left_undone(tree: &SourceTree) -> Vec<TidyFault> {
    let mut faults = Vec::new();
    for file in &tree.files {
        let is_rust = file.path.ends_with(".rs");
        for (line, text) in file.numbered() {
            let found = LEFTOVERS.iter().filter(|(word, location, _)| {
                (is_rust || *location == SourceLocation::AnyText) && text.contains(word)
            });
            faults.extend(found.map(|(word, _, advice)| TidyFault {
                path: file.path.clone(),
                line,
                message: format!("`{word}`: {advice}"),
            }));
        }
    }
    faults
}

/// `noun.rs` beside `noun/`, never `noun/mod.rs`.
pub(super) fn modules_are_named_after_their_noun(tree: &SourceTree) -> Vec<TidyFault> {
    let is_mod = |file: &&TextFile| file.path.rsplit('/').next() == Some("mod.rs");
    let fault = |file: &TextFile| TidyFault {
        path: file.path.clone(),
        line: 0,
        message: "name the file after its noun, beside the directory".to_owned(),
    };
    tree.rust().filter(is_mod).map(fault).collect()
}

/// A test file that no module names is never compiled, and so never fails.
pub(super) fn every_test_file_is_compiled(tree: &SourceTree) -> Vec<TidyFault> {
    let fault = |file: &TextFile| {
        let (directory, name) = file.path.rsplit_once('/')?;
        let module = name.strip_suffix(".rs")?;
        if !format!("{directory}/").contains("/tests/it/") || module == "main" {
            return None;
        }
        let parent = if directory.ends_with("/tests/it") {
            format!("{directory}/main.rs")
        } else {
            format!("{directory}.rs")
        };
        let is_named = tree
            .file(&parent)
            .is_some_and(|parent| names_module(parent, module));
        let message = format!("`mod {module};` is missing in {parent}");
        (!is_named).then(|| TidyFault {
            path: file.path.clone(),
            line: 0,
            message,
        })
    };
    tree.rust().filter_map(fault).collect()
}

fn names_module(file: &TextFile, module: &str) -> bool {
    let is_declaration = |line: &str| {
        let line = line
            .trim()
            .trim_start_matches("pub(crate) ")
            .trim_start_matches("pub ");
        line.strip_prefix("mod ")
            .and_then(|rest| rest.strip_suffix(';'))
            == Some(module)
    };
    file.text.lines().any(is_declaration)
}

#[cfg(test)]
mod tests {
    use super::super::faults;
    use super::{
        every_file_says_what_it_is, every_test_file_is_compiled, examples_are_text,
        files_stay_short, modules_are_named_after_their_noun, nothing_is_left_undone,
    };

    #[test]
    fn headers_are_there_and_short() {
        let long = "//! word\n".repeat(9);
        let files = [
            ("a.rs", "//! What this is.\n\nfn a() {}\n"),
            ("b.rs", "fn b() {}\n"),
            ("c.rs", long.as_str()),
            ("d.md", "text"),
        ];
        assert_eq!(
            faults(every_file_says_what_it_is, &files),
            [
                "b.rs:1: start with a `//!` header: what this is, what it deliberately does not know",
                "c.rs:1: shorten the `//!` header to two to six lines",
            ]
        );
    }

    #[test]
    fn tests_at_the_end_do_not_count_as_length() {
        let code = "x\n".repeat(500);
        let with_tests = format!("{code}#[cfg(test)]\nmod tests {{\n{code}}}\n");
        let too_long = format!("{code}x\n");
        let story = "x\n".repeat(801);
        let files = [
            ("crates/a/src/fits.rs", with_tests.as_str()),
            ("crates/a/src/long.rs", too_long.as_str()),
            ("crates/a/tests/it/fits.rs", too_long.as_str()),
            ("crates/a/src/decide/tests.rs", too_long.as_str()),
            ("crates/a/tests/it/long.rs", story.as_str()),
        ];
        assert_eq!(
            faults(files_stay_short, &files),
            [
                "crates/a/src/long.rs: 501 lines are more than 500: split it by noun",
                "crates/a/src/decide/tests.rs: 501 lines are more than 500: split it by noun",
                "crates/a/tests/it/long.rs: 801 lines are more than 800: split it by noun",
            ]
        );
    }

    #[test]
    fn an_example_that_looks_as_if_it_ran_is_found() {
        let text = "//! A word.\n//! ```text\n//! a\n//! ```\n";
        let code = "/// ```text\n/// a\n/// ```\n/// ```\n/// let a = 1;\n/// ```\n";
        assert_eq!(
            faults(examples_are_text, &[("a.rs", text), ("b.rs", code)]),
            ["b.rs:4: begin it with ```text, and assert what it shows in a test"]
        );
    }

    #[test]
    fn leftovers_are_found_where_they_matter() {
        let ignored = concat!("#[ign", "ore = \"later\"]\nfn a() { to", "do!() }\n");
        let note = concat!("FIX", "ME: later\n");
        let files = [
            ("a.rs", ignored),
            ("b.md", concat!("never use #[ign", "ore]")),
            ("c.md", note),
        ];
        assert_eq!(
            faults(nothing_is_left_undone, &files),
            [
                concat!("a.rs:1: `#[ign", "ore`: a test runs, or it does not exist"),
                concat!("a.rs:2: `to", "do!(`: write the body"),
                concat!(
                    "c.md:1: `FIX",
                    "ME`: finish it, or write down what is missing"
                ),
            ]
        );
    }

    #[test]
    fn modules_carry_their_noun() {
        let files = [
            ("crates/a/src/git/mod.rs", "//! x"),
            ("crates/a/src/git.rs", "//! x"),
        ];
        assert_eq!(
            faults(modules_are_named_after_their_noun, &files),
            ["crates/a/src/git/mod.rs: name the file after its noun, beside the directory"]
        );
    }

    #[test]
    fn test_files_that_nobody_compiles_are_named() {
        let files = [
            ("crates/a/tests/it/main.rs", "//! x\nmod one;\nmod deep;\n"),
            ("crates/a/tests/it/one.rs", ""),
            ("crates/a/tests/it/two.rs", ""),
            ("crates/a/tests/it/deep.rs", "pub(crate) mod leaf;\n"),
            ("crates/a/tests/it/deep/leaf.rs", ""),
            ("crates/a/tests/it/deep/stray.rs", ""),
            ("crates/a/tests/peer/main.rs", ""),
        ];
        assert_eq!(
            faults(every_test_file_is_compiled, &files),
            [
                "crates/a/tests/it/two.rs: `mod two;` is missing in crates/a/tests/it/main.rs",
                "crates/a/tests/it/deep/stray.rs: `mod stray;` is missing in crates/a/tests/it/deep.rs",
            ]
        );
    }
}
