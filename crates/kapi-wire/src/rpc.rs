//! What a host such as Pi and `kapi rpc` say to each other: requests, answers, notices.
//!
//! JSON-RPC 2.0, one message a line. The host shows and asks; it decides nothing. Its TypeScript types
//! are made from these, see `typescript.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The layout of these messages; a host that knows another one says so instead of guessing.
pub const RPC_VERSION: u32 = 2;

/// What a host asks for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum RpcCall {
    /// Comes first: who the host is.
    Hello(HostHello),
    /// Attaches to a goal that this session has worked on.
    Open(GoalName),
    /// Carries out what is typed behind `/until-done`.
    Slash(SlashLine),
    /// Answers a dialog.
    Answer(DialogAnswer),
    /// Says that the person typed something to the model.
    Said(PersonWords),
    /// Says that the model begins to work.
    RunStarted,
    /// Asks whether a tool may run.
    ToolCall(ToolUse),
    /// Performs a call of a tool of Kapi's.
    Tool(ToolUse),
    /// Says that the model has come to rest.
    RunEnded(RunEnd),
    /// Says that the conversation was compacted.
    Compacted,
    /// Says which models the host can ask; the last word holds.
    Models(HostModelList),
    /// Answers a question to one of them.
    ModelAnswered(ModelAnswer),
    /// Runs a command of `kapi` to its end, as with `--json`.
    Command(CommandLine),
}

/// A command of `kapi`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandLine {
    /// Its words, without `kapi` and `--json`.
    pub args: Vec<String>,
}

/// What a command printed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CommandReply {
    /// What it exits with.
    pub exit_code: u8,
    /// Everything it printed as data, in order; an error is the last one.
    pub documents: Vec<Value>,
}

/// Who the host is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostHello {
    /// The layout of messages that it knows.
    pub v: u32,
    /// Whether there is a person who can be asked.
    pub ui: bool,
}

/// A goal by its id.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoalName {
    /// The id, `007-fix-login`.
    pub goal: String,
}

/// What is typed behind `/until-done`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlashLine {
    /// The line.
    pub line: String,
}

/// What a person answered to a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DialogAnswer {
    /// The dialog.
    pub dialog: u32,
    /// The option that was chosen, from 0; `null` where the dialog was left or timed out.
    pub choice: Option<u32>,
}

/// What the person typed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PersonWords {
    /// The text.
    pub text: String,
}

/// A tool and its input.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolUse {
    /// Its name.
    pub tool: String,
    /// What it is called with.
    pub input: Value,
}

/// How the model came to rest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunEnd {
    /// Which way.
    pub outcome: RunOutcome,
    /// Its last message, or what its provider said.
    pub message: String,
    /// Tokens that it read.
    pub input_tokens: u64,
    /// Tokens that it wrote.
    pub output_tokens: u64,
}

/// Models that a host can ask with keys of its own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostModelList {
    /// Their names, `provider/model`.
    pub names: Vec<String>,
    /// The one that works in the session.
    pub own: Option<String>,
}

/// What a model of the host's answered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelAnswer {
    /// The question.
    pub question: u32,
    /// What it said; `null` where it was not asked or said nothing.
    pub text: Option<String>,
    /// Why there is no answer.
    pub failure: Option<String>,
    /// What it used; `null` where nobody knows.
    pub usage: Option<ModelUsage>,
}

/// Tokens of one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelUsage {
    /// Read, and from no cache.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Read and written to a cache.
    pub cache_write: u64,
}

/// Ways for a model to come to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// Its turn is over.
    Finished,
    /// The person stopped it.
    Aborted,
    /// Its provider failed.
    Failed,
}

/// The answer to a hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostGreeting {
    /// The layout of messages.
    pub v: u32,
    /// The tools of a goal, whichever are active.
    pub tools: Vec<ToolText>,
    /// The tools of the kernel, for a session whose person enables them.
    pub kernel_tools: Vec<ToolText>,
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolText {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The JSON Schema of its input.
    pub parameters: Value,
}

/// The answer to whatever a person asked or answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PersonReply {
    /// What the person is told.
    pub text: Option<String>,
    /// How it is meant.
    pub level: ReplyLevel,
    /// What they are asked.
    pub dialog: Option<DialogView>,
    /// What the model is asked for them.
    pub message: Option<String>,
    /// Where the session's goal stands; nothing where the session has none.
    pub goal: Option<SessionGoalView>,
}

/// How something told is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyLevel {
    /// As news.
    #[default]
    Info,
    /// As something to look at.
    Warning,
    /// As a refusal or a failure.
    Error,
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DialogView {
    /// Its number, by which it is answered.
    pub id: u32,
    /// The question.
    pub title: String,
    /// What to know for the answer.
    pub message: String,
    /// What can be chosen. Two options `yes` and `no` are a confirmation.
    pub options: Vec<String>,
    /// Milliseconds after which no answer is one.
    pub timeout_ms: Option<u64>,
}

/// Where a session's goal stands, as its host shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionGoalView {
    /// Its id.
    pub id: String,
    /// `setup`, `proposed`, `active`, `waiting`, `blocked`, `stalled`, `paused`, `impossible`,
    /// `cancelled`, `unverified`, `done`, or `damaged` where its state cannot be read.
    pub status: String,
    /// One line for the status line.
    pub line: String,
    /// The title of the terminal while the goal is active.
    pub title: Option<String>,
    /// What the model is at, while it works for the goal.
    pub working: Option<String>,
    /// The lines of the widget.
    pub widget: Vec<String>,
    /// The tools that are active now.
    pub tools: Vec<String>,
    /// Whether it goes on in the session without anybody having to say so.
    pub is_going_on: bool,
    /// Whether nothing more is asked of the session.
    pub is_over: bool,
}

/// What the model is told as it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunPrompt {
    /// The block for the end of the system prompt.
    pub block: Option<String>,
}

/// Whether a tool may run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolPermission {
    /// Why it may not.
    pub refused: Option<String>,
    /// What the person is asked first; their answer is answered with a permission, too.
    pub dialog: Option<DialogView>,
}

/// What a tool of Kapi's answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolReply {
    /// The answer, a JSON document.
    pub text: String,
    /// Whether it is a refusal.
    pub refused: bool,
}

/// What a conversation is given after it was compacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CompactionReply {
    /// The text; nothing where no goal is under way.
    pub message: Option<String>,
}

/// What is told without having been asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum RpcNotice {
    /// The goal stands somewhere else now.
    Goal(SessionGoalView),
    /// A turn begins with this message.
    Turn(TurnNotice),
    /// The goal goes no further by itself.
    Rest(RestNotice),
    /// The person is asked something.
    Dialog(DialogView),
    /// Something worth knowing.
    Note(NoteNotice),
    /// A model of the host's is asked something, outside the conversation.
    AskModel(ModelQuestion),
    /// Nobody wants the answer any more.
    WithdrawQuestion(QuestionNumber),
}

/// A question to a model of the host's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModelQuestion {
    /// Its number, by which it is answered.
    pub id: u32,
    /// The model, `provider/model`.
    pub model: String,
    /// The system prompt.
    pub system: String,
    /// The one message.
    pub user: String,
    /// The most tokens of the answer.
    pub output_tokens_max: u32,
}

/// A question by its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuestionNumber {
    /// The number.
    pub question: u32,
}

/// A turn that the model takes now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TurnNotice {
    /// The goal.
    pub goal: String,
    /// The message.
    pub message: String,
}

/// A goal that goes no further by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RestNotice {
    /// Where it stands.
    pub goal: SessionGoalView,
    /// What the person is told.
    pub text: String,
    /// How it is meant.
    pub level: ReplyLevel,
}

/// Something worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NoteNotice {
    /// What.
    pub text: String,
    /// How it is meant.
    pub level: ReplyLevel,
}
