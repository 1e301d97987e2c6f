import { createHash } from 'node:crypto';
import * as decode from './decode';
import * as shape from './shape';

/** A pure function from byte string to byte string. */
export type Transformation = (value: string) => string;

const digest = (algorithm: string): Transformation => (value) => createHash(algorithm).update(value, 'latin1').digest().toString('latin1');

const byName: Readonly<Record<string, Transformation>> = {
  ...decode, ...shape,
  base64Encode: (value) => Buffer.from(value, 'latin1').toString('base64'),
  hexEncode: (value) => Buffer.from(value, 'latin1').toString('hex'),
  length: (value) => String(value.length),
  sha1: digest('sha1'), md5: digest('md5'),
  normalisePath: shape.normalizePath, normalisePathWin: shape.normalizePathWin,
};

const names = Object.keys(byName);
const indexes = new Map(names.map((name, index) => [name.toLowerCase(), index]));

/** Index of a transformation by its name in any case; undefined when it is not known. */
export function transformationIndex(name: string): number | undefined {
  return indexes.get(name.toLowerCase());
}

/** All transformations by index. */
export const transformations: readonly Transformation[] = names.flatMap((name) => byName[name] ?? []);
