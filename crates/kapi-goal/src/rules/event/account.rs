//! What an event says was used, and whether the effect under way has ended with it.
//!
//! Every variant is named, so that a new one cannot be forgotten.

use kapi_core::usage::Usage;

use crate::rules::event::GoalEvent;

impl GoalEvent {
    /// Returns what was used, as this event reports it.
    #[must_use]
    pub fn usage(&self) -> Usage {
        match self {
            Self::EffectProgressed { usage, .. }
            | Self::ProviderFailed { usage, .. }
            | Self::EffectCancelled { usage, .. }
            | Self::DistillEnded { usage, .. }
            | Self::SideQuestionAnswered { usage, .. } => *usage,
            Self::AgentEnded { run, .. } | Self::SetupEnded { run, .. } => run.usage,
            Self::JudgeEnded { run, .. } | Self::JudgeFailed { run, .. } => run.usage,
            Self::GoalCreated { .. }
            | Self::ContractApproved { .. }
            | Self::EffectIntended { .. }
            | Self::RunRecorded { .. }
            | Self::WorkspaceCreated { .. }
            | Self::BaselineEnded { .. }
            | Self::WaitEnded
            | Self::CandidateCommitted { .. }
            | Self::VerifyEnded { .. }
            | Self::TurnEnded { .. }
            | Self::GoalDone { .. }
            | Self::GoalStopped { .. }
            | Self::GoalResumed
            | Self::GoalReopened { .. }
            | Self::ContractDrafted { .. }
            | Self::PlanMade { .. }
            | Self::Replanned { .. }
            | Self::TaskUpdated { .. }
            | Self::ProgressNoted { .. }
            | Self::TurnDeclared { .. }
            | Self::JourneyDistilled { .. }
            | Self::DistillSkipped
            | Self::PersonSaid { .. }
            | Self::ConsentAsked { .. }
            | Self::ConsentGiven { .. }
            | Self::GoalParked { .. }
            | Self::GoalWoken { .. }
            | Self::TurnsSet { .. }
            | Self::JudgeChanged { .. }
            | Self::BudgetRaised { .. } => Usage::default(),
        }
    }

    /// Returns the milliseconds since the last report, where something was being performed.
    #[must_use]
    pub const fn elapsed_ms(&self) -> u64 {
        match self {
            Self::EffectProgressed { elapsed_ms, .. }
            | Self::WorkspaceCreated { elapsed_ms, .. }
            | Self::BaselineEnded { elapsed_ms, .. }
            | Self::AgentEnded { elapsed_ms, .. }
            | Self::ProviderFailed { elapsed_ms, .. }
            | Self::CandidateCommitted { elapsed_ms, .. }
            | Self::VerifyEnded { elapsed_ms, .. }
            | Self::JudgeEnded { elapsed_ms, .. }
            | Self::JudgeFailed { elapsed_ms, .. }
            | Self::GoalDone { elapsed_ms, .. }
            | Self::SetupEnded { elapsed_ms, .. }
            | Self::DistillEnded { elapsed_ms, .. }
            | Self::EffectCancelled { elapsed_ms, .. } => *elapsed_ms,
            Self::GoalCreated { .. }
            | Self::ContractApproved { .. }
            | Self::EffectIntended { .. }
            | Self::RunRecorded { .. }
            | Self::WaitEnded
            | Self::TurnEnded { .. }
            | Self::GoalStopped { .. }
            | Self::GoalResumed
            | Self::GoalReopened { .. }
            | Self::ContractDrafted { .. }
            | Self::PlanMade { .. }
            | Self::Replanned { .. }
            | Self::TaskUpdated { .. }
            | Self::ProgressNoted { .. }
            | Self::TurnDeclared { .. }
            | Self::JourneyDistilled { .. }
            | Self::DistillSkipped
            | Self::PersonSaid { .. }
            | Self::SideQuestionAnswered { .. }
            | Self::ConsentAsked { .. }
            | Self::ConsentGiven { .. }
            | Self::GoalParked { .. }
            | Self::GoalWoken { .. }
            | Self::TurnsSet { .. }
            | Self::JudgeChanged { .. }
            | Self::BudgetRaised { .. } => 0,
        }
    }

    /// Tells whether the effect under way has ended with it.
    #[must_use]
    pub const fn ends_effect(&self) -> bool {
        match self {
            Self::WorkspaceCreated { .. }
            | Self::BaselineEnded { .. }
            | Self::AgentEnded { .. }
            | Self::ProviderFailed { .. }
            | Self::WaitEnded
            | Self::CandidateCommitted { .. }
            | Self::VerifyEnded { .. }
            | Self::JudgeEnded { .. }
            | Self::JudgeFailed { .. }
            | Self::GoalDone { .. }
            | Self::SetupEnded { .. }
            | Self::DistillEnded { .. }
            | Self::EffectCancelled { .. } => true,
            Self::GoalCreated { .. }
            | Self::ContractApproved { .. }
            | Self::EffectIntended { .. }
            | Self::RunRecorded { .. }
            | Self::EffectProgressed { .. }
            | Self::TurnEnded { .. }
            | Self::GoalStopped { .. }
            | Self::GoalResumed
            | Self::GoalReopened { .. }
            | Self::ContractDrafted { .. }
            | Self::PlanMade { .. }
            | Self::Replanned { .. }
            | Self::TaskUpdated { .. }
            | Self::ProgressNoted { .. }
            | Self::TurnDeclared { .. }
            | Self::JourneyDistilled { .. }
            | Self::DistillSkipped
            | Self::PersonSaid { .. }
            | Self::SideQuestionAnswered { .. }
            | Self::ConsentAsked { .. }
            | Self::ConsentGiven { .. }
            | Self::GoalParked { .. }
            | Self::GoalWoken { .. }
            | Self::TurnsSet { .. }
            | Self::JudgeChanged { .. }
            | Self::BudgetRaised { .. } => false,
        }
    }
}
