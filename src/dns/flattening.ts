import { systemCause } from '../core/caller';
import type { Log } from '../core/log';
import { inTransaction } from '../db/transaction';
import type { Listener } from '../db/listen';
import { startWokenLoop } from '../db/woken-loop';
import type { DnsDeps } from './deps';
import { factsOf } from './rules/change-set';
import { effectiveName } from './rules/effective';
import { canonicalHost, canonicalRecordName, relativeName } from './rules/names';
import { RecordIndex } from './rules/record-index';
import { byText, type RecordType } from './rules/rrset';
import { findRecord, readRecords } from './store/records';
import { claimDueTargets, insertTarget, lockTarget, nextTargetDueInMs, planTarget, writeTarget, type Addresses, type DueTarget } from './store/flattened';
import { bumpZone, findZone, loadZone, lockAnyZone, type ZoneRow } from './store/zones';
import { nextVersion } from './versions';

type FlattenDeps = Pick<DnsDeps, 'db' | 'dnsPlatform' | 'dnsResolver'>;
type WorkerDeps = FlattenDeps & { listener: Listener; log: Log };

const batchMax = 20;
const leaseSeconds = 30;
const idleMaxMs = 30_000;
const budgetMs = 5_000;
const hopsMax = 8;
const ttlDefault = 300;
/** Of a target's ttl, when it is asked about again; and the bounds of that, in seconds. */
const refreshShare = 0.8;
const [refreshMin, refreshMax] = [60, 300];
const addressesMax = 64;

/** Keeps the addresses of apex CNAME targets true: each is asked about at 80 % of its ttl, by one worker. */
export function startFlattening(deps: WorkerDeps): { stop(): Promise<void> } {
  return startWokenLoop({
    listener: deps.listener, channel: 'dns_flattened',
    round: async () => {
      const due = await claimDueTargets(deps.db.prisma, batchMax, leaseSeconds);
      await Promise.all(due.map((row) => refreshTarget(deps, row).catch((error: unknown) => deps.log.warn({ err: error, zoneId: row.zoneId }, 'the target of an apex CNAME could not be refreshed'))));
      return due.length === batchMax ? 0 : Math.min(idleMaxMs, await nextTargetDueInMs(deps.db.prisma) ?? idleMaxMs);
    },
    onFault: (error) => deps.log.warn({ err: error }, 'flattening waits for the database'),
  });
}

/** The target has been asked about; when its addresses or their ttl are others, so are the zone's answers, at a new version. */
export async function refreshTarget(deps: FlattenDeps, row: DueTarget): Promise<void> {
  const zone = await loadZone(deps.db.prisma, row.zoneId);
  if (!zone || zone.deletedAt) return;
  const found = await resolveTarget(deps, zone, row.target, budgetMs);
  await inTransaction(deps.db, async (tx) => {
    const locked = await lockAnyZone(tx, row.zoneId);
    const known = await lockTarget(tx, row.zoneId, row.target);
    if (!locked || !known) return;
    const next = found ?? (known.stale ? { ipv4: [], ipv6: [], ttl: known.ttl } : known);
    if (!isSame(next, known)) {
      const step = nextVersion(locked);
      await writeTarget(tx, row, next, step.version);
      await bumpZone(tx, { id: locked.id, ...step, recordCount: locked.recordCount, proxiedCount: locked.proxiedCount, all: false }, {
        actor: systemCause('flattenApex').actor, requestId: null, created: 0, updated: 0, deleted: 0, changes: [],
      });
    }
    await planTarget(tx, row, { resolved: found !== null, seconds: found ? refreshAfter(found) : refreshMin });
  });
}

/** A write of an apex CNAME asks about its target first, for a second: it is answered from the commit on. What is malformed or takes longer is left to the write and the worker. */
export async function prepareTargets(deps: FlattenDeps, projectId: string, zoneId: string, wishes: readonly ApexWish[]): Promise<void> {
  const candidates = wishes.filter(mayBeAlias);
  const zone = candidates.length > 0 ? await findZone(deps.db.prisma, projectId, zoneId) : null;
  if (!zone || zone.deletedAt) return;
  const targets = new Set((await Promise.all(candidates.map((wish) => apexTarget(deps, zone, wish)))).flatMap((target) => target ?? []));
  await Promise.all([...targets].map(async (target) => {
    const found = await resolveTarget(deps, zone, target, writeBudgetMs);
    if (found) await insertTarget(deps.db.prisma, { zoneId: zone.id, target }, found, refreshAfter(found));
  }));
}

/** A record to be made (`type`), changed or restored (`recordId`). */
export type ApexWish = { type?: RecordType | undefined; recordId?: string; name?: string | undefined; value?: string | undefined };
const writeBudgetMs = 1_000;

/** Told from the request alone, so that writes of addresses and texts cost nothing. */
function mayBeAlias({ type, recordId, value }: ApexWish): boolean {
  if (recordId === undefined) return type === 'CNAME';
  return value === undefined || canonicalHost(value, 'invalid', { underscores: true, wildcard: true }).value !== undefined;
}

async function apexTarget({ db }: FlattenDeps, { id, domain }: ZoneRow, { type, recordId, name, value }: ApexWish): Promise<string | null> {
  const record = recordId === undefined ? null : await findRecord(db.prisma, id, recordId);
  if ((record?.type ?? type) !== 'CNAME') return null;
  const at = name === undefined ? record?.name : canonicalRecordName(name, domain).value;
  return at === '@' ? canonicalHost(value ?? record?.value ?? '', domain, { underscores: true, wildcard: true }).value ?? null : null;
}

/** Addresses a target has; null when nobody could tell. One inside the zone is looked up in the zone, however it is delegated. */
async function resolveTarget(deps: FlattenDeps, zone: ZoneRow, target: string, withinMs: number): Promise<Addresses | null> {
  const own = await followInside(deps, zone, target);
  if ('outside' in own) {
    const found = await askOutside(deps, own.outside, withinMs);
    return found && { ...found, ttl: Math.min(own.ttl, found.ttl) };
  }
  return own;
}

async function followInside(deps: FlattenDeps, zone: ZoneRow, target: string): Promise<Addresses | { outside: string; ttl: number }> {
  let ttl = Infinity;
  if (relativeName(target, zone.domain) === null) return { outside: target, ttl };
  const index = new RecordIndex(zone.domain, await readRecords(deps.db.prisma, zone.id));
  let at = target;
  for (let hops = 0; hops < hopsMax; hops++) {
    const name = relativeName(at, zone.domain);
    if (name === null || name === '@' || index.cutOf(name)) return { outside: at, ttl };
    const sets = effectiveName(factsOf(zone, deps.dnsPlatform), name, index.answering(name));
    const alias = sets.find(({ type }) => type === 'CNAME');
    if (!alias) return addressesOf(sets.map((set) => ({ ...set, ttl: Math.min(ttl, set.ttl) })), ttl);
    ttl = Math.min(ttl, alias.ttl);
    at = alias.values[0] ?? at;
  }
  return { ipv4: [], ipv6: [], ttl: ttlDefault };
}

function addressesOf(sets: readonly { type: string; values: string[]; ttl: number }[], ttlMax: number): Addresses {
  const of = (type: string) => sets.filter((set) => set.type === type);
  const ttl = Math.min(ttlMax, ...[...of('A'), ...of('AAAA')].map((set) => set.ttl));
  return { ipv4: of('A').flatMap(({ values }) => values), ipv6: of('AAAA').flatMap(({ values }) => values), ttl: Number.isFinite(ttl) ? ttl : ttlDefault };
}

/** What the servers responsible say; that they have none is an answer, too. */
async function askOutside({ dnsResolver }: FlattenDeps, target: string, withinMs: number): Promise<Addresses | null> {
  const answers = await Promise.all((['A', 'AAAA'] as const).map((type) => dnsResolver.resolve(target, type, { freshness: 'live', budgetMs: withinMs })));
  if (answers.some(({ conclusive }) => !conclusive)) return null;
  const sets = answers.map(({ records, ttl }, i) => {
    const type = i === 0 ? 'A' : 'AAAA';
    const values = records.filter((record) => record.type === type).map(({ value }) => value).sort(byText).slice(0, addressesMax);
    return { type, values, ttl: values.length > 0 ? ttl : Infinity };
  });
  return addressesOf(sets, Infinity);
}

function refreshAfter({ ttl }: Addresses): number {
  return Math.min(refreshMax, Math.max(refreshMin, Math.round(refreshShare * ttl)));
}

function isSame(a: Addresses, b: Addresses): boolean {
  return a.ttl === b.ttl && a.ipv4.join() === b.ipv4.join() && a.ipv6.join() === b.ipv6.join();
}
