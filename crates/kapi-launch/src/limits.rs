//! The limits of one launch on tokens and money: what is left is told to the gateway, and whoever
//! passes it all the same is ended. A person can raise them while it runs.
//!
//! Caps on a day's spending are kept by whoever books the launch, around this.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kapi_core::room::Room;
use kapi_core::usage::Usage;
use kapi_machine::watch::{Activity, RoomQuery};
use kapi_run::spending::usage_meter::{MeterPart, UsageLimits, UsageMeter};

use super::context::LaunchHandlers;

/// The use of one launch, within its limits.
pub(crate) struct LimitedUse<'a> {
    meter: &'a UsageMeter<'a>,
    part: MeterPart<'a>,
    stage: &'a LaunchHandlers<'a>,
    /// Returns what the limits are now; `None` where that cannot be read, and they stay.
    limits: &'a (dyn Fn() -> Option<UsageLimits> + Sync),
    state: Mutex<LimitState>,
}

#[derive(Default)]
struct LimitState {
    /// Whether the limits of the launch leave less than everything else that limits it.
    is_tightest: bool,
    /// Why the launch was refused another model call, by its own limits.
    refused: Option<String>,
}

impl<'a> LimitedUse<'a> {
    pub(crate) fn new(
        meter: &'a UsageMeter<'a>,
        stage: &'a LaunchHandlers<'a>,
        limits: &'a (dyn Fn() -> Option<UsageLimits> + Sync),
    ) -> Self {
        Self {
            meter,
            part: meter.part(),
            stage,
            limits,
            state: Mutex::default(),
        }
    }

    /// Counts what was used, and passes on what happens.
    pub(crate) fn notice(&self, activity: Activity) {
        if let Activity::Used(usage) = &activity {
            self.refresh();
            self.part.count(usage);
        }
        (self.stage.notice)(activity);
    }

    /// Answers what is left for model calls.
    pub(crate) fn room(&self, query: &RoomQuery<'_>) -> Room {
        match query {
            RoomQuery::Claim(_) => {
                self.refresh();
                let (own, others) = (self.meter.room(), (self.stage.room)(query));
                self.state().is_tightest = is_tighter(&own, &others);
                own.within(others)
            }
            RoomQuery::Refused { why } => {
                let mut state = self.state();
                if !state.is_tightest {
                    drop(state);
                    return (self.stage.room)(query);
                }
                state.refused.get_or_insert_with(|| (*why).to_owned());
                self.stage.cancel.raise();
                self.meter.room()
            }
        }
    }

    /// Returns which limit ended the launch, if one did; `sum` is all it used.
    pub(crate) fn met(&self, sum: &Usage) -> Option<String> {
        self.refresh();
        self.part.settle(sum);
        self.meter.over().or_else(|| self.state().refused.clone())
    }

    /// Takes the limits as they are now. Where there was none, there is none.
    fn refresh(&self) {
        if self.meter.limits().is_limited()
            && let Some(limits) = (self.limits)()
        {
            self.meter.limit(limits);
        }
    }

    fn state(&self) -> MutexGuard<'_, LimitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells whether one room leaves less than another.
fn is_tighter(one: &Room, other: &Room) -> bool {
    let is_less = |one: Option<u64>, other: Option<u64>| {
        one.is_some_and(|one| other.is_none_or(|other| one <= other))
    };
    is_less(one.tokens, other.tokens)
        || is_less(one.usd_micros, other.usd_micros)
        || (one.needs_price && !other.needs_price)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use kapi_core::room::{CallClaim, Room};
    use kapi_core::usage::Usage;
    use kapi_machine::watch::{Activity, RoomQuery};
    use kapi_run::spending::usage_meter::{UsageLimits, UsageMeter};
    use kapi_status::rules::mapping::Mapping;
    use kapi_sys::cancel::Cancel;
    use kapi_sys::clock::SystemClock;

    use super::LimitedUse;
    use crate::context::{LaunchHandlers, never_stopped};

    fn handlers<'a>(
        cancel: &'a Cancel,
        room: &'a (dyn Fn(&RoomQuery<'_>) -> Room + Sync),
        mapping: &'a Mapping,
    ) -> LaunchHandlers<'a> {
        LaunchHandlers {
            clock: &SystemClock,
            cancel,
            notice: &|_| {},
            room,
            stopped: &never_stopped,
            mapping,
        }
    }

    /// Limits a launch to 100 tokens, others leave it `others`; returns what was passed on, and why it
    /// was ended.
    fn refused_with(others: Option<u64>) -> (Vec<String>, Option<String>, bool) {
        let (cancel, passed_on) = (Cancel::new(), Mutex::new(Vec::new()));
        let outer = |query: &RoomQuery<'_>| {
            if let RoomQuery::Refused { why } = query {
                passed_on.lock().unwrap().push((*why).to_owned());
            }
            Room {
                tokens: others,
                ..Room::UNLIMITED
            }
        };
        let mapping = Mapping::built_in();
        let stage = handlers(&cancel, &outer, &mapping);
        let limits = UsageLimits {
            tokens: Some(100),
            usd_micros: None,
        };
        let meter = UsageMeter::new(limits, Usage::default(), &cancel, &|_| {});
        let limited = LimitedUse::new(&meter, &stage, &|| None);
        let used = Usage {
            output_tokens: 40,
            ..Usage::ZERO
        };
        limited.notice(Activity::Used(used));
        let claim = CallClaim::default();
        let left = limited.room(&RoomQuery::Claim(&claim)).tokens.unwrap();
        assert_eq!(left, others.map_or(60, |others| others.min(60)));
        limited.room(&RoomQuery::Refused { why: "too little" });
        let met = limited.met(&used);
        drop(limited);
        (passed_on.into_inner().unwrap(), met, cancel.is_raised())
    }

    #[test]
    fn a_refusal_is_of_whoever_leaves_less() {
        let own = (Vec::new(), Some("too little".to_owned()), true);
        assert_eq!(refused_with(None), own);
        assert_eq!(refused_with(Some(1_000)), own);
        let others = (vec!["too little".to_owned()], None, false);
        assert_eq!(refused_with(Some(10)), others);
    }

    #[test]
    fn what_passes_the_limit_without_asking_is_ended() {
        let cancel = Cancel::new();
        let mapping = Mapping::built_in();
        let stage = handlers(&cancel, &kapi_machine::watch::unlimited, &mapping);
        let limits = UsageLimits {
            tokens: None,
            usd_micros: Some(10),
        };
        let meter = UsageMeter::new(limits, Usage::default(), &cancel, &|_| {});
        let limited = LimitedUse::new(&meter, &stage, &|| None);
        let used = |micros| Usage {
            usd_micros: Some(micros),
            ..Usage::ZERO
        };
        limited.notice(Activity::Used(used(10)));
        assert!(!cancel.is_raised() && limited.met(&used(10)).is_none());
        limited.notice(Activity::Used(used(1)));
        assert!(cancel.is_raised());
        let met = limited.met(&used(11)).unwrap();
        assert!(met.starts_with("it used $0.000011 of $0.00001"), "{met}");
    }

    #[test]
    fn limits_that_are_raised_meanwhile_hold_at_once() {
        let cancel = Cancel::new();
        let mapping = Mapping::built_in();
        let stage = handlers(&cancel, &kapi_machine::watch::unlimited, &mapping);
        let tokens = |tokens| UsageLimits {
            tokens: Some(tokens),
            usd_micros: None,
        };
        let meter = UsageMeter::new(tokens(10), Usage::default(), &cancel, &|_| {});
        let now = Mutex::new(None);
        let limits = || *now.lock().unwrap();
        let limited = LimitedUse::new(&meter, &stage, &limits);
        let used = |output_tokens| Usage {
            output_tokens,
            ..Usage::ZERO
        };
        let claim = CallClaim::default();
        let left = || limited.room(&RoomQuery::Claim(&claim)).tokens;
        limited.notice(Activity::Used(used(8)));
        assert_eq!(left(), Some(2));
        *now.lock().unwrap() = Some(tokens(100));
        assert_eq!(left(), Some(92));
        limited.notice(Activity::Used(used(8)));
        assert!(!cancel.is_raised());
        assert_eq!(limited.met(&used(16)), None);
    }
}
