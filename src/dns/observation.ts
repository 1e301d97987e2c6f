import { inTransaction } from '../db/transaction';
import type { DnsDeps } from './deps';
import type { ServerState, ZoneChangeSet } from './ports';
import { changeSetOf } from './rules/change-set';
import { compareRRsets, isDrift, isMassChange, mergeChanges, noChanges, type FoundRRset, type RRsetChanges } from './rules/drift';
import { fqdnOf } from './rules/names';
import { readZone } from './store/feed';
import { markApplied, readServers } from './store/sync';
import { loadZone, lockAnyZone, type ZoneRow } from './store/zones';
import { bumpWhole } from './versions';

export type PublishDeps = Pick<DnsDeps, 'db' | 'dnsPlatform' | 'dnsBackend'>;

/** What a zone should be, what is answered, and how they differ. */
export type Observation = {
  zone: ZoneRow;
  /** All of it in full; its removal when it is answered by nobody. */
  wanted: ZoneChangeSet;
  changes: RRsetChanges;
  /** What the first server has; null: nothing, or it was not asked. */
  found: readonly FoundRRset[] | null;
  servers: ServerState[];
  inSync: boolean;
  /** Our own servers say that they have the version, and answer something else. */
  corrupt: boolean;
};

/** Null when the zone is gone for good. Errors: as DnsBackend.readZone. */
export async function observeZone(deps: PublishDeps, zoneId: string): Promise<Observation | null> {
  const zone = await loadZone(deps.db.prisma, zoneId);
  if (!zone) return null;
  const content = await readZone(deps.db, zoneId, null);
  if (content.kind === 'gone') return unserved(deps, zone);
  const wanted = changeSetOf(content, deps.dnsPlatform);
  return deps.dnsBackend.pushed ? observePushed(deps, zone, wanted) : observeFollowing(deps, zone, wanted);
}

/** What nobody answers is in sync, unless a push backend still has it. */
function unserved({ dnsBackend }: PublishDeps, zone: ZoneRow): Observation {
  const { id, domain, version, serial, appliedVersion } = zone;
  const wanted: ZoneChangeSet = { zoneId: id, domain, version, fromVersion: null, serial, kind: 'remove', replace: [], remove: [] };
  const inSync = !dnsBackend.pushed || appliedVersion === 0 || appliedVersion >= version;
  return { zone, wanted, changes: noChanges, found: null, servers: [], inSync, corrupt: false };
}

async function observePushed({ dnsBackend }: PublishDeps, zone: ZoneRow, wanted: ZoneChangeSet): Promise<Observation> {
  const served = await dnsBackend.readZone(wanted.domain) ?? [];
  const differences = served.length > 0 ? served.map(({ rrsets }) => compareRRsets(wanted.replace, rrsets)) : [compareRRsets(wanted.replace, [])];
  const changes = mergeChanges(differences);
  const isCurrent = zone.appliedVersion >= wanted.version;
  const servers = served.map(({ server, serial }, i) => ({
    name: server, version: zone.appliedVersion || null, serial, inSync: isCurrent && !isDrift(differences[i] ?? noChanges), lagMs: isCurrent ? 0 : Date.now() - zone.versionAt.getTime(),
  }));
  return { zone, wanted, changes, found: served[0]?.rrsets ?? null, servers, inSync: isCurrent && !isDrift(changes), corrupt: false };
}

/** Servers that follow are compared by version; by content, too, where they can be asked for it. */
async function observeFollowing(deps: PublishDeps, zone: ZoneRow, wanted: ZoneChangeSet): Promise<Observation> {
  const servers = await readServers(deps.db.prisma, zone.id);
  const served = servers.length > 0 ? await deps.dnsBackend.readZone(wanted.domain).catch(() => null) : null;
  const compared = (served ?? []).map(({ serial, rrsets }) => ({ isCurrent: serial === wanted.serial, changes: compareRRsets(wanted.replace, rrsets) }));
  const isCurrent = servers.length > 0 && servers.every(({ version }) => version !== null && version >= wanted.version);
  const corrupt = isCurrent && compared.some((one) => one.isCurrent && isDrift(one.changes));
  return { zone, wanted, changes: mergeChanges(compared.map(({ changes }) => changes)), found: served?.[0]?.rrsets ?? null, servers, inSync: isCurrent && !corrupt, corrupt };
}

/** Whether the repair changes so much that somebody has to say that it is meant. Changes of our own versions always are. */
export async function isHeldBack(deps: PublishDeps, { zone, wanted, changes, found }: Observation): Promise<boolean> {
  if (!deps.dnsBackend.pushed || found === null || zone.syncForced || wanted.kind === 'remove') return false;
  if (zone.appliedVersion === 0 || zone.appliedVersion >= wanted.version) return isMassChange(changes, found, new Set());
  const since = await readZone(deps.db, zone.id, zone.appliedVersion);
  return since.kind === 'diff' && isMassChange(changes, found, new Set(since.names.map((name) => fqdnOf(name, zone.domain))));
}

/** The backend is told once: what it has then, and whether that is all of it. Errors: as DnsBackend.applyChangeSet. */
export async function publishOnce(deps: PublishDeps, { zone, wanted, corrupt }: Observation): Promise<{ done: boolean; servers: ServerState[] }> {
  if (corrupt) {
    await raiseVersion(deps, zone.id, wanted.version);
    return { done: false, servers: await readServers(deps.db.prisma, zone.id) };
  }
  const { appliedVersion, servers } = await deps.dnsBackend.applyChangeSet(wanted);
  if (!deps.dnsBackend.pushed) return { done: appliedVersion >= wanted.version, servers };
  await markApplied(deps.db.prisma, zone.id, appliedVersion);
  if (appliedVersion > wanted.version) await raiseVersion(deps, zone.id, appliedVersion);
  return { done: appliedVersion === wanted.version, servers };
}

/**
 * A push backend is taken on from the version it has to the present one, without a look at what it answers. False: it has it,
 * or a whole zone has to be compared. Errors: as DnsBackend.applyChangeSet.
 */
export async function publishStep(deps: PublishDeps, zoneId: string): Promise<boolean> {
  const zone = await loadZone(deps.db.prisma, zoneId);
  if (!zone || zone.syncForced || zone.appliedVersion === 0 || zone.appliedVersion >= zone.version) return false;
  const content = await readZone(deps.db, zoneId, zone.appliedVersion);
  if (content.kind !== 'diff') return false;
  const step = changeSetOf(content, deps.dnsPlatform);
  const { appliedVersion } = await deps.dnsBackend.applyChangeSet(step);
  if (appliedVersion !== step.version) return false;
  await markApplied(deps.db.prisma, zoneId, appliedVersion);
  return true;
}

/** A version above one that is out there already: after a restore of our database, or when a server has gone astray. */
async function raiseVersion(deps: PublishDeps, zoneId: string, above: number): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const zone = await lockAnyZone(tx, zoneId);
    if (zone && zone.version <= above) await bumpWhole(tx, { ...zone, version: above });
  });
}
