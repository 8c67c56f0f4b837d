//! What differs between trees, asked of git once: trees of full ids never change.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};

use crate::change::RawChange;

/// Paths that are kept, of all comparisons together.
const PATHS_MAX: usize = 200_000;
/// Comparisons that are kept.
const COMPARISONS_MAX: usize = 64;

/// Two trees, and the pathspecs that narrow what is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreePair {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) specs: Vec<OsString>,
}

/// The last comparisons, shared by the copies of one repository.
#[derive(Debug, Clone, Default)]
pub(crate) struct Comparisons {
    known: Arc<Mutex<VecDeque<Comparison>>>,
}

/// What was compared, and what differs.
type Comparison = (TreePair, Arc<[RawChange]>);

impl Comparisons {
    /// Returns what differs, where it is known.
    pub(crate) fn get(&self, compared: &TreePair) -> Option<Arc<[RawChange]>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = known.iter().filter(|(one, _)| one == compared);
        found.next().map(|(_, changes)| Arc::clone(changes))
    }

    /// Keeps what differs, and forgets the oldest where that is too much.
    pub(crate) fn keep(&self, compared: TreePair, changes: &Arc<[RawChange]>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.push_back((compared, Arc::clone(changes)));
        let n_paths = |known: &VecDeque<Comparison>| -> usize {
            known.iter().map(|(_, changes)| changes.len()).sum()
        };
        while known.len() > COMPARISONS_MAX || n_paths(&known) > PATHS_MAX {
            known.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::{COMPARISONS_MAX, Comparisons, PATHS_MAX, TreePair};
    use crate::change::{ChangeKind, RawChange, TreeFile};

    fn compared(n: usize) -> TreePair {
        TreePair {
            from: String::new(),
            to: n.to_string(),
            specs: Vec::new(),
        }
    }

    fn changes(n_paths: usize) -> Arc<[RawChange]> {
        let change = RawChange {
            entry: TreeFile {
                mode: "100644".to_owned(),
                object: String::new(),
                path: PathBuf::from("a"),
            },
            kind: ChangeKind::Added,
            mode_before: String::new(),
            object_before: String::new(),
        };
        vec![change; n_paths].into()
    }

    #[test]
    fn a_comparison_is_known_to_all_copies_until_there_are_too_many() {
        let comparisons = Comparisons::default();
        for n in 0..=COMPARISONS_MAX {
            comparisons.clone().keep(compared(n), &changes(1));
        }
        assert_eq!(comparisons.get(&compared(0)), None);
        assert_eq!(comparisons.get(&compared(1)), Some(changes(1)));
        comparisons.keep(compared(900), &changes(PATHS_MAX));
        assert_eq!(comparisons.get(&compared(1)), None);
        assert!(comparisons.get(&compared(900)).is_some());
        comparisons.keep(compared(901), &changes(PATHS_MAX + 1));
        assert_eq!(comparisons.get(&compared(901)), None);
    }
}
