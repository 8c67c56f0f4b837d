//! A project with workflows on a simulated disk, and a drive at full speed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::Judge;
use kapi_core::usage::Usage;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::project::Project;
use kapi_goal::rules::budget::Budget;
use kapi_machine::pace::Pace;
use kapi_machine::watch::EffectWatch;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::StepClock;
use kapi_sys::sim_disk::SimDisk;
use kapi_workflow::record::delay::Delays;
use kapi_workflow::record::drive::{
    WorkflowDriveControl, WorkflowDriveError, WorkflowObservation, drive,
};
use kapi_workflow::record::start::NewWorkflow;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::effect::WorkflowEffect;
use kapi_workflow::rules::handover::{Boundaries, HandoverItem, Spec, SuccessCriterion};
use kapi_workflow::rules::identity::ReviewerIdentity;
use kapi_workflow::rules::modes::interview::begin::InterviewBegin;
use kapi_workflow::rules::modes::interview::command::InterviewCommand;
use kapi_workflow::rules::modes::interview::round::{InterviewQuestion, Perspective};
use kapi_workflow::rules::modes::interview::score::Dimension;
use kapi_workflow::rules::modes::interview::step::{InterviewIntent, InterviewStep};
use kapi_workflow::rules::modes::{Begin, ModeAnswer, ModeCommand};
use kapi_workflow::rules::outcome::WorkflowOutcome;
use kapi_workflow::rules::state::Workflow;
use kapi_workflow::rules::terms::{PlanApproval, WorkflowTerms};

use crate::support::{ROOT, person};

pub(crate) const HOME: &str = "/person";

/// A simulated disk with an empty project and a person's home.
pub(crate) struct Governed {
    pub(crate) disk: SimDisk,
    pub(crate) clock: StepClock,
}

impl Governed {
    pub(crate) fn new() -> Self {
        let disk = SimDisk::new();
        disk.provide_dir(Path::new(ROOT));
        disk.provide_dir(Path::new(HOME));
        Self {
            disk,
            clock: StepClock::new(1_787_392_800_000),
        }
    }

    /// Opens the project, as one more process does.
    pub(crate) fn project(&self) -> Project<'_> {
        Project {
            disk: &self.disk,
            clock: &self.clock,
            layout: ProjectLayout::new(PathBuf::from(ROOT)),
            owner: "test".to_owned(),
            home: Some(PathBuf::from(HOME)),
        }
    }

    /// Starts an interview.
    pub(crate) fn interview(&self, purpose: &str) -> WorkflowKey {
        let started = Workflows::of(&self.project()).start_workflow(&person(), &asked(purpose));
        started.unwrap().key()
    }

    /// Starts an interview and brings it to its spec, which waits.
    pub(crate) fn drafted(&self, purpose: &str) -> WorkflowKey {
        let key = self.interview(purpose);
        let enough = WorkflowCommand::Mode(ModeCommand::Interview(InterviewCommand::Enough {}));
        let project = self.project();
        Workflows::of(&project)
            .submit_workflow(&key, &person(), &enough)
            .unwrap();
        let drafted = self.drive(&key, &|effect, _| answered(effect, draft()));
        assert!(drafted.unwrap().pending.is_some());
        key
    }

    pub(crate) fn drive(
        &self,
        key: &WorkflowKey,
        act: &(dyn Fn(&WorkflowEffect, &EffectWatch<'_>) -> WorkflowOutcome + Sync),
    ) -> Result<Workflow, WorkflowDriveError> {
        self.drive_with(key, act, &|| false, &mut |_| {})
    }

    pub(crate) fn drive_with(
        &self,
        key: &WorkflowKey,
        act: &(dyn Fn(&WorkflowEffect, &EffectWatch<'_>) -> WorkflowOutcome + Sync),
        interrupted: &dyn Fn() -> bool,
        observe: &mut dyn FnMut(WorkflowObservation),
    ) -> Result<Workflow, WorkflowDriveError> {
        // Time goes on by a second at each look.
        let time = AtomicU64::new(0);
        let control = WorkflowDriveControl {
            interrupted,
            monotonic_ms: &|| time.fetch_add(1_000, Ordering::SeqCst),
            pace: Pace {
                look_ms: 1,
                progress_ms: 1_000,
                ..Pace::STANDARD
            },
            delays: Delays::STANDARD,
        };
        drive(&self.project(), key, act, &control, observe)
    }
}

pub(crate) fn asked(purpose: &str) -> NewWorkflow {
    NewWorkflow {
        purpose: purpose.to_owned(),
        terms: terms(),
        begin: Begin::Interview(InterviewBegin { commit: None }),
    }
}

pub(crate) fn terms() -> WorkflowTerms {
    WorkflowTerms {
        agent: "script:worker.yaml".to_owned(),
        reviewer: None,
        models: Vec::new(),
        judge: Judge::None,
        sandbox: SandboxLevel::Native,
        network: NetworkMode::Filtered,
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

/// Returns what an interviewer answered.
pub(crate) fn answered(effect: &WorkflowEffect, next: InterviewIntent) -> WorkflowOutcome {
    WorkflowOutcome::Answered {
        by: ReviewerIdentity {
            agent: "script:worker.yaml".to_owned(),
            run: format!("{}.{}", effect.workflow, effect.id),
        },
        answer: Box::new(ModeAnswer::Interview(InterviewStep {
            facts: Vec::new(),
            clarity: None,
            reasons: Vec::new(),
            contradictions: Vec::new(),
            next,
        })),
        usage: Usage::default(),
    }
}

pub(crate) fn ask(text: &str) -> InterviewIntent {
    InterviewIntent::Ask {
        question: InterviewQuestion {
            text: text.to_owned(),
            dimension: Dimension::Goal,
            perspective: Perspective::Breadth,
            proposed: Some("Yes.".to_owned()),
        },
        settles: Vec::new(),
    }
}

/// What may be drafted once the person said that it is enough.
pub(crate) fn draft() -> InterviewIntent {
    let item = |text: &str| {
        vec![HandoverItem {
            text: text.to_owned(),
            rounds: vec![0],
        }]
    };
    InterviewIntent::Draft {
        spec: Box::new(Spec {
            goal: "Sessions outlive a crash.".to_owned(),
            intent: item("Nobody signs in twice."),
            constraints: item("No new dependency."),
            preferences: item("Small."),
            success_criteria: vec![SuccessCriterion {
                text: "A session is there after a crash.".to_owned(),
                verify: Some("sh check.sh".to_owned()),
                exempt: None,
                rounds: vec![0],
            }],
            methods: item("As the code does it."),
            boundaries: Boundaries {
                may: item("Names."),
                must_ask: item("Formats."),
                never: item("Deleting sessions."),
            },
            open_questions: Vec::new(),
            non_goals: item("Speed."),
            answers: Vec::new(),
            context: item("There is a store."),
        }),
    }
}

/// Stays until the effect is no longer wanted.
pub(crate) fn until_cancelled(watch: &EffectWatch<'_>) -> WorkflowOutcome {
    while !watch.cancel.is_raised() {
        std::thread::park_timeout(std::time::Duration::from_micros(200));
    }
    WorkflowOutcome::Cancelled {
        usage: Usage::default(),
    }
}
