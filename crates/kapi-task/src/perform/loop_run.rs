//! One run of a loop: its eight phases, each recorded when it is over, so that a worker that takes
//! over goes on where another stopped.
//!
//! What earlier phases left stands in the task. What a phase does stands in the files beside this
//! one.

use std::collections::BTreeMap;

use kapi_core::task_id::LoopName;
use kapi_core::text::{counted, one_line};
use kapi_core::value::KernelValue;
use kapi_run::failure;
use kapi_sys::cancel::Cancel;

use super::agent::EndedSandbox;
use super::allowance::Allowance;
use super::attempt::TaskAttempt;
use super::ending::not_launched;
use super::{Performer, agent, allowance, facts, prompt, resume, ruling, setup, travel};
use crate::record::worker::LeaseHandle;
use crate::record::worker::unheld::unheld;
use crate::rules::condition;
use crate::rules::condition::expression::ExpressionContext;
use crate::rules::condition::{Condition, ConditionVerdict};
use crate::rules::loop_run::LoopRun;
use crate::rules::state::LoopState;
use crate::rules::task::{AttemptReport, End, FailureKind, KernelTask, LoopPhase, PhaseStatus};

mod context;
mod evaluate;
mod handoff;
mod judge;
mod learn;
mod retrigger;
mod schema;

/// Bytes of a detail that a phase's record keeps.
const DETAIL_BYTES_MAX: usize = 500;

/// How a phase ended, with what is worth knowing of it.
pub(super) type Ended = (PhaseStatus, Option<String>);

/// A run under way.
struct LoopExecution<'a> {
    performer: &'a Performer<'a>,
    task: &'a KernelTask,
    run: &'a LoopRun,
    handle: &'a LeaseHandle<'a>,
    /// What is left of the task's budget.
    allowance: &'a Allowance<'a>,
    /// What is known of the loops of the project.
    loops: BTreeMap<LoopName, LoopState>,
    /// What came of the run so far.
    report: AttemptReport,
    /// What is left of its agent's sandbox until the end of the agent is recorded.
    sandbox: Option<EndedSandbox>,
}

/// Looks whether the condition of a run holds now; nothing where it has none. Records nothing, and the
/// run need not have been asked for.
///
/// # Errors
/// Why it cannot be told.
pub(super) fn try_condition(
    performer: &Performer<'_>,
    task: &KernelTask,
) -> Result<Option<ConditionVerdict>, String> {
    let Some((run, condition)) = task
        .loop_run()
        .and_then(|run| Some((run, run.definition.should_run.as_ref()?)))
    else {
        return Ok(None);
    };
    let queue = performer.queue();
    let queue = queue.map_err(|error| format!("failed to {}", failure::chain(&error)))?;
    let loops = queue.kernel().loops.clone();
    drop(queue);
    let handle = unheld(Cancel::new());
    let verdict = allowance::within(task, &handle, |allowance| {
        let course = LoopExecution {
            performer,
            task,
            run,
            handle: &handle,
            allowance,
            loops,
            report: AttemptReport::of(End::Completed),
            sandbox: None,
        };
        course.verdict_of(condition)
    });
    verdict.map(Some).map_err(|end| end_words(&end))
}

/// Goes through the phases that are left.
pub(super) fn perform(
    performer: &Performer<'_>,
    attempt: TaskAttempt<'_>,
    run: &LoopRun,
) -> AttemptReport {
    let TaskAttempt {
        task,
        handle,
        allowance,
    } = attempt;
    let queue = performer.queue();
    let loops = match &queue {
        Ok(queue) => queue.kernel().loops.clone(),
        Err(error) => {
            let message = format!("failed to {}", failure::chain(error));
            return AttemptReport::of(not_launched(message));
        }
    };
    drop(queue);
    let begun = task.report.as_deref().cloned();
    let course = LoopExecution {
        performer,
        task,
        run,
        handle,
        allowance,
        loops,
        report: begun.unwrap_or_else(|| AttemptReport::of(End::Completed)),
        sandbox: None,
    };
    course.go()
}

impl LoopExecution<'_> {
    fn go(mut self) -> AttemptReport {
        for &phase in LoopPhase::ALL.iter().skip(self.task.phases.len()) {
            let ended = if self.handle.cancel().is_raised() {
                Err(End::Cancelled)
            } else {
                self.step(phase)
            };
            let (status, detail) = match ended {
                Ok(ended) => ended,
                Err(End::Cancelled) => {
                    self.report.end = End::Cancelled;
                    break;
                }
                Err(end) => {
                    let words = end_words(&end);
                    self.report.end = end;
                    (PhaseStatus::Error, Some(words))
                }
            };
            let detail = detail.map(|text| detail_line(&text));
            let recorded = self
                .handle
                .end_phase(phase, status, detail, Some(&self.report));
            if recorded.is_err() {
                // Somebody else has the task: nothing that is said here counts.
                return AttemptReport::of(End::Cancelled);
            }
            if let Some(sandbox) = self.sandbox.take() {
                sandbox.tidy(self.performer, self.task.id);
            }
            if self.is_tried_again() {
                break;
            }
        }
        if self.report.end != End::Completed {
            // What a run measured that did not come to a good end is no measure for the next.
            self.report.metrics.clear();
        }
        self.report
    }

    fn step(&mut self, phase: LoopPhase) -> Result<Ended, End> {
        let is_skipped = matches!(self.report.end, End::Skipped { .. });
        match phase {
            LoopPhase::Trigger => Ok((PhaseStatus::Ok, Some(self.run.trigger.kind().to_owned()))),
            _ if is_skipped => Ok(skipped("the condition did not hold")),
            LoopPhase::ShouldRun => self.should_run(),
            LoopPhase::Context if self.has_failed() => Ok(skipped("it was not admitted")),
            LoopPhase::Context => self.context(),
            LoopPhase::Execute if self.has_failed() => Ok(skipped("there is no prompt")),
            LoopPhase::Execute => self.execute(),
            LoopPhase::Evaluate => self.evaluate(),
            LoopPhase::Learn => Ok(self.learn()),
            LoopPhase::Handoff => Ok(self.handoff()),
            LoopPhase::Retrigger => Ok(self.retrigger()),
        }
    }

    fn has_failed(&self) -> bool {
        matches!(self.report.end, End::Failed(_))
    }

    /// Tells whether another attempt follows, whose phases these would be.
    fn is_tried_again(&self) -> bool {
        let retry = &self.task.request.retry;
        match &self.report.end {
            End::Failed(failure) => {
                failure.kind.is_worth_a_retry() && self.task.retries < retry.times
            }
            End::Completed | End::Skipped { .. } | End::Cancelled => false,
        }
    }

    /// Returns what is known of this loop.
    fn known(&self) -> Option<&LoopState> {
        self.loops.get(self.run.name())
    }

    fn inputs(&self) -> Result<BTreeMap<String, KernelValue>, End> {
        let inputs = self.run.definition.inputs_with(&self.run.inputs);
        inputs.map_err(|error| not_launched(format!("failed to {error}")))
    }

    fn attempt(&self) -> TaskAttempt<'_> {
        TaskAttempt {
            task: self.task,
            handle: self.handle,
            allowance: self.allowance,
        }
    }

    /// Asks the policy as it is now: the run may have waited since before a rule was written, and
    /// nothing of what is denied is done, its condition's commands included.
    fn is_let_in(&self) -> Result<(), End> {
        // What keeps it from being resolved is said where its prompt is made.
        let Ok(setup) = setup::resolve(self.performer, self.task) else {
            return Ok(());
        };
        let prompt = &self.task.request.prompt;
        ruling::ask(self.performer, self.task, &setup, prompt).map(drop)
    }

    fn should_run(&mut self) -> Result<Ended, End> {
        self.is_let_in()?;
        let Some(condition) = &self.run.definition.should_run else {
            return Ok((PhaseStatus::Ok, None));
        };
        let verdict = self.verdict_of(condition)?;
        let text = verdict.text();
        if verdict.holds {
            return Ok((PhaseStatus::Ok, Some(text)));
        }
        let last = self.known().and_then(|known| known.last_run.as_ref());
        self.report.work.commit = last.and_then(|last| last.commit.clone());
        self.report.end = End::Skipped {
            reason: text.clone(),
        };
        Ok((PhaseStatus::Skipped, Some(text)))
    }

    /// Looks up what a condition asks, and judges by it.
    fn verdict_of(&self, condition: &Condition) -> Result<ConditionVerdict, End> {
        let (trigger, payload) = (&self.run.trigger, self.run.payload.clone());
        let (kind, source) = (trigger.kind(), trigger.source().unwrap_or_default());
        let inputs = KernelValue::Map(self.inputs()?);
        let context = ExpressionContext::of_run(inputs, payload, kind, &source);
        let found = self.finder().find(condition)?;
        Ok(condition::evaluate(condition, &context, &found))
    }

    fn finder(&self) -> facts::Finder<'_> {
        facts::Finder {
            performer: self.performer,
            task: self.task,
            handle: self.handle,
            allowance: self.allowance,
            loops: &self.loops,
            own: self.run.name(),
        }
    }

    fn context(&mut self) -> Result<Ended, End> {
        if let Some(condition) = &self.run.definition.should_run {
            // Noted once it is sure that this run looks at what stands there.
            let marks = self.finder().refs(condition);
            self.report.metrics.extend(marks);
        }
        let setup = setup::resolve(self.performer, self.task)?;
        let reported = self.reported()?;
        let words = reported.words();
        let network = self.performer.setting.network;
        let composed = prompt::compose(self.performer, self.task, &setup, network, &words)?;
        let n_chars = composed.chars().count();
        let stale = reported.stale.as_ref().map(|why| format!("; {why}"));
        let detail = format!("promptChars={n_chars}{}", stale.unwrap_or_default());
        Ok((PhaseStatus::Ok, Some(detail)))
    }

    fn execute(&mut self) -> Result<Ended, End> {
        let setup = setup::resolve(self.performer, self.task)?;
        // Made again and not remembered: another worker may have been in the phase before.
        let reported = self.reported()?;
        let words = reported.words();
        let ruling = ruling::ask(self.performer, self.task, &setup, words.prompt)?;
        let ran = match resume::adopted(self.performer, self.attempt(), &setup, &ruling) {
            Some(ran) => ran,
            None => agent::run(self.performer, self.attempt(), &setup, &ruling, &words)?,
        };
        self.sandbox = ran.sandbox;
        let mut work = ran.work;
        // The phases after this one may be another machine's.
        if let Err(lack) = travel::depart(self.performer, self.task, work.commit.as_deref()) {
            self.handle.put_back(lack);
            return Err(End::Cancelled);
        }
        // Where nothing was changed, what it looked at is what the next run compares with.
        work.commit = work.commit.or(ran.start);
        let n_files = counted(work.n_files, "file");
        let files = format!("exit {}, {n_files}", ran.exit_code);
        self.report.output = ran.output;
        self.report.work = work;
        match &ran.end {
            End::Failed(failure) => {
                let message = failure.message.clone();
                self.report.end = ran.end;
                Ok((PhaseStatus::Error, Some(message)))
            }
            End::Cancelled => Err(End::Cancelled),
            End::Completed | End::Skipped { .. } => {
                self.report.end = ran.end;
                Ok((PhaseStatus::Ok, Some(files)))
            }
        }
    }

    /// Tells whether an agent ran whose work can be looked at.
    fn has_run(&self) -> bool {
        match &self.report.end {
            End::Completed => true,
            End::Skipped { .. } | End::Cancelled => false,
            End::Failed(failure) => match failure.kind {
                FailureKind::Agent
                | FailureKind::TimedOut
                | FailureKind::BudgetSpent
                | FailureKind::EvalFailed => true,
                FailureKind::PolicyDenied
                | FailureKind::NotLaunched
                | FailureKind::Provider
                | FailureKind::Lost
                | FailureKind::GoalRests => false,
            },
        }
    }
}

/// Returns how a phase ends that has nothing to do.
fn skipped(why: &str) -> Ended {
    (PhaseStatus::Skipped, Some(why.to_owned()))
}

/// Returns why a run ends, for people.
pub(super) fn end_words(end: &End) -> String {
    match end {
        End::Completed => "completed".to_owned(),
        End::Skipped { reason } => reason.clone(),
        End::Failed(failure) => failure.message.clone(),
        End::Cancelled => "cancelled".to_owned(),
    }
}

/// Returns what of a detail is recorded.
pub(super) fn detail_line(text: &str) -> String {
    let mut line = one_line(text);
    line.truncate(line.floor_char_boundary(DETAIL_BYTES_MAX));
    line
}
