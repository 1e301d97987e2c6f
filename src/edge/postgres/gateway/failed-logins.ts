import { Refusal } from './refusal';

const failuresMax = 20;
const windowMs = 60_000;

type Caller = { failedAt: number[]; underWay: number; settled: (() => void)[] };

/**
 * Failed logins per service and address: a guesser gets 20 tries a minute (contract postgres.md §6.2), also when he makes
 * them all at once: a login under way may fail, so no more are let begin than there are tries left.
 */
export class FailedLogins {
  private readonly callers = new Map<string, Caller>();

  /** Errors: Refusal 53300. */
  requireFew(serviceId: string, address: string): void {
    this.require(this.recent(`${serviceId} ${address}`));
  }

  /** A try; the answer tells how it ended, and counts once. Errors: Refusal 53300; an Error when the client leaves while it waits. */
  async begin(serviceId: string, address: string, gone: AbortSignal): Promise<(failed: boolean) => void> {
    const key = `${serviceId} ${address}`;
    for (;;) {
      gone.throwIfAborted();
      const caller = this.recent(key);
      this.require(caller);
      if (caller.failedAt.length + caller.underWay < failuresMax) {
        caller.underWay += 1;
        return this.end(caller);
      }
      await new Promise<void>((resolve) => caller.settled.push(resolve));
    }
  }

  /** Forgets what is too old to count. */
  sweep(): void {
    for (const key of this.callers.keys()) {
      const { failedAt, underWay } = this.recent(key);
      if (failedAt.length === 0 && underWay === 0) this.callers.delete(key);
    }
  }

  private end(caller: Caller): (failed: boolean) => void {
    let ended = false;
    return (failed) => {
      if (ended) return;
      ended = true;
      caller.underWay -= 1;
      if (failed) caller.failedAt.push(performance.now());
      for (const wake of caller.settled.splice(0)) wake();
    };
  }

  private require({ failedAt }: Caller): void {
    if (failedAt.length >= failuresMax) throw new Refusal('53300', 'Too many failed logins from this address; try again in a minute.');
  }

  private recent(key: string): Caller {
    const caller = this.callers.get(key) ?? { failedAt: [], underWay: 0, settled: [] };
    this.callers.set(key, caller);
    caller.failedAt = caller.failedAt.filter((time) => time > performance.now() - windowMs);
    return caller;
  }
}
