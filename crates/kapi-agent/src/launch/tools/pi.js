// Registers the tools of the goal that this run belongs to. Written by Kapi at every launch.
// What the tools are and what they do is asked of Kapi's own program; this only passes on.
import { execFile, execFileSync } from "node:child_process";

const kapi = "{{kapi}}";
const options = {
  env: { ...process.env, ...kapi.env },
  timeout: kapi.timeout,
  maxBuffer: 16 * 1024 * 1024,
};

// Refusals come back with exit code 1 and the same one line on standard output.
function call(verb, params, signal) {
  return new Promise((resolve, reject) => {
    const child = execFile(kapi.program, ["agent", verb], { ...options, signal }, (error, stdout) => {
      const answer = stdout.trim();
      if (answer === "") reject(error ?? new Error("the tool gave no answer"));
      else if (error) reject(new Error(answer));
      else resolve(answer);
    });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(params ?? {}));
  });
}

export default function (pi) {
  const listing = execFileSync(kapi.program, ["agent", "schema"], options);
  for (const tool of JSON.parse(listing).tools) {
    pi.registerTool({
      name: tool.name,
      label: tool.name,
      description: tool.description,
      parameters: tool.inputSchema,
      async execute(_id, params, signal) {
        const answer = await call(tool.verb, params, signal);
        return { content: [{ type: "text", text: answer }], details: JSON.parse(answer) };
      },
    });
  }
}
