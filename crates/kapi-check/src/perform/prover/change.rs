//! What a change does to the checks that are to prove it: tests, and files that steer a run.
//!
//! Looked up in the repository, so nothing that ran has a say in it. What it means is decided in core.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_git::change::ChangeKind;
use kapi_git::id::CommitId;
use kapi_git::repository::Repository;
use kapi_run::failure;

use super::checkout::PutBack;
use super::document::SettingsDocument;
use super::steering::{Ends, FileSteering, SteeringPart, both, part};
use super::test_files::test_code;
use super::text::{self, TextChange};
use super::{ProofClaim, listing};
use crate::perform::ecosystems;
use crate::rules::proof::change::{ChangedPath, CheckChanges, PathChangeKind, TestEdit};
use crate::rules::proof::inline_test;
use crate::rules::proof::inspection::Inspection;
use crate::rules::proof::notice::{Notice, NoticeKind};
use crate::rules::proof::policy::TestPolicy;
use crate::rules::proof::role::{PathRole, Present, with_lines_of};

/// Lines of files, numbered from 1.
pub(super) type FlaggedLines<'a> = BTreeMap<&'a Path, BTreeSet<u64>>;

/// What a change does to the checks.
#[derive(Debug, Clone)]
pub(crate) struct ProvedChange {
    /// The facts.
    pub(super) facts: CheckChanges,
    /// Files that steer in parts, and which parts of them differ.
    parts: BTreeMap<String, SteeringPart>,
    /// Test files of the result that hold code.
    pub(super) test_code: Vec<PathBuf>,
    /// Other files of the result that may hold tests beside what they test.
    sources_with_tests: Vec<PathBuf>,
    /// Paths that it changes and that are neither tests nor say what is installed.
    pub(super) code: Vec<String>,
    /// Those of them that it adds and that steer nothing.
    added_code: Vec<String>,
    /// Its files as text, tests and code; what is installed or locked is left out.
    pub(super) texts: Vec<TextChange>,
    /// Signs of a cheat in what it adds.
    notices: Vec<Notice>,
    /// The base has test files that hold code.
    base_has_tests: bool,
    /// It changes the source of a dependency.
    is_in_dependencies: bool,
    /// Where it begins and ends.
    ends: Ends,
}

/// A part of a change that can be put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangePart {
    /// Tests of the base that it touches are as they were.
    Tests,
    /// Tests that it adds are not there.
    NewTests,
    /// What steers the checks is as it was.
    Steering,
    /// All but tests and what is installed for them is as it was.
    Code,
    /// The same, but tests that lie beside what they test are as they are now.
    CodeUnderTest,
}

/// A changed path and what of it steers a run.
struct ListedChange {
    path: String,
    kind: ChangeKind,
    words: Option<Vec<String>>,
}

impl ListedChange {
    fn path(&self) -> ChangedPath<'_> {
        ChangedPath {
            path: &self.path,
            how: how(self.kind),
            parts: self.words.clone(),
        }
    }
}

impl ProvedChange {
    /// Looks a change over.
    pub(crate) fn between(
        repository: &Repository,
        base: &CommitId,
        commit: &CommitId,
    ) -> Result<Self, Failure> {
        let failed = |error: &dyn std::error::Error| failure::plain(error);
        let rules = ecosystems::rules()?;
        let files = |commit| repository.tracked_files(commit);
        let now = files(commit).map_err(|error| failed(&error))?;
        let mut names: BTreeSet<String> = names_of(&now);
        let mut before = Vec::new();
        let changes = if base == commit {
            Vec::new()
        } else {
            before = files(base).map_err(|error| failed(&error))?;
            names.extend(names_of(&before));
            let changes = repository.changes(base, commit);
            changes.map_err(|error| failed(&error))?
        };
        let present = rules.of(names.iter().map(String::as_str));
        let ends = Ends::of(base, commit);
        let mut parts = BTreeMap::new();
        let mut listed = Vec::new();
        let (mut texts, mut code, mut added_code) = (Vec::new(), Vec::new(), Vec::new());
        for change in &changes {
            let path = change.path.to_string_lossy().into_owned();
            let found = part(repository, &present, &change.path, &ends)?;
            let words = found.words();
            let is_whole = matches!(found, FileSteering::Whole);
            if let FileSteering::Part(part) = found {
                parts.insert(path.clone(), part);
            }
            let roles = present.roles(&path);
            let is_installed = roles.has(PathRole::Dependency) || roles.has(PathRole::LockFile);
            // A manifest says what is installed, by keys that steer nothing.
            let is_code = !is_installed && !roles.has(PathRole::Test) && is_whole;
            let steers = roles.has(PathRole::Steering) || roles.has(PathRole::Shadow);
            let is_new = change.kind == ChangeKind::Added && !steers;
            code.extend(is_code.then(|| path.clone()));
            added_code.extend((is_code && is_new).then(|| path.clone()));
            if !is_installed && texts.len() < text::files_max() {
                let is_test = roles.has(PathRole::Test);
                let read = TextChange::read(repository, base, commit, &change.path, is_test)?;
                texts.extend(read);
            }
            let kind = change.kind;
            listed.push(ListedChange { path, kind, words });
        }
        let tests = test_code(&present, &now);
        let is_host = |path: &&PathBuf| inline_test::can_hold(path) && !tests.contains(path);
        let sources_with_tests = now.iter().filter(is_host).cloned().collect();
        let notices = text::signs(repository, base, &texts, &tests)?;
        let listed: Vec<ChangedPath<'_>> = listed.iter().map(ListedChange::path).collect();
        Ok(Self {
            facts: CheckChanges::of(&present, &listed),
            parts,
            test_code: tests,
            sources_with_tests,
            code,
            added_code,
            texts,
            notices,
            base_has_tests: !test_code(&present, &before).is_empty(),
            is_in_dependencies: listed.iter().any(|one| is_dependency(&present, one)),
            ends,
        })
    }

    /// Returns tests of the base that it touches.
    pub(super) fn tests_touched(&self) -> Vec<String> {
        let changed = self.facts.refused(TestPolicy::Additive);
        changed.into_iter().map(|test| test.path.clone()).collect()
    }

    /// Returns files that lost a test which lay beside what it tests.
    fn tests_lost(&self) -> Vec<String> {
        let changed: Vec<&str> = self.texts.iter().filter_map(TextChange::text).collect();
        let lost = self.texts.iter().filter(|text| text.loses_tests(&changed));
        let names = lost.map(|text| text.path.to_string_lossy().into_owned());
        names.collect()
    }

    /// Returns files whose documentation has other examples now, each as it is with those of the base.
    fn examples(&self) -> Vec<(PathBuf, String)> {
        let examples = self.texts.iter().filter_map(|text| {
            let content = text.with_base_examples()?;
            Some((text.path.clone(), content))
        });
        examples.collect()
    }

    /// Tells whether it adds a test file that holds code, or changes one, or adds a test beside what it
    /// tests.
    pub(super) fn brings_tests(&self) -> bool {
        let there = |path: &str| self.test_code.iter().any(|test| test == Path::new(path));
        let is_brought = self.facts.tests.iter().any(|test| there(&test.path));
        is_brought || self.gaining_tests().next().is_some()
    }

    /// Returns files that gained a test which lies beside what it tests.
    fn gaining_tests(&self) -> impl Iterator<Item = &TextChange> {
        let base: Vec<&str> = self
            .texts
            .iter()
            .filter_map(TextChange::base_text)
            .collect();
        let code = self.texts.iter();
        let code = code.filter(|text| self.code.iter().any(|path| text.path == Path::new(path)));
        code.filter(move |text| text.gains_tests(&base))
    }

    /// Puts the code back, without the tests that lie in it.
    fn put_back_code_under_test(&self, back: &mut PutBack) {
        let gaining: Vec<&Path> = self
            .gaining_tests()
            .map(|text| text.path.as_path())
            .collect();
        for path in &self.code {
            let mut texts = self.texts.iter();
            let text = texts.find(|text| text.path == Path::new(path));
            let text = text.filter(|text| !text.is_new() || gaining.contains(&text.path.as_path()));
            let is_host = !gaining.is_empty() && inline_test::can_hold(Path::new(path));
            let own = text.filter(|_| is_host);
            match own.and_then(|text| text.base_with_own_tests(&gaining)) {
                Some(text) => back.texts.push((path.into(), Some(text.into_bytes()))),
                None => back.files.push(path.clone()),
            }
        }
    }

    /// Returns files of the result in which a test can fail: test files first.
    pub(super) fn test_hosts(&self) -> impl Iterator<Item = &Path> {
        let all = self.test_code.iter().chain(&self.sources_with_tests);
        all.map(PathBuf::as_path)
    }

    /// Returns those of them that it does not add.
    pub(super) fn base_tests(&self) -> impl Iterator<Item = &Path> {
        let is_new = |path: &Path| {
            let is_it = |one: &str| Path::new(one) == path;
            self.added_tests().any(is_it) || self.added_code.iter().any(|one| is_it(one))
        };
        self.test_hosts().filter(move |path| !is_new(path))
    }

    /// Tells whether a test of the base keeps all that it says: lines are added to it, its form or its
    /// imports differ, or it has another name.
    fn keeps(&self, path: &str) -> bool {
        let mut texts = self.texts.iter();
        let text = texts.find(|text| text.path == Path::new(path));
        text.is_some_and(|text| {
            let is_gone = text.text().is_none();
            let mut others = self.texts.iter().filter(|other| is_gone && other.is_new());
            text.restates(text) || others.any(|other| other.restates(text))
        })
    }

    /// Returns what is recorded of it.
    pub(super) fn inspection(&self) -> Inspection {
        let steering = self.facts.steering.iter().map(|one| {
            if one.parts.is_empty() {
                one.path.clone()
            } else {
                format!("{} ({})", one.path, one.parts.join(", "))
            }
        });
        let (mut tests_extended, mut tests_changed): (Vec<String>, Vec<String>) = self
            .tests_touched()
            .into_iter()
            .partition(|path| self.keeps(path));
        tests_changed.extend(self.tests_lost());
        let examples = self.examples().into_iter();
        tests_extended.extend(examples.map(|(path, _)| path.display().to_string()));
        Inspection {
            tests_added: self.added_tests().map(str::to_owned).collect(),
            tests_changed,
            tests_extended,
            steering_changed: steering.chain(self.facts.shadows.iter().cloned()).collect(),
            flagged_code: named(&self.flagged_lines(&[])),
            notices: self.notices.clone(),
            ..Inspection::default()
        }
    }

    /// Returns the lines of the code under test that look like faking a pass, by file, without the kinds
    /// that are known to be harmless. What a file asked before is its business.
    pub(super) fn flagged_lines(&self, excused: &[NoticeKind]) -> FlaggedLines<'_> {
        let steers = |path: &String| {
            let steering = self.facts.steering.iter().map(|one| &one.path);
            steering.chain(&self.facts.shadows).any(|it| it == path)
        };
        let mut flagged = FlaggedLines::new();
        for notice in &self.notices {
            let is_under_test = self.code.contains(&notice.path) && !steers(&notice.path);
            let is_usual = || {
                let mut texts = self.texts.iter();
                let text = texts.find(|text| text.path == Path::new(&notice.path));
                notice.kind == NoticeKind::DetectsEnvironment
                    && text.is_some_and(|text| text.had(notice.kind))
            };
            let is_meant = notice.kind.can_fake_a_pass() && !excused.contains(&notice.kind);
            if is_under_test && is_meant && !is_usual() {
                let lines = flagged.entry(Path::new(&notice.path)).or_default();
                lines.insert(notice.line);
            }
        }
        flagged
    }

    /// Returns files without the hunks that hold such lines.
    pub(super) fn without(&self, flagged: &FlaggedLines<'_>) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let files = self.texts.iter().filter_map(|text| {
            let lines = flagged.get(text.path.as_path())?;
            let content = text.without(lines).map(String::into_bytes);
            Some((text.path.clone(), content.or_else(|| nothing(&text.path))))
        });
        files.collect()
    }

    /// Returns lock files that it changes and that are there where nothing that the work wrote runs.
    pub(super) fn lock_files(&self) -> Vec<String> {
        self.facts.locks_to_install()
    }

    /// Tells whether it changes the source of a dependency that the project holds.
    pub(super) const fn touches_dependencies(&self) -> bool {
        self.is_in_dependencies
    }

    /// Tells whether files that steer the checks were changed.
    pub(super) fn steers(&self) -> bool {
        !self.facts.steering.is_empty() || !self.facts.shadows.is_empty()
    }

    /// Returns tests that it adds and without which the base's have to pass as well. A test that a
    /// command names is what was asked for, and where there were no tests there is nothing to keep.
    fn new_tests(&self, commands: &[String]) -> Vec<&Path> {
        let is_named = |path: &Path| {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy());
            let stem = stem.unwrap_or_default();
            commands.iter().any(|line| line.contains(&*stem))
        };
        let added = self.added_tests().map(Path::new);
        added
            .filter(|path| self.base_has_tests && !is_named(path))
            .collect()
    }

    /// Returns test files with code that it adds.
    fn added_tests(&self) -> impl Iterator<Item = &str> {
        let added = self.facts.tests.iter();
        let added = added.filter(|test| test.disposition == TestEdit::Added);
        let is_code = |path: &&str| self.test_code.iter().any(|test| test == Path::new(path));
        added.map(|test| test.path.as_str()).filter(is_code)
    }

    /// Returns the parts of it that check, and that the proof has to hold without.
    pub(super) fn parts_that_check(&self, claim: &ProofClaim<'_>) -> Vec<ChangePart> {
        let mut parts = Vec::new();
        if !self.examples().is_empty() || !self.tests_touched().is_empty() {
            parts.push(ChangePart::Tests);
        }
        // What may steer the checks may well name a new test.
        let rests_on_steering = self.steers() && claim.policy.changed_steering;
        if !rests_on_steering && !self.new_tests(claim.commands).is_empty() {
            parts.push(ChangePart::NewTests);
        }
        if self.steers() && !claim.policy.changed_steering {
            parts.push(ChangePart::Steering);
        }
        parts
    }

    /// Returns what puts parts of it back.
    pub(super) fn put_back(
        &self,
        repository: &Repository,
        claim: &ProofClaim<'_>,
        parts: &[ChangePart],
    ) -> Result<PutBack, Failure> {
        let mut back = PutBack::default();
        for part in parts {
            match part {
                ChangePart::Tests => {
                    back.files.extend(self.tests_touched());
                    let examples = self.examples().into_iter();
                    back.texts
                        .extend(examples.map(|(path, text)| (path, Some(text.into_bytes()))));
                }
                ChangePart::NewTests => {
                    let new = self.new_tests(claim.commands).into_iter();
                    back.texts
                        .extend(new.map(|path| (path.to_path_buf(), nothing(path))));
                }
                ChangePart::Steering => {
                    self.put_back_whole_steering(repository, &mut back)?;
                    let texts = self.steering_texts(repository)?.into_iter();
                    back.texts
                        .extend(texts.map(|(path, bytes)| (path, Some(bytes))));
                }
                ChangePart::Code => back.files.extend(self.code.iter().cloned()),
                ChangePart::CodeUnderTest => self.put_back_code_under_test(&mut back),
            }
        }
        Ok(back)
    }

    /// Returns files that steer as a whole.
    fn whole_steering(&self) -> impl Iterator<Item = &str> {
        let steering = self.facts.steering.iter().map(|one| &one.path);
        let whole = steering.chain(&self.facts.shadows);
        whole
            .filter(|path| !self.parts.contains_key(*path))
            .map(String::as_str)
    }

    /// Puts files back that steer as a whole.
    fn put_back_whole_steering(
        &self,
        repository: &Repository,
        back: &mut PutBack,
    ) -> Result<(), Failure> {
        for path in self.whole_steering() {
            match self.with_added_names(repository, path)? {
                Some(text) => back.texts.push((path.into(), Some(text.into_bytes()))),
                None => back.files.push(path.to_owned()),
            }
        }
        Ok(())
    }

    /// Returns a file as at the base with the new lines that only name files which the change adds;
    /// nothing where there are none.
    fn with_added_names(
        &self,
        repository: &Repository,
        path: &str,
    ) -> Result<Option<String>, Failure> {
        let (old, new) = both(repository, Path::new(path), &self.ends)?;
        let added: Vec<&Path> = self.added_code.iter().map(Path::new).collect();
        Ok(listing::with_added_names(
            Path::new(path),
            &old,
            &new,
            &added,
        ))
    }

    /// Returns files that steer in parts, with these parts as at the base.
    fn steering_texts(&self, repository: &Repository) -> Result<Vec<(PathBuf, Vec<u8>)>, Failure> {
        let mut texts = Vec::new();
        for (path, part) in &self.parts {
            let path = Path::new(path);
            let (old, new) = both(repository, path, &self.ends)?;
            let text = match part {
                SteeringPart::Keys(keys) => {
                    let old = SettingsDocument::parse(path, &old);
                    let new = SettingsDocument::parse(path, &new);
                    let pair = old.zip(new);
                    pair.and_then(|(old, new)| new.with_keys_of(&old, keys))
                }
                SteeringPart::Lines(lines) => Some(with_lines_of(lines, &old, &new)),
            };
            texts.extend(text.map(|text| (path.to_path_buf(), text.into_bytes())));
        }
        Ok(texts)
    }
}

/// Returns lines as `path:line`.
pub(super) fn named(lines: &FlaggedLines<'_>) -> Vec<String> {
    let named = lines.iter().flat_map(|(path, lines)| {
        lines
            .iter()
            .map(move |line| format!("{}:{line}", path.display()))
    });
    named.collect()
}

const fn how(kind: ChangeKind) -> PathChangeKind<'static> {
    match kind {
        ChangeKind::Added => PathChangeKind::Added,
        ChangeKind::Modified | ChangeKind::Mode | ChangeKind::Type => PathChangeKind::Modified,
        ChangeKind::Deleted => PathChangeKind::Deleted,
    }
}

fn names_of(paths: &[PathBuf]) -> BTreeSet<String> {
    let names = paths.iter().map(|path| path.to_string_lossy());
    names.map(std::borrow::Cow::into_owned).collect()
}

/// Returns what stands in the place of a file that is not there: Rust's modules are named by others.
fn nothing(path: &Path) -> Option<Vec<u8>> {
    path.extension()
        .is_some_and(|end| end == "rs")
        .then(Vec::new)
}

/// Tells whether a change is one to the source of a dependency.
fn is_dependency(present: &Present<'_>, change: &ChangedPath<'_>) -> bool {
    present.roles(change.path).has(PathRole::Dependency)
}
