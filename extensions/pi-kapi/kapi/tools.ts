// The two tools of Pi's model while a workflow is attached: one reads, the other hands on words that
// the person typed here and confirms in a dialog. There is none that approves, gives up or detaches.
//
// They are registered with the first attachment and active only while there is one.

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Attachment, Switch } from "./attachment.ts";
import type { Flow } from "./flow.ts";
import type { SessionWorkflowView } from "./json_types.ts";
import { modeOf } from "./modes.ts";
import type { Person } from "./person.ts";
import { harmless, here } from "./words.ts";

const STATUS = "kapi_status";
const PASS_ON = "kapi_pass_on";

const NOTHING = { type: "object", properties: {}, additionalProperties: false } as const;
const WORDS = {
	type: "object",
	properties: {
		kind: {
			type: "string",
			enum: ["answer", "revision"],
			description: "answer: the answer to the open question; revision: requested changes to the draft",
		},
		text: {
			type: "string",
			description: "The user's own words, copied exactly from one message they typed in this session",
		},
	},
	required: ["kind", "text"],
	additionalProperties: false,
} as const;

interface Words {
	kind: "answer" | "revision";
	text: string;
}

/** What the tools stand on; the attachment switches them, so it is given afterwards. */
export interface Ground {
	person: Person;
	attachment: Attachment;
	flow: Flow;
}

export class Tools implements Switch {
	readonly #pi: ExtensionAPI;
	readonly #ground: () => Ground;
	#isRegistered = false;
	#isOn = false;

	constructor(pi: ExtensionAPI, ground: () => Ground) {
		this.#pi = pi;
		this.#ground = ground;
	}

	on(): void {
		if (this.#isOn) return;
		this.#isOn = true;
		if (!this.#isRegistered) this.#register();
		this.#isRegistered = true;
		const others = this.#pi.getActiveTools().filter((name) => name !== STATUS && name !== PASS_ON);
		this.#pi.setActiveTools([...others, STATUS, PASS_ON]);
	}

	off(): void {
		if (!this.#isOn) return;
		this.#isOn = false;
		this.#pi.setActiveTools(this.#pi.getActiveTools().filter((name) => name !== STATUS && name !== PASS_ON));
	}

	#register(): void {
		this.#pi.registerTool({
			name: STATUS,
			label: "Kapi status",
			description: "Shows the state of this session's Kapi workflow: phase, open question, what is waiting for the user, and what they can type next. Changes nothing.",
			parameters: NOTHING,
			execute: async (_id, _params, _signal, _update, ctx) => {
				const standing = await this.#ground().attachment.refresh(ctx);
				return answer(standing ? status(standing) : "This session is not attached to a workflow.");
			},
		});
		this.#pi.registerTool({
			name: PASS_ON,
			label: "Kapi: pass on",
			description:
				"Passes the user's own words to this session's Kapi workflow, as the answer to its open question or as requested changes to its draft. Only words that the user typed in this session since the last time, verbatim; the person confirms what is recorded. It cannot approve anything.",
			parameters: WORDS,
			executionMode: "sequential",
			execute: async (_id, params, signal, _update, ctx) => answer(await passOn(this.#ground(), ctx, params as Words, signal)),
		});
	}
}

async function passOn({ person, attachment, flow }: Ground, ctx: ExtensionContext, words: Words, signal: AbortSignal | undefined): Promise<string> {
	const standing = await attachment.refresh(ctx);
	if (!standing) throw new Error("this session is not attached to a workflow");
	const asked = standing.asked;
	if (words.kind === "answer" && !asked) throw new Error(`no question is open: workflow ${standing.id} is in ${standing.standing}`);
	if (!person.hasTyped(words.text)) {
		throw new Error("the user did not type these words here since the last time; ask them and pass on their answer verbatim");
	}
	if (!ctx.hasUI) throw new Error("there is nobody to confirm what would be recorded");
	const text = words.text.trim();
	const title = words.kind === "answer" ? `Answer question ${asked?.round} of ${standing.id} with your words?` : `Request changes to ${standing.id} with your words?`;
	const message = words.kind === "answer" ? `${asked?.text}\n\n${text}` : text;
	if ((await person.confirm(ctx, title, harmless(message))) !== true) return "The user did not confirm it. Nothing was recorded.";
	const now = await attachment.refresh(ctx);
	if (now?.id !== standing.id || now.asked?.round !== asked?.round) {
		throw new Error("the workflow continued meanwhile; nothing was recorded");
	}
	person.forget();
	const args = [standing.mode, "resume", standing.id, words.kind === "answer" ? `--answer=${text}` : `--revise=${text}`];
	const mode = modeOf(standing.mode);
	if (mode && !mode.awaited) {
		await flow.passOn(ctx, [...args, "--no-drive"], signal);
		// Drafting anew takes a while; the person is told when something waits again.
		void flow.follow(ctx, mode, [standing.mode, "resume", standing.id]).catch((error: unknown) => person.fail(ctx, error));
		return "It is recorded, and the draft is being revised. The user is notified when it is ready.";
	}
	const after = await flow.passOn(ctx, args, signal);
	return `It is recorded. ${after ? status(after) : "The workflow is no longer attached."}`;
}

function status(standing: SessionWorkflowView): string {
	const lines = [standing.paragraph];
	if (standing.asked) {
		lines.push(`Open question: ${standing.asked.text}`);
		if (standing.asked.proposed) lines.push(`Proposed answer: ${standing.asked.proposed}`);
		lines.push(`Reason: ${standing.asked.why}`);
	}
	for (const risk of standing.pending?.risks ?? []) lines.push(`Risk: ${risk}`);
	for (const next of standing.next) lines.push(`The user can type: ${here(next)}`);
	return lines.join("\n");
}

function answer(text: string) {
	return { content: [{ type: "text" as const, text }], details: undefined };
}
