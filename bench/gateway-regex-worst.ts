/**
 * Every expression of the loaded rule sets on values made to be hostile to it: one expression may hold the event loop for 50 ms. Values are as long as V8 ever gets (512
 * characters) and as the engine ever gives one expression at once (8 KiB). Prints the slowest, and which expressions run on a prefix only.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CompiledPattern } from '../src/gateway/rules/pattern';
import { loadSets } from '../src/edge/gateway/seclang/sets';
import { print } from './statistics';

const crsDir = process.env['CRS_DIR'] ?? '/usr/share/modsecurity-crs';
const targetMs = 50;
/** The longest that V8 gets, and the longest that re2js gets. */
const valueLengths = [512, 8_192];

function main(): void {
  const { sets, refused } = loadSets({ crsDir: existsSync(crsDir) ? crsDir : null, rulesDir: resolve('rules/base') });
  for (const { ruleSet, reason } of refused) print(`${ruleSet} is not loaded: ${reason}`);
  for (const set of Object.values(sets)) {
    const patterns = set.operators.all.flatMap(({ pattern }) => pattern ?? []);
    const worst = patterns.map((pattern) => ({ pattern, ...slowest(pattern) })).toSorted((a, b) => b.ms - a.ms);
    print(`${set.version}: ${patterns.length} expressions, ${patterns.filter(({ guard }) => guard === 're2').length} by re2js, ${set.unguarded.length} on a prefix; slowest ${worst[0]?.ms.toFixed(1)} ms (target ${targetMs} ms)`);
    for (const { pattern, ms, value } of worst.slice(0, 5)) print(`  ${ms.toFixed(1).padStart(7)} ms  ${pattern.guard.padEnd(7)} ${pattern.source.slice(0, 90)}  on ${JSON.stringify(value.slice(0, 30))}…`);
    for (const source of set.unguarded) print(`  prefix: ${source.slice(0, 120)}`);
  }
}

/** The best of three runs for each value: what the expression costs, not what else the machine does. */
function slowest(pattern: CompiledPattern): { ms: number; value: string } {
  return hostileValues(pattern).map((value) => ({ value, ms: Math.min(timed(pattern, value), timed(pattern, value), timed(pattern, value)) })).reduce((a, b) => (b.ms > a.ms ? b : a));
}

function timed(pattern: CompiledPattern, value: string): number {
  const start = performance.now();
  pattern.test(value);
  return performance.now() - start;
}

/** Repeats of what the expression itself mentions, of what its repeats may eat, and of a near miss. */
function hostileValues({ source, literals }: CompiledPattern): string[] {
  const own = [...source.matchAll(/[A-Za-z]{2,12}/g)].map(([word]) => word.toLowerCase()).slice(0, 12);
  const punctuation = [...new Set(source.replace(/[A-Za-z0-9\s]/g, ''))].slice(0, 12);
  const parts = ['a', ' ', '0', '/', "'", '"', '(', '<', '\\', '\n', '=', ';', ',', '.', 'a ', "' ", '("', '/*', '<a ', '$(', '&#', ...own, ...punctuation, ...(literals ?? []).slice(0, 12)];
  const mixed = [`${own.join(' ')} `, own.join('('), `${(literals ?? []).slice(0, 6).join(' ')}!`, punctuation.join('')];
  return [...parts, ...mixed].filter((part) => part !== '').flatMap((part) => valueLengths.map((length) => `${part.repeat(Math.ceil(length / part.length)).slice(0, length - 1)}!`));
}

main();
