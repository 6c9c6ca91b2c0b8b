// When the server is started again: after a crash, but not for ever; at the user's word, but once at a time.

const N_CRASHES = 4;
const WITHIN_MS = 3 * 60_000;

/** Counts crashes. */
export class Crashes {
  private at: number[] = [];

  /** One more; true where the server should be started again. */
  mayRestart(nowMs: number): boolean {
    this.at = [...this.at.filter((then) => nowMs - then < WITHIN_MS), nowMs];
    return this.at.length < N_CRASHES;
  }

  forget(): void {
    this.at = [];
  }
}

/** Runs an action once at a time. While it runs, one more may wait; whoever comes later joins that one. */
export class OneAtATime {
  private running: Promise<void> | undefined;
  private waiting: Promise<void> | undefined;

  constructor(private readonly action: () => Promise<void>) {}

  run(): Promise<void> {
    if (!this.running) {
      this.running = this.action().finally(() => (this.running = undefined));
      return this.running;
    }
    this.waiting ??= this.running
      .catch(() => undefined)
      .then(() => {
        this.waiting = undefined;
        return this.run();
      });
    return this.waiting;
  }
}

/** What the promise comes to, or a rejection once the time is over; the work itself is not ended by that. */
export async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`It took longer than ${limitMs / 1000} s.`)), limitMs);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
