import { z } from 'zod';
import type { Issue } from '../core/errors';

/** One issue per unknown key, with the nearest known one where it is near enough to be meant. */
export function unknownKeyIssues(schema: z.ZodType, path: readonly PropertyKey[], keys: readonly string[]): Issue[] {
  const known = knownKeys(schema, path);
  return keys.map((key) => {
    const meant = nearest(key, known);
    return { path: [...path, key].join('.'), message: meant ? `unknown key, not supported; did you mean "${meant}"?` : `unknown key, not supported${known.length > 0 ? `; known are ${known.join(', ')}` : ''}` };
  });
}

function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let current: unknown = unwrap(schema);
  for (const part of path) {
    if (current instanceof z.ZodArray && typeof part === 'number') current = unwrap(current.element);
    else if (current instanceof z.ZodObject && typeof part === 'string') current = unwrap(current.shape[part]);
    else return [];
  }
  return current instanceof z.ZodObject ? Object.keys(current.shape) : [];
}

/** The schema a client sees: under optional, nullable, default and before a transformation. */
function unwrap(schema: unknown): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) return unwrap(schema.unwrap());
  return schema instanceof z.ZodPipe ? unwrap(schema.in) : schema;
}

function nearest(key: string, known: readonly string[]): string | null {
  const ranked = known.map((candidate) => ({ candidate, edits: distance(key.toLowerCase(), candidate.toLowerCase()) }))
    .toSorted((a, b) => a.edits - b.edits);
  const [best] = ranked;
  return best && best.edits <= Math.max(2, Math.floor(best.candidate.length / 3)) ? best.candidate : null;
}

/** Levenshtein; both words are cut at 40, a client's key may be long. */
function distance(a: string, b: string): number {
  const target = b.slice(0, 40);
  let row = Array.from({ length: target.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...a.slice(0, 40)].entries()) {
    const next = [i + 1];
    for (let j = 0; j < target.length; j++) {
      next.push(Math.min((row[j] ?? 0) + (letter === target[j] ? 0 : 1), (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
