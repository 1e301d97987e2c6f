import { setTimeout as pause } from 'node:timers/promises';
import type { Cause, ProjectCaller } from '../core/caller';
import type { ErrorCode } from '../core/errors';
import type { Id } from '../core/ids';
import { inTransaction, type Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { getOperation, openOperation, openOperationsOf, settleOperation, type OperationRow } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import type { DnsDeps } from './deps';
import { requiredElsewhere } from './external';
import { requireZone } from './faults';
import type { SyncReport } from './sync-report';
import { markSynced, markUnsynced, notifyServers, readServers, readSyncReport, type ServerVersion } from './store/sync';
import { loadZone, lockZone, type ZoneRow } from './store/zones';

export type SyncDeps = Pick<DnsDeps, 'db' | 'dnsPlatform'>;
export type Synced = { zone: ZoneRow; report: SyncReport };

const cachedSeconds = 10;
const pollMs = 50;
const renotifyMs = 1_000;

/**
 * Every live server of ours answers with the zone's version, told once more of it if it does not; the zone's open `dns.sync`
 * operations are settled once that is so. Null when the zone is gone. `dryRun`: only looked at.
 */
export async function ensureSynced(deps: SyncDeps, zoneId: string, { budgetMs, dryRun = false }: { budgetMs: number; dryRun?: boolean }): Promise<Synced | null> {
  const startedAt = Date.now();
  const before = await stateOf(deps, zoneId);
  if (!before) return null;
  let now = before;
  for (let toldAt = 0; !now.inSync && !dryRun && Date.now() - startedAt < budgetMs; await pause(pollMs)) {
    if (Date.now() - toldAt > renotifyMs) {
      await notifyServers(deps.db.prisma, zoneId);
      toldAt = Date.now();
    }
    const next = await stateOf(deps, zoneId);
    if (!next) return null;
    now = next;
  }
  const report = reportOf(before, now, { dryRun, durationMs: Date.now() - startedAt, required: await requiredElsewhere(deps, now.zone) });
  if (now.inSync && !dryRun) await settle(deps, zoneId, report);
  const zone = await loadZone(deps.db.prisma, zoneId);
  return zone && { zone, report };
}

function settle(deps: SyncDeps, zoneId: string, report: SyncReport): Promise<void> {
  return inTransaction(deps.db, async (tx) => {
    await markSynced(tx, zoneId, report);
    for (const operation of await openOperationsOf(tx, zoneId, 'dns.sync')) await settleOperation(tx, operation.id, 'succeeded');
  });
}

/** The zone could not be published in its time, or is gone: nobody waits for it any longer. */
export async function endSync(deps: SyncDeps, zoneId: string, error: { code: ErrorCode; message: string } | null): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    if (error) await markUnsynced(tx, zoneId, error);
    for (const operation of await openOperationsOf(tx, zoneId, 'dns.sync')) await settleOperation(tx, operation.id, error ? 'failed' : 'cancelled', error ?? undefined);
  });
}

/** A report of the last 10 s is the answer while the zone has not changed since. */
export async function findFreshSync(deps: SyncDeps, zone: ZoneRow): Promise<SyncReport | null> {
  const report = await readSyncReport(deps.db.prisma, zone.id, cachedSeconds);
  return report && report.versionAfter === zone.version ? { ...report, cached: true } : null;
}

type State = { zone: ZoneRow; servers: ServerVersion[]; inSync: boolean };

async function stateOf(deps: SyncDeps, zoneId: string): Promise<State | null> {
  const zone = await loadZone(deps.db.prisma, zoneId);
  if (!zone || zone.deletedAt) return null;
  const servers = zone.served ? await readServers(deps.db.prisma, zoneId) : [];
  return { zone, servers, inSync: !zone.served || (servers.length > 0 && servers.every(({ version }) => version === zone.version)) };
}

/** Our servers follow the database: what differs is a version, and the RRsets are not compared. */
function reportOf(before: State, now: State, { dryRun, durationMs, required }: Pick<SyncReport, 'dryRun' | 'durationMs' | 'required'>): SyncReport {
  const { zone, servers } = now;
  return {
    status: before.inSync ? 'in_sync' : now.inSync ? 'applied' : 'partial', dryRun, cached: false, drift: !before.inSync,
    changes: { create: [], update: [], delete: [] }, counts: { create: 0, update: 0, delete: 0 },
    required, versionBefore: Math.min(zone.version, ...before.servers.map(({ version }) => version ?? 0)), versionAfter: zone.version, serial: zone.serial,
    servers: servers.map(({ name, version, lagMs }) => ({ name, version, serial: version === zone.version ? zone.serial : null, inSync: version === zone.version, lagMs })), durationMs,
  };
}

/** Accepted: the zone's workflow goes on where the answer's time ends. Errors: `not_found`. */
export async function requestSync(tx: Tx, { caller, zoneId, cause }: { caller: ProjectCaller; zoneId: string; cause: Cause }): Promise<OperationRow> {
  const zone = requireZone(await lockZone(tx, caller.project.id, zoneId));
  appendAudit(tx, { orgId: zone.orgId, projectId: zone.projectId, cause, outcome: 'done', target: { type: 'dnsZone', id: zone.id } });
  return openSyncOperation(tx, zone, cause);
}

/** The operation whose workflow brings the zone's present version everywhere. */
export function openSyncOperation(tx: Tx, zone: { id: Id<'zone'>; domain: string; orgId: Id<'org'>; projectId: Id<'prj'> }, cause: Cause): Promise<OperationRow> {
  return openOperation(tx, {
    orgId: zone.orgId, projectId: zone.projectId, kind: 'dns.sync', resourceId: zone.id, summary: `Publish DNS zone ${zone.domain}`, requestId: cause.requestId,
    start: { workflow: 'syncZone', workflowId: workflowIds.syncZone(zone.id), queue: 'dns', payload: { zoneId: zone.id }, signal: 'requested' },
  });
}

const budgetMs = 5_000;

/** What became of it within 5 s; `partial` when a server is still behind, and the workflow goes on. Errors: `not_found`. */
export async function awaitSync(deps: SyncDeps, zoneId: string, operation: OperationRow): Promise<Synced & { operation: OperationRow | null }> {
  const outcome = await ensureSynced(deps, zoneId, { budgetMs });
  const zone = requireZone(outcome?.zone ?? null);
  return { zone, report: outcome ? outcome.report : neverReported(), operation: await getOperation(deps.db.prisma, operation.id) };
}

/** Only looked at: nothing is accepted, nothing changes. Errors: `not_found`. */
export async function compareZone(deps: SyncDeps, zoneId: string): Promise<Synced> {
  const outcome = await ensureSynced(deps, zoneId, { budgetMs: 0, dryRun: true });
  return { zone: requireZone(outcome?.zone ?? null), report: outcome ? outcome.report : neverReported() };
}

function neverReported(): never {
  throw new Error('A zone that is there has a report.');
}
