import { runInNewContext } from 'node:vm';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { Challenge, tokenLifeMs, UsedTokens } from '../../../src/edge/gateway/challenge';
import { relayShared, startExchange, type SharedMessage } from '../../../src/edge/gateway/exchange';
import { judgesOf } from '../../../src/edge/gateway/judges';
import { keysPerZone, RateLimits } from '../../../src/edge/gateway/limits';
import { RequestView } from '../../../src/edge/gateway/request-view';
import { VerifiedBots } from '../../../src/edge/gateway/verified-bots';
import type { RequestFacts } from '../../../src/gateway/ports';
import { silentLog } from '../../support/dns-client';
import { engineSaying, policyOf, requestFacts } from '../../support/gateway-requests';
import { rounds } from '../../support/rounds';
import { until } from '../../support/until';

const start = 1_790_000_040_000; // a border of minutes
const limit = { requests: 3, periodSeconds: 60, durationSeconds: 0 };

describe('a limit', () => {
  const ask = (limits: RateLimits, atMs: number, allowance = limit, key = 'k') => {
    const wait = limits.excess('z', key, allowance, atMs);
    if (wait === null) limits.count('z', key, allowance, atMs);
    return wait;
  };

  test('lets through what it allows, then says how long to wait, and lets through again then', () => {
    const limits = new RateLimits();
    expect([0, 1, 2, 3].map((i) => ask(limits, start + i))).toEqual([null, null, null, 80]);
    expect(ask(limits, start + 79_000)).toBe(1);
    expect(ask(limits, start + 80_000)).toBeNull();
  });

  test('holds whoever exceeds it for its duration', () => {
    const limits = new RateLimits();
    const strict = { ...limit, durationSeconds: 300 };
    expect([0, 1, 2, 3].map((i) => ask(limits, start + i, strict))).toEqual([null, null, null, 300]);
    expect(ask(limits, start + 299_000, strict)).toBe(2);
    expect(ask(limits, start + 300_003, strict)).toBeNull();
    expect(ask(limits, start + 4, strict, 'another')).toBeNull();
  });

  /** Two counters take what came in the window before for evenly spread (contract gateway.md §4.4): of a burst across the border that much more may pass. */
  test('lets through of any burst what it allows and no more than that rate for its length, whenever it begins, and waits are kept', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 120 }), fc.nat(120_000), fc.array(fc.nat(40), { maxLength: 60 }), (requests, periodSeconds, offsetMs, gaps) => {
      const limits = new RateLimits();
      const allowance = { requests, periodSeconds, durationSeconds: 0 };
      let at = start + offsetMs;
      const beganAt = at;
      let accepted = 0;
      for (const gap of gaps) {
        at += Math.min(gap, (periodSeconds * 1_000) / 60); // all within one period
        const wait = ask(limits, at, allowance);
        if (wait === null) accepted += 1;
        else if (new RateLimits().excess('z', 'k', allowance, at) !== null || wait < 1) return false;
      }
      const wait = limits.excess('z', 'k', allowance, at);
      return accepted <= requests * (1 + (at - beganAt) / (periodSeconds * 1_000)) && (wait === null || limits.excess('z', 'k', allowance, at + wait * 1_000) === null);
    }), { numRuns: rounds(300, 5_000) });
  });

  test('keeps 10,000 keys of a zone and forgets the least recently used, then those that count no more', () => {
    const limits = new RateLimits();
    for (let i = 0; i < 3; i++) ask(limits, start, limit, 'kept');
    for (let i = 0; i < keysPerZone + 50; i++) {
      ask(limits, start, limit, `k${i}`);
      if (i % 1_000 === 0) ask(limits, start, limit, 'kept');
    }
    expect(limits.size('z')).toBe(keysPerZone);
    expect(ask(limits, start, limit, 'kept')).not.toBeNull();
    for (let i = 0; i < 11; i++) limits.sweep(start + 120_000);
    expect(limits.size('z')).toBe(0);
  });

  test('counts by the origin\'s status when it says so, and by every part of its key', async () => {
    const judge = judgesOf({ engine: engineSaying(), limits: new RateLimits(), used: new UsedTokens(), secret: Buffer.alloc(32), log: silentLog, now: () => start })({
      zoneId: 'z', version: 1, policy: policyOf({ mode: 'block', rateLimits: [{ id: 'l', key: ['ip_prefix', 'header:X-User', 'cookie:c'], requests: 2, countStatuses: [401] }] }),
    });
    const ask = async (status: number, changes: Partial<RequestFacts> = {}) => {
      const facts = requestFacts({ headers: [['x-user', 'a']], ...changes });
      const decision = await judge.judge(facts);
      if (decision.refusal === null) judge.answered(facts, status);
      return decision.refusal?.status ?? status;
    };
    for (let i = 0; i < 5; i++) expect(await ask(200)).toBe(200);
    expect([await ask(401), await ask(401), await ask(401), await ask(200, { clientIp: '198.51.100.99' })]).toEqual([401, 401, 429, 429]);
    expect(await ask(200, { clientIp: '198.51.101.7' })).toBe(200);
    expect(await ask(200, { headers: [['x-user', 'b']] })).toBe(200);
    expect(await ask(200, { headers: [['x-user', 'a'], ['cookie', 'c=1']] })).toBe(200);
  });

  test('is one limit for all workers: counts travel within moments, penalties and spent tokens at once', async () => {
    const workers: { limits: RateLimits; used: UsedTokens; exchange: ReturnType<typeof startExchange> }[] = [];
    const peers = [0, 1, 2].map((i) => ({ isConnected: () => true, send: (message: SharedMessage) => workers[i]?.exchange.receive(structuredClone(message)) }));
    for (const peer of peers) {
      const shared = { limits: new RateLimits({ shared: true }), used: new UsedTokens() };
      workers.push({ ...shared, exchange: startExchange(shared, (message) => relayShared(message, peer, peers), () => start) });
    }
    const [a, b, c] = workers;
    try {
      for (const worker of workers) ask(worker.limits, start);
      await until(() => workers.every(({ limits }) => limits.excess('z', 'k', limit, start) !== null), 'every worker to know of all three');
      for (let i = 0; i < 3; i++) expect(ask(a?.limits ?? new RateLimits(), start, { ...limit, durationSeconds: 60 }, 'p')).toBeNull();
      expect(ask(a?.limits ?? new RateLimits(), start, { ...limit, durationSeconds: 60 }, 'p')).toBe(60);
      expect(b?.limits.excess('z', 'p', limit, start)).toBe(60);
      // What it knew of the key is not forgotten over a penalty that ends first.
      const brief = { ...limit, durationSeconds: 1 };
      for (let i = 0; i < 2; i++) expect(ask(b?.limits ?? new RateLimits(), start, brief, 'q')).toBeNull();
      for (let i = 0; i < 3; i++) ask(a?.limits ?? new RateLimits(), start, brief, 'q');
      expect(ask(a?.limits ?? new RateLimits(), start, brief, 'q')).toBe(1);
      expect(b?.limits.excess('z', 'q', brief, start)).toBe(1);
      expect([ask(b?.limits ?? new RateLimits(), start + 1_001, brief, 'q'), ask(b?.limits ?? new RateLimits(), start + 1_001, brief, 'q')]).toContain(1);
      expect(c?.used.spend('salt', start)).toBe(true);
      expect(a?.used.spend('salt', start)).toBe(false);
    } finally {
      for (const { exchange } of workers) exchange.stop();
    }
  });
});

describe('the challenge', () => {
  const secret = Buffer.alloc(32, 1);
  const used = new UsedTokens();
  const made = (zoneId = 'zone_1', settings = { type: 'pow' as const, difficulty: 10, validSeconds: 3_600 }) => new Challenge({ zoneId, settings }, secret, used);
  const browser = (changes: Partial<RequestFacts> = {}) => requestFacts({ scheme: 'http', rawPath: '/shop', rawQuery: 'a=1&b="<', ...changes });
  const posted = (form: Record<string, string>, changes: Partial<RequestFacts> = {}) => browser({ method: 'POST', body: Buffer.from(new URLSearchParams(form).toString()), ...changes });

  /** Runs the page's own script as a browser would, and gives back the form it sends. */
  async function solve(body: string): Promise<Record<string, string>> {
    const unescape = (text: string) => text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
    const elements = Object.fromEntries([...body.matchAll(/name="(token|answer|next)" value="([^"]*)"/g)].map(([, name = '', value = '']) => [name, { value: unescape(value) }]));
    const script = /<script nonce="[^"]+">(.*)<\/script>/s.exec(body)?.[1] ?? '';
    return new Promise((resolve, reject) => {
      const form = { elements, getAttribute: () => /data-difficulty="(\d+)"/.exec(body)?.[1], submit: () => resolve(Object.fromEntries(Object.entries(elements).map(([name, { value }]) => [name, value]))) };
      runInNewContext(script, { document: { getElementById: () => form }, location: { reload: () => reject(new Error('gave up')) }, setTimeout });
    });
  }

  test('is solved by its own page over plain HTTP, once, and the cookie lets this network in', async () => {
    const challenge = made();
    const page = challenge.ask(browser(), 'gwe_1', start);
    expect(page.status).toBe(403);
    expect(page.body).toContain('gwe_1');
    const nonce = /<script nonce="([^"]+)"/.exec(page.body)?.[1] ?? '';
    expect(Object.fromEntries(page.headers)['content-security-policy']).toContain(`script-src 'nonce-${nonce}'`);
    expect(page.body).not.toMatch(/src=|href=|https?:/);
    const form = await solve(page.body);
    expect(form['next']).toBe('/shop?a=1&b="<');
    expect(challenge.answer(posted(form, { clientIp: '198.51.101.7' }), start)).toMatchObject({ page: null, decision: { outcome: 'challenge_failed', ruleId: 'challenge.token', refusal: { status: 403, code: 'challenge_failed' } } });
    const { page: passed, decision } = challenge.answer(posted(form), start);
    expect(decision).toMatchObject({ outcome: 'challenge_passed', source: 'challenge' });
    const { location, 'set-cookie': cookie = '' } = Object.fromEntries(passed?.headers ?? []);
    expect(passed?.status).toBe(303);
    expect(location).toBe('/shop?a=1&b="<');
    expect(cookie).toMatch(/^hf_clearance=[\w.-]+; Path=\/; Max-Age=3600; HttpOnly; SameSite=Lax$/);
    expect(challenge.answer(posted(form), start).decision).toMatchObject({ outcome: 'challenge_failed', ruleId: 'challenge.used', refusal: { status: 403 } });
    const cleared = (changes: Partial<RequestFacts> = {}, of = challenge, atMs = start) => of.isCleared(new RequestView(browser({ headers: [['cookie', `x=1; ${cookie.split(';')[0]}`]], ...changes })), atMs);
    expect(cleared()).toBe(true);
    expect(cleared({ clientIp: '198.51.100.250' })).toBe(true);
    expect(cleared({ clientIp: '198.51.101.7' })).toBe(false);
    expect(cleared({}, made('zone_2'))).toBe(false);
    expect(cleared({}, challenge, start + 3_601_000)).toBe(false);
    expect(cleared({ headers: [['cookie', `${cookie.split(';')[0]}x`]] })).toBe(false);
  });

  test('is solved by its page at any difficulty', async () => {
    for (const difficulty of [8, 12, 14]) {
      const challenge = made('zone_1', { type: 'pow', difficulty, validSeconds: 60 });
      const { page, decision } = challenge.answer(posted(await solve(challenge.ask(browser(), null, start).body), { scheme: 'https' }), start);
      expect(decision.outcome).toBe('challenge_passed');
      expect(Object.fromEntries(page?.headers ?? [])['set-cookie']).toMatch(/; Secure$/);
    }
  });

  test('refuses what is old, changed, unsolved or of another zone, and never sends anywhere else', async () => {
    const challenge = made();
    const form = await solve(challenge.ask(browser(), null, start).body);
    const [seconds, , ...rest] = (form['token'] ?? '').split('.');
    const ruleOf = (changes: Record<string, string>, of = challenge, atMs = start) => of.answer(posted({ ...form, ...changes }), atMs).decision.ruleId;
    expect(ruleOf({}, challenge, start + tokenLifeMs + 1_000)).toBe('challenge.expired');
    expect(ruleOf({ token: [seconds, '8', ...rest].join('.') })).toBe('challenge.token');
    expect(ruleOf({}, made('zone_2'))).toBe('challenge.token');
    expect(ruleOf({ token: '' })).toBe('challenge.token');
    expect(ruleOf({ answer: '' })).toBe('challenge.answer');
    expect(ruleOf({ answer: 'é' })).toBe('challenge.answer');
    for (const next of ['//evil.example', '/\\evil.example', 'https://evil.example/', '/a\r\nx: y', '']) {
      const fresh = await solve(challenge.ask(browser(), null, start).body);
      expect(Object.fromEntries(challenge.answer(posted({ ...fresh, next }), start).page?.headers ?? [])['location']).toBe('/');
    }
  });

  test('is JSON for everything but GET and HEAD of who accepts HTML', () => {
    const challenge = made();
    for (const facts of [browser({ method: 'POST' }), browser({ headers: [['accept', 'application/json']] }), browser({ headers: [] })]) {
      const page = challenge.ask(facts, 'gwe_1', start);
      expect(page.status).toBe(403);
      expect(JSON.parse(page.body)).toEqual({ ok: false, message: expect.any(String), code: 'challenge_required', eventId: 'gwe_1' });
    }
    expect(challenge.ask(browser({ method: 'HEAD' }), null, start).body).toContain('<form');
  });

  test('lets a cleared client pass challenge rules as if they had not matched', async () => {
    const judge = judgesOf({ engine: engineSaying(), limits: new RateLimits(), used, secret, log: silentLog, now: () => start })({
      zoneId: 'zone_1', version: 1, policy: policyOf({
        mode: 'block', challenge: { difficulty: 8 }, customRules: [{ match: { field: 'path', op: 'eq', value: '/' }, action: 'challenge' }], bots: { mode: 'challenge', blockEmptyUserAgent: true },
        rateLimits: [{ requests: 1, action: 'challenge' }],
      }),
    });
    expect(await judge.judge(browser())).toMatchObject({ outcome: 'challenge', refusal: { page: 'challenge' } });
    const { page } = judge.answerChallenge(posted(await solve(judge.challengePage(browser(), null).body)));
    const cookie = Object.fromEntries(page?.headers ?? [])['set-cookie']?.split(';')[0] ?? '';
    for (let i = 0; i < 3; i++) expect(await judge.judge(browser({ headers: [['cookie', cookie]] }))).toMatchObject({ outcome: 'clean', refusal: null });
  });
});

test('verified bots are addresses of the operator\'s file, read again when it changes', async () => {
  const home = await mkdtemp(join(tmpdir(), 'holdfast-test-bots-'));
  const path = join(home, 'bots.txt');
  await writeFile(path, '# search engines\n192.0.2.0/28 finder\n2001:db8::1\n');
  const bots = await VerifiedBots.open(path, silentLog, 50);
  try {
    expect(['192.0.2.15', '192.0.2.16', '2001:db8::1', '2001:db8::2'].map((ip) => bots.has(ip))).toEqual([true, false, true, false]);
    await writeFile(path, '198.51.100.0/24 another one\n');
    await until(() => bots.has('198.51.100.3') && !bots.has('192.0.2.15'), 'the new file');
    await writeFile(path, 'no address\n');
    await writeFile(path, '203.0.113.1\n198.51.100.0/24\n');
    await until(() => bots.has('203.0.113.1') && bots.has('198.51.100.3'), 'the file without fault');
  } finally {
    bots.close();
    await rm(home, { recursive: true });
  }
  await expect(VerifiedBots.open(path, silentLog)).rejects.toThrow();
});
