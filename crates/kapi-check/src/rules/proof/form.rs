//! Whether two texts of a program differ in their form alone: blanks, line breaks, quotes, comments.
//!
//! A formatter's work, told without a parser. In Python the indentation of a statement is no form.

use super::language::Language;
use super::scan::tokens;

/// Tells whether a file says the same in another form, by its name and both texts.
#[must_use]
pub fn is_same_but_for_form(path: &str, old: &str, new: &str) -> bool {
    let Some(language) = Language::of(path) else {
        return false;
    };
    let said = |text: &str| {
        let all = tokens(text, language);
        let next = all.iter().skip(1).map(Some).chain([None]);
        let kept = all.iter().zip(next).filter(|(token, next)| {
            let closes = next.is_none_or(|next| [")", "]", "}"].contains(&next.as_str()));
            let is_last_comma = token.as_str() == "," && closes;
            let is_end = token.as_str() == ";" && language == Language::Script;
            !is_last_comma && !is_end
        });
        kept.map(|(token, _)| token.clone()).collect::<Vec<_>>()
    };
    said(old) == said(new)
}

#[cfg(test)]
mod tests {
    use super::is_same_but_for_form;

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
            assert!(is_same_but_for_form(path, old, new), "{old}");
        }
        for (path, old, new) in [
            ("a.test.js", "f('a b')", "f('ab')"),
            ("a.test.js", "f(1, 2)", "f(12)"),
            ("a.test.js", "f(1)", "f(2)"),
            (
                "test_a.py",
                "if x:\n    f()\n    g()\n",
                "if x:\n    f()\ng()\n",
            ),
            ("tests/a.txt", "a b", "a  b"),
        ] {
            assert!(!is_same_but_for_form(path, old, new), "{old}");
        }
    }
}
