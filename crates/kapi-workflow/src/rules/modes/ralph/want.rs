//! What a Ralph workflow wants under way, by name: the same answer for planning and for reports.
//!
//! Looks at nothing but the state. An effect that is not in here any more is stale, and what it
//! brings changes nothing.

use kapi_core::id::EffectId;

use crate::rules::modes::ralph::graph;
use crate::rules::modes::ralph::role::RalphRole;
use crate::rules::modes::ralph::state::{Ralph, RalphPhase, TaskState};
use crate::rules::state::Workflow;

/// One thing that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RalphWant<'a> {
    /// An agent's answer.
    Ask(RalphRole),
    /// The checks of the proposed plan on the base, so that its approval knows what they show there.
    CheckBase,
    /// The branch.
    Prepare,
    /// A goal of a task.
    Work(&'a TaskState),
    /// A proved task on the branch.
    Land(&'a TaskState),
    /// What landed merged, verified as a whole.
    VerifyMerged,
    /// Everything, verified for the closeout.
    VerifyAll,
}

/// Returns what is wanted now with the name of its effect, most urgent first.
///
/// A landing that was begun is brought to its end in every phase: whoever left it half-way would not
/// know where the branch is.
pub(crate) fn wants<'a>(workflow: &Workflow, ralph: &'a Ralph) -> Vec<(EffectId, RalphWant<'a>)> {
    let mut wants = of_phase(workflow, ralph);
    if ralph.phase != RalphPhase::Run {
        let landings = graph::proved(ralph).map(landing);
        wants.extend(landings.filter(|(id, _)| workflow.in_flight.contains_key(id)));
    }
    wants
}

fn of_phase<'a>(workflow: &Workflow, ralph: &'a Ralph) -> Vec<(EffectId, RalphWant<'a>)> {
    match ralph.phase {
        RalphPhase::Thesis => vec![question(ralph, RalphRole::Thesis)],
        RalphPhase::Antithesis => vec![question(ralph, RalphRole::Antithesis)],
        RalphPhase::Synthesis => vec![question(ralph, RalphRole::Synthesis)],
        RalphPhase::Approval if workflow.pending.is_none() && checks_base(ralph) => {
            let id = EffectId::new(ralph.cycle, "check-base", 1);
            vec![(id, RalphWant::CheckBase)]
        }
        RalphPhase::Approval => Vec::new(),
        RalphPhase::Run if ralph.branch.is_none() => {
            vec![(EffectId::new(ralph.cycle, "prepare", 1), RalphWant::Prepare)]
        }
        RalphPhase::Run => run(workflow, ralph),
        RalphPhase::Review => vec![question(ralph, RalphRole::Reviewer)],
        RalphPhase::Closeout => match &ralph.verified {
            Some((_, report)) if report.passed() => vec![question(ralph, RalphRole::Accountant)],
            Some(_) | None => vec![verification(ralph, "verify-all", RalphWant::VerifyAll)],
        },
    }
}

/// Tells whether the checks of the proposed plan are still to be run on the base; once there is a
/// branch, what landed is what they are about.
pub(crate) fn checks_base(ralph: &Ralph) -> bool {
    let has_checks = ralph.plan.as_ref().is_some_and(|plan| {
        let mut criteria = plan.criteria.iter();
        !plan.verify.is_empty() || criteria.any(|criterion| criterion.verify.is_some())
    });
    has_checks && ralph.branch.is_none() && ralph.baseline.is_none()
}

/// Returns what an effect was wanted for, if it still is.
pub(crate) fn wanted<'a>(
    workflow: &Workflow,
    ralph: &'a Ralph,
    effect: &EffectId,
) -> Option<RalphWant<'a>> {
    let found = wants(workflow, ralph)
        .into_iter()
        .find(|(id, _)| id == effect);
    found.map(|(_, want)| want)
}

/// Returns how many questions were answered in a role so far, and this one.
pub(crate) fn ordinal(ralph: &Ralph, role: RalphRole) -> u32 {
    let n = ralph.answers.get(role.as_str()).copied().unwrap_or(0);
    n.saturating_add(1)
}

/// A merged landing is verified before the next one, so that what does not hold has one owner.
fn run<'a>(workflow: &Workflow, ralph: &'a Ralph) -> Vec<(EffectId, RalphWant<'a>)> {
    let mut wants = Vec::new();
    let landings: Vec<(EffectId, RalphWant<'a>)> = graph::proved(ralph).map(landing).collect();
    let begun = |(id, _): &&(EffectId, RalphWant<'a>)| workflow.in_flight.contains_key(id);
    if ralph.unverified.is_some() {
        wants.push(verification(
            ralph,
            "verify-merged",
            RalphWant::VerifyMerged,
        ));
    } else if let Some(next) = landings.iter().find(begun).or_else(|| landings.first()) {
        wants.push(next.clone());
    }
    let working = graph::in_order(ralph).into_iter();
    let working = working.filter(|state| state.is_working);
    wants.extend(working.map(|state| {
        let id = of_task("work", state, state.drives);
        (id, RalphWant::Work(state))
    }));
    wants
}

fn question(ralph: &Ralph, role: RalphRole) -> (EffectId, RalphWant<'_>) {
    let id = EffectId::new(ralph.cycle, role.as_str(), ordinal(ralph, role));
    (id, RalphWant::Ask(role))
}

fn verification<'a>(
    ralph: &'a Ralph,
    stage: &str,
    want: RalphWant<'a>,
) -> (EffectId, RalphWant<'a>) {
    let n = ralph.verifications.saturating_add(1);
    (EffectId::new(ralph.cycle, stage, n), want)
}

/// To land what was held is another effect: the first one has come out.
fn landing(state: &TaskState) -> (EffectId, RalphWant<'_>) {
    let stage = if state.may_stray {
        "land-allowed"
    } else {
        "land"
    };
    (of_task(stage, state, state.attempt), RalphWant::Land(state))
}

fn of_task(stage: &str, state: &TaskState, n: u32) -> EffectId {
    EffectId::new(state.cycle, &format!("{stage}-{}", state.task.id), n)
}
