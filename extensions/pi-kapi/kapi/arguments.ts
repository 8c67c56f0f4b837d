// What a person typed behind a command, as arguments for the binary.
//
// Forgiving as a command line is: a purpose needs no quotes and may hold anything, an apostrophe
// too; options come after it. What the words and options mean is the binary's affair.

import { KapiError } from "./binary.ts";

const VERBS = ["status", "resume", "approve"] as const;
export type Verb = (typeof VERBS)[number];

/** A mode's command. */
export type Typed =
	| { verb: Verb; words: string[] }
	| { verb: "start"; purpose: string; options: string[] };

/** Reads what was typed behind `/kapi-<mode>`. */
export function read(text: string): Typed {
	const trimmed = text.trim();
	const [first = ""] = trimmed.split(/\s/, 1);
	const verb = VERBS.find((verb) => verb === first);
	if (verb) return { verb, words: split(trimmed.slice(first.length)) };
	const { purpose, rest } = cut(trimmed);
	return { verb: "start", purpose, options: split(rest) };
}

/** Cuts the purpose from the options behind it. */
export function cut(text: string): { purpose: string; rest: string } {
	const quote = text[0];
	if (quote === '"' || quote === "'") {
		const end = text.indexOf(quote, 1);
		// Only where the quotes are around all of it; a purpose may begin with a quoted word.
		if (end > 0 && /^(\s+--|\s*$)/.test(text.slice(end + 1))) {
			return { purpose: text.slice(1, end), rest: text.slice(end + 1) };
		}
	}
	const option = /(^|\s)--[a-z]/.exec(text);
	if (!option) return { purpose: text, rest: "" };
	return { purpose: text.slice(0, option.index).trim(), rest: text.slice(option.index) };
}

/** Splits words as a shell does, with quotes and backslashes and nothing else. */
export function split(text: string): string[] {
	const words: string[] = [];
	let word: string | undefined;
	let quote: string | undefined;
	for (let at = 0; at < text.length; at += 1) {
		const letter = text[at] ?? "";
		if (quote) {
			if (letter === quote) quote = undefined;
			else if (letter === "\\" && quote === '"' && /["\\]/.test(text[at + 1] ?? "")) word += text[(at += 1)] ?? "";
			else word += letter;
		} else if (letter === '"' || letter === "'") {
			quote = letter;
			word ??= "";
		} else if (letter === "\\" && at + 1 < text.length) {
			word = (word ?? "") + (text[(at += 1)] ?? "");
		} else if (/\s/.test(letter)) {
			if (word !== undefined) words.push(word);
			word = undefined;
		} else {
			word = (word ?? "") + letter;
		}
	}
	if (quote) throw new KapiError(`a quote ${quote} is opened and not closed; nothing was done.`);
	if (word !== undefined) words.push(word);
	return words;
}
