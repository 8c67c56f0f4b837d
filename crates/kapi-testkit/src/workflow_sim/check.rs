//! What must hold of a story's files after every death and at its end.
//!
//! Reads logs and files anew; what a process remembered is only compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kapi_core::actor::Actor;
use kapi_core::id::EffectId;
use kapi_core::workflow_key::WorkflowKey;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::record::inventory::workflow_ids;
use kapi_goal::record::project::Project;
use kapi_machine::logged::EventRecord;
use kapi_sys::sim_disk::SimDisk;
use kapi_workflow::record::audit::audit_workflow;
use kapi_workflow::record::index::WorkflowSummary;
use kapi_workflow::record::snapshot::WorkflowSnapshot;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::command::WorkflowCommand;
use kapi_workflow::rules::documents::documents;
use kapi_workflow::rules::event::WorkflowEvent;
use kapi_workflow::rules::evolve::evolve;
use kapi_workflow::rules::mode_spec::ModeSpec;
use kapi_workflow::rules::state::Workflow;

use crate::oracle::{Oracle, OracleViolation, check_durability, failed, read_log};
use crate::workflow_sim::modes;

/// Where the workflows came to rest: what must be equal however often the power failed on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkflowRest(Vec<RestOf>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct RestOf {
    purpose: String,
    status: WorkflowStatus,
    phase: (&'static str, Option<&'static str>),
    approvals: usize,
    revisions: usize,
    evidence: BTreeMap<String, usize>,
    is_idle: bool,
    links: usize,
    terminals: usize,
    detail: Vec<String>,
}

/// Checks everything.
pub(super) fn all(
    disk: &SimDisk,
    project: &Project<'_>,
    acknowledged: &BTreeMap<WorkflowKey, BTreeMap<u64, EventRecord<WorkflowEvent>>>,
) -> Result<(), OracleViolation> {
    for key in acknowledged.keys() {
        if !keys(project)?.contains(key) {
            let detail = format!("workflow {key} was acknowledged and is gone");
            return Err(OracleViolation::new(Oracle::Durability, detail));
        }
    }
    for key in keys(project)? {
        let (log, folded) = replayed(disk, project, &key)?;
        let known = acknowledged.get(&key).into_iter();
        check_durability(known.flat_map(BTreeMap::values), &log)?;
        check_once(&log)?;
        let Some(folded) = folded else { continue };
        let loaded = Workflows::of(project)
            .workflow(&key)
            .map_err(|error| failed(&error))?;
        if loaded != folded {
            return Err(differs(&key, "what is loaded"));
        }
        let lack = Workflows::of(project).unapproved_workflow(&folded);
        if lack.map_err(|error| failed(&error))?.is_some() {
            let detail = format!("the log of {key} says more than its person's home");
            return Err(OracleViolation::new(Oracle::Durability, detail));
        }
        check_denied(disk, project, &key)?;
        check_files(project, &key, &folded)?;
    }
    check_listing(project)
}

/// Returns where everything came to rest.
pub(super) fn rest(project: &Project<'_>) -> Result<WorkflowRest, OracleViolation> {
    let mut rests = Vec::new();
    for key in keys(project)? {
        let workflow = Workflows::of(project)
            .workflow(&key)
            .map_err(|error| failed(&error))?;
        rests.push(rest_of(&workflow));
    }
    Ok(WorkflowRest(rests))
}

fn rest_of(workflow: &Workflow) -> RestOf {
    let mut evidence = BTreeMap::new();
    for found in &workflow.evidence {
        *evidence.entry(found.kind.clone()).or_insert(0) += 1;
    }
    RestOf {
        purpose: workflow.purpose.clone(),
        status: workflow.status,
        phase: workflow.phase(),
        approvals: workflow.approvals.len(),
        revisions: workflow.revisions.len(),
        evidence,
        is_idle: workflow.in_flight.is_empty(),
        links: workflow.links.len(),
        terminals: workflow.workers.iter().flat_map(|w| &w.terminal).count(),
        detail: modes::detail(workflow),
    }
}

fn keys(project: &Project<'_>) -> Result<Vec<WorkflowKey>, OracleViolation> {
    let mut keys = Vec::new();
    for spec in ModeSpec::all() {
        let mode = spec.mode;
        let ids = workflow_ids(project.disk, &project.layout, mode, None);
        let ids = ids.map_err(|error| failed(&error))?;
        keys.extend(ids.into_iter().map(|id| WorkflowKey { mode, id }));
    }
    Ok(keys)
}

fn replayed(
    disk: &SimDisk,
    project: &Project<'_>,
    key: &WorkflowKey,
) -> Result<(Vec<EventRecord<WorkflowEvent>>, Option<Workflow>), OracleViolation> {
    let file = project.layout.workflow(key.mode, &key.id).events();
    let files = disk.snapshot();
    let bytes = files.get(&file).map(Vec::as_slice).unwrap_or_default();
    let log = read_log(&key.id.to_string(), bytes)?;
    let mut folded = None;
    for logged in &log {
        evolve(&mut folded, &logged.event);
    }
    Ok((log, folded))
}

/// An effect ends well once, and never ends without having begun.
fn check_once(log: &[EventRecord<WorkflowEvent>]) -> Result<(), OracleViolation> {
    let mut under_way: BTreeSet<&EffectId> = BTreeSet::new();
    let mut ended: BTreeSet<&EffectId> = BTreeSet::new();
    for logged in log {
        match &logged.event {
            WorkflowEvent::EffectIntended { effect, .. } => {
                if ended.contains(effect) {
                    let detail = format!("effect {effect} begins again after it ended well");
                    return Err(OracleViolation::new(Oracle::Once, detail));
                }
                under_way.insert(effect);
            }
            WorkflowEvent::EffectEnded { effect, failed, .. } => {
                if !under_way.remove(effect) {
                    let detail = format!("effect {effect} ends and was not running");
                    return Err(OracleViolation::new(Oracle::Once, detail));
                }
                if failed.is_none() {
                    ended.insert(effect);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A denial changes no byte anywhere.
fn check_denied(
    disk: &SimDisk,
    project: &Project<'_>,
    key: &WorkflowKey,
) -> Result<(), OracleViolation> {
    let before = disk.snapshot();
    let agent = Actor::Agent {
        run: "001-keep.t001-interviewer-a1".to_owned(),
    };
    let asked = WorkflowCommand::Approve {
        sha256: String::new(),
        found: String::new(),
        means: kapi_workflow::rules::pending::Means::YesFlag,
        accepts_risks: true,
    };
    if Workflows::of(project)
        .submit_workflow(key, &agent, &asked)
        .is_ok()
    {
        let detail = format!("an agent approved {key}");
        return Err(OracleViolation::new(Oracle::Ownership, detail));
    }
    if disk.snapshot() == before {
        return Ok(());
    }
    let detail = format!("a denial changed something of {key}");
    Err(OracleViolation::new(Oracle::Ownership, detail))
}

/// After a repair every file says what the log says.
fn check_files(
    project: &Project<'_>,
    key: &WorkflowKey,
    folded: &Workflow,
) -> Result<(), OracleViolation> {
    Workflows::of(project)
        .repair_workflow(key)
        .map_err(|error| failed(&error))?;
    let layout = project.layout.workflow(key.mode, &key.id);
    let read = |file: &Path| {
        let read = project.disk.read(file, 0).map_err(|error| failed(&error));
        Ok::<_, OracleViolation>(read?.unwrap_or_default())
    };
    for document in documents(folded) {
        if read(&layout.document(&document.name))? != document.text.as_bytes() {
            return Err(differs(key, &document.name));
        }
    }
    let log = Workflows::of(project)
        .workflow_log(key)
        .map_err(|error| failed(&error))?;
    let seq = log.last().map_or(0, |logged| logged.seq);
    let snapshot: Option<WorkflowSnapshot> =
        serde_json::from_slice(&read(&layout.snapshot())?).ok();
    if snapshot != Some(WorkflowSnapshot::of(folded, seq)) {
        return Err(differs(key, "snapshot.json"));
    }
    let audit = audit_workflow(project, key).map_err(|error| failed(&error))?;
    match (audit.faults.first(), audit.stale.first()) {
        (None, None) => Ok(()),
        (Some(fault), _) => Err(failed(fault)),
        (None, Some(stale)) => Err(differs(key, &stale.display().to_string())),
    }
}

/// The listing says what the logs say.
fn check_listing(project: &Project<'_>) -> Result<(), OracleViolation> {
    for listed in Workflows::of(project)
        .workflows()
        .map_err(|error| failed(&error))?
    {
        let workflow = Workflows::of(project)
            .workflow(&listed.key)
            .map_err(|error| failed(&error))?;
        let is_true = match &listed.state {
            WorkflowSummary::Known(entry) => {
                let (phase, _) = workflow.phase();
                entry.status == workflow.status
                    && entry.phase == phase
                    && entry.links == workflow.links
            }
            WorkflowSummary::Damaged(_) => false,
        };
        if !is_true {
            return Err(differs(&listed.key, "inventory.json"));
        }
    }
    Ok(())
}

fn differs(key: &WorkflowKey, what: &str) -> OracleViolation {
    let detail = format!("{key}: {what} is not what the log says");
    OracleViolation::new(Oracle::Convergence, detail)
}
