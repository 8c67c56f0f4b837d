//! Which workflows a person started and what of them they approved, kept in their own home.
//!
//! A workflow's files can come in an archive, in a clone or by somebody else's hand. Only what is
//! recorded here is ever gone on with; anything else is shown. Beside the approvals of goals, which
//! share the indexes.

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_core::mode::Mode;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::home_record::HomeRecord;
use kapi_goal::record::project::Project;
use kapi_store::canonical::canonical_hash;
use serde::{Deserialize, Serialize};

use super::error::WorkflowLack;
use crate::record::error::WorkflowError;
use crate::rules::command::WorkflowCommand;
use crate::rules::event::WorkflowEvent;
use crate::rules::evolve::evolve;
use crate::rules::limits::LimitRaises;
use crate::rules::mode_spec::WorkflowStage;
use crate::rules::modes::Begin;
use crate::rules::pending::{DecisionApproval, WorkflowDecision};
use crate::rules::state::Workflow;
use crate::rules::terms::WorkflowTerms;

/// The layout of the record.
const VERSION: u32 = 1;
/// What errors call it.
const WHAT: &str = "what the user approved";

/// What one person gave leave for in one workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkflowApproval {
    v: u32,
    workflow: GoalId,
    /// SHA-256 of what it was started as: purpose, terms, beginning.
    started: String,
    /// Who started it.
    person: String,
    approved: Vec<WorkflowGrant>,
    /// What they added to the limits, all together.
    #[serde(default, skip_serializing_if = "LimitRaises::is_zero")]
    raised: LimitRaises,
}

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkflowGrant {
    decision: WorkflowDecision,
    /// SHA-256 of the artifact that was shown.
    sha256: String,
    /// SHA-256 of what the artifact was made from: what is carried out.
    content: String,
    /// When, in milliseconds since the epoch.
    at_ms: i64,
}

/// What a workflow was started as; everything that cannot change while it lives.
#[derive(Serialize)]
struct Beginning<'a> {
    id: &'a GoalId,
    mode: Mode,
    purpose: &'a str,
    terms: &'a WorkflowTerms,
    begin: Begin,
}

/// The leave for one workflow, where it is kept.
pub(crate) struct WorkflowApprovals<'a>(HomeRecord<'a>);

impl<'a> WorkflowApprovals<'a> {
    /// Returns the approvals of a workflow; `None` where nobody is asked.
    pub(crate) fn of(project: &'a Project<'a>, workflow: &GoalId) -> Option<Self> {
        HomeRecord::of(project, workflow).map(Self)
    }

    /// Refuses what needs leave that is not there, and records what is about to be given, before
    /// the workflow's log says it.
    pub(crate) fn before_recording(
        &self,
        actor: &Actor,
        command: &WorkflowCommand,
        before: Option<&Workflow>,
        events: &[WorkflowEvent],
    ) -> Result<(), WorkflowError> {
        let mut after = before.cloned();
        for event in events {
            evolve(&mut after, event);
        }
        let (Some(before), Some(after)) = (before, &after) else {
            return match &after {
                Some(after) => Ok(self.write(&WorkflowApproval::of(after, &actor.to_string())?)?),
                None => Ok(()),
            };
        };
        let given: Vec<&DecisionApproval> = events.iter().filter_map(approval).collect();
        let is_raised = before.raised != after.raised;
        let gives = !given.is_empty() || is_raised;
        if !gives && !goes_on(command) {
            return Ok(());
        }
        self.require(before)?;
        if !gives {
            return Ok(());
        }
        let Some(mut grant) = self.read()? else {
            return Ok(());
        };
        for approval in given {
            grant.approved.push(WorkflowGrant::of(approval, after)?);
        }
        grant.raised = after.raised;
        Ok(self.write(&grant)?)
    }

    /// Refuses a workflow that says more of itself than its person gave leave for.
    pub(crate) fn require(&self, workflow: &Workflow) -> Result<(), WorkflowError> {
        match self.lack(workflow)? {
            None => Ok(()),
            Some(lack) => Err(WorkflowError::NotApprovedHere {
                workflow: workflow.key(),
                lack,
            }),
        }
    }

    /// Tells what is missing for a workflow to go on.
    pub(crate) fn lack(&self, workflow: &Workflow) -> Result<Option<WorkflowLack>, EngineError> {
        match self.read()? {
            None => Ok(Some(WorkflowLack::Nothing)),
            Some(grant) => grant.lack(workflow),
        }
    }

    /// Records leave for everything that a workflow says of itself, which a person was shown.
    pub(crate) fn adopt(&self, person: &Actor, workflow: &Workflow) -> Result<(), EngineError> {
        let mut grant = WorkflowApproval::of(workflow, &person.to_string())?;
        for approval in &workflow.approvals {
            grant.approved.push(WorkflowGrant::of(approval, workflow)?);
        }
        self.write(&grant)
    }

    fn read(&self) -> Result<Option<WorkflowApproval>, EngineError> {
        let bytes = self.0.read()?;
        let grant: Option<WorkflowApproval> =
            bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(grant.filter(|grant| grant.v == VERSION && grant.workflow == *self.0.id()))
    }

    fn write(&self, grant: &WorkflowApproval) -> Result<(), EngineError> {
        self.0.prepare()?;
        self.0.write(grant, WHAT)
    }
}

impl WorkflowApproval {
    fn of(workflow: &Workflow, person: &str) -> Result<Self, EngineError> {
        Ok(Self {
            v: VERSION,
            workflow: workflow.id.clone(),
            started: started(workflow)?,
            person: person.to_owned(),
            approved: Vec::new(),
            raised: workflow.raised,
        })
    }

    fn lack(&self, workflow: &Workflow) -> Result<Option<WorkflowLack>, EngineError> {
        if started(workflow)? != self.started {
            return Ok(Some(WorkflowLack::OtherStart));
        }
        if workflow.raised.exceeds(&self.raised) {
            return Ok(Some(WorkflowLack::Limits));
        }
        let is_given = |approval: &&DecisionApproval| {
            let approved = &mut self.approved.iter();
            approved
                .any(|given| given.decision == approval.decision && given.sha256 == approval.sha256)
        };
        if let Some(other) = workflow.approvals.iter().find(|asked| !is_given(asked)) {
            return Ok(Some(WorkflowLack::Approval {
                decision: other.decision,
                sha256: other.sha256.clone(),
            }));
        }
        if !is_carried_out(workflow) {
            return Ok(None);
        }
        let content = content(workflow)?;
        let is_approved = self.approved.iter().any(|given| given.content == content);
        Ok((!is_approved).then_some(WorkflowLack::OtherContent))
    }
}

impl WorkflowGrant {
    fn of(approval: &DecisionApproval, workflow: &Workflow) -> Result<Self, EngineError> {
        Ok(Self {
            decision: approval.decision,
            sha256: approval.sha256.clone(),
            content: content(workflow)?,
            at_ms: approval.at_ms,
        })
    }
}

/// Tells whether a command lets a workflow go on, and so needs leave that was given before.
const fn goes_on(command: &WorkflowCommand) -> bool {
    match command {
        WorkflowCommand::Start(_)
        | WorkflowCommand::Approve { .. }
        | WorkflowCommand::Revise { .. }
        | WorkflowCommand::Unblock {}
        | WorkflowCommand::RaiseLimits { .. }
        | WorkflowCommand::Intend { .. }
        | WorkflowCommand::Mode(_) => true,
        WorkflowCommand::Abandon { .. }
        | WorkflowCommand::Pause {}
        | WorkflowCommand::RecordEvidence(_)
        | WorkflowCommand::Progress { .. }
        | WorkflowCommand::UseTime { .. }
        | WorkflowCommand::RecordRun { .. }
        | WorkflowCommand::RecordGoalUse { .. }
        | WorkflowCommand::Report { .. }
        | WorkflowCommand::RefreshWorker { .. }
        | WorkflowCommand::QueueWork { .. }
        | WorkflowCommand::MarkIntegrated { .. } => false,
    }
}

fn approval(event: &WorkflowEvent) -> Option<&DecisionApproval> {
    if let WorkflowEvent::Approved { approval } = event {
        Some(approval)
    } else {
        None
    }
}

/// Tells whether a workflow has passed its approval.
fn is_carried_out(workflow: &Workflow) -> bool {
    let (phase, _) = workflow.body.rules().phase();
    match phase.stage {
        WorkflowStage::Drafting => false,
        WorkflowStage::Handover | WorkflowStage::Carried => true,
    }
}

fn started(workflow: &Workflow) -> Result<String, EngineError> {
    let beginning = Beginning {
        id: &workflow.id,
        mode: workflow.mode(),
        purpose: &workflow.purpose,
        terms: &workflow.terms,
        begin: workflow.body.rules().beginning(),
    };
    canonical_hash(&beginning).map_err(encode)
}

/// Returns the hash of what an approval is about, apart from how it is shown.
fn content(workflow: &Workflow) -> Result<String, EngineError> {
    canonical_hash(&workflow.body.carried()).map_err(encode)
}

fn encode(source: serde_json::Error) -> EngineError {
    EngineError::Encode { what: WHAT, source }
}
