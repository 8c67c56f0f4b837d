import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
// Prints how many tokens each of some files is, in the vocabulary o200k.
const [home, ...files] = process.argv.slice(2);
const { encode } = createRequire(join(home, "index.js"))("gpt-tokenizer/encoding/o200k_base");
for (const file of files) console.log(encode(readFileSync(file, "utf8")).length);
