// `/until-done`: the command, its completion, its flag and its shortcut; and Pi's events for the goal.
//
// What a line means is decided by the core.

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { getKeybindings, matchesKey } from "@earendil-works/pi-tui";
import type { GoalPlace } from "./goal_place.ts";
import type { Person } from "./person.ts";
import { SUBCOMMANDS } from "./rpc_types.ts";

const FLAG = "until-done";
/** Redraws the goal. */
const KEY = "ctrl+shift+g";
const CARRY = "carry the goal into the fork";
const LEAVE = "leave the goal in this session";
/** Where a fork that shall have no goal is told so: every session has a package of its own. */
const LEFT = Symbol.for("kapi.goal.left");

export function registerUntilDone(pi: ExtensionAPI, person: Person, goal: GoalPlace): void {
	const run = async (ctx: ExtensionContext, text: string) => {
		try {
			await (await goal.load()).slash(ctx, text);
		} catch (error) {
			person.fail(ctx, error);
		}
	};
	pi.registerCommand("until-done", {
		description: "Kapi: set up a goal for this session, and steer it",
		getArgumentCompletions: (prefix) => {
			const typed = prefix.toLowerCase();
			const items = SUBCOMMANDS.filter(([name]) => name.startsWith(typed) && name !== typed);
			return items.length > 0 ? items.map(([name, purpose]) => ({ value: name, label: name, description: purpose })) : null;
		},
		handler: async (text, ctx) => {
			const ran = run(ctx, text);
			if (!ctx.hasUI) await ran;
		},
	});
	pi.registerFlag(FLAG, { type: "string", description: "Set up a goal for this session" });

	pi.on("session_start", async (event, ctx) => {
		registerKey(pi, ctx, goal);
		const left = globalThis as { [LEFT]?: boolean };
		const isLeft = event.reason === "fork" && left[LEFT] === true;
		left[LEFT] = false;
		if (!isLeft) await goal.find(ctx);
		const intent = event.reason === "startup" ? pi.getFlag(FLAG) : undefined;
		if (typeof intent !== "string" || intent.trim() === "") return;
		const ran = run(ctx, intent);
		if (!ctx.hasUI) await ran;
	});
	pi.on("session_tree", async (_event, ctx) => goal.find(ctx));
	pi.on("session_shutdown", async (_event, ctx) => goal.loaded?.leave(ctx));
	pi.on("session_before_switch", async (_event, ctx) => {
		if (!goal.loaded?.isAttached || !ctx.hasUI) return undefined;
		const leaves = await person.confirm(ctx, `Leave goal ${goal.loaded.view?.id}?`, "It stays as it is; open this session again to go on with it.");
		return leaves ? undefined : { cancel: true };
	});
	pi.on("session_before_fork", async (_event, ctx) => {
		if (!goal.loaded?.isAttached || !ctx.hasUI) return undefined;
		const chosen = await person.choose(ctx, `Goal ${goal.loaded.view?.id} is under way here.`, [CARRY, LEAVE, "cancel the fork"]);
		(globalThis as { [LEFT]?: boolean })[LEFT] = chosen === LEAVE;
		return chosen === CARRY || chosen === LEAVE ? undefined : { cancel: true };
	});
	pi.on("session_compact", async (_event, ctx) => goal.loaded?.compacted(ctx));
	pi.on("input", async (event, ctx) => {
		if (event.source !== "extension") await goal.loaded?.said(ctx, event.text);
	});
	pi.on("before_agent_start", async (event, ctx) => {
		const block = await goal.loaded?.begins(ctx);
		return block === undefined ? undefined : { systemPrompt: `${event.systemPrompt}\n\n${block}` };
	});
	pi.on("agent_start", async (_event, ctx) => void (await goal.loaded?.begins(ctx)));
	pi.on("tool_call", async (event, ctx) => goal.gate(ctx, event));
	pi.on("agent_end", async (event, ctx) => goal.loaded?.ended(ctx, event));
}

/** Has the key redraw the goal: as a shortcut where it is free, and beside what Pi does with it where it is Pi's own. */
function registerKey(pi: ExtensionAPI, ctx: ExtensionContext, goal: GoalPlace): void {
	const taken = Object.values(getKeybindings().getResolvedBindings()).flat();
	if (!taken.some((key) => key?.toLowerCase() === KEY)) {
		pi.registerShortcut(KEY, { description: "Redraw the goal", handler: async (here) => goal.loaded?.redraw(here) });
	} else if (ctx.hasUI) {
		ctx.ui.onTerminalInput((data) => {
			if (matchesKey(data, KEY)) goal.loaded?.redraw(ctx);
			return undefined;
		});
	}
}
