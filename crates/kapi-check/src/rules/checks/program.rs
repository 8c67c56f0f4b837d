//! Which programs a shell line starts, as far as that is written out.
//!
//! Only plain lines are understood: what stands in quotes, substitutions or groups is passed over,
//! so that nothing is named that the line does not start.

use super::mise::SHELL_WORDS;

/// Returns the programs that a line starts, in their order, each once.
#[must_use]
pub fn programs_of(line: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if line.contains(['\'', '"', '`', '(', '{', '\\', '#', '\n']) {
        // The first word is the program all the same, where it is plain.
        found.extend(program(line).filter(|word| is_plain(word)));
        return found;
    }
    for part in line.split([';', '|', '&']) {
        if let Some(word) = program(part)
            && is_plain(&word)
            && !found.contains(&word)
        {
            found.push(word);
        }
    }
    found
}

/// Returns the first word of a command that is not a variable's value.
fn program(command: &str) -> Option<String> {
    let mut words = command.split_whitespace();
    let word = words.find(|word| !is_assignment(word))?;
    (!SHELL_WORDS.contains(&word) && !matches!(word, "[" | "!" | "test" | "true" | "false"))
        .then(|| word.to_owned())
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn is_plain(word: &str) -> bool {
    word.chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-./+@:".contains(c))
}

#[cfg(test)]
mod tests {
    use super::programs_of;

    #[test]
    fn a_line_names_the_programs_it_starts() {
        for (line, expected) in [
            ("cargo test --quiet", "cargo"),
            ("sh test.sh", "sh"),
            ("./scripts/check.sh --all", "./scripts/check.sh"),
            ("CI=1 npm test && npm run lint", "npm"),
            ("make build; ctest | tee log", "make ctest tee"),
            ("cd web && pnpm test", "pnpm"),
            ("uv run pytest -k 'a or b'", "uv"),
            ("test -f a && [ -d b ]", ""),
            ("if true", ""),
            ("$TOOL run", ""),
            ("(cd a && b)", ""),
            ("", ""),
        ] {
            assert_eq!(programs_of(line).join(" "), expected, "{line}");
        }
    }
}
