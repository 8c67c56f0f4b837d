//! What a decision about a search may propose, refuse and record.

use kapi_check::rules::measure::ScriptRun;

use crate::rules::decision_draft::DecisionDraft;
use crate::rules::evidence::{Weight, WorkflowEvidence};
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::ModeAnswer;
use crate::rules::modes::autoresearch::answer::AutoresearchAnswer;
use crate::rules::modes::autoresearch::contract::{Contract, sound};
use crate::rules::modes::autoresearch::event::AutoresearchEvent;
use crate::rules::modes::autoresearch::role::AutoresearchRole;
use crate::rules::modes::autoresearch::spec::APPROVE_CONTRACT;
use crate::rules::modes::autoresearch::state::Autoresearch;

impl DecisionDraft<'_, Autoresearch> {
    /// Proposes a contract, and asks its person.
    pub(super) fn contract(&mut self, by: Option<ReviewerIdentity>, contract: &Contract) {
        self.fact(AutoresearchEvent::ContractDrafted {
            by,
            contract: Box::new(contract.clone()),
        });
        let risks = sound::risks(contract);
        self.ask_person(APPROVE_CONTRACT, risks);
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
        self.stop_if_refused(role);
    }

    /// Holds the search up where answers in a row were refused.
    pub(super) fn stop_if_refused(&mut self, role: &str) {
        let refused = self.now.refused.clone();
        self.block_on_refusals(role, &refused, "");
    }

    /// Adds what Kapi saw of a script at a commit.
    pub(super) fn saw(&mut self, kind: &str, script: &str, run: &ScriptRun, commit: &str) {
        let summary = format!("{script} {} in {} ms", run.words(), run.duration_ms);
        let (reference, at_ms) = (format!("git:{commit}"), self.given.now_ms);
        let weight = Weight::Validation;
        self.evidence(WorkflowEvidence {
            command: Some(format!("sh {script}")),
            exit_code: run.exit_code,
            artifacts: vec!["ledger.jsonl".to_owned()],
            ..WorkflowEvidence::new(weight, kind, summary, reference, at_ms)
        });
    }
}
