// The one `kapi rpc` child of a session: requests, answers and notices, a line each.
//
// Knows the protocol and nothing of what it is about. When the child has gone, every request fails.

import type { ChildProcess } from "node:child_process";
import { eachLine, KapiError, notStarted, open, type Place } from "./binary.ts";
import type { RpcNotice } from "./rpc_types.ts";

/** The longest that an answer is waited for: a contract's judge may have to be asked first. */
const ANSWER_MS = 60_000;
/** The longest that a line of the person's is carried out: thousands of files may be taken where a goal begins. */
const SLASH_MS = 600_000;
/** The longest that the child is waited for when it is told to end. */
const END_MS = 5_000;
/** What begins a line on standard error that a person should see. */
const TALK = /^(note|error|hint): /;

/** What is heard of the child. */
export interface RpcEars {
	onNotice(notice: RpcNotice): void;
	onTalk(text: string): void;
	/** It has gone without having been told to. */
	onGone(reason: string): void;
}

interface Waiting {
	resolve(result: unknown): void;
	reject(error: Error): void;
	timer: NodeJS.Timeout;
}

export class Rpc {
	readonly #child: ChildProcess;
	readonly #waiting = new Map<number, Waiting>();
	readonly #closed: Promise<void>;
	#next = 1;
	#gone: string | undefined;
	#isEnding = false;

	constructor(place: Place, ears: RpcEars) {
		const child = open(place, ["rpc"]);
		this.#child = child;
		const go = (reason: string) => {
			if (this.#gone !== undefined) return;
			this.#gone = reason;
			for (const { reject, timer } of this.#waiting.values()) {
				clearTimeout(timer);
				reject(new KapiError(reason));
			}
			this.#waiting.clear();
			if (!this.#isEnding) ears.onGone(reason);
		};
		child.on("error", (error) => go(notStarted(error).message));
		// What is written to a child that has gone is lost, and its end is heard below.
		child.stdin?.on("error", () => undefined);
		eachLine(child.stdout, (line) => this.#hear(line, ears));
		eachLine(child.stderr, (line) => {
			if (TALK.test(line)) ears.onTalk(line.replace(TALK, ""));
		});
		this.#closed = new Promise((resolve) => {
			child.on("close", (code, signal) => {
				go(`kapi rpc ended (${signal ?? `exit code ${code}`})`);
				resolve();
			});
		});
	}

	/** Whether requests are answered. */
	get isThere(): boolean {
		return this.#gone === undefined && !this.#isEnding;
	}

	/** The child's process. */
	get pid(): number | undefined {
		return this.#child.pid;
	}

	/** Asks for something. */
	call<Result>(method: string, params?: object): Promise<Result> {
		return new Promise<Result>((resolve, reject) => {
			if (this.#gone !== undefined) return reject(new KapiError(this.#gone));
			const id = this.#next++;
			const most = method === "slash" ? SLASH_MS : ANSWER_MS;
			const timer = setTimeout(() => {
				this.#waiting.delete(id);
				reject(new KapiError(`kapi rpc did not answer ${method} within ${most / 1000} s`));
			}, most);
			this.#waiting.set(id, { resolve: (result) => resolve(result as Result), reject, timer });
			this.#child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, ...(params ? { params } : {}) }, whole)}\n`);
		});
	}

	/** Hangs up; the goal stays as it is. */
	async end(): Promise<void> {
		this.#isEnding = true;
		this.#child.stdin?.end();
		const timer = setTimeout(() => this.#child.kill("SIGKILL"), END_MS);
		await this.#closed;
		clearTimeout(timer);
	}

	#hear(line: string, ears: RpcEars): void {
		let message: { id?: number; result?: unknown; error?: { code: number; message: string } };
		try {
			message = JSON.parse(line);
		} catch {
			return;
		}
		if (message.id === undefined) return ears.onNotice(message as unknown as RpcNotice);
		const waiting = this.#waiting.get(message.id);
		if (!waiting) return;
		this.#waiting.delete(message.id);
		clearTimeout(waiting.timer);
		if (message.error) waiting.reject(new KapiError(message.error.message, message.error.code));
		else waiting.resolve(message.result);
	}
}

/** Puts a mark in the place of half a character: models write them, and the core reads no JSON with one. */
function whole(_key: string, value: unknown): unknown {
	return typeof value === "string" ? value.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd") : value;
}
