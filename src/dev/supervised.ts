import { setTimeout as pause } from 'node:timers/promises';

/** A process that has been started: a server on a leash, or a child of ours. */
export interface Running {
  readonly pid: number;
  /** Resolves when it is gone, however it ended. */
  readonly exited: Promise<void>;
  /** Asks it to end, makes it after `graceMs`; resolves when it is gone. */
  stop(graceMs?: number): Promise<void>;
}

export interface SupervisedOptions<R extends Running> {
  readonly name: string;
  /** Tells `spawned` as soon as there is a process, resolves when it does its work, rejects when it does not come to that. */
  readonly start: (spawned: (running: Running) => void) => Promise<R>;
  readonly say: (text: string) => void;
  /** Called when a process was started or is ready. */
  readonly changed?: () => void;
  /** It has servers of its own to end: a stop that meets it between two processes waits for the next one. */
  readonly hasServers?: boolean;
}

const firstAttemptsMax = 4;
const startGraceMs = 15_000;
const backOffMs = { first: 250, max: 10_000, forgetAfter: 30_000 };

/** Keeps one process running until it is stopped: what dies is started again, at once and then ever more slowly. */
export class Supervised<R extends Running> {
  private process: Running | undefined;
  private starting: Promise<unknown> | undefined;
  private watching: Promise<void> | undefined;
  private readonly stopped = new AbortController();

  constructor(private readonly options: SupervisedOptions<R>) {}

  get name(): string {
    return this.options.name;
  }

  /** The process that runs now; undefined between two of them. */
  get pid(): number | undefined {
    return this.process?.pid;
  }

  /** Resolves with the first process that does its work. Errors: it failed to come up several times in a row. */
  async start(): Promise<R> {
    const first = this.attempt(firstAttemptsMax);
    this.starting = first.catch(() => undefined);
    const running = await first;
    this.watching = this.watch(running);
    return running;
  }

  /** Ends the process and the watch over it; also in the middle of a start. */
  async stop(graceMs?: number): Promise<void> {
    if (this.options.hasServers) await Promise.race([this.starting, pause(Math.min(graceMs ?? startGraceMs, startGraceMs), undefined, { ref: false })]);
    this.stopped.abort();
    await this.process?.stop(graceMs);
    await this.starting;
    await this.watching;
  }

  private async watch(first: R): Promise<void> {
    let startedAt = Date.now();
    let quickDeaths = 0;
    for (let running = first; ; startedAt = Date.now()) {
      await running.exited;
      this.process = undefined;
      if (this.stopped.signal.aborted) return;
      quickDeaths = Date.now() - startedAt > backOffMs.forgetAfter ? 0 : quickDeaths + 1;
      this.options.say(`${this.name} ended unexpectedly; it is started again.`);
      const next = this.wait(quickDeaths - 1).then(() => this.attempt(Infinity));
      this.starting = next.catch(() => undefined);
      try {
        running = await next;
      } catch {
        return; // only a stop ends endless attempts
      }
      this.options.say(`${this.name} is back.`);
    }
  }

  private async attempt(max: number): Promise<R> {
    for (let failures = 0; ; ) {
      try {
        this.stopped.signal.throwIfAborted();
        const running = await this.options.start((started) => this.spawned(started));
        this.options.changed?.();
        return running;
      } catch (error) {
        this.process = undefined;
        failures += 1;
        if (this.stopped.signal.aborted || failures >= max) throw error;
        this.options.say(`${error instanceof Error ? error.message : String(error)}; trying again.`);
        await this.wait(failures);
      }
    }
  }

  private spawned(running: Running): void {
    this.process = running;
    if (this.stopped.signal.aborted) void running.stop();
    this.options.changed?.();
  }

  private async wait(failures: number): Promise<void> {
    if (failures <= 0) return;
    const ms = Math.min(backOffMs.first * 2 ** (failures - 1), backOffMs.max);
    await pause(ms, undefined, { signal: this.stopped.signal }).catch(() => undefined);
  }
}
