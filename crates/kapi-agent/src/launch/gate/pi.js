// Asks Kapi's own program before each tool of this run. Written by Kapi at every launch.
// Whatever goes wrong here, the tool does not run.
import { execFile } from "node:child_process";

const gate = "{{gate}}";

function ask(question) {
  return new Promise((resolve) => {
    const [program, ...words] = gate.words;
    const options = { timeout: gate.timeout, maxBuffer: 1024 * 1024 };
    const child = execFile(program, words, options, (error, _stdout, stderr) => {
      if (error) resolve({ block: true, reason: stderr.trim() || `no answer: ${error.message}` });
      else resolve(undefined);
    });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(question));
  });
}

export default function (pi) {
  pi.on("tool_call", async (event) => {
    try {
      return await ask({ tool_name: event.toolName, tool_input: event.input ?? {} });
    } catch (error) {
      return { block: true, reason: `no answer: ${error.message}` };
    }
  });
}
