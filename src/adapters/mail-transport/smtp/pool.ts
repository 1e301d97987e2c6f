import type { SmtpSession } from './session';
import { SmtpFault } from './line';

export interface PoolOptions {
  /** Connections per key. */
  readonly max: number;
  readonly mailsMax: number;
  readonly idleMs: number;
}

type Waiter = { give: (session: SmtpSession | null) => void };
type Group = { open: number; idle: { session: SmtpSession; timer: NodeJS.Timeout }[]; waiting: Waiter[] };

/** Sessions kept for the next mail to the same place: at most `max` per key at once, each for at most `mailsMax` mails. */
export class SessionPool {
  private readonly groups = new Map<string, Group>();

  constructor(private readonly options: PoolOptions) {}

  /** Runs `work` with a session that nobody else has. `open` makes one when none is free; its error is the caller's. */
  async use<T>(key: string, open: () => Promise<SmtpSession>, signal: AbortSignal, work: (session: SmtpSession, reused: boolean) => Promise<T>): Promise<T> {
    const group = this.group(key);
    const kept = await this.acquire(group, signal);
    let session = kept;
    try {
      session ??= await open();
      return await work(session, kept !== null);
    } finally {
      this.release(key, group, session);
    }
  }

  close(): void {
    for (const { idle } of this.groups.values()) for (const { session, timer } of idle.splice(0)) {
      clearTimeout(timer);
      session.close();
    }
    this.groups.clear();
  }

  private group(key: string): Group {
    const found = this.groups.get(key);
    if (found) return found;
    const made: Group = { open: 0, idle: [], waiting: [] };
    this.groups.set(key, made);
    return made;
  }

  /** A session, or null: leave to open one. Its place is counted from now on. */
  private async acquire(group: Group, signal: AbortSignal): Promise<SmtpSession | null> {
    for (let kept = group.idle.pop(); kept; kept = group.idle.pop()) {
      clearTimeout(kept.timer);
      if (kept.session.usable) return kept.session;
      group.open -= 1;
    }
    if (group.open < this.options.max) {
      group.open += 1;
      return null;
    }
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { give: (session) => {
        signal.removeEventListener('abort', abort);
        resolve(session);
      } };
      const abort = () => {
        group.waiting.splice(group.waiting.indexOf(waiter), 1);
        reject(new SmtpFault('connect', null, 'no connection became free in time'));
      };
      if (signal.aborted) return reject(new SmtpFault('connect', null, 'no connection became free in time'));
      signal.addEventListener('abort', abort, { once: true });
      group.waiting.push(waiter);
    });
  }

  private release(key: string, group: Group, session: SmtpSession | null): void {
    const keep = session !== null && session.usable && session.mails < this.options.mailsMax ? session : null;
    if (!keep) session?.close();
    const next = group.waiting.shift();
    if (next) return next.give(keep);
    if (keep && this.groups.get(key) === group) {
      const timer = setTimeout(() => this.drop(key, group, keep), this.options.idleMs);
      timer.unref();
      group.idle.push({ session: keep, timer });
      return;
    }
    keep?.close();
    group.open -= 1;
    if (group.open === 0) this.groups.delete(key);
  }

  private drop(key: string, group: Group, session: SmtpSession): void {
    const at = group.idle.findIndex((kept) => kept.session === session);
    if (at < 0) return;
    group.idle.splice(at, 1);
    session.close();
    group.open -= 1;
    if (group.open === 0) this.groups.delete(key);
  }
}
