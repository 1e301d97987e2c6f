import { AppError } from '../core/errors';
import { readPage, unpagedMax, type Page, type PageRequest } from '../core/page';
import type { Db } from '../db/client';
import type { Tx } from '../db/transaction';
import type { DnsDeps } from './deps';
import { noRecord, requireVersion } from './faults';
import { canonicalRecordName } from './rules/names';
import type { RecordFields } from './rules/plan';
import type { RecordType } from './rules/rrset';
import { findRecord, findRecords, listRecords, type RecordFilter, type RecordRow } from './store/records';
import type { ZoneRow } from './store/zones';
import type { NewRecord } from './write';
import { begin, beginWhole, requireUnmanaged, write, type RecordRequest, type WriteDeps, type ZoneWritten } from './zone-writes';

export type OneRecordRequest = RecordRequest & { recordId: string };
type RecordWritten = ZoneWritten & { record: RecordRow };

export type RecordQuery = PageRequest & {
  type?: RecordType | undefined; name?: string | undefined; search?: string | undefined; proxied?: boolean | undefined; managed?: boolean | undefined;
  status?: RecordFilter['status'] | undefined; sort?: RecordFilter['sort'] | undefined;
};

/** Records of a zone; a name is found in every form it may be given in. Errors: `invalid_cursor`. */
export function pageRecords(deps: Pick<DnsDeps, 'db' | 'cursors'>, zone: Pick<ZoneRow, 'id' | 'domain'>, query: RecordQuery): Promise<Page<RecordRow>> {
  const filter: RecordFilter = {
    zoneId: zone.id, type: query.type ?? null, name: query.name === undefined ? null : canonicalRecordName(query.name, zone.domain).value ?? query.name,
    search: query.search?.toLowerCase() ?? null, proxied: query.proxied ?? null, managed: query.managed ?? null, status: query.status ?? 'active', sort: query.sort ?? 'created',
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

/** Errors: as beginWhole, writeZone. */
export async function createRecord(tx: Tx, deps: WriteDeps, request: RecordRequest & { record: NewRecord }): Promise<RecordWritten> {
  const zone = await beginWhole(tx, request);
  const done = await write(tx, deps, { zone, cause: request.cause, single: true }, { creates: [request.record] });
  const [record] = done.written.created;
  if (!record) throw new Error('The record was not planned.');
  return { ...done, record };
}

/** A write without effect makes no version. Errors: `not_found`, `managed_record`, `precondition_failed`, `type_immutable`; as writeZone. */
export async function updateRecord(tx: Tx, deps: WriteDeps, request: OneRecordRequest & { type?: RecordType | undefined; fields: RecordFields }): Promise<RecordWritten> {
  const zone = await begin(tx, request);
  const record = await activeRecord(tx, zone, request);
  requireType(record, request.type);
  const done = await write(tx, deps, { zone, cause: request.cause, single: true }, { updates: [{ record, fields: request.fields }] });
  return { ...done, record: done.written.named[0] ?? record };
}

/** Errors: `not_found` (also when deleted before), `managed_record`, `precondition_failed`. */
export async function deleteRecord(tx: Tx, deps: WriteDeps, request: OneRecordRequest): Promise<RecordWritten> {
  const zone = await begin(tx, request);
  const record = await activeRecord(tx, zone, request);
  const done = await write(tx, deps, { zone, cause: request.cause, single: true }, { deletes: [record] });
  return { ...done, record: done.written.deleted[0] ?? record };
}

/** The same id again, with the ttl and the pool its name has now. Errors: `not_found`, `managed_record`, `precondition_failed`, `invalid_state` unless deleted; as writeZone. */
export async function restoreRecord(tx: Tx, deps: WriteDeps, request: OneRecordRequest): Promise<RecordWritten> {
  const zone = await begin(tx, request);
  const record = await getRecord(tx, zone.id, request.recordId);
  requireUnmanaged(record);
  requireVersion(request.ifMatch, record.version);
  if (!record.deletedAt) throw new AppError('invalid_state', 'The record is not deleted.', { status: 'active' });
  const done = await write(tx, deps, { zone, cause: request.cause, single: true }, { updates: [{ record: { ...record, deletedAt: null }, fields: {} }] });
  return { ...done, record: done.written.named[0] ?? record };
}

export type BulkDeleted = ZoneWritten & { deletedIds: string[]; notFound: string[]; skipped: { id: string; code: 'managed_record' }[] };

/**
 * One version for all of them. What is foreign, malformed, unknown or deleted before is `notFound`, what a product wrote
 * is `skipped`. Errors: `not_found` when no id belongs or belonged to the zone; `invalid_state` with `atomic` when any is
 * not deleted.
 */
export async function deleteRecords(tx: Tx, deps: WriteDeps, request: RecordRequest & { recordIds: readonly string[]; atomic: boolean }): Promise<BulkDeleted> {
  const zone = await beginWhole(tx, request);
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
  const done = await write(tx, deps, { zone, cause: request.cause }, { deletes });
  return { ...done, deletedIds: deletes.map(({ id }) => id), notFound, skipped };
}

/** Errors: `type_immutable` when a type is given that is not the record's. */
export function requireType(record: RecordRow, type: RecordType | undefined): void {
  if (type === undefined || type === record.type) return;
  throw new AppError('type_immutable', `The type of a record cannot be changed. Delete this ${record.type} and create the ${type}.`, { type: record.type });
}

async function activeRecord(tx: Tx, zone: ZoneRow, { recordId, ifMatch }: OneRecordRequest): Promise<RecordRow> {
  const record = await getRecord(tx, zone.id, recordId);
  if (record.deletedAt) throw noRecord();
  requireUnmanaged(record);
  requireVersion(ifMatch, record.version);
  return record;
}
