//! A project: the goals of one directory, and every request that can be made of them.
//!
//! Holds the disk, the clock and the paths, and no state: each request reads what it needs.

use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_core::goal::command::Command;
use kapi_core::goal::contract::Contract;
use kapi_core::goal::decide::decide;
use kapi_core::goal::event::Event;
use kapi_core::goal::state::Goal;
use kapi_core::id::{GoalId, Slug};
use kapi_core::workflow::modes::Mode;
use kapi_store::canonical::canonical_hash;
use kapi_store::inventory::{GoalEntry, Inventory, NewDirectory, goal_ids, workflow_ids};
use kapi_store::layout::ProjectLayout;
use kapi_store::stream::LogStream;
use kapi_sys::clock::Clock;
use kapi_sys::disk::{Disk, create_dir_durably, replace_durably};
use kapi_sys::lock::Lock;

use crate::error::EngineError;
use crate::inventory::read_or_rebuild;
use crate::machine::file_log::LOCK_WAIT_MS;
use crate::machine::follow::LogCursor;
use crate::machine::logged::Logged;
use crate::opened::{OpenGoal, Submitted};
use crate::reference::{ResolveError, find};

/// A project directory, seen by one process.
#[derive(Clone)]
pub struct Project<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// The project's paths.
    pub layout: ProjectLayout,
    /// What other processes are told about who holds a lock ("kapi run").
    pub owner: String,
    /// The home of the person whose approvals count; `None` where nobody is asked, in simulations.
    pub home: Option<PathBuf>,
}

impl Project<'_> {
    /// Proposes a goal under the next free index.
    ///
    /// # Errors
    /// When a rule refuses (nothing was changed then) or the disk does.
    pub fn create_goal(
        &self,
        actor: &Actor,
        slug: &Slug,
        contract: &Contract,
    ) -> Result<GoalId, EngineError> {
        let id = self.claim_goal(actor, slug, contract)?;
        self.create_claimed(actor, &id, contract)?;
        Ok(id)
    }

    /// Claims the next free index for a contract, so that the goal's directory can be filled
    /// before the goal exists. A claim that is never used harms nothing but the index.
    ///
    /// # Errors
    /// When a rule would refuse the contract (nothing was changed then) or the disk does.
    pub fn claim_goal(
        &self,
        actor: &Actor,
        slug: &Slug,
        contract: &Contract,
    ) -> Result<GoalId, EngineError> {
        // Asked before an index is claimed, so that a refusal leaves no trace.
        let create = create_command(&GoalId::new(0, slug.clone()), contract, false)?;
        decide(None, actor, &create, self.clock.now_ms())?;
        self.prepare()?;
        let held = self.lock()?;
        let mut inventory = read_or_rebuild(self)?;
        let new = NewDirectory {
            parent: self.layout.goals_dir(),
            slug,
        };
        Ok(inventory.claim(self.disk, &self.layout, &new, &held)?)
    }

    /// Proposes a goal under an id that was claimed.
    ///
    /// # Errors
    /// When a rule refuses or the disk does.
    pub fn create_claimed(
        &self,
        actor: &Actor,
        id: &GoalId,
        contract: &Contract,
    ) -> Result<(), EngineError> {
        let create = create_command(id, contract, false)?;
        OpenGoal::load(self, id)?.submit(actor, &create)?;
        Ok(())
    }

    /// Begins a goal whose contract an agent drafts; this one only says what is known before.
    ///
    /// # Errors
    /// When a rule refuses (nothing was changed then) or the disk does.
    pub fn begin_setup(
        &self,
        actor: &Actor,
        slug: &Slug,
        contract: &Contract,
    ) -> Result<GoalId, EngineError> {
        // Asked before an index is claimed, so that a refusal leaves no trace.
        let asked = create_command(&GoalId::new(0, slug.clone()), contract, true)?;
        decide(None, actor, &asked, self.clock.now_ms())?;
        let id = self.claim_goal(actor, slug, contract)?;
        let create = create_command(&id, contract, true)?;
        OpenGoal::load(self, &id)?.submit(actor, &create)?;
        Ok(id)
    }

    /// Puts another contract in the place of one that was not approved yet, and returns its hash.
    ///
    /// # Errors
    /// When a rule refuses (not one byte was changed then), the log is damaged, or the disk
    /// refuses.
    pub fn draft(
        &self,
        goal: &GoalId,
        actor: &Actor,
        contract: &Contract,
    ) -> Result<String, EngineError> {
        let hash = contract_hash(contract)?;
        let draft = Command::Draft {
            contract: Box::new(contract.clone()),
            contract_hash: hash.clone(),
        };
        self.submit(goal, actor, &draft)?;
        Ok(hash)
    }

    /// Makes the state directory, which git ignores by a rule of its own; no file of the
    /// person's is touched. Done by [`Project::claim_goal`] too.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn prepare(&self) -> Result<(), EngineError> {
        const RULE: &[u8] = b"*\n";
        let file = self.layout.gitignore();
        let is_there = || -> Result<bool, EngineError> {
            Ok(self.disk.read(&file, 0)?.as_deref() == Some(RULE))
        };
        if is_there()? {
            return Ok(());
        }
        create_dir_durably(self.disk, self.layout.root(), &self.layout.state_dir())?;
        let _held = self.lock()?;
        if !is_there()? {
            replace_durably(self.disk, &file, RULE)?;
        }
        Ok(())
    }

    /// Returns the ids of all goals, sorted by index.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn goal_ids(&self) -> Result<Vec<GoalId>, EngineError> {
        Ok(goal_ids(self.disk, &self.layout)?)
    }

    /// Returns every goal with where it stands, sorted by index.
    ///
    /// # Errors
    /// When the disk refuses. A damaged goal is listed with its fault.
    pub fn goals(&self) -> Result<Vec<Listed>, EngineError> {
        crate::inventory::list(self)
    }

    /// Finds the goal that a person means: `7`, `007`, `fix-login` or `007-fix-login`.
    ///
    /// # Errors
    /// When none or several fit.
    pub fn resolve(&self, reference: &str) -> Result<GoalId, ResolveError> {
        let found = find(reference, &goal_ids(self.disk, &self.layout)?);
        let Err(ResolveError::Unknown { .. }) = found else {
            return found;
        };
        for mode in Mode::ALL {
            let workflows = workflow_ids(self.disk, &self.layout, mode, None)?;
            if let Ok(id) = find(reference, &workflows) {
                let reference = reference.to_owned();
                return Err(ResolveError::Workflow {
                    reference,
                    id,
                    mode,
                });
            }
        }
        found
    }

    /// Loads a goal. Changes nothing.
    ///
    /// # Errors
    /// When there is no such goal, or its log is damaged.
    pub fn load(&self, goal: &GoalId) -> Result<Goal, EngineError> {
        OpenGoal::load(self, goal)?.into_goal()
    }

    /// Makes a request of a goal.
    ///
    /// # Errors
    /// When a rule refuses (not one byte was changed then), somebody else is at it for too long,
    /// the log is damaged, or the disk refuses.
    pub fn submit(
        &self,
        goal: &GoalId,
        actor: &Actor,
        command: &Command,
    ) -> Result<Submitted, EngineError> {
        let mut open = OpenGoal::load(self, goal)?;
        open.goal()?;
        open.submit(actor, command)
    }

    /// Writes again whatever a goal's log implies and a crash has left undone.
    ///
    /// # Errors
    /// When there is no such goal, its log is damaged, or the disk refuses.
    pub fn repair(&self, goal: &GoalId) -> Result<Goal, EngineError> {
        let mut open = OpenGoal::load(self, goal)?;
        open.goal()?;
        open.repair()?;
        open.into_goal()
    }

    /// Returns who drives a goal right now, if anybody does. Asks the real file system.
    ///
    /// # Errors
    /// When the lock cannot be read.
    pub fn driver(&self, goal: &GoalId) -> Result<Option<String>, EngineError> {
        Ok(Lock::holder(&self.layout.goal(goal).drive_lock())?)
    }

    /// Returns the events of a goal that were recorded since `cursor`, and moves it.
    ///
    /// # Errors
    /// When there is no such goal, or its log is damaged.
    pub fn log_since(
        &self,
        goal: &GoalId,
        cursor: &mut LogCursor,
    ) -> Result<Vec<Logged<Event>>, EngineError> {
        let logged = cursor.follow(&self.stream(goal))?;
        logged.ok_or_else(|| EngineError::NotFound { goal: goal.clone() })
    }

    /// Returns every event of a goal.
    ///
    /// # Errors
    /// When there is no such goal, or its log is damaged.
    pub fn log(&self, goal: &GoalId) -> Result<Vec<Logged<Event>>, EngineError> {
        self.log_since(goal, &mut LogCursor::default())
    }

    /// Returns the inventory, read or rebuilt.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn inventory(&self) -> Result<Inventory, EngineError> {
        read_or_rebuild(self)
    }

    /// Returns a goal's stream.
    #[must_use]
    pub fn stream(&self, goal: &GoalId) -> LogStream<'_> {
        LogStream {
            disk: self.disk,
            name: goal.to_string(),
            dir: self.layout.goal(goal).dir().to_path_buf(),
            anchor: self.layout.root().to_path_buf(),
        }
    }

    pub(crate) fn lock(&self) -> Result<Lock, EngineError> {
        Ok(self
            .disk
            .lock(&self.layout.lock(), &self.owner, LOCK_WAIT_MS)?)
    }
}

/// Returns the hash by which a contract is approved.
///
/// # Errors
/// When the contract cannot be written as JSON.
pub fn contract_hash(contract: &Contract) -> Result<String, EngineError> {
    canonical_hash(contract).map_err(|source| EngineError::Encode {
        what: "the contract",
        source,
    })
}

fn create_command(id: &GoalId, contract: &Contract, setup: bool) -> Result<Command, EngineError> {
    Ok(Command::Create {
        id: id.clone(),
        contract: Box::new(contract.clone()),
        contract_hash: contract_hash(contract)?,
        setup,
    })
}

/// One goal in a listing.
#[derive(Debug)]
pub struct Listed {
    /// The goal.
    pub id: GoalId,
    /// What is known of it.
    pub standing: Standing,
}

/// What a listing knows of a goal.
#[derive(Debug)]
pub enum Standing {
    /// Its stream is sound.
    Known(GoalEntry),
    /// Its stream cannot be trusted or read.
    Damaged(EngineError),
}
