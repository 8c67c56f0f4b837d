//! How a workflow begins: a name, an index, its first event, and the link from the workflow that
//! gives it its context.
//!
//! The giver records the link while nobody else can record anything there, after the new workflow
//! began: a crash between the two is healed by the next drive.

use kapi_core::actor::Actor;
use kapi_core::id::{GoalId, Slug};
use kapi_core::link::WorkflowRelation;
use kapi_core::mode::Mode;
use kapi_core::workflow_key::WorkflowKey;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::inventory::{Inventory, NewDirectory, goal_ids, workflow_ids};
use kapi_goal::record::project::Project;
use kapi_store::hash::sha256_hex;

use crate::record::error::WorkflowError;
use crate::record::index::read_or_rebuild;
use crate::record::opened::OpenWorkflow;
use crate::record::workflows::Workflows;
use crate::rules::command::{WorkflowCommand, WorkflowStart};
use crate::rules::decide::decide;
use crate::rules::decision_context::DecisionContext;
use crate::rules::denied::{WorkflowDenial, WorkflowRule};
use crate::rules::handover::Spec;
use crate::rules::modes::Begin;
use crate::rules::slug;
use crate::rules::state::Workflow;
use crate::rules::terms::WorkflowTerms;

/// What a workflow begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWorkflow {
    /// What it is for, in the person's words.
    pub purpose: String,
    /// What it may use.
    pub terms: WorkflowTerms,
    /// The mode's own beginning. The spec of an interview it names is put in here.
    pub begin: Begin,
}

impl Workflows<'_> {
    /// Starts a workflow under the next free index, and links it with the interview it goes on from.
    ///
    /// # Errors
    /// When a rule refuses (nothing was changed then) or the disk does.
    pub fn start_workflow(
        &self,
        person: &Actor,
        new: &NewWorkflow,
    ) -> Result<Workflow, WorkflowError> {
        let mode = new.begin.mode();
        let (begin, mut giver) = self.begin_from(&new.begin)?;
        let start = |id: GoalId| {
            WorkflowCommand::Start(Box::new(WorkflowStart {
                id,
                purpose: new.purpose.clone(),
                terms: new.terms.clone(),
                begin: begin.clone(),
            }))
        };
        // Everything is asked before an index is claimed, so that a refusal leaves no trace.
        let given = DecisionContext {
            now_ms: self.clock.now_ms(),
            sha256: sha256_hex,
        };
        let known = Inventory::read(self.disk, &self.layout)?;
        let slug = self.free_name(new, known.as_ref())?;
        let nobody = GoalId::new(0, slug);
        decide(None, person, &start(nobody.clone()), &given)?;
        if let Some(open) = &giver {
            let giver = open.workflow()?;
            decide(Some(giver), person, &branch(giver, mode, nobody)?, &given)?;
        }
        self.prepare()?;
        let id = self.claim_workflow(new)?;
        let key = WorkflowKey {
            mode,
            id: id.clone(),
        };
        let mut started = None;
        let mut begin_it = || -> Result<(), WorkflowError> {
            let submitted = OpenWorkflow::load(self, &key)?.submit(person, &start(id.clone()))?;
            started = Some(submitted.workflow);
            Ok(())
        };
        match &mut giver {
            None => begin_it()?,
            Some(open) => {
                let spec = begin.handover().cloned();
                let branched = branch(open.workflow()?, mode, id.clone())?;
                open.submit_between(person, &branched, |giver| {
                    same_spec(giver, spec.as_ref())?;
                    begin_it()
                })?;
                open.note()?;
            }
        }
        started.ok_or(WorkflowError::NotFound { workflow: key })
    }

    /// Opens the interview that a workflow goes on from, and fills in its approved spec.
    fn begin_from(
        &self,
        begin: &Begin,
    ) -> Result<(Begin, Option<OpenWorkflow<'_>>), WorkflowError> {
        let Some(id) = begin.context() else {
            return Ok((begin.clone(), None));
        };
        let key = WorkflowKey {
            mode: Mode::CONTEXT,
            id: id.clone(),
        };
        let open = OpenWorkflow::load(self, &key)?;
        let handover = open.workflow()?.body.rules().handover().cloned();
        let begin = begin.clone().with_handover(handover.map(Box::new));
        Ok((begin, Some(open)))
    }

    fn claim_workflow(&self, new: &NewWorkflow) -> Result<GoalId, WorkflowError> {
        let held = self.lock()?;
        let mut inventory = read_or_rebuild(self)?;
        let slug = self.free_name(new, Some(&inventory))?;
        let new = NewDirectory {
            parent: self.layout.mode_dir(new.begin.mode()),
            slug: &slug,
        };
        Ok(inventory.claim(self.disk, &self.layout, &new, &held)?)
    }

    /// Returns a name that no goal and no workflow has, but for the interview that it goes on from: a
    /// mode's verbs find their own by it.
    fn free_name(
        &self,
        new: &NewWorkflow,
        inventory: Option<&Inventory>,
    ) -> Result<Slug, WorkflowError> {
        let taken = self.taken(inventory)?;
        let others = taken.iter().filter(|id| Some(*id) != new.begin.context());
        let slugs: Vec<Slug> = others.map(|id| id.slug().clone()).collect();
        Ok(slug::derive(&new.purpose, new.begin.mode(), &slugs)?)
    }

    /// Returns every goal and workflow there is.
    fn taken(&self, inventory: Option<&Inventory>) -> Result<Vec<GoalId>, EngineError> {
        let mut taken = goal_ids(self.disk, &self.layout)?;
        for mode in Mode::ALL {
            taken.extend(workflow_ids(self.disk, &self.layout, mode, inventory)?);
        }
        Ok(taken)
    }
}

/// Records in its interview that a workflow goes on from there, where a crash left that undone.
pub(crate) fn relink(project: &Project<'_>, workflow: &Workflow) -> Result<(), WorkflowError> {
    let context = workflow
        .links
        .iter()
        .find(|link| link.relation == WorkflowRelation::Context);
    let Some(link) = context else {
        return Ok(());
    };
    let key = WorkflowKey {
        mode: link.mode,
        id: link.workflow.clone(),
    };
    let mut open = match OpenWorkflow::load(project, &key) {
        Ok(open) => open,
        // Whoever damaged the interview does not take what began from it along.
        Err(WorkflowError::Engine(EngineError::Corrupt(_) | EngineError::UnknownEvent { .. })) => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    match open.workflow() {
        Ok(interview) if !interview.status.is_terminal() => {}
        // It is linked already, or somebody deleted it.
        Ok(_) | Err(_) => return Ok(()),
    }
    let giver = open.workflow()?;
    let Ok(command) = branch(giver, workflow.mode(), workflow.id.clone()) else {
        return Ok(());
    };
    match open.submit(&Actor::Engine, &command) {
        // An interview that went another way meanwhile stays as it is.
        Ok(_) | Err(WorkflowError::Denied(_) | WorkflowError::NotApprovedHere { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the request by which the giver of the context records what goes on from it.
fn branch(
    giver: &Workflow,
    mode: Mode,
    workflow: GoalId,
) -> Result<WorkflowCommand, WorkflowError> {
    let command = giver.body.rules().succeeded_by(mode, workflow);
    command.map(WorkflowCommand::Mode).ok_or_else(|| {
        let why = WorkflowRule::WrongMode {
            action: "continue in another workflow",
            mode: giver.mode().as_str(),
        };
        let phase = Some(giver.phase());
        denied(why, phase)
    })
}

/// Refuses to begin from a spec that was replaced while this request was under way.
fn same_spec(giver: Option<&Workflow>, spec: Option<&Spec>) -> Result<(), WorkflowError> {
    let found = giver.and_then(|workflow| workflow.body.rules().handover());
    if found == spec {
        return Ok(());
    }
    let rule = "start from a spec that was replaced meanwhile".to_owned();
    Err(denied(
        WorkflowRule::Malformed { rule },
        giver.map(Workflow::phase),
    ))
}

fn denied(why: WorkflowRule, phase: Option<(&'static str, Option<&'static str>)>) -> WorkflowError {
    WorkflowDenial {
        why,
        phase,
        pending: None,
        next_commands: Vec::new(),
    }
    .into()
}
