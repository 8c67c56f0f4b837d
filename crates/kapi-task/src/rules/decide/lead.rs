//! Who triggers loops, and which loops are on.

use std::collections::BTreeSet;

use kapi_core::task_id::{Holder, LoopName};

use crate::rules::decide::{KernelDecision, done, later, next_fence};
use crate::rules::denied::KernelDenial;
use crate::rules::event::KernelEvent;
use crate::rules::state::KernelState;

pub(super) fn lead(
    kernel: &KernelState,
    holder: &Holder,
    ttl_ms: u64,
    gone: &BTreeSet<Holder>,
    now_ms: i64,
) -> Result<KernelDecision, KernelDenial> {
    let mut fence = next_fence(kernel);
    if let Some(leader) = &kernel.leader {
        let is_over = leader.expires_at_ms <= now_ms || gone.contains(&leader.holder);
        if leader.holder == *holder {
            fence = leader.fence;
        } else if !is_over {
            return Err(KernelDenial::Led {
                holder: leader.holder.to_string(),
            });
        }
    }
    Ok(done(vec![KernelEvent::Led {
        holder: holder.clone(),
        fence,
        expires_at_ms: later(now_ms, ttl_ms),
    }]))
}

pub(super) fn resign(kernel: &KernelState, holder: &Holder) -> KernelDecision {
    let leads = kernel
        .leader
        .as_ref()
        .is_some_and(|leader| leader.holder == *holder);
    done(if leads {
        vec![KernelEvent::Resigned {}]
    } else {
        Vec::new()
    })
}

pub(super) fn switch(kernel: &KernelState, name: &LoopName, is_enabled: bool) -> KernelDecision {
    let known = kernel.loops.get(name).and_then(|state| state.is_enabled);
    done(if known == Some(is_enabled) {
        Vec::new()
    } else {
        vec![KernelEvent::LoopSwitched {
            name: name.clone(),
            is_enabled,
        }]
    })
}

pub(super) fn see(kernel: &KernelState, name: &LoopName, mark: Option<&String>) -> KernelDecision {
    let known = kernel.loops.get(name);
    let is_known =
        known.is_some_and(|state| state.seen_at_ms.is_some() && state.mark.as_ref() == mark);
    done(if is_known {
        Vec::new()
    } else {
        vec![KernelEvent::LoopSeen {
            name: name.clone(),
            mark: mark.cloned(),
        }]
    })
}
