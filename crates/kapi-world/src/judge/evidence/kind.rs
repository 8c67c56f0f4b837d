//! What a changed file is to a judge, by its path and its content.
//!
//! Only the order in which files are shown, and a word beside each, follow from it: a wrong word hides
//! nothing.

use std::path::Path;

use kapi_git::changed_file::{ChangedFile, FileMode};

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
/// Endings of names that say how something is run or built.
const SETTINGS: &[&str] = &[
    "cfg",
    "conf",
    "ini",
    "json",
    "toml",
    "yaml",
    "yml",
    "xml",
    "properties",
    "mk",
];
/// Names that say how something is run or built.
const STEERING: &[&str] = &[
    "makefile",
    "gnumakefile",
    "dockerfile",
    "justfile",
    "rakefile",
    "procfile",
    "cmakelists.txt",
    ".npmrc",
    ".gitattributes",
    ".envrc",
    ".env",
    "conftest.py",
    "build.rs",
    "setup.py",
];
/// Names of files that say which dependencies are installed.
const LOCKS: &[&str] = &[
    "cargo.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    "uv.lock",
    "poetry.lock",
    "pipfile.lock",
    "go.sum",
    "composer.lock",
    "gemfile.lock",
    "mix.lock",
    "deno.lock",
    "packages.lock.json",
    "gradle.lockfile",
    "flake.lock",
];
/// Directories of what others wrote or what was built.
const BULK: &[&str] = &[
    "node_modules",
    "vendor",
    "third_party",
    "dist",
    "target",
    ".venv",
];
/// Directories of tests and what they read.
const TESTS: &[&str] = &[
    "test",
    "tests",
    "spec",
    "specs",
    "__tests__",
    "testdata",
    "__snapshots__",
    "fixtures",
    "e2e",
];

/// What a file is; the order is the one in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
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

impl Kind {
    pub(super) const ALL: [Self; 7] = [
        Self::Steering,
        Self::Code,
        Self::Text,
        Self::Test,
        Self::LockFile,
        Self::Bulk,
        Self::Binary,
    ];

    /// Returns what a path looks like.
    pub(super) fn of_path(path: &Path) -> Self {
        let lower = path.to_string_lossy().to_ascii_lowercase();
        let mut directories: Vec<&str> = lower.split('/').collect();
        let name = directories.pop().unwrap_or_default();
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let is_below = |names: &[&str]| directories.iter().any(|it| names.contains(it));
        if LOCKS.contains(&name) {
            return Self::LockFile;
        }
        if is_below(BULK) {
            return Self::Bulk;
        }
        if STEERING.contains(&name) || directories.first() == Some(&".github") {
            return Self::Steering;
        }
        if is_below(TESTS) || is_test_name(name) {
            return Self::Test;
        }
        if SETTINGS.contains(&ending) {
            return Self::Steering;
        }
        if CODE.contains(&ending) {
            return Self::Code;
        }
        Self::Text
    }

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

fn is_test_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    stem.starts_with("test_")
        || stem.ends_with("_test")
        || name.contains(".test.")
        || name.contains(".spec.")
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
    use std::path::Path;

    use super::{Kind, is_text};

    #[test]
    fn a_path_tells_what_weighs_most() {
        for (path, kind) in [
            ("src/lib.rs", Kind::Code),
            ("a/Makefile", Kind::Steering),
            ("package.json", Kind::Steering),
            (".github/workflows/ci.sh", Kind::Steering),
            ("tests/test_a.py", Kind::Test),
            ("src/a.test.ts", Kind::Test),
            ("shlex_test.go", Kind::Test),
            ("Cargo.lock", Kind::LockFile),
            ("vendor/x/a.go", Kind::Bulk),
            ("README", Kind::Text),
            ("contest.py", Kind::Code),
        ] {
            assert_eq!(Kind::of_path(Path::new(path)), kind, "{path}");
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
