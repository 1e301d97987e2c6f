import { invalid } from '../core/errors';
import type { DnsDeps } from './deps';
import type { ZoneAnswer } from './ports';
import { changeSetOf } from './rules/change-set';
import { canonicalRecordName, fqdnOf } from './rules/names';
import { readRecords } from './store/records';
import type { ZoneRow } from './store/zones';

/** What our servers answer for a name of the zone as it is stored now, and why. Errors: `validation_error` for a name that is not in the zone. */
export async function resolveInZone(deps: Pick<DnsDeps, 'db' | 'dnsPlatform' | 'dnsLookup'>, zone: ZoneRow, question: { name: string; type: string }): Promise<ZoneAnswer> {
  const parsed = canonicalRecordName(question.name, zone.domain);
  if (parsed.fault !== undefined) throw invalid([{ path: 'name', message: parsed.fault }]);
  const name = fqdnOf(parsed.value, zone.domain);
  if (!zone.served) return refused(zone, name);
  const records = await readRecords(deps.db.prisma, zone.id);
  return deps.dnsLookup(changeSetOf({ kind: 'full', zone: { ...zone, zoneId: zone.id }, records }, deps.dnsPlatform), name, question.type);
}

function refused({ mode, domain }: ZoneRow, name: string): ZoneAnswer {
  const detail = mode === 'external' ? `${domain} is answered by its own name servers.` : `${domain} is held by another claim, or delegated elsewhere above.`;
  return { rcode: 'REFUSED', aa: false, answer: [], authority: [], trace: [{ name, step: 'not_served', detail }] };
}
