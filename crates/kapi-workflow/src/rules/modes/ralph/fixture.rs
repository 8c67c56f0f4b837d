//! A build that tests drive by hand: plans, answers and outcomes, and every fact that came of them.

pub(super) mod outcomes;

use kapi_core::actor::Actor;
use kapi_core::id::{EffectId, GoalId};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::Judge;
use kapi_goal::rules::budget::Budget;
use kapi_goal::rules::plan::task::PlanTaskId;
use kapi_goal::rules::state::GoalStatus;

use crate::rules::branch::BranchType;
use crate::rules::changed::LandedPaths;
use crate::rules::command::{WorkflowCommand, WorkflowStart};
use crate::rules::context_begin::ContextBegin;
use crate::rules::decide::decide;
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::WorkflowDenial;
use crate::rules::effect::{WorkflowAction, WorkflowEffect, next};
use crate::rules::event::WorkflowEvent;
use crate::rules::evolve::evolve;
use crate::rules::modes::ralph::answer::{Accounting, RalphAnswer};
use crate::rules::modes::ralph::fixture::outcomes::{answered, landed, report, rested};
use crate::rules::modes::ralph::plan::{
    Alternative, Consensus, Criterion, Isolation, Objections, PlanObjection, PlanTask, RalphPlan,
    Synthesis,
};
use crate::rules::modes::ralph::review::{FindingCategory, ReviewFinding, ReviewFindings};
use crate::rules::modes::ralph::role::RalphRole;
use crate::rules::modes::ralph::state::Ralph;
use crate::rules::modes::{Begin, Body};
use crate::rules::outcome::WorkflowOutcome;
use crate::rules::pending::Means;
use crate::rules::state::Workflow;
use crate::rules::terms::{PlanApproval, WorkflowTerms};

/// A hash that is quick and good enough for tests: FNV-1a.
pub(super) fn sha256(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

pub(super) const GIVEN: DecisionContext = DecisionContext {
    now_ms: 1_760_000_000_000,
    sha256,
};

pub(super) fn human() -> Actor {
    Actor::Human {
        user: "somebody".to_owned(),
    }
}

pub(super) fn agent() -> Actor {
    Actor::Agent {
        run: "run-9".to_owned(),
    }
}

pub(super) fn task_id(text: &str) -> PlanTaskId {
    PlanTaskId::parse(text).unwrap()
}

pub(super) fn goal_id(text: &str) -> GoalId {
    GoalId::parse(text).unwrap()
}

pub(super) fn terms() -> WorkflowTerms {
    WorkflowTerms {
        agent: "claude".to_owned(),
        reviewer: Some("codex".to_owned()),
        models: Vec::new(),
        judge: Judge::Same,
        sandbox: SandboxLevel::Native,
        network: NetworkMode::None,
        budget: Budget {
            turns: 10,
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
        verify: vec!["sh lint.sh".to_owned()],
        delivery: None,
        plan_approval: PlanApproval::Ask,
    }
}

pub(super) fn task(id: &str, depends_on: &[&str], touches: &[&str]) -> PlanTask {
    PlanTask {
        id: task_id(id),
        title: format!("Title of {id}"),
        description: format!("What {id} does."),
        depends_on: depends_on.iter().map(|id| task_id(id)).collect(),
        touches: touches.iter().map(|&glob| glob.to_owned()).collect(),
        isolation: Isolation::Own,
        verify: vec![format!("sh {id}.sh")],
        criteria: vec!["AC-1".to_owned()],
    }
}

pub(super) fn plan(tasks: Vec<PlanTask>) -> RalphPlan {
    let considered = |name: &str, rejected: Option<&str>| Alternative {
        name: name.to_owned(),
        summary: format!("The way of {name}."),
        rejected: rejected.map(str::to_owned),
    };
    let criterion = |id: &str, text: &str, check: Result<&str, &str>| Criterion {
        id: id.to_owned(),
        text: text.to_owned(),
        verify: check.ok().map(str::to_owned),
        exempt: check.err().map(str::to_owned),
    };
    RalphPlan {
        summary: "Do it in small steps.".to_owned(),
        branch_type: BranchType::Feat,
        context: "There is a file.".to_owned(),
        options: vec![
            considered("steps", None),
            considered("leap", Some("It cannot be proved on the way.")),
        ],
        tasks,
        criteria: vec![
            criterion("AC-1", "It works.", Ok("sh works.sh")),
            criterion("AC-2", "It reads well.", Err("Taste has no exit code.")),
        ],
        excluded: vec!["the other thing".to_owned()],
        risks: vec!["it may rain".to_owned()],
        verify: vec!["sh all.sh".to_owned()],
    }
}

/// Two tasks that may run at once.
pub(super) fn parallel() -> RalphPlan {
    plan(vec![
        task("T-001", &[], &["src/a/**"]),
        task("T-002", &[], &["src/b/**"]),
    ])
}

/// Two tasks, one after the other.
pub(super) fn in_a_row() -> RalphPlan {
    plan(vec![
        task("T-001", &[], &["src/a/**"]),
        task("T-002", &["T-001"], &["src/b/**"]),
    ])
}

pub(super) fn objections() -> Objections {
    Objections {
        strongest: "It may be too slow.".to_owned(),
        tension: "Speed against clarity.".to_owned(),
        objections: vec![PlanObjection {
            text: "T-001 has no test.".to_owned(),
            blocking: true,
        }],
    }
}

pub(super) fn synthesis(verdict: Consensus, dissent: &[&str], plan: RalphPlan) -> Synthesis {
    Synthesis {
        verdict,
        answers: vec!["It has one now.".to_owned()],
        dissent: dissent.iter().map(|&text| text.to_owned()).collect(),
        plan,
    }
}

pub(super) fn finding(category: FindingCategory, must_fix: bool) -> ReviewFinding {
    ReviewFinding {
        category,
        must_fix,
        file: Some("src/a/x.rs".to_owned()),
        line: Some(7),
        title: format!("A case of {}", category.words()),
        detail: "One sees it by running it.".to_owned(),
    }
}

pub(super) fn findings(findings: Vec<ReviewFinding>) -> ReviewFindings {
    ReviewFindings {
        approve: !findings.iter().any(ReviewFinding::holds_back),
        summary: "Looked at everything.".to_owned(),
        findings,
        replan: None,
    }
}

pub(super) fn account() -> RalphAnswer {
    RalphAnswer::Account(Accounting {
        rationale: "Every check fails without the change.".to_owned(),
        risks: vec!["Old clients.".to_owned()],
        follow_up: vec!["Write to the users.".to_owned()],
    })
}

/// A build and everything that happened to it.
#[derive(Clone)]
pub(super) struct Build {
    pub(super) workflow: Workflow,
    pub(super) log: Vec<WorkflowEvent>,
    n_runs: u32,
}

impl Build {
    /// Starts a build.
    pub(super) fn start(terms: WorkflowTerms) -> Self {
        Self::begin(
            terms,
            Begin::Ralph(ContextBegin {
                base: "base".to_owned(),
                interview: None,
                spec: None,
            }),
        )
    }

    pub(super) fn begin(terms: WorkflowTerms, begin: Begin) -> Self {
        let start = WorkflowCommand::Start(Box::new(WorkflowStart {
            id: goal_id("011-fix-login"),
            purpose: "Fix the login.".to_owned(),
            terms,
            begin,
        }));
        let log = decide(None, &human(), &start, &GIVEN).unwrap();
        let mut workflow = None;
        for event in &log {
            evolve(&mut workflow, event);
        }
        Self {
            workflow: workflow.unwrap(),
            log,
            n_runs: 0,
        }
    }

    pub(super) fn ralph(&self) -> &Ralph {
        let Body::Ralph(ralph) = &self.workflow.body else {
            panic!("not a build");
        };
        ralph
    }

    /// Asks for something that is granted.
    pub(super) fn ask(&mut self, actor: &Actor, command: &WorkflowCommand) -> Vec<WorkflowEvent> {
        let events = self
            .try_ask(actor, command)
            .unwrap_or_else(|denied| panic!("{command:?}: {denied}"));
        let mut workflow = Some(self.workflow.clone());
        for event in &events {
            evolve(&mut workflow, event);
        }
        self.workflow = workflow.unwrap();
        self.log.extend(events.iter().cloned());
        events
    }

    pub(super) fn try_ask(
        &self,
        actor: &Actor,
        command: &WorkflowCommand,
    ) -> Result<Vec<WorkflowEvent>, WorkflowDenial> {
        decide(Some(&self.workflow), actor, command, &GIVEN)
    }

    /// Returns the effects that should be under way, by name.
    pub(super) fn wanted(&self) -> Vec<String> {
        next(&self.workflow)
            .iter()
            .map(|effect| effect.id.to_string())
            .collect()
    }

    /// Returns the effect whose name holds some words.
    pub(super) fn effect(&self, stage: &str) -> WorkflowEffect {
        next(&self.workflow)
            .into_iter()
            .find(|effect| effect.id.as_str().contains(stage))
            .unwrap_or_else(|| panic!("{stage} is not among {:?}", self.wanted()))
    }

    /// Returns the prompt of the question that is asked now.
    pub(super) fn prompt(&self, role: RalphRole) -> String {
        let WorkflowAction::Ask(question) = self.effect(role.as_str()).action else {
            panic!("not a question");
        };
        question.prompt
    }

    /// Begins an effect.
    pub(super) fn intend(&mut self, stage: &str) -> EffectId {
        let effect = self.effect(stage).id;
        let command = WorkflowCommand::Intend {
            effect: effect.clone(),
        };
        self.ask(&Actor::Engine, &command);
        effect
    }

    /// Performs an effect.
    pub(super) fn perform(&mut self, stage: &str, outcome: WorkflowOutcome) -> Vec<WorkflowEvent> {
        let effect = self.intend(stage);
        self.report(effect, outcome)
    }

    pub(super) fn report(
        &mut self,
        effect: EffectId,
        outcome: WorkflowOutcome,
    ) -> Vec<WorkflowEvent> {
        let command = WorkflowCommand::Report {
            effect,
            outcome: Box::new(outcome),
        };
        self.ask(&Actor::Engine, &command)
    }

    /// Lets an agent answer, in a run of its own.
    pub(super) fn answer(&mut self, role: RalphRole, answer: RalphAnswer) -> Vec<WorkflowEvent> {
        self.n_runs += 1;
        let who = match role {
            RalphRole::Antithesis | RalphRole::Reviewer => "critic",
            RalphRole::Thesis | RalphRole::Synthesis | RalphRole::Accountant => "run",
        };
        let outcome = answered(&format!("{who}-{}", self.n_runs), answer);
        self.perform(role.as_str(), outcome)
    }

    /// Argues about a plan until it is proposed.
    pub(super) fn agree(&mut self, plan: &RalphPlan) {
        self.argue(plan);
        self.check_base(&[]);
    }

    /// Argues about a plan until there is consensus.
    pub(super) fn argue(&mut self, plan: &RalphPlan) {
        self.answer(RalphRole::Thesis, RalphAnswer::Thesis(plan.clone()));
        self.answer(RalphRole::Antithesis, RalphAnswer::Antithesis(objections()));
        let found = synthesis(Consensus::Consensus, &[], plan.clone());
        self.answer(RalphRole::Synthesis, RalphAnswer::Synthesis(found));
    }

    /// Runs the checks of a plan on the base, where they are wanted: these pass.
    pub(super) fn check_base(&mut self, passing: &[&str]) {
        if !self.wanted().iter().any(|id| id.contains("check-base")) {
            return;
        }
        let WorkflowAction::Verify(asked) = self.effect("check-base").action else {
            panic!("not a verification");
        };
        let fails = |command: &&String| !passing.contains(&command.as_str());
        let failing: Vec<&str> = asked
            .commands
            .iter()
            .filter(fails)
            .map(String::as_str)
            .collect();
        let report = report(&asked.commit, &asked.commands, &failing);
        self.perform("check-base", WorkflowOutcome::Verified(report));
    }

    pub(super) fn approval(&self, accepts_risks: bool) -> WorkflowCommand {
        let pending = self.workflow.pending.as_ref();
        let sha256 = pending.map_or_else(String::new, |pending| pending.sha256.clone());
        WorkflowCommand::Approve {
            found: sha256.clone(),
            sha256,
            means: Means::Terminal,
            accepts_risks,
        }
    }

    /// Argues about a plan, approves it and makes the branch.
    pub(super) fn run(terms: WorkflowTerms, plan: &RalphPlan) -> Self {
        let mut build = Self::start(terms);
        build.agree(plan);
        build.ask(&human(), &build.approval(false));
        build.prepare();
        build
    }

    /// Argues about a plan that was approved in advance, and makes the branch.
    pub(super) fn run_in_advance(terms: WorkflowTerms, plan: &RalphPlan) -> Self {
        let mut build = Self::start(terms);
        build.agree(plan);
        build.prepare();
        build
    }

    fn prepare(&mut self) {
        self.perform(
            "prepare",
            WorkflowOutcome::Prepared {
                branch: "feat/ralph-fix-login".to_owned(),
                worktree: "wt".to_owned(),
                baseline: None,
            },
        );
    }

    /// Proves a task.
    pub(super) fn prove(&mut self, task: &str, commit: &str) -> Vec<WorkflowEvent> {
        let digits: String = task.chars().filter(char::is_ascii_digit).collect();
        let goal = format!("{digits}-goal");
        self.perform(
            &format!("work-{task}"),
            rested(&goal, GoalStatus::Done, Some(commit)),
        )
    }

    /// Lands a task.
    pub(super) fn land(&mut self, task: &str, head: &str, merged: bool) -> Vec<WorkflowEvent> {
        self.perform(&format!("land-{task}"), landed(head, merged))
    }

    /// Lands a task that changed these paths.
    pub(super) fn land_with(
        &mut self,
        task: &str,
        (head, merged): (&str, bool),
        paths: &[&str],
    ) -> Vec<WorkflowEvent> {
        let mut outcome = landed(head, merged);
        if let WorkflowOutcome::Landed { changed, .. } = &mut outcome {
            *changed = LandedPaths::of(paths.iter().map(|&path| path.to_owned()).collect());
        }
        self.perform(&format!("land-{task}"), outcome)
    }

    /// Verifies what is asked for; commands named here fail.
    pub(super) fn verify(&mut self, failing: &[&str]) -> Vec<WorkflowEvent> {
        let WorkflowAction::Verify(asked) = self.effect("verify-").action else {
            panic!("not a verification");
        };
        let report = report(&asked.commit, &asked.commands, failing);
        self.perform("verify-", WorkflowOutcome::Verified(report))
    }

    pub(super) fn review(&mut self, said: ReviewFindings) -> Vec<WorkflowEvent> {
        self.answer(RalphRole::Reviewer, RalphAnswer::Review(said))
    }

    /// Returns the text of an artifact.
    pub(super) fn document(&self, name: &str) -> String {
        crate::rules::documents::documents(&self.workflow)
            .into_iter()
            .find(|document| document.name == name)
            .unwrap_or_else(|| panic!("{name} is not there"))
            .text
    }
}
