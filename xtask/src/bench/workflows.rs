//! A status over a thousand workflows beside the same over ten: the real binary, real files.
//!
//! What must not happen is that looking costs as much as everything that was ever done.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kapi_core::actor::Actor;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::Judge;
use kapi_goal::record::project::Project;
use kapi_goal::rules::budget::Budget;
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;
use kapi_workflow::record::start::NewWorkflow;
use kapi_workflow::record::workflows::Workflows;
use kapi_workflow::rules::modes::Begin;
use kapi_workflow::rules::modes::interview::begin::InterviewBegin;
use kapi_workflow::rules::terms::{PlanApproval, WorkflowTerms};

use super::BenchDirectory;
use super::comparison::compare;
use super::invocation::Invocation;
use super::table::{ComparisonTable, Quantity};
use crate::tool::ToolCommand;

/// Rounds that count.
const ROUNDS: usize = 40;
/// Workflows in the full project, and in the small one.
const MANY: usize = 1_000;
const FEW: usize = 10;
/// Words of which every purpose has a few, so that names differ.
const WORDS: [&str; 10] = [
    "session", "store", "login", "cache", "index", "parser", "report", "queue", "image", "search",
];

/// Measures `kapi status` with many workflows and with few.
pub(super) fn status(location: &BenchDirectory) -> anyhow::Result<ComparisonTable> {
    let kapi = location.kapi.to_string_lossy();
    let look = |n_workflows: usize| -> anyhow::Result<Invocation> {
        let directory = location.scratch.join(format!("workflows-{n_workflows}"));
        fill(&directory, n_workflows)?;
        let shown = format!("`kapi status`, {n_workflows} workflows");
        Ok(Invocation::new(&shown, &directory, &kapi, &["status"]))
    };
    let (many, few) = (look(MANY)?, look(FEW)?);
    Ok(ComparisonTable {
        title: "A thousand workflows",
        note: "The same command in two projects. What it may cost at most is three times as much: of all it is looked whether their log has grown, none of the logs is read, and the fifty that changed last are listed.".to_owned(),
        quantity: Quantity::Time,
        rows: vec![compare(ROUNDS, &many, &few)?],
    })
}

/// Starts so many interviews in a project.
pub(super) fn fill(directory: &Path, n_workflows: usize) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("create {}", directory.display()))?;
    ToolCommand::new(directory, "git", &["init", "--quiet"]).run()?;
    let project = Project {
        disk: &RealDisk,
        clock: &SystemClock,
        layout: ProjectLayout::new(PathBuf::from(directory)),
        owner: "bench".to_owned(),
        home: None,
    };
    let person = Actor::Human {
        user: "user".to_owned(),
    };
    for number in 0..n_workflows {
        let word = |location: usize| {
            WORDS[number / 10_usize.pow(u32::try_from(location).unwrap_or(0)) % 10]
        };
        let new = NewWorkflow {
            purpose: format!("Improve {} {} {}", word(0), word(1), word(2)),
            terms: terms(),
            begin: Begin::Interview(InterviewBegin { commit: None }),
        };
        Workflows::of(&project).start_workflow(&person, &new)?;
    }
    Ok(())
}

fn terms() -> WorkflowTerms {
    WorkflowTerms {
        agent: "claude".to_owned(),
        reviewer: None,
        models: Vec::new(),
        judge: Judge::None,
        sandbox: SandboxLevel::Native,
        network: NetworkMode::Filtered,
        budget: Budget {
            turns: 5,
            tokens: None,
            usd_micros: None,
            wall_ms: None,
        },
        tokens: None,
        usd_micros: None,
        wall_ms: None,
        jobs: 2,
        verify_timeout_ms: 60_000,
        question_timeout_ms: 60_000,
        protect: Vec::new(),
        verify: Vec::new(),
        delivery: None,
        plan_approval: PlanApproval::Ask,
    }
}
