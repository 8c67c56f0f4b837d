//! What a run of the checks on the base says before anything is spent.
//!
//! A check that fails there is what the work is for. One that cannot work there at all proves
//! nothing, whatever is done.

use crate::goal::outcome::{VerifyReport, VerifyRun};

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

/// The exit code of a shell that did not find a program.
const NOT_FOUND: i32 = 127;

/// Returns the first command that cannot work.
#[must_use]
pub fn obstacle(report: &VerifyReport) -> Option<Obstacle> {
    report.runs.iter().find_map(of_run)
}

fn of_run(run: &VerifyRun) -> Option<Obstacle> {
    if run.exit_code != Some(NOT_FOUND) {
        return None;
    }
    let program = missing_program(&run.output_tail)?;
    Some(Obstacle {
        command: run.command.clone(),
        reason: format!("the program {program} is not there"),
        remedy: format!(
            "install {program}, or name where it is in `read_only` of `[sandbox]` in your \
             configuration; `kapi doctor` shows what a sandbox sees."
        ),
    })
}

/// Returns the program that a shell says it did not find. A path is what the work itself may make.
fn missing_program(output: &str) -> Option<String> {
    output.lines().rev().find_map(|line| {
        let rest = line
            .strip_suffix(": command not found")
            .or_else(|| line.strip_suffix(": not found"))?;
        let name = rest.rsplit(": ").next()?.trim();
        let is_program = !name.is_empty() && !name.contains(['/', ' ']);
        is_program.then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::missing_program;

    #[test]
    fn a_program_is_told_from_a_file_that_the_work_may_make() {
        for (line, expected) in [
            ("/bin/sh: 1: pytest: not found", Some("pytest")),
            ("bash: line 1: go: command not found", Some("go")),
            ("/bin/sh: 1: ./run: not found", None),
            ("sh: 0: cannot open test.sh: No such file", None),
        ] {
            assert_eq!(missing_program(line).as_deref(), expected, "{line}");
        }
    }
}
