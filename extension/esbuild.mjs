// Bundles the extension, or with --tests each test, into dist/.

import { readdirSync } from "node:fs";
import { build } from "esbuild";

const isTests = process.argv.includes("--tests");
// Tests run without an editor: what they touch of it is stubbed.
const stubs = { vscode: "./test/stubs/vscode.ts", "vscode-languageclient/node": "./test/stubs/client.ts" };
const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));

await build({
  entryPoints: isTests ? tests.map((name) => `test/${name}`) : ["src/extension.ts"],
  outdir: isTests ? "dist/test" : "dist",
  bundle: true,
  minify: !isTests,
  platform: "node",
  format: "cjs",
  target: "node20",
  ...(isTests ? { alias: stubs } : { external: ["vscode"] }),
  logLevel: "warning",
});
