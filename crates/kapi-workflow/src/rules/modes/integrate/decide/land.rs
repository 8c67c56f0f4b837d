//! The end: the integration branch moves to exactly the head that was approved, from exactly where the
//! plan found it.

use kapi_core::text::short_id;

use crate::rules::decision_draft::DecisionDraft;
use crate::rules::denied::WorkflowRule;
use crate::rules::evidence::Weight;
use crate::rules::modes::integrate::event::IntegrateEvent;
use crate::rules::modes::integrate::state::Integrate;

/// Takes that the branch is at the result.
pub(super) fn advanced(
    draft: &mut DecisionDraft<'_, Integrate>,
    at: &str,
    brought: Option<&str>,
) -> Result<(), WorkflowRule> {
    let (from, to) = (draft.now.start().to_owned(), draft.now.head().to_owned());
    if at != to || !draft.now.is_agreed() {
        return Err(WorkflowRule::Malformed {
            rule: format!("take {at} for the approved head, which is {to}"),
        });
    }
    let summary = format!("dev moved from {} to {}", short_id(&from), short_id(&to));
    let found = draft.seen(Weight::Validation, "land", summary, &to);
    draft.evidence(found);
    draft.fact(IntegrateEvent::TargetAdvanced {
        from,
        to,
        brought: brought.map(str::to_owned),
    });
    Ok(())
}

/// Takes that somebody else moved the branch: everything is looked at and approved anew, and what was
/// resolved is remembered.
pub(super) fn moved(draft: &mut DecisionDraft<'_, Integrate>, found: Option<&str>) {
    draft.fact(IntegrateEvent::TargetMoved {
        expected: draft.now.start().to_owned(),
        found: found.map(str::to_owned),
    });
}
