//! The embedded deterministic agent: a YAML file of turns, each a list of steps.
//!
//! Turn n plays `turns[n-1]`; as a judge, what a turn says is the answer. A file may also hold what
//! it answers in each role of a workflow and what it does for each task of a plan. This file knows
//! the format, which `AGENTS.md` shows; `script::runner` performs it.

pub(crate) mod event;
pub mod part;
pub mod runner;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::script::part::ScriptPart;

/// The largest script in bytes.
const SCRIPT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A whole script.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What each turn does, the first first.
    pub turns: Vec<ScriptTurn>,
    /// What it answers in each role of a workflow, by the role's name: the n-th question plays the
    /// n-th entry. Which roles there are is known to whoever asks, see [`Script::check_roles`].
    #[serde(default)]
    pub roles: BTreeMap<String, Vec<ScriptTurn>>,
    /// What it does in the goals of tasks, by the task's name; `T-001.2` is the second try at it.
    #[serde(default)]
    pub tasks: BTreeMap<String, TaskScript>,
}

/// What is done in the goal of one task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskScript {
    /// What each turn does, the first first.
    pub turns: Vec<ScriptTurn>,
}

/// What one turn does.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptTurn {
    /// Its steps in order.
    pub steps: Vec<ScriptStep>,
}

/// One step of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ScriptStep {
    /// Writes a file in the workspace, with its missing directories.
    Write {
        /// Where, relative to the workspace.
        path: String,
        /// The whole content.
        content: String,
    },
    /// Runs a shell command in the workspace; the turn goes on whatever comes of it.
    Bash(String),
    /// Says something.
    Say(String),
    /// Says an answer in the form that questions ask for: a fenced block of JSON.
    Answer(serde_json::Value),
    /// Claims something of the goal.
    Claim(ClaimStep),
    /// Reports usage.
    Usage {
        /// Tokens read.
        #[serde(default)]
        input_tokens: u64,
        /// Tokens written.
        #[serde(default)]
        output_tokens: u64,
        /// Cost in US dollars.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usd: Option<f64>,
    },
}

/// What is claimed: `done`, `blocked`, or `{blocked: "why"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimStep {
    /// The goal is reached.
    Done,
    /// A person is needed, for this reason.
    Blocked(String),
}

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It cannot be read.
    #[error("read script {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is too large to be one.
    #[error("read script {}: it is larger than {SCRIPT_BYTES_MAX} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not in the form of a script.
    #[error("read script {} line {line}: {problem}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 when the problem has no place.
        line: u64,
        /// What is wrong, naming the key.
        problem: String,
    },
    /// It answers in a role that there is not.
    #[error("read script {}: `roles` has `{role}`, expected one of {}", path.display(), known.join(", "))]
    UnknownRole {
        /// The file.
        path: PathBuf,
        /// The key.
        role: String,
        /// The roles that there are.
        known: Vec<String>,
    },
    /// It is asked more often than it has answers.
    #[error(
        "answer question {ordinal} as {role} from script {}: it has {answers} answers for that role",
        path.display()
    )]
    NoAnswer {
        /// The file.
        path: PathBuf,
        /// The role.
        role: String,
        /// Which question it is, from 1.
        ordinal: u32,
        /// How many it can answer.
        answers: usize,
    },
    /// A turn of it cannot be handed on.
    #[error("pass on turn {turn} of script {}", path.display())]
    HandOn {
        /// The file.
        path: PathBuf,
        /// The turn.
        turn: u32,
        /// The encoder's error.
        #[source]
        source: serde_json::Error,
    },
}

/// One turn as it is handed to the runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnInput {
    /// The turn, from 1.
    pub(crate) turn: u32,
    /// Its steps; `None` when the script has no such turn.
    pub(crate) steps: Option<Vec<ScriptStep>>,
    /// The words that ask before a command is run; `None` when nothing is asked.
    pub(crate) gate: Option<Vec<String>>,
}

impl Script {
    /// Reads a script from its file.
    ///
    /// # Errors
    /// When the file cannot be read, is too large, or is not a script.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let failed = |source| ScriptError::Read {
            path: path.to_path_buf(),
            source,
        };
        let mut text = String::new();
        let file = File::open(path).map_err(failed)?;
        file.take(SCRIPT_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(failed)?;
        if text.len() as u64 > SCRIPT_BYTES_MAX {
            return Err(ScriptError::TooLarge {
                path: path.to_path_buf(),
            });
        }
        Self::parse(path, &text)
    }

    /// Reads a script from its text. `path` is only named in errors.
    ///
    /// # Errors
    /// When the text is not a script; the error names file, line and key.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ScriptError> {
        serde_saphyr::from_str(text).map_err(|error| {
            let line = error.location().map_or(0, |location| location.line());
            let problem = crate::text::one_line(&error.without_snippet().to_string());
            ScriptError::Form {
                path: path.to_path_buf(),
                line,
                problem,
            }
        })
    }

    /// Refuses answers in a role that is not among those that there are. `path` is only named in the
    /// error.
    ///
    /// # Errors
    /// The first such role.
    pub fn check_roles(&self, path: &Path, known: &[&str]) -> Result<(), ScriptError> {
        let mut roles = self.roles.keys();
        match roles.find(|role| !known.contains(&role.as_str())) {
            None => Ok(()),
            Some(role) => Err(ScriptError::UnknownRole {
                path: path.to_path_buf(),
                role: role.clone(),
                known: known.iter().map(|&role| role.to_owned()).collect(),
            }),
        }
    }

    /// Returns the standard input of the runner for a turn, from 1. `path` is only named in errors.
    ///
    /// # Errors
    /// When a role has no such answer, or the steps cannot be written as JSON.
    pub(crate) fn turn_json(
        &self,
        path: &Path,
        part: &ScriptPart,
        turn: u32,
        gate: Option<Vec<String>>,
    ) -> Result<Vec<u8>, ScriptError> {
        let turns = self.turns_of(part);
        let index = turn
            .checked_sub(1)
            .and_then(|index| usize::try_from(index).ok());
        let found = index.and_then(|index| turns.get(index));
        if let (ScriptPart::Role(role), None) = (part, found) {
            return Err(ScriptError::NoAnswer {
                path: path.to_path_buf(),
                role: role.clone(),
                ordinal: turn,
                answers: turns.len(),
            });
        }
        let steps = found.map(|turn| turn.steps.clone());
        serde_json::to_vec(&TurnInput { turn, steps, gate }).map_err(|source| ScriptError::HandOn {
            path: path.to_path_buf(),
            turn,
            source,
        })
    }

    /// Returns the turns that a part plays; a task without turns of its own plays everybody's.
    fn turns_of(&self, part: &ScriptPart) -> &[ScriptTurn] {
        match part {
            ScriptPart::Turns => &self.turns,
            ScriptPart::Role(role) => self.roles.get(role).map_or(&[], Vec::as_slice),
            ScriptPart::Task(name) => {
                let whole = name
                    .rsplit_once('.')
                    .map_or(name.as_str(), |(task, _)| task);
                let found = self.tasks.get(name).or_else(|| self.tasks.get(whole));
                found.map_or(self.turns.as_slice(), |task| &task.turns)
            }
        }
    }
}

impl<'de> Deserialize<'de> for ClaimStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ClaimVisitor)
    }
}

struct ClaimVisitor;

impl<'de> Visitor<'de> for ClaimVisitor {
    type Value = ClaimStep;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("`done`, `blocked` or `{blocked: \"why\"}` as the claim")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ClaimStep, E> {
        match text {
            "done" => Ok(ClaimStep::Done),
            "blocked" => Ok(ClaimStep::Blocked("the script declares it".to_owned())),
            other => Err(E::unknown_variant(other, &["done", "blocked"])),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ClaimStep, A::Error> {
        let Some((key, reason)) = map.next_entry::<String, String>()? else {
            return Err(A::Error::missing_field("blocked"));
        };
        if key != "blocked" {
            return Err(A::Error::unknown_field(&key, &["blocked"]));
        }
        if let Some(extra) = map.next_key::<String>()? {
            return Err(A::Error::unknown_field(&extra, &["blocked"]));
        }
        Ok(ClaimStep::Blocked(reason))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::part::{ScriptPart, of_role, of_task};
    use super::{ClaimStep, Script, ScriptStep};

    #[test]
    fn every_step_is_read() {
        let text = "
turns:
  - steps:
      - write: {path: a/b.txt, content: \"x\\n\"}
      - bash: \"true\"
      - say: hello
      - claim: done
      - claim: blocked
      - claim: {blocked: no key}
      - usage: {input_tokens: 10, output_tokens: 2, usd: 0.5}
      - usage: {input_tokens: 1}
  - steps: []
";
        let script = Script::parse(Path::new("s.yaml"), text).unwrap();
        let expected = vec![
            ScriptStep::Write {
                path: "a/b.txt".to_owned(),
                content: "x\n".to_owned(),
            },
            ScriptStep::Bash("true".to_owned()),
            ScriptStep::Say("hello".to_owned()),
            ScriptStep::Claim(ClaimStep::Done),
            ScriptStep::Claim(ClaimStep::Blocked("the script declares it".to_owned())),
            ScriptStep::Claim(ClaimStep::Blocked("no key".to_owned())),
            ScriptStep::Usage {
                input_tokens: 10,
                output_tokens: 2,
                usd: Some(0.5),
            },
            ScriptStep::Usage {
                input_tokens: 1,
                output_tokens: 0,
                usd: None,
            },
        ];
        assert_eq!(script.turns[0].steps, expected);
        assert!(script.turns[1].steps.is_empty());
    }

    fn steps(text: &str, reference: &str, turn: u32) -> String {
        let script = Script::parse(Path::new("s.yaml"), text).unwrap();
        let (path, part) = ScriptPart::split(Path::new(reference));
        match script.turn_json(&path, &part, turn, None) {
            Ok(json) => String::from_utf8(json).unwrap(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_role_answers_in_order_and_a_task_does_its_own() {
        let text = "
turns:
  - steps: [{say: anybody}]
roles:
  reviewer:
    - steps: [{say: one}]
    - steps: [{answer: {approve: true, findings: []}}]
tasks:
  T-001: {turns: [{steps: [{say: first try}]}]}
  T-001.2: {turns: [{steps: [{say: second try}]}]}
";
        let reviewer = of_role("script:s.yaml", "reviewer");
        let task = |task, attempt| of_task("script:s.yaml", task, attempt);
        let asked = [
            ("script:s.yaml".to_owned(), 1),
            ("script:s.yaml".to_owned(), 2),
            (reviewer.clone(), 1),
            (reviewer.clone(), 2),
            (reviewer, 3),
            (of_role("script:s.yaml", "thesis"), 1),
            (task("T-001", 1), 1),
            (task("T-001", 2), 1),
            (task("T-001", 3), 1),
            (task("T-001", 1), 2),
            (task("T-002", 1), 1),
        ];
        let reported = asked.map(|(reference, turn)| {
            let file = reference.strip_prefix("script:").unwrap();
            format!("{file} {turn}: {}", steps(text, file, turn))
        });
        insta::assert_snapshot!(reported.join("\n"));
    }

    #[test]
    fn a_role_that_there_is_not_is_refused_with_those_that_there_are() {
        let text = "turns: []\nroles:\n  judge: []\n  reviewer: []\n";
        let path = Path::new("s.yaml");
        let script = Script::parse(path, text).unwrap();
        let error = script.check_roles(path, &["thesis", "reviewer"]);
        insta::assert_snapshot!(error.unwrap_err(), @"read script s.yaml: `roles` has `judge`, expected one of thesis, reviewer");
        assert!(script.check_roles(path, &["judge", "reviewer"]).is_ok());
    }

    #[test]
    fn only_a_scripted_agent_has_parts() {
        assert_eq!(of_role("claude", "reviewer"), "claude");
        assert_eq!(of_task("command:true", "T-001", 1), "command:true");
    }

    #[test]
    fn what_is_no_script_is_told_with_file_line_and_key() {
        let cases = [
            "turns:\n  - steps:\n      - wrte: {path: a, content: b}\n",
            "turns:\n  - steps:\n      - write: {path: a}\n",
            "turns:\n  - steps:\n      - write: {path: a, content: b, mode: 7}\n",
            "turns:\n  - steps:\n      - claim: maybe\n",
            "turns:\n  - steps:\n      - claim: {blckd: x}\n",
            "turns:\n  - step: []\n",
            "turns: []\nroles:\n  reviewer: {}\n",
            "turns: []\ntasks:\n  T-001:\n    steps: []\n",
            "turn: []\n",
            "turns: [\n",
            "",
        ];
        let errors: Vec<String> = cases
            .iter()
            .map(|text| {
                Script::parse(Path::new("s.yaml"), text)
                    .unwrap_err()
                    .to_string()
            })
            .collect();
        insta::assert_snapshot!(errors.join("\n"));
    }
}
