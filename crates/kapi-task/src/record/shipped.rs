//! The files that Kapi brings along: five loops, three profiles, one text for every agent.
//!
//! They are ordinary files, read by the same readers as a person's. Writes nothing.

/// One file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShippedFile {
    /// Its name without the extension.
    pub name: &'static str,
    /// What stands for its path where a source is named.
    pub path: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! shipped {
    ($dir:literal, $name:literal) => {
        ShippedFile {
            name: $name,
            path: concat!("shipped:", $dir, $name, ".md"),
            text: include_str!(concat!("shipped/", $dir, $name, ".md")),
        }
    };
}

const LOOPS: [ShippedFile; 5] = [
    shipped!("loops/", "code-review"),
    shipped!("loops/", "fix-bug"),
    shipped!("loops/", "implement-feature"),
    shipped!("loops/", "refactor"),
    shipped!("loops/", "update-dependencies"),
];

/// The profiles.
pub const PROFILES: [ShippedFile; 3] = [
    shipped!("agents/", "oracle"),
    shipped!("agents/", "prometheus"),
    shipped!("agents/", "sisyphus"),
];

/// What every agent is told where a project has no text of its own.
pub const AWARENESS: ShippedFile = shipped!("", "kernel-awareness");

/// Returns the loops, which a person may copy into their project and make their own.
#[must_use]
pub const fn loops() -> &'static [ShippedFile] {
    &LOOPS
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{LOOPS, PROFILES};
    use crate::record::definition_file;
    use crate::record::profile_file::{Access, discover};
    use crate::rules::definition::WorkspaceMode;
    use crate::rules::definition::eval::EvalCheck;

    #[test]
    fn every_loop_can_be_read_and_is_complete() {
        let nowhere = Path::new("/nonexistent");
        for file in LOOPS {
            let read = definition_file::parse(file.path, file.text, nowhere);
            let definition = read.unwrap_or_else(|faults| {
                let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
                panic!("{}", lines.join("\n"))
            });
            assert_eq!(definition.name.as_str(), file.name);
            assert!(
                !definition.description.starts_with("Loop: "),
                "{}",
                file.name
            );
            let budget = definition.budget;
            assert!(
                budget.tokens.is_some() && budget.usd_micros.is_some(),
                "{}",
                file.name
            );
            assert!(definition.timeout_ms > 0, "{}", file.name);
            assert!(
                definition.evals.iter().any(|eval| eval.blocking),
                "{}",
                file.name
            );
            let is_judged = definition
                .evals
                .iter()
                .any(|eval| matches!(eval.check, EvalCheck::Judge { .. }));
            assert!(is_judged, "{}", file.name);
            // What changes files is proved; what does not has nothing to prove by a command.
            let is_proved = !definition.verify.is_empty();
            assert_eq!(
                is_proved,
                definition.workspace == WorkspaceMode::Branch,
                "{}",
                file.name
            );
        }
    }

    #[test]
    fn the_loops_work_with_the_profiles() {
        let nowhere = Path::new("/nonexistent");
        let profiles = discover(nowhere, nowhere, nowhere);
        assert_eq!(profiles.faults, []);
        assert_eq!(profiles.list.len(), PROFILES.len());
        for file in LOOPS {
            let definition = definition_file::parse(file.path, file.text, nowhere).unwrap();
            let profile = profiles.find(&definition.agent).unwrap();
            let is_read_only = definition.workspace == WorkspaceMode::ReadOnly;
            assert_eq!(
                profile.access == Access::ReadOnly,
                is_read_only,
                "{}",
                file.name
            );
        }
    }
}
