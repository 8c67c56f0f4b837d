//! Whether the checks can fail: tests of the base expect something else, and the checks are run again.
//!
//! Where they failed on the base is where to look first, so that is kept from the run there. A line
//! speaks against the work only if it is known to be run: it passes whatever it expects, and fails
//! where it is made to fail. What the versions of a test are is decided in core.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_run::failure;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;
use serde::{Deserialize, Serialize};

use super::change::ChangePart;
use super::checkout::{Checkout, LineResult, PutBack};
use super::{ProofClaim, Prover, WorkToProve};
use crate::rules::proof::expectation::{
    Alteration, TestLine, altered, comparing_lines, failing_file, failing_lines,
};
use crate::rules::proof::notice::KEEP_FROM_FAILING;
use crate::rules::proof::verify_report::VerifyReport;
use crate::rules::proof::verify_run::Checks;

/// Where it is kept which lines failed, in the prover's own directory.
const KEPT: &str = "base-failing.json";
/// Bytes of the largest test that is looked into.
const BYTES_MAX: usize = 1 << 20;
/// The most tests that are altered at once.
const FILES_MAX: usize = 100;
/// The most lines that are altered one by one.
const ALONE_MAX: usize = 3;

/// Which lines of tests a run on the base named.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaseFailures {
    commit: String,
    commands: Vec<String>,
    lines: Vec<TestLine>,
    /// How many tests failed, as far as runners say so.
    failed: u64,
}

/// Whether it matters what tests of the base expect.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expectations {
    /// Every test that failed on the base fails again where it expects something else.
    Matter,
    /// These lines, as `path:line`, are run and pass whatever they expect.
    DoNotMatter(Vec<String>),
    /// That cannot be told.
    Unknown,
}

/// Lines of tests that are altered together.
#[derive(Debug, Default)]
struct LineGroup {
    /// The lines, from 1, by file.
    files: BTreeMap<PathBuf, Vec<usize>>,
    /// Whether a run on the base named these files.
    is_run: bool,
}

/// How checks ended on altered tests.
struct AlteredRun {
    passed: bool,
    /// How many tests failed, where a runner says so.
    failed: Option<u64>,
}

/// The state of the work on which tests are altered.
struct AlteredWork<'a> {
    work: &'a WorkToProve<'a>,
    claim: &'a ProofClaim<'a>,
    put_back: &'a PutBack,
    /// Tests that can be altered, each as it is there.
    tests: BTreeMap<PathBuf, String>,
    /// Whether a runner said how many tests it ran.
    is_counted: bool,
}

impl Prover<'_> {
    /// Keeps which lines of tests runs on the base named.
    pub(super) fn keep_failures(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
        ran: &[LineResult],
    ) -> Result<(), Failure> {
        let tests: Vec<&Path> = work.change.test_hosts().collect();
        let red = ran.iter().filter(|ended| !ended.run.passed());
        let lines: Vec<TestLine> = red
            .flat_map(|ended| failing_lines(&ended.output, &tests))
            .collect();
        let tallies = ran.iter().filter_map(|ended| ended.run.tally);
        let found = BaseFailures {
            commit: work.commit.to_string(),
            commands: claim.commands.to_vec(),
            lines,
            failed: tallies.map(|tally| tally.failed).sum(),
        };
        let bytes = serde_json::to_vec(&found).map_err(|error| failure::plain(&error))?;
        let written = RealDisk.write(&self.site.scratch.join(KEPT), &bytes);
        written.map_err(|error| failure::plain(&error))
    }

    fn failures_on(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
    ) -> Result<BaseFailures, Failure> {
        let read = RealDisk.read(&self.site.scratch.join(KEPT), 0);
        let bytes = read
            .map_err(|error| failure::plain(&error))?
            .unwrap_or_default();
        // What another version or another base left says nothing here.
        let found = serde_json::from_slice::<BaseFailures>(&bytes).ok();
        let is_meant = |found: &BaseFailures| {
            found.commit == work.base.to_string() && found.commands == claim.commands
        };
        Ok(found.filter(is_meant).unwrap_or_default())
    }

    /// Alters what tests of the base expect and runs the checks again; nothing where it was called off.
    /// `put_back` is what they were seen to pass with.
    pub(super) fn expectations(
        &self,
        work: &WorkToProve<'_>,
        claim: &ProofClaim<'_>,
        put_back: &PutBack,
        report: &VerifyReport,
    ) -> Result<Option<Expectations>, Failure> {
        let before = self.failures_on(work, claim)?;
        let tests = self.tests_of(work, put_back, &before.lines)?;
        let mut tallies = report.runs.iter().filter_map(|run| run.tally);
        let altered_work = AlteredWork {
            work,
            claim,
            put_back,
            tests,
            is_counted: tallies.any(|tally| tally.run() > 0),
        };
        let lines = self.lines_to_alter(&altered_work, &before.lines)?;
        // What reads tests without running them names their lines, too, and counts none that fail.
        let is_run = before.failed > 0 && !before.lines.is_empty();
        if lines.is_empty() {
            return self.cannot_fail(&altered_work, &LineGroup::of(&before.lines, is_run));
        }
        let group = LineGroup::of(&lines, is_run);
        let other = Version::Line(Alteration::AnotherValue);
        let Some(all) = self.fails_with(&altered_work, &group, other)? else {
            return Ok(None);
        };
        if all.passed {
            let found = self.indifferent(&altered_work, &group)?;
            // Lines that failed on the base and are not even reached now prove nothing either.
            let is_unreached = matches!(found, Some(Expectations::Unknown));
            let is_known = group.is_run && altered_work.is_counted;
            return Ok(if is_unreached && is_known {
                Some(Expectations::DoNotMatter(group.named()))
            } else {
                found
            });
        }
        // As many tests fail again as did on the base: each of them compares.
        if before.failed > 0 && all.failed.is_some_and(|failed| failed >= before.failed) {
            let flagged = work.change.flagged_lines(&[]);
            return if flagged != work.change.flagged_lines(KEEP_FROM_FAILING) {
                self.compares(&altered_work, &group, before.failed)
            } else {
                Ok(Some(Expectations::Matter))
            };
        }
        if !group.is_run || lines.len() < 2 {
            return Ok(Some(Expectations::Unknown));
        }
        for line in lines.iter().take(ALONE_MAX) {
            let group = LineGroup::of(std::slice::from_ref(line), true);
            let Some(alone) = self.fails_with(&altered_work, &group, other)? else {
                return Ok(None);
            };
            if !alone.passed {
                continue;
            }
            match self.indifferent(&altered_work, &group)? {
                Some(Expectations::Matter | Expectations::Unknown) => {}
                found => return Ok(found),
            }
        }
        Ok(Some(Expectations::Unknown))
    }

    /// Says whether what is expected, as it stands there, differs from another value: what compares may
    /// have been replaced for these very values.
    fn compares(
        &self,
        altered_work: &AlteredWork<'_>,
        group: &LineGroup,
        failed: u64,
    ) -> Result<Option<Expectations>, Failure> {
        let how = Alteration::AnotherActual;
        let Some(ran) = self.fails_with(altered_work, group, Version::Line(how))? else {
            return Ok(None);
        };
        let is_whole = group.files.iter().all(|(path, lines)| {
            let name = path.to_string_lossy();
            let text = altered_work.tests.get(path);
            let can_be = |line: &usize| {
                text.is_some_and(|text| altered(&name, text, &[*line], how).is_some())
            };
            lines.iter().all(can_be)
        });
        let is_short = is_whole && ran.failed.is_some_and(|now| now < failed);
        Ok(Some(if ran.passed || is_short {
            Expectations::Unknown
        } else {
            Expectations::Matter
        }))
    }

    /// Says what it means that a group of lines passes with other expectations.
    fn indifferent(
        &self,
        altered_work: &AlteredWork<'_>,
        group: &LineGroup,
    ) -> Result<Option<Expectations>, Failure> {
        let failure = Version::Line(Alteration::Failure);
        let Some(failing) = self.fails_with(altered_work, group, failure)? else {
            return Ok(None);
        };
        if !failing.passed {
            return Ok(Some(Expectations::DoNotMatter(group.named())));
        }
        // Either the lines are not reached, or whatever fails, the run does not.
        self.cannot_fail(altered_work, group)
    }

    /// Says what it means that files of a group fail as a whole.
    fn cannot_fail(
        &self,
        altered_work: &AlteredWork<'_>,
        group: &LineGroup,
    ) -> Result<Option<Expectations>, Failure> {
        if group.files.is_empty() || !altered_work.is_counted {
            return Ok(Some(Expectations::Unknown));
        }
        let indifferent = || Ok(Some(Expectations::DoNotMatter(group.named())));
        let Some(failing) = self.fails_with(altered_work, group, Version::File)? else {
            return Ok(None);
        };
        if !failing.passed {
            return Ok(Some(Expectations::Unknown));
        }
        if group.is_run {
            return indifferent();
        }
        if !altered_work.claim.base_is_green {
            return Ok(Some(Expectations::Unknown));
        }
        match self.fails_on_base(altered_work, group)? {
            None => Ok(None),
            Some(true) => indifferent(),
            Some(false) => Ok(Some(Expectations::Unknown)),
        }
    }

    /// Tells whether the checks of the base fail with files that fail as a whole; nothing where it was
    /// called off.
    fn fails_on_base(
        &self,
        altered_work: &AlteredWork<'_>,
        group: &LineGroup,
    ) -> Result<Option<bool>, Failure> {
        let parts = [
            ChangePart::Code,
            ChangePart::Steering,
            ChangePart::Tests,
            ChangePart::NewTests,
        ];
        let AlteredWork { work, claim, .. } = altered_work;
        let put_back = work.change.put_back(&self.repo.repository, claim, &parts)?;
        let on_base = AlteredWork {
            put_back: &put_back,
            tests: altered_work.tests.clone(),
            ..*altered_work
        };
        let ran = self.fails_with(&on_base, group, Version::File)?;
        Ok(ran.map(|ran| !ran.passed))
    }

    /// Runs the commands on altered tests up to the first that fails; nothing when it was called off.
    fn fails_with(
        &self,
        altered_work: &AlteredWork<'_>,
        group: &LineGroup,
        version: Version,
    ) -> Result<Option<AlteredRun>, Failure> {
        let files = group.files.iter().filter_map(|(path, lines)| {
            let (text, name) = (altered_work.tests.get(path)?, path.to_string_lossy());
            let other = match version {
                Version::Line(how) => altered(&name, text, lines, how),
                Version::File => failing_file(&name, text),
            };
            Some((path.clone(), other?.into_bytes()))
        });
        let put_back = PutBack {
            laid_over: files.collect(),
            ..altered_work.put_back.clone()
        };
        // What cannot be made to fail says nothing.
        let mut ended = AlteredRun {
            passed: !put_back.laid_over.is_empty(),
            failed: None,
        };
        let mut checkout = Checkout::make(self, altered_work.work, put_back)?;
        for command in altered_work.claim.commands {
            let line_ms = altered_work.claim.line_ms();
            let Some(ran) = checkout.run(command, Checks::Visible, line_ms)? else {
                checkout.discard()?;
                return Ok(None);
            };
            if let Some(tally) = ran.run.tally {
                *ended.failed.get_or_insert_default() += tally.failed;
            }
            if !ran.run.passed() {
                ended.passed = false;
                break;
            }
        }
        checkout.discard()?;
        Ok(Some(ended))
    }

    /// Returns tests of the base as they are where the checks passed.
    fn tests_of(
        &self,
        work: &WorkToProve<'_>,
        put_back: &PutBack,
        named: &[TestLine],
    ) -> Result<BTreeMap<PathBuf, String>, Failure> {
        let named: BTreeSet<&Path> = named.iter().map(|line| Path::new(&line.path)).collect();
        let is_back = |path: &Path| put_back.files.iter().any(|file| Path::new(file) == path);
        let is_gone = |path: &Path| put_back.texts.iter().any(|(file, _)| file == path);
        let mut tests = BTreeMap::new();
        let paths = work
            .change
            .base_tests()
            .filter(|path| named.is_empty() || named.contains(path));
        for path in paths.filter(|path| !is_gone(path)).take(FILES_MAX) {
            let at = if is_back(path) {
                &work.base
            } else {
                &work.commit
            };
            let read = self.repo.repository.file_at(at, path, BYTES_MAX);
            let bytes = read.map_err(|error| failure::plain(&error))?;
            let text = bytes
                .filter(|bytes| bytes.len() < BYTES_MAX)
                .map(String::from_utf8);
            if let Some(Ok(text)) = text {
                tests.insert(path.to_path_buf(), text);
            }
        }
        Ok(tests)
    }

    /// Returns the lines that failed on the base and can expect something else; where none of them
    /// can, all such lines of the tests that are looked at.
    fn lines_to_alter(
        &self,
        altered_work: &AlteredWork<'_>,
        named: &[TestLine],
    ) -> Result<Vec<TestLine>, Failure> {
        let mut found = Vec::new();
        for one in named {
            let path = Path::new(&one.path);
            let Some(text) = altered_work.tests.get(path) else {
                continue;
            };
            let read = self
                .repo
                .repository
                .file_at(&altered_work.work.base, path, BYTES_MAX);
            let old = read
                .map_err(|error| failure::plain(&error))?
                .unwrap_or_default();
            let old = String::from_utf8_lossy(&old);
            let Some(line) = moved_line(&old, text, one.line) else {
                continue;
            };
            let can_be = altered(&one.path, text, &[line], Alteration::AnotherValue).is_some();
            if can_be {
                found.push(TestLine {
                    path: one.path.clone(),
                    line,
                });
            }
        }
        found.sort();
        found.dedup();
        if found.is_empty() {
            for (path, text) in &altered_work.tests {
                let path = path.to_string_lossy();
                let lines = comparing_lines(&path, text).into_iter();
                found.extend(lines.map(|line| TestLine {
                    path: path.clone().into_owned(),
                    line,
                }));
            }
        }
        Ok(found)
    }
}

/// Which version of a test is run.
#[derive(Clone, Copy)]
enum Version {
    /// With its lines altered.
    Line(Alteration),
    /// One that fails as a whole.
    File,
}

impl LineGroup {
    fn of(lines: &[TestLine], is_run: bool) -> Self {
        let mut files: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
        for line in lines {
            files
                .entry(PathBuf::from(&line.path))
                .or_default()
                .push(line.line);
        }
        Self { files, is_run }
    }

    /// Returns its lines as `path:line`.
    fn named(&self) -> Vec<String> {
        let lines = self.files.iter().flat_map(|(path, lines)| {
            lines
                .iter()
                .map(move |line| format!("{}:{line}", path.display()))
        });
        lines.take(ALONE_MAX).collect()
    }
}

/// Returns where a line of one text is in another, the nearest if it is there more than once.
fn moved_line(old: &str, new: &str, line: usize) -> Option<usize> {
    let text = old.lines().nth(line.checked_sub(1)?)?;
    let numbered = (1..).zip(new.lines()).filter(|(_, other)| *other == text);
    numbered
        .map(|(n, _)| n)
        .min_by_key(|n: &usize| n.abs_diff(line))
}

#[cfg(test)]
mod tests {
    use super::{LineGroup, moved_line};
    use crate::rules::proof::expectation::TestLine;

    #[test]
    fn a_line_is_found_where_it_is_now() {
        assert_eq!(moved_line("a\nb\n", "x\na\nb\n", 2), Some(3));
        assert_eq!(moved_line("a\nb\n", "b\na\nx\nb\n", 2), Some(1));
        assert_eq!(moved_line("a\nb\n", "a\n", 2), None);
        assert_eq!(moved_line("a\n", "a\n", 9), None);
    }

    #[test]
    fn a_group_names_its_first_lines() {
        let lines: Vec<TestLine> = (1..9)
            .map(|line| TestLine {
                path: "a.py".to_owned(),
                line,
            })
            .collect();
        assert_eq!(
            LineGroup::of(&lines, true).named(),
            ["a.py:1", "a.py:2", "a.py:3"]
        );
    }
}
