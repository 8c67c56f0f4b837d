//! One workflow's stream, opened: lock, load, decide, append, fold, derive.
//!
//! Owns the only copy of the state there is in a process. The rules decide; this file makes their
//! events durable before anyone acts on them.

use kapi_core::actor::Actor;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::json_file::json_file;
use kapi_goal::record::project::Project;
use kapi_machine::logged::EventRecord;
use kapi_machine::opened::OpenStream;
use kapi_store::hash::sha256_hex;
use kapi_sys::disk::replace_derived;
use kapi_sys::lock::Lock;

use super::machine::{WorkflowMachine, stream};
use crate::record::approvals::WorkflowApprovals;
use crate::record::edits::{edits, keep};
use crate::record::error::WorkflowError;
use crate::record::files::WrittenArtifacts;
use crate::record::index;
use crate::record::note::note;
use crate::record::snapshot::WorkflowSnapshot;
use crate::rules::command::WorkflowCommand;
use crate::rules::decide::decide;
use crate::rules::decision_context::DecisionContext;
use crate::rules::event::WorkflowEvent;
use crate::rules::evolve::evolve;
use crate::rules::pending::WaitingDecision;
use crate::rules::state::Workflow;

/// A workflow's stream and its fold.
pub struct OpenWorkflow<'a> {
    project: &'a Project<'a>,
    key: WorkflowKey,
    open: OpenStream<'a, WorkflowMachine>,
    written: WrittenArtifacts,
    /// Whether somebody may have recorded what nobody derived.
    is_behind: bool,
}

/// What a request led to.
#[derive(Debug)]
pub struct WorkflowSubmission {
    /// The events it led to; none when it asked for what already holds.
    pub recorded: Vec<EventRecord<WorkflowEvent>>,
    /// The workflow afterwards.
    pub workflow: Workflow,
}

impl<'a> OpenWorkflow<'a> {
    /// Loads a workflow's stream, which may be empty. Changes nothing.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn load(project: &'a Project<'a>, key: &WorkflowKey) -> Result<Self, WorkflowError> {
        let open = OpenStream::load(stream(project, key))?;
        Ok(Self {
            project,
            key: key.clone(),
            is_behind: !open.fold().is_saved() || open.fold().n_unsaved() > 0,
            open,
            written: WrittenArtifacts::default(),
        })
    }

    /// Returns the workflow.
    ///
    /// # Errors
    /// When the stream is empty.
    pub fn workflow(&self) -> Result<&Workflow, WorkflowError> {
        let workflow = self.open.state().as_ref();
        workflow.ok_or_else(|| self.not_found())
    }

    /// Returns the workflow and lets go of the stream.
    ///
    /// # Errors
    /// When the stream is empty.
    pub fn into_workflow(self) -> Result<Workflow, WorkflowError> {
        let not_found = self.not_found();
        self.open.into_state().ok_or(not_found)
    }

    /// Returns how many events were read.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.open.log().position().seq
    }

    /// Returns how long the log is, as far as it was read.
    #[must_use]
    pub const fn log_bytes(&self) -> u64 {
        self.open.log().position().offset
    }

    /// Reads what others have recorded meanwhile.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn refresh(&mut self) -> Result<(), WorkflowError> {
        if self.open.refresh()? > 0 {
            self.is_behind = true;
            self.written.forget();
        }
        Ok(())
    }

    /// Returns the events that came since the last call, whoever recorded them.
    pub fn take_unseen(&mut self) -> Vec<EventRecord<WorkflowEvent>> {
        self.open.take_unseen()
    }

    /// Decides a command on the latest state and makes its events durable.
    ///
    /// What begins or approves stands in the person's home before it stands in the log; what lets a
    /// workflow go on needs that leave.
    ///
    /// # Errors
    /// When a rule refuses, somebody else is at it for too long, or the disk refuses.
    pub fn submit(
        &mut self,
        actor: &Actor,
        command: &WorkflowCommand,
    ) -> Result<WorkflowSubmission, WorkflowError> {
        self.submit_between(actor, command, |_| Ok(()))
    }

    /// Does as [`Self::submit`] does, and something else after the rules agreed and before it is
    /// recorded, while nobody else can record anything here. It is handed the state decided on.
    pub(crate) fn submit_between(
        &mut self,
        actor: &Actor,
        command: &WorkflowCommand,
        between: impl FnOnce(Option<&Workflow>) -> Result<(), WorkflowError>,
    ) -> Result<WorkflowSubmission, WorkflowError> {
        let recorded;
        let before;
        {
            let held = self.hold()?;
            let now_ms = self.project.clock.now_ms();
            let sha256 = sha256_hex;
            let state = self.open.state().as_ref();
            let events = decide(state, actor, command, &DecisionContext { now_ms, sha256 })?;
            if let Some(approvals) = WorkflowApprovals::of(self.project, &self.key.id) {
                approvals.before_recording(actor, command, state, &events)?;
            }
            between(state)?;
            self.set_edits_aside(&events)?;
            before = state.map(index::row);
            recorded = self.record(&held, &events, actor, now_ms)?;
        }
        let is_noted = match (&before, self.open.state()) {
            (Some(before), Some(after)) => index::is_listed_alike(before, after),
            (None | Some(_), None | Some(_)) => false,
        };
        if !is_noted {
            self.note()
                .map_err(|error| EngineError::NotDerived(Box::new(error)))?;
        }
        Ok(WorkflowSubmission {
            recorded,
            workflow: self.workflow()?.clone(),
        })
    }

    /// Keeps what a person edited of an artifact that waited and is about to be replaced.
    fn set_edits_aside(&self, events: &[WorkflowEvent]) -> Result<(), EngineError> {
        let before = self.open.state().as_ref();
        let before = before.filter(|_| !events.is_empty());
        let Some((workflow, pending)) = before.and_then(|it| Some((it, it.pending.as_ref()?)))
        else {
            return Ok(());
        };
        let mut after = Some(workflow.clone());
        for event in events {
            evolve(&mut after, event);
        }
        if after.is_some_and(|after| after.pending.as_ref() == Some(pending)) {
            return Ok(());
        }
        let layout = self.project.layout.workflow(self.key.mode, &self.key.id);
        let disk = self.project.disk;
        for (name, bytes) in edits(disk, &layout, workflow)? {
            keep(disk, &layout, name, &bytes)?;
        }
        Ok(())
    }

    /// Writes again what the log implies and a crash has left undone.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn repair(&mut self) -> Result<(), WorkflowError> {
        {
            let held = self.hold()?;
            let is_current = self.open.is_saved()?;
            self.is_behind |= !is_current;
            self.written.forget();
            let workflow = self.workflow()?.clone();
            let snapshot = self.snapshot(&workflow)?;
            let layout = self.project.layout.workflow(self.key.mode, &self.key.id);
            let found = self.project.disk.read(&layout.snapshot(), 0)?;
            if is_current && found.as_deref() == Some(&snapshot) {
                let pending = workflow.pending.as_ref();
                let kept = pending.map_or(&[][..], |pending| pending.decision.artifacts());
                self.written
                    .update(self.project.disk, &layout, &workflow, kept)?;
                self.is_behind = false;
            } else {
                self.derive(&held, workflow.pending.as_ref())?;
            }
        }
        Ok(self.note()?)
    }

    /// Brings the inventory up to date, if it is not.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn note(&self) -> Result<(), EngineError> {
        match self.open.state() {
            Some(workflow) => note(self.project, workflow, self.log_bytes()),
            None => Ok(()),
        }
    }

    /// Takes the lock, reads what others recorded, and makes it durable.
    fn hold(&mut self) -> Result<Lock, WorkflowError> {
        let held = self.open.lock(&self.project.owner)?;
        self.refresh()?;
        self.open.settle(&held)?;
        Ok(held)
    }

    fn record(
        &mut self,
        held: &Lock,
        events: &[WorkflowEvent],
        actor: &Actor,
        at_ms: i64,
    ) -> Result<Vec<EventRecord<WorkflowEvent>>, WorkflowError> {
        let before = self.open.state().as_ref();
        let before = before.and_then(|workflow| workflow.pending.clone());
        let logged = self.open.record(held, actor, at_ms, events)?;
        if logged.is_empty() {
            return Ok(logged);
        }
        self.derive(held, before.as_ref())
            .map_err(|error| EngineError::NotDerived(Box::new(error)))?;
        Ok(logged)
    }

    /// Writes the files that follow from the state, the fold last: when it is there, all are.
    fn derive(&mut self, held: &Lock, before: Option<&WaitingDecision>) -> Result<(), EngineError> {
        let Some(workflow) = self.open.state() else {
            return Ok(());
        };
        let snapshot = self.snapshot(workflow)?;
        let layout = self.project.layout.workflow(self.key.mode, &self.key.id);
        // What waited before and was written then is left to the person who may have edited it.
        let pending = workflow.pending.as_ref();
        let is_kept = pending.is_some() && pending == before && !self.is_behind;
        let kept = pending
            .filter(|_| is_kept)
            .map_or(&[][..], |pending| pending.decision.artifacts());
        self.written
            .update(self.project.disk, &layout, workflow, kept)?;
        replace_derived(self.project.disk, &layout.snapshot(), &snapshot)?;
        self.open.save(held)?;
        self.is_behind = false;
        Ok(())
    }

    fn snapshot(&self, workflow: &Workflow) -> Result<Vec<u8>, EngineError> {
        let snapshot = WorkflowSnapshot::of(workflow, self.seq());
        json_file(&snapshot, "the snapshot")
    }

    fn not_found(&self) -> WorkflowError {
        WorkflowError::NotFound {
            workflow: self.key.clone(),
        }
    }
}
