//! Which runs a corpus comes to: each change by hand first, then by each of its ways.
//!
//! Pure: nothing is started here.

use super::CorpusOptions;
use super::ecosystem::{CorpusCase, CorpusEcosystem};
use super::entry::{ENTRIES, Entrance};

/// How many ways a change is tried by, where its file names none.
const WAYS: usize = 3;
/// The ways that can be given checks which the agent never sees.
const WITH_HIDDEN: [Entrance; 4] = [
    Entrance::Run,
    Entrance::Prove,
    Entrance::Contract,
    Entrance::Race,
];
/// The ways whose command line takes what is said of the checks.
const WITH_OPTIONS: [Entrance; WAYS] = [Entrance::Run, Entrance::Contract, Entrance::Prove];
/// How a run without Kapi is called.
pub(super) const BY_HAND: &str = "by hand";

/// One run.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedRun<'a> {
    /// The project.
    pub(super) ecosystem: &'a CorpusEcosystem,
    /// The change.
    pub(super) case: &'a CorpusCase,
    /// The way; nothing for the command as a person types it.
    pub(super) entry: Option<Entrance>,
}

impl PlannedRun<'_> {
    /// Returns the name by which it is asked for.
    pub(super) fn name(&self) -> String {
        let way = self.entry.map_or(BY_HAND, Entrance::name);
        format!("{}/{}/{way}", self.ecosystem.name, self.case.name)
    }

    /// Returns the command that is to prove it.
    pub(super) fn verify(&self) -> &str {
        self.case
            .verify
            .as_deref()
            .unwrap_or(&self.ecosystem.verify)
    }

    /// Tells whether the command already passes on the base.
    pub(super) fn is_green_before(&self) -> bool {
        self.case
            .options
            .iter()
            .any(|option| option == "--already-green")
    }
}

/// Returns every run that the options ask for.
pub(super) fn plan<'a>(
    ecosystems: &'a [CorpusEcosystem],
    options: &CorpusOptions,
) -> Vec<PlannedRun<'a>> {
    let mut planned = Vec::new();
    let mut rotation = ENTRIES.iter().copied().cycle();
    for ecosystem in ecosystems {
        for case in &ecosystem.cases {
            let ways = ways(case, &mut rotation);
            if options.quick && !case.quick {
                continue;
            }
            // A part believes that the whole was looked at before.
            let most = if options.quick { Some(1) } else { options.ways };
            let by_hand = most.is_none().then_some(None);
            let kept = most.unwrap_or(ways.len());
            let entries = ways.into_iter().take(kept).map(Some);
            for entry in by_hand.into_iter().chain(entries) {
                planned.push(PlannedRun {
                    ecosystem,
                    case,
                    entry,
                });
            }
        }
    }
    planned.retain(|run| options.takes(&run.name()));
    planned
}

fn ways(case: &CorpusCase, rotation: &mut impl Iterator<Item = Entrance>) -> Vec<Entrance> {
    if !case.ways.is_empty() {
        case.ways.clone()
    } else if case.hidden {
        WITH_HIDDEN.to_vec()
    } else if !case.options.is_empty() {
        WITH_OPTIONS.to_vec()
    } else {
        rotation.take(WAYS).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::plan;
    use crate::corpora::CorpusOptions;
    use crate::corpora::ecosystem::{CorpusEcosystem, load};
    use crate::corpora::entry::{ENTRIES, Entrance};

    fn corpus() -> Vec<CorpusEcosystem> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        load(manifest.parent().unwrap()).unwrap()
    }

    /// What the corpus promises by its size, and that no way in is left out.
    #[test]
    fn there_are_enough_cheats_and_each_kind_goes_several_ways() {
        let corpus = corpus();
        let planned = plan(&corpus, &CorpusOptions::default());
        let mut by_kind: BTreeMap<&str, BTreeSet<Entrance>> = BTreeMap::new();
        let mut by_way: BTreeMap<Entrance, BTreeSet<String>> = BTreeMap::new();
        let (mut cheats, mut honest) = (BTreeSet::new(), BTreeSet::new());
        for run in &planned {
            let name = format!("{}/{}", run.ecosystem.name, run.case.name);
            if !run.case.expect.is_cheat() {
                honest.insert(name);
                continue;
            }
            cheats.insert(name.clone());
            if let Some(entry) = run.entry {
                by_kind.entry(&run.case.kind).or_default().insert(entry);
                by_way.entry(entry).or_default().insert(name);
            }
        }
        assert!(cheats.len() >= 120, "{} cheats", cheats.len());
        assert!(honest.len() >= 40, "{} honest changes", honest.len());
        for (kind, ways) in by_kind {
            // What is only measured is measured one way.
            let is_measured = ways == BTreeSet::from([Entrance::Autoresearch]);
            assert!(ways.len() >= 3 || is_measured, "{kind}: only by {ways:?}");
        }
        for entry in ENTRIES.into_iter().chain([Entrance::Autoresearch]) {
            let cheats = by_way.get(&entry).map_or(0, BTreeSet::len);
            assert!(cheats >= 10, "{entry:?}: only {cheats}");
        }
    }

    #[test]
    fn the_quick_part_has_every_ecosystem_and_no_run_by_hand() {
        let corpus = corpus();
        let options = CorpusOptions {
            quick: true,
            ..CorpusOptions::default()
        };
        let planned = plan(&corpus, &options);
        assert!(planned.iter().all(|run| run.entry.is_some()));
        for ecosystem in &corpus {
            let of = |is_cheat: bool| {
                let mut cases = ecosystem.cases.iter();
                cases.any(|case| case.quick && case.expect.is_cheat() == is_cheat)
            };
            assert!(of(true) && of(false), "{}", ecosystem.name);
        }
    }
}
