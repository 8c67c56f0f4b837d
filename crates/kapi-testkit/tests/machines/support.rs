//! A project on a simulated disk, a world that does what a test says, and a drive at full speed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use kapi_check::rules::proof::attribution::Attribution;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};
use kapi_core::actor::Actor;
use kapi_core::agent_end::{AgentEnd, AgentRun, ProviderFailure, ProviderFailureKind};
use kapi_core::id::{GoalId, Slug};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::{Judge, JudgeUnavailable};
use kapi_core::usage::Usage;
use kapi_core::verdict::{JudgeAnswer, JudgeRun, JudgeVerdict};
use kapi_goal::record::drive::{DriveControl, DriveObservation, GoalDriveError, drive};
use kapi_goal::record::project::Project;
use kapi_goal::record::world::World;
use kapi_goal::rules::budget::Budget;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::contract::{Base, CONTRACT_VERSION, Contract, Working};
use kapi_goal::rules::effect::{GoalAction, GoalEffect};
use kapi_goal::rules::event::{ApprovalMeans, GoalEvent};
use kapi_goal::rules::outcome::{GoalCandidate, GoalOutcome};
use kapi_goal::rules::state::Goal;
use kapi_machine::pace::Pace;
use kapi_machine::watch::EffectWatch;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::StepClock;
use kapi_sys::disk::Disk;
use kapi_sys::sim_disk::SimDisk;

pub(crate) const ROOT: &str = "/project";

/// A simulated disk with an empty project, and a clock.
pub(crate) struct Fixture {
    pub(crate) disk: SimDisk,
    pub(crate) clock: StepClock,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let disk = SimDisk::new();
        disk.provide_dir(Path::new(ROOT));
        Self {
            disk,
            clock: StepClock::new(1_787_392_800_000),
        }
    }

    /// Opens the project, as one more process does.
    pub(crate) fn project(&self) -> Project<'_> {
        project_on(&self.disk, &self.clock, ROOT.into())
    }

    /// Creates and approves a goal.
    pub(crate) fn approved(&self, contract: &Contract) -> GoalId {
        approved(&self.project(), contract)
    }

    /// Drives a goal with a world that does what `act` says.
    pub(crate) fn drive(
        &self,
        id: &GoalId,
        act: &(dyn Fn(&GoalEffect, &EffectWatch<'_>) -> GoalOutcome + Sync),
    ) -> Goal {
        drive_in(&self.project(), id, act, &mut |_| {}).unwrap()
    }

    /// Returns the kinds of all events of a goal.
    pub(crate) fn kinds(&self, id: &GoalId) -> Vec<String> {
        self.project()
            .log(id)
            .unwrap()
            .iter()
            .map(|logged| kind(&logged.event))
            .collect()
    }
}

pub(crate) fn project_on<'a>(
    disk: &'a dyn Disk,
    clock: &'a StepClock,
    root: PathBuf,
) -> Project<'a> {
    Project {
        disk,
        clock,
        layout: ProjectLayout::new(root),
        owner: "test".to_owned(),
        home: None,
    }
}

pub(crate) fn approved(project: &Project<'_>, contract: &Contract) -> GoalId {
    let id = project
        .create_goal(&person(), &Slug::parse("try").unwrap(), contract)
        .unwrap();
    let contract_hash = project.load(&id).unwrap().contract_hash;
    let approve = GoalCommand::Approve {
        contract_hash,
        means: ApprovalMeans::YesFlag,
    };
    project.submit(&id, &person(), &approve).unwrap();
    id
}

/// A world made of a closure.
pub(crate) struct Script<'a>(
    pub(crate) &'a (dyn Fn(&GoalEffect, &EffectWatch<'_>) -> GoalOutcome + Sync),
);

impl World for Script<'_> {
    fn perform(&self, effect: &GoalEffect, watch: &EffectWatch<'_>) -> GoalOutcome {
        (self.0)(effect, watch)
    }
}

pub(crate) fn drive_in(
    project: &Project<'_>,
    id: &GoalId,
    act: &(dyn Fn(&GoalEffect, &EffectWatch<'_>) -> GoalOutcome + Sync),
    observe: &mut dyn FnMut(DriveObservation),
) -> Result<Goal, GoalDriveError> {
    // Time goes on by a hundredth of a second at each look.
    let time = AtomicU64::new(0);
    let control = DriveControl {
        person: person(),
        interrupted: &|| false,
        monotonic_ms: &|| time.fetch_add(10, Ordering::SeqCst),
        pace: Pace {
            look_ms: 1,
            progress_ms: 1_000,
            heartbeat_ms: 1_000_000,
        },
    };
    drive(project, id, &Script(act), &control, observe)
}

pub(crate) fn person() -> Actor {
    Actor::Human {
        user: "ada".to_owned(),
    }
}

pub(crate) fn contract() -> Contract {
    Contract {
        version: CONTRACT_VERSION,
        intent: "make the tests pass".to_owned(),
        done_criteria: "the tests pass".to_owned(),
        verify: vec!["sh test.sh".to_owned()],
        verify_timeout_ms: 60_000,
        verify_network: false,
        protect: vec!["test.sh".to_owned()],
        hidden: None,
        budget: Budget {
            turns: 5,
            tokens: None,
            usd_micros: None,
            wall_ms: None,
        },
        stall_after: 3,
        turn_timeout_ms: 60_000,
        agent: "script:agent.yaml".to_owned(),
        models: Vec::new(),
        judge: Judge::None,
        judge_unavailable: JudgeUnavailable::Closed,
        base: Base {
            revision: "HEAD".to_owned(),
            commit: "base-commit".to_owned(),
            tree: "base-tree".to_owned(),
        },
        branch: "feat/goal-try".to_owned(),
        sandbox: SandboxLevel::Native,
        network: NetworkMode::Filtered,
        working: Working::default(),
        checks: CheckPolicy::default(),
        attribution: Attribution::default(),
        race: None,
        delivery: None,
    }
}

/// What a world says in which everything goes well.
pub(crate) fn well(effect: &GoalEffect) -> GoalOutcome {
    match &effect.action {
        GoalAction::CreateWorkspace { .. } => GoalOutcome::Workspace {
            path: "/worktree".to_owned(),
        },
        GoalAction::RunAgent(_) => agent(AgentEnd::Finished),
        GoalAction::Commit(task) => committed(&format!("tree-{}", task.turn)),
        GoalAction::Baseline(task) => verified(&task.tree, 1),
        GoalAction::Verify(task) => verified(&task.tree, 0),
        GoalAction::Judge(task) => judged(&task.agent, verdict(JudgeVerdict::Done)),
        GoalAction::Publish { commit, .. } => GoalOutcome::Published {
            commit: commit.clone(),
        },
        GoalAction::Wait { .. } => GoalOutcome::Waited,
    }
}

/// What a world says whose checks never pass, while the tree changes in every turn.
pub(crate) fn failing(effect: &GoalEffect) -> GoalOutcome {
    match &effect.action {
        GoalAction::Baseline(task) | GoalAction::Verify(task) => verified(&task.tree, 1),
        _ => well(effect),
    }
}

pub(crate) fn agent(end: AgentEnd) -> GoalOutcome {
    GoalOutcome::Agent(AgentRun {
        end,
        claim: None,
        message: "worked".to_owned(),
        session: Some("session-1".to_owned()),
        usage: Usage::default(),
        tools: 1,
        isolation: None,
        score: None,
    })
}

pub(crate) fn committed(tree: &str) -> GoalOutcome {
    GoalOutcome::Committed(GoalCandidate {
        commit: format!("commit-of-{tree}"),
        tree: tree.to_owned(),
        files_changed: 1,
        left_out: Vec::new(),
    })
}

pub(crate) fn verified(tree: &str, exit_code: i32) -> GoalOutcome {
    GoalOutcome::Verified(VerifyReport {
        commit: format!("commit-of-{tree}"),
        tree: tree.to_owned(),
        tampered: Vec::new(),
        runs: vec![VerifyRun {
            command: "sh test.sh".to_owned(),
            checks: Checks::Visible,
            exit_code: Some(exit_code),
            timed_out: false,
            duration_ms: 12,
            output_tail: "1 test failed".to_owned(),
            output_bytes: 13,
            tally: None,
        }],
        inspection: Box::default(),
    })
}

pub(crate) fn judged(by: &str, answer: JudgeAnswer) -> GoalOutcome {
    GoalOutcome::Judged(JudgeRun {
        by: by.to_owned(),
        answer,
        usage: Usage::default(),
    })
}

pub(crate) fn verdict(verdict: JudgeVerdict) -> JudgeAnswer {
    JudgeAnswer::Verdict {
        verdict,
        reason: "because".to_owned(),
    }
}

pub(crate) fn failure(kind: ProviderFailureKind) -> ProviderFailure {
    ProviderFailure {
        kind,
        message: "no".to_owned(),
        retry_after_ms: None,
    }
}

pub(crate) fn usage(tokens: u64) -> Usage {
    Usage {
        input_tokens: tokens,
        output_tokens: 0,
        usd_micros: None,
        ..Usage::ZERO
    }
}

/// Stays until the effect is no longer wanted.
pub(crate) fn until_cancelled(watch: &EffectWatch<'_>) -> GoalOutcome {
    while !watch.cancel.is_raised() {
        std::thread::park_timeout(std::time::Duration::from_micros(200));
    }
    GoalOutcome::Cancelled {
        usage: Usage::default(),
        session: None,
    }
}

/// Returns the name under which an event stands in the log.
pub(crate) fn kind(event: &GoalEvent) -> String {
    let value = serde_json::to_value(event).unwrap();
    value["type"].as_str().unwrap().to_owned()
}
