// Kapi inside Pi: puts the parts together and listens to Pi's events.
//
// All policy is in the binary. With nothing attached, no child is started, no tool is there, and
// what Pi sends to its model is what it would send without this package, byte for byte.

import { createLocalBashOperations, type ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { Attachment, guidance } from "./attachment.ts";
import { markAgents, personsEnvironment, unmarkAgents } from "./authority.ts";
import { Commands } from "./commands.ts";
import { registerCreampi } from "./creampi.ts";
import { Drives } from "./drives.ts";
import { Flow } from "./flow.ts";
import { GoalPlace } from "./goal_place.ts";
import { Person } from "./person.ts";
import { registerRun } from "./run.ts";
import { type Ground, Tools } from "./tools.ts";
import { registerUntilDone } from "./until_done.ts";

export default function kapi(pi: ExtensionAPI): void {
	markAgents();
	const person = new Person();
	const drives = new Drives(person);
	const tools = new Tools(pi, (): Ground => ({ person, attachment, flow }));
	const attachment = new Attachment(pi, person, tools);
	const flow = new Flow(person, drives, attachment);
	const commands = new Commands(person, attachment, flow);
	commands.register(pi);
	registerRun(pi, person, drives);
	const goal = new GoalPlace(pi, person);
	registerUntilDone(pi, person, goal);
	registerCreampi(pi, person, goal);

	pi.on("session_start", async (_event, ctx) => {
		markAgents();
		commands.here = ctx;
		await attachment.resume(ctx);
	});
	pi.on("session_shutdown", async () => {
		person.leave();
		await drives.end();
		unmarkAgents();
	});
	pi.on("input", (event) => {
		if (attachment.isWatched && event.source !== "extension") person.typed(event.text);
	});
	pi.on("before_agent_start", async (event, ctx) => {
		if (!attachment.isWatched) return undefined;
		const standing = await attachment.refresh(ctx);
		return standing && { systemPrompt: `${event.systemPrompt}\n\n${guidance(standing)}` };
	});
	// What the person types behind `!` is theirs; other commands are none of our business.
	pi.on("user_bash", (event) => {
		if (!/\bkapi\b/.test(event.command)) return undefined;
		const local = createLocalBashOperations();
		return {
			operations: {
				exec: (command, cwd, options) => local.exec(command, cwd, { ...options, env: { ...personsEnvironment(), ...options.env } }),
			},
		};
	});
}
