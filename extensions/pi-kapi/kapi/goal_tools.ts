// Tools of Kapi's for the model, in two groups: those by which it speaks of its goal, active as the core
// says, and those of the kernel, which the person enables. Names, texts and schemas are the core's.
//
// A group is registered when its first tool becomes active.

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { ToolText } from "./rpc_types.ts";

export class CoreTools {
	readonly #pi: ExtensionAPI;
	readonly #call: (tool: string, input: unknown) => Promise<string>;
	#texts: ToolText[] = [];
	#names = new Set<string>();
	#active = "";

	constructor(pi: ExtensionAPI, call: (tool: string, input: unknown) => Promise<string>) {
		this.#pi = pi;
		this.#call = call;
	}

	/** The names of the group. */
	get names(): string[] {
		return [...this.#names];
	}

	/** Takes note of the tools that there are. */
	learn(tools: ToolText[]): void {
		if (this.#names.size > 0) return;
		this.#names = new Set(tools.map((tool) => tool.name));
		this.#texts = tools;
	}

	/** Makes these tools active, and no other of the group. */
	activate(names: string[]): void {
		if (names.join() === this.#active) return;
		this.#active = names.join();
		for (const tool of this.#texts.splice(0)) this.#register(tool);
		const others = this.#pi.getActiveTools().filter((name) => !this.#names.has(name));
		this.#pi.setActiveTools([...others, ...names]);
	}

	#register(tool: ToolText): void {
		this.#pi.registerTool({
			name: tool.name,
			label: tool.name.replaceAll("_", " "),
			description: tool.description,
			parameters: tool.parameters as { type: "object" },
			executionMode: "sequential",
			execute: async (_id, params) => ({ content: [{ type: "text" as const, text: await this.#call(tool.name, params) }], details: undefined }),
		});
	}
}
