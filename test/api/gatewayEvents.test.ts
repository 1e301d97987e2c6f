import fc from 'fast-check';
import { newId, timeOfId } from '../../src/core/ids';
import type { EventView, SummaryView } from '../../src/gateway/schemas';
import { countedOutcomes, eventSources } from '../../src/gateway/rules/summary';
import { withGatewayApi } from '../support/gateway-api';

const world = withGatewayApi();
const minuteMs = 60_000;
type Row = Partial<Omit<EventView, 'asn'>> & { at?: Date };

/** An event as a worker stores it. */
async function event(zone: { id: string }, row: Row = {}): Promise<string> {
  const id = row.id ?? newId('gwe', (row.at ?? new Date()).getTime());
  const at = row.at ?? timeOfId(id as `gwe_${string}`);
  await world.sql(`insert into gateway_event (retention_days, created_at, id, zone_id, updated_at, action, mode, policy_version, source, rule_id, ip, country, request_id, method, scheme, host, path, http_version, status, duration_ms, bytes_in, rules, suggested_exclusion)
    values (7, $1, $2, $3, $1, $4, 'block', 1, $5, $6, $7, $8, $9, $10, 'https', $11, $12, '2', 403, 1.5, 10, '[]', $13)`,
  at, id, zone.id, row.action ?? 'block', row.source ?? 'managed', row.ruleId ?? '942100', row.ip ?? '198.51.100.7', row.country ?? null, row.requestId ?? newId('req'), row.method ?? 'GET',
  row.host ?? 'www.example.test', row.path ?? '/', row.suggestedExclusion ? JSON.stringify(row.suggestedExclusion) : null);
  return id;
}
const ago = (ms: number) => new Date(Date.now() - ms);
const list = async (zone: { id: string }, query = '') => (await world.gateway(zone, 'GET', `/events${query}`)).body;
const ids = (body: { events: { id: string }[] }) => body.events.map(({ id }) => id);

test('listGatewayEvents pages through events newest first, whatever comes meanwhile, and tells its range', async () => {
  const zone = await world.zone({ proxied: false });
  const stored: string[] = [];
  for (let i = 7; i > 0; i--) stored.unshift(await event(zone, { at: ago(i * minuteMs) }));
  const first = await list(zone, '?limit=3');
  expect(first).toMatchObject({ hasMore: true, range: { from: expect.any(String), to: expect.any(String), retentionFrom: expect.any(String) } });
  expect(Date.parse(first.range.to) - Date.parse(first.range.from)).toBe(86_400_000);
  await event(zone);
  const second = await list(zone, `?limit=3&cursor=${first.nextCursor}`);
  const third = await list(zone, `?limit=3&cursor=${second.nextCursor}`);
  expect([...ids(first), ...ids(second), ...ids(third)]).toEqual(stored);
  expect(third).toMatchObject({ hasMore: false, nextCursor: null });
  expect((await list(zone, `?limit=3&action=log&cursor=${first.nextCursor}`)).code).toBe('invalid_cursor');
  expect((await list(zone, '?limit=101')).code).toBe('validation_error');
  expect((await list(zone, '?from=2026-01-02T00:00:00.000Z&to=2026-01-01T00:00:00.000Z')).issues).toEqual([expect.objectContaining({ path: 'from' })]);
});

test('every filter finds what it names and nothing else', async () => {
  const zone = await world.zone({ proxied: false });
  const other = await world.zone({ proxied: false });
  await event(other, { ip: '203.0.113.9' });
  const a = await event(zone, { at: ago(4 * minuteMs), ip: '203.0.113.9', country: 'AT', path: '/shop/100%_off', method: 'POST', action: 'log', source: 'custom', ruleId: 'admin', host: 'a.test', requestId: 'req_a' });
  const b = await event(zone, { at: ago(3 * minuteMs), ip: '2001:db8::7', path: '/shop/list', action: 'rate_limit', source: 'rate_limit', ruleId: 'login' });
  const c = await event(zone, { at: ago(2 * minuteMs), ip: '198.51.100.7', path: '/admin' });
  const found: [string, string[]][] = [
    ['action=log', [a]], ['action=log,rate_limit', [b, a]], ['source=custom,managed', [c, a]], ['ruleId=login', [b]], ['ip=203.0.113.9', [a]], ['ip=203.0.113.0/24', [a]], ['ip=2001:DB8::/32', [b]],
    ['country=at', [a]], ['host=A.test', [a]], ['path=/shop', [b, a]], ['path=/shop/100%25_', [a]], ['path=/*/li*', [b]], ['path=*min', [c]], ['method=post', [a]], ['requestId=req_a', [a]],
    [`from=${ago(3.5 * minuteMs).toISOString()}`, [c, b]], [`from=${ago(10 * minuteMs).toISOString()}&to=${ago(3.5 * minuteMs).toISOString()}`, [a]],
  ];
  for (const [query, wanted] of found) expect({ query, ids: ids(await list(zone, `?${query}`)) }).toEqual({ query, ids: wanted });
  for (const query of ['action=clean', 'source=x', 'ip=nowhere', 'country=Austria', 'from=yesterday']) expect({ query, code: (await list(zone, `?${query}`)).code }).toEqual({ query, code: 'validation_error' });
});

test('getGatewayEvent finds an event by the time in its id, within its retention and its zone', async () => {
  const [zone, other] = [await world.zone({ proxied: false }), await world.zone({ proxied: false })];
  const id = await event(zone, { suggestedExclusion: { ruleId: '942100', target: 'ARGS:q', pathPrefix: '/search' } });
  const { body } = await world.gateway(zone, 'GET', `/events/${id}`);
  expect(body.event).toMatchObject({ id, zoneId: zone.id, count: 1, action: 'block', wouldHave: null, ip: '198.51.100.7', asn: null, bytesIn: 10, suggestedExclusion: { ruleId: '942100', target: 'ARGS:q', pathPrefix: '/search' }, rules: [] });
  expect(Date.parse(body.event.createdAt)).toBe(timeOfId(id as `gwe_${string}`).getTime());
  const old = await event(zone, { at: ago(8 * 86_400_000) });
  for (const [where, gone] of [[other, id], [zone, old], [zone, newId('gwe')], [zone, 'gwe_x'], [zone, newId('msg')]] as const) {
    expect((await world.gateway(where, 'GET', `/events/${gone}`)).body).toMatchObject({ code: 'not_found' });
  }
  expect(ids(await list(zone, `?from=${ago(20 * 86_400_000).toISOString()}`))).toEqual([id]);
});

test('excludeGatewayEvent puts the suggestion into a new version, once, and refuses events without one', async () => {
  const zone = await world.zone();
  const suggestion = { ruleId: '942100', target: 'ARGS:q', pathPrefix: '/search' };
  const id = await event(zone, { suggestedExclusion: suggestion });
  const plain = await event(zone);
  const { status, body } = await world.gateway(zone, 'POST', `/events/${id}/exclude`, { json: { note: 'search is harmless' } });
  expect(status).toBe(200);
  expect(body).toMatchObject({ policy: { version: 1, managedRules: { exclusions: [{ ...suggestion, tag: null, note: 'search is harmless', expiresAt: null, id: expect.stringMatching(/^[a-z0-9][a-z0-9_-]{0,63}$/) }] } }, propagation: { version: 1 }, warnings: expect.any(Array) });
  expect((await world.gateway(zone, 'POST', `/events/${id}/exclude`)).body.policy).toEqual(body.policy);
  expect((await world.gateway(zone, 'POST', `/events/${plain}/exclude`, { json: {} })).body).toMatchObject({ code: 'invalid_state' });
  expect((await world.gateway(zone, 'POST', `/events/${id}/exclude`, { json: { note: 'x' }, headers: { 'if-match': '"7"' } })).body).toMatchObject({ code: 'precondition_failed' });
  expect((await world.put(zone, body.policy)).body.policy.version).toBe(1);
});

const count = (zone: { id: string }, minute: Date, [outcome, source]: readonly [string, string], requests: number) => world.sql(
  `insert into gateway_minute (zone_id, minute, outcome, source, requests) values ($1, $2, $3, $4, $5) on conflict (zone_id, minute, outcome, source) do update set requests = gateway_minute.requests + excluded.requests`,
  zone.id, minute, outcome, source, requests,
);

test('in every summary requests are the sum of the outcomes, every total is its sum over the series, and actions and sources each sum to the events', async () => {
  const counts = fc.array(fc.record({ outcome: fc.constantFrom(...countedOutcomes), source: fc.constantFrom(...eventSources), minute: fc.integer({ min: 0, max: 80 * 60 }), requests: fc.integer({ min: 0, max: 1_000_000 }) }), { maxLength: 30 });
  await fc.assert(fc.asyncProperty(counts, fc.constantFrom(1, 2, 6, 7, 24, 72, 73, 720), async (given, hours) => {
    const zone = { id: newId('zone') };
    await world.sql(`insert into dns_zone (id, org_id, project_id, domain, unicode_domain, registrable, mode, serial) values ($1, $2, $3, $1, $1, $1, 'full_hosting', 1)`, zone.id, world.tenant.orgId, world.tenant.projectId);
    await world.sql(`insert into dns_nameserver_assignment (project_id, domain, token, verify_token) values ($1, $2, $2, 'x')`, world.tenant.projectId, zone.id);
    const now = Math.floor(Date.now() / minuteMs) * minuteMs;
    for (const { outcome, source, minute, requests } of given) await count(zone, new Date(now - minute * minuteMs), [outcome, outcome === 'clean' ? '' : source], requests);
    const { body, text } = await world.gateway(zone, 'GET', `/summary?hours=${hours}`);
    const summary: SummaryView = body.summary ?? expect(text).toBe('');
    const { totals, series, byAction, bySource } = summary;
    const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
    for (const counters of [totals, ...series]) {
      const { requests, clean, allowed, logged, monitored, challenged, challengePassed, challengeFailed, rateLimited, blocked } = counters;
      expect(requests).toBe(clean + allowed + logged + monitored + challenged + challengePassed + challengeFailed + rateLimited + blocked);
    }
    for (const member of ['requests', 'clean', 'allowed', 'logged', 'monitored', 'challenged', 'challengePassed', 'challengeFailed', 'rateLimited', 'blocked'] as const) expect(totals[member]).toBe(sum(series.map((entry) => entry[member])));
    expect(totals.events).toBe(totals.requests - totals.clean);
    expect([sum(Object.values(byAction)), sum(Object.values(bySource))]).toEqual([totals.events, totals.events]);
    const bucket = hours <= 1 ? 60 : hours <= 6 ? 300 : hours <= 72 ? 3_600 : 21_600;
    expect([summary.bucketSeconds, series.length, Date.parse(summary.to) - Date.parse(summary.from)]).toEqual([bucket, Math.ceil((hours * 3_600) / bucket), hours * 3_600_000]);
    expect([series[0]?.start, series.at(-1)?.end]).toEqual([summary.from, summary.to]);
    for (const [i, { start }] of series.entries()) expect(start).toBe(series[i - 1]?.end ?? summary.from);
    const from = Date.parse(summary.from);
    expect(totals.requests).toBe(sum(given.filter(({ minute }) => now - minute * minuteMs >= from).map(({ requests }) => requests)));
  }), { numRuns: 12 });
}, 120_000);

test('getGatewaySummary counts the running minute, ranks the tops of the hours it touches, and says when a list was cut', async () => {
  const zone = await world.zone({ proxied: false });
  await count(zone, new Date(Math.floor(Date.now() / minuteMs) * minuteMs), ['block', 'managed'], 3);
  const top = (dimension: string, key: string, requests: number, hoursAgo = 0) => world.sql(`insert into gateway_top_hour (zone_id, hour, dimension, key, name, requests, last_seen_at)
    values ($1, date_trunc('hour', now(), 'UTC') - $2::int * interval '1 hour', $3, $4, $5, $6, now())`, zone.id, hoursAgo, dimension, key, dimension === 'rule' ? `rule ${key}` : null, requests);
  for (let i = 1; i <= 12; i++) await top('ip', `192.0.2.${i}`, i);
  await top('rule', '942100', 3);
  await top('rule', '941100', 2);
  await top('rule', '941100', 2, 1);
  const summary: SummaryView = (await world.gateway(zone, 'GET', '/summary')).body.summary;
  expect(summary).toMatchObject({ hours: 24, totals: { requests: 3, blocked: 3, events: 3 }, byAction: { block: 3, log: 0 }, bySource: { managed: 3 }, estimated: false });
  expect(summary.topIps.map(({ key, count: n }) => `${key} ${n}`)).toEqual(Array.from({ length: 10 }, (_, i) => `192.0.2.${12 - i} ${12 - i}`));
  expect(summary.topRules).toEqual([{ key: '941100', name: 'rule 941100', country: null, asn: null, count: 4, lastSeenAt: expect.any(String) }, { key: '942100', name: 'rule 942100', country: null, asn: null, count: 3, lastSeenAt: expect.any(String) }]);
  await top('path', '', 5);
  expect((await world.gateway(zone, 'GET', '/summary?hours=1')).body.summary).toMatchObject({ estimated: true, topPaths: [] });
  for (const hours of ['0', '721', '1.5', 'x', '-1']) expect((await world.gateway(zone, 'GET', `/summary?hours=${hours}`)).body.code).toBe('validation_error');
});
