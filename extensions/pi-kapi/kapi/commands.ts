// The slash commands: one for each mode and three besides, each a command of the binary.
//
// A command that drives something returns at once, so that Pi stays free for its person; without
// anybody at it, it is waited for instead.

import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { AutocompleteItem } from "@earendil-works/pi-tui";
import { read, split, type Verb } from "./arguments.ts";
import { type Attachment, place } from "./attachment.ts";
import { ask, printed } from "./binary.ts";
import type { Flow } from "./flow.ts";
import type { CandidatesView, InboxView, WorkflowRow, WorkflowStatusView, WorkflowView } from "./json_types.ts";
import { type Mode, MODES, modeOf } from "./modes.ts";
import type { Person } from "./person.ts";
import * as words from "./words.ts";

const NONE = "0. none of them: start without one";
/** How long a listing serves completion. */
const LISTING_MS = 3_000;

export class Commands {
	readonly #person: Person;
	readonly #attachment: Attachment;
	readonly #flow: Flow;
	/** Where Pi is; completion is not told. */
	here: ExtensionContext | undefined;
	#listing: { mode: Mode; at: number; rows: WorkflowRow[] } | undefined;

	constructor(person: Person, attachment: Attachment, flow: Flow) {
		this.#person = person;
		this.#attachment = attachment;
		this.#flow = flow;
	}

	register(pi: ExtensionAPI): void {
		for (const mode of MODES) {
			pi.registerCommand(`kapi-${mode.name}`, {
				description: mode.description,
				getArgumentCompletions: (prefix) => this.#complete(mode, prefix),
				handler: (text, ctx) => this.#run(ctx, () => this.#mode(ctx, mode, text)),
			});
		}
		pi.registerCommand("kapi-status", {
			description: "Kapi: show everything in this project, or one workflow",
			handler: (text, ctx) => this.#run(ctx, () => this.#show(ctx, ["status", ...split(text)])),
		});
		pi.registerCommand("kapi-clear", {
			description: "Kapi: detach this session from its workflow",
			handler: (_text, ctx) => this.#run(ctx, () => this.#clear(ctx)),
		});
		pi.registerCommand("kapi-inbox", {
			description: "Kapi: show what is waiting for you",
			handler: (_text, ctx) => this.#run(ctx, () => this.#inbox(ctx)),
		});
	}

	async #run(ctx: ExtensionContext, command: () => Promise<void>): Promise<void> {
		const ran = command().catch((error: unknown) => this.#person.fail(ctx, error));
		if (!ctx.hasUI) await ran;
	}

	async #mode(ctx: ExtensionContext, mode: Mode, text: string): Promise<void> {
		const typed = read(text);
		if (typed.verb === "start") return this.#start(ctx, mode, typed.purpose, typed.options);
		if (typed.verb === "status") return this.#show(ctx, [mode.name, "status", ...typed.words]);
		const given = typed.words.length > 0 ? typed.words : await this.#which(ctx, mode, typed.verb);
		if (!given) return;
		if (typed.verb === "resume") return this.#resume(ctx, mode, given);
		const [reference = "", ...options] = given;
		if (options.length === 0) return this.#flow.decide(ctx, mode, reference);
		// Said outright, by hash or by option: that is a decision, and no dialog is needed.
		const view = await ask<WorkflowView>(place(ctx), [mode.name, "approve", ...given]);
		this.#person.tell(ctx, words.workflow(view));
		await this.#attachment.refresh(ctx);
	}

	async #start(ctx: ExtensionContext, mode: Mode, said: string, options: string[]): Promise<void> {
		let purpose = said;
		if (purpose === "" && options.length === 0) {
			purpose = (await this.#person.text(ctx, mode.asks))?.trim() ?? "";
			if (purpose === "") return this.#person.tell(ctx, `Nothing was started: /kapi-${mode.name} takes a purpose, status, resume or approve.`, "warning");
		}
		const from = mode.context === "takes" && purpose !== "" ? await this.#context(ctx, mode, purpose, options) : [];
		if (!from) return this.#person.tell(ctx, "Nothing was started.");
		return this.#flow.follow(ctx, mode, [mode.name, ...options, ...from, ...(purpose === "" ? [] : ["--", purpose])]);
	}

	/** Has the person choose an approved workflow that gives a fitting context; undefined where they leave it. */
	async #context(ctx: ExtensionContext, mode: Mode, purpose: string, options: string[]): Promise<string[] | undefined> {
		if (!ctx.hasUI || options.some((option) => /^--(from|unlinked)\b/.test(option))) return [];
		const { candidates } = await ask<CandidatesView>(place(ctx), ["__session", "candidates", mode.name, purpose]);
		if (candidates.length === 0) return [];
		const giver = MODES.find((other) => other.context === "gives")?.noun ?? "workflow";
		const rows = candidates.map((candidate, at) =>
			words.line(`${at + 1}. ${giver} ${candidate.id}: ${candidate.purpose} (${candidate.score} % of the words: ${candidate.shared.join(", ")})`, 160),
		);
		const chosen = await this.#person.choose(ctx, `Which approved ${giver} should it build on?`, [...rows, NONE]);
		if (chosen === undefined) return undefined;
		const candidate = candidates[rows.indexOf(chosen)];
		return candidate ? [`--from=${candidate.index}`] : ["--unlinked"];
	}

	async #resume(ctx: ExtensionContext, mode: Mode, given: string[]): Promise<void> {
		if (!given.includes("--no-drive")) return this.#flow.follow(ctx, mode, [mode.name, "resume", ...given]);
		const view = await ask<WorkflowView>(place(ctx), [mode.name, "resume", ...given]);
		this.#person.tell(ctx, words.workflow(view));
		await this.#attachment.refresh(ctx);
	}

	/** Asks which workflow is meant, where none was named. */
	async #which(ctx: ExtensionContext, mode: Mode, verb: Verb): Promise<string[] | undefined> {
		const listing = await ask<WorkflowStatusView>(place(ctx), [mode.name, "status"]);
		const rows = listing.workflows.filter((row) => (verb === "approve" ? row.pending !== null : row.status === "active" || row.status === "blocked"));
		if (rows.length === 0) {
			this.#person.tell(ctx, `There is no ${mode.name} here to ${verb}.`, "warning");
			return undefined;
		}
		const options = rows.map((row) => words.line(`${row.id}: ${row.purpose}`));
		const chosen = await this.#person.choose(ctx, `Which ${mode.name} to ${verb}?`, options);
		const row = chosen === undefined ? undefined : rows[options.indexOf(chosen)];
		return row ? [row.id] : undefined;
	}

	/** Shows what a command prints. */
	async #show(ctx: ExtensionContext, args: string[]): Promise<void> {
		this.#person.tell(ctx, words.shown(await printed(place(ctx), args)));
	}

	async #clear(ctx: ExtensionContext): Promise<void> {
		const said = await printed(place(ctx), ["clear"]);
		await this.#attachment.refresh(ctx);
		this.#person.tell(ctx, words.shown(said));
	}

	async #inbox(ctx: ExtensionContext): Promise<void> {
		const { items } = await ask<InboxView>(place(ctx), ["inbox"]);
		if (items.length === 0) return this.#person.tell(ctx, "Nothing is waiting for you here.");
		if (!ctx.hasUI) return this.#person.tell(ctx, items.map(words.inboxItem).join("\n"));
		const options = items.map((item, at) => words.waiting(at + 1, item));
		const chosen = await this.#person.choose(ctx, "Waiting for you, oldest first", options);
		const item = chosen === undefined ? undefined : items[options.indexOf(chosen)];
		if (!item) return;
		const [name = "", reference = ""] = item.subject.split(" ");
		const mode = modeOf(name);
		// What is held up is shown, with what there is to mend; a decision and a question are put to the person.
		if (!mode || item.kind.startsWith("workflow_")) return this.#person.tell(ctx, words.inboxItem(item));
		if (item.yes?.startsWith(`kapi ${mode.name} approve `)) return this.#flow.decide(ctx, mode, reference);
		return this.#flow.follow(ctx, mode, [mode.name, "resume", reference]);
	}

	/** What can follow; never what stands there in full already, since Enter would take that up instead of sending the line. */
	async #complete(mode: Mode, prefix: string): Promise<AutocompleteItem[] | null> {
		const items = (await this.#candidates(mode, prefix)).filter((item) => item.value.startsWith(prefix) && item.value !== prefix);
		return items.length > 0 ? items : null;
	}

	async #candidates(mode: Mode, prefix: string): Promise<AutocompleteItem[]> {
		const verb = /^(resume|approve)\s+/.exec(prefix);
		if (verb) return (await this.#rows(mode)).map((row) => ({ value: `${verb[0]}${row.id}`, label: row.id, description: words.line(row.purpose) }));
		return prefix === "" ? [] : ["status", "resume ", "approve "].map((word) => ({ value: word, label: word.trim() }));
	}

	async #rows(mode: Mode): Promise<WorkflowRow[]> {
		if (!this.here || this.#person.isGone) return [];
		if (this.#listing?.mode !== mode || Date.now() - this.#listing.at > LISTING_MS) {
			const listing = await ask<WorkflowStatusView>(place(this.here), [mode.name, "status"]).catch(() => ({ workflows: [] }));
			this.#listing = { mode, at: Date.now(), rows: listing.workflows };
		}
		return this.#listing.rows;
	}
}
