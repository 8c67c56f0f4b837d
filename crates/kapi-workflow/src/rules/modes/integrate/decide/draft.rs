//! A decision while it is made: the events so far, and the integration as they leave it.

use kapi_core::quote::head;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::conflict::Settlement;
use crate::rules::decide::asked;
use crate::rules::decision_context::DecisionContext;
use crate::rules::event::WorkflowEvent;
use crate::rules::evidence::{Weight, WorkflowEvidence};
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::ModeEvent;
use crate::rules::modes::integrate::event::IntegrateEvent;
use crate::rules::modes::integrate::evolve;
use crate::rules::modes::integrate::plan::MergePlan;
use crate::rules::modes::integrate::role::IntegrateRole;
use crate::rules::modes::integrate::spec::APPROVE_PLAN;
use crate::rules::modes::integrate::state::{Integrate, IntegratePhase};
use crate::rules::state::Workflow;

/// The most answers of one role in a row that are refused before a person is asked.
pub(super) const REFUSED_MAX: usize = 3;
/// The most bytes of what a refused answer is told.
const WHY_BYTES_MAX: usize = 4 * 1024;

/// A decision while it is made.
pub(super) struct Draft<'a> {
    /// The workflow before the decision.
    pub(super) workflow: &'a Workflow,
    /// The integration as the events so far leave it.
    pub(super) now: Integrate,
    /// The events so far.
    pub(super) events: Vec<WorkflowEvent>,
    /// What the decision is given from outside.
    pub(super) given: &'a DecisionContext,
    is_blocked: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn new(
        workflow: &'a Workflow,
        state: &Integrate,
        given: &'a DecisionContext,
    ) -> Self {
        Self {
            workflow,
            now: state.clone(),
            events: Vec::new(),
            given,
            is_blocked: workflow.status != WorkflowStatus::Active,
        }
    }

    /// Adds a fact of the mode.
    pub(super) fn fact(&mut self, event: IntegrateEvent) {
        evolve::evolve(&mut self.now, &event);
        self.events
            .push(WorkflowEvent::Mode(ModeEvent::Integrate(event)));
    }

    /// Proposes a plan, and asks its person as soon as they can decide.
    pub(super) fn propose(&mut self, by: Option<ReviewerIdentity>, plan: MergePlan) {
        if plan.verify.is_empty() {
            self.fact(IntegrateEvent::Stopped {
                reason: "Add a command that verifies the result.".to_owned(),
            });
            let resume = self.resume();
            self.block(
                "no command would verify the result: the sources have none, and none was given"
                    .to_owned(),
                format!("{resume} --revise 'verify it with <command>'"),
            );
            return;
        }
        self.fact(IntegrateEvent::PlanDrafted {
            by,
            plan: Box::new(plan),
        });
        self.ask_for_approval();
    }

    /// Asks its person, once it is known what the checks show on the integration branch as it is.
    pub(super) fn ask_for_approval(&mut self) {
        if self.now.phase != IntegratePhase::Approval {
            return;
        }
        let risks = Vec::new();
        let (decision, given) = (APPROVE_PLAN, self.given);
        let asked = asked(self.workflow, &self.events, decision, risks, given);
        self.events.push(asked);
    }

    /// Tells a role what was wrong with its answer; too often is a person's affair.
    pub(super) fn refuse(&mut self, role: IntegrateRole, why: &str) {
        let role = role.as_str().to_owned();
        self.fact(IntegrateEvent::AnswerRefused {
            role: role.clone(),
            why: head(why, WHY_BYTES_MAX).to_owned(),
        });
        let refused = self.now.refused.get(&role).map_or(0, Vec::len);
        if refused >= REFUSED_MAX {
            let resume = self.resume();
            let out = self.now.conflict.as_ref().map_or_else(String::new, |it| {
                format!(", {resume} --evict {} goes on without it", it.source)
            });
            let reason = format!("{refused} answers in a row of the {role} were refused: {why}");
            self.block(reason, format!("{resume} asks again{out}"));
        }
    }

    /// Holds the workflow up, unless something does already.
    pub(super) fn block(&mut self, reason: String, unblock: String) {
        if !self.is_blocked {
            self.is_blocked = true;
            self.events.push(WorkflowEvent::Blocked { reason, unblock });
        }
    }

    /// Holds it up until a person's word begins another cycle.
    pub(super) fn stop(&mut self, reason: String) {
        self.fact(IntegrateEvent::Stopped {
            reason: reason.clone(),
        });
        let resume = self.resume();
        let unblock = format!("{resume} plans anew, {resume} --revise '…' says what has to change");
        self.block(reason, unblock);
    }

    /// Begins another cycle where only a person's word does: any word of theirs.
    pub(super) fn begin_anew_if_stopped(&mut self) {
        if self.now.stopped.is_some() {
            self.fact(IntegrateEvent::PlanReopened { reason: None });
        }
    }

    /// Lets it go on, where something holds it up.
    pub(super) fn unblock(&mut self) {
        if self.workflow.status == WorkflowStatus::Blocked {
            self.is_blocked = false;
            evolve::unblocked(&mut self.now);
            self.events.push(WorkflowEvent::Unblocked {});
        }
    }

    /// Returns the command that lets it go on.
    pub(super) fn resume(&self) -> String {
        format!("kapi integrate resume {:03}", self.workflow.id.index())
    }

    /// Records what became of a source's conflicts, where any are open.
    pub(super) fn settle_conflicts(&mut self, source: &str, settlement: Settlement) {
        let mut known = self.workflow.conflicts.iter();
        let mut found = self.events.iter();
        let is_new = found.any(
            |event| matches!(event, WorkflowEvent::ConflictFound { what, .. } if what == source),
        );
        if is_new || known.any(|conflict| conflict.is_open_of(source)) {
            self.events.push(WorkflowEvent::ConflictSettled {
                what: source.to_owned(),
                settlement,
            });
        }
    }

    /// Adds evidence.
    pub(super) fn evidence(&mut self, evidence: WorkflowEvidence) {
        self.events.push(WorkflowEvent::EvidenceRecorded {
            evidence: Box::new(evidence),
        });
    }

    /// Returns evidence of a commit with nothing but what every piece has.
    pub(super) fn seen(
        &self,
        weight: Weight,
        kind: &str,
        summary: String,
        commit: &str,
    ) -> WorkflowEvidence {
        let (phase, _) = self.now.phase.spec();
        WorkflowEvidence {
            weight,
            kind: kind.to_owned(),
            summary,
            reference: format!("git:{commit}"),
            command: None,
            exit_code: None,
            role: None,
            verdict: None,
            phase: Some(phase.name.to_owned()),
            artifacts: Vec::new(),
            worker: None,
            verifier: None,
            at_ms: self.given.now_ms,
        }
    }
}
