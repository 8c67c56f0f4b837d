// What the binary printed, as lines for a person in Pi.
//
// Only words. Commands are shown as they are typed here where Pi has them, else as on a command line.

import type { AskedView, InboxItem, ModePart, ResultView, WorkflowView } from "./json_types.ts";
import { MODES, modeOf } from "./modes.ts";

/** Characters of a line that stands in the status bar or a widget. */
const LINE_CHARS_MAX = 100;
/** Measured runs that are shown. */
const RUNS_MAX = 10;

const COMMANDS = [...MODES.map((mode) => mode.name), "status", "clear", "inbox"].join("|");
const TYPED = new RegExp(`(^|[\\s\`'"(])kapi (${COMMANDS})\\b`, "g");

/** Returns a text with the commands in it as they are typed in Pi. */
export function here(text: string): string {
	return text.replace(TYPED, "$1/kapi-$2");
}

/** Returns what a command printed for people. */
export function shown(text: string): string {
	return harmless(here(text));
}

/** Returns where a goal came to, and what can be typed next. */
export function goal(goal: ResultView): string {
	const reason = goal.reason ? `: ${harmless(goal.reason)}` : "";
	return [`Goal ${goal.id} is ${goal.status}${reason}.`, ...goal.next.map((next) => `  next     ${here(next)}`)].join("\n");
}

/** Returns the beginning of a text in one line, without what a terminal would obey. */
export function line(text: string, most = LINE_CHARS_MAX): string {
	const flat = harmless(text).replace(/\s+/g, " ").trim();
	return flat.length > most ? `${flat.slice(0, most - 1)}…` : flat;
}

/** Returns a text without control characters: agents wrote parts of it. */
export function harmless(text: string): string {
	return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "");
}

/** What the parts of a workflow do, by the word that stands in the names of their steps. */
const WORK: [RegExp, string][] = [
	...MODES.flatMap((mode) => Object.entries(mode.work)).map(([role, words]): [RegExp, string] => [new RegExp(`\\b${role}\\b`), words]),
	[/prepare/, "creating the branch"],
	[/work-([TF]-\d+)/, "working on $1"],
	[/land-([TF]-\d+)/, "landing $1"],
	[/^t\d+-agent\b/, "working"],
	[/^t\d+-verify\b/, "running the checks"],
	[/^t\d+-judge\b/, "being judged"],
	[/verify/, "verifying the combined work"],
	[/baseline|measure/, "measuring"],
	[/keep/, "keeping what is better"],
	[/restore/, "restoring the worktree"],
	[/split/, "splitting what was kept into branches"],
];

/** Returns what a step does; its own name where that is not known. */
export function work(effect: string): string {
	for (const [pattern, words] of WORK) {
		const found = pattern.exec(effect);
		if (found) return words.replace("$1", found[1] ?? "");
	}
	return effect;
}

/** Returns a question with everything that helps to answer it. */
export function question(id: string, asked: AskedView): string {
	const lines =
		asked.kind === "goal"
			? [`${id}: this is the goal as Kapi understands it:`, "", asked.text, ""]
			: [`${id}, question ${asked.round}: ${asked.text}`, ""];
	if (asked.kind === "question") {
		lines.push(asked.proposed ? `proposed: ${asked.proposed}` : "no proposal");
	}
	lines.push(`why: ${asked.why}`);
	for (const clear of asked.clarity) lines.push(`clarity: ${clear}`);
	return harmless(lines.join("\n"));
}

/** Returns how a workflow came out, or where it rests. */
export function workflow(view: WorkflowView): string {
	const lines = [`${view.id} (${view.mode}): ${standing(view)}`, `  purpose  ${line(view.purpose)}`];
	if (view.blocked) {
		lines.push(`  because  ${line(view.blocked.reason, 300)}`, `  hint     ${line(view.blocked.unblock, 300)}`);
	}
	const part = partOf(view);
	if (part?.asked) lines.push(`  question ${line(part.asked.text, 300)}`);
	if (view.pending) {
		lines.push(`  waits    ${view.pending.artifact}, hash ${view.pending.sha256}`);
		for (const risk of view.pending.risks) lines.push(`  risk     ${line(risk, 300)}`);
	}
	for (const task of part?.tasks ?? []) {
		lines.push(line(`  ${task.task}  ${task.stand}  ${task.title}${task.reason ? `: ${task.reason}` : ""}`, 200));
	}
	lines.push(...measured(part));
	const branch = part?.branch;
	if (branch) lines.push(`  branch   ${branch.name} at ${branch.head.slice(0, 10)}`, `  worktree ${branch.worktree}`);
	for (const risk of part?.account?.risks ?? []) lines.push(`  risk     ${line(risk, 300)}`);
	for (const next of view.next) lines.push(`  next     ${here(next)}`);
	if (branch && view.status === "completed") lines.push(`  next     git merge ${branch.name}`);
	return lines.join("\n");
}

/** Returns how far a search has come, and its last runs. */
function measured(part: ModePart | undefined): string[] {
	const { progress, runs, branches, segment, segments } = part ?? {};
	const metric = segments?.find((one) => one.segment === segment)?.metric;
	if (!metric || !progress || !runs) return [];
	const { name, unit } = metric;
	const gain = progress.gain_percent === null ? "" : `, ${progress.gain_percent.toFixed(2)} % better than the baseline of ${progress.baseline}${unit}`;
	const lines = [line(`  best     ${name} ${progress.best}${unit}, run ${progress.best_run}${gain}`, 200), `  runs     ${progress.sparkline}`];
	for (const run of runs.slice(-RUNS_MAX)) {
		lines.push(line(`  ${run.run}  ${run.status}  ${run.metric ?? "-"}  ${run.description}: ${run.reason}`, 200));
	}
	for (const made of branches ?? []) lines.push(`  part     ${made.branch} at ${made.commit.slice(0, 10)}`);
	return lines;
}

/** Returns the mode's own part of a workflow. */
export function partOf(view: WorkflowView): ModePart | undefined {
	const part = modeOf(view.mode)?.part;
	return part === undefined ? undefined : (view as unknown as Record<string, ModePart | null>)[part] ?? undefined;
}

function standing(view: WorkflowView): string {
	const place = [view.phase, view.subphase].filter(Boolean).join("/");
	if (view.status === "blocked") return `blocked in ${place}`;
	if (view.status !== "active") return view.status;
	return view.pending ? `${place}, waiting for your approval` : place;
}

/** Returns one thing that waits, in a line. */
export function waiting(number: number, item: InboxItem): string {
	return `${number}. ${line(`${item.subject}: ${item.what}`, 160)}`;
}

/** Returns one thing that waits with all that belongs to it. */
export function inboxItem(item: InboxItem): string {
	const lines = [`${item.subject}: ${harmless(item.what)}`];
	for (const risk of item.risks) lines.push(`  risk     ${line(risk, 300)}`);
	if (item.yes) lines.push(`  yes      ${here(item.yes)}`);
	lines.push(`           ${line(item.on_yes, 300)}`);
	for (const change of item.change) lines.push(`  or       ${here(change)}`);
	if (item.look) lines.push(`  look     ${here(item.look)}`);
	return lines.join("\n");
}
