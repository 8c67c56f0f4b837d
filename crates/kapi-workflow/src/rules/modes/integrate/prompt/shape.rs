//! The shapes of answers, each as an example that parses.
//!
//! An example and its type belong together: a test reads every one.

use crate::rules::modes::integrate::role::IntegrateRole;

/// Returns an example of what is answered in a role.
#[must_use]
pub const fn example(role: IntegrateRole) -> &'static str {
    match role {
        IntegrateRole::Planner => PLAN,
        IntegrateRole::Resolver => RESOLUTION,
        IntegrateRole::Reviewer => REVIEW,
        IntegrateRole::Thesis => THESIS,
        IntegrateRole::Antithesis => ANTITHESIS,
        IntegrateRole::Synthesis => SYNTHESIS,
    }
}

const PLAN: &str = r#"{
  "steps": [
    {"source": "003-auth-session", "method": "merge", "why": "It changes the interface that 004 uses."},
    {"source": "004-faster-parser", "method": "merge", "why": "It builds on the interface of 003."}
  ],
  "left_out": [{"source": "005-old-cache", "why": "Its cache is replaced by 003."}],
  "verify": ["cargo test --workspace --offline"],
  "rationale": "The interface first, then whatever uses it."
}"#;

const RESOLUTION: &str = r#"{
  "options": ["Keep both checks, the session's first", "Let the parser's check do both"],
  "choice": "Both checks are kept, the session's first",
  "rationale": "003 wants the session checked before anything is read; 004 only makes reading faster.",
  "unresolvable": false
}"#;

const REVIEW: &str = r#"{
  "summary": "Every hunk was read; both intents hold together.",
  "justified": [{"finding": 1, "why": "The import is needed by both and stands once."}],
  "problems": [{
    "cause": "resolution",
    "finding": 2,
    "source": "004-faster-parser",
    "title": "The session's check is gone",
    "detail": "src/session.rs line 40 no longer calls check() before parse()."
  }]
}"#;

const THESIS: &str = r#"{
  "defence": "Both sources are in it whole, and the one conflict keeps both checks.",
  "points": ["Every hunk is traced to a source.", "The tests of both pass on the result."]
}"#;

const ANTITHESIS: &str = r#"{
  "strongest": "Nothing tests a session that expires while the parser reads.",
  "objections": [{
    "cause": "verification",
    "text": "No command runs both paths at once.",
    "blocking": false
  }]
}"#;

const SYNTHESIS: &str = r#"{
  "verdict": "revise",
  "cause": "verification",
  "source": null,
  "why": "The two paths are never run together.",
  "answers": ["Right: the command below does."],
  "checks": ["cargo test --offline session_and_parser"]
}"#;

#[cfg(test)]
mod tests {
    use super::example;
    use crate::rules::modes::ModeAnswer;
    use crate::rules::modes::integrate::role::IntegrateRole;

    #[test]
    fn every_example_is_an_answer() {
        for role in IntegrateRole::ALL {
            let mut json = serde_json::Deserializer::from_str(example(role));
            ModeAnswer::read(role.spec(), &mut json).unwrap();
        }
    }
}
