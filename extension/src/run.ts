// Runs a program and gathers what it prints.

import { spawn } from "node:child_process";

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** Called with each line of standard error and, where `quiet` is not said, of standard output, as it comes. */
  readonly onLine?: (line: string) => void;
}

export interface Ran {
  /** The exit status; -1 where the program could not be started or was ended. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Never raises: what can't be started has status -1 and says why on `stderr`. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      signal: options.signal,
      timeout: options.timeoutMs,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const stdout = gather(child.stdout, options.onLine);
    const stderr = gather(child.stderr, options.onLine);
    let trouble = "";
    child.on("error", (error) => (trouble = error.message));
    child.on("close", (status) =>
      resolve({ status: trouble ? -1 : (status ?? -1), stdout: stdout(), stderr: stderr() + trouble }),
    );
  });
}

function gather(stream: NodeJS.ReadableStream, onLine?: (line: string) => void): () => string {
  let text = "";
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (piece: string) => {
    text += piece;
    const lines = (rest + piece).split(/[\r\n]+/);
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim()) onLine?.(line);
  });
  stream.on("end", () => {
    if (rest.trim()) onLine?.(rest);
  });
  return () => text;
}
