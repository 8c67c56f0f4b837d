//! The argument about a plan: who may speak, what an answer must hold, and when it ends.
//!
//! At most five attempts a cycle; the first consensus ends it. Without one the best plan is proposed
//! with what speaks against it, which a person must accept.

use std::cmp::Reverse;

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_core::quote::head;

use crate::rules::branch::BranchType;
use crate::rules::decide::asked;
use crate::rules::decision_draft::DecisionDraft;
use crate::rules::event::WorkflowEvent;
use crate::rules::evidence::{Weight, WorkflowEvidence};
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::ModeAnswer;
use crate::rules::modes::ralph::answer::RalphAnswer;
use crate::rules::modes::ralph::decide::{carry, close};
use crate::rules::modes::ralph::event::RalphEvent;
use crate::rules::modes::ralph::plan::sound::{
    ITEMS_MAX, LONG_BYTES_MAX, PlanFault, doubts, sound,
};
use crate::rules::modes::ralph::plan::{
    ATTEMPTS_MAX, Attempt, Consensus, Objections, RalphPlan, Synthesis,
};
use crate::rules::modes::ralph::role::RalphRole;
use crate::rules::modes::ralph::spec::APPROVE_PLAN;
use crate::rules::modes::ralph::state::Ralph;
use crate::rules::modes::ralph::want::checks_base;
use crate::rules::pending::{DecisionApproval, Means};
use crate::rules::terms::PlanApproval;

/// The most bytes of what a refused answer is told.
const WHY_BYTES_MAX: usize = 4 * 1024;

/// Takes an answer, or says what is wrong with it.
pub(super) fn answered(
    draft: &mut DecisionDraft<'_, Ralph>,
    role: RalphRole,
    by: &ReviewerIdentity,
    answer: &ModeAnswer,
) {
    let taken = match (role, answer) {
        (RalphRole::Thesis, ModeAnswer::Ralph(RalphAnswer::Thesis(plan))) => {
            thesis(draft, by, plan)
        }
        (RalphRole::Antithesis, ModeAnswer::Ralph(RalphAnswer::Antithesis(objections))) => {
            antithesis(draft, by, objections)
        }
        (RalphRole::Synthesis, ModeAnswer::Ralph(RalphAnswer::Synthesis(answer))) => {
            synthesis(draft, by, answer)
        }
        (RalphRole::Reviewer, ModeAnswer::Ralph(RalphAnswer::Review(findings))) => {
            close::reviewed(draft, by, findings)
        }
        (RalphRole::Accountant, ModeAnswer::Ralph(RalphAnswer::Account(said))) => {
            close::accounted(draft, said)
        }
        (_, _) => Err("the answer does not have the form that this role needs".to_owned()),
    };
    if let Err(why) = taken {
        draft.refuse(role, head(&why, WHY_BYTES_MAX));
    }
}

fn thesis(
    draft: &mut DecisionDraft<'_, Ralph>,
    by: &ReviewerIdentity,
    plan: &RalphPlan,
) -> Result<(), String> {
    check_plan(draft, plan)?;
    let cycle = draft.now.cycle;
    let before = draft.now.attempts.last();
    let before = before.filter(|attempt| attempt.cycle == cycle);
    let attempt = before.map_or(1, |attempt| attempt.number.saturating_add(1));
    draft.fact(RalphEvent::ThesisRecorded {
        cycle,
        attempt,
        by: by.clone(),
        plan: Box::new(plan.clone()),
    });
    Ok(())
}

fn antithesis(
    draft: &mut DecisionDraft<'_, Ralph>,
    by: &ReviewerIdentity,
    said: &Objections,
) -> Result<(), String> {
    let (cycle, attempt) = speaks_first(&draft.now, by)?;
    let texts = said.objections.iter().map(|objection| &objection.text);
    let mut texts = texts.chain([&said.strongest, &said.tension]);
    if texts.any(|text| is_bad(text)) || said.objections.len() > ITEMS_MAX {
        return Err(format!(
            "strongest, tension and every objection need 1 to {LONG_BYTES_MAX} bytes, and there \
             may be {ITEMS_MAX} objections at most"
        ));
    }
    draft.fact(RalphEvent::AntithesisRecorded {
        cycle,
        attempt,
        by: by.clone(),
        objections: said.clone(),
    });
    Ok(())
}

fn synthesis(
    draft: &mut DecisionDraft<'_, Ralph>,
    by: &ReviewerIdentity,
    said: &Synthesis,
) -> Result<(), String> {
    let (cycle, attempt) = speaks_first(&draft.now, by)?;
    let n_objections = draft.now.attempts.last().and_then(|attempt| {
        let (_, objections) = attempt.antithesis.as_ref()?;
        Some(objections.objections.len())
    });
    let n_objections = n_objections.unwrap_or(0);
    if said.answers.len() != n_objections || said.answers.iter().any(|text| is_bad(text)) {
        return Err(format!(
            "answers needs {n_objections} entries, one for each objection in its order, of 1 to \
             {LONG_BYTES_MAX} bytes each"
        ));
    }
    if said.dissent.len() > ITEMS_MAX || said.dissent.iter().any(|text| is_bad(text)) {
        return Err(format!(
            "dissent may have {ITEMS_MAX} entries, none of them empty"
        ));
    }
    check_plan(draft, &said.plan)?;
    draft.fact(RalphEvent::SynthesisRecorded {
        cycle,
        attempt,
        by: by.clone(),
        synthesis: Box::new(said.clone()),
    });
    match said.verdict {
        Consensus::Consensus => propose(draft),
        Consensus::Revise if attempt >= ATTEMPTS_MAX => {
            draft.fact(RalphEvent::ConsensusMissed { cycle });
            propose(draft);
        }
        Consensus::Revise => {}
    }
    Ok(())
}

fn is_bad(text: &str) -> bool {
    text.trim().is_empty() || text.len() > LONG_BYTES_MAX
}

fn check_plan(draft: &DecisionDraft<'_, Ralph>, plan: &RalphPlan) -> Result<(), String> {
    let ralph = &draft.now;
    let spec = ralph.spec.as_deref();
    sound(plan, spec, &draft.workflow.terms, branch_type(ralph)).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(PlanFault::to_string).collect();
        lines.join("\n")
    })
}

/// Returns the type of the branch that is there already.
pub(super) fn branch_type(ralph: &Ralph) -> Option<BranchType> {
    let name = &ralph.branch.as_ref()?.name;
    let (prefix, _) = name.split_once('/')?;
    BranchType::ALL
        .into_iter()
        .find(|kind| kind.as_str() == prefix)
}

/// Returns cycle and attempt that are argued about; nobody speaks twice in one.
fn speaks_first(ralph: &Ralph, by: &ReviewerIdentity) -> Result<(u32, u32), String> {
    let attempt = ralph.attempts.last();
    let Some(attempt) = attempt.filter(|attempt| attempt.cycle == ralph.cycle) else {
        return Err("there is no plan to discuss".to_owned());
    };
    let thesis = attempt.thesis.as_ref().map(|(by, _)| by);
    let antithesis = attempt.antithesis.as_ref().map(|(by, _)| by);
    if thesis
        .into_iter()
        .chain(antithesis)
        .any(|other| other.run == by.run)
    {
        return Err(format!(
            "run {} has already answered in this attempt",
            by.run
        ));
    }
    Ok((attempt.cycle, attempt.number))
}

/// Proposes the plan of the cycle, once it is known what its checks say on the base.
fn propose(draft: &mut DecisionDraft<'_, Ralph>) {
    let cycle = draft.now.cycle;
    let Some(attempt) = best(&draft.now.attempts, cycle).cloned() else {
        return;
    };
    let Some((_, synthesis)) = &attempt.synthesis else {
        return;
    };
    let verdict = match synthesis.verdict {
        Consensus::Consensus => "consensus",
        Consensus::Revise => "no consensus",
    };
    let mut found = WorkflowEvidence::new(
        Weight::Narrative,
        "consensus",
        format!(
            "{verdict} on the plan of cycle {cycle} in attempt {}",
            attempt.number
        ),
        "file:consensus.md".to_owned(),
        draft.given.now_ms,
    );
    found.verdict = Some(verdict.to_owned());
    found.phase = Some("plan".to_owned());
    found.artifacts = vec!["plan.md".to_owned()];
    draft.evidence(found);
    draft.fact(RalphEvent::PlanProposed {
        cycle,
        plan: Box::new(synthesis.plan.clone()),
    });
    if !checks_base(&draft.now) {
        decide_plan(draft, &attempt);
    }
}

/// Takes what the checks of the plan said on the base, and proposes it.
pub(super) fn checked_base(draft: &mut DecisionDraft<'_, Ralph>, report: &VerifyReport) {
    draft.fact(RalphEvent::BaseChecked {
        report: report.clone(),
    });
    carry::began_with(draft, report);
    if let Some(attempt) = best(&draft.now.attempts, draft.now.cycle).cloned() {
        decide_plan(draft, &attempt);
    }
}

/// Puts the plan to the person, or approves it where they did so in advance.
fn decide_plan(draft: &mut DecisionDraft<'_, Ralph>, attempt: &Attempt) {
    let mut risks = risks(attempt);
    let decision = APPROVE_PLAN;
    let is_covered = risks.is_empty() && !draft.now.must_ask;
    // Whoever approves in advance knows that some criteria only keep what holds already.
    risks.extend(held_already(&draft.now, &risks));
    let accepted = risks.clone();
    let asked = asked(draft.workflow, &draft.events, decision, risks, draft.given);
    let WorkflowEvent::DecisionAsked { pending } = &asked else {
        return;
    };
    let sha256 = pending.sha256.clone();
    draft.events.push(asked);
    match draft.workflow.terms.plan_approval {
        PlanApproval::InAdvance if is_covered => draft.approved(WorkflowEvent::Approved {
            approval: DecisionApproval {
                decision,
                sha256,
                means: Means::InAdvance,
                by: draft.workflow.started_by.clone(),
                accepted,
                at_ms: draft.given.now_ms,
            },
        }),
        PlanApproval::Ask | PlanApproval::InAdvance => {}
    }
}

/// Returns the criteria whose checks pass on the base already, as risks; without those that others
/// name.
fn held_already(ralph: &Ralph, others: &[String]) -> Vec<String> {
    let passes = |command: &String| {
        let mut runs = ralph.baseline.iter().flat_map(|report| &report.runs);
        runs.any(|run| run.command == *command && run.passed())
    };
    let criteria = ralph.plan.iter().flat_map(|plan| &plan.criteria);
    let held = criteria.filter_map(|criterion| {
        let command = criterion.verify.as_ref().filter(|it| passes(it))?;
        let quoted = format!("`{command}`");
        if others.iter().any(|risk| risk.contains(&quoted)) {
            return None;
        }
        Some(format!(
            "{}: {quoted} passes before anything is done, so it shows nothing about the work",
            criterion.id
        ))
    });
    held.collect()
}

/// Returns the attempt of a cycle with the best plan: consensus first, then the fewest objections
/// that block it, then the least dissent, then the latest.
pub(super) fn best(attempts: &[Attempt], cycle: u32) -> Option<&Attempt> {
    let ended = attempts
        .iter()
        .filter(|attempt| attempt.cycle == cycle && attempt.synthesis.is_some());
    ended.min_by_key(|attempt| {
        let synthesis = attempt.synthesis.as_ref().map(|(_, synthesis)| synthesis);
        let is_argued = synthesis.is_none_or(|found| found.verdict == Consensus::Revise);
        let n_dissent = synthesis.map_or(0, |synthesis| synthesis.dissent.len());
        (
            is_argued,
            n_blocking(attempt),
            n_dissent,
            Reverse(attempt.number),
        )
    })
}

fn n_blocking(attempt: &Attempt) -> usize {
    attempt.antithesis.as_ref().map_or(0, |(_, said)| {
        said.objections
            .iter()
            .filter(|objection| objection.blocking)
            .count()
    })
}

/// Returns what speaks against the plan of an attempt and must be accepted with it.
fn risks(attempt: &Attempt) -> Vec<String> {
    let Some((_, synthesis)) = &attempt.synthesis else {
        return Vec::new();
    };
    let missed = format!("no consensus was reached in {ATTEMPTS_MAX} attempts");
    let missed = (synthesis.verdict == Consensus::Revise).then_some(missed);
    let dissent = synthesis
        .dissent
        .iter()
        .map(|text| format!("dissent: {text}"));
    let doubts = doubts(&synthesis.plan).into_iter();
    let doubts = doubts.map(|text| text.trim_end_matches('.').to_owned());
    missed.into_iter().chain(dissent).chain(doubts).collect()
}
