//! What a drafted spec must hold, and what goes along with it.

use super::{code, proposed, refuses};
use crate::rules::handover::{HandoverAnswer, Spec};
use crate::rules::modes::interview::command::InterviewCommand;
use crate::rules::modes::interview::scenario::{
    GOAL, agree, ask, ask_to_settle, clarity, contradiction, draft, fact, interview, item, of,
    restate, says, spec, talk, to_interview,
};
use crate::rules::scenario::{agent, human};

/// Changes one thing of a sound draft, which must then be refused with these words.
fn unsound(change: impl FnOnce(&mut Spec), words: &str) {
    let mut scenario = interview();
    let mut looked_up = ask("What hurts?");
    looked_up.facts = vec![fact("Which runner?")];
    proposed(&mut scenario, looked_up);
    scenario.send(&human(), &says(2, "Lost sign-ins."));
    agree(&mut scenario, GOAL);
    let mut spec = spec(GOAL, &[0, 2]);
    change(&mut spec);
    refuses(&mut scenario, draft(spec), words);
}

#[test]
fn what_was_left_for_later_and_what_the_person_said_go_along_with_the_spec() {
    let mut scenario = interview();
    talk(&mut scenario, "What hurts?", "Lost sign-ins.");
    proposed(&mut scenario, ask("Which store?"));
    let defer = to_interview(InterviewCommand::Defer {
        round: 2,
        reason: None,
    });
    scenario.send(&human(), &defer);
    agree(&mut scenario, GOAL);
    let mut spec = spec(GOAL, &[0, 1]);
    spec.answers = vec![HandoverAnswer {
        question: "What hurts?".to_owned(),
        answer: "Nothing.".to_owned(),
    }];
    proposed(&mut scenario, draft(spec));
    let spec = of(&scenario).spec.as_deref().unwrap();
    let open = spec.open_questions.last().unwrap();
    assert_eq!(open.text, "Which store? (round 2, left for later)");
    let said = &spec.answers[0];
    assert_eq!(
        (said.question.as_str(), said.answer.as_str()),
        ("What hurts?", "Lost sign-ins.")
    );
}

#[test]
fn a_draft_holds_every_section_and_rests_on_a_persons_word() {
    unsound(|spec| spec.intent.clear(), "put something under intent");
    unsound(|spec| spec.constraints.clear(), "under constraints");
    unsound(|spec| spec.preferences.clear(), "under preferences");
    unsound(
        |spec| spec.success_criteria.clear(),
        "under success_criteria",
    );
    unsound(|spec| spec.methods.clear(), "under methods");
    unsound(|spec| spec.non_goals.clear(), "under non_goals");
    unsound(|spec| spec.context.clear(), "under context");
    let no_boundaries = |spec: &mut Spec| {
        spec.boundaries.may.clear();
        spec.boundaries.never.clear();
    };
    unsound(no_boundaries, "under boundaries");
    unsound(
        |spec| spec.intent = vec![item("A wish.", &[])],
        "a round that the user answered",
    );
    unsound(
        |spec| spec.constraints = vec![item("Nextest.", &[1])],
        "the user did not ask for it",
    );
    unsound(
        |spec| spec.methods = vec![item("x", &[7])],
        "relies on round 7, which is unanswered",
    );
    unsound(
        |spec| spec.context = vec![item("x", &[7])],
        "relies on round 7, which is unanswered",
    );
    unsound(
        |spec| spec.methods[0].text = " ".to_owned(),
        "give methods 1 1 to",
    );
    unsound(
        |spec| spec.success_criteria[0].verify = None,
        "verify command, or explain why",
    );
    let both = |spec: &mut Spec| spec.success_criteria[0].exempt = Some("none".to_owned());
    unsound(both, "not both");
    let lines = |spec: &mut Spec| spec.success_criteria[0].verify = Some("a\nb".to_owned());
    unsound(lines, "of one line");
    unsound(
        |spec| spec.open_questions[0].blocking = true,
        "ask the blocking question first",
    );
}

#[test]
fn what_is_clear_is_approved_without_risks() {
    let mut scenario = interview();
    for number in 1..=3 {
        talk(&mut scenario, &format!("Question {number}?"), "So.");
    }
    let mut scored = restate(GOAL);
    scored.clarity = Some(clarity(true));
    proposed(&mut scenario, scored);
    scenario.send(&human(), &says(4, "yes"));
    let mut scored = draft(spec(GOAL, &[1]));
    scored.clarity = Some(clarity(true));
    proposed(&mut scenario, scored);
    assert_eq!(
        scenario.workflow().pending.as_ref().unwrap().risks,
        Vec::<String>::new()
    );
}

#[test]
fn enough_is_enough() {
    let mut scenario = interview();
    talk(&mut scenario, "Fast?", "Yes.");
    talk(&mut scenario, "Cheap?", "Yes.");
    let mut contradicts = ask_to_settle("Which?", &[1]);
    contradicts.contradictions = vec![contradiction(&[1, 2])];
    proposed(&mut scenario, contradicts);
    let enough = to_interview(InterviewCommand::Enough {});
    assert_eq!(code(&mut scenario, &agent(), &enough), "not_human");
    scenario.send(&human(), &enough);
    assert_eq!(of(&scenario).open(), None);
    assert_eq!(scenario.send(&human(), &enough), []);
    refuses(&mut scenario, ask("Really?"), "ended the questions");
    let mut bare = spec(GOAL, &[0]);
    bare.preferences.clear();
    bare.open_questions[0].blocking = true;
    proposed(&mut scenario, draft(bare));
    let risks = scenario
        .workflow()
        .pending
        .as_ref()
        .unwrap()
        .risks
        .join("\n");
    for words in [
        "scored",
        "was not confirmed",
        "not settled",
        "unknown",
        "preferences",
    ] {
        assert!(risks.contains(words), "{risks} does not say {words}");
    }
    assert_eq!(code(&mut scenario, &human(), &enough), "wrong_phase");
}
