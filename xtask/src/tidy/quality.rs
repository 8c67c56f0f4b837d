//! The figures of the code: size, complexity, duplication, coupling, names, suppressions, coverage.
//!
//! Read from tokens, as the rules are, and judged by nobody: what must hold is a rule. Tests are left
//! out of everything but coverage.

mod coverage;
mod duplicate;
mod function;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::bail;
use proc_macro2::TokenTree;

use self::function::FunctionBody;
use super::code::{SourceFile, is_punct, is_word, sources};
use super::tree::SourceTree;
use super::{imports, modes, shapes};
use crate::output::say;

/// The complexity beyond which a function is counted as complex.
const COMPLEX: usize = 10;
/// How many of the most complex functions are named.
const NAMED_MAX: usize = 10;

/// Prints the figures; with `--coverage`, what the tests of the libraries reach besides.
///
/// # Errors
/// When the repository cannot be read, an option is unknown, or coverage cannot be measured.
pub(crate) fn run(root: &Path, options: &[&str]) -> anyhow::Result<()> {
    let with_coverage = match options {
        [] => false,
        ["--coverage"] => true,
        _ => bail!("read the options {options:?}: give --coverage or nothing"),
    };
    let tree = SourceTree::load(root)?;
    let sources = sources(&tree);
    for line in [
        size(&sources),
        complexity(&sources),
        vec![duplicate::report(&sources)],
        coupling(&tree, &sources),
        names(&tree, &sources),
        smells(&sources),
        vec![program(root)],
    ]
    .concat()
    {
        say(&line);
    }
    if with_coverage {
        for line in coverage::measure(root)? {
            say(&line);
        }
    } else {
        say(
            "coverage      not measured: `cargo xtask quality --coverage` runs the tests of the libraries",
        );
    }
    Ok(())
}

/// Returns the lines of code of each crate: those with a token that is no comment.
fn size(sources: &[SourceFile]) -> Vec<String> {
    let mut by_package: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for source in sources {
        let mut lines = BTreeSet::new();
        gather_lines(&source.tokens, &mut lines);
        let (n_files, n_lines) = by_package.entry(&source.package).or_default();
        *n_files += 1;
        *n_lines += lines.len();
    }
    let sum: usize = by_package.values().map(|(_, n_lines)| n_lines).sum();
    let mut report = vec![format!(
        "size          {sum} lines of code in {} files, without blanks, comments and tests",
        sources.len()
    )];
    report.extend(by_package.iter().map(|(package, (n_files, n_lines))| {
        format!("              {n_lines:>6} in {n_files:>3} files of {package}")
    }));
    report
}

fn gather_lines(tokens: &[TokenTree], lines: &mut BTreeSet<usize>) {
    let mut tokens = tokens.iter().peekable();
    while let Some(token) = tokens.next() {
        // A comment for the documentation is an attribute to the compiler.
        if is_punct(token, '#') {
            tokens.next_if(|next| is_punct(next, '!'));
            if tokens.next_if(|next| is_doc(next)).is_some() {
                continue;
            }
        }
        let (start, end) = (token.span().start().line, token.span().end().line);
        if let TokenTree::Group(group) = token {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            lines.extend([start, end]);
            gather_lines(&inner, lines);
        } else {
            lines.extend(start..=end);
        }
    }
}

fn is_doc(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else {
        return false;
    };
    let mut inner = group.stream().into_iter();
    inner.next().is_some_and(|first| is_word(&first, "doc"))
}

fn complexity(sources: &[SourceFile]) -> Vec<String> {
    let mut functions: Vec<FunctionBody> = sources.iter().flat_map(function::all).collect();
    functions.sort_by(|one, other| {
        let key = |function: &FunctionBody| (function.complexity, function.n_lines);
        key(other).cmp(&key(one))
    });
    let n = functions.len();
    let at = |hundredth: usize| {
        let location = (n * (100 - hundredth)) / 100;
        functions.get(location).map_or(0, |found| found.complexity)
    };
    let n_complex = functions
        .iter()
        .take_while(|found| found.complexity > COMPLEX)
        .count();
    let longest = functions.iter().map(|found| found.n_lines).max();
    let mut report = vec![format!(
        "complexity    {n} functions; cyclomatic: median {}, 95th percentile {}, {n_complex} above {COMPLEX}; \
         the longest has {} lines",
        at(50),
        at(95),
        longest.unwrap_or_default()
    )];
    report.extend(functions.iter().take(NAMED_MAX).map(|found| {
        let FunctionBody {
            name,
            path,
            line,
            complexity,
            n_lines,
        } = found;
        format!("              {complexity:>3} in {n_lines:>2} lines: {name} ({path}:{line})")
    }));
    report
}

fn coupling(tree: &SourceTree, sources: &[SourceFile]) -> Vec<String> {
    let is_typescript = |path: &str| path.ends_with(".ts") && !path.contains("/node_modules/");
    let scripts = tree.files.iter().filter(|file| is_typescript(&file.path));
    let per_script: Vec<usize> = scripts
        .map(|file| {
            let lines = file.text.lines();
            lines.filter(|line| is_facade(line)).count()
        })
        .filter(|n| *n > 0)
        .collect();
    let n_reexports: usize = sources.iter().map(|file| reexports(&file.tokens)).sum();
    vec![
        format!(
            "coupling      {} imports between files of one crate; {} files import themselves by way of others",
            imports::count(sources),
            imports::circles(sources).len()
        ),
        format!(
            "              {n_reexports} `pub use`; {} `export … from`, {} files with more than one",
            per_script.iter().sum::<usize>(),
            per_script.iter().filter(|n| **n > 1).count()
        ),
    ]
}

fn is_facade(line: &str) -> bool {
    line.trim_start().starts_with("export ") && line.contains(" from ")
}

fn reexports(tokens: &[TokenTree]) -> usize {
    let pairs = tokens.windows(2);
    pairs
        .filter(|pair| matches!(pair, [first, second] if is_word(first, "pub") && is_word(second, "use")))
        .count()
}

fn names(tree: &SourceTree, sources: &[SourceFile]) -> Vec<String> {
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    for name in sources.iter().flat_map(shapes::types) {
        *by_name.entry(name.to_string()).or_default() += 1;
    }
    let n: usize = by_name.values().sum();
    let shared: usize = by_name.values().filter(|n| **n > 1).sum();
    vec![format!(
        "names         {n} types, {shared} of them ({} %) share their name with another; {} bare participles; \
         {} tuple parameters; {} places name a mode where all are served",
        (shared * 100).checked_div(n).unwrap_or_default(),
        shapes::participles(sources).len(),
        shapes::tuple_parameters(sources).len(),
        modes::modes_stay_home(tree).len()
    )]
}

fn smells(sources: &[SourceFile]) -> Vec<String> {
    let (mut expected, mut unsafe_blocks) = (0, 0);
    for source in sources {
        count_smells(&source.tokens, &mut expected, &mut unsafe_blocks);
    }
    vec![format!(
        "smells        {expected} lints suppressed with a reason; {unsafe_blocks} `unsafe` blocks and functions"
    )]
}

fn count_smells(tokens: &[TokenTree], expected: &mut usize, unsafe_blocks: &mut usize) {
    for token in tokens {
        if is_word(token, "expect") {
            // A method of this name is denied by Clippy, so what is left are attributes.
            *expected += 1;
        } else if is_word(token, "unsafe") {
            *unsafe_blocks += 1;
        } else if let TokenTree::Group(group) = token {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            count_smells(&inner, expected, unsafe_blocks);
        }
    }
}

fn program(root: &Path) -> String {
    let path = root.join("target/release/kapi");
    match fs::metadata(&path) {
        Ok(found) => format!(
            "program       {} bytes, as `cargo build --release` made it last",
            found.len()
        ),
        Err(_) => "program       not built: `cargo build --release`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::code::sources;
    use super::super::tree::SourceTree;
    use super::{is_facade, reexports, size};

    #[test]
    fn comments_blanks_and_tests_are_no_lines_of_code() {
        let text = "//! What it is.\n\n/// A function.\npub fn a(\n    b: u8,\n) -> &'static str {\n    // Why.\n    \"x\n     y\"\n}\n\n#[cfg(test)]\nmod tests { fn c() {} }\n";
        let tree = SourceTree::of(&[("crates/a/src/lib.rs", text)]);
        let report = size(&sources(&tree));
        assert_eq!(
            report,
            [
                "size          6 lines of code in 1 files, without blanks, comments and tests",
                "                   6 in   1 files of crates/a",
            ]
        );
    }

    #[test]
    fn facades_are_counted() {
        assert!(is_facade("export { a } from \"./a\";"));
        assert!(!is_facade("import { a } from \"./a\";"));
        let tree = SourceTree::of(&[("crates/a/src/lib.rs", "pub use b::C;\nuse d::E;\n")]);
        let found: usize = sources(&tree)
            .iter()
            .map(|file| reexports(&file.tokens))
            .sum();
        assert_eq!(found, 1);
    }
}
