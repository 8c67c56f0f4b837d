//! Everything of a project that is alive, for the live view: goals, workflows, tasks, launches, and
//! what a person wants to know besides.
//!
//! Reads what the listings read. What has not changed is not read again; what cannot be read is left
//! out until it can.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kapi_core::text::{shortened, time_words};
use kapi_goal::record::goal_listing::{GoalListingEntry, ListingStatus};
use kapi_goal::rules::state::GoalStatus;
use kapi_launch::record::{LaunchState, SandboxRecord};
use kapi_store::layout::project_key;
use kapi_wire::kernel::dashboard::DashboardView;
use kapi_workflow::record::index::{WorkflowListingEntry, WorkflowSummary};
use kapi_workflow::record::requests::WorkflowOverview;
use kapi_workflow::record::workflows::Workflows;

use crate::commands::dashboard::gather;
use crate::commands::inbox;
use crate::commands::spend::today::SpentToday;
use crate::error::Error;
use crate::kernel::ProjectKernel;
use crate::live_view::facts::{SubjectFacts, launch, task};
use crate::live_view::open_view::ViewSource;
use crate::live_view::overview::{Overview, Panel};
use crate::live_view::source::{GoalSource, workflow_facts};
use crate::subject::launches;
use crate::ui::harmless;

/// Lines of one panel at most.
const LINES_MAX: usize = 20;
/// Characters of what waits.
const WHAT_CHARS_MAX: usize = 200;
/// How long what changes seldom is not read again.
const SELDOM: Duration = Duration::from_secs(10);

/// Everything alive of one project.
pub(crate) struct AliveSource<'a> {
    kernel: &'a ProjectKernel<'a>,
    goals: GoalSource<'a>,
    /// What is known of what rests, with when it changed.
    resting: Mutex<BTreeMap<String, RestingFacts>>,
    overview: Mutex<Option<ReadOverview>>,
}

struct RestingFacts {
    updated: String,
    facts: SubjectFacts,
}

struct ReadOverview {
    at: Instant,
    overview: Overview,
}

impl<'a> AliveSource<'a> {
    /// Makes the source of a project.
    pub(crate) const fn new(kernel: &'a ProjectKernel<'a>) -> Self {
        Self {
            goals: GoalSource::new(kernel.context, kernel.project),
            kernel,
            resting: Mutex::new(BTreeMap::new()),
            overview: Mutex::new(None),
        }
    }

    /// Shows it while a function has the source of the view.
    pub(crate) fn with<T>(&self, then: impl FnOnce(ViewSource<'_>) -> T) -> T {
        then(ViewSource {
            subjects: &|| self.subjects(),
            overview: Some(&|| self.overview()),
        })
    }

    /// Returns what is known of everything that is alive.
    pub(crate) fn subjects(&self) -> Vec<SubjectFacts> {
        let mut all = Vec::new();
        let workflows = Workflows::of(self.kernel.project);
        if let Ok(standings) = workflows.standings() {
            self.read_goals(&standings, &mut all);
            self.read_workflows(&workflows, &standings, &mut all);
        }
        self.read_tasks(&mut all);
        self.read_launches(&mut all);
        all
    }

    fn read_goals(&self, standings: &WorkflowOverview, all: &mut Vec<SubjectFacts>) {
        for GoalListingEntry { id, state } in &standings.goals {
            let ListingStatus::Known(entry) = state else {
                continue;
            };
            if entry.status.is_terminal() {
                continue;
            }
            let rests = !matches!(entry.status, GoalStatus::Active | GoalStatus::Setup);
            let known = || self.goals.read(id);
            all.extend(self.known(&id.to_string(), rests.then_some(&entry.updated), &known));
        }
    }

    fn read_workflows(
        &self,
        workflows: &Workflows<'_>,
        standings: &WorkflowOverview,
        all: &mut Vec<SubjectFacts>,
    ) {
        for WorkflowListingEntry { key, state } in &standings.workflows {
            let WorkflowSummary::Known(entry) = state else {
                continue;
            };
            if entry.status.is_terminal() {
                continue;
            }
            let known = || workflow_facts(workflows, key);
            let id = format!("{} {}", key.mode, key.id);
            // Who drives it is told by a lock and not by a change, and is looked at each time.
            let driver = workflows.workflow_driver(key).ok().flatten();
            let rests = driver.is_none().then_some(&entry.updated);
            all.extend(self.known(&id, rests, &known));
        }
    }

    /// Returns what is known of something; of what rests, only what was not read since it changed.
    fn known(
        &self,
        id: &str,
        rests_since: Option<&String>,
        read: &dyn Fn() -> Option<SubjectFacts>,
    ) -> Option<SubjectFacts> {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(updated) = rests_since else {
            resting.remove(id);
            return read();
        };
        if let Some(known) = resting.get(id).filter(|known| known.updated == *updated) {
            return Some(known.facts.clone());
        }
        let facts = read()?;
        let known = RestingFacts {
            updated: updated.clone(),
            facts: facts.clone(),
        };
        resting.insert(id.to_owned(), known);
        Some(facts)
    }

    fn read_tasks(&self, all: &mut Vec<SubjectFacts>) {
        let Ok(queue) = self.kernel.queue() else {
            return;
        };
        let mut waits = self.kernel.waits(&queue);
        let now_ms = queue.now_ms();
        let open = queue.kernel().tasks.values();
        // The goal of a workflow is told by itself.
        let open = open.filter(|task| !task.state.is_ended() && task.goal_drive().is_none());
        all.extend(open.map(|task| task::facts(task, waits.remove(&task.id), now_ms)));
    }

    fn read_launches(&self, all: &mut Vec<SubjectFacts>) {
        let locations = launches::here(self.kernel.context).unwrap_or_default();
        let records = locations
            .iter()
            .filter_map(|at| SandboxRecord::load(at).ok()?);
        let running = records.filter(|record| record.state == LaunchState::Running);
        all.extend(running.map(|record| launch::facts(&record)));
    }

    fn overview(&self) -> Overview {
        let mut known = self.overview.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().filter(|known| known.at.elapsed() < SELDOM) {
            return known.overview.clone();
        }
        let overview = self.read_overview();
        *known = Some(ReadOverview {
            at: Instant::now(),
            overview: overview.clone(),
        });
        overview
    }

    fn read_overview(&self) -> Overview {
        let project = self.kernel.project.layout.root();
        let mut panels = vec![self.waiting(), self.spending()];
        if let Ok(view) = gather::gather(self.kernel, &[]) {
            panels.extend(of_kernel(&view));
        }
        panels.push(self.sandboxes());
        Overview {
            title: format!("Kapi in {}", harmless(&project.display().to_string())),
            panels,
        }
    }

    fn waiting(&self) -> Panel {
        let items = inbox::views(self.kernel.context).unwrap_or_default();
        let lines = items.iter().take(LINES_MAX).map(|item| {
            let what = shortened(&item.what, WHAT_CHARS_MAX);
            harmless(&format!("{}  {what}", item.subject))
        });
        Panel {
            heading: "Waiting for you".to_owned(),
            lines: lines.collect(),
        }
    }

    fn spending(&self) -> Panel {
        let lines = spent_today(self.kernel).map(|spent| spent.lines());
        Panel {
            heading: "Spent today".to_owned(),
            lines: lines.unwrap_or_default(),
        }
    }

    fn sandboxes(&self) -> Panel {
        let locations = launches::here(self.kernel.context).unwrap_or_default();
        let records = locations
            .iter()
            .filter_map(|at| SandboxRecord::load(at).ok()?);
        let lines = records.take(LINES_MAX).map(|record| {
            let state = match record.state {
                LaunchState::Running => "running",
                LaunchState::Finished => "finished",
            };
            let branch = record.branch.map(|branch| branch.name).unwrap_or_default();
            let text = format!("{}  {state}  {}  {branch}", record.id, record.agent);
            harmless(text.trim_end())
        });
        Panel {
            heading: "Sandboxes".to_owned(),
            lines: lines.collect(),
        }
    }
}

/// Reads what the project spent today.
pub(super) fn spent_today(kernel: &ProjectKernel<'_>) -> Result<SpentToday, Error> {
    let root = kernel.project.layout.root();
    let real = fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
    SpentToday::read(
        kernel.context,
        &project_key(&real),
        &kernel.config.spending.caps,
    )
}

fn of_kernel(view: &DashboardView) -> Vec<Panel> {
    let loops = view.loops.iter().take(LINES_MAX).map(|of| {
        let status = if of.enabled { of.status } else { "off" };
        let next = of
            .next_at_ms
            .map(|at_ms| format!("  next {}", time_words(at_ms)));
        format!("{}  {status}{}", of.name, next.unwrap_or_default())
    });
    let workers = view.workers.iter().take(LINES_MAX);
    let warnings = view.warnings.iter().take(LINES_MAX);
    let panel = |heading: &str, lines: Vec<String>| Panel {
        heading: heading.to_owned(),
        lines,
    };
    vec![
        panel("Warnings", warnings.map(|it| harmless(&it.what)).collect()),
        panel("Loops", loops.collect()),
        panel("Workers", workers.map(|it| it.owner.clone()).collect()),
    ]
}
