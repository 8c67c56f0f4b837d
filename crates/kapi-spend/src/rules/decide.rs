//! Whether a turn may spend: granted, asked about, or refused.
//!
//! Pure rules over the books. What turns under way may still spend counts as if it were spent, so
//! no two of them can go over a cap together.

use std::collections::BTreeSet;

use kapi_core::actor::Actor;
use kapi_core::room::CallClaim;

use crate::rules::account::{Account, ReservationId};
use crate::rules::caps::{CapScope, CapStatus, Caps};
use crate::rules::day::Day;
use crate::rules::event::{EndedBy, SpendEvent, SpendPermit, TurnUsage};
use crate::rules::totals::{LedgerTotals, OpenTurn};

/// Milliseconds after which a reservation is given up, whoever holds it: no turn takes a week.
pub const OPEN_MS_MAX: i64 = 7 * 86_400_000;

/// A wish to spend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendRequest {
    /// The reservation's name.
    pub id: ReservationId,
    /// Where it will be booked.
    pub account: Account,
    /// What the turn may cost.
    pub amount: Amount,
    /// The goal's own budget; `None` where it has none in money.
    pub goal: Option<GoalBudget>,
}

/// What a turn may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So much, in millionths of a US dollar.
    Known {
        /// What is wished for; as much of it as there is left is granted.
        wanted: u64,
        /// With less than this the turn is not worth beginning.
        least: u64,
    },
    /// Nobody knows what the model costs.
    Unknown,
}

/// A goal's own budget in millionths of a US dollar, as its contract and its log say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoalBudget {
    /// What the goal has spent.
    pub spent: u64,
    /// The most it may.
    pub cap: u64,
}

/// The answer to a wish to spend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpendAnswer {
    /// The turn may begin and spend so much; `None` where nobody knows the price.
    Granted {
        /// Millionths of a US dollar.
        usd_micros: Option<u64>,
    },
    /// A person must say that it may go on; nothing is reserved.
    AskPerson {
        /// What is to be asked.
        question: SpendPermit,
        /// The cap that it is about.
        cap_status: CapStatus,
    },
    /// A cap is used up; nothing is reserved.
    Refused {
        /// The cap that it is about.
        cap_status: CapStatus,
        /// When it counts anew, in milliseconds since the epoch; `None` for a goal's budget, which
        /// only a person raises.
        renewed_at_ms: Option<i64>,
    },
}

/// Whether a turn under way may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnAllowance {
    /// It may; so many millionths are left under the tightest cap, `None` where there is none.
    Left(Option<u64>),
    /// A cap is exceeded: the turn must end now.
    Over(CapStatus),
}

/// A rule that refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpendDenied {
    /// Only a person answers for spending.
    #[error("only the user may allow spending to continue")]
    OnlyHuman,
}

/// Decides a wish to spend. `holder` is the place of the process that asks.
#[must_use]
pub fn reserve(
    totals: &LedgerTotals,
    request: &SpendRequest,
    caps: &Caps,
    holder: u32,
    now_ms: i64,
) -> (SpendAnswer, Vec<SpendEvent>) {
    let today = Day::of_ms(now_ms);
    let standings = standings(totals, request, caps, today);
    let least = match request.amount {
        Amount::Known { wanted, least } => least.clamp(1, wanted.max(1)),
        Amount::Unknown => 1,
    };
    let is_free = matches!(request.amount, Amount::Known { wanted: 0, .. });
    let used_up = standings
        .iter()
        .find(|cap_status| cap_status.left() < least);
    if let Some(cap_status) = used_up.filter(|_| !is_free) {
        let renewed_at_ms = match cap_status.scope {
            CapScope::Goal => None,
            CapScope::ProjectDay | CapScope::MachineDay => Some(today.end_ms()),
        };
        let answer = SpendAnswer::Refused {
            cap_status: *cap_status,
            renewed_at_ms,
        };
        return (answer, Vec::new());
    }
    if let Some((question, cap_status)) = question(totals, request.amount, &standings, caps, today)
    {
        return (
            SpendAnswer::AskPerson {
                question,
                cap_status,
            },
            Vec::new(),
        );
    }
    let left = standings.iter().map(CapStatus::left).min();
    let usd_micros = match request.amount {
        Amount::Known { wanted, .. } => Some(left.map_or(wanted, |left| wanted.min(left))),
        Amount::Unknown => None,
    };
    // An earlier grant of the same name ends here: what it used must not be forgotten.
    let before = totals.open.get(&request.id);
    let mut events: Vec<SpendEvent> = before
        .map(|open| end_of(&request.id, open, EndedBy::Holder))
        .into_iter()
        .collect();
    events.push(SpendEvent::Reserved {
        id: request.id.clone(),
        account: request.account.clone(),
        usd_micros,
        holder,
    });
    (SpendAnswer::Granted { usd_micros }, events)
}

/// Decides what a turn reports of its use so far, which may be more than it was granted.
#[must_use]
pub fn meter(totals: &LedgerTotals, id: &ReservationId, used: &TurnUsage) -> Vec<SpendEvent> {
    let is_new = totals
        .open
        .get(id)
        .is_some_and(|open| open.metered != *used);
    let event = || SpendEvent::Metered {
        id: id.clone(),
        used: *used,
    };
    is_new.then(event).into_iter().collect()
}

/// Decides what a turn reports of its use so far, and of what its model calls under way may use
/// more.
#[must_use]
pub fn claim(
    totals: &LedgerTotals,
    id: &ReservationId,
    used: &TurnUsage,
    claim: &CallClaim,
) -> Vec<SpendEvent> {
    let mut events = meter(totals, id, used);
    if totals
        .open
        .get(id)
        .is_some_and(|open| open.claimed != *claim)
    {
        events.push(SpendEvent::Claimed {
            id: id.clone(),
            claim: *claim,
        });
    }
    events
}

/// Returns whether a turn under way may go on, by the caps of the day.
#[must_use]
pub fn allowance(
    totals: &LedgerTotals,
    id: &ReservationId,
    caps: &Caps,
    now_ms: i64,
) -> TurnAllowance {
    let Some(open) = totals.open.get(id) else {
        return TurnAllowance::Left(None);
    };
    let standings = day_standings(totals, &open.account.project, caps, Day::of_ms(now_ms));
    let over = standings.iter().find(|cap_status| cap_status.is_over());
    if let Some(cap_status) = over {
        return TurnAllowance::Over(*cap_status);
    }
    // What it may still use: its own grant, and what nobody else has claimed.
    let own = open
        .claim()
        .saturating_sub(open.metered.usd_micros.unwrap_or(0));
    let left = standings.iter().map(CapStatus::left).min();
    TurnAllowance::Left(left.map(|left| left.saturating_add(own)))
}

/// Decides the end of a turn; nothing where it has ended already.
#[must_use]
pub fn settle(totals: &LedgerTotals, id: &ReservationId, used: &TurnUsage) -> Vec<SpendEvent> {
    let event = || SpendEvent::Settled {
        id: id.clone(),
        used: *used,
        by: EndedBy::Holder,
    };
    let is_open = totals.open.contains_key(id);
    is_open.then(event).into_iter().collect()
}

/// Decides that a turn used nothing; nothing where it has ended already.
#[must_use]
pub fn release(totals: &LedgerTotals, id: &ReservationId) -> Vec<SpendEvent> {
    let event = || SpendEvent::Released {
        id: id.clone(),
        by: EndedBy::Holder,
    };
    let is_open = totals.open.contains_key(id);
    is_open.then(event).into_iter().collect()
}

/// Ends the reservations of processes that are gone: by what was metered, or by nothing.
#[must_use]
pub fn recover(totals: &LedgerTotals, living: &BTreeSet<u32>, now_ms: i64) -> Vec<SpendEvent> {
    let is_dead = |open: &OpenTurn| {
        let age_ms = now_ms.saturating_sub(open.since_ms);
        !living.contains(&open.holder) || age_ms > OPEN_MS_MAX
    };
    let dead = totals.open.iter().filter(|(_, open)| is_dead(open));
    dead.map(|(id, open)| end_of(id, open, EndedBy::Recovery))
        .collect()
}

/// Decides a person's word that turns may go on for today.
///
/// # Errors
/// When it is not a person who says so.
pub fn allow(
    actor: &Actor,
    totals: &LedgerTotals,
    question: SpendPermit,
    now_ms: i64,
) -> Result<Vec<SpendEvent>, SpendDenied> {
    match actor {
        Actor::Human { .. } => {}
        Actor::Agent { .. } | Actor::Engine => return Err(SpendDenied::OnlyHuman),
    }
    let day = Day::of_ms(now_ms);
    let event = SpendEvent::Allowed { question, day };
    let is_new = !totals.is_allowed(question, day);
    Ok(is_new.then_some(event).into_iter().collect())
}

/// Returns the daily caps of a project and what stands against them.
#[must_use]
pub fn day_standings(
    totals: &LedgerTotals,
    project: &str,
    caps: &Caps,
    day: Day,
) -> Vec<CapStatus> {
    let of_project = caps
        .project_per_day
        .map(|cap| totals.cap_status(Some(project), day, cap));
    let of_machine = caps
        .machine_per_day
        .map(|cap| totals.cap_status(None, day, cap));
    of_project.into_iter().chain(of_machine).collect()
}

fn end_of(id: &ReservationId, open: &OpenTurn, by: EndedBy) -> SpendEvent {
    // A call of which nobody saw the end may have used all that it could.
    let used = open.metered.with_claim(&open.claimed);
    let is_unused = used.tokens.is_zero() && used.usd_micros == Some(0);
    if is_unused {
        SpendEvent::Released { id: id.clone(), by }
    } else {
        SpendEvent::Settled {
            id: id.clone(),
            used,
            by,
        }
    }
}

/// Returns every cap that a wish meets, as if a reservation of the same name had just ended.
fn standings(
    totals: &LedgerTotals,
    request: &SpendRequest,
    caps: &Caps,
    day: Day,
) -> Vec<CapStatus> {
    let (id, account) = (&request.id, &request.account);
    let own = totals.open.get(id);
    let claim = own.map_or(0, OpenTurn::claim);
    let metered = own.and_then(|open| open.metered.usd_micros).unwrap_or(0);
    let of_goal = request.goal.map(|goal| CapStatus {
        scope: CapScope::Goal,
        spent: goal.spent.saturating_add(metered),
        reserved: totals.reserved(Some(id), |other| {
            other.project == account.project && other.goal == account.goal
        }),
        cap: goal.cap,
    });
    let of_day = day_standings(totals, &account.project, caps, day)
        .into_iter()
        .map(|cap_status| CapStatus {
            spent: cap_status.spent.saturating_add(metered),
            reserved: cap_status.reserved.saturating_sub(claim),
            ..cap_status
        });
    of_goal.into_iter().chain(of_day).collect()
}

/// Returns what a person must be asked before this, if anything.
fn question(
    totals: &LedgerTotals,
    amount: Amount,
    standings: &[CapStatus],
    caps: &Caps,
    today: Day,
) -> Option<(SpendPermit, CapStatus)> {
    let is_unknown = amount == Amount::Unknown && !caps.allows_unpriced;
    if is_unknown && !totals.is_allowed(SpendPermit::UnknownPrice, today) {
        return standings
            .first()
            .map(|cap_status| (SpendPermit::UnknownPrice, *cap_status));
    }
    if matches!(amount, Amount::Known { wanted: 0, .. })
        || totals.is_allowed(SpendPermit::Threshold, today)
    {
        return None;
    }
    let is_near = |cap_status: &&CapStatus| match cap_status.scope {
        CapScope::Goal => false,
        CapScope::ProjectDay | CapScope::MachineDay => cap_status.has_reached(caps.ask_at_percent),
    };
    standings
        .iter()
        .find(is_near)
        .map(|cap_status| (SpendPermit::Threshold, *cap_status))
}
