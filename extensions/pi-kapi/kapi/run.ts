// `/kapi-run`: a task that is handed to an agent in a sandbox, and driven beside the person's own work.
//
// The contract is shown before anything begins, and approved by the hash of what was shown.

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { cut, split } from "./arguments.ts";
import { place } from "./attachment.ts";
import { ask, failure, run } from "./binary.ts";
import type { Drives } from "./drives.ts";
import type { ApprovalNeededView, ResultView } from "./json_types.ts";
import type { Person } from "./person.ts";
import * as words from "./words.ts";

/** What is said before the contract, which is shown as a command line shows it. */
const BEFORE = /^[\s\S]*?(?=^Contract$)/m;

/** A goal that was created, with its contract in words. */
interface Created {
	id: string;
	/** What approves it; nothing where the person did in advance. */
	needed: ApprovalNeededView | undefined;
	contract: string;
}

export function registerRun(pi: ExtensionAPI, person: Person, drives: Drives): void {
	pi.registerCommand("kapi-run", {
		description: "Kapi: hand a task to an agent in a sandbox",
		handler: async (text, ctx) => {
			const ran = handOver(ctx, person, drives, text).catch((error: unknown) => person.fail(ctx, error));
			if (!ctx.hasUI) await ran;
		},
	});
}

async function handOver(ctx: ExtensionContext, person: Person, drives: Drives, text: string): Promise<void> {
	const { purpose, rest } = cut(text.trim());
	const task = purpose || ((await person.text(ctx, "What is to be done?"))?.trim() ?? "");
	if (task === "") return person.tell(ctx, "Nothing was started: /kapi-run takes a task, and options of kapi run behind it.", "warning");
	const created = await create(ctx, [...split(rest), "--", task]);
	const args = await approved(ctx, person, created);
	if (!args) return;
	const driven = await drives.drive(ctx, args, { isAwaited: false });
	if (driven.error) throw driven.error;
	if (driven.goal) person.tell(ctx, words.goal(driven.goal), driven.goal.status === "done" ? "info" : "warning");
}

/** Creates the goal; what is wrong with it is said as on a command line. */
async function create(ctx: ExtensionContext, args: string[]): Promise<Created> {
	const ran = await run(place(ctx), ["goal", "new", "--no-run", ...args]);
	const lines = ran.stdout.trim().split("\n").filter(Boolean);
	if (lines.length === 0) throw failure(ran);
	const documents = lines.map((line) => JSON.parse(line) as ApprovalNeededView | ResultView);
	const needed = documents.find((document): document is ApprovalNeededView => document.type === "approval_needed");
	const result = documents.find((document): document is ResultView => document.type !== "approval_needed");
	const id = needed?.goal ?? result?.id;
	if (id === undefined) throw failure(ran);
	return { id, needed, contract: ran.stderr.replace(BEFORE, "").trim() };
}

/** Has the contract approved; returns what drives the goal then, and nothing where it waits or was turned down. */
async function approved(ctx: ExtensionContext, person: Person, { id, needed, contract }: Created): Promise<string[] | undefined> {
	if (!needed) return ["resume", id];
	if (!ctx.hasUI) {
		person.tell(ctx, `Goal ${id} waits for your approval: ${needed.approve}`, "warning");
		return undefined;
	}
	const isApproved = await person.confirm(ctx, "Approve this contract and start?", words.harmless(contract));
	if (person.isGone) return undefined;
	if (isApproved) return ["goal", "approve", id, `--hash=${needed.contract_hash}`];
	await ask(place(ctx), ["goal", "reject", id]);
	person.tell(ctx, `The contract of goal ${id} was rejected.`);
	return undefined;
}
