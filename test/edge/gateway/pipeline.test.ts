import fc from 'fast-check';
import { compilePolicy } from '../../../src/edge/gateway/compiled-policy';
import { RateLimits } from '../../../src/edge/gateway/limits';
import { compileMatch } from '../../../src/edge/gateway/match';
import { judge, judgeResponse, type Stages } from '../../../src/edge/gateway/pipeline';
import { RequestView } from '../../../src/edge/gateway/request-view';
import type { ManagedVerdict, RequestFacts } from '../../../src/gateway/ports';
import { matchSchema } from '../../../src/gateway/schemas';
import { engineSaying, policyOf, requestFacts, ruleMatch } from '../../support/gateway-requests';
import { rounds } from '../../support/rounds';

const now = 1_790_000_000_000;
const attack: Partial<ManagedVerdict> = { score: 5, blocked: true, deciding: ruleMatch(), matches: [ruleMatch()] };
/** Requests with `attack` in the query are attacks. */
const engine = engineSaying((facts) => (facts.rawQuery.includes('attack') ? attack : {}));
const stagesOf = (changes: Partial<Stages> = {}): Stages => ({ engine, limits: new RateLimits(), clearance: null, now: () => now, ...changes });
const decide = async (written: object, facts: Partial<RequestFacts> = {}, stages = stagesOf()) => (await judge(stages, compilePolicy('zone_1', 1, policyOf({ mode: 'block', ...written })), requestFacts(facts))).decision;
const matches = (match: unknown, facts: Partial<RequestFacts>) => compileMatch(matchSchema.parse(match))(new RequestView(requestFacts(facts)));

describe('a condition', () => {
  const headers = [['user-agent', 'Curl/8'], ['x-tag', 'a'], ['x-tag', 'b'], ['cookie', 'sid=abc; theme=d%20k; sid=def'], ['referer', 'https://caf\xc3\xa9.example/']] as const;
  const facts: Partial<RequestFacts> = { headers, path: '/admin/Users', rawPath: '/%61dmin/Users', rawQuery: 'q=a%20b+c&q=%c3%a9&empty', method: 'POST', country: 'DE', asn: 64_500, contentLength: 12, clientIp: '203.0.113.9' };
  test.each([
    [{ field: 'path', op: 'eq', value: '/admin/Users' }, true],
    [{ field: 'path', op: 'eq', value: '/admin/users' }, false],
    [{ field: 'path', op: 'eq', value: '/ADMIN/users', ignoreCase: true }, true],
    [{ field: 'rawPath', op: 'starts_with', value: '/%61' }, true],
    [{ field: 'path', op: 'ends_with', value: 'Users' }, true],
    [{ field: 'path', op: 'contains', value: 'min/U' }, true],
    [{ field: 'path', op: 'wildcard', value: '/*/U*s' }, true],
    [{ field: 'path', op: 'wildcard', value: '/*/U*' , ignoreCase: true }, true],
    [{ field: 'path', op: 'wildcard', value: '/adm' }, false],
    [{ field: 'path', op: 'matches', value: '^/admin/[A-Z]' }, true],
    [{ field: 'path', op: 'matches', value: 'USERS$', ignoreCase: true }, true],
    [{ field: 'arg', key: 'q', op: 'eq', value: 'a b c' }, true],
    [{ field: 'arg', key: 'q', op: 'eq', value: 'é' }, true],
    [{ field: 'arg', key: 'empty', op: 'exists' }, true],
    [{ field: 'arg', key: 'absent', op: 'exists' }, false],
    [{ field: 'cookie', key: 'sid', op: 'in', value: ['def'] }, true],
    [{ field: 'cookie', key: 'theme', op: 'eq', value: 'd%20k' }, true],
    [{ field: 'header', key: 'X-Tag', op: 'eq', value: 'b' }, true],
    [{ field: 'header', key: 'x-tag', op: 'not_in', value: ['b', 'c'] }, false],
    [{ field: 'referer', op: 'contains', value: 'café' }, true],
    [{ field: 'userAgent', op: 'starts_with', value: 'curl', ignoreCase: true }, true],
    [{ field: 'contentType', op: 'contains', value: 'json' }, false],
    [{ field: 'contentType', op: 'ne', value: 'application/json' }, true],
    [{ field: 'contentType', op: 'not_in', value: ['a/b'] }, true],
    [{ field: 'country', op: 'in', value: ['de', 'fr'] }, true],
    [{ field: 'asn', op: 'gt', value: 64_499 }, true],
    [{ field: 'contentLength', op: 'lt', value: 12 }, false],
    [{ field: 'bodySize', op: 'in', value: [11, 12] }, true],
    [{ field: 'ip', op: 'in', value: ['203.0.113.0/29', '203.0.113.8/31'] }, true],
    [{ field: 'ip', op: 'ne', value: '203.0.113.9' }, false],
    [{ field: 'isVerifiedBot', op: 'eq', value: false }, true],
    [{ field: 'tlsVersion', op: 'in', value: ['1.3'] }, true],
    [{ all: [{ field: 'method', op: 'eq', value: 'post' }, { not: { field: 'host', op: 'eq', value: 'www.example.com' } }] }, false],
    [{ any: [{ field: 'method', op: 'eq', value: 'GET' }, { field: 'scheme', op: 'eq', value: 'HTTPS' }] }, true],
  ])('%j is %s', (match, expected) => expect(matches(match, facts)).toBe(expected));

  test('of a missing field holds for ne and not_in alone', () => {
    const ops = [['eq', 'x'], ['in', ['x']], ['contains', 'x'], ['starts_with', 'x'], ['ends_with', 'x'], ['matches', '.*'], ['wildcard', '*'], ['exists', true], ['ne', 'x'], ['not_in', ['x']]] as const;
    expect(ops.filter(([op, value]) => matches({ field: 'header', key: 'x-none', op, value }, {})).map(([op]) => op)).toEqual(['ne', 'not_in']);
    expect([matches({ field: 'query', op: 'exists' }, {}), matches({ field: 'query', op: 'ne', value: 'a' }, {}), matches({ field: 'query', op: 'exists' }, { rawQuery: 'a' })]).toEqual([false, true, true]);
    for (const op of ['eq', 'gt', 'lt']) expect(matches({ field: 'asn', op, value: 1 }, {})).toBe(false);
    expect(matches({ field: 'asn', op: 'ne', value: 1 }, {})).toBe(true);
  });

  test('on addresses agrees with arithmetic on random networks of both families', () => {
    const v4 = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(3), fc.nat(255)).map((bytes) => bytes.join('.'));
    fc.assert(fc.property(fc.array(fc.tuple(v4, fc.integer({ min: 6, max: 32 })), { minLength: 1, maxLength: 20 }), v4, (networks, ip) => {
      const number = (text: string) => text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
      const expected = networks.some(([base, bits]) => Math.floor(number(base) / 2 ** (32 - bits)) === Math.floor(number(ip) / 2 ** (32 - bits)));
      const value = networks.map(([base, bits]) => `${base}/${bits}`);
      return matches({ field: 'ip', op: 'in', value }, { clientIp: ip }) === expected && matches({ field: 'ip', op: 'in', value }, { clientIp: `::ffff:${ip}` }) === expected;
    }));
    expect(matches({ field: 'ip', op: 'in', value: ['2001:db8::/47', '2001:db8:2::5'] }, { clientIp: '2001:db8:1:ffff::1' })).toBe(true);
    expect(matches({ field: 'ip', op: 'in', value: ['2001:db8::/47', '2001:db8:2::5'] }, { clientIp: '2001:db8:2::6' })).toBe(false);
  });
});

describe('the stages', () => {
  const rule = (id: string, action: string, more: object = {}) => ({ id, name: `Rule ${id}`, match: { field: 'path', op: 'starts_with', value: '/' }, action, ...more });

  test('mode off forwards everything unseen', async () => {
    expect(await decide({ mode: 'off', ipLists: { deny: ['0.0.0.0/0'] } }, { rawQuery: 'attack' })).toMatchObject({ outcome: 'clean', refusal: null });
  });

  test('each stage refuses with its source, rule and status', async () => {
    expect(await decide({ ipLists: { deny: ['198.51.100.0/24'] } })).toMatchObject({ outcome: 'block', source: 'ip_list', ruleId: 'ip_list.deny', refusal: { status: 403, code: 'request_blocked', page: 'refused' } });
    expect(await decide({ geo: { mode: 'deny', countries: ['FR'] } }, { country: 'FR' })).toMatchObject({ outcome: 'block', source: 'geo', ruleId: 'geo.country' });
    expect(await decide({ geo: { mode: 'allow', countries: ['DE'] } }, { country: 'FR' })).toMatchObject({ outcome: 'block', ruleId: 'geo.country' });
    expect(await decide({ geo: { denyAsns: [64_500] } }, { asn: 64_500 })).toMatchObject({ outcome: 'block', source: 'geo', ruleId: 'geo.asn' });
    expect(await decide({ customRules: [rule('a', 'block', { status: 451 })] })).toMatchObject({ outcome: 'block', source: 'custom', ruleId: 'a', ruleName: 'Rule a', refusal: { status: 451 } });
    expect(await decide({ customRules: [rule('a', 'challenge')] })).toMatchObject({ outcome: 'challenge', source: 'custom', refusal: { status: 403, code: 'challenge_required', page: 'challenge' } });
    expect(await decide({ bots: { mode: 'block' } }, { headers: [['user-agent', 'sqlmap/1.7 (https://sqlmap.org)']] })).toMatchObject({ outcome: 'block', source: 'bot', ruleId: 'bot.scanner' });
    expect(await decide({ bots: { mode: 'challenge', blockEmptyUserAgent: true } }, { headers: [] })).toMatchObject({ outcome: 'challenge', source: 'bot', ruleId: 'bot.empty_user_agent' });
    expect(await decide({ bots: { mode: 'monitor' } }, { headers: [['user-agent', 'Nikto']] })).toMatchObject({ outcome: 'log', source: 'bot', refusal: null });
    expect(await decide({}, { rawQuery: 'attack' })).toMatchObject({ outcome: 'block', source: 'managed', ruleId: '942100', ruleName: 'SQL injection', managed: { score: 5 }, refusal: { status: 403 } });
  });

  test('an unknown country passes in every mode', async () => {
    for (const mode of ['deny', 'allow']) expect(await decide({ geo: { mode, countries: ['DE'] } })).toMatchObject({ outcome: 'clean' });
  });

  test('a verified bot passes the stage of bots alone, and only if the policy says so', async () => {
    const scanner: Partial<RequestFacts> = { headers: [['user-agent', 'nuclei']], isVerifiedBot: true };
    expect(await decide({ bots: { mode: 'block' } }, scanner)).toMatchObject({ outcome: 'clean' });
    expect(await decide({ bots: { mode: 'block', allowVerified: false } }, scanner)).toMatchObject({ outcome: 'block' });
    expect(await decide({ bots: { mode: 'block' } }, { ...scanner, rawQuery: 'attack' })).toMatchObject({ outcome: 'block', source: 'managed' });
  });

  test('rules are asked in order; allow ends, skip and log go on, the strongest outcome stands', async () => {
    expect(await decide({ customRules: [rule('a', 'allow'), rule('b', 'block')] }, { rawQuery: 'attack' })).toMatchObject({ outcome: 'allow', ruleId: 'a', refusal: null });
    expect(await decide({ customRules: [rule('a', 'log'), rule('b', 'allow')] })).toMatchObject({ outcome: 'log', ruleId: 'a' });
    expect(await decide({ customRules: [rule('a', 'log')] }, { rawQuery: 'attack' })).toMatchObject({ outcome: 'block', source: 'managed' });
    expect(await decide({ customRules: [rule('a', 'skip', { skip: ['managed', 'bots'] })], bots: { mode: 'block' } }, { rawQuery: 'attack', headers: [['user-agent', 'nikto']] })).toMatchObject({ outcome: 'clean' });
    expect(await decide({ customRules: [rule('a', 'block', { enabled: false })] })).toMatchObject({ outcome: 'clean' });
  });

  test('below the threshold a match is logged; a fault follows onEngineError, unless the score blocks', async () => {
    const saying = (verdict: Partial<ManagedVerdict>) => stagesOf({ engine: engineSaying(() => verdict) });
    expect(await decide({}, {}, saying({ score: 3, matches: [ruleMatch({ score: 3 })], deciding: ruleMatch() }))).toMatchObject({ outcome: 'log', source: 'managed', ruleId: '942100', refusal: null });
    expect(await decide({}, {}, saying({ fault: 'budget' }))).toMatchObject({ outcome: 'log', source: 'engine', ruleId: 'engine.budget', refusal: null });
    expect(await decide({ customRules: [rule('a', 'log')] }, {}, saying({ fault: 'budget' }))).toMatchObject({ outcome: 'log', source: 'engine', ruleId: 'engine.budget', ruleName: null });
    expect(await decide({ mode: 'monitor', bots: { mode: 'monitor', blockEmptyUserAgent: true }, onEngineError: 'closed' }, { headers: [] }, saying({ fault: 'budget' }))).toMatchObject({ outcome: 'monitor', wouldHave: 'block', source: 'engine' });
    expect(await decide({ onEngineError: 'closed' }, {}, saying({ fault: 'unavailable' }))).toMatchObject({ outcome: 'block', source: 'engine', ruleId: 'engine.unavailable', refusal: { status: 503 } });
    expect(await decide({ onEngineError: 'closed' }, {}, saying({ ...attack, fault: 'budget' }))).toMatchObject({ outcome: 'block', source: 'managed', refusal: { status: 403 } });
    const thrown: unknown[] = [];
    const broken = stagesOf({ engine: { ...engine, inspectRequest: () => { throw new Error('broken'); } }, onEngineFault: (error) => thrown.push(error) });
    expect(await decide({ onEngineError: 'closed' }, {}, broken)).toMatchObject({ outcome: 'block', source: 'engine', ruleId: 'engine.exception', refusal: { status: 503 } });
    expect(thrown).toHaveLength(1);
  });

  test('a body over the limit is refused with 413 where the policy says so, without being read when it is announced', async () => {
    const policy = compilePolicy('zone_1', 1, policyOf({ mode: 'block', managedRules: { maxBodyBytes: 10, bodyLimitAction: 'block' } }));
    let reads = 0;
    const ask = (facts: Partial<RequestFacts>, read: Partial<RequestFacts>) => judge(stagesOf(), policy, requestFacts(facts), { readBody: async () => (reads += 1, requestFacts({ ...facts, ...read })) });
    expect((await ask({ contentLength: 11 }, {})).decision).toMatchObject({ outcome: 'block', source: 'managed', ruleId: 'managed.body_limit', refusal: { status: 413 } });
    expect(reads).toBe(0);
    expect((await ask({}, { body: Buffer.alloc(10), bodyComplete: false })).decision).toMatchObject({ outcome: 'block', refusal: { status: 413 } });
    expect((await ask({ contentLength: 10 }, { body: Buffer.alloc(10) })).decision).toMatchObject({ outcome: 'clean' });
    expect(reads).toBe(2);
    const sized = compilePolicy('zone_1', 1, policyOf({ mode: 'block', ipLists: { deny: ['198.51.100.7'] }, customRules: [{ match: { field: 'bodySize', op: 'gt', value: 3 }, action: 'block' }] }));
    const unannounced = async (clientIp: string) => (await judge(stagesOf(), sized, requestFacts({ clientIp }), { readBody: async () => (reads += 1, requestFacts({ clientIp, body: Buffer.alloc(4) })) })).decision;
    expect([await unannounced('198.51.100.7'), reads]).toMatchObject([{ ruleId: 'ip_list.deny' }, 2]);
    expect([await unannounced('198.51.100.8'), reads]).toMatchObject([{ source: 'custom' }, 3]);
    expect(await decide({ managedRules: { maxBodyBytes: 10 } }, { body: Buffer.alloc(10), bodyComplete: false })).toMatchObject({ outcome: 'clean' });
  });

  test('an answer of the origin may still be refused, in monitor it is written down', async () => {
    const leaking = stagesOf({ engine: engineSaying((facts) => (facts.rawQuery === 'leak' ? attack : {})) });
    for (const [mode, expected] of [['block', { outcome: 'block', refusal: { status: 403 } }], ['monitor', { outcome: 'monitor', wouldHave: 'block', refusal: null }]] as const) {
      const policy = compilePolicy('zone_1', 1, policyOf({ mode, managedRules: { inspectResponse: true } }));
      const facts = requestFacts();
      const { decision, inspectsAnswer } = await judge(leaking, policy, facts);
      expect(inspectsAnswer).toBe(true);
      const response = { status: 200, headers: [], body: Buffer.from('x') };
      expect(await judgeResponse(leaking, policy, { facts: requestFacts({ rawQuery: 'leak' }), decision }, response)).toMatchObject(expected);
      expect(await judgeResponse(leaking, policy, { facts, decision }, response)).toEqual(decision);
    }
  });

  test('answers are inspected of what reaches the origin in block mode too, and is neither allowed nor skips the managed rules', async () => {
    const inspects = async (written: object, facts: Partial<RequestFacts> = {}) => (await judge(stagesOf(), compilePolicy('zone_1', 1, policyOf({ mode: 'block', managedRules: { inspectResponse: true }, ...written })), requestFacts(facts))).inspectsAnswer;
    expect(await inspects({ customRules: [rule('a', 'log')] })).toBe(true);
    for (const without of [
      { mode: 'off' }, { managedRules: {} }, { ipLists: { allow: ['198.51.100.7'] } }, { customRules: [rule('a', 'log'), rule('b', 'allow')] }, { customRules: [rule('a', 'skip', { skip: ['managed'] })] }, { mode: 'monitor', customRules: [rule('a', 'block')] },
    ]) expect({ without, inspects: await inspects(without) }).toEqual({ without, inspects: false });
  });

  test('the steps are told when asked for', async () => {
    const policy = compilePolicy('zone_1', 1, policyOf({ mode: 'block', customRules: [rule('a', 'log')] }));
    const { decision } = await judge(stagesOf({ limits: null }), policy, requestFacts({ rawQuery: 'attack' }), { explain: true });
    expect(decision.steps).toEqual([
      { stage: 'ip_list', ruleId: null, result: 'pass' }, { stage: 'geo', ruleId: null, result: 'pass' }, { stage: 'custom_rules', ruleId: 'a', result: 'log' }, { stage: 'custom_rules', ruleId: null, result: 'pass' },
      { stage: 'rate_limits', ruleId: null, result: 'not_counted' }, { stage: 'bots', ruleId: null, result: 'pass' }, { stage: 'managed', ruleId: '942100', result: 'block' },
    ]);
  });
});

describe('for random policies and requests', () => {
  const leaf = fc.oneof(
    fc.record({ field: fc.constant('path'), op: fc.constantFrom('eq', 'starts_with', 'contains', 'ne'), value: fc.constantFrom('/', '/a', '/a/b') }),
    fc.record({ field: fc.constant('ip'), op: fc.constantFrom('in', 'not_in'), value: fc.constant(['198.51.100.0/25']) }),
    fc.record({ field: fc.constant('method'), op: fc.constantFrom('eq', 'ne'), value: fc.constantFrom('GET', 'POST') }),
  );
  const match = fc.oneof(leaf, fc.record({ not: leaf }), fc.record({ any: fc.array(leaf, { minLength: 1, maxLength: 3 }) }), fc.record({ all: fc.array(leaf, { minLength: 1, maxLength: 3 }) }));
  const policy = fc.record({
    onEngineError: fc.constantFrom('open', 'closed'),
    customRules: fc.array(fc.record({ match, action: fc.constantFrom('allow', 'block', 'challenge', 'log') }), { maxLength: 3 }),
    rateLimits: fc.array(fc.record({ match: fc.option(match), key: fc.constantFrom(['ip'], ['path'], ['ip', 'host']), requests: fc.integer({ min: 1, max: 4 }), action: fc.constantFrom('block', 'challenge', 'log'), durationSeconds: fc.constantFrom(0, 10), countStatuses: fc.constantFrom(null, [200]) }), { maxLength: 2 }),
    ipLists: fc.record({ allow: fc.subarray(['198.51.100.1']), deny: fc.subarray(['198.51.100.0/24', '198.51.100.200']) }),
    geo: fc.record({ mode: fc.constantFrom('off', 'deny', 'allow'), countries: fc.constant(['DE']), denyAsns: fc.subarray([64_500]) }),
    bots: fc.record({ mode: fc.constantFrom('off', 'monitor', 'challenge', 'block') }),
  });
  const request = fc.record({
    clientIp: fc.constantFrom('198.51.100.1', '198.51.100.200', '203.0.113.1'), path: fc.constantFrom('/', '/a', '/a/b'), method: fc.constantFrom('GET', 'POST'), rawQuery: fc.constantFrom('', 'attack', 'fault'),
    country: fc.constantFrom(null, 'DE', 'FR'), asn: fc.constantFrom(null, 64_500), headers: fc.constantFrom([['user-agent', 'nikto'] as const], [['user-agent', 'Mozilla'] as const]),
  });
  const faulty = engineSaying((facts) => (facts.rawQuery === 'attack' ? attack : facts.rawQuery === 'fault' ? { fault: 'budget' } : {}));
  const run = async (mode: string, written: object, traffic: readonly Partial<RequestFacts>[]) => {
    const stages = stagesOf({ engine: faulty });
    const compiled = compilePolicy('zone_1', 1, policyOf({ mode, ...written }));
    const decisions = [];
    for (const facts of traffic) {
      const { decision, afterAnswer } = await judge(stages, compiled, requestFacts(facts));
      if (decision.refusal === null) afterAnswer?.(200);
      decisions.push(decision);
    }
    return decisions;
  };

  test('an allowed address is never denied, limited or challenged', async () => {
    await fc.assert(fc.asyncProperty(policy, fc.array(request, { maxLength: 12 }), async (written, traffic) => {
      const decisions = await run('block', { ...written, ipLists: { ...written.ipLists, allow: ['198.51.100.1'] } }, traffic);
      decisions.forEach((decision, i) => {
        if (traffic[i]?.clientIp === '198.51.100.1') expect(decision).toMatchObject({ outcome: 'allow', source: 'ip_list', ruleId: 'ip_list.allow', refusal: null });
      });
    }), { numRuns: rounds(150, 2_000) });
  });

  test('monitor refuses nobody, and finds of single requests what block does', async () => {
    await fc.assert(fc.asyncProperty(policy, request, async (written, facts) => {
      const [[blocked], [monitored]] = [await run('block', written, [facts]), await run('monitor', written, [facts])];
      expect(monitored?.refusal).toBeNull();
      const isStopped = blocked?.refusal !== null;
      expect(monitored).toMatchObject(isStopped ? { outcome: 'monitor', wouldHave: blocked?.outcome, source: blocked?.source, ruleId: blocked?.ruleId } : { outcome: blocked.outcome, wouldHave: null, ruleId: blocked.ruleId });
    }), { numRuns: rounds(300, 3_000) });
  });

  test('monitor and block agree on whole courses of requests', async () => {
    await fc.assert(fc.asyncProperty(policy, fc.array(request, { maxLength: 15 }), async (written, traffic) => {
      const [blocked, monitored] = [await run('block', written, traffic), await run('monitor', written, traffic)];
      expect(monitored.map(({ outcome, wouldHave }) => wouldHave ?? outcome)).toEqual(blocked.map(({ outcome }) => outcome));
    }), { numRuns: rounds(150, 2_000) });
  });
});
