import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/canonical-json';

/**
 * Every entry of a list of the policy has an id: its own, or one made of its content. The same entry without an id so keeps
 * the id it got, wherever it stands in the list, and repeating a request changes nothing.
 */
export function withIds<E extends { id?: string | undefined }>(entries: readonly E[]): (E & { id: string })[] {
  const taken = new Set(entries.flatMap(({ id }) => id ?? []));
  return entries.map((entry) => {
    const id = entry.id ?? freeId(entry, taken);
    taken.add(id);
    return { ...entry, id };
  });
}

/** Ids that stand more than once, with the place of the repetition. */
export function repeatedIds(entries: readonly { id?: string | undefined }[]): { id: string; index: number }[] {
  return entries.flatMap(({ id }, index) => (id !== undefined && entries.findIndex((other) => other.id === id) < index ? [{ id, index }] : []));
}

function freeId(entry: object, taken: ReadonlySet<string>): string {
  const base = `r-${createHash('sha256').update(canonicalJson({ ...entry, id: null })).digest('hex').slice(0, 8)}`;
  for (let n = 1; ; n++) {
    const id = n === 1 ? base : `${base}-${n}`;
    if (!taken.has(id)) return id;
  }
}
