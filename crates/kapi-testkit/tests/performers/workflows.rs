//! A workflow's effects as they are performed: real git, real sandboxes, scripted agents.
//!
//! Each is performed twice where a crash could make it so, and by somebody who means harm where
//! an agent could.

mod advancing;
mod asking;
mod branches;
mod queued;
mod terminals;
mod working;

use std::path::PathBuf;
use std::sync::Mutex;
use std::{fs, thread};

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::failure::Failure;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::Judge;
use kapi_goal::perform::real::RealWorld;
use kapi_goal::perform::tools::ToolService;
use kapi_goal::record::project::Project;
use kapi_goal::rules::budget::Budget;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_machine::watch::{Activity, EffectWatch, unlimited};
use kapi_run::goal_paths::GoalPaths;
use kapi_run::grant::Grant;
use kapi_run::host_grants::HostGrants;
use kapi_run::spending::Spending;
use kapi_spend::rules::caps::Caps;
use kapi_store::layout::{HomeLayout, ProjectLayout, project_key};
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;
use kapi_workflow::perform::{WorkflowEnvironment, perform};
use kapi_workflow::rules::branch::BranchType;
use kapi_workflow::rules::context_begin::ContextBegin;
use kapi_workflow::rules::effect::{
    AgentQuestion, GoalWork, Verification, WorkflowAction, WorkflowEffect, WorkflowLanding,
};
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::evolve::evolve;
use kapi_workflow::rules::modes::ralph::event::RalphEvent;
use kapi_workflow::rules::modes::ralph::plan::RalphPlan;
use kapi_workflow::rules::modes::ralph::spec::APPROVE_PLAN;
use kapi_workflow::rules::modes::{Begin, ModeEvent};
use kapi_workflow::rules::outcome::WorkflowOutcome;
use kapi_workflow::rules::pending::{DecisionApproval, Means};
use kapi_workflow::rules::role::RoleSpec;
use kapi_workflow::rules::state::Workflow;
use kapi_workflow::rules::terms::{PlanApproval, WorkflowTerms};

use crate::asks::human;
use crate::machine::Machine;

/// When every commit of the tests is from.
const AT: i64 = 1_700_000_000;
/// The hash of the plan that was approved.
const PLAN: &str = "5f0c";

/// A project with a workflow in it.
struct WorkflowRig {
    machine: Machine,
    project: Project<'static>,
    workflow: Mutex<Workflow>,
    /// What was told while effects were performed.
    reported: Mutex<Vec<Activity>>,
}

impl WorkflowRig {
    /// Makes a workflow whose plan was approved, worked on by the agent of this script.
    fn new(script: &str) -> Self {
        let machine = Machine::new();
        let agent = machine.script(script);
        let base = machine.git(&["rev-parse", "HEAD"]);
        let begin = Begin::Ralph(ContextBegin {
            base,
            interview: None,
            spec: None,
        });
        let rig = Self::on(machine, &agent, begin);
        rig.record(&WorkflowEvent::Mode(ModeEvent::Ralph(
            RalphEvent::PlanProposed {
                cycle: 1,
                plan: Box::new(plan()),
            },
        )));
        rig.record(&WorkflowEvent::Approved {
            approval: DecisionApproval {
                decision: APPROVE_PLAN,
                sha256: PLAN.to_owned(),
                means: Means::Terminal,
                by: "human:test".to_owned(),
                accepted: Vec::new(),
                at_ms: 1,
            },
        });
        rig
    }

    fn on(machine: Machine, agent: &str, begin: Begin) -> Self {
        let app = machine.app();
        let project = Project {
            disk: &RealDisk,
            clock: &SystemClock,
            layout: ProjectLayout::new(app.clone()),
            owner: "test".to_owned(),
            home: Some(home(&machine)),
        };
        project.prepare().unwrap();
        let mut workflow = None;
        let started = WorkflowEvent::Started {
            id: GoalId::parse("900-demo").unwrap(),
            purpose: "show it".to_owned(),
            by: "human:test".to_owned(),
            terms: Box::new(terms(agent)),
            begin,
            at_ms: 1,
        };
        evolve(&mut workflow, &started);
        Self {
            machine,
            project,
            workflow: Mutex::new(workflow.unwrap()),
            reported: Mutex::new(Vec::new()),
        }
    }

    fn record(&self, event: &WorkflowEvent) {
        let mut held = self.workflow.lock().unwrap();
        let mut workflow = Some(held.clone());
        evolve(&mut workflow, event);
        *held = workflow.unwrap();
    }

    fn base(&self) -> String {
        self.machine.git(&["rev-parse", "main"])
    }

    fn home(&self) -> HomeLayout {
        HomeLayout::new(&home(&self.machine))
    }

    fn grants(&self) -> HostGrants {
        let env = ["PATH", "TERM"].into_iter().filter_map(|name| {
            let value = std::env::var_os(name)?;
            Some((name.into(), value))
        });
        HostGrants {
            agents: std::collections::BTreeMap::default(),
            judges: std::collections::BTreeMap::default(),
            prices: kapi_spend::rules::prices::Prices::default(),
            grant: Grant::default(),
            env: env.collect(),
            home: home(&self.machine),
            self_exe: PathBuf::from(env!("CARGO_BIN_EXE_kapi-testkit-helper")),
        }
    }

    fn world(&self, id: &GoalId) -> RealWorld<'_> {
        let app = self.machine.app();
        let key = project_key(&app);
        let home = self.home();
        RealWorld {
            location: GoalPaths {
                ref_name: id.to_string(),
                worktree: home.worktree(&key, id),
                runs: self.project.layout.state_dir().join("runs"),
                hidden: self.project.layout.goal(id).hidden(),
                scratch: home.sandbox(&key, id),
                stores: home.stores_dir(),
                project: app,
            },
            grants: self.grants(),
            clock: &SystemClock,
            tool_service: ToolService {
                project: self.project.clone(),
                autopilot: None,
                judge_default: None,
                person: None,
                named_checks: std::sync::Arc::new(|_| Ok(Vec::new())),
                tasks: kapi_goal::perform::tools::TaskTools {
                    are_offered: false,
                    call: std::sync::Arc::new(|_, _, _| None),
                },
            },
            spending: Spending {
                ledger: None,
                caps: Caps::none(),
                project: key,
                clock: &SystemClock,
            },
        }
    }

    fn perform(&self, effect: &WorkflowEffect) -> WorkflowOutcome {
        self.perform_until(effect, &Cancel::new())
    }

    fn perform_until(&self, effect: &WorkflowEffect, cancel: &Cancel) -> WorkflowOutcome {
        let workflow =
            || -> Result<Workflow, Failure> { Ok(self.workflow.lock().unwrap().clone()) };
        let world = |id: &GoalId| -> Result<RealWorld<'_>, Failure> { Ok(self.world(id)) };
        let guidance = |name: &str| Some(format!("How to {name}.")).filter(|_| name != "missing");
        let location = WorkflowEnvironment {
            project: &self.project,
            person: human(),
            workflow: &workflow,
            world: &world,
            guidance: &guidance,
            as_task: &|asked, watch| queued::as_task(self, asked, watch),
        };
        let notice = |activity| self.reported.lock().unwrap().push(activity);
        let watch = EffectWatch {
            cancel,
            notice: &notice,
            room: &unlimited,
        };
        perform(&location, effect, &watch)
    }

    /// Performs several effects at once.
    fn perform_all(&self, effects: &[WorkflowEffect]) -> Vec<WorkflowOutcome> {
        thread::scope(|scope| {
            let threads: Vec<_> = effects
                .iter()
                .map(|effect| scope.spawn(|| self.perform(effect)))
                .collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        })
    }

    /// Makes the workflow's branch and returns its worktree.
    fn prepare(&self) -> (String, String) {
        let effect = self.prepare_effect("feat/ralph-demo");
        let WorkflowOutcome::Prepared {
            branch, worktree, ..
        } = self.perform(&effect)
        else {
            panic!("there is no branch");
        };
        self.record(&WorkflowEvent::Mode(ModeEvent::Ralph(
            RalphEvent::BranchPrepared {
                branch: branch.clone(),
                worktree: worktree.clone(),
                base: self.base(),
            },
        )));
        (branch, worktree)
    }

    fn prepare_effect(&self, branch: &str) -> WorkflowEffect {
        let action = WorkflowAction::Prepare {
            branch: branch.to_owned(),
            base: self.base(),
            checks: Box::new(Verification {
                commit: self.base(),
                base: self.base(),
                commands: Vec::new(),
                protect: Vec::new(),
                timeout_ms: 60_000,
                sandbox: SandboxLevel::Native,
            }),
        };
        effect("prepare", action)
    }

    /// Returns a question in a role.
    fn question(&self, role: &'static RoleSpec, agent: &str, ordinal: u32) -> WorkflowEffect {
        let name = format!("{}-{ordinal}", role.name);
        let action = WorkflowAction::Ask(Box::new(AgentQuestion {
            role,
            ordinal,
            agent: agent.to_owned(),
            prompt: "Look, and answer.".to_owned(),
            guidance: vec!["code-review"],
            commit: Some(self.base()),
            since: None,
            deadline_ms: 60_000,
            sandbox: SandboxLevel::Native,
            network: NetworkMode::None,
        }));
        effect(&name, action)
    }

    /// Lands a commit on the branch, which is at `head`.
    fn landing(&self, task: &str, (commit, base, head): (&str, &str, &str)) -> WorkflowEffect {
        let (branch, worktree) = {
            let state = self.workflow.lock().unwrap();
            let kapi_workflow::rules::modes::Body::Ralph(ralph) = &state.body else {
                panic!("it is a ralph workflow");
            };
            let branch = ralph.branch.clone().unwrap();
            (branch.name, branch.worktree)
        };
        let action = WorkflowAction::Land(Box::new(WorkflowLanding {
            within: Vec::new(),
            goal: None,
            task: PlanTaskId::parse(task).unwrap(),
            commit: commit.to_owned(),
            base: base.to_owned(),
            branch,
            worktree,
            head: head.to_owned(),
            message: format!("feat: {task}\n"),
            at_s: AT,
        }));
        effect(&format!("land-{task}"), action)
    }

    /// Returns what was told as notes.
    fn notes(&self) -> String {
        let reported = self.reported.lock().unwrap();
        let notes = reported.iter().filter_map(|activity| match activity {
            Activity::Note { text } => Some(text.as_str()),
            _ => None,
        });
        notes.collect::<Vec<_>>().join("\n")
    }

    /// Returns the person's directory for what was approved.
    fn approvals(&self) -> usize {
        let dir = self.home().state_dir().join("approvals");
        let listed = fs::read_dir(dir).map(Iterator::flatten);
        let dirs = listed.into_iter().flatten();
        dirs.flat_map(|dir| fs::read_dir(dir.path()).into_iter().flatten().flatten())
            .filter(|file| file.path().extension().is_some_and(|it| it == "json"))
            .count()
    }
}

fn home(machine: &Machine) -> PathBuf {
    machine.app().parent().unwrap().join("home")
}

fn effect(name: &str, action: WorkflowAction) -> WorkflowEffect {
    WorkflowEffect {
        id: EffectId::new(1, name, 1),
        workflow: GoalId::parse("900-demo").unwrap(),
        action,
    }
}

/// Returns the work on a task.
fn work(task: &str, attempt: u32, base: &str, verify: &str) -> WorkflowEffect {
    let action = WorkflowAction::Work(Box::new(GoalWork {
        task: PlanTaskId::parse(task).unwrap(),
        attempt,
        goal: None,
        title: format!("Do {task}"),
        intent: "Make it so.".to_owned(),
        criteria: "It is so.".to_owned(),
        verify: vec![verify.to_owned()],
        base: base.to_owned(),
        budget: terms("").budget,
        branch_type: plan().branch_type,
        checks: CheckPolicy {
            already_green: task.starts_with("F-"),
            ..CheckPolicy::default()
        },
        guidance: vec!["ralph"],
    }));
    effect(&format!("work-{task}-{attempt}"), action)
}

fn terms(agent: &str) -> WorkflowTerms {
    WorkflowTerms {
        agent: agent.to_owned(),
        reviewer: None,
        models: Vec::new(),
        judge: Judge::None,
        sandbox: SandboxLevel::Native,
        network: NetworkMode::None,
        budget: Budget {
            turns: 2,
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
        protect: vec!["notes/**".to_owned()],
        verify: vec!["test -f answer.txt".to_owned()],
        delivery: None,
        plan_approval: PlanApproval::Ask,
    }
}

fn plan() -> RalphPlan {
    RalphPlan {
        summary: "Do it.".to_owned(),
        branch_type: BranchType::Fix,
        context: "There is a file.".to_owned(),
        options: Vec::new(),
        tasks: Vec::new(),
        criteria: Vec::new(),
        excluded: Vec::new(),
        risks: Vec::new(),
        verify: Vec::new(),
    }
}

/// Returns the goal that came to rest and the commit it was proved with.
#[track_caller]
fn proved(outcome: &WorkflowOutcome) -> (GoalId, String) {
    match outcome {
        WorkflowOutcome::Rested {
            goal,
            commit: Some(commit),
            ..
        } => (goal.clone(), commit.clone()),
        other => panic!("it was not proved: {other:?}"),
    }
}

/// Returns the branch's commit after a landing, and whether it was merged.
#[track_caller]
fn landed(outcome: &WorkflowOutcome) -> (String, bool) {
    match outcome {
        WorkflowOutcome::Landed { head, merged, .. } => (head.clone(), *merged),
        other => panic!("it did not land: {other:?}"),
    }
}

/// Returns why an effect failed, and whether that may pass.
#[track_caller]
fn failed(outcome: &WorkflowOutcome) -> (String, bool) {
    match outcome {
        WorkflowOutcome::Failed {
            failure, may_pass, ..
        } => (failure.message.clone(), *may_pass),
        other => panic!("it did not fail: {other:?}"),
    }
}

/// Returns the actor who is nobody's person.
fn agent() -> Actor {
    Actor::Agent {
        run: "r".to_owned(),
    }
}
