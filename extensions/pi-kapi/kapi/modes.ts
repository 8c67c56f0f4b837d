// The modes, one for each file in `modes/`: their commands, and what is said and done differently in each.
//
// Everything else here serves them all and names none. A test of the binary compares the files with what
// it knows of its modes.

import { readdirSync, readFileSync } from "node:fs";

/** A mode, as its file says it. */
export interface Mode {
	/** The name, which is also the one of its command. */
	name: string;
	/** What one of its workflows is called. */
	noun: string;
	/** Where its own part stands in the view of a workflow. */
	part: string;
	/** What its command does. */
	description: string;
	/** What a person is asked who gives no purpose. */
	asks: string;
	/** Whether its person waits while it works, for what it asks next. */
	awaited: boolean;
	/** Whether there is something to go on with after an approval. */
	goesOn: boolean;
	/** Whether it gives others their context, or takes it. */
	context: "gives" | "takes" | "none";
	/** What an agent does in each of its roles. */
	work: Record<string, string>;
}

const HOME = new URL("./modes/", import.meta.url);

/** Every mode, by name. */
export const MODES: readonly Mode[] = readdirSync(HOME)
	.filter((file) => file.endsWith(".json"))
	.sort()
	.map((file) => JSON.parse(readFileSync(new URL(file, HOME), "utf8")) as Mode);

/** Returns a mode by its name; none where this package is older than the binary. */
export function modeOf(name: string): Mode | undefined {
	return MODES.find((mode) => mode.name === name);
}
