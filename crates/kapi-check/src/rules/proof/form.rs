//! Whether a text of a program still says what another said: in another form, or with more lines.
//!
//! Blanks, line breaks, quotes and comments are form: a formatter's work, told without a parser. In
//! Python the indentation of a statement is none. Imports and the like may differ as well.

mod aside;
mod leaving;

use std::collections::BTreeSet;

use self::aside::is_aside;
use self::leaving::{AddedLines, added_lines};
use super::language::Language;
use super::scan::{Token, tokens};

/// The most lines of a text that are read as statements: the work grows with their square.
const LINES_MAX: usize = 20_000;

/// The words and signs of a line.
type Line = Vec<String>;

/// Tells whether a file keeps every statement, in its order, by its name and both texts. Whole lines
/// may be added, but none after which a statement is not reached.
#[must_use]
pub fn keeps_statements(path: &str, old: &str, new: &str) -> bool {
    let Some(language) = Language::of(path) else {
        return only_adds_lines(old, new);
    };
    let (was, is) = (statements(old, language), statements(new, language));
    if was.len().max(is.len()) > LINES_MAX {
        return only_adds_lines(old, new);
    }
    let leaving = match added_lines(&is, &was, language) {
        AddedLines::Leave(leaving) => leaving,
        AddedLines::Wrap => return false,
    };
    // Lines may be added within a text in quotes, too, which is one word here.
    if leaving.is_empty() && only_adds_lines(old, new) {
        return true;
    }
    let was = was.concat();
    // How many words of the old text the new one can have said so far.
    let mut kept = BTreeSet::from([0]);
    for (place, line) in is.iter().enumerate() {
        let goes_on = |count: &usize| was.get(*count..).is_some_and(|rest| rest.starts_with(line));
        let more: Vec<usize> = kept.iter().copied().filter(goes_on).collect();
        if let Some(leaving) = leaving.get(&place) {
            kept.retain(|count| leaving.is_last(was.get(*count)));
        }
        kept.extend(more.into_iter().map(|count| count + line.len()));
    }
    kept.contains(&was.len())
}

/// Tells whether every line of a text still is in another, in its order.
fn only_adds_lines(old: &str, new: &str) -> bool {
    let mut now = new.lines();
    old.lines().all(|line| now.any(|other| other == line))
}

/// Returns the lines of a text in a form that any formatter leaves alone, without asides.
fn statements(text: &str, language: Language) -> Vec<Line> {
    let mut said = Vec::new();
    let mut open = 0;
    for line in lines(text, language) {
        let is_left_out = open > 0 || is_aside(&line, language);
        match open_after(open, &line).filter(|_| is_left_out) {
            Some(still) => open = still,
            None => said.push(line),
        }
    }
    let firsts = said.iter().skip(1).map(|line| line.first().cloned());
    let firsts: Vec<Option<String>> = firsts.chain([None]).collect();
    let lines = said.into_iter().zip(firsts);
    lines
        .map(|(line, next)| without_form(&line, next.as_ref(), language))
        .collect()
}

/// Returns how many brackets are open after a line; nothing where it closes others.
fn open_after(open: usize, line: &[String]) -> Option<usize> {
    line.iter()
        .try_fold(open, |open, word| match word.as_str() {
            "(" | "[" | "{" => Some(open + 1),
            ")" | "]" | "}" => open.checked_sub(1),
            _ => Some(open),
        })
}

/// Returns the words and signs of a text, line by line.
fn lines(text: &str, language: Language) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut at = 0;
    for Token { text: word, start } in tokens(text, language) {
        let is_new = text.get(at..start).is_none_or(|gap| gap.contains('\n'));
        at = start;
        match lines.last_mut().filter(|_| !is_new) {
            Some(line) => line.push(word),
            None => lines.push(vec![word]),
        }
    }
    lines
}

/// Returns a line without what formatters add and take away, by the word that comes after it.
fn without_form(line: &[String], next: Option<&String>, language: Language) -> Line {
    let is_script = language == Language::Script;
    let behind = line.iter().skip(1).map(Some).chain([next]);
    let kept = line.iter().zip(behind).filter(|(word, next)| {
        let closes = next.is_none_or(|next| [")", "]", "}"].contains(&next.as_str()));
        let is_last_comma = word.as_str() == "," && closes;
        let is_end = is_script && word.as_str() == ";";
        !is_last_comma && !is_end
    });
    let declares = |word: &str| is_script && ["var", "const"].contains(&word);
    let words = kept.map(|(word, _)| match word.as_str() {
        word if declares(word) => "let".to_owned(),
        word => word.to_owned(),
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::keeps_statements;

    #[test]
    fn a_formatter_says_the_same() {
        for (path, old, new) in [
            (
                "a.test.js",
                "test('a',()=>{f(1,\n2)})",
                "test(\"a\", () => {\n  f(1, 2,);\n});\n",
            ),
            (
                "test_a.py",
                "def f():\n  x = g('a',\n    1)\n",
                "def f():\n    # So.\n    x = g(\n        \"a\",\n        1,\n    )\n",
            ),
            (
                "tests/a.rs",
                "fn f() { g(\"a b\", 1) }",
                "fn f() {\n    g(\"a b\", 1)\n}\n",
            ),
        ] {
            assert!(keeps_statements(path, old, new), "{old}");
        }
    }

    #[test]
    fn another_statement_is_no_form() {
        for (path, old, new) in [
            ("a.test.js", "f('a b')", "f('ab')"),
            ("a.test.js", "f(1, 2)", "f(12)"),
            ("a.test.js", "f(1)", "f(2)"),
            ("a.test.js", "f(1)\ng(2)", "g(2)\nf(1)"),
            (
                "a.test.js",
                "expect(f(1)).toBe(2)",
                "expect(f(1)).not.toBe(2)",
            ),
            (
                "test_a.py",
                "assert f(1) == 2\n",
                "assert f(1) == 2 or True\n",
            ),
            ("test_a.py", "def test_a():\n    f()\n", ""),
            (
                "test_a.py",
                "if x:\n    f()\n    g()\n",
                "if x:\n    f()\ng()\n",
            ),
            ("tests/a.txt", "a b", "a  b"),
            ("tests/a.txt", "a\nb\n", "b\na\n"),
            ("tests/a.txt", "a\na\n", "a\n"),
        ] {
            assert!(!keeps_statements(path, old, new), "{old}");
        }
    }

    #[test]
    fn lines_may_be_added_in_another_form() {
        for (path, old, new) in [
            ("tests/a.txt", "a\nb\n", "x\na\ny\nb\nz\n"),
            (
                "test_a.py",
                "T = \"\"\"\na\n\"\"\"\n",
                "T = \"\"\"\na\nb\n\"\"\"\n",
            ),
            (
                "a.test.js",
                "test('a', () => { f(1) })\n",
                "test(\"b\", () => {\n  f(2);\n});\ntest(\"a\", () => {\n  f(1);\n  f(3);\n});\n",
            ),
            (
                "test_a.py",
                "def test_a():\n  f('a')\n",
                "def test_a():\n    f(\"a\")\n    f(\"b\")\n\ndef test_b():\n    g()\n",
            ),
        ] {
            assert!(keeps_statements(path, old, new), "{old}");
        }
    }

    #[test]
    fn a_line_after_which_others_are_not_reached_is_no_addition() {
        let js = "describe('a', () => {\n  test('b', () => {\n    f(1);\n  });\n});\n";
        let python = "class A:\n    def test_b(self):\n        f(1)\n        g(2)\n";
        for (path, old, at, added) in [
            ("a.test.js", js, "    f(1)", "    return;\n"),
            (
                "a.test.js",
                js,
                "    f(1)",
                "    if (x) {\n      return;\n    }\n",
            ),
            ("a.test.js", js, "    f(1)", "    process.exit(0)\n"),
            ("test_a.py", python, "        f(1)", "        return\n"),
            (
                "test_a.py",
                python,
                "        g(2)",
                "        if x:\n            self.skipTest('x')\n",
            ),
        ] {
            let new = old.replacen(at, &format!("{added}{at}"), 1);
            assert!(!keeps_statements(path, old, &new), "{new}");
        }
        let rust = "#[test]\nfn a() { f(1) }\n";
        let never = rust.replace("fn a", "#[cfg(never)]\nfn a");
        assert!(!keeps_statements("tests/a.rs", rust, &never), "{never}");
        let wrapped = js.replace("    f(1);", "    if (x) {\n      f(1);\n    }");
        assert!(!keeps_statements("a.test.js", js, &wrapped), "{wrapped}");
        for (path, old, at, added) in [
            // It leaves a function of its own.
            (
                "a.test.js",
                js,
                "    f(1)",
                "    const h = () => { return 1; };\n",
            ),
            (
                "a.test.js",
                js,
                "  test(",
                "  test('c', () => {\n    if (x) {\n      return;\n    }\n    f(3);\n  });\n",
            ),
            (
                "test_a.py",
                python,
                "        f(1)",
                "        def h():\n            return 1\n",
            ),
            (
                "test_a.py",
                python,
                "    def",
                "    def test_c(self):\n        if x:\n            return\n",
            ),
            // Nothing comes behind it.
            ("a.test.js", js, "  });\n", "    return f(2);\n"),
            ("test_a.py", python, "~", "        return f(2)\n"),
        ] {
            let old_and_end = format!("{old}~");
            let new = old_and_end.replacen(at, &format!("{added}{at}"), 1);
            let new = new.trim_end_matches('~');
            assert!(keeps_statements(path, old, new), "{new}");
        }
        let more = js
            .replace("test('b'", "describe('c', () => {\n    test('b'")
            .replace("});\n});", "});\n});\n});");
        assert!(keeps_statements("a.test.js", js, &more), "{more}");
    }

    #[test]
    fn a_text_of_very_many_lines_keeps_its_lines() {
        let old = "f(1);\n".repeat(150_000);
        assert!(keeps_statements(
            "a.test.js",
            &old,
            &format!("{old}g(2);\n")
        ));
        assert!(!keeps_statements(
            "a.test.js",
            &old,
            &old.replace("(1)", "(2)")
        ));
    }

    #[test]
    fn asides_may_differ() {
        for (path, old, new) in [
            (
                "test_a.py",
                "import os\nfrom a import (\n    b,\n    c,\n)\n\ndef test_a():\n    b(c)\n",
                "from a import b, c\n\ndef test_a():\n    b(c)\n",
            ),
            (
                "a.test.js",
                "'use strict'\nvar assert = require('assert')\n  , a = require('../')\n\nvar x = 1\na(x)\n",
                "import assert from 'node:assert';\nimport {\n  a,\n} from '../index.js';\nconst x = 1;\na(x);\n",
            ),
            (
                "tests/a.rs",
                "#![allow(dead_code)]\nuse a::{\n    b,\n};\n#[test]\nfn a() { b() }\n",
                "use a::b;\n#[test]\n#[expect(clippy::unwrap_used, reason = \"a test\")]\nfn a() { b() }\n",
            ),
            (
                "ATest.java",
                "import a.B;\n@Test void a() { b(); }\n",
                "import static a.C.b;\n@SuppressWarnings(\"x\")\n@Test void a() { b(); }\n",
            ),
        ] {
            assert!(keeps_statements(path, old, new), "{old}");
        }
        for (path, old, new) in [
            (
                "tests/a.rs",
                "#[test]\nfn a() { b() }\n",
                "fn a() { b() }\n",
            ),
            ("test_a.py", "import a; assert a.b()\n", "import a\n"),
            (
                "a.test.js",
                "import a from 'a'; a(1)\n",
                "import a from 'a';\n",
            ),
            ("a.test.js", "const x = require('a')(1)\n", "const x = 2\n"),
            ("A.cs", "using (var a = B()) { a.C(); }\n", "using A;\n"),
            ("a.test.js", "import a from 'a' })\n", "f()\n"),
            ("t/a.t", "use Test::More tests => 5;\n", "use Test::More;\n"),
        ] {
            assert!(!keeps_statements(path, old, new), "{old}");
        }
    }
}
