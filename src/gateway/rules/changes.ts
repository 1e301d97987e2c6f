import { canonicalJson } from '../../core/canonical-json';

/** What differs between two policies at one place. Entries of a list are named by their id; of lists of values, what left and what joined. */
export type PolicyChange = { path: string; from: unknown; to: unknown };

/** Every difference, in the order of the members. None exactly when both are the same policy. */
export function policyChanges(before: object, after: object): PolicyChange[] {
  return compare('', before, after);
}

function compare(path: string, before: unknown, after: unknown): PolicyChange[] {
  if (canonicalJson(before) === canonicalJson(after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) return isEntries(before) && isEntries(after) ? compareEntries(path, before, after) : [compareValues(path, before, after)];
  if (!isObject(before) || !isObject(after) || /\.match$/.test(path)) return [{ path, from: before ?? null, to: after ?? null }];
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return keys.flatMap((key) => compare(path === '' ? key : `${path}.${key}`, before[key], after[key]));
}

type Entry = { id: string; [member: string]: unknown };

function compareEntries(path: string, before: readonly Entry[], after: readonly Entry[]): PolicyChange[] {
  const [old, present] = [new Map(before.map((entry) => [entry.id, entry])), new Map(after.map((entry) => [entry.id, entry]))];
  const gone = before.filter(({ id }) => !present.has(id)).map((entry) => ({ path: `${path}.${entry.id}`, from: entry, to: null }));
  const rest = after.flatMap((entry) => {
    const known = old.get(entry.id);
    return known ? compare(`${path}.${entry.id}`, known, entry) : [{ path: `${path}.${entry.id}`, from: null, to: entry }];
  });
  const [from, to] = [before.filter(({ id }) => present.has(id)), after.filter(({ id }) => old.has(id))].map((kept) => kept.map(({ id }) => id));
  return [...gone, ...rest, ...(from?.join() === to?.join() ? [] : [{ path, from, to }])];
}

function compareValues(path: string, before: readonly unknown[], after: readonly unknown[]): PolicyChange {
  const [old, present] = [new Set(before), new Set(after)];
  const [left, joined] = [before.filter((value) => !present.has(value)), after.filter((value) => !old.has(value))];
  return left.length + joined.length > 0 ? { path, from: left, to: joined } : { path, from: before, to: after };
}

function isEntries(values: readonly unknown[]): values is Entry[] {
  return values.every((value) => isObject(value) && typeof value['id'] === 'string');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
