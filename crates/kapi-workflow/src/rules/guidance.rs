//! Which documents an agent is given where, and their words.
//!
//! A command never chooses guidance; it changes state, and the state's phase names the documents, see
//! [`crate::rules::mode_spec::PhaseSpec`]. Each is one `SKILL.md` of its own, part of the program.

use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::mode_spec::{ModeSpec, Skill};
use crate::rules::state::Workflow;

/// How a change is reviewed, in every mode that reviews.
pub(crate) const CODE_REVIEW: Skill = Skill {
    name: "code-review",
    text: include_str!("../../../../skills/code-review/SKILL.md"),
};
/// How a change is made simpler, in every mode that reviews.
pub(crate) const CODE_SIMPLIFIER: Skill = Skill {
    name: "code-simplifier",
    text: include_str!("../../../../skills/code-simplifier/SKILL.md"),
};

/// Returns the documents for a workflow as it stands; none where it is held up or has ended.
#[must_use]
pub fn documents(workflow: &Workflow) -> &'static [&'static str] {
    if workflow.status != WorkflowStatus::Active {
        return &[];
    }
    let (phase, _) = workflow.body.rules().phase();
    phase.guidance
}

/// Returns a document as an agent is given it, without its front matter.
#[must_use]
pub fn body(name: &str) -> Option<&'static str> {
    let specs = ModeSpec::all();
    let mut skills = specs.flat_map(|spec| spec.skills);
    let skill = skills.find(|skill| skill.name == name)?;
    let rest = skill.text.strip_prefix("---\n")?;
    let (_, body) = rest.split_once("\n---\n")?;
    Some(body.trim_start())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kapi_core::mode::Mode;

    use super::body;
    use crate::rules::mode_spec::{ModeSpec, Skill};

    const LINES_MAX: usize = 120;

    fn skills() -> impl Iterator<Item = &'static Skill> {
        let specs = ModeSpec::all();
        specs.flat_map(|spec| spec.skills)
    }

    #[test]
    fn the_phase_says_which_documents() {
        let check = |mode: Mode, phase: &str, documents: &[&str]| {
            let mut phases = ModeSpec::of(mode).unwrap().phases.iter();
            let found = phases.find(|found| found.name == phase).unwrap();
            assert_eq!(found.guidance, documents, "{mode} {phase}");
        };
        check(Mode::DeepInterview, "interview", &["deep-interview"]);
        check(Mode::DeepInterview, "spec", &["deep-interview"]);
        check(Mode::DeepInterview, "branch", &[]);
        check(Mode::DeepInterview, "linked", &[]);
        check(Mode::Ralph, "plan", &["ralplan"]);
        check(Mode::Ralph, "run", &["ralph"]);
        check(Mode::Ralph, "review", &["code-review", "code-simplifier"]);
        check(Mode::Ralph, "closeout", &["ralph"]);
        check(Mode::Autoresearch, "contract", &["autoresearch-contract"]);
        check(Mode::Autoresearch, "run", &["autoresearch"]);
        check(Mode::Autoresearch, "finalize", &["autoresearch-finalize"]);
        for phase in ["inspect", "plan", "merge", "verify", "land"] {
            check(Mode::Integrate, phase, &["integration"]);
        }
        let review = ["integration-review", "code-review", "code-simplifier"];
        check(Mode::Integrate, "review", &review);
        check(Mode::Integrate, "consensus", &["integration-consensus"]);
    }

    #[test]
    fn every_document_of_a_phase_is_there_and_none_is_unused() {
        for spec in ModeSpec::all() {
            let phases = spec.phases.iter();
            let wanted: BTreeSet<&str> = phases.flat_map(|phase| phase.guidance).copied().collect();
            let there: BTreeSet<&str> = spec.skills.iter().map(|skill| skill.name).collect();
            assert_eq!(there, wanted, "{}", spec.mode);
            assert_eq!(there.len(), spec.skills.len(), "no name is given twice");
        }
    }

    #[test]
    fn every_text_says_what_it_is_and_is_short() {
        for skill in skills() {
            let (front, _) = skill.text.split_once("\n---\n").unwrap();
            let lines: Vec<&str> = front.lines().collect();
            assert_eq!(lines[..2], ["---", &format!("name: {}", skill.name)]);
            assert_eq!(lines[3], "owner: kapi", "{}", skill.name);
            let version = lines[2].strip_prefix("version: ").unwrap();
            assert!(version.parse::<u32>().unwrap() > 0, "{}", skill.name);
            assert!(lines[4].starts_with("description: ") && lines.len() == 5);
            assert!(skill.text.lines().count() <= LINES_MAX, "{}", skill.name);
            assert!(
                body(skill.name).unwrap().starts_with("# "),
                "{}",
                skill.name
            );
        }
        assert_eq!(body("autopilot"), None);
    }

    #[test]
    fn reviews_look_at_correctness_first_and_at_simplicity_last() {
        let review = body("code-review").unwrap();
        let locations: Vec<usize> = [
            "Correctness.",
            "Regression.",
            "Missing test.",
            "Artifact alignment.",
            "Verification gap.",
            "Simplification",
        ]
        .iter()
        .map(|word| review.find(&format!("**{word}")).unwrap())
        .collect();
        assert!(locations.is_sorted(), "{locations:?}");
    }
}
