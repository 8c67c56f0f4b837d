//! The comparison of a test in C or C++: a macro of a framework, or of the project's own.
//!
//! Only what is a statement by itself, and compares as its name says. What asks a function whether two
//! values are the same is left alone: its answer is no value that is expected.

use std::ops::Range;

use super::comparison::Comparison;
use super::condition;
use super::literal::another;
use crate::rules::proof::language::Language;
use crate::rules::proof::scan::{Arguments, arguments, past_blanks, walk};

/// Macros of two values that have to be the same.
const PAIRS: &[&str] = &[
    "EXPECT_EQ",
    "ASSERT_EQ",
    "EXPECT_STREQ",
    "ASSERT_STREQ",
    "CHECK_EQ",
    "REQUIRE_EQ",
    "CHECK_EQUAL",
    "REQUIRE_EQUAL",
    "ASSERT_EQUAL",
    "STRCMP_EQUAL",
    "LONGS_EQUAL",
    "UNSIGNED_LONGS_EQUAL",
    "BOOST_CHECK_EQUAL",
    "BOOST_REQUIRE_EQUAL",
    "CPPUNIT_ASSERT_EQUAL",
    "QCOMPARE",
    "CU_ASSERT_EQUAL",
    "CU_ASSERT_STRING_EQUAL",
    "ck_assert_int_eq",
    "ck_assert_uint_eq",
    "ck_assert_str_eq",
    "cr_assert_eq",
    "cr_expect_eq",
    "cr_assert_str_eq",
    "cr_expect_str_eq",
    "assert_int_equal",
    "assert_string_equal",
    "munit_assert_string_equal",
];
/// Macros of Unity, which have a form with a message behind the values as well.
const OF_UNITY: &[&str] = &[
    "TEST_ASSERT_EQUAL",
    "TEST_ASSERT_EQUAL_INT",
    "TEST_ASSERT_EQUAL_INT8",
    "TEST_ASSERT_EQUAL_INT16",
    "TEST_ASSERT_EQUAL_INT32",
    "TEST_ASSERT_EQUAL_INT64",
    "TEST_ASSERT_EQUAL_UINT",
    "TEST_ASSERT_EQUAL_UINT8",
    "TEST_ASSERT_EQUAL_UINT16",
    "TEST_ASSERT_EQUAL_UINT32",
    "TEST_ASSERT_EQUAL_UINT64",
    "TEST_ASSERT_EQUAL_HEX",
    "TEST_ASSERT_EQUAL_HEX8",
    "TEST_ASSERT_EQUAL_HEX16",
    "TEST_ASSERT_EQUAL_HEX32",
    "TEST_ASSERT_EQUAL_HEX64",
    "TEST_ASSERT_EQUAL_size_t",
    "TEST_ASSERT_EQUAL_CHAR",
    "TEST_ASSERT_EQUAL_STRING",
];
/// Macros of two values with an operator between them.
const OF_OPERATORS: &[&str] = &[
    "g_assert_cmpint",
    "g_assert_cmpuint",
    "g_assert_cmpstr",
    "munit_assert_int",
    "munit_assert_uint",
    "munit_assert_size",
];
/// Macros of one condition that has to hold, by the last part of their names.
const CONDITIONS: &[&str] = &["CHECK", "ASSERT", "REQUIRE", "EXPECT", "VERIFY", "TRUE"];
const CONDITIONS_WHOLE: &[&str] = &["BOOST_TEST", "QVERIFY", "OK"];
/// Parts of the names of macros that are no such ones, or are looked at by the compiler.
const OTHERS: &[&str] = &["STATIC", "BUILD", "COMPILE", "FALSE", "NOT", "NO", "DEATH"];
/// Macros that a build can leave out.
const LEFT_OUT: &[&str] = &["assert", "g_assert"];
/// Functions that compare texts to their end, and say so with 0.
const COMPARERS: &[&str] = &["strcmp", "std::strcmp", "strcasecmp"];
/// Parts of the names of what compares.
const COMPARING: &[&str] = &["cmp", "compar", "equal", "_eq", "same", "match", "differ"];

/// Returns the comparison that begins at `start`.
pub(super) fn comparison(text: &str, start: usize) -> Option<Comparison> {
    let rest = text.get(start..)?;
    let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let (name, callee) = (rest.get(..length)?, start..start + length);
    let call = arguments(text, callee.end, Language::C)?;
    end(text, call.end)?;
    // Raw texts end otherwise.
    if text.get(start..call.end)?.contains("R\"") {
        return None;
    }
    let sides = sides(text, name, &call)?;
    let is_said = |side: &Range<usize>| another(text, side, Language::C).is_some();
    sides.iter().any(is_said).then_some(Comparison {
        start,
        callee,
        sides,
    })
}

/// Returns where the statement of a comparison ends, behind its semicolon.
pub(super) fn statement_end(text: &str, found: &Comparison) -> Option<usize> {
    end(text, arguments(text, found.callee.end, Language::C)?.end)
}

/// Tells whether a build can leave out a comparison.
pub(super) fn is_left_out(text: &str, found: &Comparison) -> bool {
    let name = text.get(found.callee.clone()).unwrap_or_default();
    LEFT_OUT.contains(&name)
}

/// Returns where a statement ends whose call ends at `call`: at once, or behind what is streamed to it.
fn end(text: &str, call: usize) -> Option<usize> {
    let at = past_blanks(text, call);
    let rest = text.get(at..)?;
    if rest.starts_with(';') {
        return Some(at + 1);
    }
    if !rest.starts_with("<<") {
        return None;
    }
    let stop = |_, byte, depth| depth == 0 && byte == b';';
    walk(text, at, Language::C, stop).map(|at| at + 1)
}

fn sides(text: &str, name: &str, call: &Arguments) -> Option<Vec<Range<usize>>> {
    let parts = call.parts.as_slice();
    let unity = name.strip_suffix("_MESSAGE").unwrap_or(name);
    let is_unity = OF_UNITY.contains(&unity) && parts.len() == if unity == name { 2 } else { 3 };
    match parts {
        [first, second, ..] if is_unity => Some(vec![first.clone(), second.clone()]),
        [first, second] if PAIRS.contains(&name) => Some(vec![first.clone(), second.clone()]),
        [first, operator, second] if OF_OPERATORS.contains(&name) => {
            let is_same = text.get(operator.clone())? == "==";
            is_same.then(|| vec![first.clone(), second.clone()])
        }
        _ if is_condition(name) => of_condition(text, condition_of(text, parts)?),
        _ => None,
    }
}

fn is_condition(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let last = name.rsplit('_').next().unwrap_or_default();
    let is_other = name.split('_').any(|part| OTHERS.contains(&part));
    !is_other && (CONDITIONS.contains(&last) || CONDITIONS_WHOLE.contains(&name.as_str()))
}

/// Returns the condition among arguments: alone, before a message, or behind one.
fn condition_of<'p>(text: &str, parts: &'p [Range<usize>]) -> Option<&'p Range<usize>> {
    let is_message = |part: &Range<usize>| {
        text.get(part.clone())
            .is_some_and(|part| part.starts_with('"'))
    };
    match parts {
        [condition] => Some(condition),
        [message, condition] if is_message(message) => Some(condition),
        [condition, message, ..] if is_message(message) => Some(condition),
        _ => None,
    }
}

fn of_condition(text: &str, condition: &Range<usize>) -> Option<Vec<Range<usize>>> {
    if text.get(condition.clone())?.starts_with('!') {
        return compared_texts(text, &(condition.start + 1..condition.end));
    }
    let sides = condition::sides(text, condition, Language::C, "==")?;
    let said = |side: &Range<usize>| text.get(side.clone()).unwrap_or_default();
    let compares = |side: &&Range<usize>| {
        let side = said(side).to_ascii_lowercase();
        !side.starts_with('"') && COMPARING.iter().any(|word| side.contains(word))
    };
    let Some(call) = sides.iter().find(compares) else {
        return Some(sides);
    };
    let is_zero = sides.iter().any(|side| said(side) == "0");
    is_zero.then(|| compared_texts(text, call)).flatten()
}

/// Returns the texts that a call compares, where a value is nothing but this call.
fn compared_texts(text: &str, call: &Range<usize>) -> Option<Vec<Range<usize>>> {
    let said = text.get(call.clone())?;
    let (name, _) = said.split_once('(')?;
    if !COMPARERS.contains(&name) {
        return None;
    }
    let found = arguments(text, call.start + name.len(), Language::C)?;
    (found.end == call.end && found.parts.len() == 2).then_some(found.parts)
}
