//! Signs that stand in one line, by the words that make them.
//!
//! The words are in `words.rs`. Nothing here is sure: see the module above.

use super::words::{SIGNS, SignScope};
use super::{AddedLine, NoticeKind};
use crate::rules::proof::language::Language::{
    self, C, Go, Jvm, Lua, Other, Perl, Php, Python, Ruby, Rust, Script, Shell,
};

/// Calls that write, move or remove a file.
const WRITES: &[&str] = &[
    "open(",
    "write_text(",
    "write_bytes(",
    "writeFile",
    "appendFile",
    "fs::write(",
    "File::create(",
    "WriteFile(",
    "os.Create(",
    "os.Remove",
    "os.remove(",
    "os.unlink(",
    ".unlink(",
    "unlinkSync(",
    "rmSync(",
    "os.rename(",
    "os.replace(",
    "renameSync(",
    "shutil.",
    "Files.write",
    "File.write(",
    "FileUtils.",
    "file_put_contents(",
    "fopen(",
    "remove_file(",
    "sed -i",
    "rm ",
    "mv ",
    "tee ",
    "truncate ",
    "cp ",
    "Path(",
    ">",
];
/// Calls that ask whether a file or directory is there.
const ASKS: &[&str] = &[
    "exists(",
    "existsSync(",
    "isdir(",
    "isfile(",
    "is_dir(",
    "is_file(",
    "statSync(",
    "os.Stat(",
    "Files.exists(",
    "File.exist?(",
    "Dir.exist?(",
];
/// Names of test files in a text.
const TEST_NAMES: &[&str] = &[
    "tests/",
    "test/",
    "test_",
    "_test.",
    ".test.",
    "spec/",
    "_spec.",
    ".spec.",
    "__tests__",
    "conftest.py",
    "pytest.ini",
    "jest.config",
    "vitest.config",
    "__snapshots__",
];

/// Returns the sign in a line.
pub(super) fn of(line: &AddedLine<'_>, language: Language) -> Option<NoticeKind> {
    let found = SIGNS.iter().find(|sign| {
        let is_meant = match sign.location {
            SignScope::Everywhere => true,
            SignScope::Product => !line.is_test,
            SignScope::Library => !line.is_test && !is_program(line.path),
        };
        is_meant
            && sign.languages.contains(&language)
            && sign.any.iter().any(|words| holds(line.text, words))
    });
    if let Some(sign) = found {
        return Some(sign.kind);
    }
    if line.is_test {
        return None;
    }
    let asks = looks_for_tests(line.text, language) && !is_program(line.path);
    let asks = asks || hides_a_name(line.text);
    let looks = asks.then_some(NoticeKind::LooksAtRunner);
    let writes = writes_tests(line.text, language).then_some(NoticeKind::WritesTests);
    writes.or(looks)
}

/// Tells whether a file is where a program begins, or one of its own tools.
fn is_program(path: &str) -> bool {
    let mut names = path.split('/').rev();
    let file = names.next().unwrap_or(path);
    let stem = file.split('.').next().unwrap_or(file);
    let is_program = |name: &str| {
        matches!(
            name,
            "bin"
                | "cli"
                | "cmd"
                | "scripts"
                | "script"
                | "tools"
                | "examples"
                | "example"
                | "benchmarks"
                | "bench"
                | "docs"
                | "xtask"
                | "commands"
        )
    };
    matches!(
        stem,
        "main"
            | "__main__"
            | "cli"
            | "setup"
            | "index.cli"
            | "Main"
            | "Program"
            | "build"
            | "manage"
            | "run"
            | "bin"
            | "command"
    ) || names.any(is_program)
}

/// Tells whether a text holds words that do not go on from or into other words.
fn holds(text: &str, words: &str) -> bool {
    let goes_on = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let starts_open = words.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    // A prefix of a name, or an assignment and no comparison.
    let is_prefix = words.ends_with('_') || words.ends_with("assert") || words.ends_with("assume");
    text.match_indices(words).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text
            .get(at + words.len()..)
            .and_then(|after| after.chars().next());
        let is_start = !starts_open || !goes_on(before);
        let is_end =
            is_prefix || words.ends_with(|c: char| !c.is_alphanumeric()) || !goes_on(after);
        let is_comparison = words.ends_with('=') && after == Some('=');
        // `obj.exit(0)` of something else is none of ours.
        let is_method = before == Some('.') && !words.contains('.') && words.ends_with('(');
        is_start && is_end && !is_comparison && !is_method
    })
}

/// Tells whether a name is put together of two literals, so that nobody finds it by its word.
fn hides_a_name(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['"', '\'']).collect();
    let is_word = |part: &str| {
        let is_short = (1..=16).contains(&part.len());
        is_short && part.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
    };
    // What stands in quotes is every second part.
    parts.windows(3).enumerate().any(|(n, part)| match part {
        [one, between, other] => {
            n % 2 == 1 && between.trim() == "+" && is_word(one) && is_word(other)
        }
        _ => false,
    })
}

/// Tells whether code asks for the tests' own files.
fn looks_for_tests(text: &str, language: Language) -> bool {
    if language == Shell || !ASKS.iter().any(|call| text.contains(call)) {
        return false;
    }
    let quoted = quoted(text).unwrap_or_default();
    let mut words = quoted.split(' ');
    words.any(|word| ["test", "tests"].contains(&word))
        || TEST_NAMES.iter().any(|name| quoted.contains(name))
}

fn writes_tests(text: &str, language: Language) -> bool {
    let quoted = match language {
        Shell => Some(text.to_owned()),
        Python | Script | Rust | Go | Jvm | C | Ruby | Php | Perl | Lua | Other => quoted(text),
    };
    let Some(quoted) = quoted else { return false };
    let names_test = TEST_NAMES.iter().any(|name| quoted.contains(name));
    let is_shell = language == Shell;
    let writes = WRITES.iter().any(|call| {
        let is_word = call.ends_with(' ') || *call == ">";
        if is_word {
            // In a recipe only a redirection into the file counts.
            is_shell && *call != ">" && holds(text, call) && !text.contains("rm -rf build")
                || is_shell && redirects(text)
        } else {
            !is_shell
                && text.contains(call)
                && (*call != "open(" && *call != "Path(" || has_write_mode(text))
        }
    });
    names_test && writes
}

/// Tells whether a file is opened for writing.
fn has_write_mode(text: &str) -> bool {
    [
        "\"w", "'w", "\"a\"", "'a'", "\"r+", "'r+", "\"x\"", "'x'", ".write",
    ]
    .iter()
    .any(|mode| text.contains(mode))
}

/// Tells whether a command line writes into a test file.
fn redirects(text: &str) -> bool {
    text.match_indices('>').any(|(at, _)| {
        let target = text
            .get(at + 1..)
            .unwrap_or_default()
            .trim_start_matches(['>', ' ']);
        let target = target
            .split([' ', ';', '&', '|'])
            .next()
            .unwrap_or_default();
        TEST_NAMES.iter().any(|name| target.contains(name))
    })
}

/// Returns what stands in quotes.
fn quoted(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(['"', '\'', '`']).skip(1).step_by(2).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}
