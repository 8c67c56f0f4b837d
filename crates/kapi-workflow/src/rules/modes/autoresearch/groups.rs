//! What was kept, in parts that have no file in common.
//!
//! Two kept runs that changed one path belong together, and so does whatever belongs to one of them.
//! Found by the engine, so that nothing has to be believed about what depends on what.

use kapi_core::text::shortened;
use serde::{Deserialize, Serialize};

use crate::rules::modes::autoresearch::run::Run;

/// The longest title of a part.
const TITLE_CHARS_MAX: usize = 72;

/// One part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// What it is, in a few words: its first run's.
    pub title: String,
    /// The numbers of its runs, in order.
    pub runs: Vec<u32>,
}

/// Returns the parts of what was kept, each with its runs in order, in the order of their first run.
#[must_use]
pub fn groups<'a>(kept: impl Iterator<Item = &'a Run>) -> Vec<Group> {
    let mut parts: Vec<Vec<&Run>> = Vec::new();
    for run in kept {
        let meets = |part: &Vec<&Run>| part.iter().any(|other| other.changed.meets(&run.changed));
        let mut joined: Vec<&Run> = Vec::new();
        let mut apart = Vec::new();
        for part in parts {
            if meets(&part) {
                joined.extend(part);
            } else {
                apart.push(part);
            }
        }
        joined.push(run);
        joined.sort_by_key(|run| run.number);
        apart.push(joined);
        parts = apart;
    }
    parts.sort_by_key(|part| part.first().map(|run| run.number));
    parts.iter().filter_map(|part| group(part)).collect()
}

fn group(part: &[&Run]) -> Option<Group> {
    let first = part.first()?;
    Some(Group {
        title: shortened(&first.description, TITLE_CHARS_MAX),
        runs: part.iter().map(|run| run.number).collect(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::{prop_assert, proptest};

    use super::groups;
    use crate::rules::changed::LandedPaths;
    use crate::rules::modes::autoresearch::fixture::run;

    fn check(changed: &[&[&str]], expected: &[&[u32]]) {
        let runs: Vec<_> = (1..)
            .zip(changed)
            .map(|(number, paths)| {
                let mut run = run(number, 1.0);
                run.changed = LandedPaths::of(paths.iter().map(|&path| path.to_owned()).collect());
                run
            })
            .collect();
        let found = groups(runs.iter());
        let found: Vec<&[u32]> = found.iter().map(|group| &group.runs[..]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn runs_with_a_path_in_common_belong_together() {
        check(&[], &[]);
        check(&[&["a"], &["b"]], &[&[1], &[2]]);
        check(
            &[&["a"], &["b"], &["a", "c"], &["d"]],
            &[&[1, 3], &[2], &[4]],
        );
        check(&[&["a"], &["b"], &["a", "b"]], &[&[1, 2, 3]]);
    }

    proptest! {
        #[test]
        fn parts_have_no_path_in_common_and_lose_no_run(
            changed in vec(btree_set(0..12_u8, 1..4), 0..20),
        ) {
            let runs: Vec<_> = (1..)
                .zip(&changed)
                .map(|(number, paths)| {
                    let mut run = run(number, 1.0);
                    run.changed = LandedPaths::of(paths.iter().map(u8::to_string).collect());
                    run
                })
                .collect();
            let found = groups(runs.iter());
            let mut all: Vec<u32> = found.iter().flat_map(|group| group.runs.clone()).collect();
            all.sort_unstable();
            prop_assert!(all.iter().copied().eq((1..).take(runs.len())));
            for (at, one) in found.iter().enumerate() {
                for other in &found[at + 1..] {
                    let of = |numbers: &[u32]| -> Vec<String> {
                        let runs = runs.iter().filter(|run| numbers.contains(&run.number));
                        runs.flat_map(|run| run.changed.paths.clone()).collect()
                    };
                    let theirs = of(&other.runs);
                    prop_assert!(of(&one.runs).iter().all(|path| !theirs.contains(path)));
                }
            }
        }
    }
}
