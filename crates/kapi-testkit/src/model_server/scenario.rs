//! A scenario: what the scripted model says, step by step, as data that can also
//! be read from a JSON file.
//! It does not know the wire formats, nor what a client calls its tools: a step
//! says `bash`, and the server finds the client's own name for it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model_server::fault::InjectedFault;

/// A scenario text that is not a scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The text is not JSON, or has a field that no scenario has.
    #[error("parse the scenario")]
    Malformed {
        /// What the JSON reader says, with line and column.
        #[source]
        source: serde_json::Error,
    },
}

/// Everything the scripted model does in one server.
///
/// The step to play is counted from the request's own history, so that a retried
/// request gets the same step again and a resumed session goes on where it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelScenario {
    /// The steps; the index is the number of assistant turns in the request's history.
    pub steps: Vec<AssistantTurn>,
    /// What is said once the steps are used up.
    #[serde(default = "after_default")]
    pub after: String,
    /// The tokens each answer claims to have cost, unless its step says otherwise.
    #[serde(default)]
    pub usage: ReplyUsage,
    /// Answers to judging prompts; the first rule whose marker occurs answers.
    #[serde(default)]
    pub judges: Vec<JudgeRule>,
    /// Scripts for single prompts; the first that fits the last user message plays.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Failures to inject; the first that applies is used.
    #[serde(default)]
    pub faults: Vec<InjectedFault>,
    /// The only key that is let in; any other is answered with status 401.
    #[serde(default)]
    pub require_key: Option<String>,
}

/// The tokens of one answer.
///
/// The parts do not overlap, and every API reports the same sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReplyUsage {
    /// Prompt tokens that came from no cache.
    pub input: u64,
    /// Visible answer tokens.
    pub output: u64,
    /// Prompt tokens read from a cache.
    pub cache_read: u64,
    /// Prompt tokens written to a cache.
    pub cache_write: u64,
    /// Answer tokens spent on thinking.
    pub reasoning: u64,
}

/// One assistant turn: words, and tools used at once. Without tools it ends the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssistantTurn {
    /// The text of the turn; may be empty where tools are used.
    #[serde(default)]
    pub say: String,
    /// The tools used, all in one turn.
    #[serde(default)]
    pub tools: Vec<ToolUse>,
    /// The tokens of this turn, where they differ from the scenario's.
    #[serde(default)]
    pub usage: Option<ReplyUsage>,
}

/// A tool use, before it is known what the client calls the tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum ToolUse {
    /// Runs a command in the client's shell.
    Bash {
        /// The command line.
        command: String,
    },
    /// Creates or replaces a file.
    Write {
        /// The file, relative to the client's working directory.
        path: String,
        /// Its whole new content.
        content: String,
    },
    /// Replaces one piece of a file. Whole lines, because some clients patch by line.
    Edit {
        /// The file, relative to the client's working directory.
        path: String,
        /// The lines as they are.
        old: String,
        /// The lines as they should be.
        new: String,
    },
    /// Reads a file.
    Read {
        /// The file, relative to the client's working directory.
        path: String,
    },
    /// Calls a tool of an MCP server, under whatever prefix the client gives it.
    Mcp {
        /// The tool's own name.
        name: String,
        /// Its arguments.
        arguments: Value,
    },
    /// Calls a tool by its exact name, offered or not.
    Named {
        /// The name sent.
        name: String,
        /// The arguments sent.
        arguments: Value,
    },
}

/// The answer to prompts that carry a marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeRule {
    /// Text that only a judging prompt contains.
    pub marker: String,
    /// One answer a call, the last repeats; a string is sent as it is, anything else as JSON. In
    /// either, `{{token}}` stands for the token of the question.
    pub verdicts: Vec<Value>,
}

/// A script for the prompts that contain a text, counted from that prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The text that the last user message must contain.
    #[serde(rename = "match")]
    pub matching: String,
    /// The steps; the index is the number of assistant turns since that message.
    pub steps: Vec<AssistantTurn>,
    /// What is said once the steps are used up.
    #[serde(default = "after_default")]
    pub after: String,
}

impl ModelScenario {
    /// Returns a scenario that plays these steps and does nothing else.
    pub fn new(steps: Vec<AssistantTurn>) -> Self {
        Self {
            steps,
            after: after_default(),
            usage: ReplyUsage::default(),
            judges: Vec::new(),
            routes: Vec::new(),
            faults: Vec::new(),
            require_key: None,
        }
    }

    /// Parses a scenario from JSON.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        serde_json::from_str(text).map_err(|source| ScenarioError::Malformed { source })
    }
}

impl Default for ReplyUsage {
    fn default() -> Self {
        Self {
            input: 1000,
            output: 50,
            cache_read: 0,
            cache_write: 0,
            reasoning: 0,
        }
    }
}

impl ReplyUsage {
    /// Returns all prompt tokens, cached or not.
    pub fn prompt_total(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    /// Returns all answer tokens, visible or not.
    pub fn answer_total(&self) -> u64 {
        self.output + self.reasoning
    }
}

impl AssistantTurn {
    /// Returns a step that says something and ends the turn.
    pub fn text(say: &str) -> Self {
        Self {
            say: say.to_owned(),
            tools: Vec::new(),
            usage: None,
        }
    }

    /// Returns a step that uses these tools at once.
    pub fn tools(tools: Vec<ToolUse>) -> Self {
        Self {
            say: String::new(),
            tools,
            usage: None,
        }
    }

    /// Returns a step that runs a command.
    pub fn bash(command: &str) -> Self {
        Self::tools(vec![ToolUse::Bash {
            command: command.to_owned(),
        }])
    }

    /// Returns a step that creates or replaces a file.
    pub fn write(path: &str, content: &str) -> Self {
        Self::tools(vec![ToolUse::Write {
            path: path.to_owned(),
            content: content.to_owned(),
        }])
    }

    /// Returns a step that replaces whole lines of a file.
    pub fn edit(path: &str, old: &str, new: &str) -> Self {
        Self::tools(vec![ToolUse::Edit {
            path: path.to_owned(),
            old: old.to_owned(),
            new: new.to_owned(),
        }])
    }

    /// Returns a step that reads a file.
    pub fn read(path: &str) -> Self {
        Self::tools(vec![ToolUse::Read {
            path: path.to_owned(),
        }])
    }

    /// Returns the step with words spoken before its tools.
    #[must_use]
    pub fn saying(mut self, say: &str) -> Self {
        say.clone_into(&mut self.say);
        self
    }
}

impl JudgeRule {
    /// Returns a rule that answers prompts with this marker, one verdict a call.
    pub fn new(marker: &str, verdicts: Vec<Value>) -> Self {
        Self {
            marker: marker.to_owned(),
            verdicts,
        }
    }
}

impl Route {
    /// Returns a route that plays these steps for prompts with this text.
    pub fn new(matching: &str, steps: Vec<AssistantTurn>) -> Self {
        Self {
            matching: matching.to_owned(),
            steps,
            after: after_default(),
        }
    }
}

fn after_default() -> String {
    "Done.".to_owned()
}
