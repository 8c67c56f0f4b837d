//! The model check of the interview's machine, in two searches: what is said, and what goes wrong.
//!
//! Together they cover every rule; apart they end.

use kapi_core::actor::Actor;
use kapi_core::failure::Failure;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::mode::Mode;
use kapi_core::usage::Usage;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::command::WorkflowCommand;
use crate::rules::documents::documents;
use crate::rules::effect::next;
use crate::rules::evidence::{Weight, WorkflowEvidence};
use crate::rules::limits::LimitRaises;
use crate::rules::model::{Alphabet, print, search};
use crate::rules::modes::interview::command::InterviewCommand;
use crate::rules::modes::interview::prompt::effect_id;
use crate::rules::modes::interview::round::Provenance;
use crate::rules::modes::interview::scenario::{
    GOAL, ask, ask_to_settle, clarity, contradiction, draft, fact, propose, restate, says, spec,
    to_interview,
};
use crate::rules::modes::interview::spec::APPROVE_SPEC;
use crate::rules::modes::interview::state::{Interview, InterviewPhase};
use crate::rules::modes::interview::step::InterviewStep;
use crate::rules::modes::ralph::answer::{Accounting, RalphAnswer};
use crate::rules::modes::ralph::command::RalphCommand;
use crate::rules::modes::{Body, ModeAnswer, ModeCommand};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::pending::Means;
use crate::rules::scenario::{
    NOW_MS, WorkflowTestScenario, agent, answered, approve, hash, human, identity, start_interview,
    terms,
};
use crate::rules::spent;
use crate::rules::state::Workflow;
use crate::rules::terms::WorkflowTerms;

fn of(workflow: &Workflow) -> &Interview {
    let Body::Interview(interview) = &workflow.body else {
        panic!("not an interview");
    };
    interview
}

/// Everybody asks for everything.
fn by_everybody(commands: Vec<WorkflowCommand>) -> Vec<(Actor, WorkflowCommand)> {
    let actors = [human(), agent(), Actor::Engine];
    let all = commands
        .into_iter()
        .flat_map(|command| actors.clone().map(|actor| (actor, command.clone())));
    all.collect()
}

/// What may be asked of every workflow.
fn shared(workflow: &Workflow) -> Vec<WorkflowCommand> {
    let hash = workflow
        .pending
        .as_ref()
        .map_or("none", |it| it.sha256.as_str());
    let in_advance = WorkflowCommand::Approve {
        sha256: hash.to_owned(),
        found: hash.to_owned(),
        means: Means::InAdvance,
        accepts_risks: true,
    };
    vec![
        approve(hash, hash, true),
        approve(hash, hash, false),
        approve("other", hash, true),
        approve(hash, "other", true),
        in_advance,
        WorkflowCommand::Revise {
            text: "Windows, too.".to_owned(),
        },
        WorkflowCommand::Revise {
            text: " ".to_owned(),
        },
        WorkflowCommand::Unblock {},
        WorkflowCommand::RaiseLimits {
            more: LimitRaises {
                tokens: 1_000,
                usd_micros: 0,
                wall_ms: 0,
            },
        },
        WorkflowCommand::Abandon {
            reason: "no more".to_owned(),
        },
    ]
}

/// What only shows that it is refused, or changes nothing that a rule looks at.
fn strange(workflow: &Workflow) -> Vec<WorkflowCommand> {
    let evidence = |weight, reference: &str| {
        WorkflowCommand::RecordEvidence(Box::new(WorkflowEvidence {
            weight,
            kind: "note".to_owned(),
            summary: "seen".to_owned(),
            reference: reference.to_owned(),
            command: None,
            exit_code: None,
            role: None,
            verdict: None,
            phase: None,
            artifacts: Vec::new(),
            worker: None,
            verifier: None,
            at_ms: NOW_MS,
        }))
    };
    let stray = EffectId::new(99, "interviewer", 9);
    vec![
        start_interview(terms(), None),
        evidence(Weight::Narrative, "file:interview.md"),
        evidence(Weight::Validation, "git:c0ffee"),
        evidence(Weight::Narrative, "somewhere"),
        WorkflowCommand::MarkIntegrated {
            by: workflow.id.clone(),
        },
        WorkflowCommand::Intend {
            effect: stray.clone(),
        },
        WorkflowCommand::Report {
            effect: stray,
            outcome: Box::new(answered(ModeAnswer::Interview(ask("Why?")))),
        },
        WorkflowCommand::RefreshWorker {
            worker: crate::rules::worker::WorkerId("w1".to_owned()),
            note: None,
            terminal: None,
            isolated: None,
        },
        WorkflowCommand::QueueWork {
            effect: EffectId::new(9, "work-T-001", 9),
            goal: workflow.id.clone(),
            task: kapi_core::task_id::KernelTaskId::new(1),
        },
        WorkflowCommand::Mode(ModeCommand::Ralph(RalphCommand::ReopenPlan {
            reason: "no".to_owned(),
        })),
    ]
}

/// What a person says in an interview.
fn said(interview: &Interview) -> Vec<WorkflowCommand> {
    let round = interview.open().map_or(1, |open| open.number);
    let branch = |mode| {
        to_interview(InterviewCommand::Branch {
            mode,
            workflow: GoalId::parse("002-recover").unwrap(),
        })
    };
    let from_nobody = InterviewCommand::Answer {
        round,
        text: "guess".to_owned(),
        provenance: Provenance::Assumption,
    };
    vec![
        says(round, "because"),
        says(round, ""),
        says(round, "yes"),
        says(round + 7, "because"),
        to_interview(from_nobody),
        to_interview(InterviewCommand::Defer {
            round,
            reason: None,
        }),
        to_interview(InterviewCommand::Withdraw {
            round,
            reason: "asked badly".to_owned(),
        }),
        to_interview(InterviewCommand::Enough {}),
        branch(Mode::Ralph),
        branch(Mode::Integrate),
        to_interview(InterviewCommand::Reopen {
            reason: "not clear".to_owned(),
        }),
    ]
}

/// Returns steps of every kind, good and bad.
fn steps(interview: &Interview) -> Vec<InterviewStep> {
    let text = format!("What of {}?", interview.next_round());
    let goal = interview.confirmed_goal().unwrap_or(GOAL).to_owned();
    let mut answered = interview.answered().map(|(round, _)| round.number);
    let pair: Vec<u32> = answered.by_ref().take(2).collect();
    let with = |mut step: InterviewStep, change: fn(&mut InterviewStep)| {
        change(&mut step);
        step
    };
    let three_facts = |step: &mut InterviewStep| {
        step.facts = vec![fact("Which?"), fact("Where?"), fact("When?")];
    };
    let scored = |step: &mut InterviewStep| step.clarity = Some(clarity(true));
    let badly = |step: &mut InterviewStep| step.clarity = Some(clarity(false));
    let mut contradicts = ask(&text);
    contradicts.contradictions = vec![contradiction(&pair)];
    let mut settling = ask_to_settle(&text, &[1]);
    settling.contradictions = vec![contradiction(&pair)];
    let unsettled: Vec<u32> = interview.unsettled().map(|(number, _)| number).collect();
    vec![
        ask(&text),
        ask("One? Two?"),
        with(ask(&text), three_facts),
        with(ask(&text), scored),
        with(ask(&text), badly),
        contradicts,
        settling,
        ask_to_settle(&text, &unsettled),
        restate(GOAL),
        restate("Another goal."),
        draft(spec(&goal, &[0])),
        with(draft(spec(&goal, &[0])), scored),
        draft(spec("Something else.", &[0])),
        draft(spec(&goal, &[])),
    ]
}

fn conversation(workflow: &Workflow) -> Vec<(Actor, WorkflowCommand)> {
    let interview = of(workflow);
    let mut commands = shared(workflow);
    commands.extend(strange(workflow));
    commands.extend(said(interview));
    let mut all = by_everybody(commands);
    let proposals = steps(interview).into_iter().map(propose);
    all.extend(proposals.map(|command| (agent(), command)));
    all
}

fn conversation_key(workflow: &Workflow) -> String {
    let interview = of(workflow);
    let restated = interview.restated.as_ref();
    let settles = interview
        .open()
        .is_some_and(|open| !open.settles.is_empty());
    format!(
        "{:?} {:?} enough {} goal {:?} answered {} alone {} unsettled {} settles {settles}",
        workflow.status,
        interview.phase,
        interview.is_enough,
        restated.map(|it| (it.times.min(2), it.is_confirmed)),
        interview.answered().count() >= 3,
        interview.without_a_person() >= 3,
        interview.unsettled().count().min(1),
    )
}

/// What the engine can tell of what is under way, and what it can begin.
fn engines(workflow: &Workflow) -> Vec<(Actor, WorkflowCommand)> {
    let interview = of(workflow);
    let mut all = Vec::new();
    for effect in next(workflow) {
        all.push(WorkflowCommand::Intend { effect: effect.id });
    }
    let much = Usage {
        input_tokens: 600,
        output_tokens: 0,
        usd_micros: None,
        ..Usage::ZERO
    };
    for effect in workflow.in_flight.keys() {
        let report = |outcome: WorkflowOutcome| WorkflowCommand::Report {
            effect: effect.clone(),
            outcome: Box::new(outcome),
        };
        let failed = |may_pass| WorkflowOutcome::Failed {
            failure: Failure {
                message: "reach a model".to_owned(),
                hint: None,
            },
            may_pass,
            usage: Usage::default(),
        };
        let text = format!("What of {}?", interview.next_round());
        let goal = interview.confirmed_goal().unwrap_or(GOAL);
        all.extend([
            report(answered(ModeAnswer::Interview(ask(&text)))),
            report(answered(ModeAnswer::Interview(restate(GOAL)))),
            report(answered(ModeAnswer::Interview(draft(spec(goal, &[0]))))),
            report(answered(ModeAnswer::Interview(ask("One? Two?")))),
            report(answered(ModeAnswer::Ralph(RalphAnswer::Account(
                Accounting {
                    rationale: String::new(),
                    risks: Vec::new(),
                    follow_up: Vec::new(),
                },
            )))),
            report(WorkflowOutcome::Unreadable {
                by: identity("r2"),
                why: "answer in JSON".to_owned(),
                usage: much,
            }),
            report(WorkflowOutcome::Cancelled {
                usage: Usage::default(),
            }),
            report(failed(true)),
            report(failed(false)),
            report(WorkflowOutcome::Prepared {
                branch: "b".to_owned(),
                worktree: "w".to_owned(),
                baseline: None,
            }),
            WorkflowCommand::Progress {
                effect: effect.clone(),
                usage: much,
            },
            WorkflowCommand::Progress {
                effect: effect.clone(),
                usage: Usage::default(),
            },
        ]);
    }
    by_everybody(all)
}

fn trouble(workflow: &Workflow) -> Vec<(Actor, WorkflowCommand)> {
    let interview = of(workflow);
    let round = interview.open().map_or(1, |open| open.number);
    let mut all = engines(workflow);
    let branch = InterviewCommand::Branch {
        mode: Mode::Autoresearch,
        workflow: GoalId::parse("002-recover").unwrap(),
    };
    let mut commands = shared(workflow);
    commands.extend([
        says(round, "because"),
        says(round, "yes"),
        to_interview(InterviewCommand::Enough {}),
        to_interview(branch),
    ]);
    all.extend(commands.into_iter().map(|command| (human(), command)));
    all.push((agent(), propose(ask("What else?"))));
    all
}

fn trouble_key(workflow: &Workflow) -> String {
    let interview = of(workflow);
    let current = effect_id(interview);
    let left = spent::left(workflow).tokens;
    format!(
        "{:?} {:?} goal {:?} refused {} failed {:?} under way {} {} left {:?}",
        workflow.status,
        interview.phase,
        interview.confirmed_goal().is_some(),
        interview.refused.len(),
        workflow.failures.get(&current),
        workflow.in_flight.contains_key(&current),
        workflow.in_flight.keys().any(|effect| *effect != current),
        left.map(|left| left.min(1_200)),
    )
}

fn waits(workflow: &Workflow) -> bool {
    of(workflow).open().is_some() || of(workflow).phase == InterviewPhase::Branch
}

fn is_success(workflow: &Workflow) -> bool {
    workflow.status == WorkflowStatus::Linked
}

fn holds(workflow: &Workflow) -> Result<(), String> {
    let interview = of(workflow);
    let asked = matches!(
        interview.phase,
        InterviewPhase::Awaiting | InterviewPhase::Restating
    );
    let open = interview.rounds.iter().filter(|round| {
        matches!(
            round.reply,
            crate::rules::modes::interview::round::QuestionReply::Open
        )
    });
    let check = |holds: bool, what: &str| holds.then_some(()).ok_or_else(|| what.to_owned());
    check(
        open.count() == usize::from(asked),
        "not exactly one open question",
    )?;
    let needs = matches!(
        interview.phase,
        InterviewPhase::Branch | InterviewPhase::Linked
    );
    check(
        is_approved(workflow) || !needs,
        "it went on without an approval of what it is",
    )?;
    check(
        (workflow.status == WorkflowStatus::Linked) == (interview.phase == InterviewPhase::Linked),
        "phase and status differ",
    )?;
    let waits = interview.phase == InterviewPhase::Spec && !workflow.status.is_terminal();
    check(
        workflow.pending.is_some() == waits,
        "a draft without its decision, or the reverse",
    )?;
    let numbers = (1..).zip(&interview.rounds);
    let in_order = numbers
        .into_iter()
        .all(|(number, round)| round.number == number);
    check(in_order, "rounds are not in order")?;
    let never = matches!(
        workflow.status,
        WorkflowStatus::Completed | WorkflowStatus::Failed | WorkflowStatus::Integrated
    );
    check(!never, "an interview ended as another mode does")
}

/// Tells whether the last approval is of the spec as it is, byte for byte.
fn is_approved(workflow: &Workflow) -> bool {
    let all = documents(workflow);
    let spec = all.iter().find(|document| document.name == "spec.md");
    let sha256 = spec.map(|spec| hash(spec.text.as_bytes()));
    let last = workflow.approvals.last();
    let is_of_spec = last.filter(|approval| approval.decision == APPROVE_SPEC);
    is_of_spec.is_some_and(|approval| Some(&approval.sha256) == sha256.as_ref())
}

fn started(terms: WorkflowTerms, commit: Option<&str>) -> Workflow {
    let scenario = WorkflowTestScenario::begin(&start_interview(terms, commit));
    scenario.workflow.unwrap()
}

#[test]
fn whatever_is_said_an_interview_can_be_brought_to_its_end() {
    let alphabet = Alphabet {
        starts: vec![started(terms(), Some("c0ffee")), started(terms(), None)],
        commands: conversation,
        key: |workflow| {
            let has_repository = of(workflow).commit.is_some();
            format!("{has_repository} {}", conversation_key(workflow))
        },
        waits,
        is_success,
        holds,
    };
    let found = search(&alphabet);
    print("interview, what is said", &found, &alphabet);
    assert!(found.states > 50 && found.transitions > found.states);
}

#[test]
fn whatever_goes_wrong_an_interview_can_be_brought_to_its_end() {
    let mut limited = terms();
    limited.tokens = Some(1_000);
    let alphabet = Alphabet {
        starts: vec![started(limited, Some("c0ffee"))],
        commands: trouble,
        key: trouble_key,
        waits,
        is_success,
        holds,
    };
    let found = search(&alphabet);
    print("interview, what goes wrong", &found, &alphabet);
    assert!(found.statuses.contains_key("blocked"));
    assert!(found.states > 100 && found.transitions > found.states);
}

/// Returns everything that either search asks for.
pub(crate) fn everything(workflow: &Workflow) -> Vec<(Actor, WorkflowCommand)> {
    let mut all = conversation(workflow);
    all.extend(trouble(workflow));
    all
}
