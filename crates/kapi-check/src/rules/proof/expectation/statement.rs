//! The statement of a test that compares two values, and where it says what it expects.
//!
//! Found by the words of the usual frameworks, and only where the statement cannot be meant to fail:
//! a comparison that is negated, caught or part of a larger condition is none.

use std::ops::Range;

use crate::rules::proof::language::Language;
use crate::rules::proof::scan::{arguments, past_blanks, trimmed, walk};

/// Words before a call that is a statement.
const BEFORE: &[&str] = &["await ", "return ", "void "];
const OF_PYTHON: &[&str] = &[
    "assertEqual",
    "assertEquals",
    "assertListEqual",
    "assertDictEqual",
    "assertSetEqual",
    "assertTupleEqual",
    "assertSequenceEqual",
    "assertCountEqual",
    "assertMultiLineEqual",
    "assertIs",
    "assert_equal",
    "assert_equals",
    "assert_array_equal",
    "eq_",
];
const OF_SCRIPTS: &[&str] = &[
    "equal",
    "equals",
    "strictEqual",
    "deepEqual",
    "deepStrictEqual",
    "deepLooseEqual",
    "deepEquals",
    "same",
    "strictSame",
    "is",
    "eq",
    "deep",
    "assertEquals",
    "assertStrictEquals",
];
const OF_EXPECT: &[&str] = &[
    "toBe",
    "toEqual",
    "toStrictEqual",
    "equal",
    "equals",
    "eql",
    "eq",
    "eqls",
];
const OF_RUBY: &[&str] = &["assert_equal", "assert_same", "must_equal"];
const OF_RSPEC: &[&str] = &["eq", "eql", "be", "equal"];
const OF_PHP: &[&str] = &["assertSame", "assertEquals", "assertEqualsCanonicalizing"];
const OF_GO: &[&str] = &["Equal", "EqualValues", "Exactly", "DeepEqual"];
const OF_JAVA: &[&str] = &["assertEquals", "assertSame"];
const OF_RUST: &[&str] = &["assert_eq!"];

/// A statement that compares.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Where it begins.
    pub(super) start: usize,
    /// What is called, where a call says that it compares.
    pub(super) callee: Range<usize>,
    /// The two sides, the one that is likelier to say what is expected first.
    pub(super) sides: Vec<Range<usize>>,
}

/// Returns the comparison that begins in a line; `line` is where the line begins.
pub(super) fn comparison(text: &str, line: usize, language: Language) -> Option<Comparison> {
    let start = past_blanks(text, line);
    if language == Language::Script {
        let end = text
            .get(line..)?
            .find('\n')
            .map_or(text.len(), |end| line + end);
        let inner = text.get(start..end)?;
        // `test("…", () => assert.equal(…))` in one line.
        let arrows = inner
            .rmatch_indices("=> ")
            .map(|(at, found)| start + at + found.len());
        let braces = inner
            .rmatch_indices("{ ")
            .map(|(at, found)| start + at + found.len());
        return [start]
            .into_iter()
            .chain(arrows)
            .chain(braces)
            .find_map(|at| called(text, at, language));
    }
    if language == Language::Python && text.get(start..)?.starts_with("assert ") {
        return bare_assert(text, start);
    }
    called(text, start, language)
}

/// Returns a comparison that is a call of a framework.
fn called(text: &str, at: usize, language: Language) -> Option<Comparison> {
    let mut start = at;
    while let Some(word) = BEFORE.iter().find(|word| {
        text.get(start..)
            .is_some_and(|rest| rest.starts_with(**word))
    }) {
        start += word.len();
    }
    let rest = text.get(start..)?;
    let is_name = |c: char| match language {
        Language::Php => c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '>' | ':' | '\\'),
        Language::Rust => c.is_alphanumeric() || matches!(c, '_' | ':' | '!'),
        Language::Python
        | Language::Script
        | Language::Go
        | Language::Jvm
        | Language::C
        | Language::Ruby
        | Language::Shell
        | Language::Other => c.is_alphanumeric() || matches!(c, '_' | '$' | '.'),
    };
    let length = rest.find(|c: char| !is_name(c))?;
    let name = rest.get(..length)?;
    let callee = start..start + length;
    let segments: Vec<&str> = name
        .split(['.', ':', '>', '-', '\\'])
        .filter(|part| !part.is_empty())
        .collect();
    let last = *segments.last()?;
    if segments.contains(&"not") {
        return None;
    }
    if last == "expect" && segments.len() == 1 {
        return expected_of(text, callee, language);
    }
    let (names, from, order): (&[&str], usize, [usize; 2]) = match language {
        Language::Python => (OF_PYTHON, 0, [1, 0]),
        Language::Script => (OF_SCRIPTS, 0, [1, 0]),
        Language::Ruby => (OF_RUBY, 0, [0, 1]),
        Language::Php => (OF_PHP, 0, [0, 1]),
        Language::Jvm => (OF_JAVA, 0, [0, 1]),
        Language::Rust => (OF_RUST, 0, [1, 0]),
        Language::Go => (OF_GO, 1, [0, 1]),
        Language::C | Language::Shell | Language::Other => return None,
    };
    if !names.contains(&last) {
        return None;
    }
    let sides = if language == Language::Ruby && !rest.get(length..)?.starts_with('(') {
        words_of_ruby(text, start + length)?
    } else {
        arguments(text, start + length, language)?.parts
    };
    // A third argument of JUnit is a message or a delta, and which of them stands where is not known.
    if language == Language::Jvm && sides.len() != 2 {
        return None;
    }
    let sides = sides.get(from..)?;
    let sides: Vec<Range<usize>> = order
        .iter()
        .filter_map(|n| sides.get(*n).cloned())
        .collect();
    (sides.len() == 2 && sides.iter().all(|side| is_value(text, side))).then_some(Comparison {
        start: at,
        callee,
        sides,
    })
}

/// Returns the comparison that a chain after `expect(…)` makes.
fn expected_of(text: &str, callee: Range<usize>, language: Language) -> Option<Comparison> {
    let mut at = arguments(text, callee.end, language)?.end;
    loop {
        at = past_blanks(text, at);
        let rest = text.get(at..)?.strip_prefix('.')?;
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
        let name = rest.get(..length)?;
        at += 1 + length;
        let is_ruby = language == Language::Ruby;
        match name {
            "not" | "not_to" | "to_not" => return None,
            "to" if is_ruby => return matcher_of_ruby(text, callee, at),
            name if text.get(at..)?.starts_with('(') => {
                let side = arguments(text, at, language)?.parts.first()?.clone();
                let is_meant = !is_ruby && OF_EXPECT.contains(&name) && is_value(text, &side);
                return is_meant.then(|| Comparison {
                    start: callee.start,
                    callee,
                    sides: vec![side],
                });
            }
            _ => {}
        }
    }
}

/// Returns the comparison that a matcher after `expect(…).to` makes.
fn matcher_of_ruby(text: &str, callee: Range<usize>, at: usize) -> Option<Comparison> {
    let at = past_blanks(text, at);
    let rest = text.get(at..)?;
    let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
    if !OF_RSPEC.contains(&rest.get(..length)?) {
        return None;
    }
    let sides = if rest.get(length..)?.starts_with('(') {
        arguments(text, at + length, Language::Ruby)?.parts
    } else {
        words_of_ruby(text, at + length)?
    };
    let side = sides.first()?.clone();
    (sides.len() == 1).then(|| Comparison {
        start: callee.start,
        callee,
        sides: vec![side],
    })
}

/// Returns arguments without parentheses, up to the end of the line.
fn words_of_ruby(text: &str, at: usize) -> Option<Vec<Range<usize>>> {
    let mut commas = Vec::new();
    let end = walk(text, at, Language::Ruby, |at, byte, depth| {
        if depth == 0 && byte == b',' {
            commas.push(at);
        }
        depth == 0 && byte == b'\n'
    })?;
    let mut parts = Vec::new();
    let mut start = at;
    for stop in commas.into_iter().chain([end]) {
        parts.push(trimmed(text, start..stop));
        start = stop + 1;
    }
    parts.iter().all(|part| !part.is_empty()).then_some(parts)
}

/// Returns the comparison of a plain `assert` of Python.
fn bare_assert(text: &str, start: usize) -> Option<Comparison> {
    let from = start + "assert ".len();
    let (mut equals, mut comma) = (Vec::new(), None);
    let end = walk(text, from, Language::Python, |at, byte, depth| {
        let is_pair = text.get(at..).is_some_and(|rest| rest.starts_with("=="));
        if depth == 0 && is_pair {
            equals.push(at);
        }
        if depth == 0 && byte == b',' {
            comma.get_or_insert(at);
        }
        let is_continued = text.get(..at).is_some_and(|before| before.ends_with('\\'));
        depth == 0 && (byte == b';' || (byte == b'\n' && !is_continued))
    });
    let end = comma.or(end).unwrap_or(text.len());
    let &[at] = equals.as_slice() else {
        return None;
    };
    if at >= end {
        return None;
    }
    let whole = text.get(from..end)?;
    let remark = whole.find("  #").map_or(end, |at| from + at);
    let (left, right) = (
        trimmed(text, from..at),
        trimmed(text, at + 2..remark.max(at + 2)),
    );
    let is_larger = [
        " or ", " and ", " if ", " in ", " is ", "not ", "!=", ":=", "lambda",
    ]
    .iter()
    .any(|word| whole.contains(word));
    (!is_larger && !left.is_empty() && !right.is_empty()).then_some(Comparison {
        start,
        callee: start..start,
        sides: vec![right, left],
    })
}

/// Tells whether an argument is a value: none that is unpacked or named.
fn is_value(text: &str, side: &Range<usize>) -> bool {
    let side = text.get(side.clone()).unwrap_or_default();
    let name = side
        .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
        .trim_start();
    let is_named = name.starts_with('=') && !name.starts_with("==") && !name.starts_with("=>");
    !side.starts_with('*') && !side.starts_with("...") && !is_named
}
