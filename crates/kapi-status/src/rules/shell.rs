//! What a shell command really runs: its parts, without what only surrounds them.
//!
//! `cd web && CI=1 sudo npx jest | tee log` runs `jest`, whatever stands around it. This is a
//! reading for a progress bar: it takes no decision about safety, and text that is no valid
//! shell is read as well as it goes. Knows nothing of categories or patterns.

mod program;
mod words;

use crate::rules::shell::program::BareCommand;

/// Characters of a command that are read.
const CHARS_MAX: usize = 4 * 1024;
/// Parts of a command that are looked at.
const PARTS_MAX: usize = 64;
/// Shells within shells that are looked into.
const DEPTH_MAX: usize = 3;

/// One program of a command, in the spellings a pattern may be written for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandPart {
    /// Lower case; the plainest spelling first.
    pub(crate) spellings: Vec<String>,
    /// Whether it only copies its words or input into a file.
    pub(crate) is_writing: bool,
}

/// Returns the programs that a command runs.
pub(crate) fn parts(command: &str) -> Vec<CommandPart> {
    let mut parts = Vec::new();
    let capped: String = command.chars().take(CHARS_MAX).collect();
    collect(&capped, 0, &mut parts);
    parts
}

fn collect(command: &str, depth: usize, parts: &mut Vec<CommandPart>) {
    for simple in words::split(command) {
        if parts.len() >= PARTS_MAX {
            return;
        }
        match program::unwrap(simple.words) {
            BareCommand::Nothing => {}
            BareCommand::Script(script) if depth < DEPTH_MAX => collect(&script, depth + 1, parts),
            BareCommand::Script(script) => parts.push(part(vec![script], simple.has_output)),
            BareCommand::Words(words) => parts.push(part(words, simple.has_output)),
        }
    }
}

fn part(words: Vec<String>, has_output: bool) -> CommandPart {
    let plain = program::plain(&words);
    let copies = matches!(
        plain.first().map(String::as_str),
        Some("cat" | "echo" | "printf")
    );
    let mut spellings = vec![plain.join(" ")];
    let written = program::without_skipped_tests(words)
        .join(" ")
        .to_lowercase();
    if !spellings.contains(&written) {
        spellings.push(written);
    }
    CommandPart {
        spellings,
        is_writing: copies && has_output,
    }
}

#[cfg(test)]
mod tests {
    use super::parts;

    fn plain(command: &str) -> Vec<String> {
        parts(command)
            .into_iter()
            .map(|part| part.spellings.into_iter().next().unwrap())
            .collect()
    }

    #[test]
    fn what_surrounds_a_program_is_left_out() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("  ls  ", &["ls"]),
            ("cd a && pytest", &["cd a", "pytest"]),
            ("A=1 B='x y' make test", &["make test"]),
            ("A=1", &[]),
            ("sudo -u me -E npm ci", &["npm ci"]),
            ("time -p cargo test", &["cargo test"]),
            ("env -i -u X PATH=/bin git status", &["git status"]),
            ("timeout -k 5 10s pytest -q", &["pytest -q"]),
            ("nice -n 10 nohup make -j 8 all &", &["make all -j 8"]),
            (
                "/usr/bin/git -C sub --no-pager commit -m 'a b'",
                &["git commit -m a b -c sub --no-pager"],
            ),
            ("python3.11 -m pytest tests", &["pytest tests"]),
            ("python -m pip install x", &["pip install x"]),
            ("npx --yes vitest run", &["vitest run"]),
            ("uv run pytest", &["pytest"]),
            ("poetry run python -m pytest", &["pytest"]),
            ("bundle exec rspec", &["rspec"]),
            (
                "./mvnw -q -f a/pom.xml clean verify",
                &["mvn clean verify -q -f a/pom.xml"],
            ),
            ("mvn -DskipTests package", &["mvn package"]),
            ("gradle build -x test", &["gradle build"]),
            ("cargo +nightly test", &["cargo test +nightly"]),
            ("bash -lc 'cd x; npm test'", &["cd x", "npm test"]),
            ("sh -ec \"a && b\"", &["a", "b"]),
            ("if test -f x; then make; fi", &["test -f x", "make"]),
            ("for f in *; do rustfmt $f; done", &["rustfmt $f"]),
            ("(cd a; ls) | wc -l", &["cd a", "ls", "wc -l"]),
            ("echo $(git status)", &["echo", "git status"]),
            ("make 2>&1 >/dev/null | tail -5", &["make", "tail -5"]),
            ("ls # && pytest", &["ls"]),
            ("echo 'x && pytest'", &["echo x && pytest"]),
            ("make \\\n test", &["make test"]),
        ];
        for (command, programs) in cases {
            assert_eq!(&plain(command), programs, "{command:?}");
        }
    }

    #[test]
    fn the_text_of_a_here_document_runs_nothing() {
        let command = "cat > test.py <<'EOF'\npytest\ngit commit\nEOF\nls";
        assert_eq!(plain(command), ["cat", "ls"]);
        let found = parts(command);
        assert!(found.first().is_some_and(|part| part.is_writing));
        assert!(found.last().is_some_and(|part| !part.is_writing));
        assert_eq!(plain("cat <<-E\n\tpytest\n\tE\nls"), ["cat", "ls"]);
        assert_eq!(plain("cat <<E\nnever ends\npytest"), ["cat"]);
    }

    #[test]
    fn any_text_is_read_in_bounds() {
        let hostile = [
            "'".to_owned(),
            "\"\\".to_owned(),
            "a".repeat(100_000),
            ";".repeat(100_000),
            "a;".repeat(100_000),
            "bash -c '".repeat(1_000),
            "bash -c bash -c bash -c bash -c ls".to_owned(),
            "<<".repeat(1_000),
            "$(".repeat(10_000),
            "sudo ".repeat(10_000),
            "\u{0}\u{1b}[2J\u{202e}".to_owned(),
        ];
        for command in hostile {
            assert!(parts(&command).len() <= super::PARTS_MAX);
        }
    }
}
