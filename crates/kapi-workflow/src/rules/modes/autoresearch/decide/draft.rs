//! A decision while it is made: the events so far, and the search as they leave it.

use kapi_check::rules::measure::ScriptRun;
use kapi_core::workflow_status::WorkflowStatus;

use crate::rules::decide::asked;
use crate::rules::decision_context::DecisionContext;
use crate::rules::event::WorkflowEvent;
use crate::rules::evidence::{Weight, WorkflowEvidence};
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::autoresearch::answer::AutoresearchAnswer;
use crate::rules::modes::autoresearch::contract::{Contract, sound};
use crate::rules::modes::autoresearch::event::AutoresearchEvent;
use crate::rules::modes::autoresearch::evolve;
use crate::rules::modes::autoresearch::role::AutoresearchRole;
use crate::rules::modes::autoresearch::spec::APPROVE_CONTRACT;
use crate::rules::modes::autoresearch::state::Autoresearch;
use crate::rules::modes::{ModeAnswer, ModeEvent};
use crate::rules::state::Workflow;

/// The most answers of one role in a row that are refused before a person is asked.
pub(super) const REFUSED_MAX: usize = 3;

/// A decision while it is made.
pub(super) struct Draft<'a> {
    /// The workflow before the decision.
    pub(super) workflow: &'a Workflow,
    /// The search as the events so far leave it.
    pub(super) now: Autoresearch,
    /// The events so far.
    pub(super) events: Vec<WorkflowEvent>,
    /// What the decision is given from outside.
    pub(super) given: &'a DecisionContext,
}

impl<'a> Draft<'a> {
    pub(super) fn new(
        workflow: &'a Workflow,
        search: &Autoresearch,
        given: &'a DecisionContext,
    ) -> Self {
        Self {
            workflow,
            now: search.clone(),
            events: Vec::new(),
            given,
        }
    }

    /// Adds a fact of the mode.
    pub(super) fn fact(&mut self, event: AutoresearchEvent) {
        evolve::evolve(&mut self.now, &event);
        self.events
            .push(WorkflowEvent::Mode(ModeEvent::Autoresearch(event)));
    }

    /// Proposes a contract, and asks its person.
    pub(super) fn contract(&mut self, by: Option<ReviewerIdentity>, contract: &Contract) {
        self.fact(AutoresearchEvent::ContractDrafted {
            by,
            contract: Box::new(contract.clone()),
        });
        let risks = sound::risks(contract);
        let asked = asked(
            self.workflow,
            &self.events,
            APPROVE_CONTRACT,
            risks,
            self.given,
        );
        self.events.push(asked);
    }

    /// Takes a drafted contract, or says what is wrong with it.
    pub(super) fn answered(&mut self, by: &ReviewerIdentity, answer: &ModeAnswer) {
        let ModeAnswer::Autoresearch(AutoresearchAnswer::Contract(contract)) = answer else {
            return self.refuse(AutoresearchRole::Drafter, "a contract was asked for");
        };
        if contract.held_back.is_some() {
            let why = "leave out `held_back`: what no agent sees is named by the person";
            return self.refuse(AutoresearchRole::Drafter, why);
        }
        let before = self.now.contract.as_ref();
        let contract = Contract {
            held_back: before.and_then(|before| before.held_back.clone()),
            ..(**contract).clone()
        };
        match sound::check(&contract) {
            Ok(()) => self.contract(Some(by.clone()), &contract),
            Err(why) => self.refuse(AutoresearchRole::Drafter, &why),
        }
    }

    /// Tells a role what was wrong with its answer; too often is a person's affair.
    pub(super) fn refuse(&mut self, role: AutoresearchRole, why: &str) {
        let role = role.spec().name;
        self.fact(AutoresearchEvent::AnswerRefused {
            role: role.to_owned(),
            why: why.to_owned(),
        });
        let refused = self.now.refused.len();
        if refused >= REFUSED_MAX {
            let reason = format!("{refused} answers in a row of the {role} were refused: {why}");
            let unblock = format!("{} asks again", self.resume());
            self.block(reason, unblock);
        }
    }

    /// Holds the workflow up, unless something does already.
    pub(super) fn block(&mut self, reason: String, unblock: String) {
        if self.workflow.status == WorkflowStatus::Active {
            self.events.push(WorkflowEvent::Blocked { reason, unblock });
        }
    }

    /// Lets it go on, where something holds it up.
    pub(super) fn unblock(&mut self) {
        if self.workflow.status == WorkflowStatus::Blocked {
            evolve::unblocked(&mut self.now);
            self.events.push(WorkflowEvent::Unblocked {});
        }
    }

    /// Returns the command that lets it go on.
    pub(super) fn resume(&self) -> String {
        format!("kapi autoresearch resume {:03}", self.workflow.id.index())
    }

    /// Adds what Kapi saw of a script at a commit.
    pub(super) fn saw(&mut self, kind: &str, script: &str, run: &ScriptRun, commit: &str) {
        let evidence = Box::new(WorkflowEvidence {
            weight: Weight::Validation,
            kind: kind.to_owned(),
            summary: format!("{script} {} in {} ms", run.words(), run.duration_ms),
            reference: format!("git:{commit}"),
            command: Some(format!("sh {script}")),
            exit_code: run.exit_code,
            role: None,
            verdict: None,
            phase: None,
            artifacts: vec!["ledger.jsonl".to_owned()],
            worker: None,
            verifier: None,
            at_ms: self.given.now_ms,
        });
        self.events
            .push(WorkflowEvent::EvidenceRecorded { evidence });
    }
}
