//! What a decision about an integration may propose, refuse and record.

use kapi_core::quote::head;

use crate::rules::decision_draft::DecisionDraft;
use crate::rules::evidence::{Weight, WorkflowEvidence};
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::integrate::event::IntegrateEvent;
use crate::rules::modes::integrate::plan::MergePlan;
use crate::rules::modes::integrate::role::IntegrateRole;
use crate::rules::modes::integrate::spec::APPROVE_PLAN;
use crate::rules::modes::integrate::state::{Integrate, IntegratePhase};

/// The most bytes of what a refused answer is told.
const WHY_BYTES_MAX: usize = 4 * 1024;

impl DecisionDraft<'_, Integrate> {
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
        self.ask_person(APPROVE_PLAN, Vec::new());
    }

    /// Tells a role what was wrong with its answer; too often is a person's affair.
    pub(super) fn refuse(&mut self, role: IntegrateRole, why: &str) {
        let role = role.as_str().to_owned();
        self.fact(IntegrateEvent::AnswerRefused {
            role: role.clone(),
            why: head(why, WHY_BYTES_MAX).to_owned(),
        });
        let resume = self.resume();
        let instead = self.now.conflict.as_ref().map_or_else(String::new, |it| {
            format!(", or {resume} --evict {} to continue without it", it.source)
        });
        let refused = self.now.refused.get(&role).cloned().unwrap_or_default();
        self.block_on_refusals(&role, &refused, &instead);
    }

    /// Holds it up until a person's word begins another cycle.
    pub(super) fn stop(&mut self, reason: String) {
        self.fact(IntegrateEvent::Stopped {
            reason: reason.clone(),
        });
        let resume = self.resume();
        let unblock =
            format!("{resume} to plan again, or {resume} --revise '…' to say what has to change");
        self.block(reason, unblock);
    }

    /// Begins another cycle where only a person's word does: any word of theirs.
    pub(super) fn begin_anew_if_stopped(&mut self) {
        if self.now.stopped.is_some() {
            self.fact(IntegrateEvent::PlanReopened { reason: None });
        }
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
        let (reference, at_ms) = (format!("git:{commit}"), self.given.now_ms);
        WorkflowEvidence {
            phase: Some(phase.name.to_owned()),
            ..WorkflowEvidence::new(weight, kind, summary, reference, at_ms)
        }
    }
}
