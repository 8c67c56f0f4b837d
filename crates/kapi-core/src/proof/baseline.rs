//! What a run of the checks on the base says before anything is spent.
//!
//! A check that fails there is what the work is for. One that cannot work there at all proves
//! nothing, whatever is done.

use crate::goal::outcome::{VerifyReport, VerifyRun};
use crate::proof::missing::{Certainty, missing};

/// Why a command cannot work where it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The command.
    pub command: String,
    /// Why, as a fragment.
    pub reason: String,
    /// What mends it.
    pub remedy: String,
}

/// Returns the first command that cannot work. What is only likely to be missing may be what the work
/// itself is to make, and is no obstacle.
#[must_use]
pub fn obstacle(report: &VerifyReport) -> Option<Obstacle> {
    report.runs.iter().find_map(of_run)
}

fn of_run(run: &VerifyRun) -> Option<Obstacle> {
    let found = missing(&run.output_tail, run.exit_code?)?;
    (found.certainty == Certainty::Certain).then(|| Obstacle {
        command: run.command.clone(),
        reason: found.to_string(),
        remedy: found.remedy,
    })
}

#[cfg(test)]
mod tests {
    use super::obstacle;
    use crate::goal::outcome::{Checks, VerifyReport, VerifyRun};
    use crate::proof::inspection::Inspection;

    fn check(output: &str, exit_code: i32) -> Option<String> {
        let report = VerifyReport {
            commit: "c".to_owned(),
            tree: "t".to_owned(),
            tampered: Vec::new(),
            runs: vec![VerifyRun {
                command: "test".to_owned(),
                checks: Checks::Visible,
                exit_code: Some(exit_code),
                timed_out: false,
                duration_ms: 1,
                output_tail: output.to_owned(),
                output_bytes: 1,
                tally: None,
            }],
            inspection: Inspection::default(),
        };
        obstacle(&report).map(|obstacle| obstacle.reason)
    }

    #[test]
    fn a_program_is_told_from_a_file_that_the_work_may_make() {
        assert!(check("/bin/sh: 1: pytest: not found", 127).is_some());
        assert!(check("bash: line 1: go: command not found", 127).is_some());
        assert_eq!(check("/bin/sh: 1: ./run: not found", 127), None);
        assert_eq!(check("sh: 0: cannot open test.sh: No such file", 2), None);
        assert_eq!(check("2 tests failed", 1), None);
    }
}
