//! The rules of STYLE.md that a program can check.
//!
//! Each rule is a pure function from the repository's text to faults, with its own tests. It reads
//! lines or tokens; what needs to know types is Clippy's business.

mod code;
mod imports;
mod machine;
mod modes;
mod once;
mod purity;
pub(crate) mod quality;
mod shapes;
mod source;
mod tree;
mod versions;
mod workspace;

use std::fmt;
use std::path::Path;

use anyhow::bail;

use self::tree::SourceTree;
use crate::output::say;

/// A place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TidyFault {
    path: String,
    /// From 1; 0 means the whole file.
    line: usize,
    message: String,
}

impl fmt::Display for TidyFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.message),
            line => write!(out, "{}:{line}: {}", self.path, self.message),
        }
    }
}

type Rule = fn(&SourceTree) -> Vec<TidyFault>;

/// Returns what a rule finds in these files, as text.
#[cfg(test)]
fn faults(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
    let faults = rule(&SourceTree::of(files));
    faults.iter().map(ToString::to_string).collect()
}

const RULES: &[Rule] = &[
    source::every_file_says_what_it_is,
    source::files_stay_short,
    source::nothing_is_left_undone,
    source::examples_are_text,
    source::modules_are_named_after_their_noun,
    source::every_test_file_is_compiled,
    modes::modes_stay_home,
    modes::a_toy_mode_stays_small,
    once::what_is_written_once_stays_there,
    imports::imports_go_one_way,
    purity::rules_are_pure,
    shapes::parameters_have_a_name_each,
    shapes::types_are_nouns,
    machine::no_path_of_one_machine,
    machine::no_private_host,
    machine::locks_name_public_registries,
    workspace::every_crate_takes_the_lints,
    workspace::dependencies_stay_few,
    workspace::traits_are_the_named_seams,
    workspace::changelog_is_open,
    versions::versions_are_in_step,
];

/// Checks every rule.
///
/// # Errors
/// When the repository breaks one, naming every place.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let tree = SourceTree::load(root)?;
    let mut faults: Vec<TidyFault> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    faults.sort();
    if faults.is_empty() {
        say(&format!(
            "{} files keep {} rules.",
            tree.files.len(),
            RULES.len()
        ));
        return Ok(());
    }
    let lines: Vec<String> = faults.iter().map(TidyFault::to_string).collect();
    bail!(
        "keep {} rule(s) of STYLE.md:\n  {}",
        lines.len(),
        lines.join("\n  ")
    )
}
