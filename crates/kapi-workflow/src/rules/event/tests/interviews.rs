//! Events of an interview as they stand in a log.

use kapi_core::mode::Mode;

use super::{check, id};
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::ModeEvent;
use crate::rules::modes::interview::event::InterviewEvent;
use crate::rules::modes::interview::round::{Contradiction, InterviewAnswer, Provenance};
use crate::rules::modes::interview::scenario::{clarity, question, spec};
use crate::rules::modes::interview::score::Score;

fn interview(event: InterviewEvent, data: &str) {
    let line = format!(r#"{{"type":"interview","data":{data}}}"#);
    check(&WorkflowEvent::Mode(ModeEvent::Interview(event)), &line);
}

const QUESTION: &str =
    r#"{"text":"Why?","dimension":"goal","perspective":"breadth","proposed":null}"#;

fn answer(provenance: Provenance, refs: &[&str]) -> InterviewAnswer {
    InterviewAnswer {
        text: "So.".to_owned(),
        provenance,
        refs: refs.iter().map(|path| (*path).to_owned()).collect(),
        at_ms: 7,
    }
}

#[test]
fn questions_and_answers_read_back() {
    let asked = |settles| InterviewEvent::QuestionAsked {
        round: 1,
        question: question("Why?", None),
        settles,
    };
    let line =
        |more: &str| format!(r#"{{"question_asked":{{"round":1,"question":{QUESTION}{more}}}}}"#);
    interview(asked(Vec::new()), &line(""));
    interview(asked(vec![2]), &line(r#","settles":[2]"#));
    interview(
        InterviewEvent::FactFound {
            round: 2,
            question: question("Why?", None),
            answer: answer(Provenance::Repository, &["Makefile"]),
        },
        &format!(
            r#"{{"fact_found":{{"round":2,"question":{QUESTION},"answer":{{"text":"So.","provenance":"repository","refs":["Makefile"],"at_ms":7}}}}}}"#
        ),
    );
    interview(
        InterviewEvent::AnswerRecorded {
            round: 1,
            answer: answer(Provenance::PersonAccepted, &[]),
        },
        r#"{"answer_recorded":{"round":1,"answer":{"text":"So.","provenance":"person_accepted","refs":[],"at_ms":7}}}"#,
    );
    interview(
        InterviewEvent::Remarked {
            round: 3,
            text: "More.".to_owned(),
            at_ms: 7,
        },
        r#"{"remarked":{"round":3,"text":"More.","at_ms":7}}"#,
    );
    interview(
        InterviewEvent::QuestionDeferred {
            round: 1,
            reason: None,
        },
        r#"{"question_deferred":{"round":1,"reason":null}}"#,
    );
    interview(
        InterviewEvent::QuestionWithdrawn {
            round: 1,
            reason: "asked badly".to_owned(),
        },
        r#"{"question_withdrawn":{"round":1,"reason":"asked badly"}}"#,
    );
}

#[test]
fn what_comes_of_answers_reads_back() {
    let goal = || "A goal.".to_owned();
    interview(
        InterviewEvent::GoalRestated {
            round: 4,
            goal: goal(),
        },
        r#"{"goal_restated":{"round":4,"goal":"A goal."}}"#,
    );
    interview(
        InterviewEvent::GoalConfirmed {
            round: 4,
            goal: goal(),
        },
        r#"{"goal_confirmed":{"round":4,"goal":"A goal."}}"#,
    );
    let score = Score {
        clarity: clarity(true),
        reasons: vec!["goal: why".to_owned()],
        answered: 3,
    };
    interview(
        InterviewEvent::ScoreRecorded { score },
        r#"{"score_recorded":{"score":{"clarity":{"goal":900,"constraints":900,"success":900,"context":900},"reasons":["goal: why"],"answered":3}}}"#,
    );
    let contradiction = Contradiction {
        rounds: vec![1, 2],
        text: "Not both.".to_owned(),
        settled_by: None,
    };
    interview(
        InterviewEvent::ContradictionNamed { contradiction },
        r#"{"contradiction_named":{"contradiction":{"rounds":[1,2],"text":"Not both.","settled_by":null}}}"#,
    );
    interview(InterviewEvent::EnoughSaid {}, r#"{"enough_said":{}}"#);
    interview(
        InterviewEvent::StepRefused {
            why: "ask once".to_owned(),
        },
        r#"{"step_refused":{"why":"ask once"}}"#,
    );
    interview(
        InterviewEvent::SpecDrafted {
            spec: Box::new(spec("A goal.", &[0])),
        },
        r#"{"spec_drafted":{"spec":{"goal":"A goal.","intent":[{"text":"Fewer support calls.","rounds":[0]}],"constraints":[{"text":"No new dependency.","rounds":[0]}],"preferences":[{"text":"Small commits.","rounds":[0]}],"success_criteria":[{"text":"A test restarts the store and signs in.","verify":"cargo test recovery","exempt":null,"rounds":[0]}],"methods":[{"text":"None stated; left to planning.","rounds":[0]}],"boundaries":{"may":[{"text":"Rename private functions.","rounds":[0]}],"must_ask":[],"never":[{"text":"Change the public API.","rounds":[0]}]},"open_questions":[{"text":"How long sessions are kept.","blocking":false}],"non_goals":[{"text":"Single sign-on.","rounds":[0]}],"context":[{"text":"One server at a time.","rounds":[]}]}}}"#,
    );
    interview(
        InterviewEvent::Branched {
            mode: Mode::Ralph,
            workflow: id("002-build"),
            at_ms: 7,
        },
        r#"{"branched":{"mode":"ralph","workflow":"002-build","at_ms":7}}"#,
    );
    interview(
        InterviewEvent::Reopened {
            reason: "not clear".to_owned(),
        },
        r#"{"reopened":{"reason":"not clear"}}"#,
    );
}
