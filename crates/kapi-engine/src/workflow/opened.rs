//! One workflow's stream, opened: lock, load, decide, append, fold, derive.
//!
//! Owns the only copy of the state there is in a process. The rules decide; this file makes their
//! events durable before anyone acts on them.

use kapi_core::actor::Actor;
use kapi_core::workflow::command::Command;
use kapi_core::workflow::decide::{Given, decide};
use kapi_core::workflow::event::Event;
use kapi_core::workflow::evolve::evolve;
use kapi_core::workflow::pending::Pending;
use kapi_core::workflow::state::Workflow;
use kapi_store::hash::sha256_hex;
use kapi_store::record::Batch;
use kapi_store::stream::{Cursor, Loaded, Stream};
use kapi_sys::disk::replace_derived;
use kapi_sys::lock::Lock;
use serde_json::value::RawValue;

use crate::error::EngineError;
use crate::machine::file_log::LOCK_WAIT_MS;
use crate::machine::logged::{Logged, read, to_payload};
use crate::project::Project;
use crate::workflow::approvals::Kept;
use crate::workflow::error::WorkflowError;
use crate::workflow::files::Written;
use crate::workflow::key::WorkflowKey;
use crate::workflow::snapshot::Snapshot;
use crate::workflow::{edited, index};

/// A workflow's stream and its fold.
pub struct OpenWorkflow<'a> {
    project: &'a Project<'a>,
    key: WorkflowKey,
    stream: Stream<'a>,
    cursor: Cursor,
    state: Option<Workflow>,
    unseen: Vec<Logged<Event>>,
    written: Written,
    /// Whether somebody may have recorded what nobody derived.
    is_behind: bool,
}

/// What a request led to.
#[derive(Debug)]
pub struct Submitted {
    /// The events it led to; none when it asked for what already holds.
    pub recorded: Vec<Logged<Event>>,
    /// The workflow afterwards.
    pub workflow: Workflow,
}

impl<'a> OpenWorkflow<'a> {
    /// Loads a workflow's stream, which may be empty. Changes nothing.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn load(project: &'a Project<'a>, key: &WorkflowKey) -> Result<Self, WorkflowError> {
        let stream = stream(project, key);
        let mut loaded = stream.load()?;
        let mut state = parse_state(&loaded);
        if loaded.state.is_some() && state.is_none() {
            // The fold has another shape: it is made anew from the log.
            loaded = stream.load_all()?;
        }
        let is_behind = state.is_none() || !loaded.records.is_empty();
        for logged in read::<Event>(&stream.log(), &loaded.records)? {
            evolve(&mut state, &logged.event);
        }
        let cursor = loaded.cursor;
        Ok(Self {
            project,
            key: key.clone(),
            stream,
            cursor,
            state,
            unseen: Vec::new(),
            written: Written::default(),
            is_behind,
        })
    }

    /// Returns the workflow.
    ///
    /// # Errors
    /// When the stream is empty.
    pub fn workflow(&self) -> Result<&Workflow, WorkflowError> {
        self.state.as_ref().ok_or_else(|| self.not_found())
    }

    /// Returns the workflow and lets go of the stream.
    ///
    /// # Errors
    /// When the stream is empty.
    pub fn into_workflow(self) -> Result<Workflow, WorkflowError> {
        let not_found = self.not_found();
        self.state.ok_or(not_found)
    }

    /// Returns how many events were read.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.cursor.position.seq
    }

    /// Returns how long the log is, as far as it was read.
    #[must_use]
    pub const fn log_bytes(&self) -> u64 {
        self.cursor.position.offset
    }

    /// Reads what others have recorded meanwhile.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn refresh(&mut self) -> Result<(), WorkflowError> {
        if self.stream.has_changed(&self.cursor)? {
            let mut cursor = self.cursor.clone();
            let records = self.stream.read_more(&mut cursor)?;
            let logged = read(&self.stream.log(), &records)?;
            self.cursor = cursor;
            if !logged.is_empty() {
                self.is_behind = true;
                self.written.forget();
            }
            self.fold(logged);
        }
        Ok(())
    }

    /// Returns the events that came since the last call, whoever recorded them.
    pub fn take_unseen(&mut self) -> Vec<Logged<Event>> {
        std::mem::take(&mut self.unseen)
    }

    /// Decides a command on the latest state and makes its events durable.
    ///
    /// What begins or approves stands in the person's home before it stands in the log; what lets a
    /// workflow go on needs that leave.
    ///
    /// # Errors
    /// When a rule refuses, somebody else is at it for too long, or the disk refuses.
    pub fn submit(&mut self, actor: &Actor, command: &Command) -> Result<Submitted, WorkflowError> {
        self.submit_between(actor, command, |_| Ok(()))
    }

    /// Does as [`Self::submit`] does, and something else after the rules agreed and before it is
    /// recorded, while nobody else can record anything here. It is handed the state decided on.
    pub(crate) fn submit_between(
        &mut self,
        actor: &Actor,
        command: &Command,
        between: impl FnOnce(Option<&Workflow>) -> Result<(), WorkflowError>,
    ) -> Result<Submitted, WorkflowError> {
        let recorded;
        let before;
        {
            let held = self.hold()?;
            let now_ms = self.project.clock.now_ms();
            let sha256 = sha256_hex;
            let events = decide(
                self.state.as_ref(),
                actor,
                command,
                &Given { now_ms, sha256 },
            )?;
            if let Some(kept) = Kept::of(self.project, &self.key.id) {
                kept.before_recording((actor, command), self.state.as_ref(), &events)?;
            }
            between(self.state.as_ref())?;
            self.set_edits_aside(&events)?;
            before = self.state.as_ref().map(index::row);
            recorded = self.record(&held, &events, actor, now_ms)?;
        }
        let is_noted = match (&before, &self.state) {
            (Some(before), Some(after)) => before.says_the_same(&index::row(after)),
            (None | Some(_), None | Some(_)) => false,
        };
        if !is_noted {
            self.note()
                .map_err(|error| EngineError::NotDerived(Box::new(error)))?;
        }
        Ok(Submitted {
            recorded,
            workflow: self.workflow()?.clone(),
        })
    }

    /// Keeps what a person edited of an artifact that waited and is about to be replaced.
    fn set_edits_aside(&self, events: &[Event]) -> Result<(), EngineError> {
        let before = self.state.as_ref().filter(|_| !events.is_empty());
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
        if let Some((name, bytes)) = edited::edit(disk, &layout, pending)? {
            edited::keep(disk, &layout, name, &bytes)?;
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
            let saved = self.stream.load()?;
            let is_current = saved.records.is_empty() && parse_state(&saved) == self.state;
            self.is_behind |= !is_current;
            self.written.forget();
            let workflow = self.workflow()?.clone();
            let (_, snapshot) = self.encode(&workflow)?;
            let layout = self.project.layout.workflow(self.key.mode, &self.key.id);
            let found = self.project.disk.read(&layout.snapshot(), 0)?;
            if is_current && found.as_deref() == Some(&snapshot) {
                let pending = workflow.pending.as_ref();
                let kept = pending.map(|pending| pending.decision.artifact());
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
        match &self.state {
            Some(workflow) => index::note(self.project, workflow, self.log_bytes()),
            None => Ok(()),
        }
    }

    /// Takes the lock, reads what others recorded, and makes it durable.
    fn hold(&mut self) -> Result<Lock, WorkflowError> {
        let held = self.stream.lock(&self.project.owner, LOCK_WAIT_MS)?;
        self.refresh()?;
        self.stream.settle(&held, &mut self.cursor)?;
        Ok(held)
    }

    fn record(
        &mut self,
        held: &Lock,
        events: &[Event],
        actor: &Actor,
        at_ms: i64,
    ) -> Result<Vec<Logged<Event>>, WorkflowError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let payloads = events.iter().map(to_payload).collect::<Result<_, _>>();
        let batch = Batch {
            actor,
            at_ms,
            payloads: payloads.map_err(encode("an event"))?,
        };
        let before = self.state.as_ref().and_then(|state| state.pending.clone());
        let records = self.stream.append(held, &mut self.cursor, &batch)?;
        let logged: Vec<Logged<Event>> = records
            .iter()
            .zip(events)
            .map(|(record, event)| Logged {
                seq: record.seq,
                at_ms,
                actor: actor.clone(),
                event: event.clone(),
            })
            .collect();
        self.fold(logged.clone());
        self.derive(held, before.as_ref())
            .map_err(|error| EngineError::NotDerived(Box::new(error)))?;
        Ok(logged)
    }

    fn fold(&mut self, logged: Vec<Logged<Event>>) {
        for logged in &logged {
            evolve(&mut self.state, &logged.event);
        }
        self.unseen.extend(logged);
    }

    /// Writes the files that follow from the state, the fold last: when it is there, all are.
    fn derive(&mut self, held: &Lock, before: Option<&Pending>) -> Result<(), EngineError> {
        let Some(workflow) = self.state.as_ref() else {
            return Ok(());
        };
        let (state, snapshot) = self.encode(workflow)?;
        let layout = self.project.layout.workflow(self.key.mode, &self.key.id);
        // What waited before and was written then is left to the person who may have edited it.
        let pending = workflow.pending.as_ref();
        let is_kept = pending.is_some() && pending == before && !self.is_behind;
        let kept = pending
            .filter(|_| is_kept)
            .map(|pending| pending.decision.artifact());
        self.written
            .update(self.project.disk, &layout, workflow, kept)?;
        replace_derived(self.project.disk, &layout.snapshot(), &snapshot)?;
        self.stream.save(held, &self.cursor, state)?;
        self.is_behind = false;
        Ok(())
    }

    fn encode(&self, workflow: &Workflow) -> Result<(Box<RawValue>, Vec<u8>), EngineError> {
        let state = serde_json::value::to_raw_value(workflow).map_err(encode("the state"))?;
        let snapshot = Snapshot::of(workflow, self.cursor.position.seq);
        let mut bytes = serde_json::to_vec_pretty(&snapshot).map_err(encode("the snapshot"))?;
        bytes.push(b'\n');
        Ok((state, bytes))
    }

    fn not_found(&self) -> WorkflowError {
        WorkflowError::NotFound {
            workflow: self.key.clone(),
        }
    }
}

/// Returns a workflow's stream.
#[must_use]
pub fn stream<'a>(project: &Project<'a>, key: &WorkflowKey) -> Stream<'a> {
    let layout = project.layout.workflow(key.mode, &key.id);
    Stream {
        disk: project.disk,
        name: key.id.to_string(),
        dir: layout.dir().to_path_buf(),
        anchor: project.layout.root().to_path_buf(),
    }
}

fn parse_state(loaded: &Loaded) -> Option<Workflow> {
    let state = loaded.state.as_ref()?;
    serde_json::from_str(state.get()).ok()
}

fn encode(what: &'static str) -> impl Fn(serde_json::Error) -> EngineError {
    move |source| EngineError::Encode { what, source }
}
