//! What a host like Pi is told of its session: the workflow it is attached to, what waits for its
//! person there, and the guidance that belongs to it now.
//!
//! Everything a host needs to show and to ask; nothing in it has to be interpreted.

use kapi_workflow::rules::state::WorkflowBlock;
use schemars::JsonSchema;
use serde::Serialize;

use crate::workflow::asked::AskedView;

/// The layout of these documents; a host that knows another one says so instead of guessing.
pub const SESSION_VERSION: u32 = 1;

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionView {
    /// `session`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The layout of this document.
    pub v: u32,
    /// The name of the session.
    pub session: Option<String>,
    /// The workflow it is attached to; none where it has ended.
    pub attached: Option<SessionWorkflowView>,
}

/// A workflow, as a host shows it to its person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionWorkflowView {
    /// Its id, `NNN-slug`.
    pub id: String,
    /// The index by which it is named in commands, `007`.
    pub index: String,
    /// Its mode.
    pub mode: &'static str,
    /// What it is for, in the person's words.
    pub purpose: String,
    /// `active`, `blocked`, `completed`, `failed`, `abandoned`, `linked`, `integrated`.
    pub status: &'static str,
    /// Where it stands.
    pub phase: &'static str,
    /// Where it stands within that.
    pub subphase: Option<&'static str>,
    /// Where it stands, in a few words for a person.
    #[serde(rename = "standing")]
    pub state: String,
    /// The same in a paragraph for a model.
    pub paragraph: String,
    /// Who drives it right now.
    pub driver: Option<String>,
    /// What the person is asked now.
    pub asked: Option<AskedView>,
    /// The decision that waits for the person.
    pub pending: Option<DecisionView>,
    /// What holds it up.
    pub blocked: Option<WorkflowBlock>,
    /// What a person can type next, on a command line.
    pub next: Vec<String>,
    /// The documents that an agent is given in this phase, in their order.
    pub guidance: Vec<GuidanceView>,
}

/// A decision that waits, with everything that has to be seen before it is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DecisionView {
    /// `approve_interview_spec` or `approve_ralph_plan`.
    pub decision: &'static str,
    /// The artifact it is about.
    pub artifact: &'static str,
    /// SHA-256 of the artifact's bytes: what an approval names.
    pub sha256: String,
    /// What must be accepted with it.
    pub risks: Vec<String>,
    /// What exactly happens on yes.
    pub on_yes: &'static str,
    /// The artifact as it was drafted, where it was asked for.
    pub text: Option<String>,
}

/// One document of guidance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GuidanceView {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// One workflow that was asked for by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ShownView {
    /// `state`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The layout of this document.
    pub v: u32,
    /// The workflow.
    pub workflow: SessionWorkflowView,
}

/// The approved interviews that a purpose could go on from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CandidatesView {
    /// `candidates`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The layout of this document.
    pub v: u32,
    /// Those that fit, best first.
    pub candidates: Vec<CandidateView>,
}

/// One interview that fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CandidateView {
    /// Its id, `NNN-slug`.
    pub id: String,
    /// The index by which it is named in commands.
    pub index: String,
    /// What it is for; empty where it cannot be read.
    pub purpose: String,
    /// The share of the purpose's keywords that occur in it, in hundredths.
    pub score: u32,
    /// Those keywords.
    pub shared: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::{
        CandidateView, CandidatesView, DecisionView, GuidanceView, SESSION_VERSION, SessionView,
        SessionWorkflowView,
    };
    use crate::workflow::asked::AskedView;

    fn state() -> SessionWorkflowView {
        SessionWorkflowView {
            id: "001-greet-people".to_owned(),
            index: "001".to_owned(),
            mode: "deep-interview",
            purpose: "greet people".to_owned(),
            status: "active",
            phase: "interview",
            subphase: Some("awaiting"),
            state: "interview/awaiting".to_owned(),
            paragraph: "It stands.".to_owned(),
            driver: None,
            asked: Some(AskedView {
                kind: "question",
                round: 2,
                text: "Whom?".to_owned(),
                proposed: Some("everybody".to_owned()),
                why: "it clarifies what you want".to_owned(),
                clarity: vec!["ambiguity 0.4".to_owned()],
            }),
            pending: Some(DecisionView {
                decision: "approve_interview_spec",
                artifact: "spec.md",
                sha256: "4f1c".to_owned(),
                risks: vec!["none was named".to_owned()],
                on_yes: "the spec becomes final",
                text: None,
            }),
            blocked: None,
            next: vec!["kapi deep-interview resume 001".to_owned()],
            guidance: vec![GuidanceView {
                name: "deep-interview",
                text: "# Deep Interview\n",
            }],
        }
    }

    #[test]
    fn a_session_is_one_line_with_everything_a_host_shows() {
        let view = SessionView {
            kind: "session",
            v: SESSION_VERSION,
            session: Some("pi:1".to_owned()),
            attached: Some(state()),
        };
        let golden = concat!(
            r#"{"type":"session","v":1,"session":"pi:1","attached":{"id":"001-greet-people","#,
            r#""index":"001","mode":"deep-interview","purpose":"greet people","status":"active","#,
            r#""phase":"interview","subphase":"awaiting","standing":"interview/awaiting","#,
            r#""paragraph":"It stands.","driver":null,"asked":{"kind":"question","round":2,"#,
            r#""text":"Whom?","proposed":"everybody","why":"it clarifies what you want","#,
            r#""clarity":["ambiguity 0.4"]},"pending":{"decision":"approve_interview_spec","#,
            r#""artifact":"spec.md","sha256":"4f1c","risks":["none was named"],"#,
            r#""on_yes":"the spec becomes final","text":null},"blocked":null,"#,
            r#""next":["kapi deep-interview resume 001"],"#,
            r##""guidance":[{"name":"deep-interview","text":"# Deep Interview\n"}]}}"##,
        );
        assert_eq!(serde_json::to_string(&view).unwrap(), golden);
    }

    #[test]
    fn a_session_that_is_attached_to_nothing_says_so() {
        let view = SessionView {
            kind: "session",
            v: SESSION_VERSION,
            session: None,
            attached: None,
        };
        assert_eq!(
            serde_json::to_string(&view).unwrap(),
            r#"{"type":"session","v":1,"session":null,"attached":null}"#
        );
    }

    #[test]
    fn candidates_are_rows_of_a_list() {
        let view = CandidatesView {
            kind: "candidates",
            v: SESSION_VERSION,
            candidates: vec![CandidateView {
                id: "001-greet-people".to_owned(),
                index: "001".to_owned(),
                purpose: "greet people".to_owned(),
                score: 66,
                shared: vec!["greet".to_owned()],
            }],
        };
        let golden = concat!(
            r#"{"type":"candidates","v":1,"candidates":[{"id":"001-greet-people","index":"001","#,
            r#""purpose":"greet people","score":66,"shared":["greet"]}]}"#,
        );
        assert_eq!(serde_json::to_string(&view).unwrap(), golden);
    }
}
