/** The parts of a pattern. Characters are latin1 codes; a set is sorted, disjoint ranges. */
export type Range = readonly [from: number, to: number];

export type Node =
  | { readonly kind: 'set'; readonly ranges: readonly Range[]; readonly unicode: boolean }
  | { readonly kind: 'sequence'; readonly parts: readonly Node[] }
  | { readonly kind: 'choice'; readonly options: readonly Node[] }
  | { readonly kind: 'repeat'; readonly of: Node; readonly min: number; readonly max: number; readonly lazy: boolean }
  | { readonly kind: 'group'; readonly of: Node; readonly capture: boolean; readonly name: string | null }
  | { readonly kind: 'assert'; readonly text: '^' | '$' | '\\b' | '\\B' }
  | { readonly kind: 'look'; readonly of: Node; readonly open: '?=' | '?!' | '?<=' | '?<!' | '?>' }
  | { readonly kind: 'reference'; readonly text: string };

/** A pattern that cannot be read. The message is for whoever wrote it. */
export class PatternError extends Error {}

export const codeMax = 0xff;
const unicodeMax = 0xffff;

/** Sorted ranges without overlap. */
export function joinRanges(ranges: readonly Range[]): Range[] {
  const out: [number, number][] = [];
  for (const [from, to] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = out.at(-1);
    if (last && from <= last[1] + 1) last[1] = Math.max(last[1], to);
    else out.push([from, to]);
  }
  return out;
}

/** All characters not in `ranges`, above latin1 too: values of our own rules are latin1, a customer's may hold more. */
export function invertRanges(ranges: readonly Range[]): Range[] {
  const out: Range[] = [];
  let next = 0;
  for (const [from, to] of joinRanges(ranges)) {
    if (from > next) out.push([next, from - 1]);
    next = to + 1;
  }
  if (next <= unicodeMax) out.push([next, unicodeMax]);
  return out;
}

/** Adds the other case of every ASCII letter. */
export function foldCase(ranges: readonly Range[]): Range[] {
  const out = [...ranges];
  for (const [from, to] of ranges) {
    for (const [low, high, shift] of [[0x41, 0x5a, 32], [0x61, 0x7a, -32]] as const) {
      const [start, end] = [Math.max(from, low), Math.min(to, high)];
      if (start <= end) out.push([start + shift, end + shift]);
    }
  }
  return joinRanges(out);
}

const digits: readonly Range[] = [[0x30, 0x39]];
const spaces: readonly Range[] = [[9, 13], [32, 32]];
const word: readonly Range[] = [[0x30, 0x39], [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]];
const upper: readonly Range[] = [[0x41, 0x5a]];
const lower: readonly Range[] = [[0x61, 0x7a]];

/** POSIX classes in the C locale. */
export const posixClasses: ReadonlyMap<string, readonly Range[]> = new Map([
  ['alpha', [...upper, ...lower]], ['digit', digits], ['alnum', [...digits, ...upper, ...lower]], ['upper', upper], ['lower', lower],
  ['space', spaces], ['blank', [[9, 9], [32, 32]]], ['cntrl', [[0, 31], [127, 127]]], ['graph', [[33, 126]]], ['print', [[32, 126]]],
  ['punct', [[33, 47], [58, 64], [91, 96], [123, 126]]], ['xdigit', [...digits, [0x41, 0x46], [0x61, 0x66]]], ['word', word],
] satisfies [string, readonly Range[]][]);

/** Escapes that stand for a set, in the C locale as PCRE reads them without UTF mode. */
export const escapeClasses: ReadonlyMap<string, readonly Range[]> = new Map([
  ['d', digits], ['D', invertRanges(digits)], ['s', spaces], ['S', invertRanges(spaces)], ['w', word], ['W', invertRanges(word)],
  ['h', [[9, 9], [32, 32], [0xa0, 0xa0]]], ['H', invertRanges([[9, 9], [32, 32], [0xa0, 0xa0]])],
  ['v', [[10, 13], [0x85, 0x85]]], ['V', invertRanges([[10, 13], [0x85, 0x85]])], ['N', invertRanges([[10, 10]])],
] satisfies [string, readonly Range[]][]);
