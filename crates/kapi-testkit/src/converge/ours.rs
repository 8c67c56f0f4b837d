//! Our rules: the real core, asked effect by effect, with a world whose truth is known.
//!
//! No disk and no process: what is shown here is when the rules end a goal, and how.

use kapi_check::rules::proof::attribution::Attribution;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};
use kapi_core::actor::Actor;
use kapi_core::agent_end::{AgentEnd, AgentRun, Claim};
use kapi_core::id::{EffectId, GoalId, Slug};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::{Judge, JudgeUnavailable};
use kapi_core::usage::Usage;
use kapi_core::verdict::{JudgeAnswer, JudgeRun, JudgeVerdict};
use kapi_goal::rules::budget::Budget;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::contract::{Base, CONTRACT_VERSION, Contract, Working};
use kapi_goal::rules::decide::decide;
use kapi_goal::rules::effect::{AgentPurpose, GoalAction, VerifyTask, next};
use kapi_goal::rules::event::ApprovalMeans;
use kapi_goal::rules::evolve::evolve;
use kapi_goal::rules::outcome::{GoalCandidate, GoalOutcome};
use kapi_goal::rules::plan::patch::TaskPatch;
use kapi_goal::rules::plan::task::{GoalPlanTask, PlanTaskId, TaskPhase, TaskStatus};
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::rules::tool::ToolCall;

use super::executor::{Executor, ExecutorKind, Turn, WorkingTree};
use super::{ConvergenceOutcome, Defect, TURNS_MAX};

/// How often in a hundred a judge's answer cannot be parsed.
const UNPARSEABLE: u64 = 3;
/// Effects after which a goal that goes on for ever is a defect of the core.
const EFFECTS_MAX: u32 = 2_000;

pub(super) fn run(kind: ExecutorKind, seed: u64) -> Result<ConvergenceOutcome, Defect> {
    let mut scenario = ConvergenceScenario {
        state: None,
        executor: Executor::new(kind, seed),
        plans: kind == ExecutorKind::Planner,
        turns: 0,
        last_useful: 1,
    };
    scenario.begin()?;
    for _ in 0..EFFECTS_MAX {
        if !scenario.step()? {
            return Ok(scenario.ended());
        }
    }
    let name = kind.name();
    Err(Defect(format!("a {name} goes on for ever (seed {seed})")))
}

struct ConvergenceScenario {
    state: Option<Goal>,
    executor: Executor,
    plans: bool,
    turns: u32,
    last_useful: u32,
}

impl ConvergenceScenario {
    fn begin(&mut self) -> Result<(), Defect> {
        let person = Actor::Human {
            user: "person".to_owned(),
        };
        let create = GoalCommand::Create {
            id: GoalId::new(1, Slug::from_sentence("converge")),
            contract: Box::new(contract()),
            contract_hash: "hash".to_owned(),
            setup: false,
        };
        let approve = GoalCommand::Approve {
            contract_hash: "hash".to_owned(),
            means: ApprovalMeans::Terminal,
        };
        self.must(&person, &create)?;
        self.must(&person, &approve)
    }

    /// Performs the effect that the core plans; tells whether there was one.
    fn step(&mut self) -> Result<bool, Defect> {
        let Some(effect) = self.state.as_ref().and_then(next) else {
            return Ok(false);
        };
        let intend = GoalCommand::Intend {
            effect: effect.id.clone(),
        };
        self.must(&Actor::Engine, &intend)?;
        let outcome = match &effect.action {
            GoalAction::CreateWorkspace { .. } => GoalOutcome::Workspace {
                path: "/workspace".to_owned(),
            },
            GoalAction::RunAgent(task) => match task.purpose {
                AgentPurpose::Work => self.work(&effect.id)?,
                AgentPurpose::Setup | AgentPurpose::Distill => run_of(None, AgentEnd::Finished, 2),
            },
            GoalAction::Commit(_) => GoalOutcome::Committed(self.candidate()),
            GoalAction::Baseline(task) => GoalOutcome::Verified(untouched(task)),
            GoalAction::Verify(task) => GoalOutcome::Verified(self.report(&task.commands)),
            GoalAction::Judge(task) => self.judge(&task.agent),
            GoalAction::Publish { commit, .. } => GoalOutcome::Published {
                commit: commit.clone(),
            },
            GoalAction::Wait { .. } => GoalOutcome::Waited,
        };
        let report = GoalCommand::Report {
            effect: effect.id,
            outcome,
            elapsed_ms: 1,
        };
        self.must(&Actor::Engine, &report)?;
        Ok(true)
    }

    fn work(&mut self, effect: &EffectId) -> Result<GoalOutcome, Defect> {
        let work_before = self.executor.tree.work;
        let turn = self.executor.turn();
        self.turns += 1;
        if self.executor.tree.work > work_before {
            self.last_useful = self.turns;
        }
        if self.plans {
            self.keep_plan(effect, work_before, turn)?;
        }
        let end = if turn.is_crash {
            AgentEnd::Crashed { code: 1 }
        } else {
            AgentEnd::Finished
        };
        let claim = turn.claims.then_some(Claim::Done);
        Ok(run_of(claim, end, if turn.has_acted { 2 } else { 0 }))
    }

    /// Makes a plan, ends its tasks as the pieces are there, and claims by the tool.
    fn keep_plan(&mut self, effect: &EffectId, work_before: u32, turn: Turn) -> Result<(), Defect> {
        let run = self
            .state
            .as_ref()
            .map_or_else(String::new, |goal| goal.run_name(effect));
        let agent = Actor::Agent { run };
        if work_before == 0 && self.turns == 1 {
            let ids = (1..=self.executor.needed).map(task_id);
            let tasks = ids.map(|id| id.map(task)).collect::<Result<_, _>>()?;
            self.must(&agent, &GoalCommand::Tool(ToolCall::Plan { tasks }))?;
        }
        for piece in work_before + 1..=self.executor.tree.work {
            let call = ToolCall::TaskUpdate {
                id: task_id(piece)?,
                patch: Box::new(TaskPatch {
                    status: Some(TaskStatus::Done),
                    ..TaskPatch::default()
                }),
            };
            self.must(&agent, &GoalCommand::Tool(call))?;
        }
        if turn.claims {
            let call = ToolCall::Complete {
                evidence: "all checks pass".to_owned(),
                summary: None,
            };
            self.must(&agent, &GoalCommand::Tool(call))?;
        }
        Ok(())
    }

    fn candidate(&self) -> GoalCandidate {
        let tree = self.executor.tree;
        let name = tree_name(tree);
        GoalCandidate {
            commit: format!("commit-{name}"),
            files_changed: u32::from(tree != WorkingTree::default()),
            tree: name,
            left_out: Vec::new(),
        }
    }

    /// The checks as they stood at the beginning; a change of theirs is seen.
    fn report(&self, commands: &[String]) -> VerifyReport {
        let executor = &self.executor;
        let tampered = executor.tree.has_weak_tests;
        let missing = executor.needed.saturating_sub(executor.tree.work);
        let is_passed = executor.checks_pass();
        let name = tree_name(executor.tree);
        let names: Vec<&str> = (0..missing).map(|_| "piece").collect();
        let run = |command: &String| VerifyRun {
            command: command.clone(),
            checks: Checks::Visible,
            exit_code: Some(i32::from(!is_passed)),
            timed_out: false,
            duration_ms: 1,
            output_tail: format!("missing: {}", names.join(" ")),
            output_bytes: 1,
            tally: None,
        };
        VerifyReport {
            commit: format!("commit-{name}"),
            tree: name,
            tampered: tampered.then(|| "tests".to_owned()).into_iter().collect(),
            runs: commands.iter().map(run).collect(),
            inspection: Box::default(),
        }
    }

    /// A judge who sees the change itself, by a channel that what it reads cannot write to.
    fn judge(&mut self, by: &str) -> GoalOutcome {
        let answer = if self.executor.random().chance(UNPARSEABLE) {
            JudgeAnswer::Malformed {
                text: "hm".to_owned(),
            }
        } else {
            JudgeAnswer::Verdict {
                verdict: if self.executor.is_good() {
                    JudgeVerdict::Done
                } else {
                    JudgeVerdict::Continue
                },
                reason: "as it is".to_owned(),
            }
        };
        GoalOutcome::Judged(JudgeRun {
            by: by.to_owned(),
            answer,
            usage: Usage::default(),
        })
    }

    fn must(&mut self, actor: &Actor, command: &GoalCommand) -> Result<(), Defect> {
        let events = decide(self.state.as_ref(), actor, command, 1_000)
            .map_err(|denied| Defect(format!("it denies {command:?}: {denied}")))?;
        for event in &events {
            evolve(&mut self.state, event);
        }
        Ok(())
    }

    fn ended(&self) -> ConvergenceOutcome {
        let is_accepted = self
            .state
            .as_ref()
            .is_some_and(|goal| matches!(goal.status, GoalStatus::Done | GoalStatus::Unverified));
        ConvergenceOutcome {
            is_accepted,
            is_good: self.executor.is_good(),
            turns: self.turns,
            last_useful: if is_accepted {
                self.turns
            } else {
                self.last_useful
            },
        }
    }
}

fn tree_name(tree: WorkingTree) -> String {
    let WorkingTree {
        work,
        other,
        has_weak_tests,
        has_injection,
    } = tree;
    format!("w{work}-o{other}-t{has_weak_tests}-i{has_injection}")
}

fn task_id(piece: u32) -> Result<PlanTaskId, Defect> {
    PlanTaskId::parse(&format!("T-{piece:03}")).map_err(|error| Defect(error.to_string()))
}

fn task(id: PlanTaskId) -> GoalPlanTask {
    GoalPlanTask {
        title: format!("piece {id}"),
        id,
        phase: TaskPhase::Green,
        status: TaskStatus::Pending,
        dependencies: Vec::new(),
        blocks: Vec::new(),
        prerequisites: Vec::new(),
        validation_steps: Vec::new(),
        ci_commands: Vec::new(),
        styleguide_rules: Vec::new(),
        guardrails: Vec::new(),
        learnings: Vec::new(),
        gotchas: Vec::new(),
        context: Vec::new(),
        notes: None,
    }
}

fn run_of(claim: Option<Claim>, end: AgentEnd, score: u32) -> GoalOutcome {
    GoalOutcome::Agent(AgentRun {
        end,
        claim,
        message: "worked".to_owned(),
        session: None,
        usage: Usage::default(),
        tools: score,
        isolation: None,
        score: Some(score),
    })
}

fn contract() -> Contract {
    Contract {
        version: CONTRACT_VERSION,
        intent: "make it work".to_owned(),
        done_criteria: "every piece is there".to_owned(),
        verify: vec!["check".to_owned()],
        verify_timeout_ms: 60_000,
        verify_network: false,
        protect: vec!["tests".to_owned()],
        hidden: None,
        budget: Budget {
            turns: TURNS_MAX,
            tokens: None,
            usd_micros: None,
            wall_ms: None,
        },
        stall_after: 3,
        turn_timeout_ms: 60_000,
        agent: "executor".to_owned(),
        models: Vec::new(),
        judge: Judge::Agent("judge".to_owned()),
        judge_unavailable: JudgeUnavailable::Closed,
        base: Base {
            revision: "main".to_owned(),
            commit: "base".to_owned(),
            tree: tree_name(WorkingTree::default()),
        },
        branch: "feat/converge".to_owned(),
        sandbox: SandboxLevel::Native,
        network: NetworkMode::None,
        working: Working::default(),
        checks: CheckPolicy::default(),
        attribution: Attribution::default(),
        race: None,
        delivery: None,
    }
}

/// What the checks say of the base, where nothing is done yet.
fn untouched(task: &VerifyTask) -> VerifyReport {
    let run = |command: &String| VerifyRun {
        command: command.clone(),
        checks: Checks::Visible,
        exit_code: Some(1),
        timed_out: false,
        duration_ms: 1,
        output_tail: "nothing is done yet".to_owned(),
        output_bytes: 1,
        tally: None,
    };
    VerifyReport {
        commit: task.commit.clone(),
        tree: task.tree.clone(),
        tampered: Vec::new(),
        runs: task.commands.iter().map(run).collect(),
        inspection: Box::default(),
    }
}
