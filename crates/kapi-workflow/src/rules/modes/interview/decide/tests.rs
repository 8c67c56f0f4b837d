//! The rules of an interview, one by one: what is recorded, what is refused and with which words.

mod spec;

use kapi_core::actor::Actor;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::command::WorkflowCommand;
use crate::rules::denied::WorkflowRule;
use crate::rules::effect::{WorkflowAction, next};
use crate::rules::event::WorkflowEvent;
use crate::rules::modes::interview::command::InterviewCommand;
use crate::rules::modes::interview::event::InterviewEvent;
use crate::rules::modes::interview::round::{Provenance, QuestionReply};
use crate::rules::modes::interview::scenario::{
    GOAL, agree, ask, ask_to_settle, asks, clarity, contradiction, draft, drafted, fact, interview,
    item, of, propose, question, restate, says, spec, talk, to_interview,
};
use crate::rules::modes::interview::state::InterviewPhase;
use crate::rules::modes::interview::step::InterviewStep;
use crate::rules::modes::ralph::answer::{Accounting, RalphAnswer};
use crate::rules::modes::{ModeAnswer, ModeEvent};
use crate::rules::scenario::{WorkflowTestScenario, agent, human, start_interview, terms};

/// Proposes a step that breaks a rule, and returns the rule; nothing changes.
fn refused(scenario: &mut WorkflowTestScenario, step: InterviewStep) -> String {
    let before = scenario.clone();
    let denied = scenario.ask(&agent(), &propose(step)).unwrap_err();
    assert_eq!(scenario.workflow, before.workflow);
    let WorkflowRule::Malformed { rule } = denied.why else {
        panic!("{denied}");
    };
    rule
}

fn refuses(scenario: &mut WorkflowTestScenario, step: InterviewStep, words: &str) {
    let rule = refused(scenario, step);
    assert!(rule.contains(words), "{rule:?} does not say {words:?}");
}

fn proposed(scenario: &mut WorkflowTestScenario, step: InterviewStep) -> Vec<WorkflowEvent> {
    scenario.send(&agent(), &propose(step))
}

fn code(
    scenario: &mut WorkflowTestScenario,
    actor: &Actor,
    command: &WorkflowCommand,
) -> &'static str {
    scenario.ask(actor, command).unwrap_err().why.code()
}

#[test]
fn there_is_one_open_question_and_only_a_person_answers_it() {
    let mut scenario = interview();
    refuses(&mut scenario, ask("One? Two?"), "one question at a time");
    refuses(&mut scenario, ask(" "), "1 to 1000 bytes");
    refuses(
        &mut scenario,
        ask_to_settle("What?", &[1]),
        "which 1 does not",
    );
    proposed(&mut scenario, ask("Is http://a/?b=c the page?"));
    assert_eq!(of(&scenario).phase, InterviewPhase::Awaiting);
    assert!(next(scenario.workflow()).is_empty());
    assert_eq!(
        code(&mut scenario, &agent(), &propose(ask("More?"))),
        "wrong_phase"
    );
    for actor in [agent(), Actor::Engine] {
        assert_eq!(code(&mut scenario, &actor, &says(1, "yes")), "not_human");
    }
    assert_eq!(code(&mut scenario, &human(), &says(2, "yes")), "malformed");
    assert_eq!(code(&mut scenario, &human(), &says(1, " ")), "malformed");
    let guess = |provenance| {
        to_interview(InterviewCommand::Answer {
            round: 1,
            text: "guess".to_owned(),
            provenance,
        })
    };
    for provenance in [Provenance::Assumption, Provenance::Repository] {
        assert_eq!(
            code(&mut scenario, &human(), &guess(provenance)),
            "malformed"
        );
    }
    scenario.send(&human(), &guess(Provenance::AnswersFile));
    let rounds = &of(&scenario).rounds;
    let QuestionReply::Answered(answer) = &rounds[0].reply else {
        panic!("{rounds:?}");
    };
    assert_eq!(answer.provenance, Provenance::AnswersFile);
    assert_eq!(
        code(&mut scenario, &human(), &says(1, "again")),
        "wrong_phase"
    );
    refuses(
        &mut scenario,
        ask("is HTTP://a/?b=c the page?"),
        "round 1 asked the same",
    );
}

#[test]
fn an_empty_answer_accepts_what_was_proposed() {
    let mut scenario = interview();
    proposed(&mut scenario, asks(question("Which?", Some("The first."))));
    scenario.send(&human(), &says(1, ""));
    let (_, answer) = of(&scenario).answered().next().unwrap();
    assert_eq!(answer.text, "The first.");
    assert_eq!(answer.provenance, Provenance::PersonAccepted);
}

#[test]
fn a_question_can_wait_or_be_taken_back() {
    let mut scenario = interview();
    let defer = |round| {
        to_interview(InterviewCommand::Defer {
            round,
            reason: None,
        })
    };
    let withdraw = to_interview(InterviewCommand::Withdraw {
        round: 2,
        reason: "asked badly".to_owned(),
    });
    assert_eq!(code(&mut scenario, &human(), &defer(1)), "wrong_phase");
    proposed(&mut scenario, ask("Now?"));
    assert_eq!(code(&mut scenario, &agent(), &defer(1)), "not_human");
    scenario.send(&human(), &defer(1));
    proposed(&mut scenario, ask("Now?"));
    scenario.send(&human(), &withdraw);
    let replies: Vec<_> = of(&scenario)
        .rounds
        .iter()
        .map(|round| &round.reply)
        .collect();
    assert!(matches!(replies[0], QuestionReply::Deferred { .. }));
    assert!(matches!(replies[1], QuestionReply::Withdrawn { .. }));
    assert_eq!(of(&scenario).phase, InterviewPhase::Asking);
}

#[test]
fn facts_name_files_and_never_take_the_persons_place() {
    let mut scenario = interview();
    let with = |facts: &[&str]| {
        let mut step = ask("What then?");
        step.facts = facts.iter().map(|text| fact(text)).collect();
        step
    };
    for refs in [&[][..], &["/etc/passwd"], &["../other"], &["a/../../b"]] {
        let mut step = with(&["Which?"]);
        step.facts[0].refs = refs.iter().map(|path| (*path).to_owned()).collect();
        refuses(&mut scenario, step, "files");
    }
    refuses(
        &mut scenario,
        with(&["1?", "2?", "3?", "4?"]),
        "ask the user",
    );
    proposed(&mut scenario, with(&["1?", "2?", "3?"]));
    scenario.send(
        &human(),
        &to_interview(InterviewCommand::Defer {
            round: 4,
            reason: None,
        }),
    );
    refuses(&mut scenario, with(&["5?"]), "ask the user");
    proposed(&mut scenario, ask("And you?"));
    scenario.send(&human(), &says(5, "I say so."));
    proposed(&mut scenario, with(&["6?"]));
    let mut nowhere = WorkflowTestScenario::begin(&start_interview(terms(), None));
    refuses(&mut nowhere, with(&["1?"]), "there is no repository");
}

#[test]
fn a_score_needs_three_answers_and_dies_with_the_next() {
    let mut scenario = interview();
    let scored = |text: &str, is_good| {
        let mut step = ask(text);
        step.clarity = Some(clarity(is_good));
        step
    };
    let mut wrong = scored("What?", true);
    wrong.clarity.as_mut().unwrap().goal = 1_001;
    refuses(&mut scenario, wrong, "0 to 1000");
    for round in 1..=3 {
        proposed(&mut scenario, scored(&format!("Question {round}?"), true));
        assert_eq!(of(&scenario).score, None, "round {round}");
        scenario.send(&human(), &says(round, "so"));
    }
    for (round, is_good, streak) in [(4, true, 1), (5, true, 2), (6, false, 0), (7, true, 1)] {
        proposed(
            &mut scenario,
            scored(&format!("Question {round}?"), is_good),
        );
        assert_eq!(of(&scenario).streak, streak);
        assert_eq!(of(&scenario).score.as_ref().unwrap().answered, round - 1);
        scenario.send(&human(), &says(round, "so"));
        assert_eq!(of(&scenario).score, None);
    }
}

#[test]
fn a_contradiction_is_asked_about_before_anything_else() {
    let mut scenario = interview();
    talk(&mut scenario, "Fast?", "Yes.");
    talk(&mut scenario, "Cheap?", "Yes.");
    let named = |mut step: InterviewStep, rounds: &[u32]| {
        step.contradictions = vec![contradiction(rounds)];
        step
    };
    refuses(
        &mut scenario,
        named(ask("Good?"), &[1]),
        "two answered rounds",
    );
    refuses(
        &mut scenario,
        named(ask("Good?"), &[1, 9]),
        "two answered rounds",
    );
    refuses(
        &mut scenario,
        named(ask("Good?"), &[1, 2]),
        "ask about a contradiction first",
    );
    refuses(
        &mut scenario,
        named(restate(GOAL), &[1, 2]),
        "before you restate the goal",
    );
    proposed(
        &mut scenario,
        named(ask_to_settle("Which of both?", &[1]), &[2, 1]),
    );
    scenario.send(
        &human(),
        &to_interview(InterviewCommand::Defer {
            round: 3,
            reason: None,
        }),
    );
    refuses(
        &mut scenario,
        draft(spec(GOAL, &[1])),
        "ask about the contradictions first",
    );
    proposed(
        &mut scenario,
        named(ask_to_settle("Which, then?", &[1]), &[1, 2]),
    );
    assert_eq!(
        of(&scenario).contradictions.len(),
        1,
        "known ones are not named twice"
    );
    scenario.send(&human(), &says(4, "Cheap."));
    assert_eq!(of(&scenario).contradictions[0].settled_by, Some(4));
    agree(&mut scenario, GOAL);
}

#[test]
fn the_goal_is_said_back_at_most_twice_and_then_drafted_as_it_is() {
    let mut scenario = interview();
    refuses(&mut scenario, draft(spec(GOAL, &[0])), "restate the goal");
    refuses(&mut scenario, restate("two\nlines"), "in one line");
    proposed(&mut scenario, restate(GOAL));
    assert_eq!(of(&scenario).phase, InterviewPhase::Restating);
    scenario.send(&human(), &says(1, "Not quite: sessions, too."));
    assert_eq!(of(&scenario).confirmed_goal(), None);
    proposed(&mut scenario, restate("Sessions survive a crash."));
    scenario.send(&human(), &says(2, "Still not."));
    refuses(
        &mut scenario,
        restate("Everything survives."),
        "no more than 2 times",
    );
    proposed(&mut scenario, draft(spec(GOAL, &[0, 1])));
    let risks = &scenario.workflow().pending.as_ref().unwrap().risks;
    assert!(
        risks.iter().any(|risk| risk.contains("was not confirmed")),
        "{risks:?}"
    );
}

#[test]
fn a_confirmed_goal_is_drafted_word_for_word() {
    for yes in ["", "yes", "Yes!", "OK.", GOAL] {
        let mut scenario = interview();
        proposed(&mut scenario, restate(GOAL));
        scenario.send(&human(), &says(1, yes));
        assert_eq!(of(&scenario).confirmed_goal(), Some(GOAL), "{yes:?}");
        refuses(&mut scenario, restate(GOAL), "already confirmed this goal");
        refuses(
            &mut scenario,
            draft(spec("Another.", &[0])),
            "as the user confirmed it",
        );
    }
}

#[test]
fn a_refused_answer_is_told_and_three_in_a_row_hold_it_up() {
    let mut scenario = interview();
    for times in 1..=3 {
        let wanted = next(scenario.workflow());
        let WorkflowAction::Ask(asked) = &wanted[0].action else {
            panic!("{wanted:?}");
        };
        assert_eq!(asked.ordinal, times);
        assert_eq!(asked.prompt.contains("one question at a time"), times > 1);
        scenario.answer(ModeAnswer::Interview(ask("One? Two?")));
    }
    assert_eq!(scenario.workflow().status, WorkflowStatus::Blocked);
    scenario.send(&human(), &WorkflowCommand::Unblock {});
    assert_eq!(of(&scenario).refused, Vec::<String>::new());
    let wrong = ModeAnswer::Ralph(RalphAnswer::Account(Accounting {
        rationale: String::new(),
        risks: Vec::new(),
        follow_up: Vec::new(),
    }));
    scenario.answer(wrong);
    assert_eq!(of(&scenario).refused, ["answer in the form of a step"]);
    scenario.answer(ModeAnswer::Interview(ask("Well?")));
    assert_eq!(of(&scenario).refused, Vec::<String>::new());
}

#[test]
fn a_step_that_a_persons_word_made_unwanted_changes_nothing() {
    let mut scenario = interview();
    let effect = next(scenario.workflow())[0].id.clone();
    scenario.send(
        &Actor::Engine,
        &WorkflowCommand::Intend {
            effect: effect.clone(),
        },
    );
    let text = "Windows, too.".to_owned();
    scenario.send(&human(), &WorkflowCommand::Revise { text });
    let wanted = next(scenario.workflow());
    assert_ne!(wanted[0].id, effect);
    let WorkflowAction::Ask(asked) = &wanted[0].action else {
        panic!("{wanted:?}");
    };
    assert_eq!(
        asked.ordinal, 1,
        "a scripted agent is not a question further"
    );
    assert!(asked.prompt.contains("Windows, too."));
    let outcome = crate::rules::scenario::answered(ModeAnswer::Interview(ask("Old?")));
    let report = WorkflowCommand::Report {
        effect,
        outcome: Box::new(outcome),
    };
    assert_eq!(
        scenario.send(&Actor::Engine, &report).len(),
        1,
        "that it ended, and nothing else"
    );
    assert_eq!(of(&scenario).phase, InterviewPhase::Asking);
}

#[test]
fn a_revision_is_a_round_and_the_next_draft_may_rest_on_it() {
    let mut scenario = drafted();
    let first = scenario.workflow().pending.as_ref().unwrap().sha256.clone();
    let text = "Windows, too.".to_owned();
    scenario.send(&human(), &WorkflowCommand::Revise { text });
    assert_eq!(of(&scenario).phase, InterviewPhase::Asking);
    let round = of(&scenario).rounds.last().unwrap().number;
    let mut more = spec(GOAL, &[0, 1]);
    more.constraints.push(item("It runs on Windows.", &[round]));
    proposed(&mut scenario, draft(more));
    assert_ne!(scenario.workflow().pending.as_ref().unwrap().sha256, first);
    scenario.approve();
    let reopen = to_interview(InterviewCommand::Reopen {
        reason: "And macOS.".to_owned(),
    });
    assert_eq!(code(&mut scenario, &agent(), &reopen), "not_human");
    scenario.send(&human(), &reopen);
    assert_eq!(of(&scenario).phase, InterviewPhase::Asking);
    assert_eq!(code(&mut scenario, &human(), &reopen), "wrong_phase");
}

#[test]
fn a_remark_beside_an_open_question_leaves_it_open() {
    let mut scenario = interview();
    proposed(&mut scenario, ask("Fast?"));
    let text = "Windows, too.".to_owned();
    let events = scenario.send(&human(), &WorkflowCommand::Revise { text });
    let last = events.last().unwrap();
    assert!(matches!(
        last,
        WorkflowEvent::Mode(ModeEvent::Interview(InterviewEvent::Remarked {
            round: 2,
            ..
        }))
    ));
    assert_eq!(of(&scenario).open().unwrap().number, 1);
    scenario.send(&human(), &says(1, "Yes."));
    proposed(&mut scenario, ask("Cheap?"));
    assert_eq!(of(&scenario).open().unwrap().number, 3);
}
