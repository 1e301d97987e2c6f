import { limit } from '../billing/service';
import type { Cause } from '../core/caller';
import { AppError, invalid, type Issue } from '../core/errors';
import { newId } from '../core/ids';
import type { Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { settleClaims } from './claims';
import type { Platform } from './rules/platform';
import { findConflict } from './rules/conflicts';
import { isGlobalUnicast } from './rules/global-addresses';
import { planWrites, type Creation, type Plan, type RecordFields } from './rules/plan';
import { RecordIndex } from './rules/record-index';
import type { RecordType } from './rules/rrset';
import { insertChangeSet, readRecords, trimDeleted, writeRecords, type RecordRow } from './store/records';
import { bumpZone, type ZoneRow } from './store/zones';
import { nextVersion } from './versions';

export type NewRecord = { type: RecordType; fields: RecordFields };
export type RecordWrites = {
  deletes?: readonly RecordRow[];
  updates?: readonly { record: RecordRow; fields: RecordFields }[];
  restores?: readonly RecordRow[];
  creates?: readonly NewRecord[];
  /** Who the created records belong to when a product writes them. */
  owner?: { managed: NonNullable<RecordRow['managed']>; managedId: string; challenge: boolean };
};

export type Written = Plan<RecordRow> & {
  /** The zone's version with these writes; the present one when nothing changed. */
  version: number; serial: number;
};

export type WriteScope = { platform: Platform; zone: ZoneRow; cause: Cause; dryRun?: boolean; /** How faults are named: a single record has no index. */ single?: boolean };

/**
 * All the writes or none, as one version of the zone. The zone row is locked by the caller. Errors, in this order:
 * `validation_error` for what the request and the zone's name show, the state rules of contract dns.md §4.4 with
 * `conflicts`, 402 `quota_exceeded`.
 */
export async function writeZone(tx: Tx, scope: WriteScope, writes: RecordWrites): Promise<Written> {
  const { zone } = scope;
  const before = await readRecords(tx, zone.id);
  const plan = planWrites(zone.domain, before, {
    deletes: writes.deletes ?? [], updates: writes.updates ?? [], restores: writes.restores ?? [],
    creates: (writes.creates ?? []).map((creation) => ({ ...creation, make: blankOf(zone, writes.owner) }) satisfies Creation<RecordRow>),
  });
  if (plan.issues.length > 0) throw invalid(plan.issues.map((issue) => named(issue, scope.single ?? false)));
  const written = [...plan.created, ...plan.updated, ...plan.affected];
  const conflict = findConflict(new RecordIndex(zone.domain, plan.after), written, { mayBeOrigin: isGlobalUnicast });
  if (conflict) throw new AppError(conflict.code, conflict.message, { conflicts: conflict.conflicts });
  await requireRoom(tx, scope, plan, before);
  if (written.length === 0 && plan.deleted.length === 0) return { ...plan, version: zone.version, serial: zone.serial };
  return scope.dryRun ? { ...plan, ...nextVersion(zone) } : commit(tx, scope, plan);
}

async function commit(tx: Tx, { platform, zone, cause }: WriteScope, plan: Plan<RecordRow>): Promise<Written> {
  const { version, serial } = nextVersion(zone);
  const updated = [...plan.updated, ...plan.affected];
  await writeRecords(tx, version, { deleted: plan.deleted.map(({ id }) => id), updated, created: plan.created });
  await bumpZone(tx, {
    id: zone.id, version, serial, all: false, recordCount: plan.after.filter(isCounted).length, proxiedCount: proxiedNames(plan.after),
  });
  await insertChangeSet(tx, {
    zoneId: zone.id, version, serial, actor: cause.actor, requestId: cause.requestId, created: plan.created.length, updated: updated.length, deleted: plan.deleted.length,
    changes: changesOf(plan),
  });
  if (plan.deleted.length > 0) await trimDeleted(tx, zone.id, 10 * (await recordLimit(tx, zone) ?? 10_000));
  if ([...plan.created, ...updated, ...plan.deleted].some(({ type }) => type === 'NS')) await settleClaims(tx, platform, zone.registrable);
  appendAudit(tx, {
    orgId: zone.orgId, projectId: zone.projectId, cause, outcome: 'done', target: { type: 'dnsZone', id: zone.id },
    changes: [{ field: 'version', from: zone.version, to: version }, { field: 'records', from: null, to: [...plan.created, ...plan.updated, ...plan.deleted].slice(0, 100).map(({ id }) => id) }],
  });
  return { ...plan, version, serial };
}

/** 402 before any side effect; only what grows is asked about. */
async function requireRoom(tx: Tx, { zone }: WriteScope, plan: Plan<RecordRow>, before: readonly RecordRow[]): Promise<void> {
  const counts = [
    { resource: 'dns.records', used: before.filter(isCounted).length, after: plan.after.filter(isCounted).length },
    { resource: 'dns.proxied_names', used: proxiedNames(before), after: proxiedNames(plan.after) },
  ];
  for (const { resource, used, after } of counts) {
    const max = after > used ? await limit(tx, { orgId: zone.orgId }, resource) : null;
    if (max !== null && after > max) {
      throw new AppError('quota_exceeded', `Your plan allows ${max} of ${resource} per zone, and ${used} are in use.`, { resource, limit: max, used, upgradeTo: null });
    }
  }
}

export function recordLimit(tx: Tx, zone: Pick<ZoneRow, 'orgId'>): Promise<number | null> {
  return limit(tx, { orgId: zone.orgId }, 'dns.records');
}

function isCounted(record: RecordRow): boolean {
  return !record.challenge;
}

function proxiedNames(records: readonly RecordRow[]): number {
  return new Set(records.filter(({ proxied }) => proxied).map(({ name }) => name)).size;
}

function blankOf(zone: ZoneRow, owner: RecordWrites['owner']): Creation<RecordRow>['make'] {
  return (record) => ({
    ...record, id: newId('rec'), zoneId: zone.id, managed: owner?.managed ?? null, managedId: owner?.managedId ?? null, challenge: owner?.challenge ?? false,
    version: zone.version + 1, createdAt: new Date(), updatedAt: new Date(), deletedAt: null,
  });
}

/** `creates.0.value` of a single write is `value` to whoever sent it. */
function named(issue: Issue, single: boolean): Issue {
  return single ? { ...issue, path: issue.path.replace(/^(?:creates|updates)\.0\./, '') } : issue;
}

function changesOf(plan: Plan<RecordRow>): unknown {
  const shown = ({ id, type, name, value, ttl, priority, proxied, originProtocol, originPort, originPath, originHostHeader, comment }: RecordRow) =>
    ({ id, type, name, value, ttl, priority, proxied, originProtocol, originPort, originPath, originHostHeader, comment });
  const shownOrNull = (record: RecordRow | undefined) => (record ? shown(record) : null);
  return [
    ...plan.deleted.map((record) => ({ recordId: record.id, before: shown(record), after: null })),
    ...[...plan.updated, ...plan.affected].map((record) => ({ recordId: record.id, before: shownOrNull(plan.before.get(record.id)), after: shown(record) })),
    ...plan.created.map((record) => ({ recordId: record.id, before: null, after: shown(record) })),
  ];
}
