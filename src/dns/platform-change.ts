import { inTransaction, type Tx } from '../db/transaction';
import type { DnsDeps } from './deps';
import { ensureNameserverRecords } from './nameservers';
import type { Platform } from './rules/platform';
import { listConcerned, readPlatform, writePlatform, type Concern, type KnownPlatform } from './store/platform';
import { loadZone, lockAnyZone } from './store/zones';
import { bumpWhole } from './versions';

type ChangeDeps = Pick<DnsDeps, 'db' | 'dnsPlatform'>;

const pageMax = 100;

/**
 * Zones whose answers depend on DNS_SERVERS or GATEWAY_PUBLIC_ADDRESSES are at a new version when these are not what the last
 * worker found: how many. Interrupted, it begins anew at the next start.
 */
export async function followPlatform(deps: ChangeDeps): Promise<number> {
  const present = knownOf(deps.dnsPlatform);
  const before = await readPlatform(deps.db.prisma);
  const concern = before && concernOf(before, present);
  if (concern && !concern.count && !concern.addresses && !concern.gateway) return 0;
  let bumped = 0;
  for (let after = ''; concern;) {
    const page = await listConcerned(deps.db.prisma, after, concern, pageMax);
    for (const { id } of page) await inTransaction(deps.db, (tx) => renew(tx, deps, id));
    bumped += page.length;
    const last = page.at(-1);
    if (!last) break;
    after = last.id;
  }
  await writePlatform(deps.db.prisma, present);
  return bumped;
}

/** One zone at a time: whoever writes two at once could wait for somebody who waits for him. */
async function renew(tx: Tx, deps: ChangeDeps, zoneId: string): Promise<void> {
  const zone = await lockAnyZone(tx, zoneId);
  if (!zone || zone.deletedAt) return;
  if (zone.customNameservers.length > 0) await ensureNameserverRecords(tx, deps, zone);
  const written = await loadZone(tx, zoneId);
  if (written) await bumpWhole(tx, written);
}

function knownOf({ servers, gatewayAddresses }: Platform): KnownPlatform {
  return { servers: servers.map(({ addresses }) => [...addresses]), gatewayAddresses: [...gatewayAddresses.ipv4, ...gatewayAddresses.ipv6] };
}

/** Ports are for our own checks: no answer holds one. */
function concernOf(before: KnownPlatform, present: KnownPlatform): Concern {
  return {
    count: before.servers.length !== present.servers.length,
    addresses: JSON.stringify(before.servers) !== JSON.stringify(present.servers),
    gateway: before.gatewayAddresses.join() !== present.gatewayAddresses.join(),
  };
}
