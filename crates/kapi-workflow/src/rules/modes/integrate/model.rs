//! The model check of an integration's machine: everything that anybody can ask for or report, from every
//! state that can be reached.
//!
//! States that differ in nothing a rule looks at are taken for one: names of commits count only as far as
//! they are compared.

mod outcome;

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::actor::Actor;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::command::WorkflowCommand;
use crate::rules::effect::next;
use crate::rules::evidence::Weight;
use crate::rules::model::{Alphabet, print, search};
use crate::rules::modes::integrate::command::IntegrateCommand;
use crate::rules::modes::integrate::fixture::{id, of, start};
use crate::rules::modes::integrate::leave::IntegrateLeave;
use crate::rules::modes::integrate::model::outcome::outcomes;
use crate::rules::modes::integrate::spec::APPROVE_PLAN;
use crate::rules::modes::integrate::state::{Argument, Integrate, IntegratePhase};
use crate::rules::modes::interview::command::InterviewCommand;
use crate::rules::pending::Means;
use crate::rules::scenario::{WorkflowTestScenario, agent, approve, hash, human};
use crate::rules::state::Workflow;

/// Cycles after which a person wants nothing changed any more.
const CYCLES_MAX: u32 = 2;

/// What goes wrong in a search of the machine; the other things go well, so that each ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    /// What does not fit, what fails, and who is left out.
    Merging,
    /// What agents say of the result.
    Arguing,
    /// What fails, is called off or is not what was asked for.
    Failing,
}

/// What a person may ask for.
fn persons(workflow: &Workflow, focus: Focus) -> Vec<WorkflowCommand> {
    let pending = workflow.pending.as_ref();
    let shown = pending.map_or("none", |pending| &pending.sha256);
    let mut commands = vec![
        approve(shown, shown, true),
        approve("other", shown, true),
        WorkflowCommand::Approve {
            sha256: shown.to_owned(),
            found: shown.to_owned(),
            means: Means::InAdvance,
            accepts_risks: true,
        },
        WorkflowCommand::Unblock {},
        WorkflowCommand::Abandon {
            reason: "no more".to_owned(),
        },
        InterviewCommand::Enough {}.into(),
        IntegrateCommand::Evict {
            source: id("099-nobody"),
            why: "It is none.".to_owned(),
        }
        .into(),
        IntegrateCommand::Clarify {
            source: id("001-one"),
            text: " ".to_owned(),
        }
        .into(),
    ];
    if of(workflow).unclear.is_some() || of(workflow).stopped.is_some() {
        let text = "It is for speed.".to_owned();
        let source = id("001-one");
        commands.push(IntegrateCommand::Clarify { source, text }.into());
    }
    let has_time = matches!(
        of(workflow).phase,
        IntegratePhase::Approval | IntegratePhase::Synthesis
    );
    if of(workflow).cycle < CYCLES_MAX && focus == Focus::Arguing && has_time {
        commands.push(WorkflowCommand::Revise {
            text: "In another order.".to_owned(),
        });
    }
    if focus == Focus::Merging && !of(workflow).leave.evicts {
        let why = "Later.".to_owned();
        let source = id("002-two");
        commands.push(IntegrateCommand::Evict { source, why }.into());
    }
    commands
}

fn commands(workflow: &Workflow, focus: Focus) -> Vec<(Actor, WorkflowCommand)> {
    let mut all = Vec::new();
    for command in persons(workflow, focus) {
        all.push((agent(), command.clone()));
        all.push((human(), command));
    }
    for effect in next(workflow) {
        let intend = WorkflowCommand::Intend { effect: effect.id };
        all.push((Actor::Engine, intend));
    }
    for effect in workflow.in_flight.keys() {
        for outcome in outcomes(workflow, focus) {
            let (effect, outcome) = (effect.clone(), Box::new(outcome));
            all.push((Actor::Engine, WorkflowCommand::Report { effect, outcome }));
        }
    }
    all
}

fn merging_commands(workflow: &Workflow) -> Vec<(Actor, WorkflowCommand)> {
    commands(workflow, Focus::Merging)
}

fn arguing_commands(workflow: &Workflow) -> Vec<(Actor, WorkflowCommand)> {
    commands(workflow, Focus::Arguing)
}

fn failing_commands(workflow: &Workflow) -> Vec<(Actor, WorkflowCommand)> {
    commands(workflow, Focus::Failing)
}

fn key(workflow: &Workflow) -> String {
    if workflow.status.is_terminal() {
        return format!("{:?}", workflow.status);
    }
    let state = of(workflow);
    let wanted: Vec<_> = next(workflow).into_iter().map(|effect| effect.id).collect();
    let flying = workflow
        .in_flight
        .keys()
        .filter(|id| wanted.contains(id))
        .count();
    let stale = workflow.in_flight.len() - flying;
    let failures = wanted
        .iter()
        .filter_map(|id| workflow.failures.get(id))
        .max();
    let refused = state.refused.values().map(Vec::len).max();
    let said: Vec<&str> = state
        .said()
        .map(|it| match it.said {
            Argument::Thesis(_) => "thesis",
            Argument::Antithesis(_) => "antithesis",
            Argument::Synthesis(_) => "synthesis",
        })
        .collect();
    format!(
        "{:?} {:?} pending {} cycle {} attempt {} wanted {} unclear {} plan {} branch {} \
         baseline {} target {} {} {} redo {} evicted {:?} verified {:?} \
         more {} coverage {:?} reviewed {} {said:?} stopped {} {refused:?} landed {} flying {flying} {} \
         {failures:?}",
        workflow.status,
        state.phase,
        workflow.pending.is_some(),
        state.cycle.min(CYCLES_MAX),
        state.attempt,
        state.wanted.is_some(),
        state.unclear.is_some(),
        state.plan.as_ref().map_or(0, |plan| plan.steps.len()),
        state.branch.is_some(),
        state.baseline.is_some(),
        state.target,
        state.start(),
        merge_key(state),
        state.redo.len().min(3),
        state
            .evicted
            .iter()
            .map(|it| &it.source)
            .collect::<Vec<_>>(),
        state.verified.as_ref().map(VerifyReport::passed),
        state.more_checks.len(),
        state
            .coverage
            .as_ref()
            .map(|it| (it.findings.len(), it.n_more)),
        state.review().is_some(),
        state.stopped.is_some(),
        state.landed.is_some(),
        stale.min(1),
    )
}

/// Returns what is on the branch, what does not fit there, and what was tried.
fn merge_key(state: &Integrate) -> String {
    let trials: Vec<_> = state
        .trials
        .iter()
        .map(|it| {
            (
                &it.sources,
                it.commit.is_some(),
                it.report.as_ref().map(VerifyReport::passed),
            )
        })
        .collect();
    let conflict = state.conflict.as_ref().map(|it| {
        let made = it.regenerated.as_ref().map(|it| it.commit.is_some());
        let is_left = (it.proposed.is_some(), it.is_worktree_left);
        (&it.source, it.paths.len(), made, is_left)
    });
    let applied: Vec<_> = state
        .applied
        .iter()
        .map(|it| (&it.source, it.resolved.len()))
        .collect();
    format!("applied {applied:?} {conflict:?} {trials:?}")
}

/// What must hold of every state of an integration.
fn holds(workflow: &Workflow) -> Result<(), String> {
    let state = of(workflow);
    let check = |holds: bool, what: &str| holds.then_some(()).ok_or_else(|| what.to_owned());
    let is_approved = workflow
        .approvals
        .iter()
        .any(|it| it.decision == APPROVE_PLAN);
    let has_done = state.branch.is_some() || !state.applied.is_empty() || state.landed.is_some();
    check(
        is_approved || !has_done,
        "something was done without an approval",
    )?;
    let waits = state.phase == IntegratePhase::Approval && !workflow.status.is_terminal();
    check(
        waits == workflow.pending.is_some(),
        "a plan without its decision, or the reverse",
    )?;
    check(
        next(workflow).len() <= 1,
        "two things are under way at once",
    )?;
    check(
        state.attempt <= crate::rules::modes::integrate::state::ATTEMPTS_MAX,
        "there is a fourth attempt",
    )?;
    let mut evicted: Vec<_> = state.evicted.iter().map(|it| &it.source).collect();
    let n_evicted = evicted.len();
    evicted.dedup();
    check(evicted.len() == n_evicted, "a source is left out twice")?;
    let there = state.there();
    check(
        there.iter().all(|id| !state.is_evicted(id)),
        "what was left out is on the branch",
    )?;
    match &state.landed {
        None => check(
            workflow.status != WorkflowStatus::Completed,
            "it is complete and dev did not move",
        ),
        Some(landed) => {
            check(landed.to == state.head(), "another head landed")?;
            check(landed.from == state.start(), "dev moved from elsewhere")?;
            check(state.is_agreed(), "it landed without the consensus")?;
            proved(workflow, state)
        }
    }
}

/// Nothing lands that no person approved, or whose checks did not pass as it stands.
fn proved(workflow: &Workflow, state: &Integrate) -> Result<(), String> {
    let at_head = format!("git:{}", state.head());
    let commands = state.commands(&state.there(), &workflow.terms.verify);
    let is_proof = |command: &String| {
        workflow.evidence.iter().any(|found| {
            found.weight == Weight::Validation
                && found.reference == at_head
                && found.command.as_ref() == Some(command)
                && found.exit_code == Some(0)
        })
    };
    if commands.is_empty() || !commands.iter().all(is_proof) {
        return Err("it landed and was not verified as it stands".to_owned());
    }
    let all = crate::rules::documents::documents(workflow);
    let plan = all.iter().find(|it| it.name == "merge-plan.md").unwrap();
    let approval = workflow.approvals.last().unwrap();
    if approval.sha256 == hash(plan.text.as_bytes()) {
        Ok(())
    } else {
        Err("the plan that was carried out is not the approved one".to_owned())
    }
}

fn check(
    title: &str,
    commands: fn(&Workflow) -> Vec<(Actor, WorkflowCommand)>,
    sources: usize,
    evicts: bool,
) {
    let leave = IntegrateLeave {
        evicts,
        brings_checkout: false,
    };
    let start = WorkflowTestScenario::begin(&start(sources, leave))
        .workflow()
        .clone();
    let alphabet = Alphabet {
        starts: vec![start],
        commands,
        key,
        waits: |_| false,
        is_success: |workflow| workflow.status == WorkflowStatus::Completed,
        holds,
    };
    let found = search(&alphabet);
    println!("{title}: {} states", found.states);
    // Only where everything goes wrong is every phase reached.
    if title.contains("merging") {
        print(title, &found, &alphabet);
    }
    assert!(found.states > 100, "{}", found.states);
}

#[test]
fn everything_that_does_not_fit_or_hold() {
    check("integrate, merging", merging_commands, 2, false);
}

#[test]
fn everything_that_does_not_fit_where_sources_may_go() {
    check(
        "integrate, merging, eviction allowed",
        merging_commands,
        2,
        true,
    );
}

#[test]
fn everything_that_can_be_said() {
    check("integrate, arguing", arguing_commands, 1, false);
}

#[test]
fn everything_that_can_fail() {
    check("integrate, failing", failing_commands, 1, false);
}
