//! A change as text, file by file: the lines it adds, and the hunks that can be taken back.
//!
//! Files that are no text, and those that are large, have neither.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kapi_core::failure::Failure;
use kapi_git::id::CommitId;
use kapi_git::repository::Repository;
use kapi_run::failure;
use similar::{DiffOp, TextDiff};

use crate::rules::proof::form::keeps_statements;
use crate::rules::proof::inline_test;
use crate::rules::proof::notice::literal::BaseTests;
use crate::rules::proof::notice::{AddedLine, Notice, NoticeKind, notices};

/// The most files of a change that are looked into.
const FILES_MAX: usize = 500;
/// Bytes of the largest file that is looked into.
const BYTES_MAX: usize = 1 << 20;
/// Lines between two changes that make them two hunks.
const CONTEXT: usize = 3;

/// One file of a change.
#[derive(Debug, Clone)]
pub(super) struct TextChange {
    /// The path.
    pub(super) path: PathBuf,
    /// Whether it is a test or belongs to tests.
    pub(super) is_test: bool,
    old: Option<String>,
    new: Option<String>,
}

/// A file with one hunk of its change taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TakenBack {
    /// Where the hunk is, as `path:line`.
    pub(super) at: String,
    /// The file.
    pub(super) path: PathBuf,
    /// Its content; nothing where it is not there.
    pub(super) content: Option<String>,
}

impl TextChange {
    /// Tells whether it is a test that still says all that `other` said, in this or another form.
    pub(super) fn restates(&self, other: &Self) -> bool {
        let (Some(old), Some(new)) = (&other.old, &self.new) else {
            return false;
        };
        let path = self.path.to_string_lossy();
        self.is_test && keeps_statements(&path, old, new)
    }

    /// Tells whether it had a test beside what it tests that is nowhere in `changed`, the new texts of
    /// other files, nor in its own.
    pub(super) fn loses_tests(&self, changed: &[&str]) -> bool {
        let Some(old) = self.old.as_deref().filter(|_| !self.is_test) else {
            return false;
        };
        let own = self.new.as_deref().into_iter();
        let texts: Vec<&str> = own.chain(changed.iter().copied()).collect();
        inline_test::is_lost(&self.path, old, &texts)
    }

    /// Tells whether it has a test beside what it tests that is in none of `base`, the texts of files as
    /// they were.
    pub(super) fn gains_tests(&self, base: &[&str]) -> bool {
        let new = self.new.as_deref().filter(|_| !self.is_test);
        new.is_some_and(|new| inline_test::is_lost(&self.path, new, base))
    }

    /// Returns the base's text with the tests beside the code as they are now, and with what makes
    /// `added`, files of the change, part of the program.
    pub(super) fn base_with_own_tests(&self, added: &[&Path]) -> Option<String> {
        let old = self.old.as_deref().unwrap_or_default();
        let new = self.new.as_deref()?;
        let (was, is) = (inline_test::test_lines(old), inline_test::test_lines(new));
        let diff = TextDiff::from_lines(old, new);
        let (before, after) = (diff.old_slices(), diff.new_slices());
        let mut text = String::new();
        for op in diff.ops() {
            if matches!(op, DiffOp::Equal { .. }) {
                text.extend(before.get(op.old_range())?.iter().copied());
                continue;
            }
            let code = op.old_range().filter(|n| !was.contains(n));
            text.extend(code.filter_map(|n| before.get(n)).copied());
            let stays = |n: &usize| {
                is.contains(n) || after.get(*n).is_some_and(|line| declares(line, added))
            };
            let tests = op.new_range().filter(stays);
            text.extend(tests.filter_map(|n| after.get(n)).copied());
        }
        Some(text)
    }

    /// Returns it with the examples of its documentation as at the base, where they differ.
    pub(super) fn with_base_examples(&self) -> Option<String> {
        let (Some(old), Some(new), false) = (&self.old, &self.new, self.is_test) else {
            return None;
        };
        inline_test::with_examples_of(&self.path.to_string_lossy(), old, new)
    }

    /// Tells whether a line of the base's text had such a sign already.
    pub(super) fn had(&self, kind: NoticeKind) -> bool {
        let path = self.path.to_string_lossy();
        let old = self.old.as_deref().unwrap_or_default();
        let lines: Vec<AddedLine<'_>> = (1..)
            .zip(old.lines())
            .map(|(line, text)| AddedLine {
                path: &path,
                line,
                text,
                is_test: self.is_test,
            })
            .collect();
        let found = notices(&lines, &BaseTests::default());
        found.iter().any(|notice| notice.kind == kind)
    }

    /// Tells whether the change adds it.
    pub(super) const fn is_new(&self) -> bool {
        self.old.is_none()
    }

    /// Returns the base's text, if it was there.
    pub(super) fn base_text(&self) -> Option<&str> {
        self.old.as_deref()
    }

    /// Returns its new text, if it is there.
    pub(super) fn text(&self) -> Option<&str> {
        self.new.as_deref()
    }

    /// Reads a file before and after a change; nothing where it is no text on one of the sides.
    pub(super) fn read(
        repository: &Repository,
        base: &CommitId,
        commit: &CommitId,
        path: &Path,
        is_test: bool,
    ) -> Result<Option<Self>, Failure> {
        let read = |commit: &CommitId| {
            let bytes = repository.file_at(commit, path, BYTES_MAX);
            bytes.map_err(|error| failure::plain(&error))
        };
        let (old, new) = (read(base)?, read(commit)?);
        let is_large =
            |bytes: &Option<Vec<u8>>| bytes.as_ref().is_some_and(|bytes| bytes.len() >= BYTES_MAX);
        if is_large(&old) || is_large(&new) || (old.is_none() && new.is_none()) {
            return Ok(None);
        }
        let text = |bytes: Option<Vec<u8>>| match bytes {
            None => Some(None),
            Some(bytes) => String::from_utf8(bytes).ok().map(Some),
        };
        let both = text(old).zip(text(new));
        Ok(both.map(|(old, new)| Self {
            path: path.to_path_buf(),
            is_test,
            old,
            new,
        }))
    }

    /// Returns every version of the file with one hunk taken back.
    pub(super) fn taken_back(&self) -> Vec<TakenBack> {
        let shown = self.path.display();
        let whole = |content: Option<String>| TakenBack {
            at: format!("{shown}:1"),
            path: self.path.clone(),
            content,
        };
        let (Some(old), Some(new)) = (&self.old, &self.new) else {
            return vec![whole(self.old.clone())];
        };
        let diff = TextDiff::from_lines(old.as_str(), new.as_str());
        let (before, after) = (diff.old_slices(), diff.new_slices());
        let groups = diff.grouped_ops(CONTEXT);
        let versions = groups.iter().filter_map(|group| {
            let (first, last) = (group.first()?, group.last()?);
            let taken = first.old_range().start..last.old_range().end;
            let replaced = first.new_range().start..last.new_range().end;
            let content: String = after
                .get(..replaced.start)?
                .iter()
                .chain(before.get(taken)?)
                .chain(after.get(replaced.end..)?)
                .copied()
                .collect();
            let changed = group
                .iter()
                .find(|op| !matches!(op, DiffOp::Equal { .. }))?;
            Some(TakenBack {
                at: format!("{shown}:{}", changed.new_range().start + 1),
                path: self.path.clone(),
                content: Some(content),
            })
        });
        versions.collect()
    }

    /// Returns the file without the hunks, closely cut, that added any of these lines, numbered from 1.
    pub(super) fn without(&self, lines: &BTreeSet<u64>) -> Option<String> {
        let (Some(old), Some(new)) = (&self.old, &self.new) else {
            return self.old.clone();
        };
        let diff = TextDiff::from_lines(old.as_str(), new.as_str());
        let (before, after) = (diff.old_slices(), diff.new_slices());
        let is_meant = |op: &DiffOp| {
            let mut numbers = op.new_range().map(|n| n as u64 + 1);
            !matches!(op, DiffOp::Equal { .. }) && numbers.any(|n| lines.contains(&n))
        };
        let kept = diff.ops().iter().filter_map(|op| {
            if is_meant(op) {
                before.get(op.old_range())
            } else {
                after.get(op.new_range())
            }
        });
        Some(kept.flatten().copied().collect())
    }

    /// Returns the numbers and texts of added lines.
    fn added(&self) -> Vec<(u64, &str)> {
        let Some(new) = &self.new else {
            return Vec::new();
        };
        let old = self.old.as_deref().unwrap_or_default();
        let diff = TextDiff::from_lines(old, new.as_str());
        let changed = diff
            .ops()
            .iter()
            .filter(|op| !matches!(op, DiffOp::Equal { .. }));
        let numbers = changed.flat_map(DiffOp::new_range);
        let lines: Vec<&str> = new.lines().collect();
        let found = numbers.filter_map(|n| Some((n as u64 + 1, *lines.get(n)?)));
        found.collect()
    }
}

/// Tells whether a line says that one of these files is a module of the program.
fn declares(line: &str, added: &[&Path]) -> bool {
    let words = line.trim().trim_end_matches(';').split_once("mod ");
    let Some((visibility, name)) = words else {
        return false;
    };
    let is_whole = visibility.is_empty() || visibility.starts_with("pub");
    let is_it = |path: &&Path| {
        let module = path.with_extension("");
        module.ends_with(name) || module.ends_with(Path::new(name).join("mod"))
    };
    is_whole && line.trim_end().ends_with(';') && added.iter().any(is_it)
}

/// Returns the signs of a cheat in what a change adds.
pub(super) fn signs(
    repository: &Repository,
    base: &CommitId,
    changes: &[TextChange],
    base_tests: &[PathBuf],
) -> Result<Vec<Notice>, Failure> {
    let mut texts = Vec::new();
    for path in base_tests.iter().take(FILES_MAX) {
        let read = repository.file_at(base, path, BYTES_MAX);
        let bytes = read.map_err(|error| failure::plain(&error))?;
        texts.push(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned());
    }
    let tests = BaseTests::of(texts.iter().map(String::as_str));
    let mut found = Vec::new();
    for change in changes {
        let path = change.path.to_string_lossy();
        let added: Vec<AddedLine<'_>> = change
            .added()
            .into_iter()
            .map(|(line, text)| AddedLine {
                path: &path,
                line,
                text,
                is_test: change.is_test,
            })
            .collect();
        found.extend(notices(&added, &tests));
    }
    Ok(found)
}

/// Returns how many files of a change are looked into.
pub(super) const fn files_max() -> usize {
    FILES_MAX
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::TextChange;

    fn change(old: Option<&str>, new: Option<&str>) -> TextChange {
        TextChange {
            path: PathBuf::from("a"),
            is_test: false,
            old: old.map(str::to_owned),
            new: new.map(str::to_owned),
        }
    }

    #[test]
    fn each_hunk_is_taken_back_alone() {
        let lines: Vec<String> = (1..=30).map(|n| format!("{n}\n")).collect();
        let old = lines.concat();
        let new = old.replace("3\n4\n", "3\nfour\n").replace("27\n", "");
        let versions = change(Some(&old), Some(&new)).taken_back();
        let [first, second] = versions.as_slice() else {
            panic!("{versions:?}");
        };
        assert_eq!((first.at.as_str(), second.at.as_str()), ("a:4", "a:27"));
        assert_eq!(first.content, Some(old.replace("27\n", "")));
        assert_eq!(second.content, Some(old.replace("3\n4\n", "3\nfour\n")));
    }

    #[test]
    fn a_file_is_as_before_only_where_a_named_line_came_in() {
        let old = "a\nb\nc\nd\n";
        let now = change(Some(old), Some("a\nx\nb\nC\ny\nd\n"));
        let without = |lines: &[u64]| now.without(&lines.iter().copied().collect()).unwrap();
        assert_eq!(without(&[2]), "a\nb\nC\ny\nd\n");
        assert_eq!(without(&[5]), "a\nx\nb\nc\nd\n");
        assert_eq!(without(&[2, 4]), old);
        assert_eq!(without(&[1, 3]), "a\nx\nb\nC\ny\nd\n");
        assert_eq!(
            change(None, Some("x\n")).without(&BTreeSet::from([1])),
            None
        );
    }

    #[test]
    fn tests_beside_the_code_stay_where_the_code_is_as_before() {
        let tests = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn one() { f(); }\n}\n";
        let old = format!("fn f() {{}}\n{tests}");
        let added = tests.replace(
            "    fn one() { f(); }\n",
            "    fn one() { f(); }\n\n    #[test]\n    fn two() { g(); }\n",
        );
        let now = |old: Option<&str>, new: &str| TextChange {
            path: PathBuf::from("src/lib.rs"),
            ..change(old, Some(new))
        };
        let new = format!("mod b;\nmod c;\nfn f() {{ g() }}\nfn g() {{}}\n{added}");
        let own = now(Some(&old), &new);
        assert!(own.gains_tests(&[&old]));
        assert!(!own.gains_tests(&[&old, &added]));
        assert_eq!(
            own.base_with_own_tests(&[Path::new("src/b.rs")]).unwrap(),
            format!("fn f() {{}}\nmod b;\n{added}")
        );
        // The first tests of a file come with the code that they test.
        let first = format!("fn f() {{}}\nfn g() {{}}\n\n{tests}");
        assert_eq!(
            now(Some("fn f() {}\n"), &first).base_with_own_tests(&[]),
            Some(format!("fn f() {{}}\n{tests}"))
        );
        assert_eq!(
            now(None, &first).base_with_own_tests(&[]).as_deref(),
            Some(tests)
        );
    }

    #[test]
    fn a_whole_file_comes_or_goes_as_one() {
        let new = change(None, Some("x\n")).taken_back();
        assert_eq!(new.len(), 1);
        assert_eq!(new[0].content, None);
        let gone = change(Some("x\n"), None).taken_back();
        assert_eq!(gone[0].content.as_deref(), Some("x\n"));
    }

    #[test]
    fn added_lines_have_their_numbers() {
        let changed = change(Some("a\nb\n"), Some("a\nx\nb\ny\n"));
        assert_eq!(changed.added(), [(2, "x"), (4, "y")]);
    }
}
