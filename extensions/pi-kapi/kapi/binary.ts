// Starts the `kapi` binary and reads what it prints; knows nothing of what that means.
//
// No shell is between: a word of the person is one argument, whatever is in it. Children act for the
// person (authority.ts) and carry the name of this Pi session.

import { spawn, type ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { personsEnvironment } from "./authority.ts";

/** Bytes that are kept of an answer: the largest artifact that Kapi shows, and room around it. */
const STDOUT_BYTES_MAX = 16 * 1024 * 1024;
/** Characters that are kept of what is said beside it. */
const STDERR_CHARS_MAX = 64 * 1024;
/** What begins a line that is no error and still worth knowing. */
const NOTE = "note: ";
/** The longest that anything but a drive may take. */
const QUESTION_MS = 60_000;

/** Where a child is started, and for which session. */
export interface Place {
	cwd: string;
	session: string;
}

/** How a child ended. */
export interface Ran {
	code: number | null;
	stdout: string;
	stderr: string;
}

/** Something that the binary refused, or that kept it from running; its text is for the person. */
export class KapiError extends Error {
	readonly code: number | null;
	constructor(message: string, code: number | null = null) {
		super(message);
		this.name = "KapiError";
		this.code = code;
	}
}

function program(): string {
	return process.env["KAPI_BIN"] || "kapi";
}

/** How a child is spoken to and speaks. */
interface Manner {
	stdin?: "ignore" | "pipe";
	/** What it prints is for people. */
	isText?: boolean;
}

function start(place: Place, args: readonly string[], { stdin = "ignore", isText = false }: Manner = {}): ChildProcess {
	// Before the command: behind `--` it would be a word of the person.
	const json = isText || args[0] === "__session" ? [] : ["--json"];
	return spawn(program(), [...json, ...args], {
		cwd: place.cwd,
		env: { ...personsEnvironment(), KAPI_SESSION: `pi:${place.session}` },
		stdio: [stdin, "pipe", "pipe"],
	});
}

/** Starts a command that is spoken to. */
export function open(place: Place, args: readonly string[]): ChildProcess {
	return start(place, args, { stdin: "pipe" });
}

/** Says why a child could not be started. */
export function notStarted(error: NodeJS.ErrnoException): KapiError {
	const named = process.env["KAPI_BIN"];
	if (named) return new KapiError(`KAPI_BIN is ${named}, which cannot be started: ${error.message}`);
	if (error.code === "ENOENT") {
		return new KapiError("kapi is not installed here: put it on PATH, or set KAPI_BIN to it.");
	}
	return new KapiError(`kapi cannot be started: ${error.message}`);
}

/** Says what a failed child said, with its hint. */
export function failure(ran: Ran): KapiError {
	const lines = ran.stderr.trim().split("\n");
	const told = lines.findLastIndex((line) => line.startsWith("error: "));
	const text = told < 0 ? lines.slice(-5).join("\n") : lines.slice(told).join("\n").slice("error: ".length);
	if (text.includes("unrecognized subcommand '__session'")) {
		return new KapiError(`${program()} is too old for this package: install a newer kapi.`, ran.code);
	}
	return new KapiError(text || `kapi ended with exit code ${ran.code}`, ran.code);
}

/** Tells whether a line of data is the error that a command ended with. */
function isError(line: string): boolean {
	return line.startsWith('{"type":"error"');
}

/** Runs a command to its end. */
export function run(place: Place, args: readonly string[], manner?: Manner): Promise<Ran> {
	return new Promise((resolve, reject) => {
		const child = start(place, args, manner);
		const timer = setTimeout(() => child.kill("SIGKILL"), QUESTION_MS);
		const stdout: Buffer[] = [];
		let bytes = 0;
		let stderr = "";
		child.stdout?.on("data", (piece: Buffer) => {
			bytes += piece.length;
			if (bytes <= STDOUT_BYTES_MAX) stdout.push(piece);
		});
		child.stderr?.on("data", (piece: Buffer) => {
			stderr = (stderr + piece.toString("utf8")).slice(-STDERR_CHARS_MAX);
		});
		child.on("error", (error) => {
			clearTimeout(timer);
			reject(notStarted(error));
		});
		child.on("close", (code) => {
			clearTimeout(timer);
			resolve({ code, stdout: Buffer.concat(stdout).toString("utf8"), stderr });
		});
	});
}

/** Runs a command and returns what it prints for people, with what it says beside that, whatever it exits with. */
export async function printed(place: Place, args: readonly string[]): Promise<string> {
	const ran = await run(place, args, { isText: true });
	const text = ran.stdout.trimEnd();
	if (text === "") throw failure(ran);
	return [text, ran.stderr.trimEnd()].filter(Boolean).join("\n");
}

/** Runs a command that answers with one document, whatever it exits with. */
export async function ask<Answer>(place: Place, args: readonly string[]): Promise<Answer> {
	const ran = await run(place, args);
	const line = ran.stdout.trim().split("\n").at(-1);
	if (!line || isError(line)) throw failure(ran);
	try {
		return JSON.parse(line) as Answer;
	} catch {
		throw new KapiError(`kapi ${args.join(" ")} printed no JSON: ${line.slice(0, 200)}`, ran.code);
	}
}

/** A child that goes on for as long as there is something to do. */
export interface Stream {
	/** Asks it to stop; what it drives goes on another day. */
	interrupt(): void;
	/** Resolves at its end. */
	readonly ended: Promise<Ran>;
}

/** What is heard of a stream while it runs. */
export interface Ears {
	/** A line of data. */
	onLine(line: string): void;
	/** Something that the person should know. */
	onNote(note: string): void;
}

/** Starts a command that prints a line for whatever happens; its last line alone is kept. */
export function stream(place: Place, args: readonly string[], ears: Ears): Stream {
	const child = start(place, args);
	let last = "";
	let stderr = "";
	const ended = new Promise<Ran>((resolve, reject) => {
		child.on("error", (error) => reject(notStarted(error)));
		eachLine(child.stdout, (line) => {
			if (isError(line)) return;
			last = line;
			ears.onLine(line);
		});
		eachLine(child.stderr, (line) => {
			stderr = `${stderr}${line}\n`.slice(-STDERR_CHARS_MAX);
			if (line.startsWith(NOTE)) ears.onNote(line.slice(NOTE.length));
		});
		child.on("close", (code) => resolve({ code, stdout: last, stderr }));
	});
	return { interrupt: () => void child.kill("SIGINT"), ended };
}

/** Hears a stream line by line. Only a line feed ends one: Node's own reader takes other characters for ends, too. */
export function eachLine(input: Readable | null, onLine: (line: string) => void): void {
	if (!input) return;
	let rest = "";
	input.setEncoding("utf8");
	input.on("data", (piece: string) => {
		const [first = "", ...others] = piece.split("\n");
		rest += first;
		for (const next of others) {
			const line = rest;
			rest = next;
			onLine(line);
		}
	});
	input.on("end", () => {
		if (rest !== "") onLine(rest);
	});
}
