//! No document, help text, hint or message types a command or an option that there is not.
//!
//! Looks at every `kapi …` of the documents and of the sources: words that name commands have to be
//! commands, options options of theirs, and whole lines of examples have to be read by the parser.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, Parser as _};

use super::Args;
use crate::command_line;

/// What programs type and no person, what a process says of itself to who waits for its lock, and what
/// a journal begins with.
const INNER: [&str; 3] = ["hook", "config", "apply"];
/// What stands for something else in an example.
const PLACEHOLDER: [char; 12] = ['<', '>', '…', '[', ']', '{', '}', '$', '|', '*', '\\', '#'];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the files below a directory that end so and are no tests, plans or other people's.
fn files(dir: &Path, end: &str) -> Vec<PathBuf> {
    const NOT: [&str; 7] = [
        "kapi-testkit",
        "node_modules",
        "tests",
        "design",
        "target",
        "fixtures",
        "former.rs",
    ];
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if NOT.contains(&name.as_ref()) {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if name.ends_with(end) {
            found.push(path);
        }
    }
    found
}

/// Returns what stands between backquotes and begins with `kapi`.
fn quoted(text: &str) -> Vec<String> {
    let spans = text.split("`kapi ").skip(1);
    let spans = spans.filter_map(|rest| rest.split('`').next());
    spans
        .filter(|span| !span.contains('\n'))
        .map(str::to_owned)
        .collect()
}

/// Returns the parts of a line that are commands, without what is said about them.
fn typed(line: &str) -> Vec<String> {
    let line = line.split("  ").next().unwrap_or(line);
    let line = line.split(" #").next().unwrap_or(line);
    let parts = line.split([';', '&']).map(str::trim);
    let parts = parts.filter_map(|part| part.strip_prefix("kapi "));
    parts.map(str::to_owned).collect()
}

/// Says what in a line is no command or option, as far as it says which it means.
fn fault(line: &str) -> Option<String> {
    let root = command_line();
    let mut at: &Command = &root;
    let mut is_named = false;
    for word in line.split_whitespace() {
        let word = word.trim_end_matches([',', '.', ';', ':', ')']);
        let is_placeholder = |c: char| PLACEHOLDER.contains(&c) || c.is_ascii_uppercase();
        if let Some(option) = word.strip_prefix("--") {
            let option = option.split(['=', '\'', '"']).next().unwrap_or(option);
            let has = |command: &Command| {
                let mut args = command.get_arguments();
                args.any(|arg| arg.get_long() == Some(option))
            };
            let is_known = has(at) || has(&root) || option.is_empty() || option == "help";
            if !is_known && !option.contains(is_placeholder) {
                return Some(format!("{} has no option --{option}", at.get_name()));
            }
        } else if is_named || word.starts_with('-') {
            // What an option or a command is given.
        } else if let Some(next) = at.find_subcommand(word) {
            at = next;
        } else if word.contains(is_placeholder) || INNER.contains(&word) || word.starts_with("__") {
            // Which command it is stays open, and so do its options.
            if at.get_name() == root.get_name() {
                return None;
            }
            is_named = true;
        } else if at.has_subcommands() && at.get_positionals().next().is_none() {
            return Some(format!("{} has no command {word:?}", at.get_name()));
        } else {
            is_named = true;
        }
        if word.contains(['"', '\'']) {
            is_named = true;
        }
    }
    None
}

/// Splits a line as a shell does where it has but plain words and words in quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, ' ') => words.push(String::new()),
            (_, c) => {
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn parsed(line: &str) -> Option<String> {
    if line.contains(PLACEHOLDER) {
        return None;
    }
    let words = [vec!["kapi".to_owned()], words(line)].concat();
    Args::try_parse_from(words)
        .err()
        .map(|error| error.to_string())
}

fn check(faults: &mut Vec<String>, path: &Path, line: &str, fault: Option<String>) {
    if let Some(fault) = fault {
        faults.push(format!("{}: kapi {line}: {fault}", path.display()));
    }
}

#[test]
fn the_documents_type_what_there_is() {
    let root = root();
    let mut documents = files(&root.join("docs"), ".md");
    for dir in ["skills", "extensions/pi-kapi"] {
        documents.extend(files(&root.join(dir), ".md"));
    }
    documents.extend(["README.md", "SECURITY.md"].map(|name| root.join(name)));
    documents.push(root.join("images/kapi/Containerfile"));
    let (mut faults, mut n_lines) = (Vec::new(), 0);
    for path in &documents {
        let text = fs::read_to_string(path).unwrap();
        for line in quoted(&text) {
            n_lines += 1;
            check(&mut faults, path, &line, fault(&line));
        }
        for line in text
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("kapi "))
        {
            for line in typed(line) {
                n_lines += 1;
                check(&mut faults, path, &line, fault(&line));
                check(&mut faults, path, &line, parsed(&line));
            }
        }
    }
    assert!(n_lines > 300, "only {n_lines} lines were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn messages_hints_and_help_type_what_there_is() {
    let (mut faults, mut n_lines) = (Vec::new(), 0);
    for path in files(&root().join("crates"), ".rs") {
        let text = fs::read_to_string(&path).unwrap();
        // A text that goes on in the next line is one text.
        let lines = text.split("\\\n").map(str::trim_start);
        let text = lines.collect::<String>();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let literals = code.split("\"kapi ").skip(1);
        let literals = literals.filter_map(|rest| rest.split('"').next());
        for line in quoted(code).into_iter().chain(literals.map(str::to_owned)) {
            n_lines += 1;
            check(&mut faults, &path, &line, fault(&line));
        }
    }
    assert!(n_lines > 300, "only {n_lines} lines were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_line_is_looked_at_word_by_word() {
    for good in [
        "run \"<task>\" --verify \"<command>\"",
        "goal judge GOAL JUDGE",
        "{mode} resume {index:03}",
        "deep-interview resume 001 --revise 'more'",
        "loop",
    ] {
        assert_eq!(fault(good), None, "{good}");
    }
    for bad in [
        "tusk",
        "goal status",
        "task run x --backend y",
        "show --everything",
    ] {
        assert!(fault(bad).is_some(), "{bad}");
    }
    assert_eq!(typed("kapi a; kapi b 2   said # more"), ["a", "b 2"]);
    assert_eq!(words("a \"b c\" 'd'"), ["a", "b c", "d"]);
}
