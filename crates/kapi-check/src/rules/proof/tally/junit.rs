//! Counts the test cases in a file of `JUnit`'s form.
//!
//! Reads tags and nothing else: no entity, no namespace, no schema.

use super::TestTally;

/// A tag: its name, and whether it opens, closes or does both.
enum Tag<'a> {
    Open(&'a str),
    Close(&'a str),
    Both(&'a str),
}

pub(super) fn read(text: &str) -> Option<TestTally> {
    let mut tally = TestTally::default();
    let mut is_report = false;
    let mut rest = text;
    // What the open test case came to so far.
    let mut case: Option<TestTally> = None;
    let one = |passed, failed, skipped| TestTally {
        passed,
        failed,
        skipped,
        ..TestTally::default()
    };
    while let Some((tag, after)) = next_tag(rest) {
        rest = after;
        match tag {
            Tag::Open("testsuite" | "testsuites") | Tag::Both("testsuite" | "testsuites") => {
                is_report = true;
            }
            Tag::Open("testcase") => case = Some(one(1, 0, 0)),
            Tag::Both("testcase") => tally.add(one(1, 0, 0)),
            Tag::Open("failure" | "error") | Tag::Both("failure" | "error") => {
                case = case.map(|_| one(0, 1, 0));
            }
            Tag::Open("skipped") | Tag::Both("skipped") => {
                case = case.map(|case| if case.failed > 0 { case } else { one(0, 0, 1) });
            }
            Tag::Close("testcase") => tally.add(case.take().unwrap_or_default()),
            Tag::Open(_) | Tag::Close(_) | Tag::Both(_) => {}
        }
    }
    is_report.then_some(tally)
}

fn next_tag(text: &str) -> Option<(Tag<'_>, &str)> {
    let mut rest = text;
    loop {
        rest = rest.get(rest.find('<')? + 1..)?;
        let skipped = [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>"), ("!", ">")];
        let found = skipped.iter().find(|(start, _)| rest.starts_with(start));
        let Some((_, end)) = found else { break };
        rest = rest.get(rest.find(end)? + end.len()..)?;
    }
    let mut quote = None;
    let end = rest.char_indices().find(|(_, c)| {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(*c),
            (Some(open), c) if open == *c => quote = None,
            (None, '>') => return true,
            (Some(_) | None, _) => {}
        }
        false
    });
    let (end, _) = end?;
    let (inner, after) = (rest.get(..end)?, rest.get(end + 1..)?);
    if let Some(name) = inner.strip_prefix('/') {
        return Some((Tag::Close(name.trim()), after));
    }
    let name = inner.split([' ', '\t', '\n', '\r', '/']).next()?;
    let tag = if inner.ends_with('/') {
        Tag::Both(name)
    } else {
        Tag::Open(name)
    };
    Some((tag, after))
}
