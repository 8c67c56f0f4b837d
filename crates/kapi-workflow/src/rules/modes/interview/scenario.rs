//! Steps, specs and words of a person that the tests of an interview are told with.
//!
//! Only for tests.

use crate::rules::command::WorkflowCommand;
use crate::rules::handover::{Boundaries, HandoverItem, HandoverQuestion, Spec, SuccessCriterion};
use crate::rules::modes::interview::command::InterviewCommand;
use crate::rules::modes::interview::round::{InterviewQuestion, Perspective, Provenance};
use crate::rules::modes::interview::score::{Clarity, Dimension};
use crate::rules::modes::interview::state::Interview;
use crate::rules::modes::interview::step::{Contradictions, Fact, InterviewIntent, InterviewStep};
use crate::rules::modes::{Body, ModeCommand};
use crate::rules::scenario::{WorkflowTestScenario, human, start_interview, terms};

/// The goal of every story.
pub(crate) const GOAL: &str = "Sign-in survives a crash.";

/// Begins an interview about a repository.
pub(crate) fn interview() -> WorkflowTestScenario {
    WorkflowTestScenario::begin(&start_interview(terms(), Some("c0ffee")))
}

/// Returns the interview of a story.
pub(crate) fn of(scenario: &WorkflowTestScenario) -> &Interview {
    let Body::Interview(interview) = &scenario.workflow().body else {
        panic!("not an interview");
    };
    interview
}

pub(crate) fn question(text: &str, proposed: Option<&str>) -> InterviewQuestion {
    InterviewQuestion {
        text: text.to_owned(),
        dimension: Dimension::Goal,
        perspective: Perspective::Breadth,
        proposed: proposed.map(str::to_owned),
    }
}

fn step(next: InterviewIntent) -> InterviewStep {
    InterviewStep {
        facts: Vec::new(),
        clarity: None,
        reasons: Vec::new(),
        contradictions: Vec::new(),
        next,
    }
}

pub(crate) fn ask(text: &str) -> InterviewStep {
    asks(question(text, None))
}

pub(crate) fn asks(question: InterviewQuestion) -> InterviewStep {
    let settles = Vec::new();
    step(InterviewIntent::Ask { question, settles })
}

pub(crate) fn ask_to_settle(text: &str, settles: &[u32]) -> InterviewStep {
    step(InterviewIntent::Ask {
        question: question(text, Some("The first.")),
        settles: settles.to_vec(),
    })
}

pub(crate) fn restate(goal: &str) -> InterviewStep {
    let goal = goal.to_owned();
    step(InterviewIntent::Restate { goal })
}

pub(crate) fn draft(spec: Spec) -> InterviewStep {
    let spec = Box::new(spec);
    step(InterviewIntent::Draft { spec })
}

pub(crate) fn fact(text: &str) -> Fact {
    Fact {
        question: question(text, None),
        answer: "cargo nextest".to_owned(),
        refs: vec!["Makefile".to_owned()],
    }
}

pub(crate) fn contradiction(rounds: &[u32]) -> Contradictions {
    Contradictions {
        rounds: rounds.to_vec(),
        text: "Both cannot hold.".to_owned(),
    }
}

/// Returns a clarity that is good enough, or not.
pub(crate) const fn clarity(is_good: bool) -> Clarity {
    let value = if is_good { 900 } else { 300 };
    Clarity {
        goal: value,
        constraints: value,
        success: value,
        context: Some(value),
    }
}

pub(crate) fn item(text: &str, rounds: &[u32]) -> HandoverItem {
    HandoverItem {
        text: text.to_owned(),
        rounds: rounds.to_vec(),
    }
}

/// Returns a spec in which every requirement rests on these rounds.
pub(crate) fn spec(goal: &str, rounds: &[u32]) -> Spec {
    let one = |text: &str| vec![item(text, rounds)];
    Spec {
        goal: goal.to_owned(),
        intent: one("Fewer support calls."),
        constraints: one("No new dependency."),
        preferences: one("Small commits."),
        success_criteria: vec![SuccessCriterion {
            text: "A test restarts the store and signs in.".to_owned(),
            verify: Some("cargo test recovery".to_owned()),
            exempt: None,
            rounds: rounds.to_vec(),
        }],
        methods: one("None stated; left to planning."),
        boundaries: Boundaries {
            may: one("Rename private functions."),
            must_ask: Vec::new(),
            never: one("Change the public API."),
        },
        open_questions: vec![HandoverQuestion {
            text: "How long sessions are kept.".to_owned(),
            blocking: false,
        }],
        non_goals: one("Single sign-on."),
        answers: Vec::new(),
        context: vec![item("One server at a time.", &[])],
    }
}

/// Wraps what is asked of an interview.
pub(crate) fn to_interview(command: InterviewCommand) -> WorkflowCommand {
    WorkflowCommand::Mode(ModeCommand::Interview(command))
}

pub(crate) fn says(round: u32, text: &str) -> WorkflowCommand {
    to_interview(InterviewCommand::Answer {
        round,
        text: text.to_owned(),
        provenance: Provenance::Person,
    })
}

pub(crate) fn propose(step: InterviewStep) -> WorkflowCommand {
    to_interview(InterviewCommand::Propose(Box::new(step)))
}

/// Lets the interviewer ask and the person answer.
pub(crate) fn talk(scenario: &mut WorkflowTestScenario, question: &str, answer: &str) {
    use crate::rules::modes::ModeAnswer;
    scenario.answer(ModeAnswer::Interview(ask(question)));
    let round = of(scenario).open().unwrap().number;
    scenario.send(&human(), &says(round, answer));
}

/// Lets the interviewer say the goal back and the person confirm it.
pub(crate) fn agree(scenario: &mut WorkflowTestScenario, goal: &str) {
    use crate::rules::modes::ModeAnswer;
    scenario.answer(ModeAnswer::Interview(restate(goal)));
    let round = of(scenario).open().unwrap().number;
    scenario.send(&human(), &says(round, "yes"));
}

/// Returns an interview with a draft that waits.
pub(crate) fn drafted() -> WorkflowTestScenario {
    use crate::rules::modes::ModeAnswer;
    let mut scenario = interview();
    talk(&mut scenario, "What hurts?", "Lost sign-ins.");
    agree(&mut scenario, GOAL);
    scenario.answer(ModeAnswer::Interview(draft(spec(GOAL, &[0, 1]))));
    scenario
}
