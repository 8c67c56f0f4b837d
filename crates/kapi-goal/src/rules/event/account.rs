//! What an event says was used, and whether the effect under way has ended with it.
//!
//! Every variant is named, so that a new one cannot be forgotten.

use kapi_core::usage::Usage;

use crate::rules::event::GoalEvent;

/// What an event says of the effect under way.
struct EffectAccount {
    usage: Usage,
    elapsed_ms: u64,
    ends_effect: bool,
}

impl GoalEvent {
    /// Returns what was used, as this event reports it.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.account().usage
    }

    /// Returns the milliseconds since the last report, where something was being performed.
    #[must_use]
    pub fn elapsed_ms(&self) -> u64 {
        self.account().elapsed_ms
    }

    /// Tells whether the effect under way has ended with it.
    #[must_use]
    pub fn ends_effect(&self) -> bool {
        self.account().ends_effect
    }

    fn account(&self) -> EffectAccount {
        let (usage, elapsed_ms, ends_effect) = match self {
            Self::EffectProgressed {
                usage, elapsed_ms, ..
            } => (*usage, *elapsed_ms, false),
            Self::ProviderFailed {
                usage, elapsed_ms, ..
            }
            | Self::DistillEnded {
                usage, elapsed_ms, ..
            }
            | Self::EffectCancelled {
                usage, elapsed_ms, ..
            } => (*usage, *elapsed_ms, true),
            Self::AgentEnded {
                run, elapsed_ms, ..
            }
            | Self::SetupEnded {
                run, elapsed_ms, ..
            } => (run.usage, *elapsed_ms, true),
            Self::JudgeEnded {
                run, elapsed_ms, ..
            }
            | Self::JudgeFailed {
                run, elapsed_ms, ..
            } => (run.usage, *elapsed_ms, true),
            Self::WorkspaceCreated { elapsed_ms, .. }
            | Self::BaselineEnded { elapsed_ms, .. }
            | Self::CandidateCommitted { elapsed_ms, .. }
            | Self::VerifyEnded { elapsed_ms, .. }
            | Self::GoalDone { elapsed_ms, .. } => (Usage::ZERO, *elapsed_ms, true),
            Self::WaitEnded => (Usage::ZERO, 0, true),
            Self::SideQuestionAnswered { usage, .. } => (*usage, 0, false),
            Self::GoalCreated { .. }
            | Self::ContractApproved { .. }
            | Self::EffectIntended { .. }
            | Self::RunRecorded { .. }
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
            | Self::ConsentAsked { .. }
            | Self::ConsentGiven { .. }
            | Self::GoalParked { .. }
            | Self::GoalWoken { .. }
            | Self::TurnsSet { .. }
            | Self::JudgeChanged { .. }
            | Self::BudgetRaised { .. } => (Usage::ZERO, 0, false),
        };
        EffectAccount {
            usage,
            elapsed_ms,
            ends_effect,
        }
    }
}
