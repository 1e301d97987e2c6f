import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EventRows } from '../../../src/edge/gateway/collapse';
import { Events, type EventsOptions } from '../../../src/edge/gateway/events';
import { maskedMatch, maskedPath, maskedReferer, maskNumbers, queryOutline, shownSuggestion } from '../../../src/edge/gateway/mask';
import { cleanDecision } from '../../../src/edge/gateway/tally';
import { timeOfId } from '../../../src/core/ids';
import { outcomes, sources, type Decision, type FinishedRequest, type RequestFacts } from '../../../src/gateway/ports';
import { storeBatch, type EventBatch } from '../../../src/gateway/store/batches';
import { createLog } from '../../../src/core/log';
import { openDatabase } from '../../../src/db/client';
import { createRetentionOf } from '../../../src/gateway/retention';
import { openTraffic } from '../../../src/edge/gateway/traffic';
import { noGeo } from '../../../src/adapters/geo-lookup/none';
import { withDatabase } from '../../support/database';
import { openGate } from '../../support/gate';
import { silentLog } from '../../support/dns-client';
import { engineSaying, finished, nothingFound, requestFacts, ruleMatch } from '../../support/gateway-requests';
import { rounds } from '../../support/rounds';
import { until } from '../../support/until';

const test_ = withDatabase();
let home = '';
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'holdfast-test-events-'));
});
afterAll(() => rm(home, { recursive: true }));

let made = 0;
const noRetention = async () => new Map<string, number>();
const store = (batch: EventBatch) => storeBatch(test_.database, batch, noRetention);
/** By hand: nothing is flushed but at the end, which waits for the database, or when rows fill a batch. */
const openEvents = (changes: Partial<EventsOptions> = {}) => Events.open({ instanceId: `i${(made += 1)}`, directory: join(home, `spool-${made}`), store, log: silentLog, flushMs: 3_600_000, closeMs: 25_000, ...changes });
const decisionOf = (outcome: Decision['outcome'], changes: Partial<Decision> = {}): Decision => (outcome === 'clean' ? cleanDecision : { ...cleanDecision, outcome, source: 'custom', ruleId: 'r1', ruleName: 'Rule', ...changes });
/** What a server does of one request. */
function serve(events: Events, decision: Decision, facts: Partial<RequestFacts> = {}, changes: Partial<FinishedRequest> = {}): string | null {
  const request = finished({ facts: requestFacts(facts), decision, ...changes });
  const id = events.reserve(request.facts, decision);
  events.record(request, id);
  return id;
}
const numbers = async (sql: string, zoneId: string) => Object.fromEntries((await test_.database.pool.query<{ name: string; n: number }>(sql, [zoneId])).rows.map(({ name, n }) => [name, n]));
const minutesOf = (zoneId: string) => numbers(`select outcome || ' ' || source as name, sum(requests)::int as n from gateway_minute where zone_id = $1 group by 1`, zoneId);
const eventsOf = (zoneId: string) => numbers(`select action || ' ' || source as name, sum(count)::int as n from gateway_event where zone_id = $1 group by 1`, zoneId);
const rowsOf = async (zoneId: string) => (await test_.database.pool.query<{ id: string; count: number; ip: string; createdAt: Date }>('select id, count, host(ip) as ip, created_at as "createdAt" from gateway_event where zone_id = $1 order by id', [zoneId])).rows;

describe('what is hidden', () => {
  test('secrets in what is suggested to be excluded', () => {
    const suggest = (target: string, pathPrefix: string | null) => shownSuggestion({ ruleId: '1', target, pathPrefix });
    expect(suggest('ARGS:q', '/shop/list')).toEqual({ ruleId: '1', target: 'ARGS:q', pathPrefix: '/shop/list' });
    expect(suggest('ARGS:4111111111111111', '/a;jsessionid=abc/b')).toEqual({ ruleId: '1', target: 'ARGS', pathPrefix: '/a' });
    expect(suggest('*', '/pay/4111111111111111/x')).toEqual({ ruleId: '1', target: '*', pathPrefix: '/pay/' });
    expect(suggest('*', null).pathPrefix).toBeNull();
  });

  test('values of queries, cards, and parameters of paths', () => {
    expect(queryOutline('q=hello+world&password=secret&flag&a%5B%5D=1')).toBe('q=[11]&password=[6]&flag&a%5B%5D=[1]');
    expect(queryOutline('')).toBeNull();
    expect(queryOutline('a secret of some kind')).toBe('[21]');
    expect(maskNumbers('pay 4111 1111 1111 1111 now, order 1234567890123456')).toBe('pay [masked] now, order 1234567890123456');
    expect(maskNumbers('3 4111 1111 1111 1111')).toBe('[masked]');
    expect(maskNumbers('0009994111111111111111000')).toBe('[masked]');
    expect(maskNumbers('/4111111111111111/5500-0000-0000-0004')).toBe('/[masked]/[masked]');
    expect(maskedPath('/a;jsessionid=abc;v=1/b')).toBe('/a;jsessionid=[masked];v=1/b');
    expect(maskedReferer('https://user:pw@a.example/x?token=1#f')).toBe('https://a.example/x');
  });

  test.each([
    [{ variable: 'ARGS:q', matched: `1' or 1=1 -- ${'x'.repeat(200)}` }, `1' or 1=1 -- ${'x'.repeat(115)}`],
    [{ variable: 'ARGS:user.password', matched: 'abc' }, '[3]'],
    [{ variable: 'REQUEST_HEADERS:X-Api-Key', matched: 'abc' }, '[3]'],
    [{ variable: 'REQUEST_HEADERS:User-Agent', matched: 'sqlmap' }, 'sqlmap'],
    [{ variable: 'REQUEST_COOKIES:theme', matched: 'abc' }, '[3]'],
    [{ variable: 'REQUEST_BODY', matched: '{"a":1}' }, '[7]'],
    [{ variable: 'REQUEST_URI', matched: '/x?token=1' }, '[10]'],
    [{ variable: 'TX:1', matched: 'abc' }, '[3]'],
    [{ variable: 'ARGS:n', matched: '4111111111111111' }, '[masked]'],
    [{ variable: 'ARGS:data', matched: '{"user":"x","password":"abc def"}<script>' }, '{"user":"x","password":"[masked] def"}<script>'],
    [{ variable: 'ARGS:url', matched: 'http://x/?access_token=abc&a=<b>' }, 'http://x/?access_token=[masked]&a=<b>'],
    [{ variable: 'REQUEST_HEADERS:X-Forwarded', matched: 'Bearer abc.def' }, 'Bearer [masked]'],
    [{ variable: 'REQUEST_HEADERS:Referer', matched: 'https://a.example/?q=abc' }, '[24]'],
    [{ variable: 'REQUEST_HEADERS:Referer', matched: 'https://a.example/<script>' }, 'https://a.example/<script>'],
    [{ variable: 'REQUEST_FILENAME', matched: '/etc/passwd\0' }, '/etc/passwd\u{fffd}'],
  ])('of a match in %j is kept %s', (match, kept) => expect(maskedMatch(match)).toBe(kept));

  test('secrets in headers, cookies, arguments and bodies are in no event, log or spool', async () => {
    const canaries = ['CANARYauth', 'CANARYcookie', 'CANARYkey', 'CANARYarg', 'CANARYpass', 'CANARYbody', 'CANARYref', '4012888888881881'];
    const lines: string[] = [];
    let isAway = true;
    const directory = join(home, 'canaries');
    const events = await openEvents({ directory, closeMs: 0, log: createLog('test', 'debug', { write: (line: string) => lines.push(line) }), store: (batch) => (isAway ? Promise.reject(Object.assign(new Error('away'), { detail: JSON.stringify(batch) })) : store(batch)) });
    const facts: Partial<RequestFacts> = {
      zoneId: 'zone_canary', rawQuery: 'q=CANARYarg&password=CANARYpass', body: Buffer.from('password=CANARYbody'), path: '/pay/4012888888881881',
      headers: [['authorization', 'Bearer CANARYauth'], ['cookie', 'sid=CANARYcookie'], ['x-api-key', 'CANARYkey'], ['user-agent', 'browser 4012888888881881'], ['referer', 'https://a.example/?t=CANARYref']],
    };
    const matches = [
      ruleMatch({ variable: 'REQUEST_HEADERS:Authorization', matched: 'CANARYauth' }), ruleMatch({ variable: 'REQUEST_COOKIES:sid', matched: 'CANARYcookie' }), ruleMatch({ variable: 'ARGS:password', matched: 'CANARYpass' }),
      ruleMatch({ variable: 'REQUEST_BODY', matched: 'CANARYbody' }), ruleMatch({ variable: 'QUERY_STRING', matched: 'q=CANARYarg' }), ruleMatch({ variable: 'ARGS:card', matched: '4012888888881881' }),
    ];
    const managed = { ...nothingFound, score: 30, blocked: true, deciding: ruleMatch(), matches };
    const id = serve(events, decisionOf('block', { source: 'managed', ruleId: '942100', managed }), facts);
    await events.close();
    const files = await readdir(directory);
    const spooled = (await Promise.all(files.map((file) => readFile(join(directory, file), 'utf8')))).join('\n');
    expect(spooled).toContain(id);
    isAway = false;
    await (await openEvents({ directory })).close();
    const { rows } = await test_.database.pool.query(`select row_to_json(e)::text as text from gateway_event e where zone_id = 'zone_canary' union all select row_to_json(t)::text from gateway_top_hour t where zone_id = 'zone_canary'`);
    const kept = JSON.stringify(rows);
    expect(kept).toContain(id);
    for (const canary of canaries) for (const text of [spooled, kept, lines.join('\n')]) expect(text).not.toContain(canary);
  });
});

describe('rows', () => {
  const at = 1_790_000_040_000;
  const choose = (rows: EventRows, changes: Partial<RequestFacts>, decision = decisionOf('block'), atMs = at) => rows.choose(requestFacts(changes), decision, atMs);

  test('a minute has 50 of one address, rule and action, the last takes the others', () => {
    const rows = new EventRows();
    const ids = Array.from({ length: 120 }, (_, i) => choose(rows, {}, decisionOf('block'), at + i * 100));
    expect(new Set(ids).size).toBe(50);
    expect(new Set(ids.slice(49))).toEqual(new Set([ids[49]]));
    for (const other of [choose(rows, { clientIp: '198.51.100.8' }), choose(rows, {}, decisionOf('block', { ruleId: 'r2' })), choose(rows, {}, decisionOf('log')), choose(rows, { zoneId: 'zone_2' }), choose(rows, {}, decisionOf('block'), at + 60_000)]) expect(ids).not.toContain(other);
  });

  test('allowed requests share a row from the first', () => {
    const rows = new EventRows();
    expect(new Set(Array.from({ length: 30 }, () => choose(rows, {}, decisionOf('allow')))).size).toBe(1);
    expect(new Set([choose(rows, {}, decisionOf('allow')), choose(rows, { clientIp: '198.51.100.8' }, decisionOf('allow'))]).size).toBe(2);
  });

  test('a second has 200 of a zone, the others go to a row of the same rule and action', () => {
    const rows = new EventRows();
    const ids = Array.from({ length: 500 }, (_, i) => choose(rows, { clientIp: `10.0.${i >> 8}.${i & 255}` }));
    expect(new Set(ids).size).toBe(200);
    expect(new Set(ids.slice(199)).size).toBe(1);
    expect(ids).not.toContain(choose(rows, { clientIp: '10.1.0.1' }, decisionOf('block', { ruleId: 'r2' })));
    expect(choose(rows, { clientIp: '10.1.0.1', zoneId: 'zone_2' })).not.toBe(ids[0]);
    expect(ids).not.toContain(choose(rows, { clientIp: '10.1.0.1' }, decisionOf('block'), at + 1_000));
  });

  test('the id names the row with all requests, by the time in the id, and the first that ends writes it', async () => {
    const at = Date.now();
    const events = await openEvents({ now: () => at });
    const zoneId = 'zone_rows';
    const decision = decisionOf('allow', { source: 'ip_list', ruleId: 'ip_list.allow' });
    const first = requestFacts({ zoneId, requestId: 'req_first' });
    const id = events.reserve(first, decision);
    for (let i = 0; i < 4; i++) expect(serve(events, decision, { zoneId, requestId: `req_${i}` })).toBe(id);
    await events.close();
    expect(await rowsOf(zoneId)).toEqual([{ id, count: 4, ip: '198.51.100.7', createdAt: timeOfId(`gwe_${id?.slice(4) ?? ''}`) }]);
    const later = await openEvents();
    later.record(finished({ facts: first, decision }), id);
    await later.close();
    expect(await rowsOf(zoneId)).toMatchObject([{ id, count: 5 }]);
  });

  test('hold what the contract names', async () => {
    const events = await openEvents();
    const managed = { ...nothingFound, score: 8, threshold: 5, blocked: true, deciding: ruleMatch(), matches: Array.from({ length: 14 }, (_, i) => ruleMatch({ id: String(i) })), suggestion: { ruleId: '942100', target: 'ARGS:q', pathPrefix: '/search' } };
    serve(events, decisionOf('monitor', { wouldHave: 'block', source: 'managed', ruleId: '942100', ruleName: 'SQL injection', managed }), {
      zoneId: 'zone_full', requestId: 'req_x', country: 'DE', asn: 64_500, method: 'POST', path: `/${'p'.repeat(2_000)}`, rawQuery: 'q=1%27', clientIp: '2001:db8::1', tlsVersion: null, headers: [['user-agent', 'u'.repeat(600)]], receivedAt: 1_700_000_000_000,
    }, { status: 200, originStatus: 200, durationMs: 12.3456, bytesIn: 77, mode: 'monitor', policyVersion: 12, ruleSetVersion: 'crs-3.3.4' });
    await events.close();
    const { rows: [row] } = await test_.database.pool.query(`select * from gateway_event where zone_id = 'zone_full'`);
    expect(row).toMatchObject({
      retention_days: 1, action: 'monitor', would_have: 'block', mode: 'monitor', policy_version: 12, rule_set_version: 'crs-3.3.4', source: 'managed', rule_id: '942100', rule_name: 'SQL injection', anomaly_score: 8, threshold: 5,
      suggested_exclusion: { ruleId: '942100', target: 'ARGS:q', pathPrefix: '/search' }, ip: '2001:db8::1', country: 'DE', asn: '64500', request_id: 'req_x', method: 'POST', scheme: 'https', host: 'www.example.com', query: 'q=[4]',
      http_version: '1.1', tls_version: null, user_agent: 'u'.repeat(512), referer: null, status: 200, origin_status: 200, duration_ms: 12.346, bytes_in: '77',
    });
    expect(row.updated_at).toEqual(row.created_at);
    expect(row.path).toHaveLength(1_024);
    expect(row.rules).toHaveLength(10);
    expect(row.rules[0]).toEqual(ruleMatch({ id: '0' }));
  });
});

test('whatever bytes a request has, its event is stored, and its suggestion fits a policy', async () => {
  const events = await openEvents();
  const odd = '/a\0\ud800';
  const managed = { ...nothingFound, score: 5, threshold: 5, blocked: true, deciding: ruleMatch(), matches: [ruleMatch({ id: odd, message: odd, severity: odd, variable: `ARGS:${odd}`, matched: odd, tags: [odd] })], suggestion: { ruleId: '942100', target: `ARGS:${odd}`, pathPrefix: odd } };
  const id = serve(events, decisionOf('block', { source: 'managed', ruleId: '942100', ruleName: odd, managed }), { zoneId: 'zone_odd', path: odd, rawQuery: odd, host: odd, method: odd, requestId: odd, country: odd, headers: [['user-agent', odd], ['referer', odd]] });
  await events.close();
  const { rows } = await test_.database.pool.query(`select id, suggested_exclusion as suggested from gateway_event where zone_id = 'zone_odd'`);
  expect(rows).toEqual([{ id, suggested: { ruleId: '942100', target: 'ARGS', pathPrefix: '/a' } }]);
  expect(await minutesOf('zone_odd')).toEqual({ 'block managed': 1 });
});

describe('counts', () => {
  const traffic = fc.array(fc.record({
    outcome: fc.constantFrom('clean' as const, ...outcomes), source: fc.constantFrom(...sources), ruleId: fc.constantFrom('a', 'b'), ip: fc.nat(3), minute: fc.nat(3), waits: fc.boolean(), flush: fc.nat(9),
  }), { maxLength: 120 });
  const startMs = Math.floor(Date.now() / 3_600_000) * 3_600_000;

  test('are exact for random traffic, whatever the database does and however often it is asked', async () => {
    await fc.assert(fc.asyncProperty(traffic, fc.array(fc.constantFrom('away', 'unsure', 'twice', 'well'), { minLength: 1, maxLength: 30 }), async (requests, faults) => {
      const zoneId = `zone_${(made += 1)}`;
      let turn = 0;
      const faulty = async (batch: EventBatch) => {
        const fault = turn < 40 ? faults[turn++ % faults.length] : 'well';
        if (fault === 'away') throw new Error('away');
        await store(batch);
        if (fault === 'twice') expect(await store(batch)).toBe(false);
        if (fault === 'unsure') throw new Error('the answer was lost');
      };
      const options = { directory: join(home, zoneId), closeMs: 0, store: faulty };
      const { directory } = options;
      let events = await openEvents(options);
      const expected: Record<string, number> = {};
      const late: (() => void)[] = [];
      for (const { outcome, source, ruleId, ip, minute, waits, flush } of requests) {
        const decision = decisionOf(outcome, { source, ruleId, wouldHave: outcome === 'monitor' ? 'block' : null });
        const request = finished({ facts: requestFacts({ zoneId, clientIp: `198.51.100.${ip}`, receivedAt: startMs + minute * 60_000 }), decision, bytesIn: 3 });
        const name = `${outcome} ${outcome === 'clean' ? '' : source}`;
        expected[name] = (expected[name] ?? 0) + 1;
        const id = events.reserve(request.facts, decision);
        if (waits) late.push(() => events.record(request, id));
        else events.record(request, id);
        if (flush === 0) {
          // The process ends, and another takes over what it left.
          const before = events;
          events = await openEvents(options);
          for (const end of late.splice(0)) end();
          await before.close();
          await events.close();
          events = await openEvents(options);
        }
      }
      for (const end of late) end();
      await events.close();
      await (await openEvents(options)).close();
      await (await openEvents({ directory })).close();
      expect(await readdir(directory).catch(() => [])).toEqual([]);
      expect(await minutesOf(zoneId)).toEqual(expected);
      const { [`clean `]: clean = 0, ...others } = expected;
      expect(await eventsOf(zoneId)).toEqual(others);
      const sum = Object.values(others).reduce((total, n) => total + n, 0);
      expect(await numbers('select dimension as name, sum(requests)::int as n from gateway_top_hour where zone_id = $1 group by 1', zoneId)).toEqual(
        requests.length === 0 ? {} : { host: sum + clean, ...(sum > 0 ? { rule: sum, ip: sum, path: sum, user_agent: sum } : {}) });
    }), { numRuns: rounds(30, 300), endOnFailure: true });
  });

  test('and rows survive a database that is away in a flood, in their order', async () => {
    const gate = await openGate(test_.url);
    const database = openDatabase({ url: gate.url, max: 4, process: 'test', log: pino({ level: 'silent' }) });
    const seqs: number[] = [];
    const directory = join(home, 'flood');
    const options = { directory, flushMs: 20, store: async (batch: EventBatch) => {
      await storeBatch(database, batch, noRetention);
      seqs.push(batch.seq);
    } };
    const events = await openEvents(options);
    const zoneId = 'zone_flood';
    let sent = 0;
    const flood = (n: number) => {
      for (let i = 0; i < n; i++) serve(events, decisionOf('block'), { zoneId, clientIp: `198.51.100.${(sent += 1) % 200}` });
    };
    flood(700);
    await until(() => seqs.length > 0, 'the first batch');
    await gate.shut();
    for (let round = 0; round < 10; round++) {
      flood(300);
      const before = events.backlog.batches;
      await until(async () => events.backlog.batches > 0 && (round > 0 || events.backlog.batches >= before) && (await readdir(directory)).length > 0, 'batches on disk');
    }
    await gate.open();
    flood(100);
    await until(() => events.backlog.batches === 0, 'everything to be stored');
    await events.close();
    await database.close();
    await gate.shut();
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
    expect(await minutesOf(zoneId)).toEqual({ 'block custom': sent });
    expect(await eventsOf(zoneId)).toEqual({ 'block custom': sent });
    expect(await readdir(directory)).toEqual([]);
  });

  test('are never dropped: when the disk has no more room the oldest details are, and that is written down', async () => {
    const directory = join(home, 'small');
    const zoneId = 'zone_small';
    let isAway = true;
    const bytesMax = 40_000;
    const events = await openEvents({ directory, flushMs: 10, spoolBytesMax: bytesMax, store: (batch) => (isAway ? Promise.reject(new Error('away')) : store(batch)) });
    const ids: (string | null)[] = [];
    for (let round = 0; round < 10; round++) {
      for (let i = 0; i < 20; i++) ids.push(serve(events, decisionOf('block', { ruleId: `r${round}` }), { zoneId, clientIp: `198.51.100.${i}` }));
      const last = ids.at(-1) ?? '';
      await until(async () => (await Promise.all((await readdir(directory).catch(() => [])).map((name) => readFile(join(directory, name), 'utf8').catch(() => '')))).some((text) => text.includes(last)), 'the round on disk');
      const sizes = await Promise.all((await readdir(directory)).map((name) => stat(join(directory, name)).then(({ size }) => size, () => 0)));
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(2 * bytesMax);
    }
    isAway = false;
    await until(() => events.backlog.batches === 0, 'everything to be stored');
    await events.close();
    expect(await minutesOf(zoneId)).toEqual({ 'block custom': 200 });
    const kept = await rowsOf(zoneId);
    expect(kept.length).toBeGreaterThan(0);
    expect(kept.length).toBeLessThan(200);
    expect(kept.at(-1)?.id).toBe(ids.at(-1));
    const { rows: [lost] } = await test_.database.pool.query<{ n: number }>('select sum(events_lost)::int as n from gateway_batch where instance_id = $1', [`i${made}`]);
    expect(lost?.n).toBe(200 - kept.length);
  });

  test('of a batch that the database can never take go down with it, not the ones behind', async () => {
    const directory = join(home, 'poison');
    const zoneId = 'zone_poison';
    const events = await openEvents({ directory, flushMs: 5, store: async (batch) => {
      if (batch.details.rows.some((row) => row.rule_id === 'poison')) throw Object.assign(new Error('invalid'), { code: '22P05' });
      await store(batch);
    } });
    serve(events, decisionOf('block', { ruleId: 'poison' }), { zoneId });
    await until(() => events.backlog.batches > 0, 'the batch to be refused');
    serve(events, decisionOf('block'), { zoneId });
    await until(async () => (await minutesOf(zoneId))['block custom'] === 2, 'both to be counted');
    await events.close();
    expect((await rowsOf(zoneId)).length).toBe(1);
    await writeFile(join(home, '0000000000000001.json'), '{"half');
    await (await openEvents({ directory: home })).close();
    expect(await readdir(home)).toContain('0000000000000001.json.unreadable');
  });

  test('of the most frequent keep 200 keys of an hour and add up the rest', async () => {
    const zoneId = 'zone_tops';
    for (let batch = 0; batch < 3; batch++) {
      const events = await openEvents();
      for (let i = 0; i < 150; i++) serve(events, decisionOf('block', { ruleId: 'same' }), { zoneId, clientIp: `10.0.${batch}.${i}`, country: 'DE' });
      await events.close();
    }
    const { rows } = await test_.database.pool.query<{ key: string; requests: string; country: string | null }>(`select key, requests, country from gateway_top_hour where zone_id = $1 and dimension = 'ip'`, [zoneId]);
    expect(rows.filter(({ key }) => key !== '')).toHaveLength(200);
    expect(rows.reduce((sum, { requests }) => sum + Number(requests), 0)).toBe(450);
    expect(rows.find(({ key }) => key === '')).toMatchObject({ country: null });
    expect(await numbers(`select key as name, requests::int as n from gateway_top_hour where zone_id = $1 and dimension in ('rule', 'country')`, zoneId)).toEqual({ same: 450, DE: 450 });
  });

  test('go to the days that the plan keeps', async () => {
    const events = await openEvents({ store: (batch) => storeBatch(test_.database, batch, async () => new Map([['zone_days', 30]])) });
    serve(events, decisionOf('block'), { zoneId: 'zone_days' });
    await events.close();
    const { rows } = await test_.database.pool.query(`select retention_days from gateway_event where zone_id = 'zone_days'`);
    expect(rows).toEqual([{ retention_days: 30 }]);
  });

  test('of two processes that number theirs alike are both stored, and what one was writing when it ended is not left', async () => {
    const directory = join(home, 'alike');
    const zoneId = 'zone_alike';
    const options = { directory, closeMs: 0, now: () => 1_790_000_000_123, store: () => Promise.reject(new Error('away')) };
    const both = [await openEvents(options), await openEvents(options)];
    for (const events of both) serve(events, decisionOf('block'), { zoneId });
    for (const events of both) await events.close();
    expect(await readdir(directory)).toHaveLength(2);
    await writeFile(join(directory, '0000000000000001-i.json.new'), '{"half');
    const next = await openEvents({ directory, now: options.now });
    serve(next, decisionOf('block'), { zoneId });
    await next.close();
    expect(await readdir(directory)).toEqual([]);
    expect(await minutesOf(zoneId)).toEqual({ 'block custom': 3 });
    expect(await eventsOf(zoneId)).toEqual({ 'block custom': 3 });
  });

  test('of a worker that is not started again are stored by the first one', async () => {
    const spoolDir = join(home, 'places');
    const open = (place: number, workers: number, db = test_.database) => openTraffic({
      engine: engineSaying(), geo: noGeo, verifiedBotsFile: undefined, masterKeys: [Buffer.alloc(32, 1).toString('base64')], db, retentionOf: createRetentionOf(db), instanceId: `place-${place}`, spoolDir, place, workers,
      send: () => undefined, registry: new Registry(), log: silentLog,
    });
    const away = openDatabase({ url: 'postgres://nobody@127.0.0.1:1/none', max: 1, process: 'test', log: pino({ level: 'silent' }) });
    const second = await open(1, 2, away);
    const request = finished({ facts: requestFacts({ zoneId: 'zone_place' }), decision: decisionOf('block') });
    second.sink.record(request, second.sink.reserve(request.facts, request.decision));
    expect(second.describe('192.0.2.1')).toEqual({ country: null, asn: null, isVerifiedBot: false });
    await second.close();
    await away.close();
    const first = await open(0, 1);
    await first.close();
    await until(async () => (await minutesOf('zone_place'))['block custom'] === 1, 'what the second has left');
    expect(await eventsOf('zone_place')).toEqual({ 'block custom': 1 });
  });
});
