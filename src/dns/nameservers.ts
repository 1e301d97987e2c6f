import type { Tx } from '../db/transaction';
import type { DnsDeps } from './deps';
import { ensureManagedRecords } from './managed';
import { isAtOrBelow } from './rules/domains';
import { fqdnOf } from './rules/names';
import { ourAddresses, ownNameservers } from './rules/platform';
import type { ZoneMode, ZoneRow } from './store/zones';

type Warning = { code: string; message: string };

const ttl = 3_600;
const warnMs = 2_000;

/**
 * The zone's own names among its custom name servers have A and AAAA records with our addresses, kept by the platform; names
 * that are custom no longer have none. What a user wrote in their way stays, and is warned about. The row must be locked.
 */
export async function ensureNameserverRecords(tx: Tx, deps: Pick<DnsDeps, 'dnsPlatform'>, zone: Pick<ZoneRow, 'id' | 'domain' | 'mode' | 'customNameservers'>): Promise<Warning[]> {
  const wanted = ownNameservers(deps.dnsPlatform, zone).flatMap(({ name, addresses }) => addresses.map((value) => ({ type: value.includes(':') ? 'AAAA' as const : 'A' as const, name: `${name}.`, value, ttl })));
  const { records } = await ensureManagedRecords(tx, deps, { zoneId: zone.id, owner: 'nameserver', ownerId: zone.id, records: wanted });
  const blocked = new Set(records.filter(({ published }) => !published).map(({ name }) => name));
  return [...blocked].map((name) => ({ code: 'nameserver_record_blocked', message: `Records at ${fqdnOf(name, zone.domain)} stand in the way of the addresses of our name servers. Delete them, then set the name servers again.` }));
}

/** Custom names outside the zone must lead to our name servers; who answers for them is asked before the zone is written. Never longer than 2 s; silence is no fault. */
export async function warnOfNameservers(deps: Pick<DnsDeps, 'dnsPlatform' | 'dnsResolver'>, zone: { domain: string; mode: ZoneMode }, names: readonly string[]): Promise<Warning[]> {
  const outside = zone.mode === 'external' ? [] : names.filter((name) => !isAtOrBelow(name, zone.domain));
  const found = await Promise.all(outside.map((name) => findAddresses(deps, name, warnMs)));
  const ours = [...ourAddresses(deps.dnsPlatform)];
  return found.filter((host) => isElsewhere(deps, host)).map(({ name, addresses }) => ({
    code: 'custom_nameservers_wrong_address',
    message: `${name} ${addresses.length > 0 ? `leads to ${addresses.join(', ')}` : 'has no address'}; point it at our name servers (${ours.join(', ')}).`,
  }));
}

/** A host with what DNS says of its addresses. */
export type Host = { name: string; addresses: readonly string[]; conclusive: boolean };

export async function findAddresses({ dnsResolver }: Pick<DnsDeps, 'dnsResolver'>, name: string, budgetMs: number): Promise<Host> {
  const answers = await Promise.all((['A', 'AAAA'] as const).map((type) => dnsResolver.resolve(name, type, { freshness: 'live', budgetMs })));
  const addresses = answers.flatMap(({ records }) => records.filter(({ type }) => type === 'A' || type === 'AAAA').map(({ value }) => value));
  return { name, addresses, conclusive: answers.every(({ conclusive }) => conclusive) };
}

/** Whether a name server is not, or not only, one of ours. What DNS did not say is no no. */
export function isElsewhere({ dnsPlatform }: Pick<DnsDeps, 'dnsPlatform'>, { addresses, conclusive }: Host): boolean {
  const ours = ourAddresses(dnsPlatform);
  return addresses.some((address) => !ours.has(address)) || (conclusive && addresses.length === 0);
}
