//! How a race came out: a table for people, one document for programs.
//!
//! The order of the lanes is the core's; here it is only written down.

use kapi_check::rules::proof::inspection::Inspection;
use kapi_core::text::{agent_name, counted, short_id};
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_goal::record::project::Project;
use kapi_goal::record::race::{Lane, Winner};
use kapi_goal::rules::contract::RaceEnd;
use kapi_goal::rules::race::{
    DiffSize, Entrant, HiddenChecksResult, LaneProof, RankCriterion, RankedLane, rank,
};
use kapi_goal::rules::state::Goal;
use kapi_goal::rules::words;
use kapi_wire::result::UsageView;
use serde::Serialize;

use crate::amount;
use crate::commands::run::race::field::{RaceField, Troubles};
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::{Format, Ui};

/// How a race came out.
#[derive(Debug, Serialize)]
struct RaceView {
    /// Always `race`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The index of the first goal, which resumes the race.
    race: u32,
    /// `first_proved` or `compare`.
    ends: RaceEnd,
    /// The lane that won; in a comparison the first, if it is proved and alone in its place.
    winner: Option<WinnerView>,
    /// All lanes, best first.
    lanes: Vec<LaneView>,
    /// What a person can type next.
    next: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct WinnerView {
    lane: u32,
    goal: String,
    commit: String,
}

#[derive(Debug, Serialize)]
struct LaneView {
    rank: u32,
    ahead_by: Option<RankCriterion>,
    lane: u32,
    goal: String,
    agent: String,
    status: &'static str,
    proof: LaneProof,
    hidden: HiddenChecksResult,
    usage: UsageView,
    turns: u32,
    wall_ms: u64,
    diff: Option<DiffSize>,
    branch: String,
    commit: Option<String>,
    candidate: Option<String>,
    reason: Option<String>,
    /// What it does to the checks themselves.
    inspection: Option<Inspection>,
    /// Why this process could not drive it, if so.
    trouble: Option<String>,
}

/// Reports how a race came out, and returns what the process exits with.
pub(super) fn report(
    field: &RaceField<'_>,
    lanes: &[Lane],
    winner: Option<&Winner>,
    troubles: &Troubles,
) -> Result<Exit, Error> {
    let view = view(field, lanes, winner, troubles)?;
    match field.context.ui.format {
        Format::Json => field.context.ui.json(&view),
        Format::Human => human(field.context.ui, &view),
    }
    let is_accepted =
        |lane: &LaneView| matches!(lane.proof, LaneProof::Proved | LaneProof::Accepted);
    let is_good = match view.ends {
        RaceEnd::FirstProved => view.winner.is_some(),
        RaceEnd::Compare => view.lanes.iter().any(is_accepted),
    };
    Ok(if field.interrupts.is_raised() {
        Exit::Interrupted
    } else if is_good {
        Exit::Success
    } else {
        Exit::NotDone
    })
}

/// Returns what `kapi show` says of the race that a goal is a lane of.
pub(crate) fn lines(project: &Project<'_>, goal: &Goal) -> Result<Vec<String>, Error> {
    let Some(race) = &goal.contract.race else {
        return Ok(Vec::new());
    };
    let failed = |error| Error::engine(&error, &goal.id.to_string());
    let winner = kapi_goal::record::race::winner(project, race.of).map_err(failed)?;
    let state = winner.map_or_else(String::new, |winner| format!("; {}", winner.reason()));
    let mut lines = vec![format!(
        "lane {} of {}, race {:03}{state}",
        race.lane, race.lanes, race.of
    )];
    for lane in kapi_goal::record::race::lanes(project, race.of).map_err(failed)? {
        let other = lane.goal;
        if other.id != goal.id {
            lines.push(format!(
                "lane {}: {} {} ({})",
                lane.race.lane,
                other.id,
                other.status,
                agent_name(&other.contract.agent)
            ));
        }
    }
    Ok(lines)
}

fn view(
    field: &RaceField<'_>,
    lanes: &[Lane],
    winner: Option<&Winner>,
    troubles: &Troubles,
) -> Result<RaceView, Error> {
    let ends = lanes
        .first()
        .map_or(RaceEnd::FirstProved, |lane| lane.race.ends);
    let mut entrants = Vec::new();
    for lane in lanes {
        let diff = diff(field.context, field, &lane.goal)?;
        entrants.push(Entrant::of(&lane.goal, lane.race.lane, diff));
    }
    let mut ranked = rank(entrants);
    if let Some(winner) = winner {
        // What was proved first has won, whatever was proved after it.
        let is_other = |ranked: &RankedLane| ranked.entrant.lane != winner.lane;
        ranked.sort_by_key(is_other);
    }
    let winner = match ends {
        RaceEnd::FirstProved => winner.map(|winner| WinnerView {
            lane: winner.lane,
            goal: winner.goal.to_string(),
            commit: winner.commit.clone(),
        }),
        RaceEnd::Compare => best(&ranked, lanes),
    };
    let lanes: Vec<LaneView> = ranked
        .iter()
        .filter_map(|ranked| {
            let is_it = |lane: &&Lane| lane.race.lane == ranked.entrant.lane;
            let lane = lanes.iter().find(is_it)?;
            let trouble = troubles.get(&lane.goal.id).map(ToString::to_string);
            Some(lane_view(ranked, &lane.goal, trouble))
        })
        .collect();
    let next = next(field.of, winner.as_ref(), &lanes);
    Ok(RaceView {
        kind: "race",
        race: field.of,
        ends,
        winner,
        lanes,
        next,
    })
}

/// The first of a comparison, if it is proved and nothing else shares its place.
fn best(ranked: &[RankedLane], lanes: &[Lane]) -> Option<WinnerView> {
    let first = ranked.first()?;
    let is_shared = ranked.get(1).is_some_and(|next| next.rank == first.rank);
    if first.entrant.proof != LaneProof::Proved || is_shared {
        return None;
    }
    let is_it = |lane: &&Lane| lane.race.lane == first.entrant.lane;
    let goal = &lanes.iter().find(is_it)?.goal;
    Some(WinnerView {
        lane: first.entrant.lane,
        goal: goal.id.to_string(),
        commit: goal.result.clone()?,
    })
}

fn lane_view(ranked: &RankedLane, goal: &Goal, trouble: Option<String>) -> LaneView {
    LaneView {
        rank: ranked.rank,
        ahead_by: ranked.ahead_by,
        lane: ranked.entrant.lane,
        goal: goal.id.to_string(),
        agent: goal.contract.agent.clone(),
        status: goal.status.as_str(),
        proof: ranked.entrant.proof,
        hidden: ranked.entrant.hidden,
        usage: goal.spent.total().into(),
        turns: goal.spent.turns,
        wall_ms: ranked.entrant.wall_ms,
        diff: ranked.entrant.diff,
        branch: goal.contract.branch.clone(),
        commit: goal.result.clone(),
        candidate: goal
            .candidate
            .as_ref()
            .map(|candidate| candidate.commit.clone()),
        reason: words::reason(goal),
        inspection: goal
            .verify
            .as_ref()
            .map(|report| (*report.inspection).clone()),
        trouble,
    }
}

fn diff(context: &Context, field: &RaceField<'_>, goal: &Goal) -> Result<Option<DiffSize>, Error> {
    let candidate = goal.candidate.as_ref().map(|candidate| &candidate.commit);
    let Some(commit) = goal.result.as_ref().or(candidate) else {
        return Ok(None);
    };
    let grants = context.grants(field.config);
    RepositorySurvey::of(&grants, field.project.layout.root())
        .and_then(|survey| survey.diff_size(&goal.contract.base.commit, commit))
        .map(Some)
        .map_err(|failure| Error::world(&failure))
}

fn next(of: u32, winner: Option<&WinnerView>, lanes: &[LaneView]) -> Vec<String> {
    let is_open = |lane: &LaneView| {
        !matches!(
            lane.status,
            "done" | "unverified" | "cancelled" | "impossible"
        )
    };
    let index = |goal: &str| goal.split('-').next().unwrap_or_default().to_owned();
    let mut next = Vec::new();
    if let Some(winner) = winner {
        let branch = lanes.iter().find(|lane| lane.lane == winner.lane);
        next.push(format!("kapi diff {}", index(&winner.goal)));
        next.extend(branch.map(|lane| format!("git merge {}", lane.branch)));
    }
    if lanes.iter().any(is_open) {
        next.push(format!("kapi resume {of:03}"));
    }
    next
}

fn human(ui: Ui, view: &RaceView) {
    let head = match (&view.winner, view.ends) {
        (Some(winner), RaceEnd::FirstProved) => format!("lane {} won", winner.lane),
        (Some(winner), RaceEnd::Compare) => format!("lane {} ranks first", winner.lane),
        (None, RaceEnd::FirstProved) => "no lane is proved".to_owned(),
        (None, RaceEnd::Compare) => "no lane ranks first".to_owned(),
    };
    ui.line(&format!("Race {:03}: {head}", view.race));
    let mut rows = vec![
        [
            "", "lane", "status", "proof", "hidden", "cost", "time", "diff", "branch",
        ]
        .map(ToOwned::to_owned),
    ];
    rows.extend(view.lanes.iter().map(cells));
    let mut widths = [0; 9];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in &rows {
        let padded: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        ui.line(&format!("  {}", padded.join("  ").trim_end()));
    }
    for lane in &view.lanes {
        let agent = agent_name(&lane.agent);
        let why = lane.trouble.as_ref().or(lane.reason.as_ref());
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        ui.line(&format!("  lane {} {} {agent}{why}", lane.lane, lane.goal));
        if let Some(by) = lane.ahead_by.filter(|_| view.ends == RaceEnd::Compare) {
            ui.line(&format!("         ahead of the next by {}", by_words(by)));
        }
        if let (None, Some(candidate)) = (&lane.commit, &lane.candidate) {
            let work = short_id(candidate);
            ui.line(&format!("         its unproved work is kept at {work}"));
        }
    }
    for command in &view.next {
        ui.line(&format!("  next     {command}"));
    }
}

fn cells(lane: &LaneView) -> [String; 9] {
    let cost = match (
        lane.usage.usd,
        lane.usage.input_tokens + lane.usage.output_tokens,
    ) {
        (Some(usd), _) => format!("${usd:.2}"),
        (None, 0) => "–".to_owned(),
        (None, tokens) => format!("{} tokens", amount::tokens(tokens)),
    };
    let diff = lane.diff.map_or_else(
        || "–".to_owned(),
        |diff| {
            let files = counted(diff.files, "file");
            format!("{files} +{} -{}", diff.added, diff.removed)
        },
    );
    [
        format!("{}.", lane.rank),
        lane.lane.to_string(),
        lane.status.to_owned(),
        proof_words(lane.proof).to_owned(),
        hidden_words(lane.hidden).to_owned(),
        cost,
        amount::duration(lane.wall_ms),
        diff,
        lane.branch.clone(),
    ]
}

const fn proof_words(proof: LaneProof) -> &'static str {
    match proof {
        LaneProof::Proved => "proved",
        LaneProof::Accepted => "accepted",
        LaneProof::Unproved => "unproved",
        LaneProof::Nothing => "no work",
    }
}

const fn hidden_words(hidden: HiddenChecksResult) -> &'static str {
    match hidden {
        HiddenChecksResult::Passed => "passed",
        HiddenChecksResult::NotAsked => "–",
        HiddenChecksResult::Failed => "failed",
        HiddenChecksResult::NotReached => "not reached",
    }
}

const fn by_words(by: RankCriterion) -> &'static str {
    match by {
        RankCriterion::Proof => "what proves it",
        RankCriterion::Hidden => "the hidden checks",
        RankCriterion::Cost => "its cost",
        RankCriterion::Time => "its time",
        RankCriterion::Diff => "the size of its diff",
    }
}
