//! The statement of a test that compares two values, and where it says what it expects.
//!
//! Found by the words of the usual frameworks, and only where the statement cannot be meant to fail:
//! a comparison that is negated, caught or part of a larger condition is none.

use std::ops::Range;

use super::comparison::Comparison;
use super::condition;
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
const OF_PERL: &[&str] = &["is", "is_deeply", "eq_or_diff"];
const OF_LUA: &[&str] = &[
    "equal",
    "equals",
    "same",
    "are_equal",
    "are_same",
    "is_equal",
    "assertEquals",
    "assert_equal",
];
/// Operators that compare in Perl and Lua.
const OPERATORS: &[&str] = &["==", " eq "];
/// What the scan of a line of Perl takes for something else.
const UNREAD_IN_PERL: &[&str] = &[
    "#", "=~", "qr", "q(", "q{", "qq", "qw", "m/", "s/", "tr/", "y/", "<<", "//",
];
/// The same for Lua.
const UNREAD_IN_LUA: &[&str] = &["[[", "[=", "--"];
/// What stands behind a statement of Perl and says when it is run.
const MODIFIERS_OF_PERL: &[&str] = &[" if ", " unless ", " for ", " foreach ", " while ", " or "];

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

/// Calls of frameworks that compare two of their arguments.
struct CallNames {
    names: &'static [&'static str],
    /// How many arguments stand before these.
    from: usize,
    /// Which of the two is likelier to say what is expected.
    order: [usize; 2],
}

impl CallNames {
    const fn of(language: Language) -> Option<Self> {
        let (names, from, order) = match language {
            Language::Python => (OF_PYTHON, 0, [1, 0]),
            Language::Script => (OF_SCRIPTS, 0, [1, 0]),
            Language::Ruby => (OF_RUBY, 0, [0, 1]),
            Language::Php => (OF_PHP, 0, [0, 1]),
            Language::Jvm => (OF_JAVA, 0, [0, 1]),
            Language::Rust => (OF_RUST, 0, [1, 0]),
            Language::Go => (OF_GO, 1, [0, 1]),
            Language::Perl => (OF_PERL, 0, [1, 0]),
            Language::Lua => (OF_LUA, 0, [0, 1]),
            Language::C | Language::Shell | Language::Other => return None,
        };
        Some(Self { names, from, order })
    }
}

/// Tells whether a character may be part of the name of what is called.
fn is_of_name(c: char, language: Language) -> bool {
    let others: &[char] = match language {
        Language::Php => &['_', '$', '-', '>', ':', '\\'],
        Language::Rust => &['_', ':', '!'],
        _ => &['_', '$', '.'],
    };
    c.is_alphanumeric() || others.contains(&c)
}

/// Returns the comparison that the condition of an assertion makes, with a message or none.
fn asserted(text: &str, callee: Range<usize>, language: Language) -> Option<Comparison> {
    let parts = parts(text, callee.end, language)?;
    if !is_read(text, callee.start, &parts, language) {
        return None;
    }
    let mut operators = OPERATORS.iter();
    let sides = operators
        .find_map(|operator| condition::sides(text, parts.first()?, language, operator))?;
    Some(Comparison {
        start: callee.start,
        callee,
        sides,
    })
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
    let length = rest.find(|c: char| !is_of_name(c, language))?;
    let name = rest.get(..length)?;
    let callee = start..start + length;
    let segments: Vec<&str> = name
        .split(['.', ':', '>', '-', '\\'])
        .filter(|part| !part.is_empty())
        .collect();
    let last = *segments.last()?;
    let is_negated = |part: &&str| matches!(*part, "not" | "is_not" | "are_not" | "has_no");
    if segments.iter().any(is_negated) {
        return None;
    }
    if last == "expect" && segments.len() == 1 {
        return expected_of(text, callee, language);
    }
    let is_condition = match language {
        Language::Perl => name == "ok",
        Language::Lua => name == "assert",
        _ => false,
    };
    if is_condition {
        return asserted(text, callee, language);
    }
    let known = CallNames::of(language)?;
    let is_of_lua = name.starts_with("assert") || last.starts_with("assert");
    if !known.names.contains(&last) || (language == Language::Lua && !is_of_lua) {
        return None;
    }
    let parts = parts(text, start + length, language)?;
    if !is_read(text, start, &parts, language) {
        return None;
    }
    // A third argument of JUnit is a message or a delta, and which of them stands where is not known.
    if language == Language::Jvm && parts.len() != 2 {
        return None;
    }
    let sides = parts.get(known.from..)?;
    let sides: Vec<Range<usize>> = known
        .order
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
    let asked = arguments(text, callee.end, language)?;
    let actual = asked.parts.first();
    let mut at = asked.end;
    loop {
        at = past_blanks(text, at);
        let dot = if language == Language::Php { "->" } else { "." };
        let rest = text.get(at..)?.strip_prefix(dot)?;
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
        let name = rest.get(..length)?;
        at += dot.len() + length;
        let is_ruby = language == Language::Ruby;
        match name {
            "not" | "not_to" | "to_not" => return None,
            "to" if is_ruby => {
                let mut found = matcher_of_ruby(text, callee, at)?;
                found.sides.extend(actual.cloned());
                return Some(found);
            }
            name if text.get(at..)?.starts_with('(') => {
                let side = arguments(text, at, language)?.parts.first()?.clone();
                let is_meant = !is_ruby && OF_EXPECT.contains(&name) && is_value(text, &side);
                return is_meant.then(|| Comparison {
                    start: callee.start,
                    callee,
                    sides: [side].into_iter().chain(actual.cloned()).collect(),
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
    let sides = parts(text, at + length, Language::Ruby)?;
    let side = sides.first()?.clone();
    (sides.len() == 1).then(|| Comparison {
        start: callee.start,
        callee,
        sides: vec![side],
    })
}

/// Returns the arguments of a call whose name ends at `at`, with parentheses or without.
fn parts(text: &str, at: usize, language: Language) -> Option<Vec<Range<usize>>> {
    let has_parentheses = text.get(at..)?.starts_with('(');
    match language {
        Language::Ruby if !has_parentheses => words(text, at, language, b'\n'),
        Language::Perl if !has_parentheses => words(text, at, language, b';'),
        _ => Some(arguments(text, at, language)?.parts),
    }
}

/// Returns arguments without parentheses, up to what ends the statement.
fn words(text: &str, at: usize, language: Language, last: u8) -> Option<Vec<Range<usize>>> {
    let mut commas = Vec::new();
    let end = walk(text, at, language, |at, byte, depth| {
        if depth == 0 && byte == b',' {
            commas.push(at);
        }
        depth == 0 && byte == last
    })?;
    let mut parts = Vec::new();
    let mut start = at;
    for stop in commas.into_iter().chain([end]) {
        parts.push(trimmed(text, start..stop));
        start = stop + 1;
    }
    parts.iter().all(|part| !part.is_empty()).then_some(parts)
}

/// Tells whether the two arguments of a call that begins at `start` are read as they are meant.
fn is_read(text: &str, start: usize, parts: &[Range<usize>], language: Language) -> bool {
    let values = parts.get(..parts.len().min(2)).unwrap_or_default();
    let end = values.last().map_or(start, |last| last.end);
    let said = text.get(start..end).unwrap_or_default();
    let unread: &[&[&str]] = match language {
        Language::Perl => &[UNREAD_IN_PERL, MODIFIERS_OF_PERL],
        Language::Lua => &[UNREAD_IN_LUA],
        _ => &[],
    };
    !unread.concat().iter().any(|sign| said.contains(sign))
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
