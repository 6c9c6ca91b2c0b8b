// One window of a machine at a time: a file says whose turn it is.

import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import * as path from "node:path";

const WRITTEN_WITHIN_MS = 10_000;

/** Runs an action while no other process has the file; throws an `Error` with this sentence where one has it. */
export async function alone(file: string, sentence: string, action: () => Promise<void>): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  if (!(await take(file))) {
    if (await isHeld(file)) throw new Error(sentence);
    await rm(file, { force: true }); // of a process that ended before it could
    if (!(await take(file))) throw new Error(sentence);
  }
  try {
    await action();
  } finally {
    await rm(file, { force: true });
  }
}

/** True where the file was not there, and is ours now. */
async function take(file: string): Promise<boolean> {
  try {
    await writeFile(file, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Whether the process that made the file is still there. */
async function isHeld(file: string): Promise<boolean> {
  try {
    const pid = Number(await readFile(file, "utf8"));
    // A file without a process's number is one that is just being written, or was left so.
    if (!(pid > 0)) return Date.now() - (await stat(file)).mtimeMs < WRITTEN_WITHIN_MS;
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"; // there, but another user's
  }
}
