//! The tokens of a source file, without what is compiled for tests alone.
//!
//! Knows where an item ends and nothing else of the grammar; names are resolved by whoever reads them.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::tree::{SourceTree, TextFile};

/// One file of a crate's own code.
pub(super) struct SourceFile {
    /// Its path in the repository.
    pub(super) path: String,
    /// The directory of its crate, `crates/kapi-core`.
    pub(super) package: String,
    /// Its module within the crate: empty at the root.
    pub(super) module: Vec<String>,
    /// Its tokens, without items for tests.
    pub(super) tokens: Vec<TokenTree>,
}

/// Returns every source file below a `src` directory that is not for tests alone.
pub(super) fn sources(tree: &SourceTree) -> Vec<SourceFile> {
    let mut for_tests = BTreeSet::new();
    let mut sources: Vec<SourceFile> = tree
        .rust()
        .filter_map(|file| source(file, &mut for_tests))
        .collect();
    sources.retain(|source| {
        let is_below = |n| for_tests.contains(&(source.package.clone(), prefix(source, n)));
        !(1..=source.module.len()).any(is_below)
    });
    sources
}

fn prefix(source: &SourceFile, n: usize) -> Vec<String> {
    source.module.iter().take(n).cloned().collect()
}

/// Reads one file, and notes the modules that it declares for tests.
fn source(file: &TextFile, for_tests: &mut BTreeSet<(String, Vec<String>)>) -> Option<SourceFile> {
    let (package, below) = file.path.split_once("/src/")?;
    if file.is_test() {
        return None;
    }
    let parts: Vec<String> = below
        .strip_suffix(".rs")?
        .split('/')
        .map(str::to_owned)
        .collect();
    let module = match parts.as_slice() {
        [root] if root == "lib" || root == "main" => Vec::new(),
        _ => parts,
    };
    // What cannot be read does not compile either, and the compiler says so better.
    let tokens: TokenStream = file.text.parse().ok()?;
    let mut modules = Vec::new();
    let tokens = without_tests(tokens, &mut modules);
    for name in modules {
        let child = module.iter().cloned().chain([name]).collect();
        for_tests.insert((package.to_owned(), child));
    }
    Some(SourceFile {
        path: file.path.clone(),
        package: package.to_owned(),
        module,
        tokens,
    })
}

/// Leaves out items under `#[cfg(test)]`, and notes the names of the modules among them.
fn without_tests(tokens: TokenStream, modules: &mut Vec<String>) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_for_tests = is_punct(&token, '#')
            && matches!(tokens.peek(), Some(TokenTree::Group(group)) if is_cfg_test(group.stream()));
        if !is_for_tests {
            kept.push(token);
            continue;
        }
        let mut is_module = false;
        for token in tokens.by_ref() {
            match &token {
                TokenTree::Ident(word) if is_module => modules.push(word.to_string()),
                TokenTree::Punct(mark) if mark.as_char() == ';' => break,
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                TokenTree::Ident(_)
                | TokenTree::Punct(_)
                | TokenTree::Group(_)
                | TokenTree::Literal(_) => {}
            }
            is_module = is_word(&token, "mod");
        }
    }
    kept
}

/// Tells whether an attribute's content is `cfg(test)` or `cfg(all(test, …))`.
fn is_cfg_test(content: TokenStream) -> bool {
    let mut content = content.into_iter();
    let is_cfg = content.next().is_some_and(|token| is_word(&token, "cfg"));
    let names_test = |stream: TokenStream| {
        let mut words = stream.into_iter();
        match words.next() {
            Some(token) if is_word(&token, "test") => true,
            Some(token) if is_word(&token, "all") => match words.next() {
                Some(TokenTree::Group(all)) => all
                    .stream()
                    .into_iter()
                    .any(|token| is_word(&token, "test")),
                Some(_) | None => false,
            },
            Some(_) | None => false,
        }
    };
    match content.next() {
        Some(TokenTree::Group(group)) => is_cfg && names_test(group.stream()),
        Some(_) | None => false,
    }
}

/// Tells whether a token is this word.
pub(super) fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

/// Tells whether a token is this mark.
pub(super) fn is_punct(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

/// Splits tokens at the commas between them; those within brackets of any kind but `<>` stay.
pub(super) fn split_at_commas(tokens: &[TokenTree]) -> impl Iterator<Item = &[TokenTree]> {
    tokens
        .split(|token| is_punct(token, ','))
        .filter(|part| !part.is_empty())
}
