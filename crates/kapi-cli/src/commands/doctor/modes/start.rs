//! The start contracts: a workflow of each mode is really started, in a project that is made for it
//! and gone afterwards.
//!
//! No agent is asked; what is looked at is what stands on disk after the start.

use std::fs;
use std::path::{Path, PathBuf};

use kapi_core::actor::Actor;
use kapi_core::failure::chain;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::Judge;
use kapi_core::mode::Mode;
use kapi_core::text::counted;
use kapi_goal::record::project::Project;
use kapi_goal::rules::budget::Budget;
use kapi_goal::rules::contract::TURNS_DEFAULT;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::Clock as _;
use kapi_workflow::record::audit::audit_workflow;
use kapi_workflow::record::snapshot::WorkflowSnapshot;
use kapi_workflow::record::start::NewWorkflow;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::mode_spec::{ModeSpec, Opening, RepositoryNeed};
use kapi_workflow::rules::modes::Begin;
use kapi_workflow::rules::terms::{PlanApproval, WorkflowTerms};

use crate::commands::doctor::modes::surface::modes;
use crate::commands::doctor::modes::{Class, Probe};
use crate::context::Context;

/// A commit that nobody looks for: nothing is driven here.
const NO_COMMIT: &str = "0000000000000000000000000000000000000000";
/// Milliseconds that nothing here ever takes.
const TIME_MS: u64 = 60_000;

/// Starts a workflow of each mode.
pub(super) fn probes(context: &Context) -> Vec<Probe> {
    let now_ms = context.clock.now_ms();
    let name = format!("kapi-probe-{}-{now_ms}", std::process::id());
    let root = std::env::temp_dir().join(name);
    let probes = modes().map(|mode| probe(context, &root, mode)).collect();
    // What stays behind in the temporary directory holds nothing of anybody's.
    drop(fs::remove_dir_all(&root));
    probes
}

fn probe(context: &Context, root: &Path, mode: Mode) -> Probe {
    let name = format!("{mode} starts");
    match started(context, root, mode) {
        Ok(detail) => Probe::good(Class::Runtime, &name, detail),
        Err(detail) => Probe::bad(Class::Runtime, &name, detail),
    }
}

fn started(context: &Context, root: &Path, mode: Mode) -> Result<String, String> {
    let (app, home) = (root.join("app"), root.join("home"));
    for dir in [&app, &home] {
        fs::create_dir_all(dir)
            .map_err(|error| format!("failed to make {}: {error}", dir.display()))?;
    }
    let failed = |error: &dyn std::error::Error| format!("failed to {}", chain(error));
    let project = project(context, app, home);
    let new = NewWorkflow {
        purpose: format!("probe that {mode} starts"),
        terms: terms(),
        begin: begin(mode).ok_or("not available in this version")?,
    };
    let person = Actor::Human {
        user: "probe".to_owned(),
    };
    let workflow = Workflows::of(&project)
        .start_workflow(&person, &new)
        .map_err(|error| failed(&error))?;
    let key = workflow.key();
    let audit = audit_workflow(&project, &key).map_err(|error| failed(&error))?;
    if let Some(fault) = audit.faults.first() {
        return Err(failed(fault));
    }
    if let Some(path) = audit.stale.first() {
        return Err(format!(
            "{} is not as expected after a start",
            path.display()
        ));
    }
    let layout = project.layout.workflow(key.mode, &key.id);
    let bytes = fs::read(layout.snapshot()).map_err(|error| format!("no snapshot: {error}"))?;
    let snapshot: WorkflowSnapshot = serde_json::from_slice(&bytes)
        .map_err(|error| format!("the snapshot does not parse: {error}"))?;
    let location = snapshot.subphase.map_or_else(
        || snapshot.phase.clone(),
        |sub| format!("{}/{sub}", snapshot.phase),
    );
    Ok(format!(
        "in {location}; log, state, snapshot and documents agree ({})",
        counted(audit.records, "event")
    ))
}

fn project(context: &Context, app: PathBuf, home: PathBuf) -> Project<'_> {
    Project {
        disk: &context.disk,
        clock: &context.clock,
        layout: ProjectLayout::new(app),
        owner: "kapi doctor".to_owned(),
        home: Some(home),
    }
}

fn begin(mode: Mode) -> Option<Begin> {
    let spec = ModeSpec::of(mode)?;
    let commit = match spec.repository {
        RepositoryNeed::Optional => None,
        RepositoryNeed::Required => Some(NO_COMMIT.to_owned()),
    };
    let context = None;
    (spec.open)(Opening { commit, context }).ok()
}

fn terms() -> WorkflowTerms {
    WorkflowTerms {
        agent: "command:true".to_owned(),
        reviewer: None,
        models: Vec::new(),
        judge: Judge::None,
        sandbox: SandboxLevel::Native,
        network: NetworkMode::None,
        budget: Budget {
            turns: TURNS_DEFAULT,
            tokens: None,
            usd_micros: None,
            wall_ms: None,
        },
        tokens: None,
        usd_micros: None,
        wall_ms: None,
        jobs: 1,
        verify_timeout_ms: TIME_MS,
        question_timeout_ms: TIME_MS,
        protect: Vec::new(),
        verify: Vec::new(),
        delivery: None,
        plan_approval: PlanApproval::Ask,
    }
}
