//! The crash simulator: the real store and engine on a simulated disk and world.
//!
//! One pass counts every disk operation and every moment around an effect; then the power fails
//! at each of them, the ordinary start-up path goes on, the power fails again, and the oracles
//! look. Everything random follows from one seed.

use kapi_sys::sim_disk::Survival;

use crate::crash::{Boundary, Crash};
use crate::oracle::OracleViolation;
use crate::sim_case::{CaseVerdict, run_case};
use crate::sim_mistake::Mistake;
use crate::sim_scenario::{SCENARIOS, SimScenario};

/// What to simulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimOptions {
    /// How many of the possible crashes are tried.
    pub effort: Effort,
    /// A mistake to plant, to see whether the oracles notice.
    pub mistake: Option<Mistake>,
}

/// How many of the possible crashes are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// One first crash in this many, with one second crash each.
    Sample(u64),
    /// Every first crash under every survival policy, with one second crash each.
    EveryFirst,
    /// Every first crash, and after it every second crash in this many.
    EveryPair(u64),
}

/// What was simulated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SimTally {
    /// Cases, each a story with its crashes.
    pub cases: u64,
    /// Crashes that came to pass.
    pub crashes: u64,
    /// Disk operations of all stories without a crash.
    pub ops: u64,
    /// Moments around effects of all stories without a crash.
    pub moments: u64,
}

/// A case that an oracle complained about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}, {scenario:?}, crashes {crashes:?}: {violation}")]
pub struct FailingCase {
    /// The seed that shows it again.
    pub seed: u64,
    /// The story.
    pub scenario: SimScenario,
    /// Where the power failed.
    pub crashes: Vec<Crash>,
    /// The complaint.
    pub violation: OracleViolation,
}

/// Simulates every story with the crashes that follow from a seed.
///
/// # Errors
/// The first case that an oracle complains about.
pub fn simulate(seed: u64, options: &SimOptions) -> Result<SimTally, Box<FailingCase>> {
    let mut tally = SimTally::default();
    for scenario in SCENARIOS {
        let found = |crashes: &[Crash], violation| {
            Box::new(FailingCase {
                seed,
                scenario,
                crashes: crashes.to_vec(),
                violation,
            })
        };
        // The reference is made without the mistake: it is what should have been.
        let reference = run_case(scenario, &[], None, None).map_err(|error| found(&[], error))?;
        tally.ops += reference.ops;
        tally.moments += reference.moments;
        for crashes in plans(seed, options.effort, &reference) {
            let ran = run_case(scenario, &crashes, options.mistake, Some(&reference.rest))
                .map_err(|error| found(&crashes, error))?;
            tally.cases += 1;
            tally.crashes += ran.crashes;
        }
    }
    Ok(tally)
}

/// Returns the crashes of each case.
fn plans(seed: u64, effort: Effort, reference: &CaseVerdict) -> Vec<Vec<Crash>> {
    let mut dice = Dice(seed);
    let ops = (0..reference.ops).map(Boundary::Op);
    let boundaries: Vec<Boundary> = ops
        .chain((0..reference.moments).map(Boundary::Moment))
        .collect();
    let mut plans = Vec::new();
    for at in boundaries {
        match effort {
            Effort::Sample(one_in) if dice.below(one_in) != 0 => {}
            Effort::Sample(_) => {
                let survival = dice.survival();
                plans.push(vec![Crash { at, survival }, dice.crash(reference)]);
            }
            Effort::EveryFirst => plans.extend(
                dice.survivals()
                    .map(|survival| vec![Crash { at, survival }, dice.crash(reference)]),
            ),
            Effort::EveryPair(one_in) => {
                let seconds = (0..reference.ops).filter(|_| dice.below(one_in) == 0);
                let seconds: Vec<u64> = seconds.collect();
                for second in seconds {
                    let first = Crash {
                        at,
                        survival: dice.survival(),
                    };
                    let second = Crash {
                        at: Boundary::Op(second),
                        survival: dice.survival(),
                    };
                    plans.push(vec![first, second]);
                }
            }
        }
    }
    // A case with the mistake and no crash at all: some mistakes need none.
    plans.push(Vec::new());
    plans
}

/// Numbers that follow from a seed (splitmix64).
struct Dice(u64);

impl Dice {
    const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.roll() % limit.max(1)
    }

    fn survivals(&mut self) -> std::array::IntoIter<Survival, 4> {
        let torn = Survival::TornPrefix(self.roll());
        [
            Survival::Nothing,
            torn,
            Survival::Everything,
            Survival::PageCache,
        ]
        .into_iter()
    }

    fn survival(&mut self) -> Survival {
        let idx = self.below(4);
        let mut survivals = self.survivals();
        survivals
            .nth(usize::try_from(idx).unwrap_or(0))
            .unwrap_or(Survival::Nothing)
    }

    fn crash(&mut self, reference: &CaseVerdict) -> Crash {
        let survival = self.survival();
        let number = self.below(reference.ops + reference.moments);
        // Most second crashes come early, where recovery is.
        let number = if self.below(2) == 0 {
            number % 24
        } else {
            number
        };
        let at = if number < reference.ops {
            Boundary::Op(number)
        } else {
            Boundary::Moment(number - reference.ops)
        };
        Crash { at, survival }
    }
}
