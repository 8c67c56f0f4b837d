//! Tests that lie beside what they test: test modules of Rust, examples in documentation.
//!
//! Which file is a test is told by its path; these lie in the code under test, so they are told from
//! the text. A test stays if it is there as it was, wherever; an example may be written anew, but what
//! the base's example says has to hold as well.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use super::form::keeps_statements;
use super::language::Language;
use super::scan::code_bytes;

/// Tells whether a file can hold tests beside the code under test, by its name.
#[must_use]
pub fn can_hold(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "rs")
}

/// Tells whether a file lost a test that lay in it, or part of one. `changed` are the new texts of all
/// files that the change touches, its own first: a test may move among them. Where it stays in its
/// file, it may have more statements, as a test file may.
#[must_use]
pub fn is_lost(path: &Path, old: &str, changed: &[&str]) -> bool {
    if !can_hold(path) {
        return false;
    }
    let own = changed.first().copied().unwrap_or_default();
    if keeps_statements(&path.to_string_lossy(), &tests_in(old), &tests_in(own)) {
        return false;
    }
    let old: Vec<&str> = old.lines().map(str::trim).collect();
    let mut items = test_items(&old);
    for text in changed {
        if items.is_empty() {
            break;
        }
        let lines = lines_of(text);
        items.retain(|item| !holds(&lines, item));
    }
    !items.is_empty()
}

/// Returns the lines of a text that belong to tests.
fn tests_in(text: &str) -> String {
    let numbers = test_lines(text);
    let lines = text.lines().enumerate();
    let tests = lines.filter(|(n, _)| numbers.contains(n));
    tests.map(|(_, line)| format!("{line}\n")).collect()
}

/// Returns which lines belong to a test module, or to a test outside of one, counted from 0.
#[must_use]
pub fn test_lines(text: &str) -> BTreeSet<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let depths = depths(&lines.join("\n"));
    let depth_after = |n: usize| depths.get(n).copied().unwrap_or_default();
    let mut found = BTreeSet::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let begins = is_test_only(line) || is_test_attribute(line);
        let from = at.checked_sub(1).map_or(0, depth_after);
        let is_end = |n: &usize| {
            depth_after(*n) <= from && lines.get(*n).is_some_and(|line| ends_item(line))
        };
        let end = (at..lines.len()).find(is_end).filter(|_| begins);
        found.extend(end.map(|end| at..=end).into_iter().flatten());
        at = end.unwrap_or(at) + 1;
    }
    found
}

/// Returns the new text with the old one's examples in the place of its own, where they differ and
/// each has its counterpart.
#[must_use]
pub fn with_examples_of(path: &str, old: &str, new: &str) -> Option<String> {
    let language = Language::of(path)?;
    let (before, after): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let (was, is) = (examples(&before, language), examples(&after, language));
    let text = |lines: &[&str], range: &Range<usize>| -> Vec<String> {
        let lines = lines.get(range.clone()).unwrap_or_default();
        lines.iter().map(|line| (*line).to_owned()).collect()
    };
    let differs = was
        .iter()
        .zip(&is)
        .any(|(was, is)| text(&before, was) != text(&after, is));
    if was.len() != is.len() || !differs {
        return None;
    }
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    for (was, is) in was.iter().zip(&is) {
        out.extend(text(&after, &(at..is.start)));
        out.extend(text(&before, was));
        at = is.end;
    }
    out.extend(text(&after, &(at..after.len())));
    Some(out.join("\n") + "\n")
}

fn lines_of(text: &str) -> Vec<&str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect()
}

/// Tells whether lines stand one after the other among others, with no attribute before them that
/// changes what they mean.
fn holds(lines: &[&str], item: &[&str]) -> bool {
    let found = lines
        .windows(item.len())
        .enumerate()
        .filter(|(_, window)| *window == item);
    found
        .map(|(at, _)| at.checked_sub(1).and_then(|at| lines.get(at)))
        .any(|before| !before.is_some_and(|before| before.starts_with("#[")))
}

/// Returns the items of test modules, and test functions outside of them, as lines.
fn test_items<'t>(lines: &[&'t str]) -> Vec<Vec<&'t str>> {
    let text = lines.join("\n");
    let depths = depths(&text);
    let depth_after = |n: usize| depths.get(n).copied().unwrap_or_default();
    let depth_before = |n: usize| n.checked_sub(1).map_or(0, depth_after);
    let mut modules: Vec<usize> = Vec::new();
    let mut items = Vec::new();
    let mut item: Vec<&str> = Vec::new();
    let mut from = 0;
    for (n, line) in lines.iter().enumerate() {
        modules.retain(|depth| depth_before(n) >= *depth);
        if item.is_empty() {
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            from = depth_before(n);
        }
        item.push(*line);
        let opens_module = item.iter().any(|line| is_test_only(line))
            && line.ends_with('{')
            && (line.starts_with("mod ") || line.contains(" mod "));
        if opens_module {
            modules.push(depth_after(n));
            item.clear();
            continue;
        }
        // What opens something that is no test is looked into.
        let is_test = item.iter().any(|line| is_test_attribute(line));
        let is_within = !modules.is_empty();
        if depth_after(n) > from && !is_test && !is_within {
            item.clear();
            continue;
        }
        if depth_after(n) <= from && ends_item(line) {
            let is_kept =
                (is_test || is_within) && !item.iter().any(|line| line.starts_with("use "));
            let whole = std::mem::take(&mut item);
            let says_something = whole
                .iter()
                .any(|line| line.contains(char::is_alphanumeric));
            if is_kept && says_something {
                items.push(whole.into_iter().filter(|line| !line.is_empty()).collect());
            }
        }
    }
    items
}

/// Tells whether a line says that what follows is there for tests alone.
fn is_test_only(line: &str) -> bool {
    line.starts_with("#[cfg(") && line.contains("test") && !line.contains("not(test")
}

/// Tells whether a line says that what follows is a test.
fn is_test_attribute(line: &str) -> bool {
    line.starts_with("#[test]") || line.ends_with("::test]")
}

/// Tells whether a line can be the last of an item.
fn ends_item(line: &str) -> bool {
    line.ends_with(['}', ';', ','])
}

/// Returns how many braces are open behind each line.
fn depths(text: &str) -> Vec<usize> {
    let ends: BTreeSet<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let mut depths = vec![0; ends.len() + 1];
    let mut depth = 0_usize;
    let mut line = 0;
    let mut ends = ends.into_iter().peekable();
    for (at, byte) in code_bytes(text, Language::Rust) {
        while ends.next_if(|end| *end < at).is_some() {
            if let Some(kept) = depths.get_mut(line) {
                *kept = depth;
            }
            line += 1;
        }
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    for kept in depths.iter_mut().skip(line) {
        *kept = depth;
    }
    depths
}

/// Returns where the examples of a documentation stand that can be run.
fn examples(lines: &[&str], language: Language) -> Vec<Range<usize>> {
    match language {
        Language::Rust => fenced(lines),
        Language::Python => prompted(lines),
        Language::Script
        | Language::Go
        | Language::Jvm
        | Language::C
        | Language::Ruby
        | Language::Php
        | Language::Perl
        | Language::Lua
        | Language::Shell
        | Language::Other => Vec::new(),
    }
}

/// Returns the blocks of documentation between fences in which something is asserted.
fn fenced(lines: &[&str]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open = None;
    for (n, line) in lines.iter().enumerate() {
        let bare = line.trim_start();
        let doc = bare
            .strip_prefix("///")
            .or_else(|| bare.strip_prefix("//!"));
        let Some(doc) = doc else {
            open = None;
            continue;
        };
        if !doc.trim_start().starts_with("```") {
            continue;
        }
        match open.take() {
            None => open = Some(n),
            Some(start) => found.push(start..n + 1),
        }
    }
    found
}

/// Returns what stands from a prompt of Python to the end of its output.
fn prompted(lines: &[&str]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open = None;
    for (n, line) in lines.iter().enumerate() {
        let bare = line.trim();
        let ends = bare.is_empty() || bare.contains("\"\"\"") || bare.contains("'''");
        match open {
            None if bare.starts_with(">>> ") => open = Some(n),
            Some(start) if ends => {
                found.push(start..n);
                open = None;
            }
            None | Some(_) => {}
        }
    }
    found.extend(open.map(|start| start..lines.len()));
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{is_lost, test_lines, with_examples_of};

    const OLD: &str = "\
pub fn f() -> char {
    '{'
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: &[u8] = &[
        1,
    ];

    case!(three: 3 => '3');

    fn helper() -> u8 {
        1
    }

    // One.
    #[test]
    fn one() {
        if true {
            assert_eq!(f(), '{');
        }
    }

    #[test]
    fn two() {
        assert_eq!(helper(), 1);
    }
}

pub fn g() {}
";

    #[track_caller]
    fn check(new: &[&str], expected: bool) {
        assert_eq!(
            is_lost(Path::new("src/lib.rs"), OLD, new),
            expected,
            "{new:?}"
        );
    }

    #[test]
    fn a_test_beside_its_code_stays_as_it_is() {
        check(&[OLD], false);
        check(
            &[&OLD.replace("'{'\n}", "'}'\n}").replace("pub fn g() {}", "")],
            false,
        );
        check(&[&OLD.replace("use super::*;", "use super::f;")], false);
        let more = OLD.replace("    // One.\n", "    #[test]\n    fn none() {}\n\n");
        check(&[&more], false);
        let longer = OLD.replace(
            "helper(), 1);",
            "helper(), 1);\n        assert_eq!(g(), ());",
        );
        check(&[&longer], false);
        for (from, to) in [
            ("assert_eq!(f(), '{');", "assert_eq!(f(), '}');"),
            ("    fn one() {\n", "    fn one() {\n        return;\n"),
            (
                "    #[test]\n    fn two",
                concat!("    #[should_", "panic]\n    #[test]\n    fn two"),
            ),
            (
                "    #[test]\n    fn two",
                concat!("    #[test]\n    #[ign", "ore]\n    fn two"),
            ),
            (
                "fn helper() -> u8 {\n        1",
                "fn helper() -> u8 {\n        2",
            ),
            ("        1,\n", "        2,\n"),
            ("3 => '3'", "3 => '4'"),
        ] {
            let new = OLD.replace(from, to);
            assert_ne!(new, OLD);
            check(&[&new], true);
        }
    }

    #[test]
    fn lines_of_tests_are_told_from_those_of_code() {
        let code = |text: &str| -> Vec<String> {
            let tests = test_lines(text);
            let lines = text.lines().enumerate();
            let code = lines.filter(|(n, line)| !tests.contains(n) && !line.is_empty());
            code.map(|(_, line)| line.to_owned()).collect()
        };
        assert_eq!(
            code(OLD),
            ["pub fn f() -> char {", "    '{'", "}", "pub fn g() {}"]
        );
        let lone = "#[test]\nfn t() {\n    f();\n}\n#[cfg(not(test))]\nfn f() {}\n";
        assert_eq!(code(lone), ["#[cfg(not(test))]", "fn f() {}"]);
        assert_eq!(code("#[cfg(test)]\nmod tests;\nmod a;\n"), ["mod a;"]);
    }

    #[test]
    fn a_test_beside_its_code_may_move() {
        let (code, tests) = OLD.split_once("mod tests {\n").unwrap();
        let (tests, rest) = tests.split_once("\n}\n").unwrap();
        let moved = tests.replace("\n    ", "\n");
        check(&[&format!("{code}mod tests;\n{rest}"), &moved], false);
        check(&[&format!("{code}mod tests;\n{rest}")], true);
        check(&[], true);
    }

    #[test]
    fn a_test_without_a_module_is_one_too() {
        let old = "fn f() {}\n#[test]\nfn t() {\n    f();\n}\n";
        assert!(!is_lost(
            Path::new("a.rs"),
            old,
            &["fn f() { g() }\n#[test]\nfn t() {\n    f();\n}\n"]
        ));
        assert!(is_lost(
            Path::new("a.rs"),
            old,
            &["fn f() {}\n#[test]\nfn t() {\n}\n"]
        ));
        assert!(!is_lost(Path::new("a.py"), old, &[""]));
    }

    #[test]
    fn examples_are_put_back_one_by_one() {
        let old = "/// Adds.\n/// ```\n/// assert_eq!(f(1), 2);\n/// ```\nfn f() {}\n";
        let new = "/// Adds up.\n/// ```\n/// assert_eq!(f(1), 3);\n/// ```\nfn f() { g() }\n";
        let both = with_examples_of("src/lib.rs", old, new).unwrap();
        assert_eq!(both, new.replace("3)", "2)"));
        assert_eq!(
            with_examples_of("src/lib.rs", old, &new.replace("3)", "2)")),
            None
        );
        assert_eq!(with_examples_of("src/lib.rs", old, "fn f() {}\n"), None);
        let old = "def f():\n    \"\"\"Adds.\n\n    >>> f(1)\n    2\n    \"\"\"\n";
        let new = "def f():\n    \"\"\"Adds up.\n\n    >>> f(1)\n    3\n    \"\"\"\n    return 3\n";
        assert_eq!(
            with_examples_of("a.py", old, new).unwrap(),
            new.replace("    3\n", "    2\n")
        );
        assert_eq!(with_examples_of("a.txt", old, new), None);
    }
}
