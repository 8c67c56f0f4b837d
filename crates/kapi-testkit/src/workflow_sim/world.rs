//! A world for workflows that survives crashes: what it does is a function of the effect and of what
//! is durably recorded, so doing it again does the same.
//!
//! Checks before each effect that its intent is durable and that it has not ended.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kapi_core::id::{EffectId, GoalId};
use kapi_core::usage::Usage;
use kapi_machine::logged::EventRecord;
use kapi_machine::watch::{Activity, EffectWatch};
use kapi_sys::disk::Disk as _;
use kapi_sys::sim_disk::SimDisk;
use kapi_workflow::record::run_name::run_name;
use kapi_workflow::rules::effect::{AgentQuestion, EffectResource, WorkflowAction, WorkflowEffect};
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::evolve::evolve;
use kapi_workflow::rules::identity::ReviewerIdentity;
use kapi_workflow::rules::outcome::WorkflowOutcome;
use kapi_workflow::rules::state::Workflow;

use crate::oracle::{Oracle, OracleViolation, read_log};
use crate::workflow_sim::modes::{self, NoAnswer};
use crate::workflow_sim::outcomes::{advanced, done, failed, landed, verified};

/// What asking an agent uses.
pub(super) const USED: Usage = Usage {
    input_tokens: 10,
    output_tokens: 5,
    usd_micros: Some(3),
    ..Usage::ZERO
};

/// How often an agent looks whether somebody knows what it used, once a millisecond.
const LOOKS_MAX: u32 = 60_000;

/// How long an effect runs before what it used is recorded.
pub(crate) const PROGRESS_MS: u64 = 1_000;

/// The world of one story.
pub(super) struct StoryWorld {
    disk: SimDisk,
    complaint: Mutex<Option<OracleViolation>>,
    /// What was answered to each effect that is not tried again.
    reported: Mutex<BTreeMap<(GoalId, EffectId), String>>,
    /// The effects whose use was recorded while they run.
    known_use: Mutex<BTreeSet<EffectId>>,
    use_heard: Condvar,
    time_ms: AtomicU64,
}

impl StoryWorld {
    pub(super) const fn new(disk: SimDisk) -> Self {
        Self {
            disk,
            complaint: Mutex::new(None),
            reported: Mutex::new(BTreeMap::new()),
            known_use: Mutex::new(BTreeSet::new()),
            use_heard: Condvar::new(),
            time_ms: AtomicU64::new(0),
        }
    }

    /// Returns the first complaint.
    pub(super) fn check(&self) -> Result<(), OracleViolation> {
        hold(&self.complaint).take().map_or(Ok(()), Err)
    }

    /// Returns the time of a clock that stands still but for agents that take long, so that nothing
    /// hangs on how fast a machine is.
    pub(super) fn monotonic_ms(&self) -> u64 {
        self.time_ms.load(Ordering::SeqCst)
    }

    /// Hears what was recorded meanwhile.
    pub(super) fn hear(&self, event: &WorkflowEvent) {
        if let WorkflowEvent::EffectUsed { effect, .. } = event {
            hold(&self.known_use).insert(effect.clone());
            self.use_heard.notify_all();
        }
    }

    /// Performs one effect.
    pub(super) fn perform(
        &self,
        effect: &WorkflowEffect,
        watch: &EffectWatch<'_>,
    ) -> WorkflowOutcome {
        let outcome = self.judged(effect, watch).unwrap_or_else(|violation| {
            hold(&self.complaint).get_or_insert(violation);
            failed("perform an effect that must not be performed", false)
        });
        if !matches!(
            outcome,
            WorkflowOutcome::Failed { .. } | WorkflowOutcome::Cancelled { .. }
        ) {
            let key = (effect.workflow.clone(), effect.id.clone());
            let now = format!("{outcome:?}");
            let before = hold(&self.reported).insert(key, now.clone());
            if before.is_some_and(|before| before != now) {
                let detail = format!("effect {} came out in two ways", effect.id);
                let violation = OracleViolation::new(Oracle::Once, detail);
                hold(&self.complaint).get_or_insert(violation);
            }
        }
        outcome
    }

    fn judged(
        &self,
        effect: &WorkflowEffect,
        watch: &EffectWatch<'_>,
    ) -> Result<WorkflowOutcome, OracleViolation> {
        if self.disk.is_crashed() {
            return Ok(WorkflowOutcome::Cancelled {
                usage: Usage::default(),
            });
        }
        let log = self.durable_log(&effect.workflow)?;
        check_performed(&effect.id, &log)?;
        let mut workflow = None;
        for logged in &log {
            evolve(&mut workflow, &logged.event);
        }
        let Some(workflow) = workflow else {
            let detail = format!("{} is performed for nothing", effect.id);
            return Err(OracleViolation::new(Oracle::Intent, detail));
        };
        let n_failures = n_failures(&effect.id, &log);
        if let Some(outcome) = modes::outcome(effect, &workflow) {
            if effect.action.uses() == EffectResource::Model {
                self.write_transcript(effect);
                (watch.notice)(Activity::Used(USED));
            }
            return Ok(outcome);
        }
        if let WorkflowAction::Ask(question) = &effect.action {
            self.write_transcript(effect);
            if modes::takes_long(question, &workflow) {
                self.use_up(&effect.id, watch)?;
            } else {
                (watch.notice)(Activity::Used(USED));
            }
            return Ok(ask(effect, question, &workflow, n_failures));
        }
        Ok(perform_once(effect, n_failures))
    }

    /// Uses something and goes on until that is recorded, or nobody wants to know any more.
    fn use_up(&self, effect: &EffectId, watch: &EffectWatch<'_>) -> Result<(), OracleViolation> {
        hold(&self.known_use).remove(effect);
        (watch.notice)(Activity::Used(USED));
        self.time_ms.fetch_add(PROGRESS_MS, Ordering::SeqCst);
        let mut known = hold(&self.known_use);
        for _ in 0..LOOKS_MAX {
            if known.contains(effect) || watch.cancel.is_raised() || self.disk.is_crashed() {
                return Ok(());
            }
            let look = Duration::from_millis(1);
            let heard = self.use_heard.wait_timeout(known, look);
            (known, _) = heard.unwrap_or_else(PoisonError::into_inner);
        }
        let detail = format!("what effect {effect} uses is not recorded while it runs");
        Err(OracleViolation::new(Oracle::Durability, detail))
    }

    /// Adds to the transcript of a run, as the real world does: not synced.
    fn write_transcript(&self, effect: &WorkflowEffect) {
        let files = self.disk.snapshot();
        let mut logs = files.keys().filter(|path| is_log(path, &effect.workflow));
        // `.ilchul/workflows/<mode>/<workflow>/events.jsonl`
        let Some(state_dir) = logs.next().and_then(|log| log.ancestors().nth(4)) else {
            return;
        };
        let run = run_name(&effect.workflow, &effect.id);
        let dir = state_dir.join("runs").join(run);
        let made = self.disk.create_dir(&dir).map(drop);
        let path = dir.join("transcript.jsonl");
        // Where the power has failed nothing is written, and the run is over soon.
        drop(made.and_then(|()| self.disk.append(&path, b"asked\n")));
    }

    /// Returns the log as a power cut at this moment would leave it.
    fn durable_log(
        &self,
        workflow: &GoalId,
    ) -> Result<Vec<EventRecord<WorkflowEvent>>, OracleViolation> {
        let files = self.disk.durable();
        let bytes = files
            .iter()
            .find(|(path, _)| is_log(path, workflow))
            .map(|(_, bytes)| bytes.as_slice());
        read_log(&workflow.to_string(), bytes.unwrap_or_default())
    }
}

fn is_log(path: &Path, workflow: &GoalId) -> bool {
    let name = workflow.to_string();
    path.file_name() == Some("events.jsonl".as_ref())
        && path.parent().and_then(Path::file_name) == Some(name.as_ref())
}

/// Checks that an effect about to be performed was intended and has not ended well before.
fn check_performed(
    effect: &EffectId,
    log: &[EventRecord<WorkflowEvent>],
) -> Result<(), OracleViolation> {
    let mut is_under_way = false;
    for logged in log {
        match &logged.event {
            WorkflowEvent::EffectIntended { effect: id, .. } if id == effect => is_under_way = true,
            WorkflowEvent::EffectEnded { effect: id, .. } if id == effect => is_under_way = false,
            _ => {}
        }
    }
    if is_under_way {
        return Ok(());
    }
    let detail = format!("effect {effect} is performed without a durable intent");
    Err(OracleViolation::new(Oracle::Intent, detail))
}

fn n_failures(effect: &EffectId, log: &[EventRecord<WorkflowEvent>]) -> usize {
    let is_failure = |logged: &&EventRecord<WorkflowEvent>| matches!(&logged.event, WorkflowEvent::EffectEnded { effect: id, failed: Some(_), .. } if id == effect);
    log.iter().filter(is_failure).count()
}

/// Does what any mode may have done. A verb of one mode alone is told in its own file, or its story
/// does not come to its end.
fn perform_once(effect: &WorkflowEffect, n_failures: usize) -> WorkflowOutcome {
    if let WorkflowAction::Prepare { branch, .. } = &effect.action {
        if n_failures == 0 {
            return failed("reach the repository", false);
        }
        WorkflowOutcome::Prepared {
            branch: branch.clone(),
            worktree: "/worktrees/it".to_owned(),
            baseline: None,
        }
    } else if let WorkflowAction::Work(work) = &effect.action {
        done(effect, work)
    } else if let WorkflowAction::Land(landing) = &effect.action {
        landed(landing)
    } else if let WorkflowAction::Verify(asked) = &effect.action {
        verified(asked, 0)
    } else if let WorkflowAction::Advance(step) = &effect.action {
        advanced(step)
    } else {
        failed("perform what no simulated mode knows", false)
    }
}

fn ask(
    effect: &WorkflowEffect,
    question: &AgentQuestion,
    workflow: &Workflow,
    failures: usize,
) -> WorkflowOutcome {
    let by = ReviewerIdentity {
        agent: question.agent.clone(),
        run: format!("{}.{}", effect.workflow, effect.id),
    };
    match modes::reply(question, workflow, failures) {
        Ok(answer) => WorkflowOutcome::Answered {
            by,
            answer: Box::new(answer),
            usage: USED,
        },
        Err(NoAnswer::Unreadable(why)) => WorkflowOutcome::Unreadable {
            by,
            why: why.to_owned(),
            usage: Usage::default(),
        },
        Err(NoAnswer::Away) => failed("reach the model", true),
    }
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked must not hide what the others would say.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
