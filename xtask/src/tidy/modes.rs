//! A durable mode is named in its own folders and in the lists of modes, and nowhere else: a new mode
//! then changes a handful of files, and what all modes share is written once.
//!
//! Reads names, not meaning; what stands below a file's first `#[cfg(test)]` may name any mode.

use super::Fault;
use super::tree::Tree;

/// How a mode is named in the source.
const NAMES: &[&str] = &[
    "modes::interview",
    "modes::ralph",
    "Mode::DeepInterview",
    "Mode::Ralph",
    "Body::Interview",
    "Body::Ralph",
    "Begin::Interview",
    "Begin::Ralph",
    "ModeEvent::Interview",
    "ModeEvent::Ralph",
    "ModeCommand::Interview",
    "ModeCommand::Ralph",
    "ModeAnswer::Interview",
    "ModeAnswer::Ralph",
];

/// Where modes are at home: lists, and the folders beside them.
const HOMES: &[&str] = &[
    "crates/kapi-workflow/src/rules/modes.rs",
    "crates/kapi-workflow/src/rules/modes/",
    "crates/kapi-wire/src/workflow/modes.rs",
    "crates/kapi-wire/src/workflow/modes/",
    "crates/kapi-cli/src/modes.rs",
    "crates/kapi-cli/src/modes/",
    "crates/kapi-testkit/src/workflow_sim/modes.rs",
    "crates/kapi-testkit/src/workflow_sim/modes/",
    // A module of tests alone.
    "crates/kapi-workflow/src/rules/story.rs",
];

/// What all modes share names none of them.
pub(super) fn modes_stay_home(tree: &Tree) -> Vec<Fault> {
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
            let Some(name) = NAMES.iter().find(|name| text.contains(**name)) else {
                continue;
            };
            faults.push(Fault {
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
    use super::super::Tree;
    use super::modes_stay_home;

    #[test]
    fn a_mode_that_is_named_where_all_are_served_is_found() {
        let named = "        Body::Ralph(ralph) => ralph.branch.as_ref(),\n";
        let tested = format!("fn shared() {{}}\n\n#[cfg(test)]\nmod tests {{\n{named}}}\n");
        let files = [
            ("crates/kapi-workflow/src/rules/modes/ralph/rules.rs", named),
            ("crates/kapi-workflow/src/record/index.rs", named),
            ("crates/kapi-workflow/src/record/find.rs", &tested),
            ("crates/kapi-engine/tests/it/workflow_edits.rs", named),
        ];
        let faults = modes_stay_home(&Tree::of(&files));
        let places: Vec<(&str, usize)> = faults
            .iter()
            .map(|fault| (fault.path.as_str(), fault.line))
            .collect();
        assert_eq!(places, [("crates/kapi-workflow/src/record/index.rs", 1)]);
    }
}
