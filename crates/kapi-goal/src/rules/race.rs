//! Several goals with the same contract: which of them won, and how they rank.
//!
//! Pure: it compares what the goals' logs say. Nothing here starts or stops a lane, and how large a
//! diff is has to be said by whoever can read the repository.

use kapi_check::rules::proof::verify_run::{Checks, VerifyRun};
use serde::Serialize;

use crate::rules::state::{Goal, GoalStatus};

/// What a lane's result rests on, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneProof {
    /// It is done: every check passed, and the judge, where there is one, agreed.
    Proved,
    /// It was accepted without a verify command.
    Accepted,
    /// There is work, and nothing proves it.
    Unproved,
    /// There is no work.
    Nothing,
}

/// How a lane came out of the hidden checks, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HiddenChecksResult {
    /// They passed.
    Passed,
    /// The contract has none.
    NotAsked,
    /// The visible checks passed, and these did not.
    Failed,
    /// The work never came so far.
    NotReached,
}

/// How much differs between the base and a lane's work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DiffSize {
    /// Files that differ.
    pub files: u64,
    /// Lines that are new; a binary file has none.
    pub added: u64,
    /// Lines that are gone.
    pub removed: u64,
}

/// One lane, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entrant {
    /// Its number, from 1.
    pub lane: u32,
    /// What its result rests on.
    pub proof: LaneProof,
    /// How it came out of the hidden checks.
    pub hidden: HiddenChecksResult,
    /// What it cost in millionths of a US dollar, if that is known.
    pub usd_micros: Option<u64>,
    /// The tokens it used; 0 where the agent does not report them.
    pub tokens: u64,
    /// Milliseconds during which something was being performed.
    pub wall_ms: u64,
    /// How large its diff is, where there is one.
    pub diff: Option<DiffSize>,
}

/// Why a lane stands before the one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RankCriterion {
    /// Its result rests on more.
    Proof,
    /// It came better out of the hidden checks.
    Hidden,
    /// It cost less.
    Cost,
    /// It took less time.
    Time,
    /// It changes less.
    Diff,
}

/// A lane and its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RankedLane {
    /// The place, from 1; lanes that nothing tells apart share one.
    pub rank: u32,
    /// The first criterion that puts it before the lane after it; nothing on the last one, and on
    /// one that shares its place with the next.
    pub ahead_by: Option<RankCriterion>,
    /// The lane.
    pub entrant: Entrant,
}

/// When a lane was proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofTime {
    /// When its proof was recorded, in milliseconds since the epoch.
    pub at_ms: i64,
    /// The lane.
    pub lane: u32,
}

impl Entrant {
    /// Returns what is compared of a lane's goal.
    #[must_use]
    pub fn of(goal: &Goal, lane: u32, diff: Option<DiffSize>) -> Self {
        let total = goal.spent.total();
        Self {
            lane,
            proof: proof(goal),
            hidden: hidden(goal),
            usd_micros: total.usd_micros,
            tokens: total.tokens(),
            wall_ms: goal.spent.wall_ms,
            diff,
        }
    }
}

impl DiffSize {
    /// Returns the lines that are new or gone.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.added.saturating_add(self.removed)
    }
}

/// Returns the lane that was proved first; of those in the same millisecond, the lowest.
#[must_use]
pub fn first(proved: &[ProofTime]) -> Option<u32> {
    let earliest = proved
        .iter()
        .min_by_key(|proved| (proved.at_ms, proved.lane));
    earliest.map(|proved| proved.lane)
}

/// Ranks lanes: by proof, hidden checks, cost, time and the size of the diff, in this order.
///
/// Cost is compared in whole cents if every lane that has work knows its own; otherwise in whole
/// thousands of tokens if every one of them reports tokens; otherwise not at all, for a lane
/// must not win by keeping quiet. Time is compared in whole seconds, diffs by lines and then by
/// files, and a lane without a diff comes last. Lanes that are still alike share their place and
/// stand in the order of their numbers.
#[must_use]
pub fn rank(mut entrants: Vec<Entrant>) -> Vec<RankedLane> {
    let currency = Currency::of(&entrants);
    entrants.sort_by_key(|entrant| (measures(entrant, currency), entrant.lane));
    let mut ranked: Vec<RankedLane> = Vec::new();
    for entrant in entrants {
        let here = measures(&entrant, currency);
        let location =
            u32::try_from(ranked.len()).map_or(u32::MAX, |before| before.saturating_add(1));
        let mut rank = location;
        if let Some(before) = ranked.last_mut() {
            before.ahead_by = difference(&measures(&before.entrant, currency), &here);
            if before.ahead_by.is_none() {
                rank = before.rank;
            }
        }
        ranked.push(RankedLane {
            rank,
            ahead_by: None,
            entrant,
        });
    }
    ranked
}

fn proof(goal: &Goal) -> LaneProof {
    match goal.status {
        GoalStatus::Done => LaneProof::Proved,
        GoalStatus::Unverified => LaneProof::Accepted,
        GoalStatus::Setup
        | GoalStatus::Proposed
        | GoalStatus::Active
        | GoalStatus::Waiting
        | GoalStatus::Blocked
        | GoalStatus::Stalled
        | GoalStatus::Paused
        | GoalStatus::Impossible
        | GoalStatus::Cancelled => match goal.candidate {
            Some(_) => LaneProof::Unproved,
            None => LaneProof::Nothing,
        },
    }
}

fn hidden(goal: &Goal) -> HiddenChecksResult {
    if goal.contract.hidden.is_none() {
        return HiddenChecksResult::NotAsked;
    }
    let runs = goal.verify.iter().flat_map(|report| &report.runs);
    let mut hidden = runs.filter(|run| run.checks == Checks::Hidden).peekable();
    if hidden.peek().is_none() {
        HiddenChecksResult::NotReached
    } else if hidden.all(VerifyRun::passed) {
        HiddenChecksResult::Passed
    } else {
        HiddenChecksResult::Failed
    }
}

/// In what all lanes' cost can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Currency {
    Money,
    Tokens,
    Nothing,
}

const MICROS_IN_A_CENT: u64 = 10_000;
const TOKENS_COMPARED: u64 = 1_000;
const MS_COMPARED: u64 = 1_000;

impl Currency {
    fn of(entrants: &[Entrant]) -> Self {
        // A lane that never worked has cost nothing that could be reported.
        let mut worked = entrants
            .iter()
            .filter(|entrant| entrant.proof != LaneProof::Nothing)
            .peekable();
        if worked.peek().is_none() {
            return Self::Nothing;
        }
        let worked: Vec<&Entrant> = worked.collect();
        if worked.iter().all(|entrant| entrant.usd_micros.is_some()) {
            Self::Money
        } else if worked.iter().all(|entrant| entrant.tokens > 0) {
            Self::Tokens
        } else {
            Self::Nothing
        }
    }
}

/// What lanes are compared by, each the smaller the better.
type Measures = (LaneProof, HiddenChecksResult, u64, u64, (u64, u64));

fn measures(entrant: &Entrant, currency: Currency) -> Measures {
    let cost = match currency {
        Currency::Money => entrant.usd_micros.unwrap_or_default() / MICROS_IN_A_CENT,
        Currency::Tokens => entrant.tokens / TOKENS_COMPARED,
        Currency::Nothing => 0,
    };
    let diff = entrant
        .diff
        .map_or((u64::MAX, u64::MAX), |diff| (diff.lines(), diff.files));
    let seconds = entrant.wall_ms / MS_COMPARED;
    (entrant.proof, entrant.hidden, cost, seconds, diff)
}

fn difference(before: &Measures, after: &Measures) -> Option<RankCriterion> {
    if before.0 != after.0 {
        Some(RankCriterion::Proof)
    } else if before.1 != after.1 {
        Some(RankCriterion::Hidden)
    } else if before.2 != after.2 {
        Some(RankCriterion::Cost)
    } else if before.3 != after.3 {
        Some(RankCriterion::Time)
    } else if before.4 != after.4 {
        Some(RankCriterion::Diff)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
