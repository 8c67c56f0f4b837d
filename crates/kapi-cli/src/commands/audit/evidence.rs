//! What an audit looks at beside the logs: hidden checks, the runs of tasks, the spend ledger.
//!
//! Reads only.

use std::path::PathBuf;

use kapi_check::perform::hidden;
use kapi_core::id::GoalId;
use kapi_goal::record::damage::{LEDGER, PREFERENCES, PRUNED};
use kapi_goal::record::project::Project;
use kapi_launch::paths::SandboxId;
use kapi_machine::evidence::pruned::{PruneLog, PrunedRuns};
use kapi_spend::record::LedgerHome;
use kapi_spend::record::audit::{LedgerAudit, audit_ledger};
use kapi_store::layout::{HomeLayout, project_key};
use kapi_task::record::store::KernelStore;

use super::{AuditRow, row};
use crate::context::Context;
use crate::error::Error;
use crate::subject::launches::sandboxes;

/// A goal whose log says this many tenths more than the ledger was not booked whole: a crash forgets
/// at most what was used since the last report.
const BOOKED_TENTHS_MIN: u64 = 9;

/// Checks the hidden checks of a goal against the contract that a person approved.
pub(super) fn of_goal(
    context: &Context,
    project: &Project<'_>,
    id: &GoalId,
) -> Result<Vec<String>, Error> {
    let Ok(goal) = project.load(id) else {
        return Ok(Vec::new());
    };
    let (Some(sealed), Some(_)) = (&goal.contract.hidden, goal.approval) else {
        return Ok(Vec::new());
    };
    let kept = context.location(project, id)?.hidden;
    let old = project.layout.goal(id).hidden();
    if goal.status.is_terminal() && !kept.exists() && !old.exists() {
        return Ok(Vec::new());
    }
    // A goal from before keeps them in the project until they are used.
    let found = if old.is_dir() && !kept.exists() {
        hidden::describe(&old).map(|found| found.sha256 == sealed.sha256)
    } else {
        hidden::verify_kept(sealed, &kept).map(|()| true)
    };
    Ok(match found {
        Ok(true) => Vec::new(),
        Ok(false) => vec![format!("{} is not what was approved", old.display())],
        Err(failure) => vec![format!("failed to {}", failure.message)],
    })
}

/// Returns how the runs of an attempt are found, and which are expected to be there.
pub(super) fn runs_of(
    context: &Context,
    project: &Project<'_>,
    store: &KernelStore,
) -> Result<impl Fn(&str) -> Option<PathBuf> + use<>, Error> {
    let key = key(project)?;
    let pruned = prune_log(context)
        .load()
        .map_err(|error| Error::failed(&error))?;
    let is_shared = !matches!(store, KernelStore::Files);
    let sandboxes = sandboxes(context);
    Ok(move |run: &str| {
        let id = SandboxId::parse(run).ok()?;
        let dir = sandboxes.location(&key, &id).runs();
        let was_pruned = pruned.contains(&PrunedRuns {
            project: key.clone(),
            sandbox: run.to_owned(),
        });
        // Of a queue that several machines share, each has the runs of its own attempts.
        let is_elsewhere = is_shared && !dir.is_dir();
        (!was_pruned && !is_elsewhere).then_some(dir)
    })
}

/// Checks the machine's ledger, and what it knows of the goals that were found whole.
pub(super) fn spend_row(
    context: &Context,
    project: &Project<'_>,
    goals: &mut [AuditRow],
) -> Result<Option<AuditRow>, Error> {
    let home = LedgerHome {
        disk: &context.disk,
        clock: &context.clock,
        home: context.home.clone(),
        owner: "kapi audit".to_owned(),
    };
    let audit = audit_ledger(&home).map_err(|error| Error::failed(&error))?;
    let key = key(project)?;
    for row in goals.iter_mut().filter(|row| row.ok) {
        let finding = unbooked(project, &key, &row.id, audit.as_ref());
        row.add(finding.into_iter().collect());
    }
    Ok(audit.map(|found| row(LEDGER.to_owned(), &found.audit)))
}

/// Checks what else a person's home records of the project: preferences, and what was cleaned away.
pub(super) fn home_rows(
    context: &Context,
    project: &Project<'_>,
) -> Result<(Option<AuditRow>, Option<AuditRow>), Error> {
    let preferences = context.preferences(project.layout.root())?.audit();
    let preferences = preferences.map_err(|error| Error::engine(&error, ""))?;
    let pruned = prune_log(context).audit();
    let pruned = pruned.map_err(|error| Error::failed(&error))?;
    Ok((
        preferences.map(|audit| row(PREFERENCES.to_owned(), &audit)),
        pruned.map(|audit| row(PRUNED.to_owned(), &audit)),
    ))
}

fn prune_log(context: &Context) -> PruneLog<'_> {
    PruneLog {
        disk: &context.disk,
        state_dir: HomeLayout::new(&context.home).state_dir().to_path_buf(),
    }
}

/// Says where the ledger knows less of a goal than the goal's own log does.
fn unbooked(
    project: &Project<'_>,
    key: &str,
    goal: &str,
    audit: Option<&LedgerAudit>,
) -> Option<String> {
    let id = GoalId::parse(goal).ok()?;
    let goal_state = project.load(&id).ok()?;
    // A goal that this home did not approve was booked in another.
    if project.unapproved(&goal_state).ok()?.is_some() {
        return None;
    }
    let used = goal_state.spent.total().tokens();
    let account = (key.to_owned(), goal.to_owned());
    let booked = audit.and_then(|audit| audit.booked.get(&account).copied());
    let booked = booked.unwrap_or(0);
    let is_short = booked.saturating_mul(10) < used.saturating_mul(BOOKED_TENTHS_MIN);
    is_short.then(|| {
        format!(
            "trust the spend ledger: it has {booked} tokens for this goal, but the goal's log has {used}"
        )
    })
}

fn key(project: &Project<'_>) -> Result<String, Error> {
    let root = project.layout.root();
    let real = std::fs::canonicalize(root).map_err(|error| Error::failed(&error))?;
    Ok(project_key(&real))
}
