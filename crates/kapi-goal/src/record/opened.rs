//! One goal's stream, opened: lock, load, decide, append, fold, derive.
//!
//! Owns the only copy of the state there is in a process. The rules decide; this file makes
//! their events durable before anyone acts on them.

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_machine::logged::EventRecord;
use kapi_machine::machine::Machine;
use kapi_machine::opened::OpenStream;
use kapi_sys::disk::{Disk, replace_derived};
use kapi_sys::lock::Lock;

use crate::record::approvals::{CommandNeed, GoalApprovals};
use crate::record::contract_yaml::contract_yaml;
use crate::record::error::EngineError;
use crate::record::goal_entries::note;
use crate::record::json_file::json_file;
use crate::record::project::Project;
use crate::record::snapshot::GoalSnapshot;
use crate::record::{approvals, journey_files};
use crate::rules::command::GoalCommand;
use crate::rules::decide::decide;
use crate::rules::event::GoalEvent;
use crate::rules::evolve::evolve;
use crate::rules::state::{Goal, GoalStatus};

/// A goal's stream and its fold.
pub struct OpenGoal<'a> {
    project: &'a Project<'a>,
    id: GoalId,
    open: OpenStream<'a, GoalMachine>,
}

/// What a goal is folded of; nothing is no goal.
#[derive(Debug)]
pub struct GoalMachine;

impl Machine for GoalMachine {
    type State = Option<Goal>;
    type Event = GoalEvent;
    const EVENT: &'static str = "an event";
    const STATE: &'static str = "the state";

    fn evolve(state: &mut Option<Goal>, logged: &EventRecord<GoalEvent>) {
        evolve(state, &logged.event);
    }
}

/// What a request led to.
#[derive(Debug)]
pub struct GoalSubmission {
    /// The events it led to; none when it asked for what already holds.
    pub recorded: Vec<EventRecord<GoalEvent>>,
    /// The goal afterwards.
    pub goal: Goal,
}

impl<'a> OpenGoal<'a> {
    /// Loads a goal's stream, which may be empty. Changes nothing.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn load(project: &'a Project<'a>, id: &GoalId) -> Result<Self, EngineError> {
        Ok(Self {
            project,
            id: id.clone(),
            open: OpenStream::load(project.stream(id))?,
        })
    }

    /// Returns the goal.
    ///
    /// # Errors
    /// When the stream is empty.
    pub fn goal(&self) -> Result<&Goal, EngineError> {
        let goal = self.open.state().as_ref();
        goal.ok_or_else(|| EngineError::NotFound {
            goal: self.id.clone(),
        })
    }

    /// Returns the goal and lets go of the stream.
    ///
    /// # Errors
    /// When the stream is empty.
    pub fn into_goal(self) -> Result<Goal, EngineError> {
        let goal = self.open.into_state();
        goal.ok_or(EngineError::NotFound { goal: self.id })
    }

    /// Reads what others have recorded meanwhile.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn refresh(&mut self) -> Result<(), EngineError> {
        self.open.refresh()?;
        Ok(())
    }

    /// Returns the events that came since the last call, whoever recorded them.
    pub fn take_unseen(&mut self) -> Vec<EventRecord<GoalEvent>> {
        self.open.take_unseen()
    }

    /// Decides a command on the latest state and makes its events durable.
    ///
    /// What gives leave for something stands in the person's home before it stands in the log; what
    /// lets a goal go on needs that leave.
    ///
    /// # Errors
    /// When a rule refuses, somebody else is at it for too long, or the disk refuses.
    pub fn submit(
        &mut self,
        actor: &Actor,
        command: &GoalCommand,
    ) -> Result<GoalSubmission, EngineError> {
        let project = self.project;
        let Some(home) = GoalApprovals::of(project, &self.id) else {
            return self.decide_and_record(actor, command);
        };
        let role = approvals::role(command);
        // Held to the end: whoever else gives leave waits, and decides on what is recorded here.
        let held = match role {
            CommandNeed::Gives => Some(home.lock()?),
            CommandNeed::GoesOn | CommandNeed::Neither => None,
        };
        if role != CommandNeed::Neither {
            self.refresh()?;
            let (before, at_ms) = (self.open.state().as_ref(), project.clock.now_ms());
            // What the rules refuse needs nobody's leave, and gives none.
            let events = decide(before, actor, command, at_ms)?;
            let mut after = before.cloned();
            for event in &events {
                evolve(&mut after, event);
            }
            match (&held, before, &after) {
                (Some(held), _, Some(after)) => {
                    let is_first = matches!(
                        command,
                        GoalCommand::Create { .. } | GoalCommand::Approve { .. }
                    );
                    home.give(held, actor, before.filter(|_| !is_first), after)?;
                }
                (None, Some(goal), _) => home.require(goal)?,
                (Some(_), _, None) | (None, None, _) => {}
            }
        }
        self.decide_and_record(actor, command)
    }

    fn decide_and_record(
        &mut self,
        actor: &Actor,
        command: &GoalCommand,
    ) -> Result<GoalSubmission, EngineError> {
        let recorded;
        let before;
        {
            let held = self.hold()?;
            let at_ms = self.project.clock.now_ms();
            let events = decide(self.open.state().as_ref(), actor, command, at_ms)?;
            before = self.open.state().as_ref().map(state);
            recorded = self.record(&held, &events, actor, at_ms)?;
        }
        if self.open.state().as_ref().map(state) != before {
            note(self.project, self.goal()?)
                .map_err(|error| EngineError::NotDerived(Box::new(error)))?;
        }
        Ok(GoalSubmission {
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
            let is_current = self.open.is_saved()?;
            let goal = self.goal()?;
            let snapshot = self.snapshot(goal)?;
            let file = self.project.layout.goal(&self.id).snapshot();
            let has_snapshot = self.project.disk.read(&file, 0)?.as_deref() == Some(&snapshot);
            let contract = self.project.layout.goal(&self.id).contract();
            let has_contract = self.project.disk.len(&contract)?.is_some();
            if !(is_current && has_snapshot && has_contract) {
                self.derive(&held, ContractFile::Write)?;
            } else {
                let (disk, layout) = (self.project.disk, self.project.layout.goal(&self.id));
                journey_files::write(disk, &layout, goal, self.project.clock.now_ms())?;
            }
        }
        note(self.project, self.goal()?)
    }

    /// Takes the lock, reads what others recorded, and makes it durable.
    fn hold(&mut self) -> Result<Lock, EngineError> {
        let held = self.open.lock(&self.project.owner)?;
        self.open.refresh()?;
        self.open.settle(&held)?;
        Ok(held)
    }

    fn record(
        &mut self,
        held: &Lock,
        events: &[GoalEvent],
        actor: &Actor,
        at_ms: i64,
    ) -> Result<Vec<EventRecord<GoalEvent>>, EngineError> {
        let is_first = self.open.state().is_none();
        let logged = self.open.record(held, actor, at_ms, events)?;
        if logged.is_empty() {
            return Ok(logged);
        }
        let is_drafted = |event: &GoalEvent| matches!(event, GoalEvent::ContractDrafted { .. });
        let contract = if is_first || events.iter().any(is_drafted) {
            ContractFile::Write
        } else {
            ContractFile::Keep
        };
        self.derive(held, contract)
            .map_err(|error| EngineError::NotDerived(Box::new(error)))?;
        Ok(logged)
    }

    /// Writes the files that follow from the state.
    fn derive(&mut self, held: &Lock, contract: ContractFile) -> Result<(), EngineError> {
        let snapshot = self.snapshot(self.goal()?)?;
        self.open.save(held)?;
        let goal = self.goal()?;
        let layout = self.project.layout.goal(&self.id);
        let disk: &dyn Disk = self.project.disk;
        replace_derived(disk, &layout.snapshot(), &snapshot)?;
        journey_files::write(disk, &layout, goal, self.project.clock.now_ms())?;
        if contract == ContractFile::Write {
            replace_derived(disk, &layout.contract(), contract_yaml(goal)?.as_bytes())?;
        }
        Ok(())
    }

    fn snapshot(&self, goal: &Goal) -> Result<Vec<u8>, EngineError> {
        let snapshot = GoalSnapshot::of(goal, self.open.log().position().seq);
        json_file(&snapshot, "the snapshot")
    }
}

/// What the inventory repeats of a goal.
fn state(goal: &Goal) -> (GoalStatus, Option<String>) {
    (goal.status, goal.workspace.clone())
}

/// Whether the contract's file is written along with the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContractFile {
    Write,
    Keep,
}
