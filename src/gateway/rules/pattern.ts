import { setFlagsFromString } from 'node:v8';
import { RE2JS } from 're2js';
import { costFault } from './pattern/cost';
import { requiredLiterals } from './pattern/literals';
import { parsePattern } from './pattern/parse';
import { PatternError } from './pattern/tree';
import { writePattern } from './pattern/write';

// Before the first pattern: V8 hands a pattern that backtracks too often to its linear engine (contract gateway.md §4.2).
setFlagsFromString('--enable-experimental-regexp-engine');
setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');

export { PatternError } from './pattern/tree';

/** `guarded`: V8 with its linear engine behind it, and re2js for long values. `re2`: linear by construction. `prefix`: plain V8 on the first 1,024 characters. */
export type Guard = 'guarded' | 're2' | 'prefix';

/** Source `user`: RegExp's own dialect, refused unless guarded. `file`: PCRE's as a rule file writes it. */
export interface PatternOptions {
  readonly source: 'user' | 'file';
  readonly ignoreCase?: boolean;
  /** Whether `exec` must answer groups; without, more patterns can be guarded. */
  readonly captures?: boolean;
}

export interface CompiledPattern {
  /** As it was given. */
  readonly source: string;
  readonly guard: Guard;
  /** In lower case: a value without any of them (in lower case) never matches; null when nothing can be said. */
  readonly literals: readonly string[] | null;
  test(value: string): boolean;
  /** The match and its groups, at most ten. */
  exec(value: string): readonly (string | undefined)[] | null;
}

export const userPatternMax = 512;
export const unguardedValueMax = 1_024;
/** Longer values are run by re2js. */
const shortValueMax = 512;
const groupsMax = 10;
const selfTestMaxMs = 100;

/**
 * A pattern that cannot hold the event loop, whatever the value. Throws PatternError: not readable, too long, or a user's that V8's linear engine
 * cannot run, or not soon enough (`unsafe_regex` in the API).
 */
export function compilePattern(source: string, options: PatternOptions): CompiledPattern {
  const user = options.source === 'user';
  if (user && source.length > userPatternMax) throw new PatternError(`it is longer than ${userPatternMax} characters`);
  const { tree, references, multiline } = parsePattern(source, { dialect: user ? 'user' : 'pcre', ignoreCase: options.ignoreCase ?? false });
  const fault = user ? costFault(tree) : null;
  if (fault !== null) throw new PatternError(fault);
  const captures = references || (options.captures ?? false);
  const literals = requiredLiterals(tree);
  const flags = multiline ? 'm' : '';
  const plain = writePattern(tree, { split: false, captures });
  const re2 = () => attempt(() => RE2JS.compile(plain.replaceAll('[^]', '[\\x00-\\x{10FFFF}]'), multiline ? RE2JS.MULTILINE : 0));
  const split = attempt(() => writePattern(tree, { split: true, captures }));
  if (split !== null && isLinear(split, flags)) return { source, guard: 'guarded', literals, ...byLength(onV8(new RegExp(split, flags), Infinity), re2) };
  if (user) throw new PatternError('it uses what cannot be run in linear time: look-around, back-references or too large repeats');
  const linear = re2();
  if (linear) return { source, guard: 're2', literals, ...onRe2(linear) };
  return { source, guard: 'prefix', literals, ...onV8(new RegExp(plain, flags), unguardedValueMax) };
}

/** Ends the process's start when the guard does not work: `^(a+)+$` on 36 characters within 100 ms. */
export function requireGuardedPatterns(): void {
  const pattern = compilePattern('^(a+)+$', { source: 'user' });
  const start = performance.now();
  const matched = pattern.test(`${'a'.repeat(35)}!`);
  const ms = performance.now() - start;
  if (matched || ms >= selfTestMaxMs) throw new Error(`Regular expressions are not guarded: ^(a+)+$ took ${Math.round(ms)} ms on 36 characters.`);
}

function isLinear(source: string, flags: string): boolean {
  return attempt(() => new RegExp(source, `${flags}l`)) !== null;
}

type Run = Pick<CompiledPattern, 'test' | 'exec'>;

/** V8's linear engine needs up to 20 ms for 1,024 hostile characters, re2js's automaton a tenth of one for 8 KiB: long values are its own. */
function byLength(short: Run, compile: () => RE2JS | null): Run {
  let long: Run | undefined;
  const runFor = (value: string): Run => {
    if (value.length <= shortValueMax) return short;
    if (!long) {
      const re2 = compile();
      long = re2 ? onRe2(re2) : short;
    }
    return long;
  };
  return { test: (value) => runFor(value).test(value), exec: (value) => runFor(value).exec(value) };
}

function onV8(pattern: RegExp, lengthMax: number): Run {
  if (lengthMax === Infinity) return { test: (value) => pattern.test(value), exec: (value) => pattern.exec(value)?.slice(0, groupsMax) ?? null };
  return { test: (value) => pattern.test(value.slice(0, lengthMax)), exec: (value) => pattern.exec(value.slice(0, lengthMax))?.slice(0, groupsMax) ?? null };
}

function onRe2(pattern: RE2JS): Run {
  return {
    test: (value) => pattern.test(value),
    exec: (value) => {
      const matcher = pattern.matcher(value);
      if (!matcher.find()) return null;
      const count = Math.min(groupsMax, matcher.groupCount() + 1);
      return Array.from({ length: count }, (_, group) => matcher.group(group) ?? undefined);
    },
  };
}

function attempt<T>(make: () => T): T | null {
  try {
    return make();
  } catch {
    return null;
  }
}
