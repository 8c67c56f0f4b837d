// `/creampi`, `/creampi-loops` and `/creampi-health`: the kernel of this project on Pi's screen, and its
// tools for the model of this session.
//
// Each is a command of the binary, shown as it is printed.

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { place } from "./attachment.ts";
import { printed } from "./binary.ts";
import type { GoalPlace } from "./goal_place.ts";
import type { Person } from "./person.ts";
import { shown } from "./words.ts";

export function registerCreampi(pi: ExtensionAPI, person: Person, goal: GoalPlace): void {
	const register = (name: string, description: string, run: (ctx: ExtensionContext, text: string) => Promise<string>) => {
		pi.registerCommand(name, {
			description,
			handler: async (text, ctx) => {
				try {
					person.tell(ctx, shown(await run(ctx, text.trim())));
				} catch (error) {
					person.fail(ctx, error);
				}
			},
		});
	};
	const show = (ctx: ExtensionContext, ...args: string[]) => printed(place(ctx), args);
	register("creampi", "Kapi: show tasks, loops and lessons; with 'tools', give the model the kernel's tools", async (ctx, text) => {
		if (text !== "tools") return show(ctx, "dashboard");
		const isOn = await (await goal.load()).switchKernel(ctx);
		return isOn ? "The model of this session has the kernel's tools." : "The kernel's tools are taken away again.";
	});
	register("creampi-loops", "Kapi: list loops with their last and next runs", (ctx) => show(ctx, "loop", "status"));
	register("creampi-health", "Kapi: check which agents can run here", (ctx) => show(ctx, "doctor"));
}
