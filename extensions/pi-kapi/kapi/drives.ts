// Workflows and goals that this Pi drives: one child for each, a few words about it in the status line, and
// an end by Esc or with the session.
//
// A child that is interrupted leaves what it drives where it stands: the log is its own.

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { place } from "./attachment.ts";
import { failure, type KapiError, type Ran, stream, type Stream } from "./binary.ts";
import type { ResultView, StreamLine, WorkflowView } from "./json_types.ts";
import type { Person } from "./person.ts";
import { here, line, work } from "./words.ts";

const STATUS = "kapi";
/** The longest that the end of a session waits for its children, which record where they stand. */
const END_MS = 5_000;
/** The least time between two changes of the status line. */
const PACE_MS = 200;

/** How a drive ended. */
export interface Driven {
	/** Where the workflow stands; none where nothing was driven. */
	view: WorkflowView | undefined;
	/** Where the goal stands; none where a workflow was driven. */
	goal: ResultView | undefined;
	/** Whether it was interrupted. */
	isInterrupted: boolean;
	/** What was refused or failed. */
	error: KapiError | undefined;
}

interface Drive {
	stream: Stream;
	/** The workflow or the goal, once it is known. */
	subject: string;
	/** What is under way, by its name, with what happened in it last. */
	underWay: Map<string, string>;
	/** Whether the person waits for it, so that Esc is meant for it. */
	isAwaited: boolean;
}

export class Drives {
	readonly #person: Person;
	readonly #running = new Set<Drive>();
	#unlisten: (() => void) | undefined;
	#shown = "";
	#timer: NodeJS.Timeout | undefined;
	#isConfirming = false;

	constructor(person: Person) {
		this.#person = person;
	}

	/** Runs a command that drives a workflow until it rests. `onBegun` is called with its first sign. */
	async drive(
		ctx: ExtensionContext,
		args: readonly string[],
		how: { isAwaited: boolean; onBegun?: () => Promise<unknown>; signal?: AbortSignal | undefined },
	): Promise<Driven> {
		let begun: Promise<unknown> | undefined;
		const begin = () => {
			begun ??= how.onBegun?.().catch(() => undefined);
		};
		const drive: Drive = {
			stream: stream(place(ctx), args, {
				onLine: (text) => {
					begin();
					progress(drive, text);
					this.#show(ctx);
				},
				onNote: (note) => this.#person.tell(ctx, `Kapi: ${here(note)}`, "warning"),
			}),
			subject: "",
			underWay: new Map(),
			isAwaited: how.isAwaited,
		};
		const interrupt = () => drive.stream.interrupt();
		how.signal?.addEventListener("abort", interrupt, { once: true });
		if (how.signal?.aborted) interrupt();
		this.#running.add(drive);
		this.#listen(ctx);
		this.#show(ctx);
		try {
			const ran = await drive.stream.ended;
			await begun;
			return this.#driven(ran);
		} catch (error) {
			return { view: undefined, goal: undefined, isInterrupted: false, error: error as KapiError };
		} finally {
			how.signal?.removeEventListener("abort", interrupt);
			this.#running.delete(drive);
			if (this.#running.size === 0) this.#unlisten = void this.#unlisten?.();
			this.#show(ctx);
		}
	}

	/** Interrupts every child, and waits for a while until they have recorded where they stand. */
	async end(): Promise<void> {
		const drives = [...this.#running];
		for (const drive of drives) drive.stream.interrupt();
		let timer: NodeJS.Timeout | undefined;
		const late = new Promise<void>((resolve) => {
			timer = setTimeout(resolve, END_MS);
		});
		await Promise.race([Promise.allSettled(drives.map((drive) => drive.stream.ended)), late]);
		clearTimeout(timer);
		clearTimeout(this.#timer);
		this.#unlisten?.();
	}

	#driven(ran: Ran): Driven {
		const { view, goal } = result(ran.stdout);
		const isInterrupted = ran.code === 130;
		const error = view || goal || isInterrupted ? undefined : failure(ran);
		return { view, goal, isInterrupted, error };
	}

	/** Shows what is under way, not oftener than eyes can follow. */
	#show(ctx: ExtensionContext): void {
		if (this.#person.isGone || !ctx.hasUI || this.#timer) return;
		this.#timer = setTimeout(() => {
			this.#timer = undefined;
			const text = [...this.#running].map(words).join(" | ");
			if (text === this.#shown || this.#person.isGone) return;
			this.#shown = text;
			ctx.ui.setStatus(STATUS, text === "" ? undefined : line(`kapi ${text}`));
		}, PACE_MS);
	}

	/** Listens for Esc while something is driven, where Pi has a keyboard. */
	#listen(ctx: ExtensionContext): void {
		if (!ctx.hasUI) return;
		this.#unlisten ??= ctx.ui.onTerminalInput((data) => {
			if (isEscape(data)) void this.#escape(ctx);
			return undefined;
		});
	}

	/** Esc is Pi's own while it works, the dialog's while one is open, and the editor's with text in it. */
	async #escape(ctx: ExtensionContext): Promise<void> {
		if (this.#person.isGone || !ctx.isIdle() || this.#person.isAsked || this.#isConfirming || ctx.ui.getEditorText() !== "") return;
		const drives = [...this.#running];
		// What runs beside the person's own work is not ended by a key that may have been meant for that.
		if (!drives.some((drive) => drive.isAwaited)) {
			this.#isConfirming = true;
			const isMeant = await this.#person.confirm(ctx, "Stop driving here?", "The workflow keeps its state; continue it with resume.");
			this.#isConfirming = false;
			if (!isMeant) return;
		}
		for (const drive of drives) drive.stream.interrupt();
	}
}

function isEscape(data: string): boolean {
	return data === "\u001b" || /^\u001b\[27(;1(:1)?)?u$/.test(data);
}

/** Reads the last line of a stream. */
function result(text: string): { view: WorkflowView | undefined; goal: ResultView | undefined } {
	const last = parse(text) as WorkflowView | ResultView | undefined;
	return {
		view: last?.type === "workflow_result" ? (last as WorkflowView) : undefined,
		goal: last?.type === "result" ? (last as ResultView) : undefined,
	};
}

/** Takes note of what a line of a stream tells. */
function progress(drive: Drive, text: string): void {
	const event = parse(text) as StreamLine | undefined;
	const subject = event?.workflow ?? event?.goal;
	if (!event || !subject) return;
	drive.subject = subject;
	const effect = event.effect ?? event.data?.effect ?? undefined;
	// A goal has one thing under way, and what happens in it does not name it.
	if (event.goal) {
		const now = event.type === "effect_intended" ? effect : [...drive.underWay.keys()].at(-1);
		drive.underWay.clear();
		if (now !== undefined) drive.underWay.set(now, event.type === "activity" ? (event.text ?? "") : "");
		return;
	}
	if (effect === undefined) return;
	if (event.type === "effect_ended") drive.underWay.delete(effect);
	else drive.underWay.set(effect, event.type === "activity" ? (event.text ?? "") : "");
}

/** Returns what a drive is at, in a few words. */
function words(drive: Drive): string {
	const parts = [...drive.underWay].map(([effect, text]) => [work(effect), line(text, 40)].filter(Boolean).join(": "));
	return [drive.subject.slice(0, 3), parts.join(", ") || "starting"].join(" ").trim();
}

function parse(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}
