//! An integration in words: a line for each of its facts, the matrix, the order, what is covered and left
//! out, and what one would trust by taking it over.
//!
//! Everything here stands in the workflow's own documents. Text from agents is shortened to its first line.

use kapi_check::rules::proof::verify_report::run_end;
use kapi_core::id::GoalId;
use kapi_core::text::{agent_name, counted, short_id};
use kapi_workflow::rules::effect::combine::Foresight;
use kapi_workflow::rules::modes::ModeEvent;
use kapi_workflow::rules::modes::integrate::event::IntegrateEvent;
use kapi_workflow::rules::state::Workflow;

use crate::event_words::first_line;
use crate::modes::Front;
use crate::modes::integrate::page;
use crate::modes::integrate::phrases::{of, said};
use crate::ui::Ui;

/// What the mode says.
pub(in crate::modes) static FRONT: Front = Front {
    describe,
    is_shown_next: |_| false,
    summary,
    details,
    live: |_| None,
    page: page::of,
    next,
    trusted,
    waits_for: |_| None,
};

/// Returns a fact in words; `None` for what is only bookkeeping.
fn describe(event: &ModeEvent) -> Option<String> {
    if let ModeEvent::Integrate(event) = event {
        fact(event)
    } else {
        None
    }
}

/// Prints the order with where each source stands, and how far it has come.
fn summary(ui: Ui, workflow: &Workflow) {
    let Some(state) = of(workflow) else {
        return;
    };
    if let Some(branch) = &state.branch {
        ui.line(&format!(
            "  branch   {} at {}",
            branch.name,
            short_id(&branch.head)
        ));
        ui.line(&format!("  worktree {}", branch.worktree));
    }
    for (number, step) in (1..).zip(state.steps()) {
        let applied = state.applied.iter().find(|it| it.source == step.source);
        let place = applied.map_or_else(
            || "waits".to_owned(),
            |it| format!("on the branch as {}", short_id(&it.after)),
        );
        let method = step.method.as_str();
        ui.line(&format!(
            "  {number:<8} {} by {method}: {place}",
            step.source
        ));
    }
    for gone in &state.evicted {
        ui.line(&format!(
            "  left out {}: {}",
            gone.source,
            first_line(&gone.why)
        ));
    }
    if let Some(coverage) = &state.coverage {
        ui.line(&format!(
            "  coverage {} of {} hunks are traced to a source, {}",
            coverage.n_traced,
            coverage.n_hunks,
            counted(coverage.findings.len(), "finding")
        ));
    }
    if let Some(landed) = &state.landed {
        ui.line(&format!(
            "  dev      moved from {} to {}",
            short_id(&landed.from),
            short_id(&landed.to)
        ));
        if let Some(brought) = &landed.brought {
            ui.line(&format!("  checkout {brought} shows it"));
        }
    }
}

/// Prints the matrix of conflicts, what is covered of each source, and what was said.
fn details(ui: Ui, workflow: &Workflow) {
    let Some(state) = of(workflow) else {
        return;
    };
    if let Some(foresight) = &state.foresight {
        for line in matrix(foresight) {
            ui.line(&format!("  {line}"));
        }
    }
    for settled in &state.resolutions {
        let choice = first_line(&settled.said.choice);
        ui.line(&format!("  resolved {}: {choice}", settled.source));
    }
    for covered in state.coverage.iter().flat_map(|it| &it.sources) {
        let (there, all) = (covered.n_there, covered.n_hunks);
        ui.line(&format!(
            "  {} {there} of {all} hunks are in the result",
            covered.source
        ));
    }
    for (number, found) in state.findings() {
        let (kind, path, line) = (found.kind.as_str(), &found.path, found.line);
        ui.line(&format!(
            "  finding {number}: {kind}, {path} line {line}: {}",
            first_line(&found.what)
        ));
    }
    for statement in &state.statements {
        ui.line(&format!("  {}", said(statement)));
    }
}

/// Returns the pairs as columns: a number is how many paths conflict.
fn matrix(foresight: &Foresight) -> Vec<String> {
    let ids = foresight.sides();
    let name = |id: &Option<&GoalId>| {
        id.map_or_else(|| "dev".to_owned(), |id| format!("{:03}", id.index()))
    };
    let heads: Vec<String> = ids.iter().map(|id| format!("{:>4}", name(id))).collect();
    let mut lines = vec![format!("conflicts    {}", heads.concat())];
    for one in &ids {
        let cells = ids.iter().map(|other| {
            let text = match foresight.clash(*one, *other) {
                _ if one == other => ".".to_owned(),
                Some(clash) => clash.paths.len().to_string(),
                None => "-".to_owned(),
            };
            format!("{text:>4}")
        });
        lines.push(format!(
            "         {} {}",
            name(one),
            cells.collect::<String>()
        ));
    }
    lines
}

/// Returns how the result is looked at, and the line that puts dev back.
fn next(workflow: &Workflow) -> Vec<String> {
    let Some(landed) = of(workflow).and_then(|state| state.landed.as_ref()) else {
        return Vec::new();
    };
    vec![
        format!("git log --oneline {}..dev", short_id(&landed.from)),
        format!(
            "git update-ref refs/heads/dev {} {}",
            landed.from, landed.to
        ),
    ]
}

/// Returns what going on with it would carry out or rest on.
fn trusted(workflow: &Workflow) -> Vec<(&'static str, String)> {
    let Some(state) = of(workflow) else {
        return Vec::new();
    };
    let mut lines = vec![("dev", state.target.clone())];
    let sources = state.sources.iter();
    lines.extend(sources.map(|it| {
        (
            "source",
            format!("{}: {} at {}", it.id, it.branch, it.commit),
        )
    }));
    if let Some(branch) = &state.branch {
        lines.push(("branch", format!("{} at {}", branch.name, branch.head)));
    }
    let plan = state.plan.iter().flat_map(|plan| &plan.verify);
    lines.extend(plan.map(|command| ("runs", command.clone())));
    if state.leave.evicts {
        lines.push(("allows", "leaving out a source that fails".to_owned()));
    }
    if state.leave.brings_checkout {
        lines.push(("allows", "updating a clean checkout of dev".to_owned()));
    }
    lines
}

fn fact(event: &IntegrateEvent) -> Option<String> {
    planned(event)
        .or_else(|| merged(event))
        .or_else(|| verified(event))
        .or_else(|| decided(event))
}

fn names(ids: &[GoalId]) -> String {
    let names: Vec<String> = ids.iter().map(GoalId::to_string).collect();
    names.join(" and ")
}

fn planned(event: &IntegrateEvent) -> Option<String> {
    if let IntegrateEvent::SourcesInspected { foresight } = event {
        let (sources, pairs) = (foresight.order.len(), foresight.clashes.len());
        let conflicts = match pairs {
            0 => "none conflicts with another".to_owned(),
            1 => "1 pair conflicts".to_owned(),
            _ => format!("{pairs} pairs conflict"),
        };
        Some(format!(
            "{} compared: {conflicts}",
            counted(sources, "source")
        ))
    } else if let IntegrateEvent::SourcesUnfit { reasons } = event {
        Some(format!("not as it was: {}", reasons.join("; ")))
    } else if let IntegrateEvent::Clarified { source, text } = event {
        Some(format!("{source} is meant for: {}", first_line(text)))
    } else if let IntegrateEvent::PlanDrafted { by, plan } = event {
        let who = by
            .as_ref()
            .map_or_else(|| "Kapi".to_owned(), |by| agent_name(&by.agent));
        let order: Vec<String> = plan.steps.iter().map(|it| it.source.to_string()).collect();
        Some(format!(
            "{who} proposes a merge plan: {}",
            order.join(", then ")
        ))
    } else if let IntegrateEvent::PlanReopened { reason } = event {
        let why = reason.as_deref().unwrap_or("as things are now");
        Some(format!("it is planned again: {}", first_line(why)))
    } else if let IntegrateEvent::BranchPrepared {
        branch, worktree, ..
    } = event
    {
        Some(format!("branch {branch}, worktree {worktree}"))
    } else if let IntegrateEvent::BaselineRecorded { report } = event {
        let passing = report.runs.iter().filter(|run| run.passed()).count();
        let all = counted(report.runs.len(), "command");
        Some(format!("{passing} of {all} passed on dev before the merge"))
    } else {
        None
    }
}

fn merged(event: &IntegrateEvent) -> Option<String> {
    if let IntegrateEvent::SourceApplied {
        source,
        after,
        by_rule,
        ..
    } = event
    {
        let rules = if by_rule.is_empty() {
            String::new()
        } else {
            format!("; settled by rule: {}", by_rule.join(", "))
        };
        Some(format!(
            "{source} is on the branch as {}{rules}",
            short_id(after)
        ))
    } else if let IntegrateEvent::SourceConflicted { source, paths, .. } = event {
        let paths: Vec<&str> = paths.iter().map(|it| it.path.as_str()).collect();
        Some(format!("{source} conflicts in {}", paths.join(", ")))
    } else if let IntegrateEvent::ResolutionProposed {
        source, by, said, ..
    } = event
    {
        let (agent, choice) = (agent_name(&by.agent), first_line(&said.choice));
        Some(format!(
            "{agent} resolves the conflict of {source}: {choice}"
        ))
    } else if let IntegrateEvent::FilesRegenerated { regeneration } = event {
        let paths: Vec<&str> = regeneration
            .runs
            .iter()
            .map(|it| it.path.as_str())
            .collect();
        let paths = paths.join(", ");
        Some(match (&regeneration.commit, regeneration.runs.last()) {
            (None, Some(last)) => {
                let (line, end) = (&last.run.command, run_end(&last.run));
                format!("`{line}` {end}, so an agent updates {paths}")
            }
            _ => format!("{paths} is regenerated by its own tool"),
        })
    } else if let IntegrateEvent::ConflictResolved { source, after, .. } = event {
        let after = short_id(after);
        Some(format!(
            "{source} is on the branch as {after}, its conflict resolved"
        ))
    } else if let IntegrateEvent::ResolutionDiscarded { source, .. } = event {
        let why = "the checks fail with it";
        Some(format!("the conflict of {source} is resolved again: {why}"))
    } else if let IntegrateEvent::SourceEvicted { eviction } = event {
        let why = first_line(&eviction.why);
        Some(format!("{} is left out: {why}", eviction.source))
    } else {
        None
    }
}

fn verified(event: &IntegrateEvent) -> Option<String> {
    if let IntegrateEvent::HeadVerified { report, holds } = event {
        let word = if *holds { "holds" } else { "does not hold" };
        Some(format!("the result {word} at {}", short_id(&report.commit)))
    } else if let IntegrateEvent::TrialMade { sources, commit } = event {
        let word = if commit.is_some() {
            "are tried"
        } else {
            "conflict"
        };
        Some(format!("{} {word} without the others", names(sources)))
    } else if let IntegrateEvent::CulpritsFound { sources, evidence } = event {
        let how = first_line(evidence);
        Some(format!("it fails with {}: {how}", names(sources)))
    } else if let IntegrateEvent::CoverageCounted { coverage } = event {
        let (traced, hunks) = (coverage.n_traced, coverage.n_hunks);
        let findings = counted(coverage.findings.len(), "finding");
        Some(format!(
            "{traced} of {hunks} hunks are traced to a source, {findings}"
        ))
    } else {
        None
    }
}

fn decided(event: &IntegrateEvent) -> Option<String> {
    if let IntegrateEvent::Reviewed { review } = event {
        let agent = agent_name(&review.by.agent);
        let problems = counted(review.findings.problems.len(), "problem");
        Some(format!("review by {agent}: {problems}"))
    } else if let IntegrateEvent::ConsensusSaid { statement } = event {
        Some(said(statement))
    } else if let IntegrateEvent::Returned { cause, why, .. } = event {
        Some(format!("back to {}: {}", cause.leads_to(), first_line(why)))
    } else if let IntegrateEvent::AnswerRefused { role, why } = event {
        Some(format!("the {role} is asked again: {}", first_line(why)))
    } else if let IntegrateEvent::TargetMoved { expected, found } = event {
        let found = found.as_ref().map_or("nothing", |found| short_id(found));
        let expected = short_id(expected);
        Some(format!(
            "dev was moved by somebody else, from {expected} to {found}"
        ))
    } else if let IntegrateEvent::TargetAdvanced { from, to, .. } = event {
        Some(format!(
            "dev moved from {} to {}",
            short_id(from),
            short_id(to)
        ))
    } else if let IntegrateEvent::SourcesMarked {} = event {
        Some("the sources are integrated".to_owned())
    } else {
        // What is only bookkeeping: a worktree put back, a trial whose culprits are named later.
        None
    }
}
