//! What the agents of the simulated story answer: a function of the workflow as it stands.
//!
//! Together the answers lead through nearly every event of both modes.

use kapi_goal::rules::plan::task::TaskId;
use kapi_workflow::rules::branch::BranchType;
use kapi_workflow::rules::handover::{Boundaries, Item, OpenQuestion, Spec, SuccessCriterion};
use kapi_workflow::rules::modes::interview::round::{Perspective, Question};
use kapi_workflow::rules::modes::interview::score::{Clarity, Dimension};
use kapi_workflow::rules::modes::interview::state::Interview;
use kapi_workflow::rules::modes::interview::step::{Fact, Found, Next, Step};
use kapi_workflow::rules::modes::ralph::answer::{Accounting, RalphAnswer};
use kapi_workflow::rules::modes::ralph::plan::{
    Consensus, Considered, Criterion, Isolation, Objection, Objections, Plan, PlanTask, Synthesis,
};
use kapi_workflow::rules::modes::ralph::review::{Category, Finding, Findings};
use kapi_workflow::rules::modes::ralph::role::RalphRole;
use kapi_workflow::rules::modes::ralph::state::Ralph;
use kapi_workflow::rules::role::RoleSpec;

use crate::workflow_sim::tale::Tale;

/// What the goal is said to be.
const GOAL: &str = "Sessions outlive a crash of the store.";

/// Returns the next step of the interview.
pub(super) fn step(interview: &Interview) -> Step {
    let rounds = interview.rounds.len();
    let mut step = Step {
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
            step.contradictions = vec![Found {
                rounds: vec![2, 5],
                text: "Both cannot hold.".to_owned(),
            }];
            step.next = ask(rounds, vec![1]);
        }
        6 => {
            let goal = GOAL.to_owned();
            step.next = Next::Restate { goal };
        }
        7 | 8 => step.next = draft(interview),
        _ => {}
    }
    step
}

fn question(number: usize) -> Question {
    Question {
        text: format!("What about number {number}?"),
        dimension: Dimension::Goal,
        perspective: Perspective::Breadth,
        proposed: Some("Like so.".to_owned()),
    }
}

fn ask(rounds: usize, settles: Vec<u32>) -> Next {
    let question = question(rounds);
    Next::Ask { question, settles }
}

fn fact() -> Fact {
    Fact {
        question: Question {
            text: "In which language is it?".to_owned(),
            ..question(0)
        },
        answer: "Rust.".to_owned(),
        refs: vec!["Cargo.toml".to_owned()],
    }
}

fn draft(interview: &Interview) -> Next {
    let item = |text: &str| {
        vec![Item {
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
        open_questions: vec![OpenQuestion {
            text: "How long?".to_owned(),
            blocking: false,
        }],
        non_goals: item("Speed."),
        context: item("There is a store."),
    };
    Next::Draft {
        spec: Box::new(spec),
    }
}

/// Returns what is answered in a role of a build.
pub(super) fn answer(tale: Tale, role: &RoleSpec, ralph: &Ralph) -> Option<RalphAnswer> {
    Some(match RalphRole::of(role)? {
        RalphRole::Thesis => RalphAnswer::Thesis(plan(tale)),
        RalphRole::Antithesis => RalphAnswer::Antithesis(Objections {
            strongest: "It may be slow.".to_owned(),
            tension: "Safety or speed.".to_owned(),
            objections: vec![Objection {
                text: "Nothing tests the end.".to_owned(),
                blocking: true,
            }],
        }),
        RalphRole::Synthesis => RalphAnswer::Synthesis(synthesis(tale, ralph)),
        RalphRole::Reviewer => RalphAnswer::Review(findings(tale, ralph)),
        RalphRole::Accountant => RalphAnswer::Account(Accounting {
            rationale: "Every check passed.".to_owned(),
            risks: vec!["The disk may lie.".to_owned()],
            follow_up: vec!["Watch it.".to_owned()],
        }),
    })
}

fn synthesis(tale: Tale, ralph: &Ralph) -> Synthesis {
    let is_second = ralph.cycle > 1 || ralph.attempts.len() > 1;
    Synthesis {
        verdict: match tale {
            Tale::Whole if is_second => Consensus::Consensus,
            Tale::Whole | Tale::Rough => Consensus::Revise,
        },
        answers: vec!["Taken over.".to_owned()],
        dissent: Vec::new(),
        plan: plan(tale),
    }
}

fn findings(tale: Tale, ralph: &Ralph) -> Findings {
    if tale == Tale::Rough || !ralph.reviews.is_empty() {
        return Findings {
            approve: true,
            summary: "Looked at all of it.".to_owned(),
            findings: Vec::new(),
            replan: None,
        };
    }
    Findings {
        approve: false,
        summary: "One thing is wrong.".to_owned(),
        findings: vec![Finding {
            category: Category::Correctness,
            must_fix: true,
            file: Some("src/store.rs".to_owned()),
            line: Some(7),
            title: "An empty session is lost".to_owned(),
            detail: "It is written as nothing.".to_owned(),
        }],
        replan: None,
    }
}

/// Two tasks beside each other, and in the longer story one after both.
fn plan(tale: Tale) -> Plan {
    let last = match tale {
        Tale::Whole => task("T-003", &["T-001", "T-002"], "src/load"),
        Tale::Rough => None,
    };
    Plan {
        summary: "Write it down first.".to_owned(),
        branch_type: BranchType::Feat,
        context: "There is a store.".to_owned(),
        options: vec![considered("log", None), considered("copy", Some("Slow."))],
        tasks: [
            task("T-001", &[], "src/log"),
            task("T-002", &[], "src/store"),
            last,
        ]
        .into_iter()
        .flatten()
        .collect(),
        criteria: vec![Criterion {
            id: "AC-1".to_owned(),
            text: "A session is there after a crash.".to_owned(),
            verify: Some("sh check.sh".to_owned()),
            exempt: None,
        }],
        excluded: vec!["Speed.".to_owned()],
        risks: vec!["Disks lie.".to_owned()],
        verify: vec!["sh all.sh".to_owned()],
    }
}

fn considered(name: &str, rejected: Option<&str>) -> Considered {
    Considered {
        name: name.to_owned(),
        summary: format!("A {name}."),
        rejected: rejected.map(str::to_owned),
    }
}

fn task(id: &str, after: &[&str], touches: &str) -> Option<PlanTask> {
    let ids = after.iter().filter_map(|id| TaskId::parse(id).ok());
    Some(PlanTask {
        id: TaskId::parse(id).ok()?,
        title: format!("Do {id}"),
        description: "As the plan says.".to_owned(),
        depends_on: ids.collect(),
        touches: vec![format!("{touches}/**")],
        isolation: Isolation::Own,
        verify: vec![format!("sh {id}.sh")],
        criteria: vec!["AC-1".to_owned()],
    })
}
