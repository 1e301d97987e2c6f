import { mkdtemp, rm } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import { noGeo } from '../../../src/adapters/geo-lookup/none';
import { openTraffic, type Traffic } from '../../../src/edge/gateway/traffic';
import { silentLog } from '../../support/dns-client';
import { engineSaying, ruleMatch } from '../../support/gateway-requests';
import { withGateway } from '../../support/gateway-world';
import { masterKey } from '../../support/postgres-api';
import { rounds } from '../../support/rounds';
import { until } from '../../support/until';

/** The proxy with everything that judges and counts, but for the rule engine: queries with `attack` are attacks. */
const world = withGateway();
const engine = engineSaying((facts) => (facts.rawQuery.includes('attack') ? { score: 5, blocked: true, deciding: ruleMatch(), matches: [ruleMatch()] } : {}));
let home = '';
let traffic: Traffic | undefined;
let origin: Awaited<ReturnType<typeof world.origin>>;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'holdfast-test-traffic-'));
  traffic = await openTraffic({
    engine, geo: noGeo, verifiedBotsFile: undefined, masterKeys: [masterKey], db: world.test.database, retentionOf: async () => new Map(), instanceId: 'traffic', spoolDir: home, place: 0, workers: 1, send: null,
    registry: new Registry(), log: silentLog,
  });
  await world.restart({ makeJudge: traffic.makeJudge, sink: traffic.sink, describe: (ip) => traffic?.describe(ip) ?? { country: null, asn: null, isVerifiedBot: false } });
  origin = await world.origin((asked, response) => {
    response.writeHead(Number(/status=(\d{3})/.exec(asked.url ?? '')?.[1] ?? 200), { 'content-type': 'text/plain', 'x-origin': 'yes' }).end(`${asked.method} ${asked.url}`);
  });
});
afterAll(async () => {
  await traffic?.close();
  await rm(home, { recursive: true });
});

type Answer = { status: number; headers: IncomingMessage['headers']; body: string };
function ask(host: string, path: string, { method = 'GET', headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {}): Promise<Answer> {
  return new Promise((done, fail) => {
    const sent = request({ host: '127.0.0.1', port: world.httpPort, path, method, headers: { host, ...headers }, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', fail).on('end', () => done({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks).toString() }));
    });
    sent.on('error', fail).end(body);
  });
}
const zone = (domain: string, policy: object) => world.zone(domain, [{ name: '@', value: '127.0.0.1', port: origin.port }], { policy });
const counted = async (zoneId: string) => Object.fromEntries((await world.test.database.pool.query<{ name: string; n: number }>(
  `select outcome as name, sum(requests)::int as n from gateway_minute where zone_id = $1 group by 1`, [zoneId])).rows.map(({ name, n }) => [name, n]));

test('what is blocked, limited and logged is answered so, and counted', async () => {
  const zoneId = await zone('stages.test', {
    mode: 'block', customRules: [{ id: 'admin', name: 'Office', match: { field: 'path', op: 'starts_with', value: '/admin' }, action: 'block', status: 404 }, { id: 'watch', match: { field: 'path', op: 'eq', value: '/watch' }, action: 'log' }],
    rateLimits: [{ id: 'login', match: { field: 'path', op: 'eq', value: '/login' }, requests: 2, periodSeconds: 3_600, durationSeconds: 600 }, { id: 'guess', match: { field: 'path', op: 'eq', value: '/guess' }, requests: 1, periodSeconds: 3_600, countStatuses: [401] }],
  });
  const before = (await counted(zoneId))['clean'] ?? 0;
  const blocked = await ask('stages.test', '/admin/%2e%2e/admin', { headers: { accept: 'application/json' } });
  expect(blocked).toMatchObject({ status: 404, headers: { 'x-gateway-event': expect.stringMatching(/^gwe_/) } });
  expect(JSON.parse(blocked.body)).toEqual({ ok: false, message: expect.any(String), code: 'request_blocked', eventId: blocked.headers['x-gateway-event'] });
  expect((await ask('stages.test', '/search?q=attack')).status).toBe(403);
  expect((await ask('stages.test', '/watch')).status).toBe(200);
  const logins = [await ask('stages.test', '/login'), await ask('stages.test', '/login'), await ask('stages.test', '/login')];
  expect(logins.map(({ status }) => status)).toEqual([200, 200, 429]);
  expect(logins[2]?.headers['retry-after']).toBe('600');
  expect([await ask('stages.test', '/guess'), await ask('stages.test', '/guess?status=401'), await ask('stages.test', '/guess')].map(({ status }) => status)).toEqual([200, 401, 429]);
  await until(async () => (await counted(zoneId))['rate_limit'] === 2, 'the last request to be counted');
  expect(await counted(zoneId)).toMatchObject({ block: 2, rate_limit: 2, log: 1 });
  expect(((await counted(zoneId))['clean'] ?? 0) - before).toBeGreaterThanOrEqual(4);
  const { rows } = await world.test.database.pool.query(`select action, source, rule_id, path, query, status, origin_status from gateway_event where zone_id = $1 order by id`, [zoneId]);
  expect(rows).toEqual([
    { action: 'block', source: 'custom', rule_id: 'admin', path: '/admin', query: null, status: 404, origin_status: null },
    { action: 'block', source: 'managed', rule_id: '942100', path: '/search', query: 'q=[6]', status: 403, origin_status: null },
    { action: 'log', source: 'custom', rule_id: 'watch', path: '/watch', query: null, status: 200, origin_status: 200 },
    { action: 'rate_limit', source: 'rate_limit', rule_id: 'login', path: '/login', query: null, status: 429, origin_status: null },
    { action: 'rate_limit', source: 'rate_limit', rule_id: 'guess', path: '/guess', query: null, status: 429, origin_status: null },
  ]);
});

test('a browser solves the challenge and goes on where it was going', async () => {
  const zoneId = await zone('challenge.test', { mode: 'block', challenge: { difficulty: 8 }, customRules: [{ match: { field: 'path', op: 'starts_with', value: '/shop' }, action: 'challenge' }] });
  expect(JSON.parse((await ask('challenge.test', '/shop', { method: 'POST', headers: { accept: 'text/html' } })).body)).toMatchObject({ ok: false, code: 'challenge_required', eventId: expect.stringMatching(/^gwe_/) });
  const page = await ask('challenge.test', '/shop?item=1', { headers: { accept: 'text/html' } });
  expect(page).toMatchObject({ status: 403, headers: { 'x-gateway-event': expect.stringMatching(/^gwe_/) } });
  const elements = { token: { value: /name="token" value="([^"]+)"/.exec(page.body)?.[1] ?? '' }, answer: { value: '' }, next: { value: /name="next" value="([^"]+)"/.exec(page.body)?.[1] ?? '' } };
  await new Promise<void>((submit, reload) => runInNewContext(/<script nonce="[^"]+">(.*)<\/script>/s.exec(page.body)?.[1] ?? '', {
    document: { getElementById: () => ({ elements, getAttribute: () => '8', submit }) }, location: { reload }, setTimeout,
  }));
  const form = (token: string) => new URLSearchParams({ token, answer: elements.answer.value, next: elements.next.value }).toString();
  const post = (body: string) => ask('challenge.test', '/.well-known/holdfast/challenge', { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded', 'content-length': String(body.length) }, body });
  const failed = await post(form('wrong'));
  expect(failed).toMatchObject({ status: 403, headers: { 'content-type': 'text/html; charset=utf-8', 'x-gateway-event': expect.stringMatching(/^gwe_/) } });
  expect(failed.body).toContain(failed.headers['x-gateway-event']);
  const passed = await post(form(elements.token.value));
  expect(passed).toMatchObject({ status: 303, headers: { location: '/shop?item=1' } });
  const cookie = passed.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
  expect(await ask('challenge.test', '/shop?item=1', { headers: { cookie } })).toMatchObject({ status: 200, body: 'GET /shop?item=1' });
  expect((await post(form(elements.token.value))).status).toBe(403);
  await until(async () => (await counted(zoneId))['challenge_failed'] === 2, 'the last answer to be counted');
  expect(await counted(zoneId)).toMatchObject({ challenge: 2, challenge_passed: 1, challenge_failed: 2 });
});

test('monitor changes nothing of any answer, and writes down what block would have done', async () => {
  const rule = fc.record({ match: fc.record({ field: fc.constant('path'), op: fc.constant('starts_with'), value: fc.constantFrom('/', '/a', '/b') }), action: fc.constantFrom('block', 'challenge', 'log', 'allow') });
  const policy = fc.record({
    customRules: fc.array(rule, { maxLength: 3 }), rateLimits: fc.array(fc.record({ requests: fc.constant(1), action: fc.constantFrom('block', 'challenge', 'log') }), { maxLength: 1 }),
    ipLists: fc.record({ deny: fc.subarray(['127.0.0.0/8']) }), bots: fc.record({ mode: fc.constantFrom('off', 'block', 'challenge'), blockEmptyUserAgent: fc.constant(true) }),
  });
  const requests = [['/a?q=attack', 'GET'], ['/b?status=404', 'GET'], ['/', 'HEAD'], ['/c', 'POST']] as const;
  const bare = ({ status, headers, body }: Answer) => {
    const { date: _date, 'x-request-id': _id, ...kept } = headers;
    return { status, headers: kept, body };
  };
  await zone('off.test', { mode: 'off' });
  const zoneId = await zone('monitor.test', { mode: 'off' });
  let version = 1;
  await fc.assert(fc.asyncProperty(policy, async (written) => {
    version = await world.writePolicy(zoneId, { mode: 'monitor', ...written });
    await until(async () => (await world.test.database.pool.query('select from gateway_ack where zone_id = $1 and policy_version = $2', [zoneId, version])).rowCount === 1, 'the policy to be in force');
    for (const [path, method] of requests) {
      const [off, monitor] = [await ask('off.test', path, { method }), await ask('monitor.test', path, { method })];
      expect(bare(monitor)).toEqual(bare(off));
    }
  }), { numRuns: rounds(12, 150) });
  expect(Object.keys(await counted(zoneId)).filter((outcome) => !['clean', 'monitor', 'log', 'allow'].includes(outcome))).toEqual([]);
});
