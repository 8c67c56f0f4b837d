//! Which contracts a person approved, kept in their own home and never in a project.
//!
//! A goal's files can come in an archive, in a copied directory or by somebody else's hand, and say
//! that they were approved. Only what is recorded here is ever gone on with. What a contract means
//! is not known here.

pub mod approval;

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_sys::lock::Lock;

use crate::record::approvals::approval::{Approval, GoalGrant, GoalLack};
use crate::record::error::EngineError;
use crate::record::home_record::HomeRecord;
use crate::record::project::Project;
use crate::rules::command::{GoalCommand, PersonCommand};
use crate::rules::denied::{GoalDenial, NOT_APPROVED_HERE};
use crate::rules::state::{Goal, GoalStatus};

/// What a command needs of the approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandNeed {
    /// It lets a goal go on as it stands.
    GoesOn,
    /// It gives leave for more.
    Gives,
    /// It begins, stops, ends or reports.
    Neither,
}

/// Returns what a command needs of the approvals.
pub(crate) const fn role(command: &GoalCommand) -> CommandNeed {
    match command {
        GoalCommand::Create { setup: true, .. }
        | GoalCommand::Approve { .. }
        | GoalCommand::RaiseBudget(_)
        | GoalCommand::Person(
            PersonCommand::SetTurns { .. }
            | PersonCommand::Allow { .. }
            | PersonCommand::ChangeJudge { .. },
        ) => CommandNeed::Gives,
        GoalCommand::Intend { .. }
        | GoalCommand::Resume
        | GoalCommand::Wake { .. }
        | GoalCommand::Person(
            PersonCommand::Reopen { .. } | PersonCommand::Say { .. } | PersonCommand::Park { .. },
        ) => CommandNeed::GoesOn,
        GoalCommand::Create { setup: false, .. }
        | GoalCommand::Draft { .. }
        | GoalCommand::Progress { .. }
        | GoalCommand::RecordRun { .. }
        | GoalCommand::Report { .. }
        | GoalCommand::Interrupt
        | GoalCommand::Cancel { .. }
        | GoalCommand::Tool(_)
        | GoalCommand::AskConsent { .. }
        | GoalCommand::AnswerSideQuestion { .. } => CommandNeed::Neither,
    }
}

/// The approvals of one goal, where they are kept.
pub(crate) struct GoalApprovals<'a>(HomeRecord<'a>);

impl<'a> GoalApprovals<'a> {
    /// Returns the approvals of a goal; `None` where nobody is asked.
    pub(crate) fn of(project: &'a Project<'a>, goal: &GoalId) -> Option<Self> {
        HomeRecord::of(project, goal).map(Self)
    }

    /// Refuses a goal that says more of itself than its person gave leave for.
    pub(crate) fn require(&self, goal: &Goal) -> Result<(), EngineError> {
        match self.lack(goal)? {
            None => Ok(()),
            Some(lack) => Err(refused(goal, &lack).into()),
        }
    }

    /// Tells what is missing for a goal to go on.
    pub(crate) fn lack(&self, goal: &Goal) -> Result<Option<GoalLack>, EngineError> {
        match self.read()? {
            None => Ok(Some(GoalLack::Nothing)),
            Some(approval) => approval.lack(goal),
        }
    }

    /// Serialises everybody who gives leave in this project.
    pub(crate) fn lock(&self) -> Result<Lock, EngineError> {
        self.0.lock()
    }

    /// Records what a command is about to give, before the goal's log says it: `after` is the goal as
    /// it will stand. `before` is the goal as it stands, for a command that neither creates nor
    /// approves it: more is never given to a goal that nobody approved here.
    pub(crate) fn give(
        &self,
        _held: &Lock,
        person: &Actor,
        before: Option<&Goal>,
        after: &Goal,
    ) -> Result<(), EngineError> {
        if let Some(goal) = before {
            // What is given before the approval is part of what is approved then.
            if goal.status == GoalStatus::Proposed {
                return Ok(());
            }
            self.require(goal)?;
        }
        let approval = Approval::of(after, person, self.0.project().clock.now_ms())?;
        self.write(approval)
    }

    /// Records leave for everything that a goal says of itself, which a person was shown.
    pub(crate) fn adopt(&self, person: &Actor, goal: &Goal) -> Result<(), EngineError> {
        let held = self.lock()?;
        let mut approval = Approval::of(goal, person, self.0.project().clock.now_ms())?;
        approval.given = GoalGrant::Contract;
        let written = self.write(approval);
        drop(held);
        written
    }

    fn read(&self) -> Result<Option<Approval>, EngineError> {
        let bytes = self.0.read()?;
        Ok(bytes.and_then(|bytes| Approval::parse(&bytes, self.0.id())))
    }

    fn write(&self, newer: Approval) -> Result<(), EngineError> {
        let approval = match self.read()? {
            Some(older) => older.widened(newer),
            None => newer,
        };
        self.0.write(&approval, "an approval")
    }
}

fn refused(goal: &Goal, lack: &GoalLack) -> GoalDenial {
    GoalDenial::Refused {
        code: NOT_APPROVED_HERE,
        message: format!("goal {} cannot continue: {lack}", goal.id),
    }
}

impl Project<'_> {
    /// Tells what is missing for a goal to go on: what it says of itself and nobody in this
    /// person's home gave leave for.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn unapproved(&self, goal: &Goal) -> Result<Option<GoalLack>, EngineError> {
        match GoalApprovals::of(self, &goal.id) {
            None => Ok(None),
            Some(approvals) => approvals.lack(goal),
        }
    }

    /// Refuses a goal that nobody in this person's home gave leave for.
    ///
    /// # Errors
    /// When it is refused, or the disk refuses.
    pub fn require_approved(&self, goal: &Goal) -> Result<(), EngineError> {
        GoalApprovals::of(self, &goal.id).map_or(Ok(()), |approvals| approvals.require(goal))
    }

    /// Records a person's leave for a goal that was approved elsewhere, or by an older version: of
    /// exactly the contract, the limits and the consents of `shown`. The goal's log stays as it is.
    ///
    /// # Errors
    /// When it is not a person who asks, the goal was never approved at all, or it is not what was
    /// shown any more; nothing has changed then. When the disk refuses.
    pub fn adopt(&self, person: &Actor, shown: &Goal) -> Result<(), EngineError> {
        if !matches!(person, Actor::Human { .. }) {
            return Err(EngineError::Denied(GoalDenial::OnlyHuman {
                action: "approve a contract",
                actor: person.to_string(),
            }));
        }
        let goal = self.load(&shown.id)?;
        if goal.approval.is_none() {
            return Err(EngineError::Denied(GoalDenial::WrongStatus {
                status: goal.status,
                action: "approved again",
            }));
        }
        let is_shown = goal.contract == shown.contract
            && goal.budget == shown.budget
            && goal.consent.allowed == shown.consent.allowed
            && goal.changed_judge == shown.changed_judge;
        if !is_shown {
            let shown = shown.contract_hash.clone();
            return Err(EngineError::Denied(GoalDenial::WrongHash { shown }));
        }
        GoalApprovals::of(self, &goal.id).map_or(Ok(()), |approvals| approvals.adopt(person, &goal))
    }
}

#[cfg(test)]
mod tests;
