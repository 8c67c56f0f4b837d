// The two tools of Pi's model while a workflow is attached: one reads, the other hands on words that
// the person typed here and confirms in a dialog. There is none that approves, gives up or detaches.
//
// They are registered with the first attachment and active only while there is one.

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Attachment, Switch } from "./attachment.ts";
import type { Flow } from "./flow.ts";
import { modeOf } from "./modes.ts";
import type { Person } from "./person.ts";
import type { Standing } from "./shapes.ts";
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
			description: "answer: to the question that is open; revision: what should change in what was drafted",
		},
		text: {
			type: "string",
			description: "The person's own words, copied exactly from one message that they typed in this session",
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
			description: "Tells where the Kapi workflow of this session stands: phase, open question, what waits for the person, and what they can type next. Changes nothing.",
			parameters: NOTHING,
			execute: async (_id, _params, _signal, _update, ctx) => {
				const standing = await this.#ground().attachment.refresh(ctx);
				return answer(standing ? status(standing) : "This session is attached to no workflow.");
			},
		});
		this.#pi.registerTool({
			name: PASS_ON,
			label: "Kapi: pass on",
			description:
				"Hands the person's own words on to the Kapi workflow of this session, as the answer to its open question or as what should change in its draft. Only words that the person typed in this session since the last time, verbatim; the person confirms what is recorded. It cannot approve anything.",
			parameters: WORDS,
			executionMode: "sequential",
			execute: async (_id, params, signal, _update, ctx) => answer(await passOn(this.#ground(), ctx, params as Words, signal)),
		});
	}
}

async function passOn({ person, attachment, flow }: Ground, ctx: ExtensionContext, words: Words, signal: AbortSignal | undefined): Promise<string> {
	const standing = await attachment.refresh(ctx);
	if (!standing) throw new Error("this session is attached to no workflow");
	const asked = standing.asked;
	if (words.kind === "answer" && !asked) throw new Error(`no question is open: workflow ${standing.id} stands in ${standing.standing}`);
	if (!person.hasTyped(words.text)) {
		throw new Error("these are not words that the person typed here since the last time; ask them, and pass on what they say, verbatim");
	}
	if (!ctx.hasUI) throw new Error("nobody is here to confirm what would be recorded");
	const text = words.text.trim();
	const title = words.kind === "answer" ? `Answer question ${asked?.round} of ${standing.id} with your words?` : `Have ${standing.id} changed by your words?`;
	const message = words.kind === "answer" ? `${asked?.text}\n\n${text}` : text;
	if ((await person.confirm(ctx, title, harmless(message))) !== true) return "The person did not confirm it. Nothing was recorded.";
	const now = await attachment.refresh(ctx);
	if (now?.id !== standing.id || now.asked?.round !== asked?.round) {
		throw new Error("the workflow went on meanwhile; nothing was recorded");
	}
	person.forget();
	const args = [standing.mode, "resume", standing.id, words.kind === "answer" ? `--answer=${text}` : `--revise=${text}`];
	const mode = modeOf(standing.mode);
	if (mode && !mode.awaited) {
		await flow.passOn(ctx, [...args, "--no-drive"], signal);
		// Drafting anew takes a while; the person is told when something waits again.
		void flow.follow(ctx, mode, [standing.mode, "resume", standing.id]).catch((error: unknown) => person.fail(ctx, error));
		return "It is recorded, and the draft is made anew. The person is told when it waits for them.";
	}
	const after = await flow.passOn(ctx, args, signal);
	return `It is recorded. ${after ? status(after) : "The workflow is no longer attached."}`;
}

function status(standing: Standing): string {
	const lines = [standing.paragraph];
	if (standing.asked) {
		lines.push(`Open question: ${standing.asked.text}`);
		if (standing.asked.proposed) lines.push(`Proposed answer: ${standing.asked.proposed}`);
		lines.push(`Why it is asked: ${standing.asked.why}`);
	}
	for (const risk of standing.pending?.risks ?? []) lines.push(`Risk: ${risk}`);
	for (const next of standing.next) lines.push(`The person can type: ${here(next)}`);
	return lines.join("\n");
}

function answer(text: string) {
	return { content: [{ type: "text" as const, text }], details: undefined };
}
