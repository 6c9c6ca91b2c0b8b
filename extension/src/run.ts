// Runs a program and gathers what it prints.

import { type ChildProcess, spawn } from "node:child_process";

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** Called with each line of standard output and standard error as it comes. */
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
    let child: ChildProcess;
    try {
      child = spawn(command, args, {
        cwd: options.cwd,
        env: options.env ?? process.env,
        signal: options.signal,
        timeout: options.timeoutMs,
        stdio: ["ignore", "pipe", "pipe"],
      });
    } catch (error) {
      // Some reasons are raised rather than told: a path below a file, or a name that is no text.
      resolve({ status: -1, stdout: "", stderr: error instanceof Error ? error.message : String(error) });
      return;
    }
    let trouble = "";
    child.on("error", (error) => (trouble = error.message));
    const { stdout: out, stderr: err } = child;
    if (!out || !err) {
      child.once("error", (error) => resolve({ status: -1, stdout: "", stderr: error.message }));
      return;
    }
    const stdout = gather(out, options.onLine);
    const stderr = gather(err, options.onLine);
    child.on("exit", (_status, signal) => {
      if (!signal) return;
      // What a program that was ended had started itself may hold its output open, for as long as it likes.
      out.destroy();
      err.destroy();
    });
    child.on("close", (status) =>
      resolve({ status: trouble ? -1 : (status ?? -1), stdout: stdout(), stderr: stderr() + trouble }),
    );
  });
}

/** The environment for a Python of ours. What the user's shell says of Python is about other projects. */
export function environmentFor(
  added: Readonly<Record<string, string>> = {},
  inherited: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv {
  // Windows takes a name however it is written.
  const kept = Object.entries(inherited).filter(([name]) => !/^PYTHON(PATH|HOME)$/i.test(name));
  return { ...Object.fromEntries(kept), ...added };
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
