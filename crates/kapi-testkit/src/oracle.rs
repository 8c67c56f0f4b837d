//! The six oracles of the crash simulation: what must hold, however often the power fails.
//!
//! Each looks at logs and at the world from outside; none trusts what the engine says of itself.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use kapi_core::id::EffectId;
use kapi_goal::rules::event::GoalEvent;
use kapi_goal::rules::evolve::evolve;
use kapi_goal::rules::state::Goal;
use kapi_machine::logged::{EventRecord, to_logged};
use kapi_store::codec::{LogPosition, decode};
use serde::de::DeserializeOwned;

/// Something that must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Oracle {
    /// Every acknowledged event is still there.
    Durability,
    /// The surviving log is a prefix of what was attempted, without gaps.
    Prefix,
    /// Every effect the world saw has a durable intent before it.
    Intent,
    /// No effect id is performed again once its outcome is on record, or ends twice.
    Once,
    /// The final state equals that of the run without a crash.
    Convergence,
    /// Nothing outside the owned branch and the state directory changed.
    Ownership,
}

/// An oracle's complaint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{oracle}: {detail}")]
pub struct OracleViolation {
    /// Which oracle.
    pub oracle: Oracle,
    /// What it saw.
    pub detail: String,
}

impl OracleViolation {
    /// Builds a complaint.
    pub fn new(oracle: Oracle, detail: impl Into<String>) -> Self {
        Self {
            oracle,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Oracle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Durability => "durability",
            Self::Prefix => "prefix",
            Self::Intent => "intent",
            Self::Once => "once",
            Self::Convergence => "convergence",
            Self::Ownership => "ownership",
        })
    }
}

/// Reads the bytes of a stream's log.
///
/// # Errors
/// When something other than its tail is not sound.
pub fn read_log<E: DeserializeOwned>(
    stream: &str,
    bytes: &[u8],
) -> Result<Vec<EventRecord<E>>, OracleViolation> {
    let broken = |error: &dyn fmt::Display| {
        OracleViolation::new(Oracle::Prefix, format!("{stream}: {error}"))
    };
    let tail = decode(stream, &LogPosition::start(), bytes)
        .map_err(|error| broken(&format!("{error}: {}", error.fault)))?;
    tail.records
        .iter()
        .map(|record| to_logged(record).map_err(|error| broken(&error)))
        .collect()
}

/// Checks that every acknowledged event is in the log.
///
/// # Errors
/// When one is missing or different.
pub fn check_durability<'a, E: PartialEq + fmt::Debug + 'a>(
    acknowledged: impl IntoIterator<Item = &'a EventRecord<E>>,
    survived: &[EventRecord<E>],
) -> Result<(), OracleViolation> {
    let by_seq: BTreeMap<u64, &EventRecord<E>> =
        survived.iter().map(|event| (event.seq, event)).collect();
    let mut acknowledged = acknowledged.into_iter();
    match acknowledged.find(|event| by_seq.get(&event.seq) != Some(event)) {
        None => Ok(()),
        Some(lost) => {
            let detail = format!("event {} was acknowledged and is lost: {lost:?}", lost.seq);
            Err(OracleViolation::new(Oracle::Durability, detail))
        }
    }
}

/// Checks that the log after a crash is a prefix of what it was just before.
///
/// # Errors
/// When it is not.
pub fn check_prefix<T: PartialEq>(attempted: &[T], survived: &[T]) -> Result<(), OracleViolation> {
    if attempted.starts_with(survived) {
        return Ok(());
    }
    let detail = format!("{} events survived of {}", survived.len(), attempted.len());
    Err(OracleViolation::new(Oracle::Prefix, detail))
}

/// Returns the complaint that something failed that must not.
#[must_use]
pub fn failed(error: &dyn Error) -> OracleViolation {
    OracleViolation::new(Oracle::Convergence, causes(error))
}

/// Returns an error with everything that caused it.
#[must_use]
pub fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Checks that an effect about to be performed was durably intended and has not ended before.
///
/// `durable` is the log as a power cut at this moment would leave it.
///
/// # Errors
/// When it was not intended, or has ended.
pub fn check_performed(
    effect: &EffectId,
    durable: &[EventRecord<GoalEvent>],
) -> Result<(), OracleViolation> {
    let effects = effects_of(durable)?;
    if effects.ended.contains(effect) {
        let detail = format!("effect {effect} is performed again after its outcome");
        return Err(OracleViolation::new(Oracle::Once, detail));
    }
    if !effects.intended.contains(effect) {
        let detail = format!("effect {effect} is performed without a durable intent");
        return Err(OracleViolation::new(Oracle::Intent, detail));
    }
    Ok(())
}

/// Checks that no effect ended twice.
///
/// # Errors
/// When one did.
pub fn check_once(log: &[EventRecord<GoalEvent>]) -> Result<(), OracleViolation> {
    effects_of(log).map(|_| ())
}

struct Effects {
    intended: BTreeSet<EffectId>,
    ended: BTreeSet<EffectId>,
}

fn effects_of(log: &[EventRecord<GoalEvent>]) -> Result<Effects, OracleViolation> {
    let mut effects = Effects {
        intended: BTreeSet::new(),
        ended: BTreeSet::new(),
    };
    let mut state: Option<Goal> = None;
    let under_way = |state: &Option<Goal>| {
        state
            .as_ref()
            .and_then(|goal| goal.in_flight.as_ref())
            .map(|running_effect| running_effect.effect.clone())
    };
    for logged in log {
        let before = under_way(&state);
        evolve(&mut state, &logged.event);
        let after = under_way(&state);
        if after == before {
            continue;
        }
        effects.intended.extend(after.clone());
        let Some(ended) = before.filter(|_| after.is_none()) else {
            continue;
        };
        if !effects.ended.insert(ended.clone()) {
            let detail = format!("effect {ended} ended twice, at event {}", logged.seq);
            return Err(OracleViolation::new(Oracle::Once, detail));
        }
    }
    Ok(effects)
}

/// Checks that no file outside the state directory was touched.
///
/// # Errors
/// When one was.
pub fn check_files(
    foreign: &BTreeMap<PathBuf, Vec<u8>>,
    files: &BTreeMap<PathBuf, Vec<u8>>,
    state_dir: &Path,
) -> Result<(), OracleViolation> {
    let outside: BTreeMap<&PathBuf, &Vec<u8>> = files
        .iter()
        .filter(|(path, _)| !path.starts_with(state_dir))
        .collect();
    if outside == foreign.iter().collect() {
        return Ok(());
    }
    let names: Vec<String> = outside
        .keys()
        .map(|path| path.display().to_string())
        .collect();
    let detail = format!(
        "files outside the state directory changed: {}",
        names.join(", ")
    );
    Err(OracleViolation::new(Oracle::Ownership, detail))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use kapi_core::actor::Actor;
    use kapi_core::id::EffectId;
    use kapi_goal::rules::event::GoalEvent;
    use kapi_machine::logged::EventRecord;

    use super::{Oracle, check_durability, check_files, check_performed, check_prefix};

    fn log(paths: &[&str]) -> Vec<EventRecord<GoalEvent>> {
        let logged = |(idx, path): (usize, &&str)| EventRecord {
            seq: idx as u64 + 1,
            at_ms: 0,
            actor: Actor::Engine,
            event: GoalEvent::WorkspaceCreated {
                path: (*path).to_owned(),
                elapsed_ms: 0,
            },
        };
        paths.iter().enumerate().map(logged).collect()
    }

    #[test]
    fn a_lost_or_changed_event_is_not_durable() {
        let acknowledged = log(&["a", "b"]);
        assert_eq!(
            check_durability(&acknowledged, &log(&["a", "b", "c"])),
            Ok(())
        );
        for survived in [&["a"][..], &["a", "x"], &[]] {
            let violation = check_durability(&acknowledged, &log(survived)).unwrap_err();
            assert_eq!(violation.oracle, Oracle::Durability);
        }
    }

    #[test]
    fn a_gap_or_an_invention_is_no_prefix() {
        let attempted = log(&["a", "b", "c"]);
        for survived in [&["a", "b", "c"][..], &["a"], &[]] {
            assert_eq!(check_prefix(&attempted, &log(survived)), Ok(()));
        }
        for survived in [&["b"][..], &["a", "c"], &["a", "b", "c", "d"]] {
            assert_eq!(
                check_prefix(&attempted, &log(survived)).unwrap_err().oracle,
                Oracle::Prefix
            );
        }
    }

    #[test]
    fn an_effect_without_an_intent_is_seen() {
        let violation = check_performed(&EffectId::new(1, "agent", 1), &log(&["a"])).unwrap_err();
        assert_eq!(violation.oracle, Oracle::Intent);
    }

    #[test]
    fn a_file_outside_the_state_directory_is_seen() {
        let theirs = (PathBuf::from("/p/notes"), b"x".to_vec());
        let ours = (PathBuf::from("/p/.ilchul/lock"), Vec::new());
        let foreign: BTreeMap<_, _> = [theirs.clone()].into();
        let check = |files| check_files(&foreign, &files, Path::new("/p/.ilchul"));
        assert_eq!(check([theirs.clone(), ours.clone()].into()), Ok(()));
        let changed = (theirs.0.clone(), b"y".to_vec());
        let stray = (PathBuf::from("/p/stray"), Vec::new());
        for files in [[changed, ours.clone()], [ours.clone(), ours]] {
            assert_eq!(check(files.into()).unwrap_err().oracle, Oracle::Ownership);
        }
        assert!(check([theirs, stray].into()).is_err());
    }
}
