// A language client without a server: it starts, dies and ends as the test says.

export const CloseAction = { DoNotRestart: 1 };
export const ErrorAction = { Continue: 1 };
export const MessageType = { Error: 1, Warning: 2 };
export const ShowMessageNotification = { type: "window/showMessage" };

export const starts = { behave: (): Promise<void> => Promise.resolve(), clients: [] as LanguageClient[] };

interface Options {
  readonly errorHandler: { closed(): unknown };
}

export class LanguageClient {
  private isUp = false;

  constructor(_id: string, _name: string, _server: unknown, private readonly options: Options) {
    starts.clients.push(this);
  }

  onNotification(): void {
    // nothing comes
  }

  isRunning(): boolean {
    return this.isUp;
  }

  async start(): Promise<void> {
    await starts.behave();
    this.isUp = true;
  }

  dispose(): Promise<void> {
    if (!this.isUp) return Promise.reject(new Error("It is not running and can't be stopped."));
    this.isUp = false;
    return Promise.resolve();
  }

  sendRequest(): Promise<never> {
    return Promise.reject(new Error("The connection is closed."));
  }

  sendNotification(): Promise<never> {
    return Promise.reject(new Error("The connection is closed."));
  }

  /** As when the server's process dies. */
  die(): void {
    this.isUp = false;
    this.options.errorHandler.closed();
  }
}
