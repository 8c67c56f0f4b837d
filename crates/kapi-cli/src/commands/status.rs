//! `kapi status`: the goals, workflows and launches of this project, where they stand, what waits, and what
//! is not as it should be. Reads no log but of what is named, and of goals that have not ended.

mod health;
mod launches;

use kapi_core::failure::chain;
use kapi_core::isolation::SandboxLevel;
use kapi_core::text::counted;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_goal::record::damage::Damage;
use kapi_goal::record::goal_listing::{GoalListingEntry, ListingStatus};
use kapi_goal::record::project::Project;
use kapi_goal::rules::contract::Race;
use kapi_goal::rules::state::{Goal, GoalStatus};
use kapi_goal::rules::words;
use kapi_wire::workflow::row::WorkflowRow;
use kapi_workflow::record::index::{WorkflowListingEntry, WorkflowSummary};
use kapi_workflow::record::requests::WorkflowOverview;
use kapi_workflow::record::workflows::Workflows;
use serde::Serialize;

use crate::amount;
use crate::commands::show;
use crate::commands::status::health::{Health, Leftover};
use crate::commands::status::launches::LaunchRow;
use crate::context::Context;
use crate::error::{Error, optional};
use crate::exit_code::Exit;
use crate::live_view::facts;
use crate::subject::{Meaning, Silence, SubjectArgs};
use crate::trust::MovedBranch;
use crate::ui::{Format, Ui};
use crate::workflow::page::file::PageArgs;
use crate::workflow::{listing, session};

/// The most workflows that are listed for a person who does not ask for all; every one that changed at
/// the very time of the last of them is listed as well.
const SHOWN_MAX: usize = 50;

/// Options of `kapi status`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to show [default: everything in the project]
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// Show everything, including finished work
    #[arg(short, long)]
    all: bool,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Debug, Serialize)]
struct ProjectStatusView {
    goals: Vec<StatusRow>,
    workflows: Vec<WorkflowRow>,
    /// The launches of this project, those of tasks left out.
    launches: Vec<LaunchRow>,
    /// The name of this session.
    session: Option<String>,
    /// What this session is attached to.
    attached: Option<String>,
    /// How many things wait for a person; `kapi inbox` shows them.
    waiting: usize,
    health: Vec<Health>,
    cleanup: Vec<Leftover>,
}

#[derive(Debug, Serialize)]
struct StatusRow {
    id: String,
    status: String,
    driver: Option<String>,
    branch: Option<String>,
    worktree: Option<String>,
    sandbox: Option<SandboxLevel>,
    updated: Option<String>,
    fault: Option<String>,
    /// The commit that was proved or accepted.
    commit: Option<String>,
    /// Where its branch is, if that is not this commit.
    moved_branch: Option<MovedBranch>,
    /// What the last audit found.
    damage: Vec<String>,
    race: Option<Race>,
    /// How far it is, where it has not ended.
    progress: Option<GoalProgress>,
    #[serde(skip)]
    is_over: bool,
}

#[derive(Debug, Serialize)]
struct GoalProgress {
    /// What it does next or right now, in words; empty where it rests.
    phase: String,
    /// The turn under way or last ended, from 1, and the limit.
    turn: u32,
    turns: u32,
    tokens: u64,
    usd_micros: Option<u64>,
    /// Why it stands where it stands.
    reason: Option<String>,
    #[serde(skip)]
    cost: Option<String>,
}

impl GoalProgress {
    fn of(goal: &Goal) -> Self {
        let spent = goal.spent.total();
        Self {
            phase: facts::goal::phase(goal).to_owned(),
            turn: goal.turn,
            turns: goal.budget.turns,
            tokens: spent.tokens(),
            usd_micros: spent.usd_micros,
            reason: words::reason(goal),
            cost: amount::cost(&spent),
        }
    }

    /// Returns it in a line; nothing before the first turn.
    fn line(&self) -> Option<String> {
        // Out of turns, it stands before one that it may not take.
        let at = self.turn.min(self.turns);
        let turn = (at > 0).then(|| format!("turn {at} of {}", self.turns));
        let phase = Some(self.phase.clone()).filter(|phase| !phase.is_empty());
        let parts: Vec<String> = [turn, phase, self.cost.clone()]
            .into_iter()
            .flatten()
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Lists goals and workflows, or shows the one that is named.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    if let Some(reference) = &args.reference {
        if args.page.is_asked() {
            write_page(context, reference, &args.page)?;
        }
        return show::run(context, &show::Args::of(reference));
    }
    let launches = launches::rows(context)?;
    let Some(root) = optional(context.project_root())? else {
        return Ok(nothing(context, launches, args.all));
    };
    let project = context.project(&root, "kapi status");
    let mut standings = Workflows::of(&project)
        .standings()
        .map_err(|error| Error::engine(&error, ""))?;
    let mut goals = goal_rows(&project, &standings.goals)?;
    let damage = project.damage();
    doubt(context, &project, &mut goals, &damage);
    let session = session::session(context);
    let attached = listing::attached(&standings, session.as_deref());
    let n_launches = launches.iter().filter(|row| row.waits()).count();
    let waiting = waiting(&standings) + damage.len() + n_launches;
    let mut health = health::of(context, &project, &standings);
    health.extend(health::doubts(&goals, &damage));
    health.extend(health::loops(context));
    let cleanup = health::leftovers(context, &project, &standings)?;
    let is_whole = args.all || context.ui.format == Format::Json;
    let hidden = if is_whole {
        HiddenWorkflows::default()
    } else {
        hide(&mut standings.workflows, attached.as_deref())
    };
    let view = ProjectStatusView {
        workflows: listing::rows(&project, &standings, attached.as_deref())?,
        session,
        attached,
        launches,
        waiting,
        health,
        cleanup,
        goals,
    };
    match context.ui.format {
        Format::Json => context.ui.json(&view),
        Format::Human => human(context.ui, &view, args.all, hidden),
    }
    Ok(Exit::Success)
}

/// Writes the page of a workflow, which nothing else has.
fn write_page(context: &Context, reference: &str, page: &PageArgs) -> Result<(), Error> {
    match SubjectArgs::of(reference).find(context, Silence::Latest)? {
        Meaning::Workflow(key) => page.write(context, key),
        Meaning::Goal(_) | Meaning::Task(_) | Meaning::Launch(_) => {
            let text = format!("{reference} is not a workflow, and only workflows have a page");
            Err(Error::usage(text).with_hint("`kapi status` lists the workflows."))
        }
    }
}

/// Workflows that are only counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct HiddenWorkflows {
    ended: usize,
    /// Older than those that are shown.
    older: usize,
}

/// Takes away what a person does not look for: what has ended and, of very many, what changed longest
/// ago. What is damaged and what this session is attached to stays.
fn hide(workflows: &mut Vec<WorkflowListingEntry>, attached: Option<&str>) -> HiddenWorkflows {
    let mut hidden = HiddenWorkflows {
        ended: workflows.len(),
        older: 0,
    };
    workflows.retain(|listed| !matches!(&listed.state, WorkflowSummary::Known(entry) if entry.status.is_terminal()));
    hidden.ended -= workflows.len();
    if workflows.len() <= SHOWN_MAX {
        return hidden;
    }
    let mut changed: Vec<&str> = workflows.iter().map(changed_at).collect();
    changed.sort_unstable_by(|a, b| b.cmp(a));
    let since = changed.get(SHOWN_MAX - 1).copied().unwrap_or_default();
    let since = since.to_owned();
    hidden.older = workflows.len();
    workflows.retain(|listed| {
        let is_attached = attached.is_some_and(|id| listed.key.id.to_string() == id);
        let is_damaged = matches!(listed.state, WorkflowSummary::Damaged(_));
        is_attached || is_damaged || changed_at(listed) >= since.as_str()
    });
    hidden.older -= workflows.len();
    hidden
}

fn goal_rows(project: &Project<'_>, goals: &[GoalListingEntry]) -> Result<Vec<StatusRow>, Error> {
    let mut rows = Vec::with_capacity(goals.len());
    for listed in goals {
        let id = listed.id.to_string();
        match &listed.state {
            ListingStatus::Known(entry) => {
                let is_over = entry.status.is_terminal();
                let driver = if is_over {
                    None
                } else {
                    project
                        .driver(&listed.id)
                        .map_err(|error| Error::engine(&error, ""))?
                };
                rows.push(StatusRow {
                    id,
                    sandbox: Some(entry.sandbox),
                    status: entry.status.to_string(),
                    driver,
                    branch: Some(entry.branch.clone()),
                    worktree: entry.worktree.clone(),
                    updated: Some(entry.updated.clone()),
                    fault: None,
                    commit: entry.commit.clone(),
                    moved_branch: None,
                    damage: Vec::new(),
                    race: entry.race.clone(),
                    // What cannot be read is told by who looks for damage.
                    progress: (!is_over)
                        .then(|| project.load(&listed.id).ok())
                        .flatten()
                        .map(|goal| GoalProgress::of(&goal)),
                    is_over,
                });
            }
            ListingStatus::Damaged(error) => rows.push(StatusRow {
                id,
                status: "damaged".to_owned(),
                driver: None,
                branch: None,
                worktree: None,
                sandbox: None,
                updated: None,
                fault: Some(chain(error)),
                commit: None,
                moved_branch: None,
                damage: Vec::new(),
                race: None,
                progress: None,
                is_over: false,
            }),
        }
    }
    Ok(rows)
}

/// Adds what the last audits found, and which branches are not where a proof left them.
fn doubt(context: &Context, project: &Project<'_>, rows: &mut [StatusRow], damage: &Damage) {
    for row in rows.iter_mut() {
        row.damage = damage.get(&row.id).cloned().unwrap_or_default();
    }
    if rows.iter().all(|row| row.commit.is_none()) {
        return;
    }
    let root = project.layout.root();
    let tips = context
        .config(Some(root))
        .ok()
        .and_then(|config| RepositorySurvey::of(&context.grants(&config), root).ok())
        .and_then(|survey| survey.branch_tips().ok());
    let Some(tips) = tips else { return };
    for row in rows.iter_mut() {
        if let (Some(branch), Some(commit)) = (&row.branch, &row.commit) {
            row.moved_branch = MovedBranch::of_tip(tips.get(branch), commit);
        }
    }
}

/// Returns when a workflow changed last, as a text that sorts by time.
fn changed_at(listed: &WorkflowListingEntry) -> &str {
    match &listed.state {
        WorkflowSummary::Known(entry) => &entry.updated,
        WorkflowSummary::Damaged(_) => "",
    }
}

/// Counts what waits for a person, as far as the inventory knows.
fn waiting(standings: &WorkflowOverview) -> usize {
    let waits = |status| {
        matches!(
            status,
            GoalStatus::Proposed | GoalStatus::Blocked | GoalStatus::Stalled | GoalStatus::Paused
        )
    };
    let goals = standings.goals.iter().filter(|listed| match &listed.state {
        ListingStatus::Known(entry) => waits(entry.status),
        ListingStatus::Damaged(_) => true,
    });
    let workflows = standings.workflows.iter();
    let workflows = workflows.filter(|listed| match &listed.state {
        WorkflowSummary::Known(entry) => !entry.status.is_terminal() && entry.waits.is_some(),
        WorkflowSummary::Damaged(_) => true,
    });
    goals.count() + workflows.count()
}

fn nothing(context: &Context, launches: Vec<LaunchRow>, all: bool) -> Exit {
    let health = health::loops(context);
    let waiting = launches.iter().filter(|row| row.waits()).count();
    match context.ui.format {
        Format::Json => context.ui.json(&ProjectStatusView {
            goals: Vec::new(),
            workflows: Vec::new(),
            session: session::session(context),
            attached: None,
            launches,
            waiting,
            health,
            cleanup: Vec::new(),
        }),
        Format::Human => {
            let shown = shown(&launches, all);
            launches::lines(context.ui, &shown);
            warnings(context.ui, &health);
            let n_hidden = [0, launches.len() - shown.len()];
            if !launches.is_empty() {
                not_shown(context.ui, n_hidden, HiddenWorkflows::default());
                told_waiting(context.ui, waiting);
                return Exit::Success;
            }
            context.ui.line("There are no goals and no workflows here.");
            let root = crate::kernel::root(context);
            if root.is_ok_and(|root| root.join(".ilchul/kernel").is_dir()) {
                let text = "Tasks and loops are in `kapi task list` and `kapi loop list`.";
                context.ui.line(text);
            }
            context
                .ui
                .line("Start a goal with `kapi run \"<task>\" --verify \"<command>\"`.");
        }
    }
    Exit::Success
}

fn warnings(ui: Ui, health: &[Health]) {
    for health in health {
        ui.line(&format!("warning: {}: {}", health.what, health.detail));
        if let Some(hint) = &health.hint {
            ui.line(&format!("         {hint}"));
        }
    }
}

fn human(ui: Ui, view: &ProjectStatusView, all: bool, hidden: HiddenWorkflows) {
    let has_nothing = view.goals.is_empty()
        && view.workflows.is_empty()
        && view.launches.is_empty()
        && hidden == HiddenWorkflows::default();
    let shown: Vec<&StatusRow> = view
        .goals
        .iter()
        .filter(|row| all || !row.is_over)
        .collect();
    goals(ui, &shown);
    if !view.workflows.is_empty() && !shown.is_empty() {
        ui.line("");
    }
    listing::lines(ui, &view.workflows);
    let launches = self::shown(&view.launches, all);
    if !launches.is_empty() && (!view.workflows.is_empty() || !shown.is_empty()) {
        ui.line("");
    }
    launches::lines(ui, &launches);
    warnings(ui, &view.health);
    for leftover in &view.cleanup {
        ui.line(&format!(
            "leftover: the worktree of {}, which has ended ({}); once its branch is merged: {}",
            leftover.workflow,
            crate::commands::sandbox::list::size(leftover.bytes),
            leftover.command
        ));
    }
    let n_hidden = [
        view.goals.len() - shown.len(),
        view.launches.len() - launches.len(),
    ];
    not_shown(ui, n_hidden, hidden);
    told_waiting(ui, view.waiting);
    if view.waiting == 0 && has_nothing {
        ui.line("There are no goals and no workflows here.");
    }
}

/// Returns the launches that a person looks for.
fn shown(launches: &[LaunchRow], all: bool) -> Vec<&LaunchRow> {
    let shown = launches.iter().filter(|row| all || !row.is_over());
    shown.collect()
}

fn told_waiting(ui: Ui, waiting: usize) {
    let things = match waiting {
        0 => return,
        1 => "1 thing is".to_owned(),
        n_waiting => format!("{n_waiting} things are"),
    };
    ui.say(&format!("{things} waiting for you: see `kapi inbox`."));
}

fn not_shown(ui: Ui, n_hidden: [usize; 2], hidden: HiddenWorkflows) {
    let [n_goals, n_launches] = n_hidden;
    let some = |n: usize, what: &str| (n > 0).then(|| counted(n, what));
    let kinds = [
        some(n_goals, "ended goal"),
        some(hidden.ended, "ended workflow"),
        some(hidden.older, "older workflow"),
        some(n_launches, "ended launch"),
    ];
    let what: Vec<String> = kinds.into_iter().flatten().collect();
    if !what.is_empty() {
        let what = what.join(", ");
        ui.say(&format!(
            "Not shown: {what}; `kapi status --all` lists them."
        ));
    }
}

fn goals(ui: Ui, rows: &[&StatusRow]) {
    let width = rows.iter().map(|row| row.id.len()).max().unwrap_or(0);
    for row in rows {
        let state = match (&row.driver, row.status.as_str()) {
            (Some(driver), "active") => format!("active, driven by {driver}"),
            (None, "active") => "active, not driven: continue it with `kapi resume`".to_owned(),
            (_, status) => status.to_owned(),
        };
        let isolation = if row.sandbox == Some(SandboxLevel::None) {
            ", NO ISOLATION"
        } else {
            ""
        };
        let branch = row.branch.as_deref().unwrap_or_default();
        let race = row.race.as_ref().map_or_else(String::new, |race| {
            format!("  lane {} of race {:03}", race.lane, race.of)
        });
        ui.line(&format!(
            "{:width$}  {state}{isolation}  {branch}{race}",
            row.id
        ));
        if let Some(fault) = &row.fault {
            ui.line(&format!("{:width$}  failed to {fault}", ""));
        }
        let Some(progress) = &row.progress else {
            continue;
        };
        if let Some(line) = progress.line() {
            ui.line(&format!("{:width$}  {line}", ""));
        }
        if let Some(reason) = &progress.reason {
            ui.line(&format!("{:width$}  because {reason}", ""));
        }
    }
}
