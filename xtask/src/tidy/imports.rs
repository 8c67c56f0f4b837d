//! No circles of imports between the files of a crate: files that need one another are one file, or
//! hide a third.
//!
//! A file may name the modules around it, which declare it; any other name that leads to a file of
//! the same crate is an import. Tests are left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proc_macro2::{Delimiter, TokenTree};

use super::TidyFault;
use super::code::{SourceFile, is_punct, is_word, sources, split_at_commas};
use super::tree::SourceTree;

/// How many private imports are followed to where a name lives.
const HOPS_MAX: usize = 6;

/// A path as it is written: `crate`, `a`, `B`.
type Path = Vec<String>;

/// No file imports, by way of others, itself.
pub(super) fn imports_go_one_way(tree: &SourceTree) -> Vec<TidyFault> {
    let circles = circles(&sources(tree)).into_iter();
    circles.map(|(_, fault)| fault).collect()
}

/// Returns how many pairs of files there are of which one imports the other, within one crate.
pub(super) fn count(sources: &[SourceFile]) -> usize {
    let packages = CrateFiles::all(sources);
    let imports = packages.values().flat_map(CrateFiles::imports);
    imports.map(|(_, imported)| imported.len()).sum()
}

/// Returns the files that import themselves, each with its crate.
pub(super) fn circles(sources: &[SourceFile]) -> Vec<(String, TidyFault)> {
    let package = CrateFiles::all(sources);
    let mut found = Vec::new();
    for package in package.values() {
        let imports = package.imports();
        for (file, at) in package.files.values().map(|file| (*file, &file.path)) {
            let Some(circle) = circle(&imports, at) else {
                continue;
            };
            let fault = TidyFault {
                path: at.clone(),
                line: 0,
                message: format!("imports itself by way of {}", circle.join(", ")),
            };
            found.push((file.package.clone(), fault));
        }
    }
    found
}

/// Returns the files of the shortest way back to a file, if one leads there.
fn circle<'a>(
    imports: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    start: &'a str,
) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(file) = queue.pop_front() {
        for next in imports.get(file)? {
            if *next == start {
                return Some(way_to(&came_from, file));
            }
            if !came_from.contains_key(*next) {
                came_from.insert(*next, file);
                queue.push_back(*next);
            }
        }
    }
    None
}

/// Returns the files between the start of a search and its end, the end included.
fn way_to<'a>(came_from: &BTreeMap<&'a str, &'a str>, end: &'a str) -> Vec<&'a str> {
    let mut way = vec![end];
    while let Some(before) = way.last().and_then(|file| came_from.get(file).copied()) {
        way.push(before);
    }
    // The start itself.
    way.pop();
    way.reverse();
    way
}

/// The files of one crate.
#[derive(Default)]
struct CrateFiles<'a> {
    files: BTreeMap<&'a [String], &'a SourceFile>,
    /// What each file takes by `use`, under the name that it has there.
    taken: BTreeMap<&'a str, BTreeMap<String, Path>>,
}

impl<'a> CrateFiles<'a> {
    fn all(sources: &'a [SourceFile]) -> BTreeMap<&'a str, Self> {
        let mut packages: BTreeMap<&str, Self> = BTreeMap::new();
        for source in sources {
            let package = packages.entry(&source.package).or_default();
            package.files.entry(&source.module).or_insert(source);
        }
        for package in packages.values_mut() {
            let files = package.files.values().copied();
            package.taken = files
                .map(|file| (file.path.as_str(), package.names(file)))
                .collect();
        }
        packages
    }

    /// Returns what a file takes by `use`, under the name that it has there.
    fn names(&self, file: &SourceFile) -> BTreeMap<String, Path> {
        let uses = written(&file.tokens).uses.into_iter();
        let named = uses.filter_map(|path| {
            let name = path.last()?.clone();
            Some((name, self.absolute(file, &path)?))
        });
        named.collect()
    }

    /// Returns which files each file imports.
    fn imports(&self) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let mut imports = BTreeMap::new();
        for file in self.files.values() {
            let written = written(&file.tokens);
            let paths = written.uses.iter().chain(&written.paths);
            let ends = paths
                .filter_map(|path| self.absolute(file, path))
                .filter_map(|path| self.end(&path, 0))
                .filter(|end| !file.module.starts_with(&end.module))
                .map(|end| end.path.as_str());
            imports.insert(file.path.as_str(), ends.collect());
        }
        imports
    }

    /// Returns a path from the crate's root, if it stays in the crate.
    fn absolute(&self, file: &SourceFile, path: &[String]) -> Option<Path> {
        let first = path.first()?.as_str();
        let n_super = path.iter().take_while(|part| *part == "super").count();
        match first {
            "crate" => Some(path.iter().skip(1).cloned().collect()),
            "self" => Some(joined(&file.module, path.iter().skip(1))),
            "super" => {
                let base = file.module.get(..file.module.len().checked_sub(n_super)?)?;
                Some(joined(base, path.iter().skip(n_super)))
            }
            _ => {
                let child = joined(&file.module, path.iter().take(1));
                let is_child = self.files.contains_key(child.as_slice());
                is_child.then(|| joined(&file.module, path.iter()))
            }
        }
    }

    /// Returns the file that a path leads to: the last one on it, or where that one takes the name.
    fn end(&self, path: &[String], hops: usize) -> Option<&'a SourceFile> {
        let (n, file) = (0..=path.len())
            .rev()
            .find_map(|n| Some((n, *self.files.get(path.get(..n)?)?)))?;
        let taken = path
            .get(n)
            .and_then(|name| self.taken.get(file.path.as_str())?.get(name));
        match taken {
            Some(from) if hops < HOPS_MAX && from.as_slice() != path => {
                let from = joined(from, path.iter().skip(n + 1));
                self.end(&from, hops + 1).or(Some(file))
            }
            Some(_) | None => Some(file),
        }
    }
}

fn joined<'a>(base: &[String], rest: impl Iterator<Item = &'a String>) -> Path {
    base.iter().cloned().chain(rest.cloned()).collect()
}

/// The paths that a file names.
#[derive(Default)]
struct NamedPaths {
    uses: Vec<Path>,
    paths: Vec<Path>,
}

fn written(tokens: &[TokenTree]) -> NamedPaths {
    let mut written = NamedPaths::default();
    gather(tokens, &mut written);
    written
}

fn gather(tokens: &[TokenTree], written: &mut NamedPaths) {
    let mut rest = tokens;
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        if is_word(token, "use") {
            let end = after.iter().position(|token| is_punct(token, ';'));
            let (uses, after) = after.split_at(end.unwrap_or(after.len()));
            expand(uses, &[], &mut written.uses);
            rest = after;
        } else if let TokenTree::Group(group) = token {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            gather(&inner, written);
        } else if let TokenTree::Ident(first) = token {
            let mut path = vec![first.to_string()];
            while let [one, two, TokenTree::Ident(word), after @ ..] = rest
                && is_punct(one, ':')
                && is_punct(two, ':')
            {
                path.push(word.to_string());
                rest = after;
            }
            if path.len() > 1 {
                written.paths.push(path);
            }
        }
    }
}

/// Writes out the paths of an import.
fn expand(tokens: &[TokenTree], before: &[String], paths: &mut Vec<Path>) {
    let mut path = before.to_vec();
    for token in tokens {
        match token {
            TokenTree::Ident(word) if word == "as" => break,
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for part in split_at_commas(&inner) {
                    expand(part, &path, paths);
                }
                return;
            }
            TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    paths.push(path);
}

#[cfg(test)]
mod tests {
    use super::super::SourceTree;
    use super::imports_go_one_way;

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let faults = imports_go_one_way(&SourceTree::of(files));
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn files_that_import_one_another_are_found() {
        let files = [
            ("crates/a/src/lib.rs", "mod one;\nmod two;\nmod three;\n"),
            (
                "crates/a/src/one.rs",
                "use crate::two::{self, Two as Other};\n",
            ),
            ("crates/a/src/two.rs", "fn f() { g(super::three::h()); }\n"),
            ("crates/a/src/three.rs", "mod leaf;\nuse crate::one::One;\n"),
            (
                "crates/a/src/three/leaf.rs",
                "use super::h;\nuse crate::two::Two;\n",
            ),
        ];
        assert_eq!(
            faults(&files),
            [
                "crates/a/src/one.rs: imports itself by way of crates/a/src/two.rs, crates/a/src/three.rs",
                "crates/a/src/three.rs: imports itself by way of crates/a/src/one.rs, crates/a/src/two.rs",
                "crates/a/src/two.rs: imports itself by way of crates/a/src/three.rs, crates/a/src/one.rs",
            ]
        );
    }

    #[test]
    fn a_name_is_followed_through_a_private_import() {
        let files = [
            ("crates/a/src/lib.rs", "mod one;\nmod two;\n"),
            ("crates/a/src/one.rs", "mod leaf;\nuse crate::two::two;\n"),
            ("crates/a/src/one/leaf.rs", "use super::two;\n"),
            ("crates/a/src/two.rs", "use crate::one::leaf::Leaf;\n"),
        ];
        assert_eq!(
            faults(&files),
            [
                "crates/a/src/one/leaf.rs: imports itself by way of crates/a/src/two.rs",
                "crates/a/src/two.rs: imports itself by way of crates/a/src/one/leaf.rs",
            ]
        );
    }

    #[test]
    fn tests_and_the_modules_around_a_file_make_no_circle() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "mod one;\nmod two;\n#[cfg(test)]\nmod fixture;\n",
            ),
            (
                "crates/a/src/one.rs",
                "mod leaf;\nuse self::leaf::Leaf;\nuse crate::two::Two;\n",
            ),
            ("crates/a/src/one/leaf.rs", "use super::One;\n"),
            (
                "crates/a/src/two.rs",
                "//! See `crate::one`.\nconst TEXT: &str = \"crate::one::One\";\n#[cfg(test)]\nmod tests {\n    use crate::one::One;\n}\n",
            ),
            (
                "crates/a/src/fixture.rs",
                "use crate::two::Two;\nuse crate::fixture::part::P;\n",
            ),
            ("crates/a/src/fixture/part.rs", "use crate::fixture::F;\n"),
        ];
        assert_eq!(faults(&files), [""; 0]);
    }
}
