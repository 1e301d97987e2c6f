import { limit, planAllowing } from '../billing/service';
import type { Cause } from '../core/caller';
import { AppError, invalid, type Issue } from '../core/errors';
import { newId } from '../core/ids';
import type { Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { settleClaims } from './claims';
import { mayBeOrigin, type Platform } from './rules/platform';
import { findConflict } from './rules/conflicts';
import { canonicalRecordName } from './rules/names';
import { planWrites, type Creation, type Plan, type RecordFields } from './rules/plan';
import type { RecordIndex } from './rules/record-index';
import type { RecordType } from './rules/rrset';
import { trimDeleted, writeRecords, type RecordRow } from './store/records';
import { recordsAt } from './store/surroundings';
import { bumpZone, type ZoneRow } from './store/zones';
import { keptFields, type Change } from './change';
import { readSurroundings } from './surroundings';
import { nextVersion } from './versions';

export type NewRecord = { type: RecordType; fields: RecordFields };
export type RecordWrites = {
  deletes?: readonly RecordRow[];
  /** Of deleted records too: they come back. */
  updates?: readonly { record: RecordRow; fields: RecordFields }[];
  creates?: readonly NewRecord[];
  /** Who the created records belong to when a product writes them. */
  owner?: { managed: NonNullable<RecordRow['managed']>; managedId: string; challenge: boolean };
};

export type Written = Plan<RecordRow> & {
  /** The zone's version with these writes; the present one when nothing changed. */
  version: number; serial: number;
  /** The state after the write, as far as the written records can see. */
  index: RecordIndex;
};

export type WriteScope = { platform: Platform; zone: ZoneRow; cause: Cause; dryRun?: boolean; /** How faults are named: a single record has no index. */ single?: boolean };

/**
 * All the writes or none, as one version of the zone. The zone row is locked by the caller. What is read grows with the
 * writes, not with the zone. Errors, in this order: `validation_error` for what the request and the zone's name show, the
 * state rules of contract dns.md §4.4 with `conflicts`, 402 `quota_exceeded`.
 */
export async function writeZone(tx: Tx, scope: WriteScope, writes: RecordWrites): Promise<Written> {
  const { zone, platform } = scope;
  const before = await recordsAt(tx, zone.id, namesIn(zone.domain, writes));
  const plan = planWrites({ domain: zone.domain, platformPorts: platform.ports }, before, {
    deletes: writes.deletes ?? [], updates: writes.updates ?? [],
    creates: (writes.creates ?? []).map((creation) => ({ ...creation, make: blankOf(zone, writes.owner) }) satisfies Creation<RecordRow>),
  });
  if (plan.issues.length > 0) throw invalid(plan.issues.map((issue) => named(issue, scope.single ?? false)));
  const written = [...plan.created, ...plan.updated, ...plan.affected];
  const index = await readSurroundings(tx, zone, plan);
  const conflict = findConflict(index, written, { mayBeOrigin: (address) => mayBeOrigin(platform, address) });
  if (conflict) throw new AppError(conflict.code, conflict.message, { conflicts: conflict.conflicts });
  const counts = countsAfter(zone, before, plan);
  await requireRoom(tx, zone, counts);
  if (scope.dryRun || (written.length === 0 && plan.deleted.length === 0)) return { ...plan, version: zone.version, serial: zone.serial, index };
  return { ...await commit(tx, scope, plan, counts), index };
}

/** Where anything is written: the names the records have and those they are given. */
function namesIn(domain: string, { deletes = [], updates = [], creates = [] }: RecordWrites): string[] {
  const given = [...updates, ...creates].flatMap(({ fields: { name } }) => (name === undefined ? [] : [canonicalRecordName(name, domain).value ?? []].flat()));
  return [...new Set([...deletes.map(({ name }) => name), ...updates.map(({ record }) => record.name), ...given])];
}

type Counts = { recordCount: number; proxiedCount: number };

async function commit(tx: Tx, { platform, zone, cause }: WriteScope, plan: Plan<RecordRow>, counts: Counts): Promise<Omit<Written, 'index'>> {
  const { version, serial } = nextVersion(zone);
  const updated = [...plan.updated, ...plan.affected];
  await writeRecords(tx, version, { deleted: plan.deleted.map(({ id }) => id), updated, created: plan.created });
  const at = await bumpZone(tx, { id: zone.id, version, serial, all: false, ...counts }, {
    actor: cause.actor, requestId: cause.requestId, created: plan.created.length, updated: updated.length, deleted: plan.deleted.length, changes: changesOf(plan),
  });
  if (plan.deleted.length > 0) await trimDeleted(tx, zone.id, 10 * (await recordLimit(tx, zone) ?? 10_000));
  if ([...plan.created, ...updated, ...plan.deleted].some(({ type }) => type === 'NS')) await settleClaims(tx, platform, zone.registrable);
  appendAudit(tx, {
    orgId: zone.orgId, projectId: zone.projectId, cause, outcome: 'done', target: { type: 'dnsZone', id: zone.id },
    changes: [{ field: 'version', from: zone.version, to: version }, { field: 'records', from: null, to: [...plan.created, ...plan.updated, ...plan.deleted].slice(0, 100).map(({ id }) => id) }],
  });
  return { ...stamped(plan, version, at), version, serial };
}

/** The plan's records as they are stored. */
function stamped(plan: Plan<RecordRow>, version: number, at: Date): Plan<RecordRow> {
  const changed = new Set([...plan.updated, ...plan.affected].map(({ id }) => id));
  const stamp = (record: RecordRow): RecordRow => (changed.has(record.id) ? { ...record, version, updatedAt: at } : record);
  return {
    ...plan, named: plan.named.map(stamp), updated: plan.updated.map(stamp), affected: plan.affected.map(stamp),
    created: plan.created.map((record) => ({ ...record, version, createdAt: at, updatedAt: at })),
    deleted: plan.deleted.map((record) => ({ ...record, version, updatedAt: at, deletedAt: at })),
  };
}

function countsAfter(zone: ZoneRow, before: readonly RecordRow[], { after }: Plan<RecordRow>): Counts {
  return {
    recordCount: zone.recordCount + after.filter(isCounted).length - before.filter(isCounted).length,
    proxiedCount: zone.proxiedCount + proxiedNames(after) - proxiedNames(before),
  };
}

/** 402 before any side effect; only what grows is asked about. */
async function requireRoom(tx: Tx, zone: ZoneRow, { recordCount, proxiedCount }: Counts): Promise<void> {
  const counts = [{ resource: 'dns.records', used: zone.recordCount, after: recordCount }, { resource: 'dns.proxied_names', used: zone.proxiedCount, after: proxiedCount }];
  for (const { resource, used, after } of counts) {
    const max = after > used ? await limit(tx, { orgId: zone.orgId }, resource) : null;
    if (max !== null && after > max) {
      throw new AppError('quota_exceeded', `Your plan allows ${max} of ${resource} per zone, and ${used} are in use.`, { resource, limit: max, used, upgradeTo: await planAllowing(tx, resource, after) });
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

/** What a version changed: the servers learn from it where to look. */
function changesOf(plan: Plan<RecordRow>): Change[] {
  const kept = (record: RecordRow | undefined) => (record ? keptFields(record) : null);
  return [
    ...plan.deleted.map((record) => ({ recordId: record.id, before: kept(record), after: null })),
    ...[...plan.updated, ...plan.affected].map((record) => ({ recordId: record.id, before: kept(plan.before.get(record.id)), after: kept(record) })),
    ...plan.created.map((record) => ({ recordId: record.id, before: null, after: kept(record) })),
  ];
}
