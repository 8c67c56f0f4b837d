//! The lanes of a race: which goals they are, which of them won, and stopping the others.
//!
//! The winner is recorded once, under the project's lock, and stands whatever is proved later. What
//! a lane is worth beside the others is compared in the core; nothing here drives one.

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_sys::disk::replace_durably;
use serde::{Deserialize, Serialize};

use crate::record::error::EngineError;
use crate::record::json_file::json_file;
use crate::record::project::Project;
use crate::rules::command::GoalCommand;
use crate::rules::contract::{Race, RaceEnd};
use crate::rules::event::GoalEvent;
use crate::rules::race::{ProofTime, first};
use crate::rules::state::Goal;

/// The layout of `race.json`.
const VERSION: u32 = 1;

/// One lane of a race.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Where it stands among the others.
    pub race: Race,
    /// Its goal.
    pub goal: Goal,
}

/// The lane that won, as recorded beside the race's first goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Winner {
    v: u32,
    /// The index of the race's first goal.
    pub race: u32,
    /// The lane.
    pub lane: u32,
    /// Its goal.
    pub goal: GoalId,
    /// The commit that was proved.
    pub commit: String,
    /// When the proof was recorded, in milliseconds since the epoch.
    pub proved_at_ms: i64,
}

impl Winner {
    /// Returns why the other lanes are stopped.
    #[must_use]
    pub fn reason(&self) -> String {
        format!("lane {} won", self.lane)
    }
}

/// How many lanes are driven at once, as kept beside the race's first goal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Jobs {
    v: u32,
    jobs: u32,
}

/// Keeps how many lanes of a race are driven at once, for whoever goes on with it.
///
/// # Errors
/// When the disk refuses.
pub fn keep_jobs(project: &Project<'_>, first: &GoalId, jobs: u32) -> Result<(), EngineError> {
    let kept = Jobs { v: VERSION, jobs };
    let bytes = serde_json::to_vec(&kept).map_err(|source| EngineError::Encode {
        what: "how many lanes are driven at once",
        source,
    })?;
    replace_durably(project.disk, &jobs_file(project, first), &bytes)?;
    Ok(())
}

/// Returns how many lanes of a race are driven at once, if that was ever said.
///
/// # Errors
/// When the disk refuses.
pub fn kept_jobs(project: &Project<'_>, of: u32) -> Result<Option<u32>, EngineError> {
    let Some(first) = first_goal(project, of)? else {
        return Ok(None);
    };
    let bytes = project.disk.read(&jobs_file(project, &first), 0)?;
    // One that is damaged was never said: it changes how soon the race ends, and nothing else.
    let kept = bytes.and_then(|bytes| serde_json::from_slice::<Jobs>(&bytes).ok());
    Ok(kept
        .filter(|kept| kept.v == VERSION && kept.jobs > 0)
        .map(|kept| kept.jobs))
}

fn jobs_file(project: &Project<'_>, first: &GoalId) -> std::path::PathBuf {
    project.layout.goal(first).dir().join("jobs.json")
}

/// Returns the lanes of the race that a goal of this index began, sorted by their numbers.
///
/// A lane is missing when its creation was cut off or its log is damaged.
///
/// # Errors
/// When the disk refuses.
pub fn lanes(project: &Project<'_>, of: u32) -> Result<Vec<Lane>, EngineError> {
    let mut found: Vec<Lane> = Vec::new();
    for id in project.goal_ids()? {
        // The first goal gives the race its name, so no lane has a lower index.
        if id.index() < of {
            continue;
        }
        // A goal that is damaged is told by whoever looks at it; the other lanes go on.
        let Ok(goal) = project.load(&id) else {
            continue;
        };
        match goal.contract.race.clone() {
            Some(race) if race.of == of => found.push(Lane { race, goal }),
            Some(_) | None => {}
        }
        let is_last = |lane: &Lane| u32::try_from(found.len()) == Ok(lane.race.lanes);
        if found.last().is_some_and(is_last) {
            break;
        }
    }
    found.sort_by_key(|lane| lane.race.lane);
    Ok(found)
}

/// Returns the recorded winner of a race, if it has one.
///
/// # Errors
/// When the disk refuses.
pub fn winner(project: &Project<'_>, of: u32) -> Result<Option<Winner>, EngineError> {
    let Some(first) = first_goal(project, of)? else {
        return Ok(None);
    };
    read(project, &first, of)
}

/// Finds and records who won, once: the lane whose proof was recorded first. `None` while no lane
/// is proved, and in a race that ends in a comparison.
///
/// # Errors
/// When the disk refuses, or another process holds the project for too long.
pub fn decide_winner(project: &Project<'_>, of: u32) -> Result<Option<Winner>, EngineError> {
    let Some(first) = first_goal(project, of)? else {
        return Ok(None);
    };
    let _held = project.lock()?;
    if let Some(winner) = read(project, &first, of)? {
        return Ok(Some(winner));
    }
    let Some(winner) = earliest(project, of)? else {
        return Ok(None);
    };
    let bytes = json_file(&winner, "the winner of a race")?;
    replace_durably(project.disk, &project.layout.goal(&first).race(), &bytes)?;
    Ok(Some(winner))
}

/// Cancels every other lane in a person's name, with the reason; one that has ended stays as it
/// is. Returns which were stopped now.
///
/// # Errors
/// When a lane cannot be stopped; the others are all the same.
pub fn stop_others(
    project: &Project<'_>,
    person: &Actor,
    winner: &Winner,
) -> Result<Vec<GoalId>, EngineError> {
    let mut stopped = Vec::new();
    let mut refused = None;
    for lane in lanes(project, winner.race)? {
        let goal = lane.goal;
        if goal.id == winner.goal || goal.status.is_terminal() {
            continue;
        }
        let reason = Some(winner.reason());
        match project.submit(&goal.id, person, &GoalCommand::Cancel { reason }) {
            Ok(_) => stopped.push(goal.id),
            // It ended in the meantime.
            Err(EngineError::Denied(_)) if has_ended(project, &goal.id) => {}
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    refused.map_or(Ok(stopped), Err)
}

/// Decides who won and stops the other lanes, if the race ends with the first proof and there is
/// one. Safe to repeat; costs nothing where the goal is no lane.
///
/// # Errors
/// When the disk refuses, or a lane cannot be stopped.
pub fn settle(
    project: &Project<'_>,
    person: &Actor,
    goal: &Goal,
) -> Result<Option<Winner>, EngineError> {
    let race = goal.contract.race.as_ref();
    let Some(race) = race.filter(|race| race.ends == RaceEnd::FirstProved) else {
        return Ok(None);
    };
    let winner = decide_winner(project, race.of)?;
    if let Some(winner) = &winner {
        stop_others(project, person, winner)?;
    }
    Ok(winner)
}

fn has_ended(project: &Project<'_>, id: &GoalId) -> bool {
    let goal = project.load(id);
    goal.is_ok_and(|goal| goal.status.is_terminal())
}

fn first_goal(project: &Project<'_>, of: u32) -> Result<Option<GoalId>, EngineError> {
    let ids = project.goal_ids()?;
    Ok(ids.into_iter().find(|id| !id.is_part() && id.index() == of))
}

/// A record that is damaged or of another race is none: the streams say it again.
fn read(project: &Project<'_>, first: &GoalId, of: u32) -> Result<Option<Winner>, EngineError> {
    let file = project.layout.goal(first).race();
    let bytes = project.disk.read(&file, 0)?;
    let read = bytes.and_then(|bytes| serde_json::from_slice::<Winner>(&bytes).ok());
    Ok(read.filter(|winner| winner.v == VERSION && winner.race == of))
}

fn earliest(project: &Project<'_>, of: u32) -> Result<Option<Winner>, EngineError> {
    let mut proofs = Vec::new();
    for lane in lanes(project, of)? {
        // A result is taken back when a goal is reopened, and it was the first all the same; but
        // only a goal that was done can have one in its log.
        if lane.race.ends != RaceEnd::FirstProved || lane.goal.candidate.is_none() {
            continue;
        }
        let done = project
            .log(&lane.goal.id)?
            .into_iter()
            .find_map(|logged| match logged.event {
                GoalEvent::GoalDone {
                    commit,
                    verified: true,
                    ..
                } => Some((logged.at_ms, commit)),
                _ => None,
            });
        if let Some((proved_at_ms, commit)) = done {
            proofs.push(Winner {
                v: VERSION,
                race: of,
                lane: lane.race.lane,
                goal: lane.goal.id,
                commit,
                proved_at_ms,
            });
        }
    }
    let proved: Vec<ProofTime> = proofs
        .iter()
        .map(|proof| ProofTime {
            at_ms: proof.proved_at_ms,
            lane: proof.lane,
        })
        .collect();
    let lane = first(&proved);
    Ok(proofs.into_iter().find(|proof| Some(proof.lane) == lane))
}
