import { AppError, invalid, notFound } from '../core/errors';
import type { Tx } from '../db/transaction';
import { requireType } from './records';
import type { RecordFields } from './rules/plan';
import type { RecordType } from './rules/rrset';
import { findRecords, type RecordRow } from './store/records';
import type { NewRecord } from './write';
import { beginWhole, write, type RecordRequest, type WriteDeps, type ZoneWritten } from './zone-writes';

export type Batch = {
  deletes: readonly string[];
  updates: readonly { id: string; type?: RecordType | undefined; fields: RecordFields }[];
  creates: readonly NewRecord[];
  dryRun: boolean;
};

/**
 * Deletes, updates and creates as one version, judged by what they lead to together: all of them or none. `dryRun` answers
 * the same and changes nothing. Errors: as beginWhole; `validation_error` for a record named twice; `not_found` with the
 * ids, `managed_record`, `type_immutable`; as writeZone.
 */
export async function applyBatch(tx: Tx, deps: WriteDeps, request: RecordRequest & { batch: Batch }): Promise<ZoneWritten> {
  const { batch, cause } = request;
  requireNamedOnce(batch);
  const zone = await beginWhole(tx, request);
  const known = await activeRecords(tx, zone.id, [...batch.deletes, ...batch.updates.map(({ id }) => id)]);
  const updates = batch.updates.flatMap(({ id, type, fields }) => {
    const record = known.get(id);
    if (record) requireType(record, type);
    return record ? [{ record, fields }] : [];
  });
  return write(tx, deps, { zone, cause, dryRun: batch.dryRun }, { deletes: [...new Set(batch.deletes)].flatMap((id) => known.get(id) ?? []), updates, creates: batch.creates });
}

function requireNamedOnce({ deletes, updates }: Batch): void {
  const seen = new Set(deletes);
  const issues = updates.flatMap(({ id }, i) => {
    const again = seen.has(id);
    seen.add(id);
    return again ? [{ path: `updates.${i}.id`, message: 'names a record that this batch already deletes or updates' }] : [];
  });
  if (issues.length > 0) throw invalid(issues);
}

async function activeRecords(tx: Tx, zoneId: string, ids: readonly string[]): Promise<Map<string, RecordRow>> {
  const known = new Map<string, RecordRow>((await findRecords(tx, zoneId, ids)).filter(({ deletedAt }) => !deletedAt).map((record) => [record.id, record]));
  const absent = ids.filter((id) => !known.has(id));
  if (absent.length > 0) throw new AppError('not_found', notFound('DNS record').message, { notFound: [...new Set(absent)] });
  const managed = [...known.values()].filter((record) => record.managed);
  if (managed.length > 0) throw new AppError('managed_record', 'A product keeps these records; change them there.', { recordIds: managed.map(({ id }) => id) });
  return known;
}
