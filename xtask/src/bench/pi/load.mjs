import { join } from "node:path";
import { pathToFileURL } from "node:url";
// Loads an extension as Pi does, in a process of its own, and prints the milliseconds of processor time.
const [modules, extension] = process.argv.slice(2);
const loader = join(modules, "@earendil-works/pi-coding-agent/dist/core/extensions/loader.js");
const { loadExtensions } = await import(pathToFileURL(loader).href);
const before = process.cpuUsage();
const { errors } = await loadExtensions([extension], process.cwd());
const { user, system } = process.cpuUsage(before);
if (errors.length > 0) throw new Error(JSON.stringify(errors));
console.log((user + system) / 1000);
process.exit(0);
