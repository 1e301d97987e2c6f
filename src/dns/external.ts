import type { DnsDeps } from './deps';
import { fqdnOf } from './rules/names';
import type { Platform } from './rules/platform';
import type { SyncReport } from './sync-report';
import { listProxiedInTurn } from './store/records';
import type { ZoneRow } from './store/zones';
import { verificationRecord } from './view';

/** Where the names of an external zone lead: `<token>.<edge suffix>`, answered with the gateway's addresses. */
export function cnameTargetOf({ edgeSuffix }: Pick<Platform, 'edgeSuffix'>, { cnameToken }: Pick<ZoneRow, 'cnameToken'>): string {
  return `${cnameToken ?? ''}.${edgeSuffix}`;
}

/**
 * What an external zone needs at its own provider: the proof until it is given, and for each proxied name an alias to us; the
 * apex, which can have none, takes the gateway's addresses. Nothing for a zone hosted here.
 */
export async function requiredElsewhere({ db, dnsPlatform }: Pick<DnsDeps, 'db' | 'dnsPlatform'>, zone: ZoneRow): Promise<SyncReport['required']> {
  if (zone.mode !== 'external') return [];
  const { ipv4, ipv6 } = dnsPlatform.gatewayAddresses;
  const apex = [...ipv4.map((value) => ({ type: 'A', name: zone.domain, value })), ...ipv6.map((value) => ({ type: 'AAAA', name: zone.domain, value }))];
  const names = zone.proxiedCount > 0 ? await listProxiedInTurn(db.prisma, zone.id, '') : [];
  return [
    ...zone.provenAt === null ? [verificationRecord(zone)] : [],
    ...names.flatMap((name) => (name === '@' ? apex : [{ type: 'CNAME', name: fqdnOf(name, zone.domain), value: cnameTargetOf(dnsPlatform, zone) }])),
  ];
}
