//! Tasks: a goal each, made once, approved with the plan, and driven to its rest.

use std::{fs, thread};

use kapi_core::id::{GoalId, Slug};
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::contract::{Contract, Working};
use kapi_goal::rules::event::ApprovalMeans;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_goal::rules::state::GoalStatus;
use kapi_machine::watch::Activity;
use kapi_sys::cancel::Cancel;
use kapi_workflow::rules::effect::WorkflowAction;
use kapi_workflow::rules::outcome::WorkflowOutcome;

use super::{PLAN, WorkflowRig, agent, failed, landed, proved, work};
use crate::asks::human;

/// Two tasks that touch other files, one that does not fit, and how it is mended.
const SCRIPT: &str = "
turns: []
tasks:
  T-001: {turns: [{steps: [{write: {path: answer.txt, content: \"right\\n\"}}, {claim: done}]}]}
  T-002: {turns: [{steps: [{write: {path: other.txt, content: \"x\\n\"}}, {usage: {input_tokens: 9}}, {claim: done}]}]}
  T-003: {turns: [{steps: [{write: {path: answer.txt, content: \"mine\\n\"}}, {claim: done}]}]}
  T-003.2: {turns: [{steps: [{bash: \"echo more >> answer.txt\"}, {claim: done}]}]}
  T-004: {turns: [{steps: [{bash: \"true\"}]}, {steps: [{bash: \"true\"}]}]}
";

#[test]
fn two_tasks_are_worked_on_at_once_and_land_one_after_the_other() {
    let rig = WorkflowRig::new(SCRIPT);
    let (branch, _) = rig.prepare();
    let base = rig.base();
    let effects = [
        work("T-001", 1, &base, "grep -q right answer.txt"),
        work("T-002", 1, &base, "test -f other.txt"),
    ];
    let outcomes = rig.perform_all(&effects);
    let (one, first) = proved(&outcomes[0]);
    let (two, second) = proved(&outcomes[1]);
    assert_ne!(one, two);
    for (id, task) in [(&one, "T-001"), (&two, "T-002")] {
        let goal = rig.project.load(id).unwrap();
        assert_eq!(goal.status, GoalStatus::Done);
        assert_eq!(goal.approval, Some(ApprovalMeans::Plan));
        let of = goal.contract.working.workflow.clone().unwrap();
        assert_eq!(of.id, GoalId::parse("900-demo").unwrap());
        assert_eq!((of.task.as_str(), of.attempt), (task, 1));
        assert_eq!(of.plan_sha256, PLAN);
        assert_eq!(goal.contract.branch, format!("fix/goal-{id}"));
        assert_eq!(goal.contract.verify.last().unwrap(), "test -f answer.txt");
        assert!(goal.contract.intent.ends_with("How to ralph."));
    }
    assert_eq!(rig.approvals(), 2);
    // Its own account: what a goal uses is not told as the workflow's.
    let reported = rig.reported.lock().unwrap().clone();
    assert!(!reported.iter().any(|it| matches!(it, Activity::Used(_))));
    let (head, merged) = landed(&rig.perform(&rig.landing("T-001", (&first, &base, &base))));
    assert_eq!((head.as_str(), merged), (first.as_str(), false));
    let (head, merged) = landed(&rig.perform(&rig.landing("T-002", (&second, &base, &head))));
    assert!(merged);
    let show = |file: &str| rig.machine.git(&["show", &format!("{branch}:{file}")]);
    assert_eq!(
        (show("answer.txt"), show("other.txt")),
        ("right".into(), "x".into())
    );
    assert_eq!(rig.machine.git(&["rev-parse", &branch]), head);
    // The person's own checkout has seen nothing of it.
    assert_eq!(rig.machine.git(&["status", "--porcelain"]), "");
    // After a crash the same effects find the same goals, which have ended.
    assert_eq!(rig.perform_all(&effects), outcomes);
    assert_eq!(rig.project.goal_ids().unwrap().len(), 2);
}

#[test]
fn a_conflict_is_handed_back_and_done_again_on_the_new_head() {
    let rig = WorkflowRig::new(SCRIPT);
    rig.prepare();
    let base = rig.base();
    let outcomes = rig.perform_all(&[
        work("T-001", 1, &base, "grep -q right answer.txt"),
        work("T-003", 1, &base, "grep -q mine answer.txt"),
    ]);
    let (first, third) = (proved(&outcomes[0]).1, proved(&outcomes[1]).1);
    let mut beside = rig.landing("T-001", (&first, &base, &base));
    let WorkflowAction::Land(landing) = &mut beside.action else {
        panic!("no landing");
    };
    landing.within = vec!["src/**".to_owned()];
    let branch = landing.branch.clone();
    let paths = vec!["answer.txt".to_owned()];
    assert_eq!(rig.perform(&beside), WorkflowOutcome::Strayed { paths });
    let head = rig.machine.git(&["rev-parse", &branch]);
    assert_eq!(head, base, "nothing landed");
    let (head, _) = landed(&rig.perform(&rig.landing("T-001", (&first, &base, &base))));
    for _ in 0..2 {
        let outcome = rig.perform(&rig.landing("T-003", (&third, &base, &head)));
        let paths = vec!["answer.txt".to_owned()];
        assert_eq!(outcome, WorkflowOutcome::Conflicted { paths });
    }
    let again = rig.perform(&work("T-003", 2, &head, "grep -q more answer.txt"));
    let (_, third) = proved(&again);
    let (last, merged) = landed(&rig.perform(&rig.landing("T-003", (&third, &head, &head))));
    assert_eq!((last, merged), (third.clone(), false));
    let text = rig.machine.git(&["show", &format!("{third}:answer.txt")]);
    assert_eq!(text, "right\nmore");
}

#[test]
fn the_goals_of_tasks_stand_under_their_workflow_and_use_up_no_number() {
    let rig = WorkflowRig::new(SCRIPT);
    let base = rig.base();
    let slug = Slug::parse("mine").unwrap();
    let (first, _) = proved(&rig.perform(&work("T-001", 1, &base, "grep -q right answer.txt")));
    assert_eq!(first.to_string(), "900-demo_T-001");
    // A plan that was made anew has a task of the same name.
    let (second, _) = proved(&rig.perform(&work("T-001", 2, &base, "grep -q right answer.txt")));
    assert_eq!(second.to_string(), "900-demo_T-001_2");
    let goal = rig.project.load(&first).unwrap();
    assert_eq!(goal.contract.branch, "fix/goal-900-demo_T-001");
    let contract = Contract {
        working: Working::default(),
        ..goal.contract
    };
    let mine = rig.project.claim_goal(&human(), &slug, &contract).unwrap();
    assert_eq!(mine.to_string(), "901-mine");
}

#[test]
fn a_goal_is_made_once_wherever_the_process_died() {
    let rig = WorkflowRig::new(SCRIPT);
    let base = rig.base();
    let effect = work("T-001", 1, &base, "grep -q right answer.txt");
    // Dead after the index was claimed and kept, before there was a goal.
    let kept = ".ilchul/runs/900-demo-t001-work-T-001-1-a1/goal";
    rig.machine.write(kept, "007-do-t");
    fs::create_dir_all(rig.project.layout.goals_dir().join("007-do-t")).unwrap();
    let (id, commit) = proved(&rig.perform(&effect));
    assert_eq!(id.to_string(), "007-do-t");
    // Dead after the proof, before it was recorded.
    assert_eq!(proved(&rig.perform(&effect)), (id.clone(), commit));
    assert_eq!(rig.project.goal_ids().unwrap(), [id]);
}

#[test]
fn a_goal_of_somebody_elses_is_not_driven_in_a_plans_name() {
    let rig = WorkflowRig::new(SCRIPT);
    let base = rig.base();
    let first = work("T-001", 1, &base, "grep -q right answer.txt");
    let (id, _) = proved(&rig.perform(&first));
    // The record now says that another task's goal is this one.
    let kept = ".ilchul/runs/900-demo-t001-work-T-002-1-a1/goal";
    rig.machine.write(kept, &id.to_string());
    let (message, may_pass) = failed(&rig.perform(&work("T-002", 1, &base, "true")));
    assert!(
        message.contains("its contract does not match the plan"),
        "{message}"
    );
    assert!(!may_pass);
    rig.machine.write(kept, "../../etc/passwd");
    let (message, may_pass) = failed(&rig.perform(&work("T-002", 1, &base, "true")));
    assert!(
        message.starts_with("read which goal a task has"),
        "{message}"
    );
    assert!(!may_pass);
    // A proposal with more in it than the plan says is not approved.
    let goal = rig.project.load(&id).unwrap();
    let mut contract = goal.contract.clone();
    contract.protect.clear();
    contract.working.workflow.as_mut().unwrap().task = PlanTaskId::parse("T-002").unwrap();
    let slug = Slug::from_sentence("other");
    let other = rig.project.create_goal(&human(), &slug, &contract).unwrap();
    rig.machine.write(kept, &other.to_string());
    let (message, _) = failed(&rig.perform(&work("T-002", 1, &base, "true")));
    assert!(
        message.contains("its contract does not match the plan"),
        "{message}"
    );
    assert_eq!(
        rig.project.load(&other).unwrap().status,
        GoalStatus::Proposed
    );
}

#[test]
fn nothing_is_worked_on_without_an_approved_plan_or_a_person() {
    let rig = WorkflowRig::new(SCRIPT);
    rig.workflow.lock().unwrap().approvals.clear();
    let base = rig.base();
    let (message, may_pass) = failed(&rig.perform(&work("T-001", 1, &base, "true")));
    assert_eq!(message, "find the approved plan of workflow 900-demo");
    assert!(!may_pass);
    assert!(rig.project.goal_ids().unwrap().is_empty());
    // Approving with a plan is a person's, like any approval.
    let rig = WorkflowRig::new(SCRIPT);
    let (id, _) = proved(&rig.perform(&work("T-001", 1, &rig.base(), "true")));
    let contract = rig.project.load(&id).unwrap().contract;
    let slug = Slug::from_sentence("other");
    let other = rig.project.create_goal(&human(), &slug, &contract).unwrap();
    let approve = GoalCommand::Approve {
        contract_hash: rig.project.load(&other).unwrap().contract_hash,
        means: ApprovalMeans::Plan,
    };
    assert!(rig.project.submit(&other, &agent(), &approve).is_err());
    assert!(rig.project.submit(&other, &human(), &approve).is_ok());
}

#[test]
fn a_goal_that_rests_without_proof_goes_on_only_when_it_is_told_to() {
    let rig = WorkflowRig::new(SCRIPT);
    let base = rig.base();
    let effect = work("T-004", 1, &base, "false");
    let rests = rig.perform(&effect);
    let WorkflowOutcome::Rested {
        goal,
        worktree: _,
        status,
        commit: None,
        reason: Some(_),
    } = &rests
    else {
        panic!("it does not rest: {rests:?}");
    };
    assert!(!status.is_terminal());
    let turns = |id: &GoalId| rig.project.load(id).unwrap().spent.turns;
    let before = turns(goal);
    assert_eq!(rig.perform(&effect), rests);
    assert_eq!(turns(goal), before);
    let mut again = effect;
    let WorkflowAction::Work(work) = &mut again.action else {
        panic!("it is work");
    };
    work.goal = Some(goal.clone());
    let raise = kapi_goal::rules::budget::Raise {
        turns: 1,
        ..kapi_goal::rules::budget::Raise::default()
    };
    let raised = rig
        .project
        .submit(goal, &human(), &GoalCommand::RaiseBudget(raise));
    assert!(raised.is_ok(), "{:?}", raised.err());
    assert!(matches!(
        rig.perform(&again),
        WorkflowOutcome::Rested { .. }
    ));
    assert!(turns(goal) > before);
    assert_eq!(rig.project.goal_ids().unwrap().len(), 1);
}

#[test]
fn a_goal_whose_effect_is_not_wanted_any_more_is_let_go_of_and_goes_on_later() {
    let rig = WorkflowRig::new(
        "
turns: []
tasks:
  T-001: {turns: [{steps: [{write: {path: answer.txt, content: \"right\\n\"}}, {bash: \"test -f /tmp/go || sleep 600\"}]}]}
",
    );
    let base = rig.base();
    let effect = work("T-001", 1, &base, "grep -q right answer.txt");
    let cancel = Cancel::new();
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            let is_under_way = || {
                let reported = rig.reported.lock().unwrap();
                reported
                    .iter()
                    .any(|it| matches!(it, Activity::Tool { name, .. } if name == "bash"))
            };
            while !is_under_way() {
                thread::park_timeout(std::time::Duration::from_millis(2));
            }
            cancel.raise();
        });
        rig.perform_until(&effect, &cancel)
    });
    assert!(
        matches!(outcome, WorkflowOutcome::Cancelled { .. }),
        "{outcome:?}"
    );
    let id = rig.project.goal_ids().unwrap().remove(0);
    let goal = rig.project.load(&id).unwrap();
    assert_eq!((goal.status, goal.stop), (GoalStatus::Active, None));
    // The next to drive it finds another script, and the same goal.
    rig.machine.script(
        "
turns: []
tasks:
  T-001: {turns: [{steps: [{write: {path: answer.txt, content: \"right\\n\"}}]}]}
",
    );
    assert_eq!(proved(&rig.perform(&effect)).0, id);
}
