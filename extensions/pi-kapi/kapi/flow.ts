// A workflow that the person is at: driven until it rests, then its question or its decision is put
// to them, and on. Where its person waits for the next question, it is followed to what is approved; of
// another it is only told what waits, because its person works on something else meanwhile.
//
// Every Esc leaves the workflow where it stands, and resume goes on with it.

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Attachment } from "./attachment.ts";
import type { KapiError } from "./binary.ts";
import { decide, show } from "./decision.ts";
import type { Driven, Drives } from "./drives.ts";
import type { AskedView, SessionWorkflowView } from "./json_types.ts";
import { type Mode, modeOf } from "./modes.ts";
import type { Person } from "./person.ts";
import { reply } from "./reply.ts";
import { here, partOf, workflow } from "./words.ts";

/** Exit codes of the binary: a wrong command line, and a rule that refused. */
const REFUSED = [2, 3];

/** What is to be done next, and what of the person it carries. */
interface Step {
	args: string[];
	/** The workflow and the question that are answered by it. */
	answers?: { mode: string; id: string; asked: AskedView };
}

export class Flow {
	readonly #person: Person;
	readonly #drives: Drives;
	readonly #attachment: Attachment;

	constructor(person: Person, drives: Drives, attachment: Attachment) {
		this.#person = person;
		this.#drives = drives;
		this.#attachment = attachment;
	}

	/** Runs a command and follows the workflow until it ends or its person leaves it. */
	async follow(ctx: ExtensionContext, mode: Mode, args: string[]): Promise<void> {
		let step: Step | undefined = { args };
		while (step && !this.#person.isGone) {
			const driven = await this.#drives.drive(ctx, step.args, {
				isAwaited: mode.awaited,
				onBegun: () => this.#attachment.refresh(ctx),
			});
			if (this.#person.isGone) return;
			await this.#attachment.refresh(ctx);
			step = await this.#after(ctx, step, driven);
		}
	}

	/** Drives a workflow with words that the person confirmed, and says where it came to. */
	async passOn(ctx: ExtensionContext, args: string[], signal: AbortSignal | undefined): Promise<SessionWorkflowView | undefined> {
		const driven = await this.#drives.drive(ctx, args, { isAwaited: true, signal });
		const standing = await this.#attachment.refresh(ctx);
		if (driven.error) throw driven.error;
		return standing;
	}

	/** Puts what waits in a workflow to the person, and goes on from there. */
	async decide(ctx: ExtensionContext, mode: Mode, reference: string): Promise<void> {
		const standing = await show(ctx, mode.name, reference);
		if (!standing.pending) {
			const next = standing.next[0] ? ` Next: ${here(standing.next[0])}` : "";
			this.#person.tell(ctx, `Workflow ${standing.id} has nothing to approve: it is in ${standing.standing}.${next}`, "warning");
			return;
		}
		const step = await this.#decision(ctx, standing);
		if (step) await this.follow(ctx, mode, step.args);
	}

	async #after(ctx: ExtensionContext, step: Step, driven: Driven): Promise<Step | undefined> {
		const { view, error } = driven;
		if (error) {
			this.#person.fail(ctx, error);
			if (step.answers && isRefused(error)) return this.#question(ctx, step.answers.mode, step.answers.id);
			return undefined;
		}
		if (driven.isInterrupted) {
			const next = view ? ` /kapi-${view.mode} resume ${view.id.slice(0, 3)} continues it.` : "";
			this.#person.tell(ctx, `Kapi was interrupted; the workflow keeps its state.${next}`, "warning");
			return undefined;
		}
		if (!view) return undefined;
		if (partOf(view)?.asked) return this.#question(ctx, view.mode, view.id);
		if (view.pending && modeOf(view.mode)?.awaited) {
			return this.#decision(ctx, await show(ctx, view.mode, view.id));
		}
		this.#person.tell(ctx, workflow(view), view.pending || view.blocked ? "warning" : "info");
		return undefined;
	}

	/** Puts the open question to the person; the one that is open now, whatever was before. */
	async #question(ctx: ExtensionContext, mode: string, id: string): Promise<Step | undefined> {
		const before = await show(ctx, mode, id);
		if (!before.asked) return undefined;
		const said = await reply(ctx, this.#person, id, before.asked);
		if (this.#person.isGone) return undefined;
		if (said === undefined) {
			this.#person.tell(ctx, `The question stays open. Continue with /kapi-${mode} resume ${before.index}.`);
			return undefined;
		}
		const now = await show(ctx, mode, id);
		if (now.asked?.round !== before.asked.round || now.asked.text !== before.asked.text) {
			this.#person.tell(ctx, "The workflow continued elsewhere meanwhile: your reply was not recorded.", "warning");
			return this.#question(ctx, mode, id);
		}
		return { args: [mode, "resume", id, `--answer=${said}`], answers: { mode, id, asked: before.asked } };
	}

	async #decision(ctx: ExtensionContext, standing: SessionWorkflowView): Promise<Step | undefined> {
		const { id, index, mode } = standing;
		const decided = await decide(ctx, this.#person, standing);
		if (this.#person.isGone) return undefined;
		await this.#attachment.refresh(ctx);
		switch (decided.what) {
			case "left":
				this.#person.tell(ctx, `${standing.pending?.artifact} is still waiting. Review it with /kapi-${mode} approve ${index}.`);
				return undefined;
			case "change":
				return { args: [mode, "resume", id, `--revise=${decided.text}`] };
			case "approved":
				this.#person.tell(ctx, `${standing.pending?.artifact} of workflow ${id} is approved.\n${workflow(decided.view)}`);
				return decided.isGoingOn ? { args: [mode, "resume", id] } : undefined;
		}
	}
}

function isRefused(error: KapiError): boolean {
	return REFUSED.includes(error.code ?? 0);
}
