//! Where a session and the drive of its goal meet: whether the model is at work, whether a turn is
//! wanted, how one ended.
//!
//! Two threads share it: one hears the session, the other performs the goal's effects. Knows no rule.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kapi_agent::stream::score;
use kapi_core::agent_end::{AgentEnd, AgentRun, Claim};
use kapi_core::id::EffectId;
use kapi_core::usage::Usage;
use kapi_machine::watch::EffectWatch;

use crate::perform::session::{SessionVoice, TurnOffer};
use crate::rules::effect::AgentPurpose;
use crate::rules::outcome::GoalOutcome;

/// How often a thread that waits looks whether its effect is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// Whether a turn begins by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attendance {
    /// It is offered to the session as soon as its model is idle.
    ByItself,
    /// It waits for the person: their next message begins it, or a resume.
    AfterPerson,
}

/// How the session's model ended what it was at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRun {
    /// How it ended.
    pub end: AgentEnd,
    /// What it claims with its end, where its tools did not.
    pub claim: Option<Claim>,
    /// Its last message, capped.
    pub message: String,
    /// What it used.
    pub usage: Usage,
    /// The session's name.
    pub session: Option<String>,
}

/// The meeting point.
#[derive(Debug, Default)]
pub struct SessionSeat {
    state: Mutex<SeatState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SeatState {
    /// The session's model is at work.
    is_running: bool,
    /// What it does next is beside the goal: an answer to a side question.
    is_aside: bool,
    /// Nothing is offered until the person begins or resumes.
    is_held: bool,
    /// The effect whose turn is awaited.
    awaited: Option<EffectId>,
    /// The effect that was offered last.
    offered: Option<EffectId>,
    /// The run that ended and was not taken yet.
    ended: Option<AgentRun>,
    /// Tools that were let through since the run began, and what they amount to.
    tools: u32,
    score: u32,
}

/// What a turn that has not ended waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// Its end: the model is at work.
    Nothing,
    /// The person.
    Person,
    /// To be offered.
    Offer,
    /// The session, which was offered it.
    Session,
}

impl SeatState {
    fn due(&self, effect: &EffectId) -> Due {
        if self.is_running {
            Due::Nothing
        } else if self.is_held {
            Due::Person
        } else if self.is_aside || self.offered.as_ref() == Some(effect) {
            Due::Session
        } else {
            Due::Offer
        }
    }

    /// Returns a run if it is a turn. While a contract is drafted the person is asked what only they
    /// can tell, so the draft comes in a later run.
    fn turn_of(&mut self, run: AgentRun, purpose: AgentPurpose) -> Option<AgentRun> {
        if purpose == AgentPurpose::Setup && run.end == AgentEnd::Finished {
            self.is_held = true;
            return None;
        }
        Some(run)
    }
}

impl SessionSeat {
    /// Takes note that the session's model begins to work.
    pub fn begins(&self) {
        let mut state = self.lock();
        state.is_running = true;
        state.ended = None;
        state.tools = 0;
        state.score = 0;
        self.changed.notify_all();
    }

    /// Takes note of a tool that is about to run.
    pub fn uses(&self, tool: &str) {
        let mut state = self.lock();
        state.tools = state.tools.saturating_add(1);
        state.score = state.score.saturating_add(score::of_tool(tool));
    }

    /// Takes note that the model has come to rest.
    pub fn ends(&self, run: SessionRun) {
        let mut state = self.lock();
        state.is_running = false;
        if std::mem::take(&mut state.is_aside) {
            self.changed.notify_all();
            return;
        }
        state.is_held = false;
        // What nobody waits for was no turn of the goal's.
        // Who claims by ending tells of no tools: nothing is known of how much was done.
        let score = run.claim.is_none().then_some(state.score);
        state.ended = state.awaited.is_some().then(|| AgentRun {
            end: run.end,
            claim: run.claim,
            message: run.message,
            session: run.session,
            usage: run.usage,
            tools: state.tools,
            isolation: None,
            score,
        });
        self.changed.notify_all();
    }

    /// Keeps turns from being offered until the next run ends or the person resumes.
    pub fn hold(&self) {
        self.lock().is_held = true;
    }

    /// Takes note that the next run is an answer to a side question, and no turn.
    pub fn set_aside(&self) {
        self.lock().is_aside = true;
    }

    /// Lets the turn that waits be offered, once more if the session did not take it.
    pub fn release(&self) {
        let mut state = self.lock();
        state.is_held = false;
        state.offered = None;
        self.changed.notify_all();
    }

    /// Tells whether the session's model is at work.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.lock().is_running
    }

    /// Returns the effect whose turn is awaited; one that is about to be is waited for as long.
    #[must_use]
    pub fn awaited(&self, within: Duration) -> Option<EffectId> {
        let end = Instant::now() + within;
        let mut state = self.lock();
        while state.awaited.is_none() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.wait(state, left);
        }
        state.awaited.clone()
    }

    /// Waits until another effect's turn is awaited than this one's, which is no longer wanted: what the
    /// model does from now on belongs to that.
    pub fn await_after(&self, effect: &EffectId, within: Duration) {
        let end = Instant::now() + within;
        let mut state = self.lock();
        while state.awaited.as_ref().is_none_or(|it| it == effect) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.wait(state, left);
        }
    }

    /// Waits until a turn was taken and has ended, or is no longer wanted.
    pub(super) fn attend(
        &self,
        offer: &TurnOffer,
        attendance: Attendance,
        voice: SessionVoice<'_>,
        watch: &EffectWatch<'_>,
    ) -> GoalOutcome {
        let mut state = self.lock();
        state.awaited = Some(offer.effect.clone());
        if attendance == Attendance::AfterPerson && !state.is_running {
            state.is_held = true;
        }
        self.changed.notify_all();
        let mut is_told = false;
        let outcome = loop {
            let ended = state.ended.take();
            if watch.cancel.is_raised() {
                break cancelled(ended);
            }
            if let Some(run) = ended.and_then(|run| state.turn_of(run, offer.purpose)) {
                break GoalOutcome::Agent(run);
            }
            match state.due(&offer.effect) {
                Due::Nothing => is_told = false,
                Due::Person if is_told => {}
                Due::Person => {
                    is_told = true;
                    (voice.hold)(offer);
                }
                Due::Offer => {
                    state.offered = Some(offer.effect.clone());
                    (voice.offer)(offer);
                }
                Due::Session => {}
            }
            state = self.wait(state, LOOK);
        };
        if offer.purpose == AgentPurpose::Setup {
            // Who was asked about the contract is not waited for once there is one.
            state.is_held = false;
        }
        state.awaited = None;
        self.changed.notify_all();
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, SeatState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, SeatState>,
        longest: Duration,
    ) -> MutexGuard<'a, SeatState> {
        let waited = self.changed.wait_timeout(state, longest);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// What was used counts, whether the turn was wanted or not.
fn cancelled(run: Option<AgentRun>) -> GoalOutcome {
    let (usage, session) = run.map_or((Usage::default(), None), |run| (run.usage, run.session));
    GoalOutcome::Cancelled { usage, session }
}
