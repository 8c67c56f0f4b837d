//! Preferences and the record of what was cleaned away, under power failures at every write: nothing
//! that a person was told is forgotten.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kapi_goal::record::preferences::{PreferenceChange, PreferenceValues, Preferences};
use kapi_machine::evidence::pruned::{PruneLog, PrunedRuns};
use kapi_sys::clock::StepClock;
use kapi_sys::sim_disk::{Mutation, SimDisk};
use kapi_testkit::crash::{Boundary, Crash, CrashScenario, notify, survivals};
use kapi_testkit::oracle::{Oracle, OracleViolation, failed};

use crate::support::person;

const HOME: &str = "/home";
/// How often something is preferred, and something is cleaned away.
const DEEDS: usize = 6;

/// What a person does, one after the other, and how much of it was acknowledged.
struct Deeds {
    disk: SimDisk,
    clock: StepClock,
    preferred: usize,
    pruned: usize,
}

impl Deeds {
    fn new(mistake: Option<&Mutation>) -> Self {
        let disk = SimDisk::new();
        disk.provide_dir(Path::new(HOME));
        if let Some(mistake) = mistake {
            disk.set_mutation(mistake.clone());
        }
        Self {
            disk,
            clock: StepClock::new(0),
            preferred: 0,
            pruned: 0,
        }
    }

    fn preferences(&self) -> Preferences<'_> {
        Preferences {
            disk: &self.disk,
            clock: &self.clock,
            home: PathBuf::from(HOME),
            project_key: "shop-0123456789ab".to_owned(),
            owner: "test".to_owned(),
        }
    }

    fn prune_log(&self) -> PruneLog<'_> {
        PruneLog {
            disk: &self.disk,
            state_dir: PathBuf::from(HOME),
        }
    }

    fn preferred(&self) -> Result<PreferenceValues, OracleViolation> {
        let preferred = self.preferences().load();
        preferred.map_err(|error| failed(&error))
    }

    fn pruned(&self) -> Result<BTreeSet<PrunedRuns>, OracleViolation> {
        self.prune_log().load().map_err(|error| failed(&error))
    }
}

fn change(deed: usize) -> PreferenceChange {
    let judge = Some(format!("judge {deed}"));
    PreferenceChange::JudgeSet { judge }
}

/// What is preferred after so many changes.
fn after(n_deeds: usize) -> PreferenceValues {
    let judge = n_deeds.checked_sub(1).map(|deed| format!("judge {deed}"));
    PreferenceValues {
        autopilot: None,
        judge,
    }
}

fn runs(deed: usize) -> PrunedRuns {
    PrunedRuns {
        project: "shop-1".to_owned(),
        sandbox: format!("task_{deed}-1"),
    }
}

impl CrashScenario for Deeds {
    type Rest = (PreferenceValues, BTreeSet<PrunedRuns>);

    fn disk(&self) -> &SimDisk {
        &self.disk
    }

    fn live(&mut self) -> Result<(), OracleViolation> {
        for deed in self.preferred.min(self.pruned)..DEEDS {
            let changed = self.preferences().change(&person(), &change(deed));
            changed.map_err(|error| failed(&error))?;
            self.preferred = deed + 1;
            let recorded = self.prune_log().record(&[runs(deed)], 0);
            recorded.map_err(|error| failed(&error))?;
            self.pruned = deed + 1;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), OracleViolation> {
        let (preferred, pruned) = (self.preferred()?, self.pruned()?);
        // The deed that was cut off may have been done without a word.
        let is_kept = [self.preferred, self.preferred + 1]
            .iter()
            .any(|n_deeds| preferred == after(*n_deeds))
            && (0..self.pruned).all(|deed| pruned.contains(&runs(deed)))
            && pruned.len() <= self.pruned + 1;
        if is_kept {
            return Ok(());
        }
        let detail = format!(
            "{preferred:?} and {pruned:?} after {} and {} deeds",
            self.preferred, self.pruned
        );
        Err(OracleViolation::new(Oracle::Durability, detail))
    }

    fn rest(&self) -> Result<Self::Rest, OracleViolation> {
        Ok((self.preferred()?, self.pruned()?))
    }
}

/// Lets the power fail at every operation, in each way, and once more while it recovers.
fn first_fault(mistake: Option<&Mutation>) -> Result<(), OracleViolation> {
    let mut whole = Deeds::new(None);
    let rest = notify(&mut whole, &[], None)?.rest;
    for op in 0..=whole.disk.ops() {
        for survival in survivals(op) {
            let crashes = [(op, survival), (op % 7, survivals(op + 1)[1])];
            let crashes = crashes.map(|(op, survival)| Crash {
                at: Boundary::Op(op),
                survival,
            });
            notify(&mut Deeds::new(mistake), &crashes, Some(&rest))?;
        }
    }
    Ok(())
}

#[test]
fn no_power_failure_forgets_what_a_person_did() {
    assert_eq!(first_fault(None), Ok(()));
}

#[test]
fn a_home_that_does_not_sync_is_found_out() {
    for mutation in [
        Mutation::SkipFileSync,
        Mutation::SkipDirSync,
        Mutation::SkipTruncate,
    ] {
        assert!(first_fault(Some(&mutation)).is_err(), "{mutation:?}");
    }
}
