// One question of a workflow, put to the person, and their reply in the words that the binary reads.
//
// The words are those of the terminal: an empty reply accepts what is proposed, and three words with
// a slash leave a question for later, take it back, or end the questions.

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { AskedView } from "./json_types.ts";
import type { Person } from "./person.ts";
import { line, question } from "./words.ts";

const OWN_WORDS = "Answer in my own words";
const LATER = "Leave it for later";
const BACK = "Take the question back";
const WRONG = "Something is wrong or missing";
const YES = "Yes, that is the goal";
const ENOUGH = "Enough: draft from what is known";

/** Returns the person's reply; undefined where they leave the question as it is. */
export async function reply(ctx: ExtensionContext, person: Person, id: string, asked: AskedView): Promise<string | undefined> {
	const accept = asked.kind === "goal" ? YES : asked.proposed ? `Accept: ${line(asked.proposed, 80)}` : undefined;
	const others = asked.kind === "goal" ? [WRONG, ENOUGH] : [OWN_WORDS, LATER, BACK, ENOUGH];
	const title = question(id, asked);
	for (;;) {
		const choice = await person.choose(ctx, title, accept ? [accept, ...others] : others);
		if (choice === undefined) return undefined;
		if (choice === accept) return "";
		if (choice === ENOUGH) return "/enough";
		const said = choice === LATER || choice === BACK ? await why(ctx, person, choice) : await words(ctx, person, asked);
		// Esc in the second dialog leads back to the first one.
		if (said !== undefined) return said;
	}
}

async function words(ctx: ExtensionContext, person: Person, asked: AskedView): Promise<string | undefined> {
	const title = asked.kind === "goal" ? `What is wrong or missing in: ${asked.text}` : asked.text;
	const said = await person.text(ctx, title);
	return said?.trim() ? said.trim() : undefined;
}

async function why(ctx: ExtensionContext, person: Person, choice: string): Promise<string | undefined> {
	const said = await person.line(ctx, `${choice}: why? (optional)`);
	if (said === undefined) return undefined;
	return `${choice === LATER ? "/later" : "/back"} ${said}`.trim();
}
