import { MockActivityEnvironment } from '@temporalio/testing';
import { createDnsActivities } from '../../activities/dns';
import type { TableResolver } from '../../src/adapters/dns-resolver/table';
import type { Delegation } from '../../src/dns/ports';
import type { Api } from './api';

/** Columns of a zone that hold times: with all of them set back, that much time has passed for it. */
const times = [
  'created_at', 'updated_at', 'restored_at', 'proven_at', 'last_checked_at', 'next_check_at', 'check_lease_until', 'ladder_started_at', 'first_miss_at', 'last_conclusive_no_at', 'former_until',
  'activated_at', 'moved_at', 'suspended_at', 'deleted_at', 'purge_at', 'last_synced_at',
];

/** So much time passes for one zone. */
export async function pass(api: Api, zoneId: string, ms: number): Promise<void> {
  const shifted = times.map((column) => `${column} = ${column} - $2::float8 * interval '1 millisecond'`).join(', ');
  await api.deps.db.pool.query(`update dns_zone set ${shifted} where id = $1`, [zoneId, ms]);
}

/** What the zone's workflow does at each turn, against DNS as the table has it. */
export function checkOnce(api: Api, dnsResolver: TableResolver, zoneId: string): Promise<{ delayMs: number | null; status: string | null }> {
  const activities = createDnsActivities({ ...api.deps, dnsResolver });
  return new MockActivityEnvironment().run(activities.ensureZoneChecked, { zoneId });
}

/** A delegation by `test`, conclusive. */
export function delegatedTo(...names: string[]): Delegation {
  return { outcome: 'answer', conclusive: true, consistent: true, ttl: 3600, parentZone: 'test', parentServers: ['a.nic.test'], nameservers: names.map((name) => ({ name, addresses: [] })) };
}

/** The servers of `test` keep silent. */
export const silentParent: Delegation = { outcome: 'timeout', conclusive: false, consistent: true, ttl: 0, parentZone: 'test', parentServers: [], nameservers: [] };
