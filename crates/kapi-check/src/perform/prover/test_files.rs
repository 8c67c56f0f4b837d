//! Which files of a project are code of its tests, by their names.

use std::path::PathBuf;

use crate::rules::proof::role::{PathRole, Present};

/// Ends of the names of files that hold code; other test files are data that a test may write.
const CODE: &[&str] = &[
    "py", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "go", "rs", "java", "kt", "kts",
    "scala", "groovy", "rb", "php", "ex", "exs", "erl", "c", "cc", "cpp", "cxx", "h", "hh", "hpp",
    "sh", "bash", "zsh", "bats", "pl", "pm", "t", "lua", "luau", "swift", "cs", "fs", "vb", "zig",
    "hs", "ml", "clj", "jl", "r", "dart", "nim", "cr", "tcl", "awk",
];

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
