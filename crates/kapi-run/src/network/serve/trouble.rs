//! What an event at the gateway says of the provider.
//!
//! Pure: it words a failure, and knows not what follows from one.

use kapi_core::agent_end::{ProviderFailure, ProviderFailureKind};
use kapi_gateway::model::event::GatewayEvent;
use kapi_gateway::model::quota;

/// Returns what an event says of the provider, if it says anything: that it is well, or why not.
pub(super) fn trouble_of(event: &GatewayEvent) -> Option<Option<ProviderFailure>> {
    let failure = |kind, message: String| {
        Some(Some(ProviderFailure {
            kind,
            message,
            retry_after_ms: None,
        }))
    };
    match event {
        GatewayEvent::Answered {
            status,
            retry_after_ms,
            ..
        } if quota::is_used_up(*status, *retry_after_ms) => Some(Some(ProviderFailure {
            kind: ProviderFailureKind::RateLimited,
            message: format!("{status}: the quota is used up for now"),
            retry_after_ms: *retry_after_ms,
        })),
        GatewayEvent::Answered { .. } => Some(None),
        GatewayEvent::Unreachable { why, .. } => {
            failure(ProviderFailureKind::Unreachable, why.clone())
        }
        GatewayEvent::Stalled { .. } => failure(
            ProviderFailureKind::Unreachable,
            "the provider stopped responding".to_owned(),
        ),
        GatewayEvent::BrokenOff { .. } => failure(
            ProviderFailureKind::TruncatedStream,
            "the provider cut off its answer".to_owned(),
        ),
        GatewayEvent::ModelRefused { model } => failure(
            ProviderFailureKind::BadRequest,
            format!("this run may not ask the model {model}, which is not approved for it"),
        ),
        GatewayEvent::Call { .. }
        | GatewayEvent::UsageAsked { .. }
        | GatewayEvent::Lowered { .. }
        | GatewayEvent::TakenOut { .. }
        | GatewayEvent::Used { .. }
        | GatewayEvent::Unmetered { .. }
        | GatewayEvent::Refused { .. }
        | GatewayEvent::Cut { .. }
        | GatewayEvent::Retried { .. }
        | GatewayEvent::AgentLeft { .. }
        | GatewayEvent::RecordingStopped { .. }
        | GatewayEvent::ReplayDiffers { .. }
        | GatewayEvent::ReplayMissed { .. } => None,
    }
}
