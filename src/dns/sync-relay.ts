import type { Log } from '../core/log';
import type { Database } from '../db/client';
import type { Listener } from '../db/listen';
import { startWokenLoop } from '../db/woken-loop';
import type { DnsBackend } from './ports';
import { listUntold, markAsked, registerPushBackend } from './store/sync';

/** Wakes the workflow that publishes a zone; deps.ts gives Temporal's, bounded by its deadline. */
export type StartSync = (zoneId: string) => Promise<void>;
type RelayDeps = { db: Database; listener: Listener; log: Log; dnsBackend: DnsBackend; startSync: StartSync };

const batchMax = 50;
const pendingMs = 1_000;
const idleMs = 5_000;

/**
 * With a push backend `version > applied_version` is the outbox: the workflow of a zone is told of each version, heard of by
 * NOTIFY and looked for every second while one is untold. With servers that follow the database there is nothing to tell.
 */
export function startSyncRelay(deps: RelayDeps): { stop(): Promise<void> } {
  let registered = false;
  return startWokenLoop({
    listener: deps.listener, channel: 'dns_zone',
    round: async () => {
      if (!registered) await registerPushBackend(deps.db.prisma, deps.dnsBackend.pushed ? 'push' : null);
      registered = true;
      return deps.dnsBackend.pushed ? tell(deps) : idleMs;
    },
    onFault: (error) => deps.log.warn({ err: error }, 'the relay of zones cannot reach the database'),
  });
}

/** How long to rest: a start that failed is tried again in a second, and no other before it. */
async function tell({ db, log, startSync }: RelayDeps): Promise<number> {
  const untold = await listUntold(db.prisma, batchMax);
  for (const { id, version } of untold) {
    try {
      await startSync(id);
    } catch (error) {
      log.warn({ err: error, zoneId: id }, 'a zone waits for Temporal');
      return pendingMs;
    }
    await markAsked(db.prisma, id, version);
  }
  return untold.length === batchMax ? 0 : untold.length > 0 ? pendingMs : idleMs;
}
