import { setTimeout as pause } from 'node:timers/promises';
import type { Cause, ProjectCaller } from '../core/caller';
import { AppError, type ErrorCode } from '../core/errors';
import type { Id } from '../core/ids';
import { inTransaction, type Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { getOperation, openOperation, openOperationsOf, settleOperation, type OperationRow } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import { noZone, requireZone } from './faults';
import { isHeldBack, observeZone, publishOnce, publishStep, type Observation, type PublishDeps } from './observation';
import { reportOf, unreachedReport } from './sync-reports';
import type { SyncReport } from './sync-report';
import { markBlocked, markForced, markSynced, markUnsynced, readSyncReport, releaseSyncLease, takeSyncLease } from './store/sync';
import { loadZone, lockZone, type ZoneRow } from './store/zones';

export type SyncDeps = PublishDeps;
export type Synced = { zone: ZoneRow; report: SyncReport };

const cachedSeconds = 10;
const pollMs = 50;
/** A little longer than the longest attempt of the workflow. */
const leaseSeconds = 35;
const held = { code: 'mass_change', message: 'More than 30 % of the zone would change. Look at what differs, then sync again with force.' };

/**
 * Whoever answers for the zone answers what it holds, as far as that is so within `budgetMs`; the zone's open `dns.sync`
 * operations are settled with it. Null when the zone is gone. Errors: AppError when the backend refuses the zone; any other
 * may be tried again.
 */
export async function ensureSynced(deps: SyncDeps, zoneId: string, { budgetMs }: { budgetMs: number }): Promise<Synced | null> {
  const startedAt = Date.now();
  const lease = await leaseWithin(deps, zoneId, budgetMs);
  if (!lease) return joined(deps, zoneId, startedAt);
  try {
    const elapsedMs = Date.now() - startedAt;
    const other = elapsedMs > pollMs ? await freshReport(deps, zoneId, elapsedMs / 1_000) : null;
    return other ? await settled(deps, other) : await repair(deps, zoneId, { startedAt, budgetMs });
  } finally {
    await releaseSyncLease(deps.db.prisma, zoneId, lease);
  }
}

/** For the workflow: the same, by the shortest way. A report of the last 30 s of this version is enough. */
export async function ensurePublished(deps: SyncDeps, zoneId: string, { budgetMs, freshSeconds }: { budgetMs: number; freshSeconds: number }): Promise<Synced | null> {
  const fresh = await freshReport(deps, zoneId, freshSeconds);
  if (fresh) return settled(deps, fresh);
  const lease = deps.dnsBackend.pushed ? await takeSyncLease(deps.db.prisma, zoneId, leaseSeconds) : null;
  if (!lease) return ensureSynced(deps, zoneId, { budgetMs });
  const startedAt = Date.now();
  try {
    let stepped = false;
    while (await publishStep(deps, zoneId)) stepped = true;
    const after = stepped ? await loadZone(deps.db.prisma, zoneId) : null;
    if (!after || after.appliedVersion < after.version) return await repair(deps, zoneId, { startedAt, budgetMs });
    const zone = await settle(deps, zoneId, { report: null, as: 'succeeded' }) ?? after;
    return { zone, report: await unreachedReport(deps, zone, { status: 'applied', dryRun: false, durationMs: Date.now() - startedAt }) };
  } finally {
    await releaseSyncLease(deps.db.prisma, zoneId, lease);
  }
}

/** The zone's turn has come for this sync; null when that did not happen in time. */
async function leaseWithin(deps: SyncDeps, zoneId: string, budgetMs: number): Promise<string | null> {
  for (const end = Date.now() + budgetMs; ; await pause(pollMs)) {
    const lease = await takeSyncLease(deps.db.prisma, zoneId, leaseSeconds);
    if (lease || Date.now() >= end) return lease;
  }
}

async function freshReport(deps: SyncDeps, zoneId: string, seconds: number): Promise<Synced | null> {
  const zone = await loadZone(deps.db.prisma, zoneId);
  const report = zone && await readSyncReport(deps.db.prisma, zoneId, seconds);
  return report && report.versionAfter === zone.version ? { zone, report } : null;
}

/** Somebody else's sync has not ended in our time: what can be said without a look. */
async function joined(deps: SyncDeps, zoneId: string, startedAt: number): Promise<Synced | null> {
  const zone = await loadZone(deps.db.prisma, zoneId);
  return zone && !zone.deletedAt ? { zone, report: await unreachedReport(deps, zone, { status: 'partial', dryRun: false, durationMs: Date.now() - startedAt }) } : null;
}

async function repair(deps: SyncDeps, zoneId: string, { startedAt, budgetMs }: { startedAt: number; budgetMs: number }): Promise<Synced | null> {
  const before = await observeZone(deps, zoneId);
  if (!before || (before.zone.deletedAt && before.inSync)) return null;
  const told = (now: Observation, status: SyncReport['status']): Promise<SyncReport> => reportOf(deps, before, now, { status, dryRun: false, durationMs: Date.now() - startedAt });
  if (before.inSync) return finish(deps, await told(before, 'in_sync'), before.zone);
  if (await isHeldBack(deps, before)) return block(deps, await told(before, 'blocked'), before.zone);
  for (let now = before; ;) {
    const { done, servers } = await publishOnce(deps, now);
    if (done) return finish(deps, await told({ ...now, servers, inSync: true }, 'applied'), now.zone);
    if (Date.now() - startedAt >= budgetMs) return { zone: now.zone, report: await told({ ...now, servers }, 'partial') };
    const next = await observeZone(deps, zoneId);
    if (!next) return null;
    if (next.inSync) return finish(deps, await told(next, 'applied'), next.zone);
    now = next;
  }
}

async function finish(deps: SyncDeps, report: SyncReport, zone: ZoneRow): Promise<Synced> {
  return { zone: await settle(deps, zone.id, { report, as: zone.deletedAt ? 'cancelled' : 'succeeded' }) ?? zone, report };
}

async function block(deps: SyncDeps, report: SyncReport, zone: ZoneRow): Promise<Synced> {
  await inTransaction(deps.db, async (tx) => {
    await markBlocked(tx, zone.id, report, held);
    await settleOperations(tx, zone.id, 'failed', { code: 'conflict', message: held.message });
  });
  return { zone: await loadZone(deps.db.prisma, zone.id) ?? zone, report };
}

/** Operations that were opened since the report was made are answered by it, too. */
async function settled(deps: SyncDeps, { zone, report }: Synced): Promise<Synced> {
  await inTransaction(deps.db, (tx) => (report.status === 'blocked' ? settleOperations(tx, zone.id, 'failed', { code: 'conflict', message: held.message }) : settleOperations(tx, zone.id, 'succeeded')));
  return { zone, report };
}

async function settle(deps: SyncDeps, zoneId: string, { report, as }: { report: SyncReport | null; as: 'succeeded' | 'cancelled' }): Promise<ZoneRow | null> {
  return inTransaction(deps.db, async (tx) => {
    await markSynced(tx, zoneId, report);
    await settleOperations(tx, zoneId, as);
    return loadZone(tx, zoneId);
  });
}

async function settleOperations(tx: Tx, zoneId: string, state: 'succeeded' | 'failed' | 'cancelled', error?: { code: ErrorCode; message: string }): Promise<void> {
  for (const operation of await openOperationsOf(tx, zoneId, 'dns.sync')) await settleOperation(tx, operation.id, state, error);
}

/** The zone could not be published in its time, or is gone: nobody waits for it any longer. */
export async function endSync(deps: Pick<SyncDeps, 'db'>, zoneId: string, error: { code: ErrorCode; message: string } | null): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    if (error) await markUnsynced(tx, zoneId, error);
    await settleOperations(tx, zoneId, error ? 'failed' : 'cancelled', error ?? undefined);
  });
}

/** A report of the last 10 s is the answer while the zone has not changed since. */
export async function findFreshSync(deps: SyncDeps, zone: ZoneRow): Promise<SyncReport | null> {
  const fresh = await freshReport(deps, zone.id, cachedSeconds);
  return fresh && { ...fresh.report, cached: true };
}

/** Accepted: the zone's workflow goes on where the answer's time ends. `force`: the guard lets this one pass. Errors: `not_found`. */
export async function requestSync(tx: Tx, { caller, zoneId, cause, force = false }: { caller: ProjectCaller; zoneId: string; cause: Cause; force?: boolean }): Promise<OperationRow> {
  const zone = requireZone(await lockZone(tx, caller.project.id, zoneId));
  if (force) await markForced(tx, zone.id);
  appendAudit(tx, { orgId: zone.orgId, projectId: zone.projectId, cause, outcome: 'done', target: { type: 'dnsZone', id: zone.id } });
  return openSyncOperation(tx, zone, cause);
}

export function openSyncOperation(tx: Tx, zone: { id: Id<'zone'>; domain: string; orgId: Id<'org'>; projectId: Id<'prj'> }, cause: Pick<Cause, 'requestId'>): Promise<OperationRow> {
  return openOperation(tx, {
    orgId: zone.orgId, projectId: zone.projectId, kind: 'dns.sync', resourceId: zone.id, summary: `Publish DNS zone ${zone.domain}`, requestId: cause.requestId,
    start: { workflow: 'syncZone', workflowId: workflowIds.syncZone(zone.id), queue: 'dns', payload: { zoneId: zone.id }, signal: 'requested' },
  });
}

const budgetMs = 5_000;

/** What became of it within 5 s; `partial` when somebody is still behind or does not answer, and the workflow goes on; `failed` when the backend refuses. Errors: `not_found`. */
export async function awaitSync(deps: SyncDeps, zoneId: string, operation: OperationRow): Promise<Synced & { operation: OperationRow | null }> {
  const startedAt = Date.now();
  const outcome = await ensureSynced(deps, zoneId, { budgetMs }).catch(async (error: unknown) => {
    if (error instanceof AppError) await endSync(deps, zoneId, { code: error.code, message: error.message });
    return unreached(deps, zoneId, error, { dryRun: false, startedAt });
  });
  if (!outcome) throw noZone();
  return { zone: requireZone(outcome.zone), report: outcome.report, operation: await getOperation(deps.db.prisma, operation.id) };
}

/** Only looked at: nothing is accepted, nothing changes. Errors: `not_found`. */
export async function compareZone(deps: SyncDeps, zoneId: string): Promise<Synced> {
  const startedAt = Date.now();
  try {
    const seen = await observeZone(deps, zoneId);
    if (!seen) throw noZone();
    const zone = requireZone(seen.zone);
    const status = seen.inSync ? 'in_sync' : await isHeldBack(deps, seen) ? 'blocked' : 'partial';
    return { zone, report: await reportOf(deps, seen, seen, { status, dryRun: true, durationMs: Date.now() - startedAt }) };
  } catch (error) {
    return unreached(deps, zoneId, error, { dryRun: true, startedAt });
  }
}

async function unreached(deps: SyncDeps, zoneId: string, error: unknown, { dryRun, startedAt }: { dryRun: boolean; startedAt: number }): Promise<Synced> {
  const zone = requireZone(await loadZone(deps.db.prisma, zoneId));
  return { zone, report: await unreachedReport(deps, zone, { status: error instanceof AppError ? 'failed' : 'partial', dryRun, durationMs: Date.now() - startedAt }) };
}
