//! The handle of a task that nobody holds a lease of: for whoever only tries what a run would do.
//!
//! What is said by it is not heard, and what is asked by it has no answer.

use std::sync::mpsc::sync_channel;

use kapi_core::task_id::{Fence, KernelTaskId};
use kapi_sys::cancel::Cancel;

use crate::record::worker::LeaseHandle;
use crate::rules::command::Hold;

/// Returns such a handle, which is called off by the flag.
#[must_use]
pub fn unheld(cancel: Cancel) -> LeaseHandle<'static> {
    let (line, _) = sync_channel(1);
    LeaseHandle {
        hold: Hold {
            task: KernelTaskId::new(0),
            fence: Fence(0),
        },
        cancel,
        line,
        ring: &|| {},
    }
}
