//! A full check of the spend ledger, and what it knows of each goal.
//!
//! Reads everything and changes nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kapi_core::spend::account::ReservationId;
use kapi_core::spend::books::Books;
use kapi_core::spend::event::SpendEvent;
use kapi_core::spend::tokens::TokenCounts;
use kapi_store::audit::{Audit, AuditFault, audit};

use crate::machine::logged::to_logged;
use crate::spend::LedgerHome;
use crate::spend::error::LedgerError;

/// What an audit of the ledger found.
#[derive(Debug)]
pub struct LedgerAudit {
    /// The log.
    pub file: PathBuf,
    /// How many of its records are sound, counted up to the first fault.
    pub records: u64,
    /// Bytes at its end that somebody did not finish writing; the next append cuts them off.
    pub torn_bytes: u64,
    /// Everything that is wrong with its lines.
    pub faults: Vec<AuditFault>,
    /// The first sound line that this program does not understand, and why.
    pub unknown: Option<LedgerError>,
    /// The fold, where it says something else than the log does at the same place.
    pub not_derived: Option<PathBuf>,
    /// Tokens that were booked, by project and goal.
    pub booked: BTreeMap<(String, String), u64>,
}

impl LedgerAudit {
    /// Tells whether nothing is wrong.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.faults.is_empty() && self.unknown.is_none() && self.not_derived.is_none()
    }
}

/// Checks the ledger of a machine; `None` where there is none.
///
/// # Errors
/// When the disk refuses.
pub fn audit_ledger(home: &LedgerHome<'_>) -> Result<Option<LedgerAudit>, LedgerError> {
    let stream = home.stream();
    let file = stream.log();
    let found = audit(&stream).map_err(kapi_store::error::StoreError::from)?;
    if found.records.is_empty() && found.faults.is_empty() && found.saved.is_none() {
        return Ok(None);
    }
    let mut report = LedgerAudit {
        records: u64::try_from(found.records.len()).unwrap_or(u64::MAX),
        torn_bytes: found.torn_bytes,
        faults: Vec::new(),
        unknown: None,
        not_derived: None,
        booked: BTreeMap::new(),
        file,
    };
    let at_saved = report.replay(&found);
    let saved = found.saved.as_ref();
    let folded: Option<Books> =
        saved.and_then(|saved| serde_json::from_str(saved.state.get()).ok());
    let is_comparable = found.faults.is_empty() && report.unknown.is_none();
    if is_comparable && folded.is_some() && folded != at_saved {
        report.not_derived = Some(stream.state());
    }
    report.faults = found.faults;
    Ok(Some(report))
}

impl LedgerAudit {
    /// Adds up what was booked, and returns the books at the place of the fold.
    fn replay(&mut self, found: &Audit) -> Option<Books> {
        let saved_seq = found.saved.as_ref().map(|saved| saved.position.seq);
        let (mut books, mut at_saved) = (Books::default(), None);
        for record in &found.records {
            let event = match to_logged(record) {
                Ok(logged) => logged.event,
                Err(source) => {
                    self.unknown = Some(LedgerError::UnknownEvent {
                        file: self.file.clone(),
                        line: record.seq,
                        source,
                    });
                    return None;
                }
            };
            if let Some((id, tokens)) = settled(&event)
                && let Some(open) = books.open.get(id)
            {
                let account = (open.account.project.clone(), open.account.goal.clone());
                let sum = self.booked.entry(account).or_insert(0);
                *sum = sum.saturating_add(tokens);
            }
            books.evolve(&event, record.at_ms);
            if saved_seq == Some(record.seq) {
                at_saved = Some(books.clone());
            }
        }
        // What is under way, or was cut off, has been metered and not settled yet.
        for open in books.open.values() {
            let account = (open.account.project.clone(), open.account.goal.clone());
            let sum = self.booked.entry(account).or_insert(0);
            *sum = sum.saturating_add(total(&open.metered.tokens));
        }
        at_saved
    }
}

const fn settled(event: &SpendEvent) -> Option<(&ReservationId, u64)> {
    match event {
        SpendEvent::Settled { id, used, .. } => Some((id, total(&used.tokens))),
        SpendEvent::Reserved { .. }
        | SpendEvent::Metered { .. }
        | SpendEvent::Released { .. }
        | SpendEvent::Allowed { .. } => None,
    }
}

const fn total(tokens: &TokenCounts) -> u64 {
    tokens
        .input
        .saturating_add(tokens.output)
        .saturating_add(tokens.cache_read)
        .saturating_add(tokens.cache_write)
}
