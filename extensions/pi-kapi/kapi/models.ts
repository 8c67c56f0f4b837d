// Models of Pi's that the core asks something, with Pi's registry and its keys, beside the conversation.
//
// Question and answer are passed on as they are: whom to ask and what the answer means is the core's.

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostModelList, ModelAnswer, ModelQuestion } from "./rpc_types.ts";

type Registry = ExtensionContext["modelRegistry"];
type PiModel = NonNullable<ExtensionContext["model"]>;

/** What of Pi's answer is looked at. */
interface Completion {
	content: { type: string; text?: string }[];
	stopReason: string;
	errorMessage?: string;
	usage: { input: number; output: number; cacheRead: number; cacheWrite: number };
}

interface Asked {
	systemPrompt: string;
	messages: { role: "user"; content: string; timestamp: number }[];
}

interface AskOptions {
	maxTokens: number;
	signal: AbortSignal;
	apiKey?: string | undefined;
	headers?: Record<string, string> | undefined;
}

export class HostModels {
	readonly #open = new Map<number, AbortController>();

	/** Returns the models that have a key, and the one that works in the session. */
	list(ctx: ExtensionContext): HostModelList {
		return { names: ctx.modelRegistry.getAvailable().map(nameOf), own: ctx.model ? nameOf(ctx.model) : null };
	}

	/** Asks a model. */
	async ask(ctx: ExtensionContext, question: ModelQuestion): Promise<ModelAnswer> {
		const control = new AbortController();
		this.#open.set(question.id, control);
		const answer: ModelAnswer = { question: question.id, text: null, failure: null, usage: null };
		try {
			const model = ctx.modelRegistry.getAvailable().find((one) => nameOf(one) === question.model);
			if (!model) throw new Error(`Pi has no model ${question.model} with a key`);
			const messages: Asked["messages"] = [{ role: "user", content: question.user, timestamp: Date.now() }];
			const maxTokens = Math.min(question.output_tokens_max, model.maxTokens);
			const options = { maxTokens, signal: control.signal };
			const said = await complete(ctx.modelRegistry, model, { systemPrompt: question.system, messages }, options);
			const { input, output, cacheRead, cacheWrite } = said.usage;
			answer.usage = { input, output, cache_read: cacheRead, cache_write: cacheWrite };
			if (said.stopReason === "stop") answer.text = said.content.flatMap((part) => (part.type === "text" ? [part.text ?? ""] : [])).join("");
			else answer.failure = said.errorMessage ?? `the answer of ${question.model} ended with ${said.stopReason}`;
		} catch (error) {
			answer.failure = error instanceof Error ? error.message : String(error);
		}
		this.#open.delete(question.id);
		return answer;
	}

	/** Ends a question whose answer nobody wants any more. */
	withdraw(question: number): void {
		this.#open.get(question)?.abort();
	}

	/** Ends every question. */
	leave(): void {
		for (const control of this.#open.values()) control.abort();
	}
}

function nameOf(model: PiModel): string {
	return `${model.provider}/${model.id}`;
}

/** Asks once: by Pi's registry where it can, and before that by the library under it with the registry's key. */
async function complete(registry: Registry, model: PiModel, asked: Asked, options: AskOptions): Promise<Completion> {
	const newer = registry as unknown as { streamSimple?(model: PiModel, asked: Asked, options: AskOptions): { result(): Promise<Completion> } };
	if (newer.streamSimple) return newer.streamSimple(model, asked, options).result();
	const auth = await registry.getApiKeyAndHeaders(model);
	if (!auth.ok) throw new Error(auth.error);
	const library = (await import("@earendil-works/pi-ai")) as unknown as { completeSimple(model: PiModel, asked: Asked, options: AskOptions): Promise<Completion> };
	const headers = auth.headers as Record<string, string> | undefined;
	return library.completeSimple(model, asked, { ...options, apiKey: auth.apiKey, headers });
}
