//! The stories that the crash simulation tells: what agents and judges do in which turn.
//!
//! Each is a function of the effect alone, so that repeating an effect repeats the story.

use kapi_check::rules::proof::attribution::Attribution;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::{Judge, JudgeUnavailable};
use kapi_core::verdict::JudgeVerdict;
use kapi_goal::record::project::Project;
use kapi_goal::rules::budget::Budget;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::contract::{Base, CONTRACT_VERSION, Contract, WorkPlace, Working};
use kapi_store::layout::ProjectLayout;
use kapi_sys::sim_disk::SimDisk;

use crate::sim_tree::{Files, SimClock, commit_id, tree_id};

/// The project of every simulation.
pub const ROOT: &str = "/project";
/// The branch that belongs to the goal.
pub const BRANCH: &str = "feat/goal-try";
/// The file that no turn may change.
pub const PROTECTED_FILE: &str = "test";

/// A story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimScenario {
    /// Fails, tampers, meets a provider's failure, is sent on by the judge, uses up its turns, is
    /// given more, and is done.
    Done,
    /// Does the same thing in every turn.
    Stalled,
    /// Is cancelled by another process in its second turn.
    Cancelled,
    /// Is parked for a judge that cannot be reached, woken in vain, and judged by another one.
    JudgeAway,
    /// Is worked on in a session of the person's: unclaimed, claimed in vain, sent on by the judge, and
    /// done in the checkout, of which nothing is put back or published.
    Session,
}

/// Every story.
pub const SCENARIOS: [SimScenario; 5] = [
    SimScenario::Done,
    SimScenario::Stalled,
    SimScenario::Cancelled,
    SimScenario::JudgeAway,
    SimScenario::Session,
];
/// The judge that a person names in place of one that cannot be reached.
pub(crate) const OTHER_JUDGE: &str = "script:other.yaml";

/// What an agent does.
pub(crate) enum AgentScript {
    /// Writes these files.
    Writes(&'static [(&'static str, &'static str)]),
    /// Writes these files and claims the goal by its tool.
    Claims(&'static [(&'static str, &'static str)]),
    /// Its provider fails.
    ProviderFails,
    /// Works until somebody, called here, has cancelled it.
    IsCancelled(fn(&SimDisk, &SimClock, &GoalId)),
}

/// What a judge does.
pub(crate) enum JudgeScript {
    /// Gives a verdict.
    Says(JudgeVerdict),
    /// Cannot be asked.
    IsUnavailable,
}

impl SimScenario {
    /// Tells whether it is told in a session of the person's.
    #[must_use]
    pub fn is_session(self) -> bool {
        self == Self::Session
    }

    /// Returns the files of the base commit.
    #[must_use]
    pub fn base_files(self) -> Files {
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        [file("code", "bad"), file(PROTECTED_FILE, "strict")].into()
    }

    /// Returns the contract.
    #[must_use]
    pub fn contract(self) -> Contract {
        let base = self.base_files();
        Contract {
            version: CONTRACT_VERSION,
            intent: "make the code good".to_owned(),
            done_criteria: "the code is good".to_owned(),
            verify: vec!["sh test.sh".to_owned()],
            verify_timeout_ms: 60_000,
            verify_network: false,
            protect: vec![PROTECTED_FILE.to_owned()],
            hidden: None,
            budget: Budget {
                turns: 3,
                tokens: Some(1_000_000),
                usd_micros: None,
                wall_ms: None,
            },
            stall_after: if self == Self::Stalled { 2 } else { 3 },
            turn_timeout_ms: 60_000,
            agent: "script:try.yaml".to_owned(),
            models: Vec::new(),
            judge: Judge::Same,
            judge_unavailable: JudgeUnavailable::Closed,
            base: Base {
                revision: "main".to_owned(),
                commit: commit_id(&base, "", 0),
                tree: tree_id(&base),
            },
            branch: BRANCH.to_owned(),
            sandbox: SandboxLevel::Native,
            network: NetworkMode::Filtered,
            working: Working {
                place: if self.is_session() {
                    WorkPlace::Session
                } else {
                    WorkPlace::Workspace
                },
                ..Working::default()
            },
            checks: CheckPolicy::default(),
            attribution: Attribution::default(),
            race: None,
            delivery: None,
        }
    }

    pub(crate) fn agent(self, effect: &EffectId, turn: u32) -> AgentScript {
        match (self, turn) {
            (Self::Done, 1) => AgentScript::Writes(&[("code", "worse")]),
            (Self::Done, 2) => AgentScript::Writes(&[("code", "good"), (PROTECTED_FILE, "weak")]),
            (Self::Done, 3) if effect.as_str() == "t003-agent-a1" => AgentScript::ProviderFails,
            (Self::Done, 3) => AgentScript::Writes(&[(PROTECTED_FILE, "strict")]),
            (Self::Done, _) => AgentScript::Writes(&[("code", "good and documented")]),
            (Self::Stalled, _) => AgentScript::Writes(&[("code", "bad"), ("work.log", "")]),
            (Self::Cancelled, 2) => AgentScript::IsCancelled(cancel),
            (Self::Cancelled, _) => AgentScript::Writes(&[("code", "worse")]),
            (Self::JudgeAway, _) => AgentScript::Writes(&[("code", "good")]),
            (Self::Session, 1) => AgentScript::Writes(&[("code", "looked at")]),
            (Self::Session, 2) => AgentScript::Claims(&[("code", "worse")]),
            (Self::Session, 3) => AgentScript::Claims(&[("code", "good")]),
            (Self::Session, _) => AgentScript::Claims(&[("code", "good and documented")]),
        }
    }

    pub(crate) fn judge(self, effect: &EffectId, by: &str) -> JudgeScript {
        match effect.as_str() {
            _ if self == Self::JudgeAway && by != OTHER_JUDGE => JudgeScript::IsUnavailable,
            "t003-judge-a1" => JudgeScript::Says(JudgeVerdict::Continue),
            "t004-judge-a1" if !self.is_session() => JudgeScript::IsUnavailable,
            _ => JudgeScript::Says(JudgeVerdict::Done),
        }
    }
}

/// The person in every simulation.
#[must_use]
pub fn person() -> Actor {
    Actor::Human {
        user: "ada".to_owned(),
    }
}

/// Opens the project as a process does.
#[must_use]
pub fn project<'a>(disk: &'a SimDisk, clock: &'a SimClock, owner: &str) -> Project<'a> {
    Project {
        disk,
        clock,
        layout: ProjectLayout::new(ROOT.into()),
        owner: owner.to_owned(),
        home: None,
    }
}

fn cancel(disk: &SimDisk, clock: &SimClock, goal: &GoalId) {
    let reason = Some("changed my mind".to_owned());
    let cancelled = project(disk, clock, "kapi cancel").submit(
        goal,
        &person(),
        &GoalCommand::Cancel { reason },
    );
    assert!(
        cancelled.is_ok() || disk.is_crashed(),
        "only the power can stop a cancel: {cancelled:?}"
    );
}
