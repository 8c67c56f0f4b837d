//! When a change deletes so much that a person is asked, or at least told, before it is taken over.
//!
//! Counts only. Which files go, and who is asked, is not known here.

use serde::{Deserialize, Serialize};

/// Files below which no deletion is worth a question.
const FILES_MIN: u64 = 3;
/// Files above which a quarter of the project is enough.
const MANY_FILES: u64 = 100;

/// How many of a project's files a change deletes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletions {
    /// Files that the change deletes.
    pub deleted: u64,
    /// Files that were there before.
    pub of: u64,
}

impl Deletions {
    /// Tells whether this is a mass deletion: more than half of the files, or more than a hundred
    /// and a quarter of them.
    #[must_use]
    pub const fn is_mass(&self) -> bool {
        let is_half = self.deleted.saturating_mul(2) > self.of;
        let is_quarter = self.deleted.saturating_mul(4) > self.of;
        self.deleted >= FILES_MIN && (is_half || (self.deleted > MANY_FILES && is_quarter))
    }

    /// Says what is deleted.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!(
            "it deletes {} of {} files of the project",
            self.deleted, self.of
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Deletions;

    #[test]
    fn half_of_the_files_or_many_and_a_quarter_are_a_mass() {
        for (deleted, of, is_mass) in [
            (0, 0, false),
            (2, 2, false),
            (3, 3, true),
            (3, 6, false),
            (4, 7, true),
            (100, 300, false),
            (101, 300, true),
            (101, 404, false),
            (101, 403, true),
        ] {
            assert_eq!(
                Deletions { deleted, of }.is_mass(),
                is_mass,
                "{deleted} of {of}"
            );
        }
    }
}
