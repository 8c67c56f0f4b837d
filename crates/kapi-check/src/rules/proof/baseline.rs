//! What a run of the checks on the base says before anything is spent.
//!
//! A check that fails there is what the work is for. One that cannot work there at all proves
//! nothing, whatever is done.

use super::obstacle::{Obstacle, obstacle_of};
use super::verify_report::VerifyReport;
use super::verify_run::VerifyRun;

/// Returns the first command that cannot work. What is only likely to be missing may be what the work
/// itself is to make, and is no obstacle.
#[must_use]
pub fn obstacle(report: &VerifyReport) -> Option<Obstacle> {
    report.runs.iter().find_map(obstacle_of)
}

/// Tells whether every check passed on the base: then they show only that nothing broke.
#[must_use]
pub fn is_green(report: &VerifyReport) -> bool {
    report.runs.iter().all(VerifyRun::passed)
}

#[cfg(test)]
mod tests {
    use super::obstacle;
    use crate::rules::proof::fixture::{report, run};

    fn check(output: &str, exit_code: i32) -> Option<String> {
        let report = report(vec![run(Some(exit_code), output)]);
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
