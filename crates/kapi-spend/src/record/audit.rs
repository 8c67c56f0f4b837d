//! A full check of the spend ledger, and what it knows of each goal.
//!
//! Reads everything and changes nothing.

use std::collections::BTreeMap;

use kapi_machine::audit::StreamAudit;
use kapi_store::audit::audit;
use kapi_store::error::StoreError;

use crate::record::error::LedgerError;
use crate::record::{LedgerHome, SpendMachine};
use crate::rules::account::Account;
use crate::rules::event::SpendEvent;
use crate::rules::tokens::TokenCounts;

/// What an audit of the ledger found.
#[derive(Debug)]
pub struct LedgerAudit {
    /// What is wrong with it.
    pub audit: StreamAudit,
    /// Tokens that were booked, by project and goal.
    pub booked: BTreeMap<(String, String), u64>,
}

/// Checks the ledger of a machine; `None` where there is none.
///
/// # Errors
/// When the disk refuses.
pub fn audit_ledger(home: &LedgerHome<'_>) -> Result<Option<LedgerAudit>, LedgerError> {
    let stream = home.stream();
    let mut found = audit(&stream).map_err(StoreError::from)?;
    if found.records.is_empty() && found.faults.is_empty() && found.saved.is_none() {
        return Ok(None);
    }
    let mut report = StreamAudit::of(stream.log(), &mut found);
    let mut booked = BTreeMap::new();
    let mut book = |account: &Account, tokens: &TokenCounts| {
        let key = (account.project.clone(), account.goal.clone());
        let sum: &mut u64 = booked.entry(key).or_insert(0);
        *sum = sum.saturating_add(total(tokens));
    };
    let n_faults = report.faults.len();
    let replayed = report.replay::<SpendMachine>(&found, |totals, logged| {
        if let SpendEvent::Settled { id, used, .. } = &logged.event
            && let Some(open) = totals.open.get(id)
        {
            book(&open.account, &used.tokens);
        }
    });
    if report.faults.len() == n_faults {
        // What is under way, or was cut off, has been metered and not settled yet.
        for open in replayed.end.open.values() {
            book(&open.account, &open.metered.tokens);
        }
    }
    if report.is_whole() {
        report.check_fold(stream.state(), &found, &replayed);
    }
    Ok(Some(LedgerAudit {
        audit: report,
        booked,
    }))
}

const fn total(tokens: &TokenCounts) -> u64 {
    tokens
        .input
        .saturating_add(tokens.output)
        .saturating_add(tokens.cache_read)
        .saturating_add(tokens.cache_write)
}
