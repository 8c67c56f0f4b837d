// What `kapi rpc` and this package say to each other.
//
// Made from the types of crates/kapi-wire by its tests, which say how to renew it. Do not edit.

/** The layout of these messages. */
export const RPC_VERSION = 2;

/** What can follow `/until-done`, and what it does. */
export const SUBCOMMANDS: [string, string][] = [
	["approve", "Approve the contract"],
	["status", "Show the goal's status in one line"],
	["detail", "Show the whole contract"],
	["tasks", "Show the task list as YAML"],
	["plan", "Show the path of tasks.yaml"],
	["northstar", "Show the approved contract"],
	["replan-log", "Show every change of plan with its reason"],
	["pause", "Pause the goal"],
	["resume", "Resume the goal"],
	["cancel", "Cancel the goal"],
	["budget", "Set the number of turns (1 to 20000; above 500 asks first)"],
	["ask", "Ask a question without disturbing the goal"],
	["autopilot", "Turn automatic approval of new goals on or off"],
	["judge", "Show the default judge"],
	["help", "Show this list"],
];

/** What a conversation is given after it was compacted. */
export type CompactionReply = { message: string | null };

/** What a person answered to a dialog. */
export type DialogAnswer = { choice: number | null; dialog: number };

/** What a person is asked. */
export type DialogView = { id: number; message: string; options: string[]; timeout_ms: number | null; title: string };

/** A goal by its id. */
export type GoalName = { goal: string };

/** The answer to a hello. */
export type HostGreeting = { kernel_tools: ToolText[]; tools: ToolText[]; v: number };

/** Who the host is. */
export type HostHello = { ui: boolean; v: number };

/** Models that a host can ask with keys of its own. */
export type HostModelList = { names: string[]; own: string | null };

/** What a model of the host's answered. */
export type ModelAnswer = { failure: string | null; question: number; text: string | null; usage: ModelUsage | null };

/** A question to a model of the host's. */
export type ModelQuestion = { id: number; model: string; output_tokens_max: number; system: string; user: string };

/** Tokens of one question. */
export type ModelUsage = { cache_read: number; cache_write: number; input: number; output: number };

/** Something worth knowing. */
export type NoteNotice = { level: ReplyLevel; text: string };

/** The answer to whatever a person asked or answered. */
export type PersonReply = { dialog: DialogView | null; goal: SessionGoalView | null; level: ReplyLevel; message: string | null; text: string | null };

/** What the person typed. */
export type PersonWords = { text: string };

/** A question by its number. */
export type QuestionNumber = { question: number };

/** How something told is meant. */
export type ReplyLevel = "info" | "warning" | "error";

/** A goal that goes no further by itself. */
export type RestNotice = { goal: SessionGoalView; level: ReplyLevel; text: string };

/** What is told without having been asked. */
export type RpcNotice = { method: "goal"; params: SessionGoalView } | { method: "turn"; params: TurnNotice } | { method: "rest"; params: RestNotice } | { method: "dialog"; params: DialogView } | { method: "note"; params: NoteNotice } | { method: "ask_model"; params: ModelQuestion } | { method: "withdraw_question"; params: QuestionNumber };

/** How the model came to rest. */
export type RunEnd = { input_tokens: number; message: string; outcome: RunOutcome; output_tokens: number };

/** Ways for a model to come to rest. */
export type RunOutcome = "finished" | "aborted" | "failed";

/** What the model is told as it begins. */
export type RunPrompt = { block: string | null };

/** Where a session's goal stands, as its host shows it. */
export type SessionGoalView = { id: string; is_going_on: boolean; is_over: boolean; line: string; status: string; title: string | null; tools: string[]; widget: string[]; working: string | null };

/** What is typed behind `/until-done`. */
export type SlashLine = { line: string };

/** Whether a tool may run. */
export type ToolPermission = { dialog: DialogView | null; refused: string | null };

/** What a tool of Kapi's answers. */
export type ToolReply = { refused: boolean; text: string };

/** A tool as a model is told of it. */
export type ToolText = { description: string; name: string; parameters: unknown };

/** A tool and its input. */
export type ToolUse = { input: unknown; tool: string };

/** A turn that the model takes now. */
export type TurnNotice = { goal: string; message: string };
