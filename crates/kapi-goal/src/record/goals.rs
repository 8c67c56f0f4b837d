//! What can be asked of the goals of a project: to make one, change one, list them.
//!
//! Each request opens the stream it needs and keeps no state.

use kapi_core::actor::Actor;
use kapi_core::id::{GoalId, Slug};

use crate::record::contract_hash::contract_hash;
use crate::record::error::EngineError;
use crate::record::goal_entries;
use crate::record::goal_entries::read_or_rebuild;
use crate::record::goal_listing::GoalListingEntry;
use crate::record::inventory::{Inventory, NewDirectory};
use crate::record::opened::{GoalSubmission, OpenGoal};
use crate::record::project::Project;
use crate::rules::command::GoalCommand;
use crate::rules::contract::Contract;
use crate::rules::decide::decide;
use crate::rules::state::Goal;

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

    /// Claims the next name for a goal of a workflow's task; otherwise as [`Project::claim_goal`],
    /// and no index is spent.
    ///
    /// # Errors
    /// When a rule would refuse the contract (nothing was changed then) or the disk does.
    pub fn claim_part(
        &self,
        actor: &Actor,
        workflow: &GoalId,
        task: &str,
        contract: &Contract,
    ) -> Result<GoalId, EngineError> {
        let create = create_command(workflow, contract, false)?;
        decide(None, actor, &create, self.clock.now_ms())?;
        self.prepare()?;
        let held = self.lock()?;
        let claimed = Inventory::claim_part(self.disk, &self.layout, workflow, task, &held);
        Ok(claimed?)
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
        let draft = GoalCommand::Draft {
            contract: Box::new(contract.clone()),
            contract_hash: hash.clone(),
        };
        self.submit(goal, actor, &draft)?;
        Ok(hash)
    }

    /// Returns every goal with where it stands, sorted by index.
    ///
    /// # Errors
    /// When the disk refuses. A damaged goal is listed with its fault.
    pub fn goals(&self) -> Result<Vec<GoalListingEntry>, EngineError> {
        goal_entries::list(self)
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
        command: &GoalCommand,
    ) -> Result<GoalSubmission, EngineError> {
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

    /// Returns the inventory, read or rebuilt.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn inventory(&self) -> Result<Inventory, EngineError> {
        read_or_rebuild(self)
    }
}

fn create_command(
    id: &GoalId,
    contract: &Contract,
    setup: bool,
) -> Result<GoalCommand, EngineError> {
    Ok(GoalCommand::Create {
        id: id.clone(),
        contract: Box::new(contract.clone()),
        contract_hash: contract_hash(contract)?,
        setup,
    })
}
