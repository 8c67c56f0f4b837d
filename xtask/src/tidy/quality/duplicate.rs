//! How much of the code stands in it twice: runs of lines that are the same, or the same but for names
//! and values.
//!
//! A line is its tokens. Imports and lines of brackets alone are none, or every file would have them
//! in common.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenTree};

use super::super::code::{SourceFile, is_punct, is_word};

/// From how many lines in a row something is a copy.
const RUN_MIN: usize = 6;

/// What a token is written as in a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenForm {
    Exact,
    /// Names begin as they do, small or capital, and values are all alike.
    Shape,
}

/// Says how many lines are part of a copy.
pub(super) fn report(sources: &[SourceFile]) -> String {
    let n_lines: usize = sources
        .iter()
        .map(|file| lines(file, TokenForm::Exact).len())
        .sum();
    let percent = |n: usize| (n * 1_000).checked_div(n_lines).unwrap_or_default();
    let [exact, shape] =
        [TokenForm::Exact, TokenForm::Shape].map(|form| percent(copied(sources, form)));
    format!(
        "duplication   of {n_lines} lines of statements, {}.{} % are in runs of {RUN_MIN} or more that stand twice, \
         {}.{} % where names and values may differ",
        exact / 10,
        exact % 10,
        shape / 10,
        shape % 10
    )
}

/// Returns the number of lines in a run that stands somewhere else, too.
fn copied(sources: &[SourceFile], form: TokenForm) -> usize {
    let files: Vec<Vec<String>> = sources.iter().map(|file| lines(file, form)).collect();
    let mut locations: BTreeMap<&[String], Vec<(usize, usize)>> = BTreeMap::new();
    for (file, lines) in files.iter().enumerate() {
        for (at, run) in lines.windows(RUN_MIN).enumerate() {
            locations.entry(run).or_default().push((file, at));
        }
    }
    let mut copied: BTreeSet<(usize, usize)> = BTreeSet::new();
    for found in locations.values().filter(|found| found.len() > 1) {
        for (file, at) in found {
            copied.extend((*at..at + RUN_MIN).map(|line| (*file, line)));
        }
    }
    copied.len()
}

/// Returns the lines of a file that say something.
fn lines(file: &SourceFile, form: TokenForm) -> Vec<String> {
    let mut lines = BTreeMap::new();
    write(&file.tokens, form, &mut lines);
    let says = |line: &String| line.chars().any(char::is_alphanumeric);
    lines.into_values().filter(says).collect()
}

fn write(tokens: &[TokenTree], form: TokenForm, lines: &mut BTreeMap<usize, String>) {
    let mut rest = tokens;
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        let mut add = |line: usize, text: &str| {
            let written = lines.entry(line).or_default();
            written.push_str(text);
            written.push(' ');
        };
        let start = token.span().start().line;
        match token {
            TokenTree::Ident(_) if is_word(token, "use") => {
                let end = after.iter().position(|token| is_punct(token, ';'));
                rest = end.and_then(|end| after.get(end + 1..)).unwrap_or_default();
            }
            TokenTree::Ident(word) => add(start, &named(&word.to_string(), form)),
            TokenTree::Punct(mark) => add(start, &mark.to_string()),
            TokenTree::Literal(_) if form == TokenForm::Shape => add(start, "0"),
            TokenTree::Literal(literal) => add(start, &literal.to_string()),
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                if inner.first().is_some_and(|first| is_word(first, "doc")) {
                    continue;
                }
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                add(start, open);
                write(&inner, form, lines);
                let written = lines.entry(token.span().end().line).or_default();
                written.push_str(close);
            }
        }
    }
}

fn named(word: &str, form: TokenForm) -> String {
    const KEYWORDS: &[&str] = &[
        "as", "break", "const", "continue", "else", "enum", "fn", "for", "if", "impl", "in", "let",
        "loop", "match", "mod", "mut", "pub", "ref", "return", "self", "Self", "static", "struct",
        "trait", "type", "unsafe", "where", "while", "Ok", "Err", "Some", "None",
    ];
    match form {
        TokenForm::Shape if !KEYWORDS.contains(&word) => {
            let is_type = word.starts_with(char::is_uppercase);
            if is_type { "A" } else { "a" }.to_owned()
        }
        TokenForm::Shape | TokenForm::Exact => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::code::sources;
    use super::super::super::tree::SourceTree;
    use super::{TokenForm, copied};

    #[test]
    fn a_copy_is_found_and_one_with_other_names_only_by_its_shape() {
        let body =
            "    let a = b();\n    let c = d(a);\n    e(c);\n    f(\"x\");\n    g();\n    h();\n";
        let renamed = body.replace("d(a)", "q(a)").replace("\"x\"", "\"y\"");
        let one = format!("use x::y;\nfn one() {{\n{body}}}\n");
        let other = format!("fn other() {{\n{body}}}\nfn third() {{\n{renamed}}}\n");
        let tree = SourceTree::of(&[
            ("crates/a/src/one.rs", &one),
            ("crates/a/src/other.rs", &other),
        ]);
        let sources = sources(&tree);
        assert_eq!(copied(&sources, TokenForm::Exact), 12);
        assert_eq!(copied(&sources, TokenForm::Shape), 21);
    }
}
