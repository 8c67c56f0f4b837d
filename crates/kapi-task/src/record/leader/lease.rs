//! The leader's lease: taken when nobody has it, renewed seldom, given back.
//!
//! Renewed rarely, so that a leader with nothing to do hardly writes.

use kapi_core::actor::Actor;

use crate::record::error::KernelError;
use crate::record::leader::Leader;
use crate::record::queue::{Queue, WorkerSlot};
use crate::rules::command::KernelCommand;

/// How often the lease is renewed while it lasts.
const RENEWALS: u64 = 3;
/// How often somebody who does not lead asks whether the leader is gone, in milliseconds.
const ASK_MS: i64 = 5_000;

/// Whether this process leads.
#[derive(Debug)]
pub(super) enum Lead {
    /// It does not.
    Not {
        /// When to ask again.
        again_at_ms: i64,
    },
    /// It does.
    Until {
        /// When to renew.
        renew_at_ms: i64,
    },
}

impl Default for Lead {
    fn default() -> Self {
        Self::Not {
            again_at_ms: i64::MIN,
        }
    }
}

impl Leader {
    /// Leads, if nobody else does, and returns when to ask again.
    pub(super) fn lead(
        &mut self,
        queue: &mut Queue<'_>,
        own: &WorkerSlot,
        now_ms: i64,
    ) -> Result<i64, KernelError> {
        let lead_ms = queue.lead_ms();
        let renew_ms = i64::try_from(lead_ms / RENEWALS).unwrap_or(i64::MAX);
        let leader = queue.kernel().leader.as_ref();
        let is_ours = leader.is_some_and(|leader| leader.holder == own.holder);
        let again_at_ms = match self.lead {
            // Somebody took over while this process was paused: then it asks as everybody does.
            Lead::Until { renew_at_ms } if is_ours => renew_at_ms,
            Lead::Until { .. } => i64::MIN,
            Lead::Not { again_at_ms } if leader.is_some() => again_at_ms,
            Lead::Not { .. } => i64::MIN,
        };
        // A clock that was put back must not keep anybody from asking.
        let is_soon = again_at_ms.saturating_sub(now_ms) <= renew_ms;
        if again_at_ms > now_ms && is_soon {
            return Ok(again_at_ms);
        }
        if queue.lead(own, lead_ms)? {
            let renew_at_ms = now_ms.saturating_add(renew_ms);
            if !matches!(self.lead, Lead::Until { .. }) {
                // What was planned is as old as the last time it led.
                self.plans.values_mut().for_each(|plan| plan.next_at_ms = 0);
            }
            self.lead = Lead::Until { renew_at_ms };
            return Ok(renew_at_ms);
        }
        let again_at_ms = now_ms.saturating_add(ASK_MS);
        self.lead = Lead::Not { again_at_ms };
        Ok(again_at_ms)
    }

    /// Leads no more, so that others need not wait.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn resign(&mut self, queue: &mut Queue<'_>, own: &WorkerSlot) -> Result<(), KernelError> {
        if self.leads() {
            let holder = own.holder.clone();
            queue.submit(&Actor::Engine, &KernelCommand::Resign { holder })?;
            self.lead = Lead::default();
        }
        Ok(())
    }
}
