//! An integration that tests drive by hand: sources, conflicts, checks and verdicts.
//!
//! Only for tests.

use kapi_check::rules::proof::verify_report::VerifyReport;
use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};
use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_core::usage::Usage;

use crate::rules::changed::LandedPaths;
use crate::rules::command::{WorkflowCommand, WorkflowStart};
use crate::rules::effect::combine::{
    CombineReport, CombineStep, ConflictedPath, Coverage, CoverageFault, CoverageFinding,
    Foresight, OrderedSource, RegenerationRun,
};
use crate::rules::effect::{WorkflowAction, next};
use crate::rules::event::WorkflowEvent;
use crate::rules::identity::ReviewerIdentity;
use crate::rules::modes::integrate::answer::{
    Attack, Defence, IntegrateAnswer, IntegrationFindings, IntegrationObjection, LandingVerdict,
    Resolution, RevisionCause, Ruling,
};
use crate::rules::modes::integrate::begin::IntegrateBegin;
use crate::rules::modes::integrate::command::IntegrateCommand;
use crate::rules::modes::integrate::leave::IntegrateLeave;
use crate::rules::modes::integrate::plan::ProposedPlan;
use crate::rules::modes::integrate::role::IntegrateRole;
use crate::rules::modes::integrate::source::{Source, SourceCheck, SourceIntent};
use crate::rules::modes::integrate::state::Integrate;
use crate::rules::modes::{Begin, Body, ModeAnswer};
use crate::rules::outcome::{ProposalReport, ProposedCommit, RestorationReport, WorkflowOutcome};
use crate::rules::scenario::{WorkflowTestScenario, human, terms};
use crate::rules::state::Workflow;

/// The names of the sources, in their order.
pub(crate) const NAMES: [&str; 3] = ["001-one", "002-two", "003-three"];

/// Returns the id of a source.
pub(crate) fn id(name: &str) -> GoalId {
    GoalId::parse(name).unwrap()
}

/// Returns a source that its own command proved.
pub(crate) fn source(name: &str) -> Source {
    Source {
        id: id(name),
        mode: (name == "001-one").then_some(Mode::Ralph),
        title: format!("Do {name}"),
        branch: format!("feat/{name}"),
        base: "dev-0".to_owned(),
        commit: format!("proved-{name}"),
        intents: vec![SourceIntent {
            name: "T-001".to_owned(),
            text: format!("What {name} is for"),
        }],
        excluded: vec!["The rest".to_owned()],
        checks: vec![
            SourceCheck {
                command: format!("sh {name}.sh"),
                failed_before: true,
            },
            SourceCheck {
                command: "sh all.sh".to_owned(),
                failed_before: false,
            },
        ],
        evidence: Vec::new(),
    }
}

/// Returns the command that begins an integration of so many sources.
pub(crate) fn start(n: usize, leave: IntegrateLeave) -> WorkflowCommand {
    WorkflowCommand::Start(Box::new(WorkflowStart {
        id: id("009-put-together"),
        purpose: "Put it together".to_owned(),
        terms: terms(),
        begin: Begin::Integrate(IntegrateBegin {
            target: "dev-0".to_owned(),
            sources: NAMES.iter().take(n).map(|name| source(name)).collect(),
            leave,
            rules: Vec::new(),
        }),
    }))
}

/// Returns the integration of a workflow.
pub(crate) fn of(workflow: &Workflow) -> &Integrate {
    let Body::Integrate(state) = &workflow.body else {
        panic!("not an integration");
    };
    state
}

/// Returns what the checks show, some of which fail.
pub(crate) fn report(commit: &str, commands: &[String], failing: &[&str]) -> VerifyReport {
    let run = |command: &String| {
        let fails = failing.contains(&command.as_str());
        VerifyRun {
            command: command.clone(),
            checks: Checks::Visible,
            exit_code: Some(i32::from(fails)),
            timed_out: false,
            duration_ms: 5,
            output_tail: if fails { "no\n" } else { "yes\n" }.to_owned(),
            output_bytes: 4,
            tally: None,
        }
    };
    VerifyReport {
        commit: commit.to_owned(),
        tree: format!("tree-{commit}"),
        tampered: Vec::new(),
        runs: commands.iter().map(run).collect(),
        inspection: Box::default(),
    }
}

/// Returns what is foreseen where everything fits.
pub(crate) fn foresight(state: &Integrate, target: &str) -> Foresight {
    Foresight {
        target: target.to_owned(),
        order: state
            .left()
            .iter()
            .map(|source| OrderedSource {
                source: source.id.clone(),
                after: Vec::new(),
                why: "it was named first".to_owned(),
            })
            .collect(),
        ..Foresight::default()
    }
}

/// Returns a finding that nobody can explain mechanically.
pub(crate) fn finding(kind: CoverageFault) -> CoverageFinding {
    CoverageFinding {
        kind,
        source: Some(id("001-one")),
        path: "src/a.rs".to_owned(),
        line: 7,
        what: "a line".to_owned(),
    }
}

/// Returns a path that does not fit.
pub(crate) fn clash() -> Vec<ConflictedPath> {
    vec![ConflictedPath {
        path: "src/a.rs".to_owned(),
        base: Some("b".to_owned()),
        ours: Some("o".to_owned()),
        theirs: Some("t".to_owned()),
        by_rule: None,
        regenerate: None,
        remembered: None,
    }]
}

/// Returns a lock file that does not fit, and that a tool writes anew.
pub(crate) fn lock_clash() -> Vec<ConflictedPath> {
    vec![ConflictedPath {
        path: "deps.lock".to_owned(),
        by_rule: Some("`sh lock.sh` writes it".to_owned()),
        regenerate: Some("sh lock.sh".to_owned()),
        ..clash().remove(0)
    }]
}

/// Returns how a tool ended that writes a file anew.
pub(crate) fn regenerated(commit: Option<&str>) -> CombineReport {
    let failing: &[&str] = if commit.is_some() {
        &[]
    } else {
        &["sh lock.sh"]
    };
    let shown = report("", &["sh lock.sh".to_owned()], failing);
    CombineReport::Regenerated {
        commit: commit.map(str::to_owned),
        runs: shown
            .runs
            .into_iter()
            .map(|run| RegenerationRun {
                path: "deps.lock".to_owned(),
                run,
            })
            .collect(),
    }
}

/// Returns a resolution.
pub(crate) fn resolution(unresolvable: bool) -> Resolution {
    Resolution {
        options: vec!["Both".to_owned(), "Neither".to_owned()],
        choice: "Both".to_owned(),
        rationale: "Both are wanted.".to_owned(),
        unresolvable,
    }
}

/// Returns a ruling.
pub(crate) fn ruling(verdict: LandingVerdict, cause: Option<RevisionCause>) -> Ruling {
    Ruling {
        verdict,
        cause,
        source: Some(id("001-one")),
        why: "Because.".to_owned(),
        answers: vec!["It is.".to_owned()],
        checks: Vec::new(),
    }
}

/// Returns an answer as good as it can be.
pub(crate) fn good_answer(state: &Integrate, role: IntegrateRole) -> IntegrateAnswer {
    match role {
        IntegrateRole::Planner => IntegrateAnswer::Plan(proposed_plan(state)),
        IntegrateRole::Resolver => IntegrateAnswer::Resolution(resolution(false)),
        IntegrateRole::Reviewer => IntegrateAnswer::Review(IntegrationFindings {
            summary: "Read.".to_owned(),
            justified: state
                .findings()
                .map(
                    |(finding, _)| crate::rules::modes::integrate::answer::JustifiedFinding {
                        finding,
                        why: "It is needed.".to_owned(),
                    },
                )
                .collect(),
            problems: Vec::new(),
        }),
        IntegrateRole::Thesis => IntegrateAnswer::Thesis(Defence {
            defence: "It is right.".to_owned(),
            points: vec!["It passes.".to_owned()],
        }),
        IntegrateRole::Antithesis => IntegrateAnswer::Antithesis(Attack {
            strongest: "Nothing.".to_owned(),
            objections: vec![IntegrationObjection {
                cause: RevisionCause::Verification,
                text: "It is untested.".to_owned(),
                blocking: false,
            }],
        }),
        IntegrateRole::Synthesis => {
            IntegrateAnswer::Synthesis(ruling(LandingVerdict::Approve, None))
        }
    }
}

/// Returns the plan of what was foreseen, as a planner would say it.
pub(crate) fn proposed_plan(state: &Integrate) -> ProposedPlan {
    let foresight = state.foresight.clone().unwrap_or_default();
    let plan = crate::rules::modes::integrate::planning::foreseen(state, &foresight, &[]);
    ProposedPlan {
        steps: plan.steps,
        left_out: Vec::new(),
        verify: vec!["sh more.sh".to_owned()],
        rationale: "As before.".to_owned(),
    }
}

/// Returns an answer as an outcome of the effect that is wanted.
pub(crate) fn said(workflow: &Workflow, answer: IntegrateAnswer) -> WorkflowOutcome {
    let run = next(workflow)
        .first()
        .map_or_else(String::new, |effect| effect.id.to_string());
    let by = ReviewerIdentity {
        agent: "script:a".to_owned(),
        run,
    };
    WorkflowOutcome::Answered {
        by,
        answer: Box::new(ModeAnswer::Integrate(answer)),
        usage: Usage::default(),
    }
}

/// Returns what a resolver leaves; no commit where it changed nothing.
pub(crate) fn left(workflow: &Workflow, said: Resolution, commit: Option<&str>) -> WorkflowOutcome {
    let run = next(workflow)
        .first()
        .map_or_else(String::new, |effect| effect.id.to_string());
    WorkflowOutcome::Proposed(Box::new(ProposalReport {
        by: ReviewerIdentity {
            agent: "script:a".to_owned(),
            run,
        },
        answer: ModeAnswer::Integrate(IntegrateAnswer::Resolution(said)),
        candidate: commit.map(|commit| ProposedCommit {
            commit: commit.to_owned(),
            tree: format!("tree-{commit}"),
            changed: LandedPaths::of(vec!["src/a.rs".to_owned()]),
            left_out: Vec::new(),
        }),
        usage: Usage::default(),
    }))
}

/// Returns a step's report as an outcome.
pub(crate) fn combined(report: CombineReport) -> WorkflowOutcome {
    WorkflowOutcome::Combined(Box::new(report))
}

/// Returns what is hoped for of the effect that is wanted.
pub(crate) fn good(workflow: &Workflow) -> WorkflowOutcome {
    let state = of(workflow);
    let effect = next(workflow)
        .into_iter()
        .next()
        .expect("something is wanted");
    match effect.action {
        WorkflowAction::Ask(question) => {
            let role = IntegrateRole::of(question.role).unwrap();
            said(workflow, good_answer(state, role))
        }
        WorkflowAction::Prepare { branch, .. } => WorkflowOutcome::Prepared {
            branch,
            worktree: "/wt".to_owned(),
            baseline: None,
        },
        WorkflowAction::Verify(asked) if asked.commit == state.start() => {
            WorkflowOutcome::Verified(report(&asked.commit, &asked.commands, &own(state)))
        }
        WorkflowAction::Verify(asked) => {
            WorkflowOutcome::Verified(report(&asked.commit, &asked.commands, &[]))
        }
        WorkflowAction::Propose(_) => {
            let commit = format!("resolved-{}", effect.id);
            left(workflow, resolution(false), Some(&commit))
        }
        WorkflowAction::Restore(wanted) => WorkflowOutcome::Restored(RestorationReport {
            tree: format!("tree-{}", wanted.head),
            commit: wanted.head,
            n_removed: 0,
        }),
        WorkflowAction::Advance(step) => WorkflowOutcome::Advanced {
            at: step.to,
            brought: None,
        },
        WorkflowAction::Combine(step) => combined(good_step(state, &step)),
        _ => panic!("an integration asks for none of these"),
    }
}

/// The commands of sources fail where the sources are not.
fn own(state: &Integrate) -> Vec<&str> {
    let checks = state.sources.iter().flat_map(|it| &it.checks);
    let own = checks.filter(|check| check.failed_before);
    own.map(|check| check.command.as_str()).collect()
}

fn good_step(state: &Integrate, step: &CombineStep) -> CombineReport {
    let applied = |onto: &str, name: &GoalId| CombineReport::Applied {
        head: format!("{onto}+{}", name.index()),
        tree: format!("tree-{onto}+{}", name.index()),
        by_rule: Vec::new(),
    };
    match step {
        CombineStep::Inspect { .. } => {
            CombineReport::Inspected(Box::new(foresight(state, &state.target)))
        }
        CombineStep::Apply(asked) => applied(&asked.onto, &asked.source.id),
        CombineStep::Regenerate(asked) => regenerated(Some(&format!("{}!", asked.commit))),
        CombineStep::Settle { application, .. } => {
            let onto = format!("{}*", application.onto);
            applied(&onto, &application.source.id)
        }
        CombineStep::Try { onto, sources, .. } => {
            let names: Vec<String> = sources.iter().map(|it| it.id.index().to_string()).collect();
            CombineReport::Tried {
                commit: Some(format!("try-{onto}+{}", names.join("+"))),
            }
        }
        CombineStep::Trace { head, .. } => CombineReport::Traced(Box::new(Coverage {
            head: head.clone(),
            n_hunks: 4,
            n_traced: 4,
            ..Coverage::default()
        })),
        CombineStep::Mark { .. } => CombineReport::Marked,
    }
}

/// An integration and everything that was recorded of it.
#[derive(Debug, Clone)]
pub(crate) struct Batch(pub(crate) WorkflowTestScenario);

impl Batch {
    /// Begins one.
    pub(crate) fn begin(n: usize, leave: IntegrateLeave) -> Self {
        Self(WorkflowTestScenario::begin(&start(n, leave)))
    }

    /// Returns one whose plan is approved and whose branch is there.
    pub(crate) fn approved(n: usize, leave: IntegrateLeave) -> Self {
        let mut batch = Self::begin(n, leave);
        batch.until("plan/approval");
        batch.0.approve();
        batch.go_on();
        batch
    }

    pub(crate) fn workflow(&self) -> &Workflow {
        self.0.workflow()
    }

    pub(crate) fn state(&self) -> &Integrate {
        of(self.workflow())
    }

    /// Returns phase and subphase in one word.
    pub(crate) fn phase(&self) -> String {
        crate::rules::decide::phase_name(self.workflow())
    }

    pub(crate) fn perform(&mut self, outcome: WorkflowOutcome) -> Vec<WorkflowEvent> {
        self.0.perform(outcome)
    }

    pub(crate) fn combined(&mut self, report: CombineReport) -> Vec<WorkflowEvent> {
        self.perform(combined(report))
    }

    /// Lets what is wanted come to what is hoped for.
    pub(crate) fn go_on(&mut self) -> Vec<WorkflowEvent> {
        let outcome = good(self.workflow());
        self.perform(outcome)
    }

    /// Goes on as hoped until it is in a phase.
    pub(crate) fn until(&mut self, phase: &str) {
        for _ in 0..60 {
            if self.phase() == phase {
                return;
            }
            self.go_on();
        }
        panic!("it never reaches {phase}, but is in {}", self.phase());
    }

    /// Goes on as hoped to the end.
    pub(crate) fn finish(&mut self) {
        for _ in 0..80 {
            if self.workflow().status.is_terminal() {
                return;
            }
            if self.workflow().pending.is_some() {
                self.0.approve();
            } else {
                self.go_on();
            }
        }
        panic!("it does not end, and is in {}", self.phase());
    }

    pub(crate) fn answer(&mut self, answer: IntegrateAnswer) -> Vec<WorkflowEvent> {
        let outcome = said(self.workflow(), answer);
        self.perform(outcome)
    }

    /// Lets what is verified fail with these commands.
    pub(crate) fn fails(&mut self, failing: &[&str]) -> Vec<WorkflowEvent> {
        let effect = next(self.workflow()).into_iter().next().unwrap();
        let WorkflowAction::Verify(asked) = effect.action else {
            panic!("nothing is to be verified, but {:?}", effect.action);
        };
        let found = report(&asked.commit, &asked.commands, failing);
        self.perform(WorkflowOutcome::Verified(found))
    }

    pub(crate) fn conflicts(&mut self) -> Vec<WorkflowEvent> {
        let at = format!("conflict-{}", self.state().applied.len());
        self.combined(CombineReport::Conflicted { at, paths: clash() })
    }

    pub(crate) fn ask(&mut self, command: IntegrateCommand) -> Vec<WorkflowEvent> {
        self.0.send(&human(), &command.into())
    }
}
