//! What pairs say that were measured in turn: candidate and parent, each first every second time.
//!
//! What the machine does meanwhile hits both of a pair, so that nothing is compared with a number of
//! another hour.

use kapi_check::rules::measure::number::Number;
use kapi_check::rules::measure::ranks::ranked_test;
use kapi_check::rules::measure::statistics::{Sequential, median, sign_test};
use kapi_check::rules::measure::{MeasurementReport, values};

use super::{is_better, least};
use crate::rules::modes::autoresearch::contract::{Contract, Keep};

/// How many pairs the sign test is given at most.
pub(crate) const PAIRS_MAX: usize = 30;

/// What a comparison says, with the words for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PairVerdict {
    /// It is better.
    Better(String),
    /// It is not.
    Worse(String),
    /// More has to be measured.
    Again,
}

/// One pair.
#[derive(Debug, Clone, Copy)]
struct MeasuredPair {
    parent: Number,
    candidate: Number,
}

/// Judges by what was measured in turn; rules that measure no pairs take the median of differences.
pub(super) fn judged(contract: &Contract, all: &[&MeasurementReport]) -> PairVerdict {
    let pairs = pairs(contract, all);
    if pairs.is_empty() {
        return PairVerdict::Again;
    }
    match contract.rule.keep {
        Keep::Plain | Keep::Confirm | Keep::Interleaved => differences(contract, &pairs),
        Keep::Paired => signs(contract, &pairs),
        Keep::Ranked => ranks(contract, &pairs),
    }
}

fn differences(contract: &Contract, pairs: &[MeasuredPair]) -> PairVerdict {
    let direction = contract.metric.direction;
    let gains = pairs
        .iter()
        .filter_map(|pair| Number::new(direction.gain(pair.parent, pair.candidate)));
    let parents: Vec<Number> = pairs.iter().map(|pair| pair.parent).collect();
    let (Some(gain), Some(parent)) = (median(&gains.collect::<Vec<_>>()), median(&parents)) else {
        return PairVerdict::Worse("nothing can be compared".to_owned());
    };
    let (unit, n) = (&contract.metric.unit, pairs.len());
    let by = |by: f64| Number::new(by).map_or_else(String::new, |by| format!(" by {by}{unit}"));
    let of = match n {
        1 => "in one pair".to_owned(),
        n => format!("in the median of {n} pairs"),
    };
    let gain = gain.get();
    if gain > 0.0 && gain >= least(contract, parent) {
        return PairVerdict::Better(format!("it is better than its parent{} {of}", by(gain)));
    }
    PairVerdict::Worse(if gain > 0.0 {
        format!(
            "it is better than its parent by too little,{} {of}",
            by(gain)
        )
    } else if gain < 0.0 {
        format!("it is worse than its parent{} {of}", by(-gain))
    } else {
        format!("it is equal to its parent {of}")
    })
}

fn signs(contract: &Contract, pairs: &[MeasuredPair]) -> PairVerdict {
    let wins: Vec<bool> = pairs
        .iter()
        .map(|pair| is_better(contract, pair.parent, pair.candidate))
        .collect();
    let won = wins.iter().filter(|is_win| **is_win).count();
    let said = format!("it won {won} of {} pairs", wins.len());
    match sign_test(&wins) {
        Sequential::Better => PairVerdict::Better(said),
        Sequential::NotBetter => PairVerdict::Worse(said),
        Sequential::Undecided if wins.len() < PAIRS_MAX => PairVerdict::Again,
        Sequential::Undecided => PairVerdict::Worse(format!("{said}, which decides nothing")),
    }
}

fn ranks(contract: &Contract, pairs: &[MeasuredPair]) -> PairVerdict {
    let direction = contract.metric.direction;
    let gains: Vec<f64> = pairs
        .iter()
        .map(|pair| direction.gain(pair.parent, pair.candidate) - least(contract, pair.parent))
        .collect();
    let found = ranked_test(&gains);
    let said = format!(
        "the signed ranks of {} pairs have the probability {:.4} without any gain",
        found.pairs, found.probability
    );
    match found.verdict {
        Sequential::Better => PairVerdict::Better(said),
        Sequential::NotBetter => PairVerdict::Worse(said),
        Sequential::Undecided => PairVerdict::Again,
    }
}

fn pairs(contract: &Contract, all: &[&MeasurementReport]) -> Vec<MeasuredPair> {
    let name = &contract.metric.name;
    let pairs = all.iter().flat_map(|measured| {
        let parents = values(&measured.against, name).unwrap_or_default();
        let candidates = values(&measured.samples, name).unwrap_or_default();
        parents.into_iter().zip(candidates)
    });
    pairs
        .map(|(parent, candidate)| MeasuredPair { parent, candidate })
        .collect()
}
