//! Lines of a build file that only name further files which the change adds.
//!
//! A recipe or a build script steers the checks as a whole, but a new source has to be listed in it.
//! Such a line may stay when the rest is put back. Text alone: no build file is parsed.

use std::path::Path;

use similar::{DiffOp, TextDiff};

/// What a build makes of a source, and how that ends.
const OBJECTS: &[&str] = &["o", "obj", "lo"];
/// What stands between names and means nothing.
const BETWEEN: &[char] = &[' ', '\t', '\r', '\n', ',', '"', '\'', '\\'];

/// Returns the old text with those of the new lines that only name added files; nothing where there
/// are none.
pub(super) fn with_added_names(
    file: &Path,
    old: &str,
    new: &str,
    added: &[&Path],
) -> Option<String> {
    let is_cmake =
        file.ends_with("CMakeLists.txt") || file.extension().is_some_and(|end| end == "cmake");
    let diff = TextDiff::from_lines(old, new);
    let (before, after) = (diff.old_slices(), diff.new_slices());
    let mut text = String::new();
    let mut is_any = false;
    for op in diff.ops() {
        let mut left = before.get(op.old_range())?;
        let changed: &[&str] = match op {
            DiffOp::Equal { .. } => &[],
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                after.get(op.new_range())?
            }
        };
        for line in changed {
            let extended = left
                .split_first()
                .filter(|(old, _)| extends(old, line, added));
            // A line of its own may as well be a command.
            let is_own = || extends("", line, added) && (is_cmake || is_item(line, &text));
            if extended.is_none() && !is_own() {
                continue;
            }
            left = extended.map_or(left, |(_, rest)| rest);
            text.push_str(line);
            is_any = true;
        }
        text.extend(left.iter().copied());
    }
    is_any.then_some(text)
}

/// Tells whether a line is another one with names of added files in it, and nothing else.
fn extends(old: &str, new: &str, added: &[&Path]) -> bool {
    let words = |line| parts(line, |c| !is_of_name(c));
    let signs = |line| parts(line, |c| is_of_name(c) || BETWEEN.contains(&c));
    let mut known = words(old).into_iter().peekable();
    let mut n_added = 0_u32;
    for word in words(new) {
        if known.next_if_eq(&word).is_some() {
            continue;
        }
        if !added.iter().any(|path| names(word, path)) {
            return false;
        }
        n_added = n_added.saturating_add(1);
    }
    // The first word may be a command, and says what the rest means.
    let is_same_first = old.trim().is_empty() || words(old).first() == words(new).first();
    n_added > 0 && is_same_first && known.peek().is_none() && signs(old) == signs(new)
}

/// Tells whether a line is an item of a list: what stands above it is no recipe that goes on.
fn is_item(line: &str, above: &str) -> bool {
    let goes_on = |line: &&str| line.trim_end().ends_with('\\');
    let mut above = above.lines().rev();
    let begins = match above.next() {
        Some(last) if goes_on(&last) => above.take_while(goes_on).last().unwrap_or(last),
        Some(_) | None => line,
    };
    line.trim_end().ends_with(['\\', ',']) && !begins.starts_with('\t')
}

fn parts(line: &str, is_between: impl Fn(char) -> bool) -> Vec<&str> {
    line.split(is_between)
        .filter(|part| !part.is_empty())
        .collect()
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '.' | '/' | '@' | '%')
}

/// Tells whether a word names a file, or what is built from it, from some directory above it.
fn names(word: &str, path: &Path) -> bool {
    let word = Path::new(word.strip_prefix("./").unwrap_or(word));
    let end = word.extension().and_then(|end| end.to_str());
    let is_object = end.is_some_and(|end| OBJECTS.contains(&end));
    path.ends_with(word) || is_object && path.with_extension("").ends_with(word.with_extension(""))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::with_added_names;

    const OLD: &str =
        "tests/run: src/trim.o tests/run.o\n\t$(CC) -o $@ $^\n\ntest: tests/run\n\t./tests/run\n";

    fn put_back(new: &str) -> Option<String> {
        let added = [Path::new("src/end.c"), Path::new("src/true.c")];
        with_added_names(Path::new("Makefile"), OLD, new, &added)
    }

    #[test]
    fn a_new_source_stays_in_its_list() {
        let listed = OLD.replace("src/trim.o", "src/trim.o src/end.o");
        assert_eq!(put_back(&listed), Some(listed.clone()));
        let weakened = listed.replace("\t./tests/run", "\t-./tests/run");
        assert_eq!(put_back(&weakened), Some(listed));
    }

    #[test]
    fn lines_of_their_own_may_hold_names_and_what_lies_between() {
        let old = "files(\n  'a.c',\n)\n";
        let new = "files(\n  'a.c',\n  'src/end.c',\n)\n";
        let put_back = |file: &str, old: &str, new: &str| {
            with_added_names(Path::new(file), old, new, &[Path::new("src/end.c")])
        };
        assert_eq!(put_back("meson.build", old, new), Some(new.to_owned()));
        let other = "files(\n  'a.c',\n  'b.c',\n)\n";
        assert_eq!(put_back("meson.build", old, other), None);
        let (old, new) = (
            "add_library(a\n  a.c)\n",
            "add_library(a\n  src/end.c\n  a.c)\n",
        );
        assert_eq!(put_back("CMakeLists.txt", old, new), Some(new.to_owned()));
        assert_eq!(put_back("justfile", old, new), None);
        let (old, new) = (
            "SRCS = a.c \\\n\tb.c \\\n\tc.c\n",
            "SRCS = a.c \\\n\tsrc/end.c \\\n\tb.c \\\n\tc.c\n",
        );
        assert_eq!(put_back("Makefile.am", old, new), Some(new.to_owned()));
        let (old, new) = (
            "test:\n\tcd src && \\\n\t./run\n",
            "test:\n\tcd src && \\\n\tsrc/end.c \\\n\t./run\n",
        );
        assert_eq!(put_back("Makefile", old, new), None);
    }

    #[test]
    fn nothing_else_stays() {
        let cheats = [
            ("\t./tests/run", "\t./tests/run || true"),
            ("\t./tests/run", "\t./tests/run || src/true.c"),
            ("\t./tests/run", "\t./tests/run; src/end.o"),
            ("\t./tests/run", "\t@true src/end.c"),
            ("\t./tests/run", "\tsrc/end.c"),
            ("\t./tests/run", "\tsrc/end.c\n\t./tests/run"),
            ("\t./tests/run", "\tsrc/end.c ./tests/run"),
            ("tests/run\n", "\n"),
            ("$(CC)", "$(CC) -include src/end.c"),
            ("src/trim.o", "src/end.o"),
            ("src/trim.o", "src/trim.o other/end.o"),
        ];
        for (from, to) in cheats {
            let cheat = OLD.replacen(from, to, 1);
            assert_ne!(cheat, OLD);
            assert_eq!(put_back(&cheat), None, "{to}");
        }
    }
}
