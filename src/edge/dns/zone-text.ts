import type { ZoneChangeSet } from '../../dns/ports';
import { recordTypes, type RrType } from '../../dns/rules/rrset';
import { textName } from '../../dns/rules/wire/name';
import { decodeRdata, flatRdata } from '../../dns/rules/wire/rdata';
import { snapshot, type LoadedZone } from './zone-store';

const rrTypes: readonly RrType[] = [...recordTypes, 'SOA', 'DS'];

/** A loaded zone as the change set that would load it again: for another process, and for after a restart. */
export function wholeZone(zone: LoadedZone): ZoneChangeSet {
  const replace = snapshot(zone).flatMap(({ owner, set }) => rrTypes.filter((type) => type === set.typeName).map((type) => ({
    name: textName(owner), type, ttl: set.ttl,
    values: set.rdatas.map(flatRdata).map((rdata) => decodeRdata(set.type, rdata, 0, rdata.length)),
  })));
  return { zoneId: zone.zoneId, domain: zone.domain, version: zone.version, fromVersion: null, serial: zone.serial, kind: 'full', replace, remove: [] };
}
