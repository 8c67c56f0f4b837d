// The goal of this session: what Pi's hooks tell the core, and what the core has shown, asked and sent.
//
// Nothing is decided here. Without a goal there is no child and no tool; when the child of a goal has
// gone, no tool runs until it is started again.

import { basename } from "node:path";
import type { AgentEndEvent, ExtensionAPI, ExtensionContext, ToolCallEvent } from "@earendil-works/pi-coding-agent";
import { place } from "./attachment.ts";
import { KapiError } from "./binary.ts";
import { ENTRY, goalOf } from "./goal_place.ts";
import { CoreTools } from "./goal_tools.ts";
import { HostModels } from "./models.ts";
import type { Person } from "./person.ts";
import { Rpc } from "./rpc.ts";
import { RPC_VERSION, type CompactionReply, type DialogView, type HostGreeting, type PersonReply, type RpcNotice, type RunPrompt, type SessionGoalView, type ToolPermission, type ToolReply } from "./rpc_types.ts";
import { harmless, line } from "./words.ts";

/** The message that holds what a compaction would lose. */
const ANCHOR = "kapi-goal-anchor";
const KEY = "until-done";
/** How often it is looked whether Pi is idle. */
const IDLE_MS = 20;

type Level = "info" | "warning" | "error";

export class SessionGoal {
	readonly #pi: ExtensionAPI;
	readonly #person: Person;
	readonly #tools: CoreTools;
	readonly #kernel: CoreTools;
	readonly #models = new HostModels();
	#hasKernel = false;
	#rpc: Rpc | undefined;
	#view: SessionGoalView | undefined;
	/** Why nothing answers though there is a goal. */
	#broken: string | undefined;
	#here: ExtensionContext | undefined;
	#isRunning = false;
	#resting: (() => void)[] = [];

	constructor(pi: ExtensionAPI, person: Person) {
		this.#pi = pi;
		this.#person = person;
		const call = (tool: string, input: unknown) => this.#tool(tool, input);
		this.#tools = new CoreTools(pi, call);
		this.#kernel = new CoreTools(pi, call);
	}

	/** Whether the session has a goal that is not over. */
	get isAttached(): boolean {
		return this.#view !== undefined && !this.#view.is_over;
	}

	get view(): SessionGoalView | undefined {
		return this.#view;
	}

	/** Carries out what was typed behind `/until-done`. */
	async slash(ctx: ExtensionContext, text: string): Promise<void> {
		this.#here = ctx;
		const rpc = await this.#open(ctx);
		// The person may have logged in to another provider since.
		await rpc.call("models", this.#models.list(ctx));
		await this.#take(ctx, await rpc.call<PersonReply>("slash", { line: text }));
		// Without anybody at it Pi ends with its command, so the goal is stayed with.
		if (!ctx.hasUI && this.isAttached && this.#view?.is_going_on) await this.#rest();
		if (!this.isAttached) await this.#part(ctx);
	}

	/** Gives the model the tools of the kernel, or takes them away again; tells which. */
	async switchKernel(ctx: ExtensionContext): Promise<boolean> {
		this.#here = ctx;
		if (this.#hasKernel) {
			this.#hasKernel = false;
			this.#kernel.activate([]);
			if (!this.isAttached) await this.#close(ctx);
			return false;
		}
		await this.#open(ctx);
		this.#hasKernel = true;
		this.#kernel.activate(this.#kernel.names);
		return true;
	}

	/** Shows the goal once more. */
	redraw(ctx: ExtensionContext): void {
		if (this.#view) this.#show(ctx, this.#view);
	}

	/** Attaches to the goal that the branch of this session says, or to none. */
	async find(ctx: ExtensionContext): Promise<void> {
		this.#here = ctx;
		const goal = goalOf(ctx);
		if (goal === this.#view?.id) return;
		if (this.#view || this.#rpc) await this.#close(ctx);
		if (goal === undefined) return;
		try {
			await this.#attach(ctx, goal);
		} catch (error) {
			this.#person.fail(ctx, error);
		}
	}

	/** Leaves the goal as it is. */
	async leave(ctx: ExtensionContext): Promise<void> {
		if (this.#view || this.#rpc) await this.#close(ctx);
	}

	/** Takes note of what the person typed to the model. */
	async said(ctx: ExtensionContext, text: string): Promise<void> {
		this.#here = ctx;
		if (this.isAttached) await this.#rpc?.call("said", { text });
	}

	/** Returns the block for the system prompt of a run. */
	async begins(ctx: ExtensionContext): Promise<string | undefined> {
		this.#here = ctx;
		if (!this.isAttached || this.#isRunning) return undefined;
		this.#isRunning = true;
		if (ctx.hasUI && this.#view?.working) ctx.ui.setWorkingMessage(this.#view.working);
		const prompt = await this.#rpc?.call<RunPrompt>("run_started");
		return prompt?.block ?? undefined;
	}

	/** Asks whether a tool may run. */
	async gate(ctx: ExtensionContext, event: ToolCallEvent): Promise<{ block: true; reason: string } | undefined> {
		if (!this.isAttached) return undefined;
		this.#here = ctx;
		try {
			if (!this.#rpc) throw new KapiError(this.#broken ?? "it has ended");
			let permission = await this.#rpc.call<ToolPermission>("tool_call", { tool: event.toolName, input: event.input });
			if (permission.dialog) permission = await this.#answer<ToolPermission>(ctx, permission.dialog);
			return permission.refused ? { block: true, reason: permission.refused } : undefined;
		} catch (error) {
			const why = error instanceof Error ? error.message : String(error);
			return { block: true, reason: `Kapi, which has to decide about tools while a goal is under way, does not answer: ${why}. No tool runs; the user can start it again with /until-done resume.` };
		}
	}

	/** Tells that the model has come to rest. */
	async ended(ctx: ExtensionContext, event: AgentEndEvent): Promise<void> {
		this.#here = ctx;
		if (!this.#isRunning) return;
		const end = readEnd(event);
		// Pi may try again by itself where its provider failed; a run that begins then goes on with this one.
		if (end.outcome === "failed" && ctx.hasUI) void this.#failed(ctx, end).catch((error: unknown) => this.#person.fail(ctx, error));
		else await this.#tellEnd(ctx, end);
	}

	/** Puts what a compaction would lose back into the conversation. */
	async compacted(ctx: ExtensionContext): Promise<void> {
		if (!this.isAttached) return;
		this.#here = ctx;
		const reply = await this.#rpc?.call<CompactionReply>("compacted");
		if (reply?.message) this.#pi.sendMessage({ customType: ANCHOR, content: reply.message, display: false });
	}

	async #failed(ctx: ExtensionContext, end: RunEnded): Promise<void> {
		this.#isRunning = false;
		await idle(ctx);
		if (!this.#isRunning) await this.#tellEnd(ctx, end);
	}

	async #tellEnd(ctx: ExtensionContext, end: RunEnded): Promise<void> {
		this.#isRunning = false;
		if (ctx.hasUI) ctx.ui.setWorkingMessage();
		await this.#rpc?.call("run_ended", end);
	}

	async #tool(tool: string, input: unknown): Promise<string> {
		if (!this.#rpc) throw new KapiError(this.#broken ?? "this session has no goal");
		const reply = await this.#rpc.call<ToolReply>("tool", { tool, input });
		if (reply.refused) throw new Error(reply.text);
		return reply.text;
	}

	/** Returns the child, which is started where there is none; a goal that it had is opened again. */
	async #open(ctx: ExtensionContext): Promise<Rpc> {
		if (this.#rpc?.isThere) return this.#rpc;
		const goal = this.isAttached ? this.#view?.id : undefined;
		if (goal !== undefined) {
			await this.#attach(ctx, goal);
			if (this.#rpc) return this.#rpc;
		}
		return this.#start(ctx);
	}

	async #attach(ctx: ExtensionContext, goal: string): Promise<void> {
		const rpc = await this.#start(ctx);
		try {
			await this.#take(ctx, await rpc.call<PersonReply>("open", { goal }));
		} catch (error) {
			await this.#close(ctx);
			throw error;
		}
	}

	async #start(ctx: ExtensionContext): Promise<Rpc> {
		const rpc = new Rpc(place(ctx), {
			onNotice: (notice) => void this.#notice(notice).catch((error: unknown) => this.#fail(error)),
			onTalk: (text) => this.#tell(text, "warning"),
			onGone: (reason) => this.#gone(reason),
		});
		const greeting = await rpc.call<HostGreeting>("hello", { v: RPC_VERSION, ui: ctx.hasUI });
		this.#tools.learn(greeting.tools);
		this.#kernel.learn(greeting.kernel_tools);
		await rpc.call("models", this.#models.list(ctx));
		this.#rpc = rpc;
		this.#broken = undefined;
		return rpc;
	}

	/** Leaves a goal that is over; the child stays for the tools of the kernel alone. */
	async #part(ctx: ExtensionContext): Promise<void> {
		this.#view = undefined;
		this.#broken = undefined;
		this.#isRunning = false;
		this.#tools.activate([]);
		this.#clear(ctx);
		this.#rested();
		if (!this.#hasKernel) await this.#close(ctx);
	}

	async #close(ctx: ExtensionContext): Promise<void> {
		const rpc = this.#rpc;
		this.#rpc = undefined;
		this.#models.leave();
		if (this.#hasKernel) this.#kernel.activate([]);
		this.#hasKernel = false;
		if (this.#view) await this.#part(ctx);
		await rpc?.end();
	}

	#gone(reason: string): void {
		this.#rpc = undefined;
		this.#models.leave();
		this.#rested();
		if (!this.isAttached) return;
		this.#broken = reason;
		this.#tell(`Kapi has gone: ${reason}. No tool runs for goal ${this.#view?.id} until you type /until-done resume.`, "error");
		const ctx = this.#here;
		if (ctx?.hasUI && !this.#person.isGone) ctx.ui.setStatus(KEY, "kapi: gone, /until-done resume starts it again");
	}

	async #notice(notice: RpcNotice): Promise<void> {
		const ctx = this.#here;
		if (!ctx || this.#person.isGone) return;
		if (notice.method === "goal") return this.#hold(ctx, notice.params);
		if (notice.method === "note") return this.#tell(notice.params.text, notice.params.level);
		if (notice.method === "turn") return this.#send(ctx, notice.params.message);
		if (notice.method === "ask_model") {
			await this.#rpc?.call("model_answered", await this.#models.ask(ctx, notice.params));
			return;
		}
		if (notice.method === "withdraw_question") return this.#models.withdraw(notice.params.question);
		if (notice.method === "dialog") {
			// It is shown beside what waits for it, which is over then.
			await idle(ctx);
			return this.#take(ctx, await this.#answer<PersonReply>(ctx, notice.params));
		}
		// The model may still be saying its last words: whoever reads this may type.
		await idle(ctx);
		this.#hold(ctx, notice.params.goal);
		this.#tell(notice.params.text, notice.params.level);
		this.#rested();
		if (!this.isAttached) await this.#part(ctx);
	}

	/** Brings Pi in line with what the core said. */
	async #take(ctx: ExtensionContext, reply: PersonReply): Promise<void> {
		if (reply.goal) this.#hold(ctx, reply.goal);
		if (reply.text) this.#tell(reply.text, reply.level);
		if (reply.message) await this.#send(ctx, reply.message);
		if (reply.dialog) await this.#take(ctx, await this.#answer<PersonReply>(ctx, reply.dialog));
	}

	#hold(ctx: ExtensionContext, view: SessionGoalView): void {
		const before = this.#view?.id;
		this.#view = view;
		if (view.is_over && before !== undefined) this.#pi.appendEntry(ENTRY, { goal: null });
		else if (!view.is_over && goalOf(ctx) !== view.id) this.#pi.appendEntry(ENTRY, { goal: view.id });
		this.#tools.activate(view.tools);
		this.#show(ctx, view);
	}

	/** Puts something to the person, and returns what the core makes of their answer. */
	async #answer<Result>(ctx: ExtensionContext, dialog: DialogView): Promise<Result> {
		const choice = await this.#ask(ctx, dialog);
		if (!this.#rpc) throw new KapiError(this.#broken ?? "kapi rpc has ended");
		return this.#rpc.call<Result>("answer", { dialog: dialog.id, choice });
	}

	async #ask(ctx: ExtensionContext, dialog: DialogView): Promise<number | null> {
		const { title, options } = dialog;
		const [message, timeout] = [harmless(dialog.message), dialog.timeout_ms ?? undefined];
		if (options.join() === "yes,no") return (await this.#person.confirm(ctx, title, message, timeout)) === true ? 0 : null;
		const chosen = await this.#person.choose(ctx, message === "" ? title : `${title}\n${message}`, options, timeout);
		return chosen === undefined ? null : options.indexOf(chosen);
	}

	/** Sends the model what begins its turn, as soon as it is idle and unless it has begun another. */
	async #send(ctx: ExtensionContext, message: string): Promise<void> {
		await idle(ctx);
		if (this.#person.isGone || this.#isRunning) return;
		this.#pi.sendUserMessage(message);
	}

	#show(ctx: ExtensionContext, view: SessionGoalView): void {
		if (!ctx.hasUI || this.#person.isGone) return;
		if (view.is_over) return this.#clear(ctx);
		ctx.ui.setStatus(KEY, line(view.line));
		ctx.ui.setWidget(KEY, view.widget.length > 0 ? view.widget.map((text) => line(text)) : undefined);
		if (view.title) ctx.ui.setTitle(harmless(view.title));
	}

	#clear(ctx: ExtensionContext): void {
		if (!ctx.hasUI || this.#person.isGone) return;
		ctx.ui.setStatus(KEY, undefined);
		ctx.ui.setWidget(KEY, undefined);
		ctx.ui.setTitle(["π", this.#pi.getSessionName(), basename(ctx.cwd)].filter(Boolean).join(" - "));
		ctx.ui.setWorkingMessage();
	}

	#tell(text: string, level: Level): void {
		if (this.#here) this.#person.tell(this.#here, harmless(text), level);
	}

	#fail(error: unknown): void {
		if (this.#here) this.#person.fail(this.#here, error);
	}

	#rest(): Promise<void> {
		return new Promise((resolve) => this.#resting.push(resolve));
	}

	#rested(): void {
		for (const resolve of this.#resting.splice(0)) resolve();
	}
}

interface RunEnded {
	outcome: "finished" | "aborted" | "failed";
	message: string;
	input_tokens: number;
	output_tokens: number;
}

/** Reads how a run ended from its messages. */
function readEnd(event: AgentEndEvent): RunEnded {
	const end: RunEnded = { outcome: "finished", message: "", input_tokens: 0, output_tokens: 0 };
	for (const message of event.messages) {
		if (message.role !== "assistant") continue;
		end.input_tokens += message.usage.input + message.usage.cacheRead + message.usage.cacheWrite;
		end.output_tokens += message.usage.output;
		end.outcome = message.stopReason === "aborted" ? "aborted" : message.stopReason === "error" ? "failed" : "finished";
		const texts = message.content.flatMap((part) => (part.type === "text" ? [part.text] : []));
		end.message = message.errorMessage ?? texts.join("\n");
	}
	return end;
}

/** Resolves when Pi's model is idle. */
async function idle(ctx: ExtensionContext): Promise<void> {
	while (!ctx.isIdle()) await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
}
