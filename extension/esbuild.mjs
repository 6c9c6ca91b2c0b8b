// Bundles the extension, or with --tests each test, into dist/.

import { readdirSync } from "node:fs";
import { build } from "esbuild";

const isTests = process.argv.includes("--tests");
const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));

await build({
  entryPoints: isTests ? tests.map((name) => `test/${name}`) : ["src/extension.ts"],
  outdir: isTests ? "dist/test" : "dist",
  bundle: true,
  minify: !isTests,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode"],
  logLevel: "warning",
});
