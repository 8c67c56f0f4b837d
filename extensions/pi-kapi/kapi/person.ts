// The person at this Pi: what they are told, what they are asked, and what they typed.
//
// One dialog at a time, whoever opens it. Without anybody to ask, a question is left where it is.

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { read } from "./reader.ts";
import { harmless, here } from "./words.ts";

/** Messages of the person that are remembered, and their characters. */
const MESSAGES_MAX = 50;
const CHARS_MAX = 256 * 1024;

type Kind = "info" | "warning" | "error";

export class Person {
	#last: Promise<unknown> = Promise.resolve();
	#typed: string[] = [];
	#isAsked = false;
	#gone = new AbortController();

	/** Whether one of our dialogs is open. */
	get isAsked(): boolean {
		return this.#isAsked;
	}

	/** Whether this session of Pi is over. */
	get isGone(): boolean {
		return this.#gone.signal.aborted;
	}

	/** Ends every dialog; nothing is told or asked from now on. */
	leave(): void {
		this.#gone.abort();
	}

	/** Tells the person what was refused or failed. */
	fail(ctx: ExtensionContext, error: unknown): void {
		const text = error instanceof Error ? error.message : String(error);
		this.tell(ctx, `Kapi: ${harmless(here(text))}`, "error");
	}

	/** Tells the person something. */
	tell(ctx: ExtensionContext, text: string, kind: Kind = "info"): void {
		if (this.isGone) return;
		if (ctx.hasUI) ctx.ui.notify(text, kind);
		else process.stderr.write(`${text}\n`);
	}

	/** Has the person choose; undefined is Esc. */
	choose(ctx: ExtensionContext, title: string, options: string[], timeout?: number): Promise<string | undefined> {
		return this.#turn(ctx, () => ctx.ui.select(title, options, { signal: this.#gone.signal, ...(timeout ? { timeout } : {}) }));
	}

	/** Asks the person yes or no; undefined where there is nobody. */
	confirm(ctx: ExtensionContext, title: string, message: string, timeout?: number): Promise<boolean | undefined> {
		return this.#turn(ctx, () => ctx.ui.confirm(title, message, { signal: this.#gone.signal, ...(timeout ? { timeout } : {}) }));
	}

	/** Has the person type a line. */
	line(ctx: ExtensionContext, title: string): Promise<string | undefined> {
		return this.#turn(ctx, () => ctx.ui.input(title, undefined, { signal: this.#gone.signal }));
	}

	/** Has the person type a text. */
	text(ctx: ExtensionContext, title: string): Promise<string | undefined> {
		return this.#turn(ctx, () => ctx.ui.editor(title, ""));
	}

	/** Shows a text whole; tells whether the person goes on from it. */
	reads(ctx: ExtensionContext, title: string, text: string): Promise<boolean | undefined> {
		return this.#turn(ctx, () => read(ctx, title, text, this.#gone.signal));
	}

	async #turn<T>(ctx: ExtensionContext, open: () => Promise<T>): Promise<T | undefined> {
		const before = this.#last;
		const mine = (async () => {
			await before.catch(() => undefined);
			if (this.isGone || !ctx.hasUI) return undefined;
			this.#isAsked = true;
			try {
				const said = await open();
				return this.isGone ? undefined : said;
			} finally {
				this.#isAsked = false;
			}
		})();
		this.#last = mine;
		return mine;
	}

	/** Remembers what the person typed. */
	typed(text: string): void {
		this.#typed.push(plain(text));
		while (this.#typed.length > MESSAGES_MAX || this.#typed.join("").length > CHARS_MAX) this.#typed.shift();
	}

	/** Tells whether these are words of one message that was typed and not yet passed on. */
	hasTyped(text: string): boolean {
		const words = plain(text);
		return words !== "" && this.#typed.some((message) => message.includes(words));
	}

	/** Forgets what was typed: it was passed on, or belongs to something else. */
	forget(): void {
		this.#typed = [];
	}
}

function plain(text: string): string {
	return text.replace(/\r\n?/g, "\n").trim();
}
