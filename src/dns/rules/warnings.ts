import { isGlobalUnicast } from './global-addresses';
import { isWithinName, relativeName } from './names';
import type { RecordIndex } from './record-index';
import type { ZoneRecord } from './rrset';

export type RecordWarning = { code: 'private_address' | 'underscore_host' | 'missing_glue' | 'single_ns' | 'target_unresolved'; message: string };

/** What is allowed but seldom meant, of the written records in the state after the write (contract dns.md §4.4). Each code once per record. */
export function recordWarnings(zone: RecordIndex, written: readonly ZoneRecord[]): RecordWarning[] {
  return written.flatMap((record) => [...ownWarnings(record), ...targetWarnings(record, zone)]);
}

function ownWarnings({ type, name, value, proxied }: ZoneRecord): RecordWarning[] {
  const warnings: RecordWarning[] = [];
  const isAddress = type === 'A' || type === 'AAAA';
  if (isAddress && !proxied && !isGlobalUnicast(value)) warnings.push({ code: 'private_address', message: `${value} is not an address on the public internet.` });
  if ((isAddress || type === 'MX') && name.includes('_')) warnings.push({ code: 'underscore_host', message: `Hosts have no "_" in their names; ${name} will not be reached by every client.` });
  return warnings;
}

function targetWarnings(record: ZoneRecord, zone: RecordIndex): RecordWarning[] {
  if (record.type !== 'CNAME' && record.type !== 'MX' && record.type !== 'NS') return [];
  const warnings: RecordWarning[] = [];
  const target = relativeName(record.value, zone.domain);
  const known = target === null || target === '@' || zone.answering(target).length > 0 || (zone.cutOf(target) !== null && record.type !== 'NS');
  if (record.type === 'NS') {
    if (target !== null && isWithinName(target, record.name) && !known) warnings.push({ code: 'missing_glue', message: `${record.value} is below ${record.name}: add its A or AAAA record here, too.` });
    if (zone.at(record.name).filter(({ type }) => type === 'NS').length === 1) warnings.push({ code: 'single_ns', message: `${record.name} is delegated to one name server only.` });
  } else if (!known) warnings.push({ code: 'target_unresolved', message: `${record.value} does not exist in this zone.` });
  return warnings;
}
