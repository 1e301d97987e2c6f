import { setTimeout as pause } from 'node:timers/promises';
import { systemCause } from '../core/caller';
import { AppError, invalid } from '../core/errors';
import { inTransaction, type Tx } from '../db/transaction';
import type { DnsDeps } from './deps';
import { requireZone } from './faults';
import { fqdnOf, relativeName } from './rules/names';
import { recordsAt } from './store/surroundings';
import type { RecordRow } from './store/records';
import { loadZone, lockAnyZone, type ZoneRow } from './store/zones';
import { publishedVersionOf } from './view';
import { writeZone, type RecordWrites } from './write';

type ChallengeDeps = Pick<DnsDeps, 'db' | 'dnsPlatform'>;
type Challenge = { zoneId: string; fqdn: string; value: string };

const ttlSeconds = 60;
const pollMs = 25;
const waitDefaultMs = 10_000;

/**
 * Every live server answers this TXT at this name, which must be inside the zone. The record is nobody's to see. Errors:
 * `not_found`; `invalid_state` for a zone that our servers do not answer; the state rules of contract dns.md §4.4;
 * `deadline_exceeded` when a server does not have it in time, and it may be asked for again.
 */
export async function ensureChallenge(deps: ChallengeDeps, challenge: Challenge, { waitMs = waitDefaultMs } = {}): Promise<void> {
  const version = await inTransaction(deps.db, async (tx) => {
    const { zone, name, there } = await read(tx, challenge);
    if (!zone.served) throw new AppError('invalid_state', 'Our name servers do not answer for this zone.', { status: zone.status });
    if (there.some(({ value }) => value === challenge.value)) return zone.version;
    const fields = { name: fqdnOf(name, zone.domain), value: challenge.value, ...(there.length === 0 ? { ttl: ttlSeconds } : {}) };
    return write(tx, deps, zone, { creates: [{ type: 'TXT', fields }], owner: { managed: 'certificate', managedId: zone.id, challenge: true } });
  });
  for (const end = Date.now() + waitMs; ; await pause(pollMs)) {
    const zone = requireZone(await loadZone(deps.db.prisma, challenge.zoneId));
    if (publishedVersionOf(zone) >= version) return;
    if (Date.now() >= end) throw new AppError('deadline_exceeded', `Not every name server answers ${challenge.fqdn} yet.`);
  }
}

/** The challenge is gone with the next publication; one that a user wrote alike stays. Nothing happens when there is none, or no zone. */
export async function removeChallenge(deps: ChallengeDeps, challenge: Challenge): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const zone = await lockAnyZone(tx, challenge.zoneId);
    if (!zone || zone.deletedAt) return;
    const { there } = await read(tx, challenge);
    await write(tx, deps, zone, { deletes: there.filter((record) => record.challenge && record.value === challenge.value) });
  });
}

/** TXT records at the challenge's name; the zone is locked. */
async function read(tx: Tx, { zoneId, fqdn }: Challenge): Promise<{ zone: ZoneRow; name: string; there: RecordRow[] }> {
  const zone = requireZone(await lockAnyZone(tx, zoneId));
  const name = relativeName(fqdn.toLowerCase(), zone.domain);
  if (name === null) throw invalid([{ path: 'fqdn', message: `must be inside ${zone.domain}` }]);
  return { zone, name, there: (await recordsAt(tx, zone.id, [name])).filter(({ type }) => type === 'TXT') };
}

async function write(tx: Tx, { dnsPlatform: platform }: ChallengeDeps, zone: ZoneRow, writes: RecordWrites): Promise<number> {
  return (await writeZone(tx, { platform, zone, cause: systemCause('writeDnsChallenge') }, writes)).version;
}
