//! A durable mode is named in its own folders and in the lists of modes, and nowhere else: a new mode
//! then changes a handful of files, and what all modes share is written once.
//!
//! Reads names, not meaning; what stands below a file's first `#[cfg(test)]` may name any mode.

use std::collections::BTreeMap;

use super::TidyFault;
use super::tree::{SourceTree, TextFile};
use crate::toy::{CORPUS, FILES_MAX, ToyMode};

/// The list of modes, from which their names are read.
const LIST: &str = "crates/kapi-workflow/src/rules/modes.rs";
/// What holds one of each mode's, by the name that the list gives it.
const HOLDERS: [&str; 5] = ["Body", "Begin", "ModeEvent", "ModeCommand", "ModeAnswer"];

/// Where modes are at home: lists, and the folders beside them.
const HOMES: &[&str] = &[
    LIST,
    "crates/kapi-workflow/src/rules/modes/",
    "crates/kapi-wire/src/workflow/modes.rs",
    "crates/kapi-wire/src/workflow/modes/",
    "crates/kapi-cli/src/modes.rs",
    "crates/kapi-cli/src/modes/",
    "crates/kapi-testkit/src/workflow_sim/modes.rs",
    "crates/kapi-testkit/src/workflow_sim/modes/",
    // What the rules of a search keep under noise, measured by a command.
    "crates/kapi-testkit/src/keeping.rs",
    // A module of tests alone.
    "crates/kapi-workflow/src/rules/scenario.rs",
];

/// A mode of the whole program is one folder and few lines elsewhere.
pub(super) fn a_toy_mode_stays_small(tree: &SourceTree) -> Vec<TidyFault> {
    let fault = |message: String| {
        vec![TidyFault {
            path: format!("{CORPUS}/inserts.toml"),
            line: 0,
            message,
        }]
    };
    let files: BTreeMap<String, String> = tree
        .files
        .iter()
        .map(|file| (file.path.clone(), file.text.clone()))
        .collect();
    let Some(text) = files.get(&format!("{CORPUS}/inserts.toml")) else {
        return fault(
            "the toy mode is gone, and with it the count of what a mode touches".to_owned(),
        );
    };
    let mode = match ToyMode::parse(text) {
        Ok(mode) => mode,
        Err(error) => return fault(format!("{error:#}")),
    };
    if let Err(error) = mode.applied(&files) {
        return fault(format!("{error:#}: put the change in step with the tree"));
    }
    let touched = mode.touched();
    if touched.len() > FILES_MAX {
        return fault(format!(
            "a new mode changes {} existing files, {FILES_MAX} at most: {touched:?}",
            touched.len()
        ));
    }
    Vec::new()
}

/// Returns how the source names each mode of the list.
fn names(tree: &SourceTree) -> Vec<String> {
    let list = tree.files.iter().find(|file| file.path == LIST);
    let mut names = Vec::new();
    let mut mode = "";
    for (_, line) in list.into_iter().flat_map(TextFile::numbered) {
        let line = line.trim();
        // `Ralph,`, and two lines later `as Ralph "ralph" in ralph {`
        if let Some(name) = line.strip_suffix(',').filter(|name| is_word(name)) {
            mode = name;
        }
        let words: Vec<&str> = line.split(' ').collect();
        if let ["as", tag, _, "in", folder, "{"] = words.as_slice() {
            names.push(format!("modes::{folder}"));
            names.push(format!("Mode::{mode}"));
            names.extend(HOLDERS.map(|holder| format!("{holder}::{tag}")));
        }
    }
    names
}

fn is_word(text: &str) -> bool {
    text.chars().all(|char| char.is_ascii_alphanumeric())
}

/// What all modes share names none of them.
pub(super) fn modes_stay_home(tree: &SourceTree) -> Vec<TidyFault> {
    let names = names(tree);
    let mut faults = Vec::new();
    for file in tree.rust() {
        let is_home = HOMES.iter().any(|home| file.path.starts_with(home));
        if !file.path.starts_with("crates/") || file.is_test() || is_home {
            continue;
        }
        let product = file
            .numbered()
            .take_while(|(_, text)| *text != "#[cfg(test)]");
        for (line, text) in product {
            let Some(name) = names.iter().find(|name| text.contains(*name)) else {
                continue;
            };
            faults.push(TidyFault {
                path: file.path.clone(),
                line,
                message: format!(
                    "`{name}` names a mode: ask its `ModeRules`, its `ModeSpec` or its `Front`"
                ),
            });
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::super::SourceTree;
    use super::{LIST, a_toy_mode_stays_small, modes_stay_home};

    const MODES: &str = "
        Ralph,
        \"Builds.\",
        as Ralph \"ralph\" in ralph {
    ";

    #[test]
    fn a_mode_that_is_named_where_all_are_served_is_found() {
        let named = "        Body::Ralph(ralph) => ralph.branch.as_ref(),\n";
        let tested = format!("fn shared() {{}}\n\n#[cfg(test)]\nmod tests {{\n{named}}}\n");
        let files = [
            (LIST, MODES),
            ("crates/kapi-workflow/src/rules/modes/ralph/rules.rs", named),
            ("crates/kapi-workflow/src/record/index.rs", named),
            ("crates/kapi-workflow/src/record/find.rs", &tested),
            ("crates/kapi-engine/tests/it/workflow_edits.rs", named),
        ];
        let faults = modes_stay_home(&SourceTree::of(&files));
        let locations: Vec<(&str, usize)> = faults
            .iter()
            .map(|fault| (fault.path.as_str(), fault.line))
            .collect();
        assert_eq!(locations, [("crates/kapi-workflow/src/record/index.rs", 1)]);
    }

    /// Returns what is wrong with a change that puts a line into each of so many files.
    fn faults(n_files: usize, list: &str) -> Vec<String> {
        let inserts: Vec<String> = (0..n_files)
            .map(|number| {
                format!("[[insert]]\nfile = \"f{number}\"\nafter = \"a\"\ntext = \"b\"\n")
            })
            .collect();
        let toml = format!("from = \"modes/toy\"\nfile = []\n{}", inserts.concat());
        let paths: Vec<String> = (0..n_files).map(|number| format!("f{number}")).collect();
        let mut files = vec![
            ("xtask/corpus/toy-mode/inserts.toml", toml.as_str()),
            ("modes/toy/spec.rs", "struct Toy;\n"),
        ];
        files.extend(paths.iter().map(|path| (path.as_str(), list)));
        let faults = a_toy_mode_stays_small(&SourceTree::of(&files));
        faults.into_iter().map(|fault| fault.message).collect()
    }

    #[test]
    fn a_mode_that_touches_too_much_or_does_not_fit_is_found() {
        assert_eq!(faults(8, "a list\n"), [""; 0]);
        let most = faults(9, "a list\n");
        assert!(
            most[0].contains("changes 9 existing files, 8 at most"),
            "{most:?}"
        );
        for (list, n_there) in [("no list\n", 0), ("a\na\n", 2)] {
            let fault = faults(1, list).concat();
            assert!(
                fault.contains(&format!("{n_there} lines begin so")),
                "{fault}"
            );
        }
        let gone = a_toy_mode_stays_small(&SourceTree::of(&[]));
        assert_eq!(gone.len(), 1);
    }
}
