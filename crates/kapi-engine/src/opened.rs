//! One goal's stream, opened: lock, load, decide, append, fold, derive.
//!
//! Owns the only copy of the state there is in a process. The rules decide; this file makes
//! their events durable before anyone acts on them.

use kapi_core::actor::Actor;
use kapi_core::goal::command::Command;
use kapi_core::goal::decide::decide;
use kapi_core::goal::event::Event;
use kapi_core::goal::evolve::evolve;
use kapi_core::goal::state::{Goal, Status};
use kapi_core::id::GoalId;
use kapi_store::record::Batch;
use kapi_store::stream::{Cursor, Loaded, Stream};
use kapi_sys::disk::{Disk, replace_derived};
use kapi_sys::lock::Lock;
use serde_json::value::RawValue;

use crate::approvals::{self, Kept, Role};
use crate::contract_yaml::contract_yaml;
use crate::error::EngineError;
use crate::inventory::note;
use crate::journey_files;
use crate::machine::file_log::LOCK_WAIT_MS;
use crate::machine::logged::{Logged, read, to_payload};
use crate::project::Project;
use crate::snapshot::Snapshot;

/// A goal's stream and its fold.
pub struct OpenGoal<'a> {
    project: &'a Project<'a>,
    id: GoalId,
    stream: Stream<'a>,
    cursor: Cursor,
    state: Option<Goal>,
    unseen: Vec<Logged<Event>>,
}

/// What a request led to.
#[derive(Debug)]
pub struct Submitted {
    /// The events it led to; none when it asked for what already holds.
    pub recorded: Vec<Logged<Event>>,
    /// The goal afterwards.
    pub goal: Goal,
}

impl<'a> OpenGoal<'a> {
    /// Loads a goal's stream, which may be empty. Changes nothing.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn load(project: &'a Project<'a>, id: &GoalId) -> Result<Self, EngineError> {
        let stream = project.stream(id);
        let mut loaded = stream.load()?;
        let mut state = parse_state(&loaded);
        if loaded.state.is_some() && state.is_none() {
            // The fold has another shape: it is made anew from the log.
            loaded = stream.load_all()?;
        }
        for logged in read::<Event>(&stream.log(), &loaded.records)? {
            evolve(&mut state, &logged.event);
        }
        let cursor = loaded.cursor;
        Ok(Self {
            project,
            id: id.clone(),
            stream,
            cursor,
            state,
            unseen: Vec::new(),
        })
    }

    /// Returns the goal.
    ///
    /// # Errors
    /// When the stream is empty.
    pub fn goal(&self) -> Result<&Goal, EngineError> {
        self.state.as_ref().ok_or_else(|| EngineError::NotFound {
            goal: self.id.clone(),
        })
    }

    /// Returns the goal and lets go of the stream.
    ///
    /// # Errors
    /// When the stream is empty.
    pub fn into_goal(self) -> Result<Goal, EngineError> {
        self.state.ok_or(EngineError::NotFound { goal: self.id })
    }

    /// Reads what others have recorded meanwhile.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn refresh(&mut self) -> Result<(), EngineError> {
        if self.stream.has_changed(&self.cursor)? {
            let mut cursor = self.cursor.clone();
            let records = self.stream.read_more(&mut cursor)?;
            let logged = read(&self.stream.log(), &records)?;
            self.cursor = cursor;
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
    /// What gives leave for something stands in the person's home before it stands in the log; what
    /// lets a goal go on needs that leave.
    ///
    /// # Errors
    /// When a rule refuses, somebody else is at it for too long, or the disk refuses.
    pub fn submit(&mut self, actor: &Actor, command: &Command) -> Result<Submitted, EngineError> {
        let project = self.project;
        let Some(kept) = Kept::of(project, &self.id) else {
            return self.decide_and_record(actor, command);
        };
        let role = approvals::role(command);
        // Held to the end: whoever else gives leave waits, and decides on what is recorded here.
        let held = match role {
            Role::Gives => Some(kept.lock()?),
            Role::GoesOn | Role::Neither => None,
        };
        if role != Role::Neither {
            self.refresh()?;
            let (before, at_ms) = (self.state.as_ref(), project.clock.now_ms());
            // What the rules refuse needs nobody's leave, and gives none.
            let events = decide(before, actor, command, at_ms)?;
            let mut after = before.cloned();
            for event in &events {
                evolve(&mut after, event);
            }
            match (&held, before, &after) {
                (Some(held), _, Some(after)) => kept.give(held, actor, (before, after), command)?,
                (None, Some(goal), _) => kept.require(goal)?,
                (Some(_), _, None) | (None, None, _) => {}
            }
        }
        self.decide_and_record(actor, command)
    }

    fn decide_and_record(
        &mut self,
        actor: &Actor,
        command: &Command,
    ) -> Result<Submitted, EngineError> {
        let recorded;
        let before;
        {
            let held = self.hold()?;
            let at_ms = self.project.clock.now_ms();
            let events = decide(self.state.as_ref(), actor, command, at_ms)?;
            before = self.state.as_ref().map(standing);
            recorded = self.record(&held, &events, actor, at_ms)?;
        }
        if self.state.as_ref().map(standing) != before {
            note(self.project, self.goal()?)
                .map_err(|error| EngineError::NotDerived(Box::new(error)))?;
        }
        Ok(Submitted {
            recorded,
            goal: self.goal()?.clone(),
        })
    }

    /// Writes again what the log implies and a crash has left undone.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn repair(&mut self) -> Result<(), EngineError> {
        {
            let held = self.hold()?;
            let saved = self.stream.load()?;
            let is_current = saved.records.is_empty() && parse_state(&saved) == self.state;
            let goal = self.goal()?;
            let (_, snapshot) = self.snapshot(goal)?;
            let file = self.project.layout.goal(&self.id).snapshot();
            let has_snapshot = self.project.disk.read(&file, 0)?.as_deref() == Some(&snapshot);
            let contract = self.project.layout.goal(&self.id).contract();
            let has_contract = self.project.disk.len(&contract)?.is_some();
            if !(is_current && has_snapshot && has_contract) {
                self.derive(&held, Contract::Write)?;
            } else {
                let (disk, layout) = (self.project.disk, self.project.layout.goal(&self.id));
                journey_files::write(disk, &layout, goal, self.project.clock.now_ms())?;
            }
        }
        note(self.project, self.goal()?)
    }

    /// Takes the lock, reads what others recorded, and makes it durable.
    fn hold(&mut self) -> Result<Lock, EngineError> {
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
    ) -> Result<Vec<Logged<Event>>, EngineError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let payloads = events
            .iter()
            .map(to_payload)
            .collect::<Result<_, _>>()
            .map_err(|source| EngineError::Encode {
                what: "an event",
                source,
            })?;
        let batch = Batch {
            actor,
            at_ms,
            payloads,
        };
        let is_first = self.state.is_none();
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
        let is_drafted = |event: &Event| matches!(event, Event::ContractDrafted { .. });
        let contract = if is_first || events.iter().any(is_drafted) {
            Contract::Write
        } else {
            Contract::Keep
        };
        self.derive(held, contract)
            .map_err(|error| EngineError::NotDerived(Box::new(error)))?;
        Ok(logged)
    }

    fn fold(&mut self, logged: Vec<Logged<Event>>) {
        for logged in &logged {
            evolve(&mut self.state, &logged.event);
        }
        self.unseen.extend(logged);
    }

    /// Writes the files that follow from the state.
    fn derive(&self, held: &Lock, contract: Contract) -> Result<(), EngineError> {
        let goal = self.goal()?;
        let (state, snapshot) = self.snapshot(goal)?;
        self.stream.save(held, &self.cursor, state)?;
        let layout = self.project.layout.goal(&self.id);
        let disk: &dyn Disk = self.project.disk;
        replace_derived(disk, &layout.snapshot(), &snapshot)?;
        journey_files::write(disk, &layout, goal, self.project.clock.now_ms())?;
        if contract == Contract::Write {
            replace_derived(disk, &layout.contract(), contract_yaml(goal)?.as_bytes())?;
        }
        Ok(())
    }

    fn snapshot(&self, goal: &Goal) -> Result<(Box<RawValue>, Vec<u8>), EngineError> {
        let encode = |what| move |source| EngineError::Encode { what, source };
        let state = serde_json::value::to_raw_value(goal).map_err(encode("the state"))?;
        let snapshot = Snapshot::of(goal, self.cursor.position.seq);
        let mut bytes = serde_json::to_vec_pretty(&snapshot).map_err(encode("the snapshot"))?;
        bytes.push(b'\n');
        Ok((state, bytes))
    }
}

/// What the inventory repeats of a goal.
fn standing(goal: &Goal) -> (Status, Option<String>) {
    (goal.status, goal.workspace.clone())
}

/// Whether the contract's file is written along with the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contract {
    Write,
    Keep,
}

fn parse_state(loaded: &Loaded) -> Option<Goal> {
    let state = loaded.state.as_ref()?;
    serde_json::from_str(state.get()).ok()
}
