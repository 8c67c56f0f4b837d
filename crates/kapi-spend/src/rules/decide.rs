//! Whether a turn may spend: granted, asked about, or refused.
//!
//! Pure rules over the books. What turns under way may still spend counts as if it were spent, so
//! no two of them can go over a cap together.

use std::collections::BTreeSet;

use kapi_core::actor::Actor;

use crate::rules::account::{Account, ReservationId};
use crate::rules::books::{Books, Open};
use crate::rules::caps::{Caps, Scope, Standing};
use crate::rules::day::Day;
use crate::rules::event::{EndedBy, Question, SpendEvent, Used};

/// Milliseconds after which a reservation is given up, whoever holds it: no turn takes a week.
pub const OPEN_MS_MAX: i64 = 7 * 86_400_000;

/// A wish to spend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
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
pub enum Answer {
    /// The turn may begin and spend so much; `None` where nobody knows the price.
    Granted {
        /// Millionths of a US dollar.
        usd_micros: Option<u64>,
    },
    /// A person must say that it may go on; nothing is reserved.
    AskPerson {
        /// What is to be asked.
        question: Question,
        /// The cap that it is about.
        standing: Standing,
    },
    /// A cap is used up; nothing is reserved.
    Refused {
        /// The cap that it is about.
        standing: Standing,
        /// When it counts anew, in milliseconds since the epoch; `None` for a goal's budget, which
        /// only a person raises.
        renewed_at_ms: Option<i64>,
    },
}

/// Whether a turn under way may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It may; so many millionths are left under the tightest cap, `None` where there is none.
    Left(Option<u64>),
    /// A cap is exceeded: the turn must end now.
    Over(Standing),
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
    books: &Books,
    request: &Request,
    caps: &Caps,
    holder: u32,
    now_ms: i64,
) -> (Answer, Vec<SpendEvent>) {
    let today = Day::of_ms(now_ms);
    let standings = standings(books, request, caps, today);
    let least = match request.amount {
        Amount::Known { wanted, least } => least.clamp(1, wanted.max(1)),
        Amount::Unknown => 1,
    };
    let is_free = matches!(request.amount, Amount::Known { wanted: 0, .. });
    let used_up = standings.iter().find(|standing| standing.left() < least);
    if let Some(standing) = used_up.filter(|_| !is_free) {
        let renewed_at_ms = match standing.scope {
            Scope::Goal => None,
            Scope::ProjectDay | Scope::MachineDay => Some(today.end_ms()),
        };
        let answer = Answer::Refused {
            standing: *standing,
            renewed_at_ms,
        };
        return (answer, Vec::new());
    }
    if let Some((question, standing)) = question(books, request.amount, &standings, caps, today) {
        return (Answer::AskPerson { question, standing }, Vec::new());
    }
    let left = standings.iter().map(Standing::left).min();
    let usd_micros = match request.amount {
        Amount::Known { wanted, .. } => Some(left.map_or(wanted, |left| wanted.min(left))),
        Amount::Unknown => None,
    };
    // An earlier grant of the same name ends here: what it used must not be forgotten.
    let before = books.open.get(&request.id);
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
    (Answer::Granted { usd_micros }, events)
}

/// Decides what a turn reports of its use so far, which may be more than it was granted.
#[must_use]
pub fn meter(books: &Books, id: &ReservationId, used: &Used) -> Vec<SpendEvent> {
    let is_new = books.open.get(id).is_some_and(|open| open.metered != *used);
    let event = || SpendEvent::Metered {
        id: id.clone(),
        used: *used,
    };
    is_new.then(event).into_iter().collect()
}

/// Returns whether a turn under way may go on, by the caps of the day.
#[must_use]
pub fn room(books: &Books, id: &ReservationId, caps: &Caps, now_ms: i64) -> Room {
    let Some(open) = books.open.get(id) else {
        return Room::Left(None);
    };
    let standings = day_standings(books, &open.account.project, caps, Day::of_ms(now_ms));
    let over = standings.iter().find(|standing| standing.is_over());
    if let Some(standing) = over {
        return Room::Over(*standing);
    }
    // What it may still use: its own grant, and what nobody else has claimed.
    let own = open
        .claim()
        .saturating_sub(open.metered.usd_micros.unwrap_or(0));
    let left = standings.iter().map(Standing::left).min();
    Room::Left(left.map(|left| left.saturating_add(own)))
}

/// Decides the end of a turn; nothing where it has ended already.
#[must_use]
pub fn settle(books: &Books, id: &ReservationId, used: &Used) -> Vec<SpendEvent> {
    let event = || SpendEvent::Settled {
        id: id.clone(),
        used: *used,
        by: EndedBy::Holder,
    };
    let is_open = books.open.contains_key(id);
    is_open.then(event).into_iter().collect()
}

/// Decides that a turn used nothing; nothing where it has ended already.
#[must_use]
pub fn release(books: &Books, id: &ReservationId) -> Vec<SpendEvent> {
    let event = || SpendEvent::Released {
        id: id.clone(),
        by: EndedBy::Holder,
    };
    let is_open = books.open.contains_key(id);
    is_open.then(event).into_iter().collect()
}

/// Ends the reservations of processes that are gone: by what was metered, or by nothing.
#[must_use]
pub fn recover(books: &Books, living: &BTreeSet<u32>, now_ms: i64) -> Vec<SpendEvent> {
    let is_dead = |open: &Open| {
        let age_ms = now_ms.saturating_sub(open.since_ms);
        !living.contains(&open.holder) || age_ms > OPEN_MS_MAX
    };
    let dead = books.open.iter().filter(|(_, open)| is_dead(open));
    dead.map(|(id, open)| end_of(id, open, EndedBy::Recovery))
        .collect()
}

/// Decides a person's word that turns may go on for today.
///
/// # Errors
/// When it is not a person who says so.
pub fn allow(
    actor: &Actor,
    books: &Books,
    question: Question,
    now_ms: i64,
) -> Result<Vec<SpendEvent>, SpendDenied> {
    match actor {
        Actor::Human { .. } => {}
        Actor::Agent { .. } | Actor::Engine => return Err(SpendDenied::OnlyHuman),
    }
    let day = Day::of_ms(now_ms);
    let event = SpendEvent::Allowed { question, day };
    let is_new = !books.is_allowed(question, day);
    Ok(is_new.then_some(event).into_iter().collect())
}

/// Returns the daily caps of a project and what stands against them.
#[must_use]
pub fn day_standings(books: &Books, project: &str, caps: &Caps, day: Day) -> Vec<Standing> {
    let of_project = caps
        .project_per_day
        .map(|cap| books.standing(Some(project), day, cap));
    let of_machine = caps
        .machine_per_day
        .map(|cap| books.standing(None, day, cap));
    of_project.into_iter().chain(of_machine).collect()
}

fn end_of(id: &ReservationId, open: &Open, by: EndedBy) -> SpendEvent {
    let used = open.metered;
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
fn standings(books: &Books, request: &Request, caps: &Caps, day: Day) -> Vec<Standing> {
    let (id, account) = (&request.id, &request.account);
    let own = books.open.get(id);
    let claim = own.map_or(0, Open::claim);
    let metered = own.and_then(|open| open.metered.usd_micros).unwrap_or(0);
    let of_goal = request.goal.map(|goal| Standing {
        scope: Scope::Goal,
        spent: goal.spent.saturating_add(metered),
        reserved: books.reserved(Some(id), |other| {
            other.project == account.project && other.goal == account.goal
        }),
        cap: goal.cap,
    });
    let of_day = day_standings(books, &account.project, caps, day)
        .into_iter()
        .map(|standing| Standing {
            spent: standing.spent.saturating_add(metered),
            reserved: standing.reserved.saturating_sub(claim),
            ..standing
        });
    of_goal.into_iter().chain(of_day).collect()
}

/// Returns what a person must be asked before this, if anything.
fn question(
    books: &Books,
    amount: Amount,
    standings: &[Standing],
    caps: &Caps,
    today: Day,
) -> Option<(Question, Standing)> {
    let is_unknown = amount == Amount::Unknown;
    if is_unknown && !books.is_allowed(Question::UnknownPrice, today) {
        return standings
            .first()
            .map(|standing| (Question::UnknownPrice, *standing));
    }
    if matches!(amount, Amount::Known { wanted: 0, .. })
        || books.is_allowed(Question::Threshold, today)
    {
        return None;
    }
    let is_near = |standing: &&Standing| match standing.scope {
        Scope::Goal => false,
        Scope::ProjectDay | Scope::MachineDay => standing.has_reached(caps.ask_at_percent),
    };
    standings
        .iter()
        .find(is_near)
        .map(|standing| (Question::Threshold, *standing))
}
