// What `kapi --json` and `kapi __session` print, as far as this package reads it.
//
// Made from the types of crates/kapi-wire by its tests, which say how to renew it. Do not edit.

/** The layout of what `kapi __session` prints. */
export const SESSION_VERSION = 1;

/** A mode's own part of a workflow; a mode has what it has. */
export type ModePart = Partial<AutoresearchView & InterviewView & RalphView>;

/** A contract that waits for its person. */
export type ApprovalNeededView = { approve: string; contract_hash: string; goal: string; type: string };

/** What a person is asked, with everything that helps them to answer. */
export type AskedView = { clarity: string[]; kind: string; proposed: string | null; round: number; text: string; why: string };

/** A search. */
export type AutoresearchView = { base: string; branch: Branch | null; branches: PartBranch[]; progress: ProgressView | null; runs: RunView[]; segment: number; segments: SegmentView[] };

/** The workflow's branch. */
export type Branch = { head: string; name: string; tree: string | null; worktree: string };

/** One interview that fits. */
export type CandidateView = { id: string; index: string; purpose: string; score: number; shared: string[] };

/** The approved interviews that a purpose could go on from. */
export type CandidatesView = { candidates: CandidateView[]; type: string; v: number };

/** A decision that waits, with everything that has to be seen before it is taken. */
export type DecisionView = { artifact: string; decision: string; on_yes: string; risks: string[]; sha256: string; text: string | null };

/** Which way is better. */
export type Direction = "lower" | "higher";

/** One document of guidance. */
export type GuidanceView = { name: string; text: string };

/** One thing that waits. */
export type InboxItem = { change: string[]; kind: string; look: string | null; on_yes: string; risks: string[]; since_ms: number | null; subject: string; what: string; yes: string | null };

/** Everything that waits, oldest first. */
export type InboxView = { items: InboxItem[] };

/** An interview. */
export type InterviewView = { asked: AskedView | null; commit: string | null; is_enough: boolean; open: number | null };

/** One judgement. */
export type JudgeView = { by: string; reason: string; verdict: string };

/** The number that decides. */
export type Metric = { direction: Direction; name: string; unit: string };

/** The branch of one part of what is on a workflow's branch. */
export type PartBranch = { branch: string; commit: string };

/** A decision that waits for a person. */
export type PendingView = { artifact: string; decision: string; risks: string[]; sha256: string; since_ms: number };

/** How far a segment has come. */
export type ProgressView = { baseline: number; best: number; best_run: number; confidence: number | null; gain_percent: number | null; noise: number | null; noise_percent: number | null; sparkline: string };

/** One task. */
export type RalphTaskView = { attempt: number; commit: string | null; depends_on: string[]; goal: string | null; reason: string | null; stand: string; task: string; title: string };

/** A Ralph workflow. */
export type RalphView = { account: WorkflowAccount | null; attempts: number; base: string; branch: Branch | null; cycle: number; landed: string[]; tasks: RalphTaskView[] };

/** How a goal came out, or where it stands. */
export type ResultView = { baseline: VerifyView[]; branch: string; candidate: string | null; commit: string | null; hint: string | null; id: string; judge: JudgeView | null; next: string[]; reason: string | null; sandbox: string; status: string; tampered: string[]; turns: number; type: string; usage: UsageView; verify: VerifyView[]; wall_ms: number; worktree: string | null };

/** One run. */
export type RunView = { baseline: boolean; commit: string; description: string; hypothesis: string; metric: number | null; parent: number | null; reason: string; rule: string | null; run: number; samples: number[]; segment: number; status: string };

/** The runs under one approved contract. */
export type SegmentView = { metric: Metric | null; progress: ProgressView | null; segment: number };

/** A session. */
export type SessionView = { attached: SessionWorkflowView | null; session: string | null; type: string; v: number };

/** A workflow, as a host shows it to its person. */
export type SessionWorkflowView = { asked: AskedView | null; blocked: WorkflowBlock | null; driver: string | null; guidance: GuidanceView[]; id: string; index: string; mode: string; next: string[]; paragraph: string; pending: DecisionView | null; phase: string; purpose: string; standing: string; status: string; subphase: string | null };

/** One workflow that was asked for by its name. */
export type ShownView = { type: string; v: number; workflow: SessionWorkflowView };

/** What is read of a line while a workflow or a goal is driven. */
export type StreamLine = { data?: StreamLineContent | null; effect?: string | null; goal?: string | null; text?: string | null; type: string; workflow?: string | null };

/** What is read of the event that a line tells. */
export type StreamLineContent = { effect?: string | null };

/** Tokens and money. */
export type UsageView = { input_tokens: number; output_tokens: number; usd: number | null };

/** One verify command. */
export type VerifyView = { command: string; duration_ms: number; exit_code: number | null; hidden: boolean; output_tail: string; timed_out: boolean; tree: string };

/** How a workflow was accounted for. */
export type WorkflowAccount = { follow_up: string[]; rationale: string; risks: string[] };

/** What holds a workflow up. */
export type WorkflowBlock = { reason: string; unblock: string };

/** One workflow in a listing. */
export type WorkflowRow = { attached: boolean; branch: string | null; driver: string | null; fault: string | null; id: string; links: string[]; mode: string; next: string | null; pending: string | null; phase: string | null; purpose: string; status: string; subphase: string | null; updated_ms: number | null; worktree: string | null };

/** The workflows of a mode. */
export type WorkflowStatusView = { mode: string; workflows: WorkflowRow[] };

/** A workflow. */
export type WorkflowView = { blocked: WorkflowBlock | null; driver: string | null; id: string; mode: string; next: string[]; pending: PendingView | null; phase: string; purpose: string; started_at_ms: number; started_by: string; status: string; subphase: string | null; total_usage: UsageView; type: string; usage: UsageView };
