import type { Cause, ProjectCaller } from '../core/caller';
import { AppError } from '../core/errors';
import { readPage, unpagedMax, type Page, type PageRequest } from '../core/page';
import type { Db } from '../db/client';
import type { Tx } from '../db/transaction';
import type { DnsDeps } from './deps';
import { noRecord, requireVersion, requireWritable } from './faults';
import type { RecordFields } from './rules/plan';
import type { RecordType } from './rules/rrset';
import { findRecord, findRecords, listRecords, type RecordFilter, type RecordRow } from './store/records';
import { lockZone, type ZoneRow } from './store/zones';
import { writeZone, type NewRecord, type Written } from './write';

export type RecordRequest = { caller: ProjectCaller; zoneId: string; cause: Cause };
export type OneRecordRequest = RecordRequest & { recordId: string; ifMatch: string | null };
export type ZoneWritten = { zone: ZoneRow; written: Written };

type WriteDeps = Pick<DnsDeps, 'dnsPlatform'>;

export type RecordQuery = PageRequest & {
  type?: RecordType | undefined; name?: string | undefined; search?: string | undefined; proxied?: boolean | undefined; managed?: boolean | undefined;
  status?: RecordFilter['status'] | undefined; sort?: RecordFilter['sort'] | undefined;
};

/** Records of a zone. Errors: `invalid_cursor`. */
export function pageRecords(deps: Pick<DnsDeps, 'db' | 'cursors'>, zoneId: string, query: RecordQuery): Promise<Page<RecordRow>> {
  const filter: RecordFilter = {
    zoneId, type: query.type ?? null, name: query.name === '' ? '@' : query.name?.toLowerCase() ?? null, search: query.search?.toLowerCase() ?? null,
    proxied: query.proxied ?? null, managed: query.managed ?? null, status: query.status ?? 'active', sort: query.sort ?? 'created',
  };
  return readPage(deps.cursors, { list: 'dns.records', ...filter }, query, {
    limitDefault: unpagedMax,
    keyOf: (row) => (filter.sort === 'name' ? [row.name, row.type, row.id] : [row.createdAt.toISOString(), row.id]),
    fetch: (after, limit) => listRecords(deps.db.prisma, filter, { after, limit }),
  });
}

/** Errors: `not_found` for what is absent, foreign or purged. */
export async function getRecord(db: Db, zoneId: string, recordId: string): Promise<RecordRow> {
  const record = await findRecord(db, zoneId, recordId);
  if (!record) throw noRecord();
  return record;
}

/** Errors: as writeZone. */
export async function createRecord(tx: Tx, deps: WriteDeps, request: RecordRequest & { record: NewRecord }): Promise<ZoneWritten & { record: RecordRow }> {
  const zone = await begin(tx, request);
  const written = await writeZone(tx, scopeOf(deps, zone, request), { creates: [request.record] });
  const [record] = written.created;
  if (!record) throw new Error('The record was not planned.');
  return { zone, written, record };
}

/** A write without effect makes no version. Errors: `not_found`, `type_immutable`, `managed_record`, `precondition_failed`; as writeZone. */
export async function updateRecord(
  tx: Tx, deps: WriteDeps, request: OneRecordRequest & { type?: RecordType | undefined; fields: RecordFields },
): Promise<ZoneWritten & { record: RecordRow }> {
  const zone = await begin(tx, request);
  const record = await activeRecord(tx, zone, request);
  if (request.type !== undefined && request.type !== record.type) {
    throw new AppError('type_immutable', `The type of a record cannot be changed. Delete this ${record.type} and create the ${request.type}.`, { type: record.type });
  }
  const written = await writeZone(tx, scopeOf(deps, zone, request), { updates: [{ record, fields: request.fields }] });
  return { zone, written, record: written.after.find(({ id }) => id === record.id) ?? record };
}

/** Errors: `not_found` (also when deleted before), `managed_record`, `precondition_failed`. */
export async function deleteRecord(tx: Tx, deps: WriteDeps, request: OneRecordRequest): Promise<ZoneWritten & { record: RecordRow }> {
  const zone = await begin(tx, request);
  const record = await activeRecord(tx, zone, request);
  const written = await writeZone(tx, scopeOf(deps, zone, request), { deletes: [record] });
  return { zone, written, record: await findRecord(tx, zone.id, record.id) ?? record };
}

/** The same id again, with the ttl and the pool its name has now. Errors: `not_found`, `invalid_state` unless deleted; as writeZone. */
export async function restoreRecord(tx: Tx, deps: WriteDeps, request: OneRecordRequest): Promise<ZoneWritten & { record: RecordRow }> {
  const zone = await begin(tx, request);
  const record = await getRecord(tx, zone.id, request.recordId);
  requireUnmanaged(record);
  if (!record.deletedAt) throw new AppError('invalid_state', 'The record is not deleted.', { status: 'active' });
  const written = await writeZone(tx, scopeOf(deps, zone, request), { restores: [{ ...record, deletedAt: null }] });
  return { zone, written, record: written.after.find(({ id }) => id === record.id) ?? record };
}

export type BulkDeleted = ZoneWritten & { deletedIds: string[]; notFound: string[]; skipped: { id: string; code: 'managed_record' }[] };

/**
 * One version for all of them. What is foreign, malformed, unknown or deleted before is `notFound`, what a product wrote
 * is `skipped`. Errors: `not_found` when no id belongs or belonged to the zone; `invalid_state` with `atomic` when any is
 * not deleted.
 */
export async function deleteRecords(tx: Tx, deps: WriteDeps, request: RecordRequest & { recordIds: readonly string[]; atomic: boolean }): Promise<BulkDeleted> {
  const zone = await begin(tx, request);
  const ids = [...new Set(request.recordIds)];
  const known = new Map<string, RecordRow>((await findRecords(tx, zone.id, ids)).map((record) => [record.id, record]));
  if (known.size === 0) throw noRecord();
  const active = ids.flatMap((id) => known.get(id) ?? []).filter(({ deletedAt }) => !deletedAt);
  const skipped = active.filter(({ managed }) => managed).map(({ id }) => ({ id, code: 'managed_record' as const }));
  const deletes = active.filter(({ managed }) => !managed);
  const found = new Set<string>(active.map(({ id }) => id));
  const notFound = ids.filter((id) => !found.has(id));
  if (request.atomic && notFound.length + skipped.length > 0) {
    throw new AppError('invalid_state', 'Not every record can be deleted; nothing was changed.', { notFound, skipped });
  }
  const written = await writeZone(tx, scopeOf(deps, zone, request), { deletes });
  return { zone, written, deletedIds: deletes.map(({ id }) => id), notFound, skipped };
}

async function begin(tx: Tx, { caller, zoneId }: RecordRequest): Promise<ZoneRow> {
  return requireWritable(await lockZone(tx, caller.project.id, zoneId));
}

function scopeOf(deps: WriteDeps, zone: ZoneRow, { cause }: RecordRequest) {
  return { platform: deps.dnsPlatform, zone, cause, single: true };
}

async function activeRecord(tx: Tx, zone: ZoneRow, { recordId, ifMatch }: OneRecordRequest): Promise<RecordRow> {
  const record = await getRecord(tx, zone.id, recordId);
  if (record.deletedAt) throw noRecord();
  requireUnmanaged(record);
  requireVersion(ifMatch, record.version);
  return record;
}

function requireUnmanaged(record: RecordRow): void {
  if (record.managed) throw new AppError('managed_record', `This record is kept by ${record.managed === 'nameserver' ? 'the zone itself' : record.managed}; change it there.`, { managed: record.managed });
}
