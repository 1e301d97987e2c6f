import { storeUsage } from '../billing/service';
import type { Config } from '../config';
import { systemCause } from '../core/caller';
import type { Database } from '../db/client';
import { inTransaction } from '../db/transaction';
import { appendAudit, tellOwners } from '../identity/service';
import type { Metrics } from './ports';
import { planLimits, storageNoticeShare, storageState } from './rules';
import type { MetricsView } from './schemas';
import type { StorageState } from './state';
import { dropOldHours, markBilled, setStorage, takeClosedHours, type KeptMetrics, type ObservationRow, type Totals } from './store/observations';
import type { ServiceRow } from './store/services';

type StorageDeps = { db: Database; config: Pick<Config, 'ACCOUNT_MAIL'> };
const hoursMax = 500;

/**
 * How full the service is now; a change is audited, and at 90 % its owners are told once, until less than 80 % is used. `former`: what is in force.
 */
export async function judgeStorage(deps: StorageDeps, service: ServiceRow, usedBytes: number, former: StorageState): Promise<StorageState> {
  const limitBytes = planLimits[service.plan].storageBytes;
  const share = usedBytes / limitBytes;
  const state = storageState(usedBytes, limitBytes, former);
  const noticed = share >= storageNoticeShare || (service.storageNoticed && storageState(usedBytes, limitBytes, 'ok') !== 'ok');
  if (state === service.storageState && noticed === service.storageNoticed) return state;
  await inTransaction(deps.db, async (tx) => {
    if (!await setStorage(tx, service, { state, noticed })) return;
    const { id, orgId, projectId, displayName } = service;
    if (noticed && !service.storageNoticed) await tellOwners(tx, deps.config, { orgId, kind: 'postgres_storage', facts: { name: displayName, percent: String(Math.floor(share * 100)) } });
    if (state !== service.storageState) {
      appendAudit(tx, {
        orgId, projectId, cause: systemCause('observePostgres'), outcome: 'done', target: { type: 'postgresService', id },
        changes: [{ field: 'storage.state', from: service.storageState, to: state }, { field: 'storage.usedBytes', from: service.usedBytes, to: usedBytes }],
      });
    }
  });
  return state;
}

/** The largest size of every hour that has ended is stored as use, once. What does not fit into one transaction waits for the next run. */
export async function billClosedHours({ db }: Pick<StorageDeps, 'db'>): Promise<number> {
  const stored = await inTransaction(db, async (tx) => {
    const hours = await takeClosedHours(tx, hoursMax);
    if (hours.length === 0) return 0;
    await storeUsage(tx, hours.map(({ serviceId, orgId, hour, gibHours }) => ({
      source: 'postgres', key: `pgst:${serviceId}:${hour.toISOString().slice(0, 13)}`, metric: 'postgres.storage_gib_hours', orgId, resourceId: serviceId, quantity: gibHours, occurredAt: hour,
    })));
    await markBilled(tx, hours);
    return hours.length;
  });
  await dropOldHours(db.prisma);
  return stored;
}

const nothing: KeptMetrics = { connections: { active: 0, idle: 0, waiting: 0 }, transactionsPerSecond: 0, cacheHitRatio: 0, walBytesPerSecond: 0, oldestTransactionSeconds: 0, blockedSessions: 0 };

/** What is kept of an observation; rates are of the time since the former one, 0 when there is none or the statistics were reset. */
export function metricsOf(seen: Metrics | null, former: ObservationRow | null, now: Date): { metrics: KeptMetrics; totals: Totals | null } {
  if (!seen) return { metrics: nothing, totals: null };
  const { connections: { active, idle, waiting }, oldestTransactionSeconds, blockedSessions, transactions, blocksHit, blocksRead, walBytes } = seen;
  const seconds = former?.totals ? Math.max(1, (now.getTime() - former.measuredAt.getTime()) / 1_000) : null;
  const grown = (key: keyof Totals) => Math.max(0, seen[key] - (former?.totals?.[key] ?? seen[key]));
  const rate = (key: keyof Totals) => (seconds === null ? 0 : round(grown(key) / seconds));
  const [hit, read] = grown('blocksHit') + grown('blocksRead') > 0 ? [grown('blocksHit'), grown('blocksRead')] : [blocksHit, blocksRead];
  return {
    metrics: {
      connections: { active, idle, waiting }, transactionsPerSecond: rate('transactions'), cacheHitRatio: hit + read > 0 ? round(hit / (hit + read)) : 0,
      walBytesPerSecond: rate('walBytes'), oldestTransactionSeconds: round(oldestTransactionSeconds), blockedSessions,
    },
    totals: { transactions, blocksHit, blocksRead, walBytes },
  };
}

/** What GET metrics answers: nothing happens in a server that does not run, and it is not waked to say so. */
export function viewMetrics(service: ServiceRow, found: ObservationRow | null): MetricsView {
  const { connections, ...metrics } = service.compute === 'running' && found ? found.metrics : nothing;
  return {
    compute: service.compute, ...metrics, connections: { ...connections, limit: planLimits[service.plan].connections },
    usedBytes: service.usedBytes, measuredAt: found?.measuredAt.toISOString() ?? null,
  };
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
