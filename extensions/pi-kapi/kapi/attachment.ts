// What this Pi session is attached to, as the binary's inventory says it, and what follows from that
// for the model: the text behind the system prompt, two tools, a widget for what waits.
//
// Nothing is asked of the binary before a command of Kapi was typed in this session: an entry in the
// session's own file says whether one ever was. Forks carry the entry with another session's name.

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { ask, type Place } from "./binary.ts";
import { SESSION_VERSION, type SessionView, type SessionWorkflowView } from "./json_types.ts";
import type { Person } from "./person.ts";
import { line } from "./words.ts";

const ENTRY = "kapi";
const WIDGET = "kapi";

/** What is switched with the attachment. */
export interface Switch {
	on(): void;
	off(): void;
}

export class Attachment {
	readonly #pi: ExtensionAPI;
	readonly #person: Person;
	readonly #tools: Switch;
	#isWatched = false;
	#isIll = false;
	#shown = "";

	constructor(pi: ExtensionAPI, person: Person, tools: Switch) {
		this.#pi = pi;
		this.#person = person;
		this.#tools = tools;
	}

	/** Whether this session may be attached to something. */
	get isWatched(): boolean {
		return this.#isWatched;
	}

	/** Looks whether the session was attached when it was left. */
	async resume(ctx: ExtensionContext): Promise<void> {
		if (wasHere(ctx)) await this.refresh(ctx);
	}

	/** Asks the binary where the session stands, and brings Pi in line with it. */
	async refresh(ctx: ExtensionContext): Promise<SessionWorkflowView | undefined> {
		try {
			const answer = await ask<SessionView>(place(ctx), ["__session"]);
			this.#isIll = false;
			if (answer.v !== SESSION_VERSION) {
				throw new Error(`kapi uses layout ${answer.v}, but this package uses ${SESSION_VERSION}: install matching versions.`);
			}
			return this.#hold(ctx, answer.attached ?? undefined);
		} catch (error) {
			this.#hold(ctx, undefined);
			// Asked again at the next turn, and told once.
			this.#isWatched = true;
			if (!this.#isIll) this.#person.fail(ctx, error);
			this.#isIll = true;
			return undefined;
		}
	}

	#hold(ctx: ExtensionContext, standing: SessionWorkflowView | undefined): SessionWorkflowView | undefined {
		if (this.#person.isGone) return undefined;
		if (standing && !wasHere(ctx)) this.#pi.appendEntry(ENTRY, { session: place(ctx).session });
		if (standing) this.#tools.on();
		else this.#tools.off();
		if (this.#isWatched !== (standing !== undefined)) this.#person.forget();
		this.#isWatched = standing !== undefined;
		this.#show(ctx, standing && widget(standing));
		return standing;
	}

	#show(ctx: ExtensionContext, lines: string[] | undefined): void {
		const shown = (lines ?? []).join("\n");
		if (!ctx.hasUI || shown === this.#shown) return;
		this.#shown = shown;
		ctx.ui.setWidget(WIDGET, lines);
	}
}

/** Returns what is put behind the system prompt of a turn. */
export function guidance(standing: SessionWorkflowView): string {
	const documents = standing.guidance.map((document) => document.text.trim());
	return [`# Kapi\n\n${standing.paragraph}`, ...documents].join("\n\n");
}

/** Returns where children of this session are started. */
export function place(ctx: ExtensionContext): Place {
	return { cwd: ctx.cwd, session: ctx.sessionManager.getSessionId() };
}

/** Returns what waits for the person, in three lines at most; nothing where nothing does. */
export function widget(standing: SessionWorkflowView): string[] | undefined {
	const { id, index, mode, asked, pending, blocked } = standing;
	if (asked) return [line(`Kapi ${id}: ${asked.text}`), `Answer it with /kapi-${mode} resume ${index}`];
	if (pending) {
		const risks = pending.risks.length > 0 ? [`risks to accept: ${pending.risks.length}`] : [];
		return [line(`Kapi ${id}: ${pending.artifact} is waiting for your approval`), ...risks, `Review it with /kapi-${mode} approve ${index}`];
	}
	if (blocked) return [line(`Kapi ${id} is blocked: ${blocked.reason}`), line(blocked.unblock), `Continue with /kapi-${mode} resume ${index}`];
	return undefined;
}

function wasHere(ctx: ExtensionContext): boolean {
	const { session } = place(ctx);
	return ctx.sessionManager.getEntries().some((entry) => {
		if (entry.type !== "custom" || entry.customType !== ENTRY) return false;
		return (entry.data as { session?: string } | undefined)?.session === session;
	});
}
