//! Rules about shapes that read worse than what they stand for: parameters packed into tuples, and
//! types that are named by a participle.

use proc_macro2::{Delimiter, Ident, TokenTree};

use super::TidyFault;
use super::code::{SourceFile, is_punct, is_word, sources, split_at_commas};
use super::tree::SourceTree;

/// Participles that do not end in `ed`.
const IRREGULAR: &[&str] = &[
    "Begun",
    "Borne",
    "Bought",
    "Bound",
    "Brought",
    "Built",
    "Caught",
    "Chosen",
    "Dealt",
    "Done",
    "Drawn",
    "Fed",
    "Found",
    "Given",
    "Gone",
    "Got",
    "Grown",
    "Heard",
    "Held",
    "Kept",
    "Known",
    "Laid",
    "Led",
    "Left",
    "Lent",
    "Lost",
    "Made",
    "Meant",
    "Met",
    "Paid",
    "Ran",
    "Said",
    "Seen",
    "Sent",
    "Shown",
    "Sold",
    "Sought",
    "Spent",
    "Stood",
    "Taken",
    "Taught",
    "Thought",
    "Thrown",
    "Told",
    "Torn",
    "Understood",
    "Withdrawn",
    "Woken",
    "Won",
    "Worn",
    "Written",
];
/// Nouns that end in `ed`.
const NOUNS: &[&str] = &[
    "Creed", "Deed", "Embed", "Feed", "Hundred", "Need", "Seed", "Shed", "Speed",
];

/// Functions of traits, whose parameter is whatever is converted.
const CONVERSIONS: &[&str] = &["from", "try_from"];

/// A tuple in a parameter list hides a parameter from the limit of five.
pub(super) fn parameters_have_a_name_each(tree: &SourceTree) -> Vec<TidyFault> {
    let packed = tuple_parameters(&sources(tree)).into_iter();
    packed.map(|(_, fault)| fault).collect()
}

/// Returns the parameters that are tuples, each with its crate.
pub(super) fn tuple_parameters(sources: &[SourceFile]) -> Vec<(String, TidyFault)> {
    let mut found = Vec::new();
    for file in sources {
        let mut names = Vec::new();
        tuples(&file.tokens, &mut names);
        found.extend(names.into_iter().map(|(line, name)| {
            let fault = TidyFault {
                path: file.path.clone(),
                line,
                message: format!("`fn {name}` takes a tuple: pass a struct, or fewer things"),
            };
            (file.package.clone(), fault)
        }));
    }
    found
}

fn tuples(tokens: &[TokenTree], found: &mut Vec<(usize, String)>) {
    let mut name = None;
    for (n, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(word)
                if n > 0 && tokens.get(n - 1).is_some_and(|fun| is_word(fun, "fn")) =>
            {
                name = Some(word.to_string());
            }
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                if group.delimiter() == Delimiter::Parenthesis
                    && let Some(name) = name.take()
                    && !CONVERSIONS.contains(&name.as_str())
                {
                    let packed = split_at_commas(&inner).filter(|part| is_packed(part));
                    let line = |part: &[TokenTree]| part.first().map_or(0, line_of);
                    found.extend(packed.map(|part| (line(part), name.clone())));
                }
                tuples(&inner, found);
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn line_of(token: &TokenTree) -> usize {
    token.span().start().line
}

/// Tells whether a parameter is `(a, b): …` or `name: (A, B)`, with or without a `&`.
fn is_packed(parameter: &[TokenTree]) -> bool {
    let Some(colon) = parameter.iter().position(|token| is_punct(token, ':')) else {
        return false;
    };
    let (pattern, kind) = parameter.split_at(colon);
    is_tuple(pattern) || is_tuple(kind.get(1..).unwrap_or_default())
}

/// Tells whether a pattern or a type is several things in parentheses, with or without a `&`.
fn is_tuple(tokens: &[TokenTree]) -> bool {
    let bare = match tokens {
        [and, rest @ ..] if is_punct(and, '&') => rest,
        _ => tokens,
    };
    let [TokenTree::Group(group)] = bare else {
        return false;
    };
    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
    group.delimiter() == Delimiter::Parenthesis && split_at_commas(&inner).count() > 1
}

/// A type is a thing, and a participle says only what was done to it.
pub(super) fn types_are_nouns(tree: &SourceTree) -> Vec<TidyFault> {
    let bare = participles(&sources(tree)).into_iter();
    bare.map(|(_, fault)| fault).collect()
}

/// Returns the types that are participles, each with its crate.
pub(super) fn participles(sources: &[SourceFile]) -> Vec<(String, TidyFault)> {
    let mut found = Vec::new();
    for file in sources {
        let bare = types(file).filter(|name| is_participle(&name.to_string()));
        found.extend(bare.map(|name| {
            let fault = TidyFault {
                path: file.path.clone(),
                line: name.span().start().line,
                message: format!("`{name}` is a participle: say what the thing is"),
            };
            (file.package.clone(), fault)
        }));
    }
    found
}

/// Returns the names of the structs and enums of a file, outside functions and modules.
pub(super) fn types(file: &SourceFile) -> impl Iterator<Item = &Ident> {
    let pairs = file.tokens.windows(2);
    pairs.filter_map(|pair| match pair {
        [word, TokenTree::Ident(name)] if is_word(word, "struct") || is_word(word, "enum") => {
            Some(name)
        }
        _ => None,
    })
}

fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(|c| c.is_ascii_lowercase());
    let is_regular = is_one_word && name.ends_with("ed") && !NOUNS.contains(&name);
    is_regular || IRREGULAR.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::super::{Rule, SourceTree};
    use super::{parameters_have_a_name_each, types_are_nouns};

    fn faults(rule: Rule, text: &str) -> Vec<String> {
        let faults = rule(&SourceTree::of(&[("crates/a/src/one.rs", text)]));
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_tuple_in_a_parameter_list_is_found() {
        let text = "//! x\n\
            fn named(one: &str, pair: &(u8, u8)) {}\n\
            fn try_from(pair: (u8, u8), call: fn(u8, u8)) {}\n\
            impl A {\n\
            fn packed<T: Into<u8>>(&self,\n\
            (book, place): (&Book, &Path)) { let f = |(a, b): (u8, u8)| a; }\n\
            }\n\
            #[cfg(test)]\nmod tests { fn test((a, b): (u8, u8)) {} }\n";
        assert_eq!(
            faults(parameters_have_a_name_each, text),
            [
                "crates/a/src/one.rs:2: `fn named` takes a tuple: pass a struct, or fewer things",
                "crates/a/src/one.rs:6: `fn packed` takes a tuple: pass a struct, or fewer things",
            ]
        );
    }

    #[test]
    fn a_type_that_is_a_participle_is_found() {
        let text = "//! x\npub(crate) struct Kept<'a>(&'a str);\nenum Refused { A }\nstruct Seed;\n\
            struct KeptFile;\nstruct NotTaken { told: u8 }\n";
        assert_eq!(
            faults(types_are_nouns, text),
            [
                "crates/a/src/one.rs:2: `Kept` is a participle: say what the thing is",
                "crates/a/src/one.rs:3: `Refused` is a participle: say what the thing is",
            ]
        );
    }
}
