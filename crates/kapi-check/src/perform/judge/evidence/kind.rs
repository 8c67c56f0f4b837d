//! What a changed file is to a judge, by its path and its content.
//!
//! Only the order in which files are shown, and a word beside each, follow from it: a wrong word hides
//! nothing.

use kapi_core::failure::Failure;
use kapi_git::changed_file::{ChangedFile, FileMode};
use kapi_git::id::CommitId;
use kapi_run::failure;

use crate::perform::ecosystems;
use crate::perform::judge::evidence::JudgedChange;
use crate::rules::proof::role::{Ecosystems, PathRole, Roles};

/// The share of bytes that no text has, in hundredths, beyond which a file is no text.
const STRANGE_PERCENT_MAX: usize = 30;
/// Endings of names that are program text whatever bytes are in them.
const CODE: &[&str] = &[
    "bash", "bat", "c", "cc", "cjs", "clj", "cmake", "cpp", "cs", "css", "cts", "cxx", "dart",
    "erl", "ex", "exs", "fish", "fs", "go", "gradle", "groovy", "h", "hh", "hpp", "hs", "html",
    "java", "jl", "js", "jsx", "kt", "kts", "lua", "m", "mjs", "ml", "mli", "mm", "mts", "nim",
    "nix", "php", "pl", "pm", "ps1", "py", "pyi", "pyx", "r", "rb", "rs", "sass", "scala", "scss",
    "sh", "sql", "svelte", "swift", "tcl", "tf", "ts", "tsx", "v", "vue", "zig", "zsh",
];
/// What a file is; the order is the one in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EvidenceFileKind {
    /// It says how something is run, built or tested.
    Steering,
    /// Program text.
    Code,
    /// Anything else that somebody writes.
    Text,
    /// A test, or what tests read.
    Test,
    /// It says which dependencies are installed.
    LockFile,
    /// What others wrote, or what was built.
    Bulk,
    /// No text.
    Binary,
}

impl EvidenceFileKind {
    pub(super) const ALL: [Self; 7] = [
        Self::Steering,
        Self::Code,
        Self::Text,
        Self::Test,
        Self::LockFile,
        Self::Bulk,
        Self::Binary,
    ];

    /// Tells whether a file is shown as text whatever bytes are in it.
    pub(super) const fn is_always_text(self) -> bool {
        match self {
            Self::Steering | Self::Code | Self::LockFile => true,
            Self::Text | Self::Test | Self::Bulk | Self::Binary => false,
        }
    }

    /// Returns the word for it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Steering => "steering",
            Self::Code => "code",
            Self::Text => "text",
            Self::Test => "test",
            Self::LockFile => "lock file",
            Self::Bulk => "bulk",
            Self::Binary => "binary",
        }
    }
}

/// What paths are, in one project.
pub(super) struct Paths {
    ecosystems: &'static Ecosystems,
    /// The files by which the project's ecosystems are known.
    known: Vec<String>,
}

impl Paths {
    /// Reads the table, and which ecosystems the project is of: by what marks one in the base, and by
    /// everything that differs.
    pub(super) fn read(
        change: &JudgedChange<'_>,
        base: &CommitId,
        files: &[ChangedFile],
    ) -> Result<Self, Failure> {
        let table = ecosystems::table()?;
        let markers = table.all.iter().flat_map(|one| &one.markers);
        let markers: Vec<String> = markers
            .map(|marker| format!("**/{}", marker.trim_start_matches('/')))
            .collect();
        let repository = &change.repo.repository;
        let marking = repository
            .tracked_files_matching(base, &markers)
            .map_err(|error| failure::plain(&error))?;
        let all = marking.iter().chain(files.iter().map(|file| &file.path));
        Ok(Self {
            ecosystems: ecosystems::rules()?,
            known: all
                .map(|path| path.to_string_lossy().into_owned())
                .collect(),
        })
    }

    /// Returns what each of these files is, by its path.
    pub(super) fn kinds(&self, files: &[ChangedFile]) -> Vec<EvidenceFileKind> {
        let present = self.ecosystems.of(self.known.iter().map(String::as_str));
        let kinds = files.iter().map(|file| {
            let path = file.path.to_string_lossy();
            kind_of(&path, &present.roles(&path))
        });
        kinds.collect()
    }
}

/// Returns what a path is; what it steers weighs more than what it is besides.
fn kind_of(path: &str, roles: &Roles) -> EvidenceFileKind {
    let has = |role| roles.has(role);
    let name = path.rsplit('/').next().unwrap_or_default();
    let ending = name
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase());
    if has(PathRole::LockFile) {
        EvidenceFileKind::LockFile
    } else if has(PathRole::Steering) {
        EvidenceFileKind::Steering
    } else if has(PathRole::Dependency) || has(PathRole::Output) {
        EvidenceFileKind::Bulk
    } else if has(PathRole::Shadow) {
        EvidenceFileKind::Steering
    } else if has(PathRole::Test) {
        EvidenceFileKind::Test
    } else if ending.is_some_and(|ending| CODE.contains(&&*ending)) {
        EvidenceFileKind::Code
    } else {
        EvidenceFileKind::Text
    }
}

/// Tells whether a change is one of content that git keeps here, and not of a mode or a submodule.
pub(super) fn has_content(file: &ChangedFile) -> bool {
    let is_file = |mode: FileMode| matches!(mode, FileMode::Plain | FileMode::Executable);
    let versions = [&file.before, &file.after];
    let mut versions = versions.into_iter().flatten();
    let is_same = match (&file.before, &file.after) {
        (Some(before), Some(after)) => before.object == after.object,
        (_, _) => false,
    };
    !is_same && versions.any(|version| is_file(version.mode))
}

/// Tells whether the lines of a patch are text, perhaps with a few bytes that are none: one zero byte
/// hides no program.
pub(super) fn is_text(patch: &[u8]) -> bool {
    let lines = patch.split(|&b| b == b'\n');
    let is_content = |line: &&[u8]| matches!(line.first(), Some(b'+' | b'-'));
    let (mut n_bytes, mut n_strange) = (0_usize, 0_usize);
    for line in lines.filter(is_content) {
        n_bytes += line.len();
        n_strange += strange(line);
    }
    n_strange.saturating_mul(100) <= n_bytes.saturating_mul(STRANGE_PERCENT_MAX)
}

/// Counts the bytes that no text has.
fn strange(line: &[u8]) -> usize {
    let is_control = |b: &&u8| b.is_ascii_control() && !matches!(b, b'\t' | b'\r' | 0x0c | 0x1b);
    let controls = line.iter().filter(is_control).count();
    let broken: usize = line.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    controls + broken
}

#[cfg(test)]
mod tests {

    use super::{EvidenceFileKind, is_text, kind_of};
    use crate::perform::ecosystems;

    #[test]
    fn a_path_tells_what_weighs_most() {
        let ecosystems = ecosystems::rules().unwrap();
        let present = ecosystems.of(["package.json", "Cargo.toml", "go.mod", "setup.py"]);
        for (path, kind) in [
            ("src/lib.rs", EvidenceFileKind::Code),
            ("Makefile", EvidenceFileKind::Steering),
            ("tests/test_a.py", EvidenceFileKind::Test),
            ("src/a.test.ts", EvidenceFileKind::Test),
            ("shlex_test.go", EvidenceFileKind::Test),
            ("Cargo.lock", EvidenceFileKind::LockFile),
            ("node_modules/x/a.js", EvidenceFileKind::Bulk),
            ("README", EvidenceFileKind::Text),
            ("contest.py", EvidenceFileKind::Code),
        ] {
            assert_eq!(kind_of(path, &present.roles(path)), kind, "{path}");
        }
    }

    #[test]
    fn a_few_strange_bytes_make_no_binary() {
        assert!(is_text(b"+++ b/a\n+def add(a, b):\n+    return 5\0\n"));
        assert!(is_text("+grün\n".as_bytes()));
        let picture: Vec<u8> = (0..=255).cycle().take(4_000).collect();
        assert!(!is_text(&[b"+".as_slice(), &picture].concat()));
    }
}
