// Where the goal of this session is, if it has one.
//
// Its code is loaded with the first command that needs it, or by a session file that names an unfinished
// goal: a Pi without one starts without it.

import type { ExtensionAPI, ExtensionContext, ToolCallEvent } from "@earendil-works/pi-coding-agent";
import type { SessionGoal } from "./goal.ts";
import type { Person } from "./person.ts";

/** The entry by which a session's file says which goal it has. */
export const ENTRY = "kapi-goal";

export class GoalPlace {
	readonly #pi: ExtensionAPI;
	readonly #person: Person;
	#loaded: SessionGoal | undefined;
	#loading: Promise<SessionGoal> | undefined;
	/** Why a session that has a goal is without what decides about it. */
	#failure: string | undefined;

	constructor(pi: ExtensionAPI, person: Person) {
		this.#pi = pi;
		this.#person = person;
	}

	/** What is loaded; nothing where no goal was asked for. */
	get loaded(): SessionGoal | undefined {
		return this.#loaded;
	}

	/** Loads it. */
	load(): Promise<SessionGoal> {
		this.#loading ??= import("./goal.ts").then(({ SessionGoal }) => {
			this.#loaded = new SessionGoal(this.#pi, this.#person);
			return this.#loaded;
		});
		return this.#loading;
	}

	/** Attaches to the goal that the branch of this session says, or to none. */
	async find(ctx: ExtensionContext): Promise<void> {
		if (!this.#loaded && goalOf(ctx) === undefined) return;
		try {
			await (await this.load()).find(ctx);
		} catch (error) {
			this.#failure = error instanceof Error ? error.message : String(error);
			this.#person.fail(ctx, error);
		}
	}

	/** Asks whether a tool may run. */
	async gate(ctx: ExtensionContext, event: ToolCallEvent): Promise<{ block: true; reason: string } | undefined> {
		if (this.#failure) return { block: true, reason: `Kapi, which has to decide about tools in this session, could not be loaded: ${this.#failure}` };
		return this.#loaded?.gate(ctx, event);
	}
}

/** Returns the goal that the branch of a session was attached to last. */
export function goalOf(ctx: ExtensionContext): string | undefined {
	const entries = ctx.sessionManager.getBranch().filter((entry) => entry.type === "custom" && entry.customType === ENTRY);
	const last = entries.at(-1);
	const data = last?.type === "custom" ? (last.data as { goal?: string | null } | undefined) : undefined;
	return data?.goal ?? undefined;
}
