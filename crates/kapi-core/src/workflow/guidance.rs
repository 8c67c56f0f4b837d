//! Which documents an agent is given where: a pure table from mode, phase and subphase.
//!
//! A command never chooses guidance; it changes state, and the state decides. The texts live with
//! the engine, each in one `SKILL.md` of its own.

use crate::workflow::mode::Mode;
use crate::workflow::state::{Status, Workflow};

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The mode.
    pub mode: Mode,
    /// The phase.
    pub phase: &'static str,
    /// The subphase; `None` stands for every one of the phase.
    pub subphase: Option<&'static str>,
    /// The documents, in the order in which they are given.
    pub documents: &'static [&'static str],
}

const fn row(
    mode: Mode,
    phase: &'static str,
    subphase: Option<&'static str>,
    documents: &'static [&'static str],
) -> Row {
    Row {
        mode,
        phase,
        subphase,
        documents,
    }
}

/// The table. A phase in which no agent is asked has a row without documents.
pub const TABLE: &[Row] = &[
    row(Mode::DeepInterview, "interview", None, &["deep-interview"]),
    row(Mode::DeepInterview, "spec", None, &["deep-interview"]),
    row(Mode::DeepInterview, "branch", None, &[]),
    row(Mode::DeepInterview, "linked", None, &[]),
    row(Mode::Ralph, "plan", None, &["ralplan"]),
    row(Mode::Ralph, "run", None, &["ralph"]),
    row(
        Mode::Ralph,
        "review",
        None,
        &["code-review", "code-simplifier"],
    ),
    row(Mode::Ralph, "closeout", None, &["ralph"]),
];

/// Returns the row of a phase and subphase: the most exact one.
#[must_use]
pub fn find(mode: Mode, phase: &str, subphase: Option<&str>) -> Option<&'static Row> {
    let fits = |row: &&Row| row.mode == mode && row.phase == phase;
    let exact = TABLE
        .iter()
        .filter(fits)
        .find(|row| row.subphase.is_some() && row.subphase == subphase);
    exact.or_else(|| TABLE.iter().filter(fits).find(|row| row.subphase.is_none()))
}

/// Returns the documents for a workflow as it stands; none where it is held up or has ended.
#[must_use]
pub fn documents(workflow: &Workflow) -> &'static [&'static str] {
    if workflow.status != Status::Active {
        return &[];
    }
    let (phase, subphase) = workflow.phase();
    find(workflow.mode(), phase, subphase).map_or(&[], |row| row.documents)
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::workflow::mode::Mode;

    #[test]
    fn the_phase_says_which_documents() {
        let check = |mode, phase, documents: &[&str]| {
            let row = find(mode, phase, None).unwrap();
            assert_eq!(row.documents, documents, "{mode} {phase}");
        };
        check(Mode::DeepInterview, "interview", &["deep-interview"]);
        check(Mode::Ralph, "plan", &["ralplan"]);
        check(Mode::Ralph, "run", &["ralph"]);
        check(Mode::Ralph, "review", &["code-review", "code-simplifier"]);
        let of_all = find(Mode::Ralph, "plan", None);
        assert_eq!(find(Mode::Ralph, "plan", Some("thesis")), of_all);
        assert_eq!(find(Mode::Ralph, "interview", None), None);
    }
}
