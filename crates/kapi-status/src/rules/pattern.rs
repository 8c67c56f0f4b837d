//! One pattern for tool calls: `Read`, `mcp__*`, `Bash(mvn test*)`.
//!
//! Parsed once, matched often. `*` stands for anything, also across blanks, and `?` for one
//! character. Knows nothing of categories, nor of what a command means.

use std::fmt;

use kapi_core::pattern::is_name;
use serde::{Deserialize, Serialize};

/// Bytes of a pattern, at most: matching costs at most this times the length of a command.
const BYTES_MAX: usize = 256;

/// A pattern for tool calls. Invariant: lower case, at most 256 bytes, a tool is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolPattern {
    tool: String,
    command: Option<String>,
    /// As it was written.
    source: String,
}

/// A text that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the tool pattern {pattern:?}: {rule}")]
pub struct PatternError {
    /// What was written.
    pub pattern: String,
    /// The rule it breaks.
    pub rule: &'static str,
}

/// How closely a pattern fits: the larger, the more of the call it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fit {
    has_command: bool,
    literal_prefix: usize,
    literals: usize,
}

impl ToolPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When no tool is named, a parenthesis is missing, or it is too long.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let error = |rule| PatternError {
            pattern: text.chars().take(BYTES_MAX).collect(),
            rule,
        };
        if text.len() > BYTES_MAX {
            return Err(error("it is longer than 256 bytes"));
        }
        let lower = text.trim().to_lowercase();
        let (tool, command) = match lower.split_once('(') {
            None => (lower.as_str(), None),
            Some((tool, rest)) => {
                let Some(command) = rest.strip_suffix(')') else {
                    return Err(error("its last character must be the closing parenthesis"));
                };
                (tool, Some(command.trim()))
            }
        };
        let tool = tool.trim();
        if tool.is_empty() || tool.contains([')', ' ']) {
            return Err(error("it must start with the name of a tool"));
        }
        if command == Some("") {
            return Err(error("there is no command between the parentheses"));
        }
        Ok(Self {
            tool: tool.to_owned(),
            command: command.map(with_blank_star),
            source: text.trim().to_owned(),
        })
    }

    /// Tells how closely it fits a call; `None` if it does not.
    ///
    /// `tool` and every one of `commands`, which are spellings of one command, are lower case.
    pub(crate) fn fit(&self, tool: &str, commands: &[String]) -> Option<Fit> {
        if !is_name(&self.tool, tool) {
            return None;
        }
        let Some(command) = &self.command else {
            return Some(Fit {
                has_command: false,
                literal_prefix: literal_prefix(&self.tool),
                literals: literals(&self.tool),
            });
        };
        let is_fit = commands.iter().any(|text| {
            let bare = command.strip_suffix(" *");
            is_name(command, text) || bare.is_some_and(|bare| is_name(bare, text))
        });
        is_fit.then(|| Fit {
            has_command: true,
            literal_prefix: literal_prefix(command),
            literals: literals(command),
        })
    }
}

/// Returns the command with the other way to write "and anything after it" as a star.
fn with_blank_star(command: &str) -> String {
    match command.strip_suffix(":*") {
        Some(prefix) => format!("{prefix} *"),
        None => command.to_owned(),
    }
}

fn literal_prefix(glob: &str) -> usize {
    glob.find(['*', '?']).unwrap_or(glob.len())
}

fn literals(glob: &str) -> usize {
    glob.bytes().filter(|byte| !b"*?".contains(byte)).count()
}

impl TryFrom<String> for ToolPattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        Self::parse(&text)
    }
}

impl From<ToolPattern> for String {
    fn from(pattern: ToolPattern) -> Self {
        pattern.source
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::ToolPattern;

    #[test]
    fn a_bare_command_fits_the_pattern_with_arguments() {
        let fits = |pattern: &str, command: &str| {
            let pattern = ToolPattern::parse(pattern).unwrap();
            pattern.fit("bash", &[command.to_owned()]).is_some()
        };
        assert!(fits("Bash(ls *)", "ls"));
        assert!(fits("Bash(ls *)", "ls -la"));
        assert!(!fits("Bash(ls *)", "lsof"));
        assert!(fits("bash(git commit:*)", "git commit -m x"));
        assert!(!fits("Bash(git commit:*)", "git commit-tree"));
    }

    #[test]
    fn no_pattern_makes_matching_slow() {
        let pattern = ToolPattern::parse(&format!("Bash({}x)", "*a".repeat(120))).unwrap();
        let command = "a".repeat(4_000);
        assert!(pattern.fit("bash", &[command]).is_none());
    }

    #[test]
    fn what_is_no_pattern_is_told_why() {
        let cases = [
            ("", "name of a tool"),
            ("(ls)", "name of a tool"),
            ("Bash(ls", "closing parenthesis"),
            ("Bash(ls) ", ""),
            ("Bash()", "no command"),
            ("two words", "name of a tool"),
        ];
        for (text, rule) in cases {
            match ToolPattern::parse(text) {
                Ok(pattern) => assert_eq!((rule, pattern.to_string().as_str()), ("", text.trim())),
                Err(error) => {
                    assert!(
                        !rule.is_empty() && error.to_string().contains(rule),
                        "{error}"
                    );
                }
            }
        }
        let long = "x".repeat(257);
        let error = ToolPattern::parse(&long).unwrap_err();
        assert!(error.to_string().contains("256"), "{error}");
    }
}
