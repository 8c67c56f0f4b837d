// A decision of the person: the artifact whole, what will happen on yes, and the risks one by one.
//
// An approval names the hash of what was shown; the binary refuses it when something else waits by
// then. Nothing here decides what may be approved.

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { place } from "./attachment.ts";
import { ask } from "./binary.ts";
import type { DecisionView, SessionWorkflowView, ShownView, WorkflowView } from "./json_types.ts";
import { modeOf } from "./modes.ts";
import type { Person } from "./person.ts";
import { harmless, here } from "./words.ts";

/** What came of it. */
export type Decided =
	| { what: "left" }
	| { what: "approved"; view: WorkflowView; isGoingOn: boolean }
	| { what: "change"; text: string };

const GO_ON = "Approve and continue now";
const APPROVE = "Approve";
const CHANGE = "Request changes";
const NOT_NOW = "Not now";

/** Returns a workflow with what waits in it, word for word. */
export async function show(ctx: ExtensionContext, mode: string, reference: string): Promise<SessionWorkflowView> {
	const shown = await ask<ShownView>(place(ctx), ["__session", "show", mode, reference]);
	return shown.workflow;
}

/** Puts what waits in a workflow to the person, and records their approval. */
export async function decide(ctx: ExtensionContext, person: Person, standing: SessionWorkflowView): Promise<Decided> {
	const { pending, id, mode } = standing;
	if (!pending) return { what: "left" };
	const title = `${pending.artifact} of workflow ${id}, awaiting approval.`;
	if (!(await person.reads(ctx, title, harmless(pending.text ?? "")))) return { what: "left" };
	const choices = modeOf(mode)?.goesOn ? [APPROVE, GO_ON, CHANGE, NOT_NOW] : [APPROVE, CHANGE, NOT_NOW];
	for (;;) {
		const choice = await person.choose(ctx, asked(id, pending), choices);
		if (choice === CHANGE) {
			const text = await person.text(ctx, `What should change in ${pending.artifact}?`);
			if (text?.trim()) return { what: "change", text };
		} else if (choice === APPROVE || choice === GO_ON) {
			if (!(await acceptsRisks(ctx, person, pending))) continue;
			const risks = pending.risks.length > 0 ? ["--accept-risks"] : [];
			const view = await ask<WorkflowView>(place(ctx), [mode, "approve", id, `--hash=${pending.sha256}`, ...risks]);
			return { what: "approved", view, isGoingOn: choice === GO_ON };
		} else {
			return { what: "left" };
		}
	}
}

function asked(id: string, pending: DecisionView): string {
	const lines = [
		`Approve ${pending.artifact} of workflow ${id}?`,
		`hash: ${pending.sha256}`,
		...pending.risks.map((risk) => `risk: ${risk}`),
		`on yes: ${here(pending.on_yes)}`,
	];
	return harmless(lines.join("\n"));
}

async function acceptsRisks(ctx: ExtensionContext, person: Person, pending: DecisionView): Promise<boolean> {
	const { risks } = pending;
	if (risks.length === 0) return true;
	const title = risks.length === 1 ? "Accept this risk?" : `Accept these ${risks.length} risks?`;
	const list = risks.map((risk, at) => `${at + 1}. ${harmless(risk)}`).join("\n");
	return (await person.confirm(ctx, title, list)) === true;
}
