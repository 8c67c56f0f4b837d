//! Steps, specs and words of a person that the tests of an interview are told with.
//!
//! Only for tests.

use crate::rules::command::Command;
use crate::rules::handover::{Boundaries, Item, OpenQuestion, Spec, SuccessCriterion};
use crate::rules::modes::interview::command::InterviewCommand;
use crate::rules::modes::interview::round::{Perspective, Provenance, Question};
use crate::rules::modes::interview::score::{Clarity, Dimension};
use crate::rules::modes::interview::state::Interview;
use crate::rules::modes::interview::step::{Fact, Found, Next, Step};
use crate::rules::modes::{Body, ModeCommand};
use crate::rules::story::{Story, human, start_interview, terms};

/// The goal of every story.
pub(crate) const GOAL: &str = "Sign-in survives a crash.";

/// Begins an interview about a repository.
pub(crate) fn interview() -> Story {
    Story::begin(&start_interview(terms(), Some("c0ffee")))
}

/// Returns the interview of a story.
pub(crate) fn of(story: &Story) -> &Interview {
    let Body::Interview(interview) = &story.workflow().body else {
        panic!("not an interview");
    };
    interview
}

pub(crate) fn question(text: &str, proposed: Option<&str>) -> Question {
    Question {
        text: text.to_owned(),
        dimension: Dimension::Goal,
        perspective: Perspective::Breadth,
        proposed: proposed.map(str::to_owned),
    }
}

fn step(next: Next) -> Step {
    Step {
        facts: Vec::new(),
        clarity: None,
        reasons: Vec::new(),
        contradictions: Vec::new(),
        next,
    }
}

pub(crate) fn ask(text: &str) -> Step {
    asks(question(text, None))
}

pub(crate) fn asks(question: Question) -> Step {
    let settles = Vec::new();
    step(Next::Ask { question, settles })
}

pub(crate) fn ask_to_settle(text: &str, settles: &[u32]) -> Step {
    step(Next::Ask {
        question: question(text, Some("The first.")),
        settles: settles.to_vec(),
    })
}

pub(crate) fn restate(goal: &str) -> Step {
    let goal = goal.to_owned();
    step(Next::Restate { goal })
}

pub(crate) fn draft(spec: Spec) -> Step {
    let spec = Box::new(spec);
    step(Next::Draft { spec })
}

pub(crate) fn fact(text: &str) -> Fact {
    Fact {
        question: question(text, None),
        answer: "cargo nextest".to_owned(),
        refs: vec!["Makefile".to_owned()],
    }
}

pub(crate) fn contradiction(rounds: &[u32]) -> Found {
    Found {
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

pub(crate) fn item(text: &str, rounds: &[u32]) -> Item {
    Item {
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
        open_questions: vec![OpenQuestion {
            text: "How long sessions are kept.".to_owned(),
            blocking: false,
        }],
        non_goals: one("Single sign-on."),
        context: vec![item("One server at a time.", &[])],
    }
}

/// Wraps what is asked of an interview.
pub(crate) fn to_interview(command: InterviewCommand) -> Command {
    Command::Mode(ModeCommand::Interview(command))
}

pub(crate) fn says(round: u32, text: &str) -> Command {
    to_interview(InterviewCommand::Answer {
        round,
        text: text.to_owned(),
        provenance: Provenance::Person,
    })
}

pub(crate) fn propose(step: Step) -> Command {
    to_interview(InterviewCommand::Propose(Box::new(step)))
}

/// Lets the interviewer ask and the person answer.
pub(crate) fn talk(story: &mut Story, question: &str, answer: &str) {
    use crate::rules::modes::ModeAnswer;
    story.answer(ModeAnswer::Interview(ask(question)));
    let round = of(story).open().unwrap().number;
    story.tell(&human(), &says(round, answer));
}

/// Lets the interviewer say the goal back and the person confirm it.
pub(crate) fn agree(story: &mut Story, goal: &str) {
    use crate::rules::modes::ModeAnswer;
    story.answer(ModeAnswer::Interview(restate(goal)));
    let round = of(story).open().unwrap().number;
    story.tell(&human(), &says(round, "yes"));
}

/// Returns an interview with a draft that waits.
pub(crate) fn drafted() -> Story {
    use crate::rules::modes::ModeAnswer;
    let mut story = interview();
    talk(&mut story, "What hurts?", "Lost sign-ins.");
    agree(&mut story, GOAL);
    story.answer(ModeAnswer::Interview(draft(spec(GOAL, &[0, 1]))));
    story
}
