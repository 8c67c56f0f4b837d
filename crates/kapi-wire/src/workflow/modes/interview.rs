//! An interview as others see it: every round with where its answer came from, and the score.
//!
//! Numbers are thousandths, as they are recorded.

use kapi_workflow::rules::handover::Spec;
use kapi_workflow::rules::modes::interview::round::{
    Contradiction, Perspective, Provenance, QuestionReply, Round,
};
use kapi_workflow::rules::modes::interview::score::{Dimension, Score};
use kapi_workflow::rules::modes::interview::state::{GoalRestatement, Interview, InterviewPhase};
use schemars::JsonSchema;
use serde::Serialize;

use crate::workflow::asked::AskedView;

/// An interview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InterviewView {
    /// The commit that facts are looked up in.
    pub commit: Option<String>,
    /// Every question so far.
    #[schemars(skip)]
    pub rounds: Vec<RoundView>,
    /// The number of the question that waits for the person.
    pub open: Option<u32>,
    /// What the person is asked now: a question, or whether this is the goal.
    pub asked: Option<AskedView>,
    /// The goal as it was said back.
    #[schemars(skip)]
    pub restated: Option<GoalRestatement>,
    /// How clear it is.
    #[schemars(skip)]
    pub score: Option<Score>,
    /// Answers that do not fit together.
    #[schemars(skip)]
    pub contradictions: Vec<Contradiction>,
    /// Whether the person said that it is enough.
    pub is_enough: bool,
    /// The spec.
    #[schemars(skip)]
    pub spec: Option<Box<Spec>>,
}

/// One round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoundView {
    /// Its number, from 1.
    pub round: u32,
    /// The question.
    pub question: String,
    /// `goal`, `constraints`, `success` or `context`.
    pub dimension: &'static str,
    /// An answer to accept or to correct.
    pub proposed: Option<String>,
    /// `open`, `answered`, `deferred` or `withdrawn`.
    pub state: &'static str,
    /// The answer.
    pub answer: Option<String>,
    /// `person`, `person_accepted`, `answers_file`, `repository` or `assumption`.
    pub provenance: Option<&'static str>,
    /// The files that say it, for what the repository says.
    pub refs: Vec<String>,
    /// Why it was left for later or taken back.
    pub reason: Option<String>,
}

/// Shows what an interview asks its person now.
#[must_use]
pub fn asked(interview: &Interview) -> Option<AskedView> {
    let clarity = interview.score.as_ref().map_or_else(Vec::new, |score| {
        let mut lines = vec![score.words()];
        lines.extend(score.reasons.iter().cloned());
        lines
    });
    match interview.phase {
        InterviewPhase::Awaiting => open_round(interview).map(|round| AskedView {
            kind: "question",
            round: round.number,
            text: round.question.text.clone(),
            proposed: round.question.proposed.clone(),
            why: format!(
                "{}, {}",
                purpose(round.question.dimension),
                side(round.question.perspective)
            ),
            clarity,
        }),
        InterviewPhase::Restating => interview.restated.as_ref().map(|restated| AskedView {
            kind: "goal",
            round: restated.round,
            text: restated.goal.clone(),
            proposed: Some(restated.goal.clone()),
            why: "Kapi drafts the spec from it once you confirm the goal".to_owned(),
            clarity,
        }),
        InterviewPhase::Asking
        | InterviewPhase::Spec
        | InterviewPhase::Branch
        | InterviewPhase::Linked => None,
    }
}

/// Returns what a question is to make clear.
const fn purpose(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Goal => "it clarifies what you want",
        Dimension::Constraints => "it clarifies what must hold and what must not happen",
        Dimension::Success => "it clarifies how to tell that the goal is reached",
        Dimension::Context => "it clarifies what already exists",
    }
}

/// Returns from which side a question is put.
const fn side(perspective: Perspective) -> &'static str {
    match perspective {
        Perspective::Breadth => "so that nothing is forgotten",
        Perspective::Researcher => "from what already exists",
        Perspective::Simplifier => "from what could be left out",
        Perspective::Architect => "from the parts and their order",
        Perspective::Contrarian => "from what would follow if the opposite were true",
        Perspective::Closer => "to complete the picture",
    }
}

impl InterviewView {
    /// Shows an interview.
    #[must_use]
    pub fn of(interview: &Interview) -> Self {
        Self {
            commit: interview.commit.clone(),
            rounds: interview.rounds.iter().map(RoundView::of).collect(),
            open: open_round(interview).map(|round| round.number),
            asked: asked(interview),
            restated: interview.restated.clone(),
            score: interview.score.clone(),
            contradictions: interview.contradictions.clone(),
            is_enough: interview.is_enough,
            spec: interview.spec.clone(),
        }
    }
}

impl RoundView {
    fn of(round: &Round) -> Self {
        let (answer, reason) = match &round.reply {
            QuestionReply::Open => (None, None),
            QuestionReply::Answered(answer) => (Some(answer), None),
            QuestionReply::Deferred { reason } => (None, reason.clone()),
            QuestionReply::Withdrawn { reason } => (None, Some(reason.clone())),
        };
        Self {
            round: round.number,
            question: round.question.text.clone(),
            dimension: dimension(round.question.dimension),
            proposed: round.question.proposed.clone(),
            state: match &round.reply {
                QuestionReply::Open => "open",
                QuestionReply::Answered(_) => "answered",
                QuestionReply::Deferred { .. } => "deferred",
                QuestionReply::Withdrawn { .. } => "withdrawn",
            },
            answer: answer.map(|answer| answer.text.clone()),
            provenance: answer.map(|answer| provenance(answer.provenance)),
            refs: answer.map(|answer| answer.refs.clone()).unwrap_or_default(),
            reason,
        }
    }
}

/// Returns the question that waits for the person.
#[must_use]
pub fn open_round(interview: &Interview) -> Option<&Round> {
    let mut rounds = interview.rounds.iter().rev();
    rounds.find(|round| round.reply == QuestionReply::Open)
}

/// Returns the name of a dimension.
#[must_use]
pub const fn dimension(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Goal => "goal",
        Dimension::Constraints => "constraints",
        Dimension::Success => "success",
        Dimension::Context => "context",
    }
}

/// Returns the name of where an answer came from.
#[must_use]
pub const fn provenance(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Person => "person",
        Provenance::PersonAccepted => "person_accepted",
        Provenance::AnswersFile => "answers_file",
        Provenance::Repository => "repository",
        Provenance::Assumption => "assumption",
    }
}

#[cfg(test)]
mod tests {
    use kapi_workflow::rules::modes::interview::round::{
        InterviewQuestion, Perspective, QuestionReply, Round,
    };
    use kapi_workflow::rules::modes::interview::score::{Clarity, Dimension, Score};
    use kapi_workflow::rules::modes::interview::state::{
        GoalRestatement, Interview, InterviewPhase,
    };

    use super::asked;

    fn interview(phase: InterviewPhase) -> Interview {
        let question = InterviewQuestion {
            text: "Whom does it greet?".to_owned(),
            dimension: Dimension::Goal,
            perspective: Perspective::Breadth,
            proposed: Some("whoever is named".to_owned()),
        };
        Interview {
            commit: None,
            phase,
            rounds: vec![Round {
                number: 1,
                question,
                reply: QuestionReply::Open,
                settles: Vec::new(),
            }],
            restated: Some(GoalRestatement {
                goal: "Everybody is greeted.".to_owned(),
                round: 5,
                is_confirmed: false,
                times: 1,
            }),
            score: None,
            streak: 0,
            contradictions: Vec::new(),
            is_enough: false,
            refused: Vec::new(),
            spec: None,
            steps: 1,
            restarts: 0,
        }
    }

    #[test]
    fn a_question_comes_with_its_proposal_and_the_reason_for_it() {
        let asked = asked(&interview(InterviewPhase::Awaiting)).unwrap();
        let golden = concat!(
            r#"{"kind":"question","round":1,"text":"Whom does it greet?","#,
            r#""proposed":"whoever is named","#,
            r#""why":"it clarifies what you want, so that nothing is forgotten","#,
            r#""clarity":[]}"#,
        );
        assert_eq!(serde_json::to_string(&asked).unwrap(), golden);
    }

    #[test]
    fn the_goal_is_said_back_with_how_clear_it_is() {
        let mut interview = interview(InterviewPhase::Restating);
        interview.score = Some(Score {
            clarity: Clarity {
                goal: 950,
                constraints: 900,
                success: 500,
                context: None,
            },
            reasons: vec!["nobody said how it is seen".to_owned()],
            answered: 3,
        });
        let asked = asked(&interview).unwrap();
        assert_eq!((asked.kind, asked.round), ("goal", 5));
        assert_eq!(asked.text, "Everybody is greeted.");
        assert_eq!(asked.proposed.as_deref(), Some("Everybody is greeted."));
        assert!(asked.clarity[0].contains(" of 1 ("), "{asked:?}");
        assert_eq!(asked.clarity[1], "nobody said how it is seen");
    }

    #[test]
    fn nothing_is_asked_while_the_interviewer_thinks_or_a_decision_waits() {
        for phase in [
            InterviewPhase::Asking,
            InterviewPhase::Spec,
            InterviewPhase::Branch,
            InterviewPhase::Linked,
        ] {
            assert_eq!(asked(&interview(phase)), None, "{phase:?}");
        }
    }
}
