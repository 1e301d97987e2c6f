import type { ZoneChangeSet } from '../ports';
import { apexSets, effectiveName, effectiveZone, type ServedRecord, type ZoneFacts } from './effective';
import { fqdnOf } from './names';
import { nameserversOf, type Platform } from './platform';
import { grouped, recordTypes } from './rrset';

type Zone = Pick<ZoneFacts, 'domain' | 'mode' | 'status' | 'serial' | 'flattened'> & Pick<ZoneChangeSet, 'zoneId' | 'version'> & { token: string; customNameservers: readonly string[] };

/** A zone as whoever answers for it needs it: all of it, or what stands now at the names that changed since the version they have. */
export type ZoneContent =
  | { kind: 'full'; zone: Zone; records: readonly ServedRecord[] }
  | { kind: 'diff'; zone: Zone; fromVersion: number; names: readonly string[]; records: readonly ServedRecord[] };

/** What a zone's answers depend on besides its records. */
export function factsOf(zone: Omit<Zone, 'zoneId' | 'version'>, platform: Platform): ZoneFacts {
  const { domain, mode, status, serial, flattened } = zone;
  return { domain, mode, status, serial, flattened, nameservers: nameserversOf(platform, zone), soaRname: platform.soaRname, gatewayAddresses: platform.gatewayAddresses };
}

/** The step from what they have to the zone's version, in effective RRsets. */
export function changeSetOf(content: ZoneContent, platform: Platform): ZoneChangeSet {
  const { zone } = content;
  const facts = factsOf(zone, platform);
  const head = { zoneId: zone.zoneId, domain: zone.domain, version: zone.version, serial: zone.serial };
  if (content.kind === 'full') return { ...head, fromVersion: null, kind: 'full', replace: effectiveZone(facts, content.records), remove: [] };
  const byName = grouped(content.records, ({ name }) => name);
  const replace = content.names.flatMap((name) => effectiveName(facts, name, byName.get(name) ?? []));
  const stay = new Set([...replace.map(({ name, type }) => `${name} ${type}`), `${zone.domain} NS`]);
  const remove = content.names.flatMap((name) => recordTypes.map((type) => ({ name: fqdnOf(name, zone.domain), type }))).filter(({ name, type }) => !stay.has(`${name} ${type}`));
  return { ...head, fromVersion: content.fromVersion, kind: 'diff', replace: [...replace, ...apexSets(facts)], remove };
}
