//! The patterns of the table of ecosystems, with their alternatives written out.
//!
//! What is left is for the matcher that conditions use. Looks at no disk.

/// How many patterns one can stand for.
const ALTERNATIVES_MAX: usize = 256;

/// A pattern of the table.
#[derive(Debug, Clone)]
pub(super) struct PathPattern {
    plain: Vec<String>,
}

impl PathPattern {
    /// Reads a pattern. One that begins with `/` is for the top of a project, and here like any other:
    /// what is asked is relative to such a top already.
    pub(super) fn new(text: &str) -> Self {
        let mut plain = Vec::new();
        let mut waiting = vec![text.trim_start_matches('/').to_owned()];
        while let Some(one) = waiting.pop() {
            match alternatives(&one) {
                Some(written_out) if plain.len() + waiting.len() < ALTERNATIVES_MAX => {
                    waiting.extend(written_out);
                }
                Some(_) | None => plain.push(one),
            }
        }
        Self { plain }
    }

    /// Returns what it stands for, without alternatives.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.plain.iter().map(String::as_str)
    }

    /// Returns what it stands for, where that is a fixed path.
    pub(super) fn literals(&self) -> impl Iterator<Item = &str> {
        let is_literal = |plain: &&String| !plain.contains(['*', '?']);
        self.plain.iter().filter(is_literal).map(String::as_str)
    }
}

/// Writes out the first group of alternatives.
fn alternatives(text: &str) -> Option<Vec<String>> {
    let open = text.find(['{', '['])?;
    let is_class = text.get(open..).is_some_and(|rest| rest.starts_with('['));
    let close = open + text.get(open..)?.find(if is_class { ']' } else { '}' })?;
    let (before, inner, after) = (
        text.get(..open)?,
        text.get(open + 1..close)?,
        text.get(close + 1..)?,
    );
    let written = |part: &str| format!("{before}{part}{after}");
    Some(if is_class {
        inner.chars().map(|c| written(&c.to_string())).collect()
    } else {
        inner.split(',').map(written).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::PathPattern;

    #[test]
    fn alternatives_are_written_out() {
        let check = |pattern: &str, expected: &[&str]| {
            let pattern = PathPattern::new(pattern);
            let mut names: Vec<&str> = pattern.names().collect();
            names.sort_unstable();
            assert_eq!(names, expected);
        };
        check("/.npmrc", &[".npmrc"]);
        check("bun.{lock,lockb}", &["bun.lock", "bun.lockb"]);
        check("build.gradle{,.kts}", &["build.gradle", "build.gradle.kts"]);
        check("[Nn]u", &["Nu", "nu"]);
        check("{a,b}/[cd]", &["a/c", "a/d", "b/c", "b/d"]);
        let literals: Vec<String> = PathPattern::new("vendor/{a,*}")
            .literals()
            .map(str::to_owned)
            .collect();
        assert_eq!(literals, ["vendor/a"]);
    }
}
