import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, writeFileSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
// The tools of pi-autoresearch as Pi calls them, one experiment after the other: a change, a run of a
// benchmark and of checks that do nothing, and the log of it, which keeps and puts back by turns. Prints
// the milliseconds of both for each experiment, the change apart.
const [modules, extension, rounds] = process.argv.slice(2);
const { createJiti } = await import(pathToFileURL(join(modules, "jiti/lib/jiti.mjs")).href);
const scoped = (n) => join(modules, "@earendil-works", n);
const jiti = createJiti(import.meta.url, { alias: {
  "@earendil-works/pi-coding-agent": join(scoped("pi-coding-agent"), "dist/index.js"),
  "@earendil-works/pi-ai": join(scoped("pi-ai"), "dist/index.js"),
  "@earendil-works/pi-tui": join(scoped("pi-tui"), "dist/index.js"),
  "@sinclair/typebox": join(modules, "typebox/build/index.mjs"),
}});
const tools = new Map();
const exec = (command, args, options = {}) => new Promise((done) => {
  const child = spawn(command, args, { cwd: options.cwd });
  let stdout = "", stderr = "";
  child.stdout.on("data", (d) => stdout += d); child.stderr.on("data", (d) => stderr += d);
  child.on("close", (code) => done({ stdout, stderr, code: code ?? 1, killed: false }));
});
const base = { registerTool: (t) => tools.set(t.name, t), exec, getActiveTools: () => [], on() {} };
const api = new Proxy(base, { get: (o, k) => o[k] ?? (() => undefined) });
const module = await jiti.import(extension);
await (module.default ?? module)(api);
const dir = mkdtempSync(join(tmpdir(), "peer-"));
const git = (...a) => execFileSync("git", a, { cwd: dir });
git("init", "-q"); git("config", "user.email", "a@b"); git("config", "user.name", "a");
mkdirSync(join(dir, ".auto")); writeFileSync(join(dir, ".auto/measure.sh"), "echo METRIC ops=1\n");
writeFileSync(join(dir, ".auto/checks.sh"), "true\n");
writeFileSync(join(dir, "file"), "0\n"); git("add", "-A"); git("commit", "-qm", "base");
const ui = new Proxy({ theme: new Proxy({}, { get: () => (x, y) => y ?? x }) }, { get: (o, k) => o[k] ?? (() => undefined) });
const ctx = { cwd: dir, hasUI: false, ui, isIdle: () => true, abort() {}, sessionManager: { getSessionId: () => "s", getBranch: () => [], getEntries: () => [] } };
const call = (name, params) => tools.get(name).execute("id", params, undefined, undefined, ctx);
await call("init_experiment", { name: "x", metric_name: "ops", direction: "lower" });
const times = [];
for (let n = 1; n <= Number(rounds); n += 1) {
  writeFileSync(join(dir, "file"), `${n}\n`);
  const began = process.hrtime.bigint();
  await call("run_experiment", { command: "bash .auto/measure.sh" });
  const ran = process.hrtime.bigint();
  await call("log_experiment", { commit: "abc", metric: 1, status: n % 2 ? "discard" : "keep", description: `try ${n}`, asi: { hypothesis: "h" } });
  const ended = process.hrtime.bigint();
  times.push(`${Number(ran - began) / 1e6} ${Number(ended - ran) / 1e6}`);
}
const n_kept = git("log", "--oneline").toString().trim().split("\n").length - 1;
if (n_kept !== Math.floor(Number(rounds) / 2)) throw new Error(`${n_kept} experiments were kept`);
console.log(times.join("\n"));
