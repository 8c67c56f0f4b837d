//! What decides, folds and plans is pure: the core, and the folder `rules` of every subject's crate.
//!
//! Time, randomness and whatever was read arrive as arguments. Reads lines; whether a collection has
//! an order is asked of Clippy in the core, and here of the rest.

use super::TidyFault;
use super::tree::{SourceTree, TextFile};

/// What a pure file never names.
const IMPURE: &[&str] = &[
    "std::env",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "Instant::",
    "SystemTime",
    "HashMap",
    "HashSet",
    "kapi_agent",
    "kapi_gateway",
    "kapi_git",
    "kapi_machine",
    "kapi_run",
    "kapi_sandbox",
    "kapi_store",
    "kapi_sys",
    "::perform::",
    "::record::",
];

/// Rules touch nothing and know nobody who does.
pub(super) fn rules_are_pure(tree: &SourceTree) -> Vec<TidyFault> {
    let mut faults = Vec::new();
    for file in tree.rust().filter(|file| is_pure(file) && !file.is_test()) {
        for (line, text) in file.numbered() {
            if text.trim_start().starts_with("//") {
                continue;
            }
            let Some(word) = IMPURE.iter().find(|word| text.contains(**word)) else {
                continue;
            };
            faults.push(TidyFault {
                path: file.path.clone(),
                line,
                message: format!("rules are pure and do not know `{word}`"),
            });
        }
    }
    faults
}

fn is_pure(file: &TextFile) -> bool {
    let Some((krate, rest)) = file
        .path
        .strip_prefix("crates/")
        .and_then(|path| path.split_once("/src/"))
    else {
        return false;
    };
    krate == "kapi-core" || rest == "rules.rs" || rest.starts_with("rules/")
}

#[cfg(test)]
mod tests {
    use super::super::SourceTree;
    use super::rules_are_pure;

    #[test]
    fn a_rule_that_reads_a_file_is_found_and_a_performer_may() {
        let reads = "//! std::fs is named in words.\nlet text = std::fs::read(path);\n";
        let files = [
            ("crates/kapi-task/src/rules/decide.rs", reads),
            ("crates/kapi-task/src/perform/look.rs", reads),
            ("crates/kapi-task/src/rules/decide/tests.rs", reads),
            (
                "crates/kapi-core/src/id.rs",
                "use std::collections::HashMap;\n",
            ),
        ];
        let faults = rules_are_pure(&SourceTree::of(&files));
        let found: Vec<(&str, usize)> = faults
            .iter()
            .map(|fault| (fault.path.as_str(), fault.line))
            .collect();
        assert_eq!(
            found,
            [
                ("crates/kapi-task/src/rules/decide.rs", 2),
                ("crates/kapi-core/src/id.rs", 1),
            ]
        );
    }
}
