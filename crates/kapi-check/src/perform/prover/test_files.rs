//! Which files of a project are code of its tests, and which are data that its tests read.
//!
//! By their names, and for data by who names them in the base.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_git::change::{ChangeKind, PathChange};
use kapi_git::id::CommitId;
use kapi_git::repository::Repository;
use kapi_run::failure;

use crate::rules::proof::role::{PathRole, Present};

/// Ends of the names of files that hold code; other test files are data that a test may write.
const CODE: &[&str] = &[
    "py", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "go", "rs", "java", "kt", "kts",
    "scala", "groovy", "rb", "php", "ex", "exs", "erl", "c", "cc", "cpp", "cxx", "h", "hh", "hpp",
    "sh", "bash", "zsh", "bats", "pl", "pm", "t", "lua", "luau", "swift", "cs", "fs", "vb", "zig",
    "hs", "ml", "clj", "jl", "r", "dart", "nim", "cr", "tcl", "awk",
];
/// Ends of the names of files that are read by people: a test that reads one does so for its own sake.
const PROSE: &[&str] = &["md", "rst", "adoc", "markdown"];
/// The most files of data that are looked for in tests.
const DATA_MAX: usize = 40;

/// Returns those of the files that are code of tests.
pub(super) fn test_code(present: &Present<'_>, files: &[PathBuf]) -> Vec<PathBuf> {
    let is_code = |path: &&PathBuf| {
        let end = path.extension().and_then(|end| end.to_str());
        end.is_some_and(|end| CODE.contains(&end.to_ascii_lowercase().as_str()))
    };
    let is_test = |path: &&PathBuf| present.roles(&path.to_string_lossy()).has(PathRole::Test);
    files
        .iter()
        .filter(is_code)
        .filter(is_test)
        .cloned()
        .collect()
}

/// Returns data of the base that a change touches, that tests name and the code under test does not:
/// what a test expects may lie anywhere.
pub(super) fn data_of_tests(
    repository: &Repository,
    present: &Present<'_>,
    base: &CommitId,
    changes: &[PathChange],
) -> Result<Vec<String>, Failure> {
    let has_end = |path: &Path, ends: &[&str]| {
        let end = path.extension().and_then(|end| end.to_str());
        end.is_some_and(|end| ends.contains(&end.to_ascii_lowercase().as_str()))
    };
    let roles = |path: &Path| present.roles(&path.to_string_lossy());
    let is_data = |change: &&PathChange| {
        let path = &change.path;
        let is_there = change.kind != ChangeKind::Added;
        is_there && !has_end(path, CODE) && !has_end(path, PROSE) && roles(path).0.is_empty()
    };
    let mut found = Vec::new();
    for change in changes.iter().filter(is_data).take(DATA_MAX) {
        let name = |part: Option<&OsStr>| part.and_then(OsStr::to_str).map(str::to_owned);
        let (Some(whole), Some(stem)) =
            (name(change.path.file_name()), name(change.path.file_stem()))
        else {
            continue;
        };
        let words = [
            whole.clone(),
            format!("\"{stem}"),
            format!("'{stem}"),
            format!("/{stem}"),
        ];
        let words = words.each_ref().map(String::as_str);
        let naming = repository.files_naming(base, &words);
        let naming = naming.map_err(|error| failure::plain(&error))?;
        let (tests, others): (Vec<&PathBuf>, Vec<&PathBuf>) = naming
            .iter()
            .filter(|path| has_end(path, CODE))
            .partition(|path| roles(path).has(PathRole::Test));
        if !tests.is_empty() && others.is_empty() {
            found.push(change.path.to_string_lossy().into_owned());
        }
    }
    Ok(found)
}
