//! What of the machine's ledger belongs to a project.
//!
//! Later events of a turn name its reservation alone, so the reservations of the project are
//! remembered as they come by.

use std::collections::BTreeSet;

use kapi_machine::logged::to_logged;
use kapi_spend::rules::account::ReservationId;
use kapi_spend::rules::event::SpendEvent;
use kapi_store::record::LogRecord;

/// The reservations of one project, as far as the ledger was read.
#[derive(Debug)]
pub(super) struct ProjectSpending {
    key: String,
    reservations: BTreeSet<ReservationId>,
}

impl ProjectSpending {
    /// Begins with none.
    pub(super) const fn new(key: String) -> Self {
        Self {
            key,
            reservations: BTreeSet::new(),
        }
    }

    /// Tells whether a record of the ledger is about the project, and remembers what it reserved.
    pub(super) fn take(&mut self, record: &LogRecord) -> bool {
        let Ok(logged) = to_logged::<SpendEvent>(record) else {
            return false;
        };
        match logged.event {
            SpendEvent::Reserved { id, account, .. } => {
                let is_ours = account.project == self.key;
                if is_ours {
                    self.reservations.insert(id);
                }
                is_ours
            }
            SpendEvent::Metered { id, .. } | SpendEvent::Claimed { id, .. } => {
                self.reservations.contains(&id)
            }
            SpendEvent::Settled { id, .. } | SpendEvent::Released { id, .. } => {
                self.reservations.remove(&id)
            }
            // It holds for every project of the machine.
            SpendEvent::Allowed { .. } => true,
        }
    }
}
