import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { createRuleEngine } from '../../../src/edge/gateway/seclang/engine';
import { loadSets } from '../../../src/edge/gateway/seclang/sets';
import { attacks, benign, beyondCoreRules, factsOf } from '../../support/gateway-corpus';
import { managedSettings } from '../../support/managed-settings';

const crsDir = process.env['CRS_DIR'] ?? '/usr/share/modsecurity-crs';
const crs = existsSync(crsDir);
const { sets, refused } = loadSets({ crsDir: crs ? crsDir : null, rulesDir: resolve(__dirname, '../../../rules/base') });
const engine = createRuleEngine({ sets, elsewhere: null, budgetMs: 60_000 });
const hostile = [...attacks()].flatMap(([kind, requests]) => requests.map((request) => ({ kind, request })));
const ordinary = benign();
const beyond = beyondCoreRules();

test('the corpora are large enough', () => {
  expect(new Set(hostile.map(({ kind }) => kind)).size).toBeGreaterThanOrEqual(10);
  expect(hostile.length).toBeGreaterThanOrEqual(300);
  expect(ordinary.length).toBeGreaterThanOrEqual(500);
  expect(refused).toEqual([]);
});

describe.each([['base', 0.9] as const, ...(crs ? [['crs', 0.95] as const] : [])])('%s at paranoia level 1', (ruleSet, share) => {
  const settings = managedSettings({ ruleSet });
  test(`blocks at least ${share * 100} % of the attacks`, async () => {
    const missed: string[] = [];
    for (const { kind, request } of hostile) {
      const verdict = await engine.inspectRequest(factsOf(request), settings, 0);
      expect(verdict.fault).toBeNull();
      if (!verdict.blocked) missed.push(`${kind}: ${request.name}`);
    }
    expect({ missed, enough: hostile.length - missed.length >= share * hostile.length }).toEqual({ missed, enough: true });
  });
  test('blocks no ordinary request', async () => {
    const blocked: string[] = [];
    for (const request of ordinary) {
      const verdict = await engine.inspectRequest(factsOf(request), settings, 0);
      expect(verdict.fault).toBeNull();
      if (verdict.blocked) blocked.push(`${request.name} ${verdict.matches.map(({ id }) => id).join(' ')}`);
    }
    expect(blocked).toEqual([]);
  });
});

test('our own set blocks what the Core Rule Set lets pass, and lets pass what that blocks', async () => {
  const blocked = async (request: (typeof ordinary)[number]) => (await engine.inspectRequest(factsOf(request), managedSettings({ ruleSet: 'base' }), 0)).blocked;
  const wrong: string[] = [];
  for (const request of beyond.attacks) if (!(await blocked(request))) wrong.push(`missed ${request.name}`);
  expect(wrong.length).toBeLessThanOrEqual(0.1 * beyond.attacks.length);
  for (const request of beyond.benign) if (await blocked(request)) wrong.push(`blocked ${request.name}`);
  expect(wrong.filter((line) => line.startsWith('blocked'))).toEqual([]);
});
