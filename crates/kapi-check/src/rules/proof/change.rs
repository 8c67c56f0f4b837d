//! What a change does to tests and to what steers them, by its list of paths.
//!
//! The facts only, and which of them a contract refuses. Knows no disk: the paths, and which keys of
//! a file differ, arrive as data.

use serde::{Deserialize, Serialize};

use super::policy::TestPolicy;
use super::role::{PathRole, Present};

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath<'a> {
    /// The path, relative to the top.
    pub path: &'a str,
    /// What happened to it.
    pub how: PathChangeKind<'a>,
    /// What differs of what steers a run, for a file that steers by keys or lines and was looked
    /// into; `None` where nobody looked: the whole file is taken to differ.
    pub parts: Option<Vec<String>>,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathChangeKind<'a> {
    /// It is new.
    Added,
    /// It was there.
    Modified,
    /// It is gone.
    Deleted,
    /// It has the content of another path that is gone, perhaps changed.
    Renamed {
        /// The other path.
        from: &'a str,
    },
}

/// What happened to a test or to what steers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestEdit {
    /// It is new.
    Added,
    /// It is not what it was.
    Changed,
    /// It is gone, or has another name.
    Removed,
}

/// A test file and what happened to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestChange {
    /// The path.
    pub path: String,
    /// What happened.
    #[serde(rename = "fate")]
    pub disposition: TestEdit,
}

/// A file that steers and what happened to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteeringChange {
    /// The path.
    pub path: String,
    /// What happened.
    #[serde(rename = "fate")]
    pub disposition: TestEdit,
    /// The keys or lines that differ; empty for the file as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
}

/// What a change does to tests and to what steers them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckChanges {
    /// Tests that were added, changed or removed.
    pub tests: Vec<TestChange>,
    /// Files that steer a run and do so differently now.
    pub steering: Vec<SteeringChange>,
    /// Files that newly stand before a runner or a module that a runner uses.
    pub shadows: Vec<String>,
    /// Lock files that are not what they were.
    pub lock_files: Vec<String>,
}

impl CheckChanges {
    /// Gathers the facts of a change.
    #[must_use]
    pub fn of(present: &Present<'_>, changes: &[ChangedPath<'_>]) -> Self {
        let mut found = Self::default();
        for change in changes {
            let disposition = match change.how {
                PathChangeKind::Added | PathChangeKind::Renamed { .. } => TestEdit::Added,
                PathChangeKind::Modified => TestEdit::Changed,
                PathChangeKind::Deleted => TestEdit::Removed,
            };
            if let PathChangeKind::Renamed { from } = change.how {
                found.add(present, from, TestEdit::Removed, None);
            }
            found.add(present, change.path, disposition, change.parts.as_deref());
        }
        found.sort();
        found
    }

    /// Returns the changes of tests that a contract does not let pass without a person.
    #[must_use]
    pub fn refused(&self, policy: TestPolicy) -> Vec<&TestChange> {
        let is_refused = |change: &&TestChange| match (policy, change.disposition) {
            (TestPolicy::Free, _) | (TestPolicy::Additive, TestEdit::Added) => false,
            (TestPolicy::Additive, TestEdit::Changed | TestEdit::Removed)
            | (TestPolicy::Locked, _) => true,
        };
        self.tests.iter().filter(is_refused).collect()
    }

    /// Returns lock files that dependencies may be installed from: what newly steers the checks is not
    /// there where they are installed.
    #[must_use]
    pub fn locks_to_install(&self) -> Vec<String> {
        let is_put_back = |lock: &&String| {
            let mut steering = self.steering.iter();
            steering.any(|one| {
                one.path == **lock && one.disposition == TestEdit::Added && one.parts.is_empty()
            })
        };
        let locks = self.lock_files.iter();
        locks.filter(|lock| !is_put_back(lock)).cloned().collect()
    }

    fn add(
        &mut self,
        present: &Present<'_>,
        path: &str,
        disposition: TestEdit,
        parts: Option<&[String]>,
    ) {
        let roles = present.roles(path);
        let is_untouched = parts.is_some_and(<[String]>::is_empty);
        if roles.has(PathRole::Test) {
            let path = path.to_owned();
            self.tests.push(TestChange { path, disposition });
        }
        if roles.has(PathRole::Steering) && !is_untouched {
            self.steering.push(SteeringChange {
                path: path.to_owned(),
                disposition,
                parts: parts.map(<[String]>::to_vec).unwrap_or_default(),
            });
        }
        if roles.has(PathRole::Shadow) && disposition == TestEdit::Added {
            self.shadows.push(path.to_owned());
        }
        if roles.has(PathRole::LockFile) {
            self.lock_files.push(path.to_owned());
        }
    }

    fn sort(&mut self) {
        self.tests.sort();
        self.steering.sort();
        self.shadows.sort();
        self.lock_files.sort();
    }
}

#[cfg(test)]
mod tests {
    use super::{ChangedPath, CheckChanges, PathChangeKind, SteeringChange, TestChange, TestEdit};
    use crate::rules::proof::ecosystem::TABLE;
    use crate::rules::proof::policy::TestPolicy;
    use crate::rules::proof::role::Ecosystems;

    fn changes(list: &[(&'static str, PathChangeKind<'static>)]) -> CheckChanges {
        let ecosystems = Ecosystems::from(&toml::from_str(TABLE).unwrap());
        let present = ecosystems.of(["pyproject.toml", "package.json"]);
        let list: Vec<ChangedPath<'_>> = list
            .iter()
            .map(|(path, how)| ChangedPath {
                path,
                how: *how,
                parts: None,
            })
            .collect();
        CheckChanges::of(&present, &list)
    }

    fn test(path: &str, disposition: TestEdit) -> TestChange {
        TestChange {
            path: path.to_owned(),
            disposition,
        }
    }

    #[test]
    fn existing_tests_stay_unless_they_are_free() {
        let changes = changes(&[
            ("src/a.py", PathChangeKind::Modified),
            ("tests/test_new.py", PathChangeKind::Added),
            ("tests/test_a.py", PathChangeKind::Modified),
            ("tests/test_b.py", PathChangeKind::Deleted),
            (
                "src/c.py",
                PathChangeKind::Renamed {
                    from: "tests/test_c.py",
                },
            ),
        ]);
        let [changed, gone, moved, new] = [
            test("tests/test_a.py", TestEdit::Changed),
            test("tests/test_b.py", TestEdit::Removed),
            test("tests/test_c.py", TestEdit::Removed),
            test("tests/test_new.py", TestEdit::Added),
        ];
        assert_eq!(
            changes.refused(TestPolicy::Additive),
            [&changed, &gone, &moved]
        );
        assert_eq!(
            changes.refused(TestPolicy::Locked),
            [&changed, &gone, &moved, &new]
        );
        assert!(changes.refused(TestPolicy::Free).is_empty());
        assert!(changes.steering.is_empty() && changes.shadows.is_empty());
    }

    #[test]
    fn what_steers_and_what_shadows_is_named() {
        let found = changes(&[
            ("conftest.py", PathChangeKind::Added),
            ("unittest.py", PathChangeKind::Added),
            ("Makefile", PathChangeKind::Deleted),
            ("uv.lock", PathChangeKind::Modified),
            ("random.py", PathChangeKind::Modified),
        ]);
        let steering = |path: &str, disposition| SteeringChange {
            path: path.to_owned(),
            disposition,
            parts: Vec::new(),
        };
        assert_eq!(
            found,
            CheckChanges {
                tests: vec![test("conftest.py", TestEdit::Added)],
                steering: vec![
                    steering("Makefile", TestEdit::Removed),
                    steering("conftest.py", TestEdit::Added)
                ],
                shadows: vec!["unittest.py".into()],
                lock_files: vec!["uv.lock".into()],
            }
        );
    }

    #[test]
    fn a_lock_file_that_newly_steers_the_checks_is_not_installed_from() {
        let found = changes(&[
            (".circleci/requirements.txt", PathChangeKind::Added),
            ("web/package-lock.json", PathChangeKind::Added),
            ("uv.lock", PathChangeKind::Modified),
        ]);
        assert_eq!(found.lock_files.len(), 3);
        assert_eq!(
            found.locks_to_install(),
            ["uv.lock", "web/package-lock.json"]
        );
    }

    #[test]
    fn a_file_whose_steering_parts_are_the_same_steers_nothing_new() {
        let ecosystems = Ecosystems::from(&toml::from_str(TABLE).unwrap());
        let present = ecosystems.of(["package.json"]);
        let change = |parts| {
            let changed = ChangedPath {
                path: "package.json",
                how: PathChangeKind::Modified,
                parts,
            };
            CheckChanges::of(&present, &[changed]).steering
        };
        assert!(change(Some(Vec::new())).is_empty());
        assert_eq!(change(None).len(), 1);
        assert_eq!(
            change(Some(vec!["scripts".into()])).first().unwrap().parts,
            ["scripts"]
        );
    }
}
