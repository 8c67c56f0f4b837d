//! How people name a goal: by index, by slug, or by both.
//!
//! Pure: given the ids there are, finds the one that is meant or says why it cannot.

use kapi_core::id::GoalId;
use kapi_core::workflow::mode::Mode;
use kapi_store::error::StoreError;

/// Names that an error lists at most.
const CANDIDATES_MAX: usize = 10;

/// A reference that does not lead to one goal.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Nothing fits.
    #[error("find a goal called {reference:?}")]
    Unknown {
        /// What was asked for.
        reference: String,
        /// The latest goals there are.
        candidates: Vec<GoalId>,
    },
    /// Several fit.
    #[error("find one goal called {reference:?}: {} fit", candidates.len())]
    Ambiguous {
        /// What was asked for.
        reference: String,
        /// Those that fit.
        candidates: Vec<GoalId>,
    },
    /// It means a workflow, which is not a goal.
    #[error("find a goal called {reference:?}: {id} is a {mode} workflow")]
    Workflow {
        /// What was asked for.
        reference: String,
        /// The workflow.
        id: GoalId,
        /// Its mode.
        mode: Mode,
    },
    /// The goals could not be listed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ResolveError {
    /// Returns what to type instead.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let names = |candidates: &[GoalId]| {
            let names: Vec<String> = candidates.iter().map(ToString::to_string).collect();
            names.join(", ")
        };
        match self {
            Self::Unknown { candidates, .. } if candidates.is_empty() => {
                Some("there are no goals here yet; start one with `kapi run`.".to_owned())
            }
            Self::Unknown { candidates, .. } => Some(format!("there are: {}.", names(candidates))),
            Self::Ambiguous { candidates, .. } => {
                Some(format!("say which one: {}.", names(candidates)))
            }
            Self::Workflow { id, mode, .. } => Some(format!(
                "`kapi status {index:03}` shows it, `kapi {mode} resume {index:03}` goes on with it.",
                index = id.index()
            )),
            Self::Store(error) => error.hint(),
        }
    }
}

/// Finds the goal that a reference means. An index wins over a slug made of digits.
///
/// # Errors
/// When none or several fit.
pub fn find(reference: &str, ids: &[GoalId]) -> Result<GoalId, ResolveError> {
    let matching = |fits: &dyn Fn(&GoalId) -> bool| -> Vec<GoalId> {
        ids.iter().filter(|id| fits(id)).cloned().collect()
    };
    let is_number = !reference.is_empty() && reference.bytes().all(|byte| byte.is_ascii_digit());
    let index: Option<u32> = if is_number {
        reference.parse().ok()
    } else {
        None
    };
    let by_index = matching(&|id| index == Some(id.index()));
    let mut candidates = if by_index.is_empty() {
        matching(&|id| id.slug().as_str() == reference || id.to_string() == reference)
    } else {
        by_index
    };
    let reference = reference.to_owned();
    match candidates.len() {
        1 => Ok(candidates.remove(0)),
        0 => {
            let latest = ids.len().saturating_sub(CANDIDATES_MAX);
            let candidates = ids.get(latest..).unwrap_or_default().to_vec();
            Err(ResolveError::Unknown {
                reference,
                candidates,
            })
        }
        _ => Err(ResolveError::Ambiguous {
            reference,
            candidates,
        }),
    }
}

#[cfg(test)]
mod tests {
    use kapi_core::id::GoalId;

    use super::find;

    fn check(reference: &str, expected: &str) {
        let names = [
            "001-fix-login",
            "002-7",
            "007-add-tests",
            "012-fix-login",
            "1000-big",
        ];
        let ids: Vec<GoalId> = names
            .iter()
            .map(|name| GoalId::parse(name).unwrap())
            .collect();
        let found = match find(reference, &ids) {
            Ok(id) => id.to_string(),
            Err(error) => format!("{error}; {}", error.hint().unwrap()),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn one_goal_is_found_by_every_name() {
        for reference in ["7", "007", "0007", "add-tests", "007-add-tests"] {
            check(reference, "007-add-tests");
        }
        check("1000", "1000-big");
        check("2", "002-7");
    }

    #[test]
    fn an_ambiguous_slug_lists_what_fits() {
        check(
            "fix-login",
            "find one goal called \"fix-login\": 2 fit; say which one: 001-fix-login, 012-fix-login.",
        );
        check("012", "012-fix-login");
    }

    #[test]
    fn an_unknown_name_lists_what_there_is() {
        for reference in ["", "3", "fix", "99999999999999", "-1", "001-other"] {
            check(
                reference,
                &format!(
                    "find a goal called {reference:?}; there are: 001-fix-login, 002-7, \
                     007-add-tests, 012-fix-login, 1000-big."
                ),
            );
        }
    }

    #[test]
    fn an_empty_project_says_so() {
        let error = find("1", &[]).unwrap_err();
        assert!(error.hint().unwrap().contains("no goals here yet"));
    }
}
