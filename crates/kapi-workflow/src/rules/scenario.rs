//! What the tests of workflows begin with: a person, an agent, terms, a hash, a way to tell a story.
//!
//! Only for tests.

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::Judge;
use kapi_core::usage::Usage;
use kapi_goal::rules::budget::Budget;

use crate::rules::command::{WorkflowCommand, WorkflowStart};
use crate::rules::decide::decide;
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowDenial;
use crate::rules::effect::next;
use crate::rules::event::WorkflowEvent;
use crate::rules::evolve::evolve;
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::interview::begin::InterviewBegin;
use crate::rules::modes::{Begin, ModeAnswer};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::state::Workflow;
use crate::rules::terms::{PlanApproval, WorkflowTerms};

/// The time of every story.
pub(crate) const NOW_MS: i64 = 1_795_000_000_000;

/// Returns a person.
pub(crate) fn human() -> Actor {
    Actor::Human {
        user: "somebody".to_owned(),
    }
}

/// Returns an agent.
pub(crate) fn agent() -> Actor {
    Actor::Agent {
        run: "run-1".to_owned(),
    }
}

/// Returns who gave an answer.
pub(crate) fn identity(run: &str) -> ReviewerIdentity {
    ReviewerIdentity {
        agent: "script:a".to_owned(),
        run: run.to_owned(),
    }
}

/// Returns terms without limits.
pub(crate) fn terms() -> WorkflowTerms {
    WorkflowTerms {
        agent: "script:a".to_owned(),
        reviewer: None,
        models: Vec::new(),
        judge: Judge::None,
        sandbox: SandboxLevel::Native,
        network: NetworkMode::None,
        budget: Budget {
            turns: 3,
            tokens: None,
            usd_micros: None,
            wall_ms: None,
        },
        tokens: None,
        usd_micros: None,
        wall_ms: None,
        jobs: 2,
        verify_timeout_ms: 60_000,
        question_timeout_ms: 60_000,
        protect: Vec::new(),
        verify: Vec::new(),
        delivery: None,
        plan_approval: PlanApproval::Ask,
    }
}

/// A hash that tells texts apart: not the real one, which is the engine's.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix))
}

/// Returns what every decision of a story is given.
pub(crate) fn given() -> DecisionContext {
    DecisionContext {
        now_ms: NOW_MS,
        sha256: hash,
    }
}

/// Returns the command that begins an interview.
pub(crate) fn start_interview(terms: WorkflowTerms, commit: Option<&str>) -> WorkflowCommand {
    WorkflowCommand::Start(Box::new(WorkflowStart {
        id: GoalId::parse("001-recover-session").unwrap(),
        purpose: "Recover the session after a crash".to_owned(),
        terms,
        begin: Begin::Interview(InterviewBegin {
            commit: commit.map(str::to_owned),
        }),
    }))
}

/// A workflow and everything that was recorded of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkflowTestScenario {
    /// As it stands.
    pub(crate) workflow: Option<Workflow>,
    /// Every event, oldest first.
    pub(crate) events: Vec<WorkflowEvent>,
}

impl WorkflowTestScenario {
    /// Begins one.
    pub(crate) fn begin(command: &WorkflowCommand) -> Self {
        let mut scenario = Self::default();
        scenario.send(&human(), command);
        scenario
    }

    /// Asks for something, which must be allowed; returns what was recorded.
    pub(crate) fn send(&mut self, actor: &Actor, command: &WorkflowCommand) -> Vec<WorkflowEvent> {
        match self.ask(actor, command) {
            Ok(events) => events,
            Err(denied) => panic!("{command:?} was denied: {denied}"),
        }
    }

    /// Asks for something; a denial changes nothing.
    pub(crate) fn ask(
        &mut self,
        actor: &Actor,
        command: &WorkflowCommand,
    ) -> Result<Vec<WorkflowEvent>, WorkflowDenial> {
        let events = decide(self.workflow.as_ref(), actor, command, &given())?;
        for event in &events {
            evolve(&mut self.workflow, event);
        }
        self.events.extend(events.clone());
        Ok(events)
    }

    /// Returns the workflow.
    pub(crate) fn workflow(&self) -> &Workflow {
        self.workflow.as_ref().unwrap()
    }

    /// Lets the first effect that is wanted begin and end.
    pub(crate) fn perform(&mut self, outcome: WorkflowOutcome) -> Vec<WorkflowEvent> {
        let effect = next(self.workflow()).first().unwrap().id.clone();
        let intend = WorkflowCommand::Intend {
            effect: effect.clone(),
        };
        self.send(&Actor::Engine, &intend);
        let outcome = Box::new(outcome);
        self.send(&Actor::Engine, &WorkflowCommand::Report { effect, outcome })
    }

    /// Lets the first question be answered.
    pub(crate) fn answer(&mut self, answer: ModeAnswer) -> Vec<WorkflowEvent> {
        self.perform(answered(answer))
    }

    /// Approves what is pending, as it should be.
    pub(crate) fn approve(&mut self) -> Vec<WorkflowEvent> {
        let sha256 = self.workflow().pending.as_ref().unwrap().sha256.clone();
        self.send(&human(), &approve(&sha256, &sha256, true))
    }
}

/// Returns an answer as an outcome.
pub(crate) fn answered(answer: ModeAnswer) -> WorkflowOutcome {
    WorkflowOutcome::Answered {
        by: identity("r1"),
        answer: Box::new(answer),
        usage: Usage::default(),
    }
}

/// Returns an approval typed at a terminal.
pub(crate) fn approve(shown: &str, found: &str, accepts_risks: bool) -> WorkflowCommand {
    WorkflowCommand::Approve {
        sha256: shown.to_owned(),
        found: found.to_owned(),
        means: crate::rules::pending::Means::Terminal,
        accepts_risks,
    }
}
