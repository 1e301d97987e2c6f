import type { Cause, ProjectCaller } from '../core/caller';
import { AppError } from '../core/errors';
import type { Tx } from '../db/transaction';
import type { DnsDeps } from './deps';
import { requireVersion, requireWritable } from './faults';
import { readFlattened } from './store/flattened';
import type { RecordRow } from './store/records';
import { lockZone, type ZoneRow } from './store/zones';
import { writeZone, type RecordWrites, type Written } from './write';

export type WriteDeps = Pick<DnsDeps, 'dnsPlatform'>;
/** `ifMatch` names a version of the record that is written, or of the zone where the write has no record of its own yet. */
export type RecordRequest = { caller: ProjectCaller; zoneId: string; cause: Cause; ifMatch: string | null };
/** The zone as the write left it. */
export type ZoneWritten = { zone: ZoneRow; written: Written };

/** The zone, locked for this transaction. Errors: `not_found`, `service_suspended`. */
export async function begin(tx: Tx, { caller, zoneId }: RecordRequest): Promise<ZoneRow> {
  return requireWritable(await lockZone(tx, caller.project.id, zoneId));
}

/** Errors: as begin, then `precondition_failed` when If-Match names another version of the zone. */
export async function beginWhole(tx: Tx, request: RecordRequest): Promise<ZoneRow> {
  const zone = await begin(tx, request);
  requireVersion(request.ifMatch, zone.version);
  return zone;
}

/** Errors: as writeZone. */
export async function write(
  tx: Tx, deps: WriteDeps, { zone, cause, dryRun, single }: { zone: ZoneRow; cause: Cause; dryRun?: boolean | undefined; single?: boolean }, writes: RecordWrites,
): Promise<ZoneWritten> {
  const written = await writeZone(tx, { platform: deps.dnsPlatform, zone, cause, dryRun: dryRun ?? false, single: single ?? false }, writes);
  const alias = [...written.created, ...written.updated].some(({ name, type }) => name === '@' && type === 'CNAME');
  return { written, zone: { ...zone, version: written.version, serial: written.serial, flattened: alias ? await readFlattened(tx, zone.id) : zone.flattened } };
}

/** Errors: `managed_record` for a record that a product keeps. */
export function requireUnmanaged({ managed }: RecordRow): void {
  if (managed) throw new AppError('managed_record', `This record is kept by ${managed === 'nameserver' ? 'the zone itself' : managed}; change it there.`, { managed });
}
