import type { RRset } from './rrset';

/** An RRset somebody answers with: maybe of a type that we never write. */
export type FoundRRset = Omit<RRset, 'type'> & { type: string };

/** How what is answered differs from what should be: `update` is what it should be, `from` what is there. */
export type RRsetChanges = { create: RRset[]; update: (RRset & { from: FoundRRset })[]; delete: FoundRRset[] };

export const noChanges: RRsetChanges = { create: [], update: [], delete: [] };

/** Share of the RRsets of a zone, and how many it must have, that one repair may change or delete at most. */
const massShare = 0.3;
const massFrom = 10;

/** What has to change for `found` to become `wanted`. The SOA is not compared: servers count serials of their own. */
export function compareRRsets(wanted: readonly RRset[], found: readonly FoundRRset[]): RRsetChanges {
  const there = new Map(found.filter(({ type }) => type !== 'SOA').map((set) => [keyOf(set), set]));
  const changes: RRsetChanges = { create: [], update: [], delete: [] };
  for (const set of wanted) {
    if (set.type === 'SOA') continue;
    const from = there.get(keyOf(set));
    there.delete(keyOf(set));
    if (!from) changes.create.push(set);
    else if (!isSame(set, from)) changes.update.push({ ...set, from });
  }
  changes.delete.push(...there.values());
  return changes;
}

/** What differs anywhere: of several servers each difference once. */
export function mergeChanges(all: readonly RRsetChanges[]): RRsetChanges {
  const once = <T extends FoundRRset>(sets: readonly T[]): T[] => [...new Map(sets.map((set) => [keyOf(set), set])).values()];
  const update = once(all.flatMap((changes) => changes.update));
  const updated = new Set(update.map(keyOf));
  return { create: once(all.flatMap((changes) => changes.create)).filter((set) => !updated.has(keyOf(set))), update, delete: once(all.flatMap((changes) => changes.delete)) };
}

export function isDrift({ create, update, delete: gone }: RRsetChanges): boolean {
  return create.length + update.length + gone.length > 0;
}

/**
 * Whether a repair would change or delete so much of what is there that a mistake is likelier than drift: more than 30 % of
 * 10 or more RRsets (contract dns.md §6.1). `meant`: names whose change is known to be one of ours; they do not count.
 */
export function isMassChange(changes: RRsetChanges, found: readonly FoundRRset[], meant: ReadonlySet<string>): boolean {
  const compared = found.filter(({ type }) => type !== 'SOA').length;
  const unexplained = [...changes.update, ...changes.delete].filter(({ name }) => !meant.has(name)).length;
  return compared >= massFrom && unexplained > massShare * compared;
}

function isSame(a: FoundRRset, b: FoundRRset): boolean {
  return a.ttl === b.ttl && a.values.length === b.values.length && a.values.every((value, i) => value === b.values[i]);
}

function keyOf({ name, type }: FoundRRset): string {
  return `${name} ${type}`;
}
