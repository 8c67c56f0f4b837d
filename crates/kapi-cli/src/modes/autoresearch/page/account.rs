//! What each run used and what it was made of, told by the log: turns cost the change that they lead to,
//! and a change stands on the head that there was when it was made.
//!
//! A sum of what was reported; an agent that was asked again costs its change more.

use std::collections::BTreeMap;
use std::mem;

use kapi_core::id::EffectId;
use kapi_core::usage::Usage;
use kapi_machine::logged::EventRecord;
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::modes::ModeEvent;
use kapi_workflow::rules::modes::autoresearch::event::{AutoresearchEvent, Candidate, TryAnswer};
use kapi_workflow::rules::modes::autoresearch::run::Run;

/// What is told of runs, by their numbers.
#[derive(Default)]
pub(super) struct RunAccounts {
    runs: BTreeMap<u32, Account>,
}

#[derive(Default)]
struct Account {
    used: Usage,
    parent: Option<String>,
}

/// What is known on the way through a log.
#[derive(Default)]
struct Reading {
    accounts: RunAccounts,
    /// Where the branch is.
    head: String,
    /// What effects under way have used.
    under_way: BTreeMap<EffectId, Usage>,
    /// What ended and led to nothing yet.
    loose: Usage,
    /// The changes that are not decided, by their commits.
    changes: BTreeMap<String, Account>,
    /// The commits of a round, by their places.
    places: BTreeMap<u32, String>,
}

impl RunAccounts {
    /// Reads a log.
    pub(super) fn of(log: &[EventRecord<WorkflowEvent>]) -> Self {
        let mut reading = Reading::default();
        for logged in log {
            match &logged.event {
                WorkflowEvent::EffectUsed { effect, usage } => {
                    reading
                        .under_way
                        .entry(effect.clone())
                        .or_default()
                        .add(usage);
                }
                WorkflowEvent::EffectEnded { effect, usage, .. } => {
                    let before = reading.under_way.remove(effect).unwrap_or_default();
                    reading.loose.add(&before);
                    reading.loose.add(usage);
                }
                WorkflowEvent::Mode(ModeEvent::Autoresearch(event)) => reading.take(event),
                _ => {}
            }
        }
        reading.accounts
    }

    /// Returns what a run used.
    pub(super) fn used(&self, run: u32) -> Option<&Usage> {
        let used = self.runs.get(&run).map(|account| &account.used);
        used.filter(|usage| !usage.is_zero())
    }

    /// Returns the commit that a run changed.
    pub(super) fn parent(&self, run: u32) -> Option<&str> {
        self.runs.get(&run)?.parent.as_deref()
    }
}

impl Reading {
    fn take(&mut self, event: &AutoresearchEvent) {
        match event {
            AutoresearchEvent::BranchPrepared { base, .. } => self.head.clone_from(base),
            AutoresearchEvent::Settled { commit, .. } => self.head.clone_from(commit),
            AutoresearchEvent::CandidateProposed { candidate, .. } => self.change(candidate),
            AutoresearchEvent::TryAnswered {
                place,
                found: TryAnswer::Candidate(candidate),
                ..
            } => {
                self.places.insert(*place, candidate.commit.clone());
                self.change(candidate);
            }
            AutoresearchEvent::GainReapplied { place, candidate } => {
                // One that does not fit stays as it is, on the head that it was made on.
                let before = self.places.get(place);
                let before = before.filter(|commit| **commit != candidate.commit);
                if let Some(account) = before.and_then(|commit| self.changes.remove(commit)) {
                    self.loose.add(&account.used);
                    self.change(candidate);
                }
            }
            AutoresearchEvent::RunDecided { run } => self.decided(run),
            _ => {}
        }
    }

    fn change(&mut self, candidate: &Candidate) {
        let used = mem::take(&mut self.loose);
        let parent = Some(self.head.clone()).filter(|head| !head.is_empty());
        let account = Account { used, parent };
        self.changes.insert(candidate.commit.clone(), account);
    }

    /// What came before a baseline drafted the contract, and is no experiment's.
    fn decided(&mut self, run: &Run) {
        let loose = mem::take(&mut self.loose);
        if run.is_baseline {
            return;
        }
        let mut account = self.changes.remove(&run.commit).unwrap_or_default();
        account.used.add(&loose);
        self.accounts.runs.insert(run.number, account);
    }
}

#[cfg(test)]
mod tests {
    use kapi_core::actor::Actor;
    use kapi_core::id::EffectId;
    use kapi_core::usage::Usage;
    use kapi_machine::logged::EventRecord;
    use kapi_workflow::rules::event::WorkflowEvent;
    use kapi_workflow::rules::modes::ModeEvent;
    use kapi_workflow::rules::modes::autoresearch::event::AutoresearchEvent;
    use serde_json::{Value, json};

    use super::RunAccounts;

    fn usage(input_tokens: u64) -> Usage {
        Usage {
            input_tokens,
            output_tokens: 1,
            usd_micros: Some(10),
            ..Usage::ZERO
        }
    }

    fn used(turn: u32, tokens: u64) -> WorkflowEvent {
        WorkflowEvent::EffectUsed {
            effect: EffectId::new(turn, "propose", 1),
            usage: usage(tokens),
        }
    }

    fn ended(turn: u32) -> WorkflowEvent {
        WorkflowEvent::EffectEnded {
            effect: EffectId::new(turn, "propose", 1),
            usage: Usage::default(),
            failed: None,
        }
    }

    fn fact(fact: Value) -> WorkflowEvent {
        let fact: AutoresearchEvent = serde_json::from_value(fact).unwrap();
        WorkflowEvent::Mode(ModeEvent::Autoresearch(fact))
    }

    fn candidate(commit: &str) -> Value {
        json!({
            "by": {"agent": "a", "run": "r"}, "hypothesis": "h", "description": "d",
            "commit": commit, "tree": "t", "changed": {"paths": ["src/a"], "n_more": 0},
        })
    }

    fn decided(number: u32, commit: &str) -> WorkflowEvent {
        fact(json!({"run_decided": {"run": {
            "number": number, "segment": 0, "is_baseline": number == 1, "commit": commit,
            "tree": "t", "status": "keep", "metric": "1", "description": "", "hypothesis": "",
            "reason": "", "at_ms": 0,
        }}}))
    }

    fn settled(commit: &str) -> WorkflowEvent {
        fact(json!({"settled": {"commit": commit, "tree": "t", "n_removed": 0}}))
    }

    fn answered(place: u32, commit: &str) -> WorkflowEvent {
        let found = json!({"candidate": candidate(commit)});
        fact(json!({"try_answered": {"place": place, "found": found, "ideas": []}}))
    }

    fn read(events: Vec<WorkflowEvent>) -> RunAccounts {
        let numbered = (1_u64..).zip(events);
        let log = numbered.map(|(seq, event)| EventRecord {
            seq,
            at_ms: 0,
            actor: Actor::Engine,
            event,
        });
        RunAccounts::of(&log.collect::<Vec<_>>())
    }

    fn check(accounts: &RunAccounts, run: u32, tokens: Option<u64>, parent: Option<&str>) {
        assert_eq!(accounts.used(run).map(Usage::tokens), tokens, "run {run}");
        assert_eq!(accounts.parent(run), parent, "run {run}");
    }

    #[test]
    fn a_run_costs_the_turns_that_led_to_it() {
        let proposed = json!({"candidate": candidate("c2"), "ideas": []});
        let accounts = read(vec![
            fact(json!({"branch_prepared": {"branch": "b", "worktree": "w", "base": "c0"}})),
            used(1, 100),
            ended(1),
            decided(1, "c0"),
            used(2, 20),
            ended(2),
            fact(json!({"answer_refused": {"role": "researcher", "why": "it is none"}})),
            used(3, 3),
            ended(3),
            fact(json!({"candidate_proposed": proposed})),
            decided(2, "c2"),
            settled("kept"),
        ]);
        check(&accounts, 1, None, None);
        check(&accounts, 2, Some(25), Some("c0"));
        assert_eq!(accounts.used(2).unwrap().usd_micros, Some(20));
    }

    #[test]
    fn the_runs_of_a_round_have_their_own_turns_and_the_head_they_were_made_on() {
        let again = json!({"place": 1, "candidate": candidate("b2")});
        let unfit = json!({"place": 2, "candidate": candidate("c")});
        let accounts = read(vec![
            settled("c0"),
            used(1, 10),
            used(2, 200),
            ended(2),
            answered(1, "b"),
            used(1, 5),
            ended(1),
            answered(0, "a"),
            answered(2, "c"),
            decided(2, "a"),
            settled("kept-a"),
            fact(json!({"gain_reapplied": again})),
            decided(3, "b2"),
            fact(json!({"gain_reapplied": unfit})),
            decided(4, "c"),
        ]);
        check(&accounts, 2, Some(17), Some("c0"));
        check(&accounts, 3, Some(201), Some("kept-a"));
        check(&accounts, 4, None, Some("c0"));
    }
}
