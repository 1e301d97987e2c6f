import { systemCause, type Cause } from '../core/caller';
import type { Tx } from '../db/transaction';
import { nextSerial } from './rules/serials';
import { bumpZone, type ZoneRow } from './store/zones';

/** The next version and serial of a zone; the row must be locked. */
export function nextVersion(zone: Pick<ZoneRow, 'version' | 'serial'>, now = new Date()): { version: number; serial: number } {
  return { version: zone.version + 1, serial: nextSerial(zone.serial, now) };
}

/** Every answer of the zone may have changed: servers load it anew. */
export async function bumpWhole(
  tx: Tx, zone: Pick<ZoneRow, 'id' | 'version' | 'serial' | 'recordCount' | 'proxiedCount'>, { actor, requestId }: Pick<Cause, 'actor' | 'requestId'> = systemCause('bumpWhole'),
): Promise<void> {
  await bumpZone(tx, { id: zone.id, ...nextVersion(zone), recordCount: zone.recordCount, proxiedCount: zone.proxiedCount, all: true }, { actor, requestId, created: 0, updated: 0, deleted: 0, changes: [] });
}
