//! The interview in the simulator: the story of one that is asked, approved, opened again and built
//! from, and what its agent answers.
//!
//! Together the answers lead through every event of the mode.

use kapi_core::workflow_status::WorkflowStatus;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::effect::{AgentQuestion, WorkflowEffect};
use kapi_workflow::rules::handover::{
    Boundaries, HandoverItem, HandoverQuestion, Spec, SuccessCriterion,
};
use kapi_workflow::rules::modes::interview::begin::InterviewBegin;
use kapi_workflow::rules::modes::interview::command::InterviewCommand;
use kapi_workflow::rules::modes::interview::event::InterviewEvent;
use kapi_workflow::rules::modes::interview::round::{InterviewQuestion, Perspective, Provenance};
use kapi_workflow::rules::modes::interview::score::{Clarity, Dimension};
use kapi_workflow::rules::modes::interview::state::{Interview, InterviewPhase};
use kapi_workflow::rules::modes::interview::step::{
    Contradictions, Fact, InterviewIntent, InterviewStep,
};
use kapi_workflow::rules::modes::{Begin, Body, ModeCommand};
use kapi_workflow::rules::outcome::WorkflowOutcome;
use kapi_workflow::rules::state::Workflow;

use crate::workflow_sim::modes::{NoAnswer, ralph};
use crate::workflow_sim::script::{self, Deed, WorkflowScript, by_person, usual};

kinds! {
    KINDS, kind: InterviewEvent as "Interview::"
    [
        QuestionAsked, GoalRestated, FactFound, AnswerRecorded, Remarked, GoalConfirmed,
        QuestionDeferred, QuestionWithdrawn, ScoreRecorded, ContradictionNamed, EnoughSaid,
        StepRefused, SpecDrafted, Branched, Reopened,
    ]
}

/// The story: an interview, the build that goes on from it, and a workflow that is given up.
pub(super) const TALES: &[WorkflowScript] = &[WorkflowScript {
    name: "whole",
    end: WorkflowStatus::Completed,
    next,
    deed,
}];

/// What the goal is said to be.
const GOAL: &str = "Sessions outlive a crash of the store.";

fn next(known: &[Workflow]) -> script::NextStep<'_> {
    let of = |purpose: &str| known.iter().find(|w| w.purpose.starts_with(purpose));
    let Some(interview) = of("Keep") else {
        return script::NextStep::Start("Keep sessions over a crash", begin());
    };
    match (of("Give"), of("Build")) {
        (None, _) => script::NextStep::Start("Give everything another colour", begin()),
        (Some(other), _) if !other.status.is_terminal() => script::NextStep::GiveUp(other),
        (Some(_), None) if is_at_branch(interview) => {
            let begin = ralph::begin(Some(interview.id.clone()));
            script::NextStep::Start("Build the store of sessions", begin)
        }
        (Some(_), None) => script::NextStep::Drive(interview),
        (Some(_), Some(build)) => script::NextStep::Drive(build),
    }
}

fn begin() -> Begin {
    Begin::Interview(InterviewBegin {
        commit: Some("0".repeat(40)),
    })
}

/// Tells whether the interview was approved for the second time.
fn is_at_branch(workflow: &Workflow) -> bool {
    let is_branch = |interview: &Interview| interview.phase == InterviewPhase::Branch;
    matches!(&workflow.body, Body::Interview(interview) if is_branch(interview))
        && workflow.approvals.len() > 1
}

fn deed(workflow: &Workflow) -> Option<Deed> {
    if let (WorkflowStatus::Active, None, Body::Interview(interview)) =
        (workflow.status, &workflow.pending, &workflow.body)
    {
        return answer(interview);
    }
    usual(workflow)
}

fn answer(interview: &Interview) -> Option<Deed> {
    let asked = match interview.open().map(|open| open.number) {
        Some(3) => InterviewCommand::Defer {
            round: 3,
            reason: None,
        },
        Some(4) => InterviewCommand::Withdraw {
            round: 4,
            reason: "Not now.".to_owned(),
        },
        Some(10..) => InterviewCommand::Enough {},
        Some(round) => InterviewCommand::Answer {
            round,
            text: if round == 7 {
                String::new()
            } else {
                format!("As {round} says.")
            },
            provenance: Provenance::Person,
        },
        None if interview.phase == InterviewPhase::Branch => InterviewCommand::Reopen {
            reason: "One more thing.".to_owned(),
        },
        None => return None,
    };
    by_person(WorkflowCommand::Mode(ModeCommand::Interview(asked)))
}

/// Returns what its agent says: once nothing that can be read, and once nothing at all.
pub(super) fn reply(
    _: &AgentQuestion,
    _: &Workflow,
    interview: &Interview,
    failures: usize,
) -> Result<InterviewStep, NoAnswer> {
    if interview.steps == 0 {
        return Err(NoAnswer::Unreadable("it is no JSON"));
    }
    if interview.rounds.len() == 4 && failures == 0 {
        return Err(NoAnswer::Away);
    }
    Ok(step(interview))
}

/// The third question takes long.
pub(super) const fn takes_long(_: &AgentQuestion, interview: &Interview) -> bool {
    interview.rounds.len() == 2
}

/// It has no effects but questions.
pub(super) const fn outcome(_: &WorkflowEffect, _: &Workflow) -> Option<WorkflowOutcome> {
    None
}

/// Returns every question.
pub(super) fn detail(interview: &Interview) -> Vec<String> {
    let rounds = interview.rounds.iter();
    rounds.map(|round| round.question.text.clone()).collect()
}

/// Returns the next step of the interview.
fn step(interview: &Interview) -> InterviewStep {
    let rounds = interview.rounds.len();
    let mut step = InterviewStep {
        facts: Vec::new(),
        clarity: Some(Clarity {
            goal: 900,
            constraints: 900,
            success: 900,
            context: Some(900),
        }),
        reasons: Vec::new(),
        contradictions: Vec::new(),
        next: ask(rounds, Vec::new()),
    };
    if interview.is_enough || interview.spec.is_some() && rounds < 9 {
        step.next = draft(interview);
        return step;
    }
    match rounds {
        0 => step.facts = vec![fact()],
        5 => {
            step.contradictions = vec![Contradictions {
                rounds: vec![2, 5],
                text: "Both cannot hold.".to_owned(),
            }];
            step.next = ask(rounds, vec![1]);
        }
        6 => {
            let goal = GOAL.to_owned();
            step.next = InterviewIntent::Restate { goal };
        }
        7 | 8 => step.next = draft(interview),
        _ => {}
    }
    step
}

fn question(number: usize) -> InterviewQuestion {
    InterviewQuestion {
        text: format!("What about number {number}?"),
        dimension: Dimension::Goal,
        perspective: Perspective::Breadth,
        proposed: Some("Like so.".to_owned()),
    }
}

fn ask(rounds: usize, settles: Vec<u32>) -> InterviewIntent {
    let question = question(rounds);
    InterviewIntent::Ask { question, settles }
}

fn fact() -> Fact {
    Fact {
        question: InterviewQuestion {
            text: "In which language is it?".to_owned(),
            ..question(0)
        },
        answer: "Rust.".to_owned(),
        refs: vec!["Cargo.toml".to_owned()],
    }
}

fn draft(interview: &Interview) -> InterviewIntent {
    let item = |text: &str| {
        vec![HandoverItem {
            text: text.to_owned(),
            rounds: vec![0, 2],
        }]
    };
    let goal = interview.confirmed_goal().unwrap_or(GOAL).to_owned();
    let spec = Spec {
        goal,
        intent: item("Nobody has to sign in twice."),
        constraints: item("No new dependency."),
        preferences: item("Small."),
        success_criteria: vec![SuccessCriterion {
            text: "A session is there after a crash.".to_owned(),
            verify: Some("sh check.sh".to_owned()),
            exempt: None,
            rounds: vec![2],
        }],
        methods: item("As the code does it."),
        boundaries: Boundaries {
            may: item("Names."),
            must_ask: item("Formats."),
            never: item("Deleting sessions."),
        },
        open_questions: vec![HandoverQuestion {
            text: "How long?".to_owned(),
            blocking: false,
        }],
        non_goals: item("Speed."),
        answers: Vec::new(),
        context: item("There is a store."),
    };
    InterviewIntent::Draft {
        spec: Box::new(spec),
    }
}
