import type { Log } from '../../core/log';
import type { ApplyOutcome, ZoneChangeSet, ZoneFeed } from '../../dns/ports';
import { startDnsServer, type DnsServerOptions } from './server';
import { isDnsMessage, type FromWorker, type ToWorker } from './worker-messages';

const countsMs = 1_000;

/** Zones as the process that follows the database sends them. */
class ParentFeed implements ZoneFeed {
  private closing: (() => void) | null = null;

  /** Resolves when asked to end. */
  readonly closed = new Promise<void>((resolve) => {
    this.closing = resolve;
  });

  start(apply: (changes: ZoneChangeSet) => ApplyOutcome): Promise<void> {
    return new Promise((loaded) => {
      process.on('message', (message: unknown) => {
        if (!isDnsMessage<ToWorker>(message)) return;
        if (message.dns === 'apply') apply(message.changes);
        else if (message.dns === 'mark') void say({ dns: 'marked', mark: message.mark });
        else if (message.dns === 'loaded') loaded();
        else this.closing?.();
      });
      void say({ dns: 'ready' });
    });
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }
}

export type DnsWorkerOptions = Omit<DnsServerOptions, 'feed' | 'notify' | 'log'> & { /** How many share the work. */ of: number; log: Log };

/**
 * One of the processes of a name server: answers until its parent asks it to end or is gone. Each takes its part of the limits,
 * for questions and connections are spread over all of them.
 */
export async function runDnsWorker({ of, rateLimit, ...options }: DnsWorkerOptions): Promise<void> {
  const feed = new ParentFeed();
  // A signal to the whole group is for the parent to follow, which then ends us in order.
  process.on('SIGTERM', () => undefined).on('SIGINT', () => undefined);
  try {
    const server = await startDnsServer({ ...options, feed, notify: [], rateLimit: { ...rateLimit, perSecond: Math.ceil(rateLimit.perSecond / of) }, connectionShare: of });
    void say({ dns: 'bound', addresses: server.addresses });
    const timer = setInterval(() => tellCounts(server.takeCounts()), countsMs);
    await feed.closed;
    clearInterval(timer);
    await server.close();
    await say({ dns: 'counts', counts: server.takeCounts() });
  } catch (error) {
    await say({ dns: 'failed', message: error instanceof Error ? error.message : String(error) });
  }
  if (process.connected) process.disconnect();
}

function tellCounts(counts: Extract<FromWorker, { dns: 'counts' }>['counts']): void {
  if (counts.length > 0) void say({ dns: 'counts', counts });
}

/** Resolves when it is on its way, or the parent is gone. */
function say(message: FromWorker): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, () => resolve());
    else resolve();
  });
}
