//! The functions of a file, with their length and their cyclomatic complexity.
//!
//! One way through a function, and one more for each `if`, loop, further arm of a `match`, `&&` and
//! `||`. Closures belong to the function around them.

use proc_macro2::{Delimiter, TokenTree};

use super::super::code::{SourceFile, is_punct, is_word};

/// A function that has a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FunctionBody {
    pub(super) name: String,
    /// The file.
    pub(super) path: String,
    /// Where it begins, from 1.
    pub(super) line: usize,
    pub(super) complexity: usize,
    /// From its name to its closing brace.
    pub(super) n_lines: usize,
}

/// Returns the functions of a file; those of a macro's definition are none.
pub(super) fn all(file: &SourceFile) -> Vec<FunctionBody> {
    let mut found = Vec::new();
    gather(&file.tokens, &file.path, &mut found);
    found
}

fn gather(tokens: &[TokenTree], path: &str, found: &mut Vec<FunctionBody>) {
    let mut rest = tokens;
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        if is_word(token, "macro_rules") {
            let end = after.iter().position(is_block);
            rest = end.and_then(|end| after.get(end + 1..)).unwrap_or_default();
        } else if let (true, Some(TokenTree::Ident(name))) = (is_word(token, "fn"), after.first()) {
            // A declaration ends with `;`, and nothing of a signature is in braces.
            let end = after
                .iter()
                .position(|token| is_block(token) || is_punct(token, ';'));
            let Some(TokenTree::Group(body)) = end.and_then(|end| after.get(end)) else {
                continue;
            };
            let inner: Vec<TokenTree> = body.stream().into_iter().collect();
            let line = name.span().start().line;
            found.push(FunctionBody {
                name: name.to_string(),
                path: path.to_owned(),
                line,
                complexity: 1 + branches(&inner),
                n_lines: body.span().end().line.saturating_sub(line) + 1,
            });
            rest = end.and_then(|end| after.get(end + 1..)).unwrap_or_default();
        } else if let TokenTree::Group(group) = token {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            gather(&inner, path, found);
        }
    }
}

fn is_block(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// Returns how many ways more there are through a body than one.
fn branches(tokens: &[TokenTree]) -> usize {
    let mut n = 0;
    let mut is_match = false;
    for (at, token) in tokens.iter().enumerate() {
        is_match |= is_word(token, "match");
        if is_fork(tokens, at) || is_shortcut(tokens, at) {
            n += 1;
        }
        if let TokenTree::Group(group) = token {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            if is_match && group.delimiter() == Delimiter::Brace {
                is_match = false;
                n += arms(&inner).saturating_sub(1);
            }
            n += branches(&inner);
        }
    }
    n
}

/// Tells whether a token begins an `if` or a loop; the `for` of `for<'a>` does not.
fn is_fork(tokens: &[TokenTree], at: usize) -> bool {
    let Some(TokenTree::Ident(word)) = tokens.get(at) else {
        return false;
    };
    let is_bound = tokens.get(at + 1).is_some_and(|next| is_punct(next, '<'));
    ["if", "while", "loop"].iter().any(|fork| word == fork) || (word == "for" && !is_bound)
}

/// Tells whether a token is the first of `&&` or `||` between two values; `|| …` of a closure follows none.
fn is_shortcut(tokens: &[TokenTree], at: usize) -> bool {
    let is_pair = |mark| {
        let marks = tokens.get(at..).and_then(|rest| rest.first_chunk::<2>());
        marks.is_some_and(|marks| marks.iter().all(|token| is_punct(token, mark)))
    };
    (is_pair('&') || is_pair('|')) && is_operand(at.checked_sub(1), tokens)
}

/// Tells whether a value stands at this place, so that what follows it is an operator.
fn is_operand(at: Option<usize>, tokens: &[TokenTree]) -> bool {
    match at.and_then(|at| tokens.get(at)) {
        Some(TokenTree::Ident(word)) => word != "return" && word != "move" && word != "else",
        Some(TokenTree::Group(_) | TokenTree::Literal(_)) => true,
        Some(TokenTree::Punct(mark)) => mark.as_char() == '?',
        None => false,
    }
}

/// Returns the number of `=>` directly in the braces of a `match`.
fn arms(tokens: &[TokenTree]) -> usize {
    let pairs = tokens.windows(2);
    pairs
        .filter(|pair| matches!(pair, [one, two] if is_punct(one, '=') && is_punct(two, '>')))
        .count()
}

#[cfg(test)]
mod tests {
    use super::super::super::code::sources;
    use super::super::super::tree::SourceTree;
    use super::all;

    #[test]
    fn each_way_through_a_function_counts_once() {
        let text = "fn straight() -> u8 { 1 }\n\
            trait A { fn declared(&self); }\n\
            fn forks(a: bool, b: &&str) {\n    if a && !b.is_empty() || f(|| 1) {\n    } else if a {\n    }\n}\n\
            fn matches(a: u8) {\n    match a {\n        0 => {}\n        1 if a > 0 => {}\n        _ => { for _ in 0..2 {} }\n    }\n}\n\
            macro_rules! m { () => { fn hidden() {} } }\n";
        let tree = SourceTree::of(&[("crates/a/src/lib.rs", text)]);
        let found: Vec<(String, usize, usize)> = sources(&tree)
            .iter()
            .flat_map(all)
            .map(|one| (one.name, one.complexity, one.n_lines))
            .collect();
        let expected = [
            ("straight".to_owned(), 1, 1),
            ("forks".to_owned(), 5, 5),
            // Three arms, a guard and a loop.
            ("matches".to_owned(), 5, 7),
        ];
        assert_eq!(found, expected);
    }
}
