//! What the toy says of its workflows.

use kapi_workflow::rules::modes::ModeEvent;

use crate::modes::Front;
use crate::workflow::page::ModePage;

/// What the mode says.
pub(in crate::modes) static FRONT: Front = Front {
    describe,
    is_shown_next: |_| false,
    summary: |_, _| {},
    details: |_, _| {},
    live: |_| None,
    page: |_| ModePage::default(),
    next: |_| Vec::new(),
    trusted: |_| Vec::new(),
    waits_for: |_| None,
};

fn describe(event: &ModeEvent) -> Option<String> {
    if let ModeEvent::Scales(event) = event {
        Some(format!("{event:?}"))
    } else {
        None
    }
}
