// The parts of what `kapi … --json` prints that are shown or passed on here.
//
// Named as they are printed. Fields are only ever added there, so whatever is not named is passed
// over; the layout of `kapi __session` has a number that is checked.

/** The layout of `kapi __session` that this package knows. */
export const SESSION_VERSION = 1;

/** What the person is asked. */
export interface Asked {
	kind: "question" | "goal";
	round: number;
	text: string;
	proposed: string | null;
	why: string;
	clarity: string[];
}

/** A decision that waits for the person. */
export interface Decision {
	artifact: string;
	sha256: string;
	risks: string[];
	on_yes: string;
	text: string | null;
}

/** What holds a workflow up. */
export interface Blocked {
	reason: string;
	unblock: string;
}

/** A workflow as `kapi __session` shows it. */
export interface Standing {
	id: string;
	index: string;
	mode: string;
	purpose: string;
	status: string;
	standing: string;
	paragraph: string;
	driver: string | null;
	asked: Asked | null;
	pending: Decision | null;
	blocked: Blocked | null;
	next: string[];
	guidance: { name: string; text: string }[];
}

export interface SessionAnswer {
	v: number;
	attached: Standing | null;
}

export interface ShownAnswer {
	v: number;
	workflow: Standing;
}

/** A workflow with a context that a purpose could go on from. */
export interface Candidate {
	id: string;
	index: string;
	purpose: string;
	score: number;
	shared: string[];
}

export interface CandidatesAnswer {
	v: number;
	candidates: Candidate[];
}

/** What a command that drove or changed a workflow ends with. */
export interface Workflow {
	type: "workflow_result" | "workflow";
	id: string;
	mode: string;
	purpose: string;
	status: string;
	phase: string;
	subphase: string | null;
	pending: { artifact: string; sha256: string; risks: string[] } | null;
	blocked: Blocked | null;
	next: string[];
}

/** A mode's own part of a workflow; a mode has what it has. */
export interface Part {
	asked?: Asked | null;
	branch?: { name: string; head: string; worktree: string } | null;
	tasks?: { task: string; title: string; stand: string; reason: string | null }[];
	account?: { risks: string[] } | null;
	contract?: { metric: { name: string; unit: string } } | null;
	progress?: { baseline: number; best: number; best_run: number; gain_percent: number | null; sparkline: string } | null;
	runs?: { run: number; status: string; metric: number | null; description: string; reason: string }[];
	branches?: { branch: string; commit: string }[];
}

/** One workflow in a listing. */
export interface Row {
	id: string;
	mode: string;
	purpose: string;
	status: string;
	phase: string | null;
	subphase: string | null;
	pending: string | null;
	attached: boolean;
	driver: string | null;
	branch: string | null;
	links: string[];
	fault: string | null;
	next: string | null;
}

export interface Listing {
	workflows: Row[];
}

/** Everything in a project. */
export interface Status extends Listing {
	goals: { id: string; status: string; branch: string | null; fault: string | null }[];
	attached: string | null;
	waiting: number;
	health: { what: string; detail: string; hint: string | null }[];
	cleanup: { workflow: string; branch: string; worktree: string; command: string }[];
}

/** One thing that waits for the person. */
export interface InboxItem {
	kind: string;
	subject: string;
	since_ms: number | null;
	what: string;
	risks: string[];
	on_yes: string;
	yes: string | null;
	change: string[];
	look: string | null;
}

export interface Cleared {
	session: string | null;
	detached: { mode: string; workflow: string } | null;
}

/** A contract that waits for its person. */
export interface ApprovalNeeded {
	type: "approval_needed";
	goal: string;
	contract_hash: string;
	/** The command line that approves it. */
	approve: string;
}

/** Where a goal stands after it was created or driven. */
export interface GoalResult {
	type: "result" | "goal_status";
	id: string;
	status: string;
	reason: string | null;
	next: string[];
}

/** One line of the stream while a workflow or a goal is driven. */
export interface StreamLine {
	type: string;
	workflow?: string;
	goal?: string;
	effect?: string;
	text?: string;
	data?: { effect?: string | { id?: string } };
}
